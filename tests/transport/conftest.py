from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
import trustme

from muybridge.requests_transport import RequestsTransport

from .certificates import client_context, server_context

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def server_tls(authority: trustme.CA) -> ssl.SSLContext:
    """What a server at 127.0.0.1 or localhost makes its handshakes with."""
    return server_context(authority, "127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    """A context that trusts the tests' own authority."""
    return client_context(authority)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXY_VARIABLES, *map(str.upper, PROXY_VARIABLES), *CA_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def transport(client_tls: ssl.SSLContext) -> Iterator[RequestsTransport]:
    made = RequestsTransport(ssl_context=client_tls)
    yield made
    made.close()


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, server_tls: ssl.SSLContext) -> ssl.SSLContext | None:
    """Nothing for a plain server, then the context of one that speaks TLS."""
    return server_tls if request.param == "https" else None
