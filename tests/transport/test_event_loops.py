"""The async transport knows no event loop: all of it but a small binding serves any of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from muybridge.wire.async_transport import exchange
from muybridge.wire.http1.byte_streams import Address
from muybridge.wire.http1.transport import Http1Transport
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import Phase, Reason
from test_purity import imported_by

from .calls import AUTHORIZATION, get, post
from .scripted_server import ScriptedServer, hang, read_request, serve

T = TypeVar("T")


class AsyncioStream:
    """A TCP connection under asyncio."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def send(self, data: memoryview) -> int:
        await asyncio.get_running_loop().sock_sendall(self._sock, data)
        return len(data)

    async def receive(self, size: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._sock, size)

    def receive_nowait(self, size: int) -> bytes:
        return self._sock.recv(size)

    def close(self) -> None:
        self._sock.close()


class AsyncioLoop:
    """As much of a binding to asyncio as these tests need; it shields nothing."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def checkpoint(self) -> None:
        await asyncio.sleep(0)

    async def run(
        self,
        work: Callable[[], Awaitable[T]],
        seconds: float,
        late: str,
        *,
        shielded: bool = False,
    ) -> T:
        del shielded
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work()
        except TimeoutError as error:
            raise TimeoutError(late) if limit.expired() else error from None

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Address) -> AsyncioStream:
        family, kind, protocol, _, place = address
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(0)
        try:
            await asyncio.get_running_loop().sock_connect(sock, place)
        except BaseException:
            sock.close()
            raise
        return AsyncioStream(sock)


class AsyncioTransport(Http1Transport):
    """The async transport on asyncio."""

    _loop = AsyncioLoop()


def test_no_event_loop_is_imported() -> None:
    """The transport brings no event loop with it; only its binding does."""
    found = imported_by("import muybridge.wire.http1.transport")
    assert "muybridge.wire.http1.response" in found
    assert found & {"trio", "asyncio", "anyio"} == set()
    assert "trio" in imported_by("import muybridge.wire.trio_transport")


def test_asyncio(tls: ssl.SSLContext | None, client_tls: ssl.SSLContext) -> None:
    """Polls share a connection and a paid request has its own, plain or over TLS."""

    async def calls() -> None:
        transport = AsyncioTransport(ssl_context=client_tls)
        for request in (get(server.url), get(server.url), post(server.url, b"x" * 300_000)):
            done = await exchange(transport, request, timeout=5, authorization=AUTHORIZATION)
            assert (done.status, done.body) == (200, b"whole")
        await transport.close()

    with ScriptedServer(serve(200, b"whole"), tls=tls) as server:
        asyncio.run(calls())
        assert len(server.peers) == 2
        assert server.posts == 1


def test_asyncio_in_time() -> None:
    """A response that does not come ends with the deadline, and says that the request was sent."""

    async def call() -> None:
        await exchange(AsyncioTransport(), post(server.url), timeout=0.2)

    with ScriptedServer([read_request, hang]) as server, pytest.raises(TransportError) as caught:
        asyncio.run(call())
    failure = caught.value.failure
    assert (failure.phase, failure.sent, failure.reason) == (Phase.HEAD, True, Reason.TIMED_OUT)
