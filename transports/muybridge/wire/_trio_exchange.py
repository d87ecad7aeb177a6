"""One exchange: a request on its way by trio's streams, and what is known of it so far.

The first byte of a request counts as sent from the moment that its `send` begins, because a
cancelled one may have sent some, all or none.

httptools reads the reply's head, and finds the ends of chunks. A body of a known length, or one
that ends with its connection, is read past it, which would copy each piece: that made a download
twice as dear.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from types import TracebackType
from typing import Final, NoReturn, Self

import trio

from muybridge.interrupts import raised_by_handler
from muybridge.wire._network_errors import network_error
from muybridge.wire._reply_body import LARGE_PIECE, Framing, Inflation
from muybridge.wire._reply_reader import ReplyReader
from muybridge.wire._trio_connections import Connection, Route
from muybridge.wire._trio_network import Network
from muybridge.wire._trio_progress import ENDED_EARLY, Progress
from muybridge.wire._trio_request import with_secrets
from muybridge.wire.exchange import PIECE, Fault
from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)

_MOST_FIELDS = 100
_STATUS_LINE = b"HTTP/1."
_TIME_IS_UP: Final = "the time for the whole exchange is up"


class Exchange:
    """One exchange: sent on entering, ended on leaving. Iterating reads the body.

    Args:
        network: Where its connection comes from.
        request: What to send.
        timeout: Seconds that all of it may take.
        authorization: The value of the `Authorization` header, or None.
    """

    __slots__ = (
        "_authorization",
        "_begin",
        "_beginning",
        "_complete",
        "_connection",
        "_deadline",
        "_framing",
        "_head",
        "_inflated",
        "_inflation",
        "_is_spare",
        "_missing",
        "_network",
        "_progress",
        "_reply",
        "_request",
        "_route",
        "_size",
        "_timeout",
    )

    def __init__(
        self,
        network: Network,
        request: HttpRequest,
        timeout: float,
        authorization: str | None,
    ) -> None:
        self._network = network
        self._request = request
        self._timeout = timeout
        self._authorization = authorization
        self._progress = Progress()
        self._connection: Connection | None = None
        self._head: HttpHead | None = None
        self._framing: Framing | None = None
        self._beginning = b""
        self._missing: int | None = 0
        self._inflation: Inflation | None = None
        self._inflated: Iterator[bytes] | None = None
        self._size = 0
        self._complete = False
        self._is_spare = False

    async def whole(self) -> HttpResponse:
        """Do all of it, without the context, and return the whole reply.

        Most replies of the service have come whole with their head. To do without a context and
        an iteration then takes a tenth off an exchange.

        Raises:
            TransportError: There is no whole reply.
        """
        failure = await self._exchange()
        try:
            body = b"" if failure is not None else self._at_hand()
            if body is None:
                read = BytesIO()
                try:
                    async for piece in self:
                        read.write(piece)
                except TransportError as error:
                    if self._request.paid:
                        error.keep(read.getvalue())
                    raise
                body = read.getvalue()
        finally:
            self._close()
        if failure is not None:
            raise TransportError(failure)
        return HttpResponse(self.head.status, self.head.headers, body)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._request!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a connection and cannot be pickled")

    async def __aenter__(self) -> Self:
        failure = await self._exchange()
        if failure is not None:
            raise TransportError(failure)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been handed to the network."""
        return self._progress.sent

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        if self._head is None:
            raise RuntimeError("the exchange has not been entered")
        return self._head

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the decoded body, as it comes in.

        Raises:
            TransportError: On iterating: the body ended early, was malformed, stalled, took
                longer than the exchange may, or grew over the request's limit.
        """
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._next()
        if isinstance(piece, TransportFailure):
            raise TransportError(piece)
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _exchange(self) -> TransportFailure | None:
        """Send the request and read the reply's head, or return what went wrong.

        A failure is returned and not raised, so that no frame of a library stays in a traceback.
        """
        handled = sys.exception()
        try:
            request, route = self._request, self._prepare()
            self._connection = route.take(
                paid=request.paid, public_host_only=request.public_host_only
            )
            if self._connection is None:
                # One idle connection is enough for the polls between creates.
                self._is_spare = route.has_idle
                await self._connect(route)
            await self._converse()
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            return self._failure(error, handled)
        return None

    def _failure(self, error: BaseException, handled: BaseException | None) -> TransportFailure:
        """Return what *error* means for the exchange, or raise what is not the network's."""
        self._close()
        return self._progress.failure(network_error(error, handled))

    def _prepare(self) -> Route:
        self._deadline = trio.current_time() + self._timeout
        try:
            route, self._begin = self._network.prepare(self._request, self._authorization)
        except Fault as fault:
            if fault.reason is Reason.REFUSED_HERE:
                self._progress.phase = Phase.PROXY
            raise
        self._route = route
        if self._timeout <= 0:
            raise TimeoutError(_TIME_IS_UP)
        return route

    async def _connect(self, route: Route) -> None:
        with trio.CancelScope(deadline=self._deadline):
            self._connection = await self._network.connect(route, self._request, self._progress)
        if self._connection is None or trio.current_time() >= self._deadline:
            raise TimeoutError(_TIME_IS_UP)

    async def _converse(self) -> None:
        """Send the request and read the reply's head."""
        # The last moment at which a cancellation is welcome.
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.CancelScope(deadline=self._deadline, shield=self._request.shielded):
            await self._send()
            await self._read_head()
            return
        raise TimeoutError(_TIME_IS_UP)

    async def _send(self) -> None:
        connection, progress = self._in_use(), self._progress
        wire = self._wire()
        progress.phase = Phase.SEND
        rest = wire
        try:
            connection.refuse_early_bytes()
            while rest:
                progress.sent = True
                count = await connection.send(rest[:PIECE])
                progress.bytes_sent += count
                rest = rest[count:]
        except (OSError, trio.BrokenResourceError) as error:
            if raised_by_handler(error) or raised_by_handler(error.__cause__ or error):
                raise
            if not progress.bytes_sent and connection.took_nothing(error):
                progress.sent = False
            if not progress.sent:
                raise
            # A server that refuses early closes its end, and has said why.
            progress.send_error = error

    def _wire(self) -> memoryview:
        """Return the request as it goes out. A traceback shows no more of it than that."""
        # Taken away, so that nothing keeps the key once it is sent.
        authorization, self._authorization = self._authorization, None
        head = with_secrets(self._begin, self._route, authorization)
        return memoryview(head + (self._request.body or b""))

    async def _read_head(self) -> None:
        reply: ReplyReader | None = None
        progress = self._progress
        progress.phase = Phase.HEAD
        while reply is None or not reply.has_head:
            # This is in time already, unless the gaps between bytes are limited, too.
            within = self._request.idle_timeout is None
            data = await (self._receive() if within else self._receive_in_time())
            if not data:
                raise EOFError(ENDED_EARLY)
            if len(progress.arrived) < PARTIAL_LIMIT:
                progress.arrived = (progress.arrived + data)[:PARTIAL_LIMIT]
            begin = progress.arrived[: len(_STATUS_LINE)]
            if not _STATUS_LINE.startswith(begin):
                raise Fault(Reason.MALFORMED, "the reply is not one of HTTP/1")
            if reply is None:
                # No sooner: thousands may wait for their reply, and need none until then.
                reply = self._reply = ReplyReader()
            reply.feed(data)
        progress.status = reply.status
        self._take_head(reply.status, reply.fields)
        progress.phase = Phase.BODY
        progress.arrived = b""

    def _take_head(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        """Check that the head has not too many fields, and tells the body's end and its coding."""
        if len(fields) > _MOST_FIELDS:
            raise Fault(Reason.MALFORMED, "the reply has too many headers")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
        self._head = HttpHead(status, tuple(headers))
        codings: list[str] = []
        lengths: list[str] = []
        encodings: list[str] = []
        for name, value in headers:
            match name.lower():
                case "content-length":
                    lengths.append(value)
                case "transfer-encoding":
                    codings.append(value)
                case "content-encoding":
                    encodings.append(value)
                case _:
                    pass
        framing = self._framing = Framing.read(
            self._request.method, status, transfer_encoding=codings, content_length=lengths
        )
        if encodings:
            self._inflation = Inflation.read(encodings)
        if framing.chunked:
            return
        if framing.bodiless:
            # The parser takes what comes behind it for a body: it knows nothing of HEAD.
            behind = self._progress.arrived.rpartition(b"\r\n\r\n")[2]
            self._beginning = behind or self._reply.next_piece()
        else:
            self._beginning, self._missing = self._reply.next_piece(), framing.length
        self._reply.let_go()

    def _at_hand(self) -> bytes | None:
        """Return the body, if all of it has come with the head and may be taken as it is.

        The connection is then given back.
        """
        missing, limit = self._missing, self._request.body_limit
        if (
            self._inflation is not None
            or self._framing is None
            or self._framing.chunked
            or missing is None
            or missing > len(self._beginning)
            or (limit is not None and missing > limit)
        ):
            return None
        body, self._beginning = self._beginning[:missing], self._beginning[missing:]
        self._finish()
        return body

    async def _receive_in_time(self, size: int = PIECE) -> bytes:
        """Return what comes next, up to *size* bytes, or nothing at the other side's end."""
        deadline, idle = self._deadline, self._request.idle_timeout
        if idle is not None:
            deadline = min(deadline, trio.current_time() + idle)
        with trio.CancelScope(deadline=deadline, shield=self._request.shielded):
            return await self._receive(size)
        raise TimeoutError("nothing came in time")

    async def _receive(self, size: int = PIECE) -> bytes:
        try:
            data = await self._in_use().receive(size, one_of_many=self._route.is_busy)
        except trio.BrokenResourceError as error:
            if not isinstance(error.__cause__, ssl.SSLEOFError):
                raise
            if self._framing is not None and self._framing.ends_with_connection:
                raise Fault(Reason.TRUNCATED, "TLS ended without saying so") from None
            data = b""
        self._progress.ended = not data
        return data

    async def _next(self) -> bytes | TransportFailure:
        """Return the next piece, nothing at the body's end, or what went wrong."""
        if self._complete:
            return b""
        handled = sys.exception()
        try:
            piece = await self._decoded()
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            return self._failure(error, handled)
        self._size += len(piece)
        progress, limit = self._progress, self._request.body_limit
        if len(progress.arrived) < PARTIAL_LIMIT:
            progress.arrived += piece[: PARTIAL_LIMIT - len(progress.arrived)]
        if limit is not None and self._size > limit:
            self._close()
            return progress.failure(
                Fault(Reason.TOO_LARGE, f"the body is larger than {limit} bytes")
            )
        return piece

    async def _decoded(self) -> bytes:
        self._in_use()
        inflation = self._inflation
        while True:
            for piece in self._inflated or ():
                return piece
            piece = await self._transferred()
            if not piece:
                if inflation is not None:
                    inflation.end()
                self._finish()
                return b""
            if inflation is None:
                return piece
            self._inflated = inflation.feed(piece)

    async def _transferred(self) -> bytes:
        """Return the next piece of the body as it is transferred, or nothing at its end."""
        if self._framing is not None and self._framing.chunked:
            return await self._next_of_chunks()
        missing = self._missing
        if missing == 0:
            return b""
        piece = self._beginning if missing is None else self._beginning[:missing]
        self._beginning = self._beginning[len(piece) :]
        if not piece:
            size = PIECE if missing is None else min(missing, LARGE_PIECE)
            piece = await self._receive_in_time(size)
        if missing is not None:
            if not piece:
                raise Fault(Reason.TRUNCATED, ENDED_EARLY)
            self._missing = missing - len(piece)
        return piece

    async def _next_of_chunks(self) -> bytes:
        reply = self._reply
        while not (piece := reply.next_piece()) and not reply.has_ended:
            data = await self._receive_in_time()
            if not data:
                raise Fault(Reason.TRUNCATED, ENDED_EARLY)
            reply.feed(data)
        return piece

    def _in_use(self) -> Connection:
        if self._connection is None:
            raise Fault(Reason.CLOSED, "the exchange was left before its end")
        return self._connection

    def _finish(self) -> None:
        """Give the connection back, if it is in order."""
        connection, self._connection = self._in_use(), None
        self._complete = True
        reply, progress = self._reply, self._progress
        unasked = self._beginning or reply.is_followed
        is_clean = not (unasked or progress.ended or progress.send_error)
        if reply.keeps_alive and is_clean and not self._is_spare:
            self._route.keep(connection)
        else:
            self._route.drop(connection)

    def _close(self) -> None:
        self._authorization = None
        connection, self._connection = self._connection, None
        if connection is not None:
            self._route.drop(connection)
