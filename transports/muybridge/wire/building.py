"""Building blocks for your own transport, for the parts that are easy to get wrong.

An `Exchange` is the record of one exchange, `Response` or `AsyncResponse` the context that a
transport returns, and `fields_of` returns the header fields to send. `docs/write-a-transport.md`
shows them in use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from types import AsyncGeneratorType
from typing import TypeVar, cast

import attrs

from muybridge.wire._addressing import (
    Origin,
    check_fields,
    fields_to_send,
    refuse_to_show_key,
    split_url,
)
from muybridge.wire._content_coding import Inflation
from muybridge.wire._environment import checked_proxy
from muybridge.wire._framing import Framing, listed
from muybridge.wire.exchange import (
    PIECE,
    TIME_IS_UP,
    Exchange,
    Fault,
    reason_of,
    refuse_early_bytes,
    unread_bytes,
)
from muybridge.wire.http1.blocking import BlockingLoop
from muybridge.wire.http1.byte_streams import EventLoop, LibraryLoop
from muybridge.wire.http1.connections import checked_addresses
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge.wire.http1.second_response import refuse_second_response
from muybridge.wire.responses import AsyncFace, BaseResponse, BlockingFace, left_early, run
from muybridge_protocol.http import HttpHead, HttpRequest
from muybridge_protocol.http import Reason as Reason  # noqa: PLC0414  # re-exported

__all__ = [
    "PIECE",
    "AsyncResponse",
    "Exchange",
    "Fault",
    "Opened",
    "Origin",
    "Reason",
    "Response",
    "ResponseReader",
    "addresses_of",
    "checked_proxy",
    "fields_of",
    "locate",
    "look_up",
    "reason_of",
    "refuse_early_bytes",
    "refuse_to_show_key",
]

T = TypeVar("T")


@attrs.frozen(eq=False, repr=False)
class Opened:
    """A response whose head has arrived.

    Args:
        head: Its status and headers.
        pieces: The body as it was transferred: without chunk framing, with its content coding.
            For an `AsyncResponse`, it is an async iterator. If that is a generator, it must not
            wait for anything when it is closed.
        close: Ends the exchange at once, and waits for nothing. The connection returns to its pool
            if the whole body was read, and is closed otherwise.
        delimited: Whether *pieces* raises if the body is not as long as its headers say. Otherwise
            `Response` and `AsyncResponse` check this.
    """

    head: HttpHead
    pieces: Iterator[bytes] | AsyncIterator[bytes]
    close: Callable[[], object]
    delimited: bool = False


class Body:
    """The body of a response: what it must be, and what it is without its content coding.

    Args:
        exchange: The record of the exchange. Making a `Body` records that the head has arrived.
        opened: The response.

    Raises:
        Fault: The headers leave in doubt where the body ends, or the response to a paid request
            has a coding that cannot be decoded.
    """

    def __init__(self, exchange: Exchange, opened: Opened) -> None:
        self.opened: Opened = opened
        self._exchange = exchange
        self._missing: int | None = None
        self._is_chunked = False
        self._decoded: Iterator[bytes] = iter(())
        request, head, exchange.status = exchange.request, opened.head, opened.head.status
        items = listed(head)
        self._inflation = Inflation.of(items["content-encoding"], paid=request.paid)
        if not opened.delimited:
            framing = Framing.of(request.method, head.status, items)
            self._missing = None if framing.bodiless else framing.length
            self._is_chunked = framing.chunked
        exchange.take_head(head.status)

    async def read(self, take: Callable[[], Awaitable[bytes | None]]) -> bytes:
        """Return the next piece of the decoded body, or none at its end.

        Args:
            take: Returns the next piece as it was transferred, or None at the end.

        Raises:
            Fault: The body violates its coding, ended early, or is larger than the request allows.
        """
        while True:
            for part in self._decoded:
                return self._exchange.pass_on(part)
            piece = await take()
            if piece is None:
                self._end()
                return b""
            if self._missing is not None:
                self._missing -= len(piece)
            if piece:
                inflation = self._inflation
                self._decoded = iter((piece,)) if inflation is None else inflation.feed(piece)

    def _end(self) -> None:
        """Record the end of the body.

        Raises:
            Fault: It is incomplete: some libraries accept any end as the end.
        """
        if self._missing is not None and self._missing > 0:
            raise Fault(Reason.TRUNCATED, f"the body ended {self._missing} bytes early")
        if self._is_chunked and self._exchange.ended:  # nobody needs it to find the last chunk
            raise Fault(Reason.TRUNCATED, "the chunked body ended early")
        if self._inflation is not None:
            self._inflation.end()


class _LibraryResponse(BaseResponse):
    """An exchange that the HTTP library of a transport performs.

    Args:
        exchange: The record of the exchange.
        authorization: The value of the `Authorization` header, or None.
    """

    def __init__(self, exchange: Exchange, authorization: str | None) -> None:
        self._request = exchange.request
        self._exchange = None
        self._record = exchange
        self._authorization = authorization
        self._opened: Opened | None = None
        self._body: Body | None = None
        self._ended = False

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._head

    def _new_record(self) -> Exchange:
        return self._record

    async def _ask(self, exchange: Exchange) -> None:
        # Removed, so that nothing keeps the key once it has been sent.
        authorization, self._authorization = self._authorization, None
        exchange.remaining()
        opened = self._opened = await self._open(exchange, authorization)
        self._head, self._body = opened.head, Body(exchange, opened)

    async def _read(self, exchange: Exchange) -> bytes:
        if self._ended:
            return b""
        body = self._body
        if body is None:
            raise left_early()
        piece = await body.read(lambda: self._take(body.opened))
        if not piece:
            refuse_second_response(exchange, lambda: unread_bytes(exchange.sock))
            self._ended = True
            self._close()
        return piece

    def _close(self) -> None:
        opened, self._opened, self._body = self._opened, None, None
        if opened is not None:
            opened.close()

    @abstractmethod
    async def _open(self, exchange: Exchange, authorization: str | None) -> Opened:
        """Send the request, and return the response."""

    @abstractmethod
    async def _take(self, opened: Opened) -> bytes | None:
        """Return the next piece of the body as it was transferred, or None at its end."""


class Response(BlockingFace, _LibraryResponse):
    """The context that a blocking transport's `stream` returns.

    Entering it sends the request; leaving it ends the exchange. It turns whatever a library raises
    into a `TransportError`. Exceptions of signal handlers, and defects such as a `TypeError`,
    propagate unchanged. It notices a body that is shorter than its length, decodes the content
    coding in small pieces, holds the body to `HttpRequest.body_limit`, and keeps no key.

    Args:
        send: Sends the exchange's request, with the given value of `Authorization` if there is
            one, and returns the response. It may raise whatever the HTTP library raises.
        exchange: The record of the exchange.
        authorization: The value of the `Authorization` header, or None.
    """

    def __init__(
        self,
        send: Callable[[Exchange, str | None], Opened],
        exchange: Exchange,
        authorization: str | None,
    ) -> None:
        super().__init__(exchange, authorization)
        self._send = send

    async def _open(self, exchange: Exchange, authorization: str | None) -> Opened:
        return self._send(exchange, authorization)

    async def _take(self, opened: Opened) -> bytes | None:
        return next(cast("Iterator[bytes]", opened.pieces), None)


class AsyncResponse(AsyncFace, _LibraryResponse):
    """The async context that an async transport's `stream` returns; see `Response`.

    It also keeps the time: the exchange ends at its deadline, and no gap between pieces of the body
    is longer than `HttpRequest.idle_timeout`. Until the head arrives, only the library knows the
    gaps. If the request is `shielded`, a cancellation waits for the end of the response, once any
    of the request is sent; before that, it ends the exchange.

    Args:
        send: As that of `Response`, but a coroutine function.
        exchange: The record of the exchange.
        authorization: The value of the `Authorization` header, or None.
        loop: The event loop that the library runs on: `AsyncioLoop` or `TrioLoop`.
    """

    def __init__(
        self,
        send: Callable[[Exchange, str | None], Awaitable[Opened]],
        exchange: Exchange,
        authorization: str | None,
        loop: LibraryLoop,
    ) -> None:
        super().__init__(exchange, authorization)
        self._send = send
        self._loop = loop

    async def _open(self, exchange: Exchange, authorization: str | None) -> Opened:
        seconds = exchange.remaining()
        return await self._in_time(seconds, TIME_IS_UP, lambda: self._send(exchange, authorization))

    async def _take(self, opened: Opened) -> bytes | None:
        pieces, seconds = cast("AsyncIterator[bytes]", opened.pieces), self._record.awaiting()
        return await self._in_time(seconds, "nothing arrived in time", lambda: anext(pieces, None))

    async def _in_time(self, seconds: float, late: str, work: Callable[[], Awaitable[T]]) -> T:
        async def limited() -> T:  # so that *work* begins no sooner than what awaits it
            return await self._loop.within(seconds, late, work())

        if not self._request.shielded:
            return await limited()
        return await self._loop.unbroken(limited(), self._record)

    def _close(self) -> None:
        pieces = None if self._opened is None else self._opened.pieces
        super()._close()
        # Trio warns about generators that are left to the garbage collector.
        if isinstance(pieces, AsyncGeneratorType) and not pieces.ag_running:
            closing = pieces.aclose()
            with suppress(StopIteration):
                closing.send(None)
            closing.close()  # in case that it waits for something all the same


def locate(request: HttpRequest) -> tuple[Origin, str]:
    """Return the origin of *request*, and its target exactly as the URL has it.

    Raises:
        Fault: Its URL is not an absolute http or https URL in plain ASCII.
    """
    place, target = split_url(request.url)
    return Origin.read(place), target


def addresses_of(exchange: Exchange, host: str, port: int, *, proxy: bool = False) -> list[str]:
    """Look up *host*, and return the addresses to try in turn.

    If the request is for public hosts only, all of them are public. Connect to these addresses
    and do not look the name up again, because the answer may change.

    Args:
        exchange: The record of the exchange.
        host: The name or address to look up.
        port: The port.
        proxy: Whether *host* is a proxy, which may be anywhere.

    Raises:
        Fault: An address belongs to a cloud's metadata service, or is not public although the
            request requires it.
        OSError: The name does not resolve.
    """
    return run(look_up(BlockingLoop(), exchange, host, port, proxy=proxy))


async def look_up(
    loop: EventLoop,
    exchange: Exchange,
    host: str,
    port: int,
    *,
    proxy: bool = False,
    most: float | None = None,
) -> list[str]:
    """Look up *host* without blocking, and return the addresses to try; see `addresses_of`.

    Args:
        loop: The event loop: `AsyncioLoop` or `TrioLoop`.
        exchange: The record of the exchange. The lookup ends at its deadline.
        host: The name or address to look up.
        port: The port.
        proxy: Whether *host* is a proxy, which may be anywhere.
        most: The most seconds that it may take, or None for the deadline alone.

    Raises:
        Fault: As `addresses_of`.
        OSError: The name does not resolve, or not in time.
    """
    if proxy:
        exchange.proxy = f"{host}:{port}"
    addresses, _ = await checked_addresses(loop, exchange, (host, port), most, proxied=proxy)
    return [str(address[0]) for *_, address in addresses]


def fields_of(
    request: HttpRequest, origin: Origin, authorization: str | None
) -> list[tuple[str, bytes]]:
    """Return the header fields to send for *request*, `Authorization` last.

    Args:
        request: The request.
        origin: Where it is sent.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        Fault: A name or value has characters that could split the request.
    """
    check_fields(request.headers, authorization)
    fields = fields_to_send(request, origin)
    if authorization is not None:
        fields.append(("Authorization", authorization))
    return [(name, value.encode("latin-1")) for name, value in fields]
