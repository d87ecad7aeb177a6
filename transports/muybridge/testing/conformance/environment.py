"""What the environment must not change: where the key goes, and which CA is trusted."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import trustme

from muybridge.testing.certificates import client_context, server_context
from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    KEY,
    Checks,
    authority,
    expect,
    failure_of,
    given,
    only_transport_errors,
    post,
    server_tls,
    serving,
    with_proxy,
)
from muybridge.testing.conformance.lessons import KEY as MONEY
from muybridge.testing.conformance.lessons import Lesson
from muybridge.testing.scripted_server import serve
from muybridge.wire.transport import Transport, TransportError, exchange
from muybridge_protocol.http import HttpResponse, Reason

_VARIABLES = "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, in either case"
_NAME = "plain.example"

OPEN = Lesson(
    f"{MONEY}, and a proxy reads all that goes over plain http",
    "what the library does with HTTP_PROXY and ALL_PROXY: when a proxy is set, refuse a plain http "
    "request that has a key (sent=False, Reason.REFUSED_HERE), unless the user has opted in",
)
LOCAL = Lesson(
    f"{MONEY}, and a service on loopback is a test or a tunnel: what is meant for it must not "
    "leave the machine through a proxy that a login script has set",
    "the library's option for the environment (trust_env=False, proxies={}), or what looks the "
    "proxy up: localhost, 127.0.0.0/8 and ::1 are never proxied",
)
GIVEN = Lesson(
    f"{MONEY}, and anyone who can set a variable could name an authority of their own",
    "REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE and SSL_CERT_FILE: a transport that is given an "
    "ssl_context trusts what that trusts, and nothing else",
)


@contextlib.contextmanager
def _name_that_only_a_proxy_knows(monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """Return a host name that does not resolve here, so that no byte can leave the machine."""
    lookup = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        if host in ("127.0.0.1", b"127.0.0.1"):
            return lookup(host, *arguments, **named)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolve)
        yield _NAME


class Environment(Checks):
    """What environment variables change, and what they must not change."""

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    @pytest.mark.parametrize("scheme", ["http", "https"])
    @pytest.mark.usefixtures("transport")
    def test_loopback_is_not_proxied(
        self, monkeypatch: pytest.MonkeyPatch, scheme: str, host: str
    ) -> None:
        """A request to this machine goes there directly, whatever proxy is set."""
        tls = server_tls() if scheme == "https" else None
        with serving(serve(502, b"the proxy")) as proxy, serving(serve(), tls=tls) as server:
            with_proxy(monkeypatch, proxy.url)
            url = server.url.replace("127.0.0.1", host)
            with given(f"{_VARIABLES}, and a request to {url}"), self._made() as transport:
                end = _exchanged(transport, url)
                found = f"a request to the proxy, {proxy.received[:80]!r}"
                LOCAL.require(not proxy.peers, "no connection to the proxy", found)
                right = isinstance(end, HttpResponse) and end.status == 200  # noqa: PLR2004  # as sent
                LOCAL.require(right, "the response of the server", end)

    @pytest.mark.usefixtures("transport")
    def test_key_over_plain_http_through_a_proxy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key does not go to a proxy in clear text."""
        with (
            serving(serve(200, b"the proxy")) as proxy,
            _name_that_only_a_proxy_knows(monkeypatch) as name,
        ):
            with_proxy(monkeypatch, proxy.url)
            with given(f"{_VARIABLES}, and a request to http://{name}"), self._made() as transport:
                end = _exchanged(transport, f"http://{name}/")
                found = proxy.received
                OPEN.require(KEY.encode() not in found, "no key at the proxy", found[:300])
                failed = isinstance(end, TransportError) and not end.failure.sent
                OPEN.require(failed, "TransportError with sent=False", end)

    @pytest.mark.usefixtures("transport")
    def test_authorities_of_the_environment(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A CA that the environment names is not trusted in addition to the given context."""
        other, path = trustme.CA(), tmp_path / "other.pem"
        other.cert_pem.write_to_path(str(path))
        variables = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
        for variable in variables:
            monkeypatch.setenv(variable, str(path))
        with (
            serving(serve(), tls=server_context(other, "127.0.0.1")) as server,
            given(f"{', '.join(variables)} that name the authority of the server's certificate"),
            self._made() as transport,
        ):
            failure = failure_of(transport, post(server.url), GIVEN)
            expect(failure, GIVEN, sent=False, reason=Reason.CERTIFICATE)
            GIVEN.require(server.received == b"", "nothing sent", server.received[:80])

    def _made(self) -> AbstractContextManager[Transport]:
        """Make a transport now, because some read the environment when they are made."""
        return contextlib.closing(self.make_transport(client_context(authority())))


def _exchanged(transport: Transport, url: str) -> HttpResponse | TransportError:
    try:
        with only_transport_errors():
            return exchange(transport, post(url), timeout=ENOUGH, authorization=AUTHORIZATION)
    except TransportError as error:
        return error
