from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest
import trustme

from muybridge.testing.conformance.blocking import BlockingTransport
from muybridge.testing.conformance.event_loops import AsyncioThread, EventLoopThread, TrioThread
from muybridge.wire.asyncio_transport import AsyncioTransport
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge.wire.trio_transport import TrioTransport

from .certificates import client_context, server_context

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


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


class MakeTransport(Protocol):
    """Makes a transport of the kind under test, given its settings."""

    def __call__(self, **settings: Any) -> Transport: ...


@pytest.fixture(scope="session")
def event_loops() -> Iterator[dict[str, EventLoopThread]]:
    """A thread with each event loop."""
    threads: dict[str, EventLoopThread] = {"trio": TrioThread(), "asyncio": AsyncioThread()}
    with ExitStack() as ending:
        for thread in threads.values():
            ending.enter_context(thread)
        yield threads


ASYNC_TRANSPORTS = {"trio": TrioTransport, "asyncio": AsyncioTransport}


@pytest.fixture(params=["requests", *ASYNC_TRANSPORTS])
def make_transport(
    request: pytest.FixtureRequest, event_loops: dict[str, EventLoopThread]
) -> Iterator[MakeTransport]:
    """What makes transports of each kind in turn; they are closed at the end."""
    with ExitStack() as closing:

        def make(**settings: Any) -> Transport:
            made: Transport = (
                RequestsTransport(**settings)
                if request.param == "requests"
                else BlockingTransport(
                    event_loops[request.param], ASYNC_TRANSPORTS[request.param](**settings)
                )
            )
            closing.callback(made.close)
            return made

        yield make


@pytest.fixture
def transport(make_transport: MakeTransport, client_tls: ssl.SSLContext) -> Transport:
    """A transport of each kind in turn."""
    return make_transport(ssl_context=client_tls)


@pytest.fixture
def requests_transport(client_tls: ssl.SSLContext) -> Iterator[RequestsTransport]:
    made = RequestsTransport(ssl_context=client_tls)
    yield made
    made.close()


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, server_tls: ssl.SSLContext) -> ssl.SSLContext | None:
    """Nothing for a plain server, then the context of one that speaks TLS."""
    return server_tls if request.param == "https" else None
