"""Proxies come from the environment, and are trusted with no more than they need."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable

import pytest

import moments
from muybridge.wire.transport import Transport, TransportError, exchange
from muybridge_protocol.http import Phase, Reason
from muybridge_protocol.remedies import Remedy, RemedyKind

from .calls import AUTHORIZATION, KEY, call, failure_of, get, post
from .conftest import MakeTransport
from .scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    closed_port,
    connect_proxy,
    hang,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)

proxy_for = moments.at("proxy chosen").value
OPENED = b"HTTP/1.1 200 OK\r\n\r\n"
PASSWORD = "p4ss%2fword"  # noqa: S105  # of a proxy that does not exist


@pytest.fixture
def by_proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let what the tests ask for by this name go through a proxy on loopback."""

    # Loopback is never proxied, so the hosts behind these proxies have other names.
    def never(_: str) -> bool:
        return False

    monkeypatch.setattr(*moments.at("host looked at for a proxy").place, never)

    def use(proxy: str) -> None:
        monkeypatch.setenv("ALL_PROXY", proxy)

    return use


def test_tunnel(
    transport: Transport, server_tls: ssl.SSLContext, by_proxy: Callable[[str], None]
) -> None:
    """https goes through a tunnel, kept for the next request, and the proxy learns no secret."""
    with ScriptedServer(serve(), tls=server_tls) as server, ScriptedServer(connect_proxy) as proxy:
        by_proxy(f"http://user:{PASSWORD}@{proxy.address}")
        assert call(transport, post(f"{server.url}/v1?q=1")).status == 200
        assert call(transport, get(f"{server.url}/v1?q=1")).status == 200
        assert server.posts == 1
        seen = proxy.received
        assert len(proxy.peers) == 1
    credentials = base64.b64encode(b"user:p4ss/word")
    assert seen.startswith(b"CONNECT " + server.address.encode() + b" HTTP/1.1\r\nHost: ")
    assert b"\r\nProxy-Authorization: Basic " + credentials + b"\r\n" in seen
    assert KEY.encode() not in seen
    assert b"Proxy-Authorization" not in server.received
    assert KEY.encode() in server.received


def drip_a_reply(peer: Peer) -> None:
    peer.drip(b"HTTP/1.1 200" * 99, every=0.03)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([Peer.read_head, send(response_bytes(407))], Reason.PROXY_REFUSED),
        ([Peer.read_head, send(response_bytes(502, b"sorry"))], Reason.PROXY_REFUSED),
        ([Peer.read_head, send(response_bytes(302, location="/x"))], Reason.PROXY_REFUSED),
        ([Peer.read_head], Reason.CLOSED),
        ([Peer.read_head, reset], Reason.RESET),
        ([Peer.read_head, send(b"SSH-2.0-OpenSSH\r\n\r\n")], Reason.MALFORMED),
        ([Peer.read_head, send(b"HTTP/1.1 200 OK\r\n\r\n\x16\x03")], Reason.MALFORMED),
        (
            [Peer.read_head, send(OPENED + response_bytes(429, b""))],
            Reason.MALFORMED,
        ),
        ([Peer.read_head, send(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999)], Reason.MALFORMED),
        ([Peer.read_head, hang], Reason.TIMED_OUT),
        (
            [Peer.read_head, drip_a_reply],
            Reason.TIMED_OUT,
        ),
    ],
)
def test_no_tunnel(
    transport: Transport,
    by_proxy: Callable[[str], None],
    script: list[Step],
    reason: Reason,
) -> None:
    """Whatever a proxy does instead of making a tunnel, the request is unsent."""
    with ScriptedServer(script) as proxy:
        by_proxy(f"http://user:{PASSWORD}@{proxy.address}")
        failure = failure_of(transport, post("https://api.example/v1"), timeout=0.3)
        assert (failure.phase, failure.sent, failure.reason) == (Phase.PROXY, False, reason)
        assert proxy.posts == 0
        assert KEY.encode() not in proxy.received
        assert failure.detail.startswith(f"the proxy {proxy.address}")
    assert "p4ss" not in repr(failure)


def test_dead_proxy(transport: Transport, by_proxy: Callable[[str], None]) -> None:
    """If the proxy cannot be reached, the request is unsent, and the proxy is named."""
    port = closed_port()
    by_proxy(f"http://user:{PASSWORD}@127.0.0.1:{port}")
    failure = failure_of(transport, post("https://api.example/v1"))
    assert (failure.phase, failure.sent, failure.reason) == (Phase.CONNECT, False, Reason.REFUSED)
    assert failure.detail.startswith(f"the proxy 127.0.0.1:{port}: ")
    assert "p4ss" not in repr(failure)


def test_certificate_behind_proxy(
    make_transport: MakeTransport, server_tls: ssl.SSLContext, by_proxy: Callable[[str], None]
) -> None:
    """The certificate of the host behind the tunnel is checked as usual."""
    with ScriptedServer(serve(), tls=server_tls) as server, ScriptedServer(connect_proxy) as proxy:
        by_proxy(f"http://{proxy.address}")
        failure = failure_of(make_transport(), post(server.url))
        assert (failure.phase, failure.sent, failure.reason) == (
            Phase.TLS,
            False,
            Reason.CERTIFICATE,
        )


def test_plain_http_with_key(
    make_transport: MakeTransport, by_proxy: Callable[[str], None]
) -> None:
    """Over plain http a proxy does not see the key, unless that was allowed."""
    with ScriptedServer(serve()) as proxy:
        by_proxy(f"http://user:{PASSWORD}@{proxy.address}")
        failure = failure_of(make_transport(), post("http://api.example/v1"))
        assert (failure.phase, failure.sent) == (Phase.PROXY, False)
        assert failure.reason is Reason.REFUSED_HERE
        bypass, allow = failure.remedies
        assert bypass == Remedy(kind=RemedyKind.BYPASS_PROXY, variable="NO_PROXY")
        assert (allow.kind, allow.option) == (RemedyKind.ALLOW, "allow_plain_http_proxy")
        assert allow.owner.endswith("Transport")
        assert proxy.peers == []

        allowed = make_transport(allow_plain_http_proxy=True)
        assert call(allowed, post("http://api.example/v1?a=%2f")).status == 200
        sent = proxy.received
    assert sent.startswith(b"POST http://api.example/v1?a=%2f HTTP/1.1\r\n")
    assert b"\r\nHost: api.example\r\n" in sent
    assert b"\r\nProxy-Authorization: Basic " in sent
    assert AUTHORIZATION.encode() in sent


def test_plain_http_without_key(transport: Transport, by_proxy: Callable[[str], None]) -> None:
    """Over plain http a request without a key goes through the proxy."""
    with ScriptedServer(serve()) as proxy:
        by_proxy(f"http://{proxy.address}")
        assert exchange(transport, get("http://cdn.example:8080"), timeout=5).status == 200
        assert proxy.received.startswith(b"GET http://cdn.example:8080/ HTTP/1.1\r\n")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "https://127.0.0.1:1", "http://:x"])
def test_unusable_proxy(transport: Transport, by_proxy: Callable[[str], None], proxy: str) -> None:
    """A proxy that cannot be used is an error: it is not silently bypassed."""
    by_proxy(proxy)
    failure = failure_of(transport, post("https://api.example/v1"))
    assert (failure.phase, failure.sent, failure.reason) == (
        Phase.PROXY,
        False,
        Reason.REFUSED_HERE,
    )


def test_private_hosts_behind_a_proxy(
    transport: Transport, by_proxy: Callable[[str], None]
) -> None:
    """If a proxy makes the connection, its own private address does not matter."""
    with ScriptedServer(serve()) as proxy:
        by_proxy(f"http://{proxy.address}")
        request = get("http://cdn.example/x", public_host_only=True)
        assert exchange(transport, request, timeout=5).status == 200


@pytest.mark.parametrize(
    ("scheme", "host", "expected"),
    [
        ("https", "api.example", "http://secure:1"),
        ("http", "api.example", "http://plain:2"),
        ("https", "inner.example", None),
        ("https", "deep.inner.example", None),
        ("https", "notinner.example", "http://secure:1"),
        ("https", "ported.example", None),
        ("https", "10.1.2.3", None),
        ("https", "11.1.2.3", "http://secure:1"),
        ("https", "[2001:db8::1]", None),
        ("https", "localhost", None),
        ("https", "app.localhost", None),
        ("https", "127.8.9.1", None),
        ("https", "[::1]", None),
    ],
)
def test_environment(
    monkeypatch: pytest.MonkeyPatch, scheme: str, host: str, expected: str | None
) -> None:
    """The proxy is that of the scheme, except for what NO_PROXY lists, and loopback."""
    monkeypatch.setenv("HTTPS_PROXY", "http://secure:1")
    monkeypatch.setenv("http_proxy", "plain:2")
    monkeypatch.setenv("NO_PROXY", ".inner.example, ported.example:443 ,10.0.0.0/8,2001:db8::/32,")
    assert proxy_for(scheme, host, 443) == expected


def test_no_proxy_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A star excludes every host, and an empty environment has no proxy."""
    assert proxy_for("https", "api.example", 443) is None
    monkeypatch.setenv("ALL_PROXY", "http://any:3")
    assert proxy_for("https", "api.example", 443) == "http://any:3"
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxy_for("https", "api.example", 443) is None


def test_read_once(
    transport: Transport, by_proxy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is asked once for each host."""
    with ScriptedServer(serve()) as proxy:
        by_proxy(f"http://{proxy.address}")
        assert exchange(transport, get("http://cdn.example/a"), timeout=5).status == 200
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
        assert exchange(transport, get("http://cdn.example/b"), timeout=5).status == 200


def test_read_request_is_not_spoiled(transport: Transport, by_proxy: Callable[[str], None]) -> None:
    """A fault behind a forwarding proxy is reported like any other, as sent."""
    with ScriptedServer([read_request]) as proxy:
        by_proxy(f"http://{proxy.address}")
        request = get("http://cdn.example/a")
        with pytest.raises(TransportError, match="connection closed") as caught:
            exchange(transport, request, timeout=5)
        assert caught.value.failure.sent
