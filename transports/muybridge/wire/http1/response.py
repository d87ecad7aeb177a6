"""One exchange of the async transport: a request on its way, and its response.

It goes through these steps, each of which can fail:

    find the route -> take or open a connection -> checkpoint -> send -> read the head -> read on

- Everything that can be refused without a connection is refused first: URL, headers, proxy.
- A paid request never takes a connection that was used before (`Route.take`). On a new one, the
  check for early bytes comes last, right before the first byte: the later, the more it sees.
- A shielded exchange can be cancelled up to the checkpoint before its first byte. From then on
  every wait is shielded, and nothing can be cancelled between two waits. So the response of a paid
  request is read to its end or its timeout. Without the checkpoint, a task that was cancelled long
  ago would still begin to send.
- One limit bounds sending and the head together, not each read: limits cost time under trio.
  The pieces of the body have one each, because the caller may pause between them.
- A connection is kept only after a response that ended where its head says, and with nothing
  behind it. Any doubt closes it: the next request would read what is left.

`responses` has what it shares with the exchanges of other libraries: how a failure is returned, so
that no frame that knows the key stays in a traceback.
"""

from __future__ import annotations

import ssl
from collections.abc import Coroutine, Iterable
from typing import Any

import attrs

from muybridge.wire._addressing import fields_to_send, request_head
from muybridge.wire.exchange import PIECE, TIME_IS_UP, Exchange, Fault
from muybridge.wire.http1.byte_streams import EventLoop
from muybridge.wire.http1.connections import Connection, connect
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge.wire.http1.second_response import refuse_second_response
from muybridge.wire.http1.tls import TLSStream
from muybridge.wire.network import Network, Route
from muybridge.wire.responses import AsyncFace, left_early
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason


@attrs.define(eq=False, repr=False)
class Response(AsyncFace):
    """What `stream` returns. Entering it sends the request, leaving it ends the exchange.

    Args:
        loop: The event loop.
        network: The routes and their idle connections.
        connect_timeout: Seconds for the name lookup, and to try each address.
        request: What to send.
        timeout: Seconds for the whole exchange.
        authorization: The value of the `Authorization` header, or None.
    """

    _loop: EventLoop
    _network: Network[Connection]
    _connect_timeout: float
    _request: HttpRequest
    _timeout: float
    _authorization: str | None
    _exchange: Exchange | None = attrs.field(default=None, init=False)
    _reader: ResponseReader = attrs.field(init=False)
    _route: Route[Connection] = attrs.field(init=False)
    _connection: Connection | None = attrs.field(default=None, init=False)
    _is_spare: bool = attrs.field(default=False, init=False)

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        if self._exchange is None or self._reader.head is None:
            raise RuntimeError("the exchange has not been entered")
        return self._reader.head

    def _ask(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Send the request, and read the head of the response."""
        self._reader = ResponseReader(self._request.method, paid=self._request.paid)
        self._route, target = self._network.find(self._request, self._authorization)
        return self._send_to(target, exchange)

    async def _send_to(self, target: str, exchange: Exchange) -> None:
        """Connect, send the request, and read the head of the response."""
        await self._connect(exchange)
        is_shielded = self._request.shielded
        if is_shielded:
            # The last moment at which a cancellation costs nothing.
            await self._loop.checkpoint()
        seconds, conversing = exchange.remaining(), self._converse(exchange, target)
        await self._loop.within(seconds, TIME_IS_UP, conversing, shielded=is_shielded)

    async def _read(self, exchange: Exchange) -> bytes:
        """Return the next piece of the decoded body, or none at its end."""
        reader = self._reader
        if self._connection is None and not reader.complete:
            raise left_early()
        while not (piece := reader.read()) and not reader.complete:
            reader.feed(await self._receive_in_time(exchange))
        if piece:
            return exchange.pass_on(piece)
        if self._connection is not None:
            self._finish(exchange)
        return b""

    def _new_record(self) -> Exchange:
        return Exchange(self._request, self._timeout, clock=self._loop.now, any_library=False)

    async def _connect(self, exchange: Exchange) -> None:
        route = self._route
        self._connection = route.take(self._request)
        if self._connection is None:
            # One idle connection is enough for the polls between creates.
            self._is_spare = route.has_idle
            is_tls = route.origin.scheme == "https"
            self._connection = await connect(
                self._loop,
                route,
                exchange,
                connect_timeout=self._connect_timeout,
                ssl_context=self._network.ssl_context if is_tls else None,
            )

    async def _converse(self, exchange: Exchange, target: str) -> None:
        """Send the request and read the head of the response."""
        await self._send(exchange, target)
        exchange.phase = Phase.HEAD
        # The caller limits the time already, unless the gaps between bytes are limited, too.
        within = self._request.idle_timeout is None
        while (head := self._reader.head) is None:
            receiving = self._receive(exchange) if within else self._receive_in_time(exchange)
            self._reader.feed(await receiving)
        exchange.take_head(head.status)

    async def _send(self, exchange: Exchange, target: str) -> None:
        connection = self._in_use()
        fields = (*self._fields(), *self._route.proxy_fields)
        head = request_head(self._request.method, target, fields)
        rest = memoryview(head + (self._request.body or b""))
        exchange.begin()
        try:
            if not connection.idle_since:  # `Route.take` has just checked an idle one
                connection.refuse_early_bytes()
            while rest:
                exchange.sent = True
                count = await connection.stream.send(rest[:PIECE])
                exchange.bytes_sent += count
                rest = rest[count:]
        except OSError as error:
            stream = connection.stream
            exchange.send_failed(error, stream.engine if isinstance(stream, TLSStream) else stream)

    def _fields(self) -> Iterable[tuple[str, str]]:
        """Return the header fields to send."""
        # Removed, so that nothing keeps the key once it has been sent.
        authorization, self._authorization = self._authorization, None
        fields = fields_to_send(self._request, self._route.origin)
        if authorization is not None:
            fields.append(("Authorization", authorization))
        return fields

    async def _receive(self, exchange: Exchange) -> bytes:
        try:
            data = await self._in_use().stream.receive(self._reader.wanted)
        except ssl.SSLEOFError:
            if self._reader.ends_with_connection:
                raise Fault(Reason.TRUNCATED, "TLS ended without a closing alert") from None
            data = b""  # the reader knows whether this is the end of the response
        return exchange.receive(data)

    async def _receive_in_time(self, exchange: Exchange) -> bytes:
        seconds, receiving = exchange.awaiting(), self._receive(exchange)
        late, shielded = "nothing arrived in time", self._request.shielded
        return await self._loop.within(seconds, late, receiving, shielded=shielded)

    def _in_use(self) -> Connection:
        if self._connection is None:
            raise left_early()
        return self._connection

    def _finish(self, exchange: Exchange) -> None:
        """Keep the connection if it can be used again."""
        reader = self._reader
        refuse_second_response(exchange, self._unread)
        # A server that answers before it has the whole request will not read the rest of it.
        is_clean = not (reader.is_followed or exchange.ended or exchange.send_error)
        if self._connection and reader.keeps_alive and is_clean and not self._is_spare:
            self._route.keep(self._connection)
            self._connection = None
        self._close()

    def _unread(self) -> bytes:
        try:
            return self._in_use().stream.receive_nowait(PIECE)
        except OSError:
            return b""

    def _close(self) -> None:
        self._authorization = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
