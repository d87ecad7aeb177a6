"""An async transport on aiohttp, made of the parts in `docs/write-a-transport.md`."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import aiohttp
from yarl import URL

from muybridge.wire import building
from muybridge.wire.asyncio_transport import AsyncioLoop
from muybridge_protocol.http import HttpHead, HttpRequest, Reason

_LOOP = AsyncioLoop()
_WRAPPERS = (aiohttp.ClientOSError, aiohttp.ClientPayloadError)
_UNWANTED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")

_exchange: ContextVar[building.Exchange] = ContextVar("_exchange")
"""The exchange of the current task. aiohttp copies it to the tasks that it makes."""


class AiohttpTransport:
    """An `AsyncTransport` on aiohttp, for asyncio's own event loop.

    Each request has its own connection.

    Args:
        ssl_context: The context for TLS connections.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self._ssl_context = ssl_context
        self._session: aiohttp.ClientSession | None = None

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> building.AsyncResponse:
        """Send *request* on entering the context, and return its response; see `AsyncTransport`."""
        exchange = building.Exchange(request, timeout, _WRAPPERS)
        return building.AsyncResponse(self._send, exchange, authorization, _LOOP)

    async def close(self) -> None:
        """Close the session. The next request opens another one."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self, exchange: building.Exchange, authorization: str | None
    ) -> building.Opened:
        request = exchange.request
        origin, target = building.locate(request)
        fields = building.fields_of(request, origin, authorization)
        host, port = origin.host.strip("[]"), origin.port
        failed: Exception = building.Fault(Reason.NAME_RESOLUTION, "the host has no address")
        for address in await building.look_up(_LOOP, exchange, host, port, most=10):
            place = f"[{address}]" if ":" in address else address
            token = _exchange.set(exchange)
            try:
                response = await self._opened_session().request(
                    request.method,
                    URL(f"{origin.scheme}://{place}:{port}{target}", encoded=True),
                    headers=[(name, value.decode("latin-1")) for name, value in fields],
                    skip_auto_headers=_UNWANTED,
                    data=_recorded(exchange, request.body) if request.body else None,
                    allow_redirects=False,
                    server_hostname=host,
                    timeout=aiohttp.ClientTimeout(sock_read=request.idle_timeout),
                )
            except aiohttp.ClientConnectorError as error:
                failed = error
                continue
            finally:
                _exchange.reset(token)
            pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.raw_headers]
            head = HttpHead(response.status, tuple(pairs))
            return building.Opened(head, _pieces(response), response.close)
        raise failed

    def _opened_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(ssl=self._ssl_context, force_close=True, limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


async def _recorded(exchange: building.Exchange, body: bytes) -> AsyncIterator[bytes]:
    """Yield *body*, and record how much of it aiohttp has taken."""
    for start in range(0, len(body), building.PIECE):
        piece = body[start : start + building.PIECE]
        yield piece
        exchange.bytes_sent += len(piece)
    exchange.awaiting()


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    content, connection = response.content, response.connection
    protocol = None if connection is None else connection.protocol
    try:
        async for piece in content.iter_any():
            yield piece
    except aiohttp.ClientPayloadError:
        # aiohttp would drop what it has received before the connection broke, and why it broke.
        yield content._read_nowait(-1)  # pyright: ignore[reportPrivateUsage]  # no other name
        lost = None if protocol is None else protocol.exception()
        if isinstance(lost, OSError):
            raise OSError(*lost.args) from None  # the operating system's own, by its number
        raise


class _Connector(aiohttp.TCPConnector):
    """Records when the request begins, and what arrives."""

    async def connect(  # type: ignore[override]
        self, req: Any, *more: Any, **named: Any
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, *more, **named)
        try:
            await self._begin(_exchange.get(), connection.protocol)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _begin(self, exchange: building.Exchange, protocol: Any) -> None:
        for _ in range(2):  # the event loop reads what has arrived
            await _LOOP.checkpoint()
        if protocol.should_close:
            raise building.Fault(Reason.MALFORMED, "bytes arrived before the request was sent")
        take, end = protocol.data_received, protocol.eof_received

        def data_received(data: bytes) -> None:
            take(exchange.receive(data) if data else data)  # aiohttp calls it with none

        def eof_received() -> bool | None:
            if protocol.is_connected():  # else aiohttp itself has closed it
                exchange.receive(b"")
            return end()

        protocol.data_received, protocol.eof_received = data_received, eof_received
        exchange.begin()
        exchange.sent = True
        if not exchange.request.body:
            exchange.awaiting()
