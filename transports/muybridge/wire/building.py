"""Building blocks for your own transport, for the parts that are easy to get wrong.

An `Exchange` is the record of one exchange, `Reply` the context that a blocking transport returns,
and `fields_of` returns the header fields to send. `docs/write-a-transport.md` shows them in use.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import NoReturn, Self

import attrs

from muybridge.wire._addressing import (
    Origin,
    check_addresses,
    check_fields,
    fields_to_send,
    refuse_to_show_key,
    split_url,
)
from muybridge.wire._content_coding import Inflation
from muybridge.wire._environment import checked_proxy
from muybridge.wire._framing import Framing, listed
from muybridge.wire._network_errors import network_error
from muybridge.wire.exchange import (
    PIECE,
    Exchange,
    Fault,
    reason_of,
    refuse_early_bytes,
    unread_bytes,
)
from muybridge.wire.http1.second_response import refuse_second_response
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, TransportFailure
from muybridge_protocol.http import Reason as Reason  # noqa: PLC0414  # re-exported

__all__ = [
    "PIECE",
    "Exchange",
    "Fault",
    "Opened",
    "Origin",
    "Reason",
    "Reply",
    "addresses_of",
    "checked_proxy",
    "fields_of",
    "locate",
    "reason_of",
    "refuse_early_bytes",
    "refuse_to_show_key",
]


@attrs.frozen(eq=False, repr=False)
class Opened:
    """A response whose head has arrived.

    Args:
        head: Its status and headers.
        pieces: The body as it was transferred: without chunk framing, with its content coding.
        close: Ends the exchange. The connection returns to its pool if the whole body was read,
            and is closed otherwise.
        delimited: Whether *pieces* raises if the body is not as long as its headers say. Otherwise
            `Reply` checks this.
    """

    head: HttpHead
    pieces: Iterator[bytes]
    close: Callable[[], object]
    delimited: bool = False


class Body:
    """The body of a response: what it must be, and what it is without its content coding.

    Args:
        exchange: The record of the exchange. Making a `Body` records that the head has arrived.
        head: The head of the response.
        delimited: Whether the body is known to be as long as its headers say.

    Raises:
        Fault: The headers leave in doubt where the body ends, or the response to a paid request
            has a coding that cannot be decoded.
    """

    def __init__(self, exchange: Exchange, head: HttpHead, *, delimited: bool = False) -> None:
        self._exchange = exchange
        self._missing: int | None = None
        self._is_chunked = False
        self._size = 0
        request, exchange.status = exchange.request, head.status
        self._inflation = Inflation.of(head, paid=request.paid)
        if not delimited:
            framing = Framing.of(request.method, head.status, listed(head))
            self._missing = None if framing.bodiless else framing.length
            self._is_chunked = framing.chunked
        exchange.phase, exchange.arrived = Phase.BODY, b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Decode *piece*, the next of the body; yield at most `PIECE` bytes at a time.

        Raises:
            Fault: The body violates its coding, or is larger than the request allows.
        """
        if not piece:
            return
        if self._missing is not None:
            self._missing -= len(piece)
        for part in (piece,) if self._inflation is None else self._inflation.feed(piece):
            self._exchange.keep(part)
            self._size += len(part)
            limit = self._exchange.request.body_limit
            if limit is not None and self._size > limit:
                raise Fault(Reason.TOO_LARGE, f"the body is larger than {limit} bytes")
            yield part

    def end(self) -> None:
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


def decoded(exchange: Exchange, opened: Opened) -> Iterator[bytes]:
    """Record that the head has arrived, and return the decoded body.

    Raises:
        Fault: As `Body`; and, while reading, the body ended early or cannot be decoded.
    """
    body = Body(exchange, opened.head, delimited=opened.delimited)

    def pieces() -> Iterator[bytes]:
        for piece in opened.pieces:
            yield from body.feed(piece)
        body.end()

    return pieces()


class Reply:
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
        self._send = send
        self._exchange = exchange
        self._authorization = authorization
        self._opened: Opened | None = None
        self._body: Iterator[bytes] = iter(())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._exchange.request!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a connection and cannot be pickled")

    def __enter__(self) -> Self:
        failure = self._enter()
        # Raised here, so that the traceback holds no frame that knows the key.
        if failure is not None:
            raise TransportError(failure)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been handed to the network."""
        return self._exchange.sent

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._head

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body as it arrives, at most 64 KiB at a time.

        Raises:
            TransportError: The body ended early, was malformed, stalled, missed the deadline of
                the exchange, or exceeded the request's limit.
        """
        while True:
            piece = self._next(sys.exception())
            if isinstance(piece, TransportFailure):
                raise TransportError(piece)
            if not piece:
                return
            yield piece

    def _enter(self) -> TransportFailure | None:
        exchange, authorization, self._authorization = self._exchange, self._authorization, None
        handled = sys.exception()
        try:
            exchange.remaining()
            opened = self._opened = self._send(exchange, authorization)
            self._head = opened.head
            self._body = decoded(exchange, opened)
        except BaseException as error:  # noqa: BLE001  # whatever is not a network error is raised again
            return self._failure(error, handled)
        return None

    def _next(self, handled: BaseException | None) -> bytes | TransportFailure:
        """Return the next piece, empty at the end of the body, or what went wrong."""
        exchange = self._exchange
        try:
            piece = next(self._body, b"")
            if not piece and self._opened is not None:
                refuse_second_response(exchange, lambda: unread_bytes(exchange.sock))
        except BaseException as error:  # noqa: BLE001  # whatever is not a network error is raised again
            return self._failure(error, handled)
        if not piece:
            self._close()
            self._body = iter(())
        return piece

    def _failure(self, error: BaseException, handled: BaseException | None) -> TransportFailure:
        """Return what *error* means for the exchange; raise it if it is not a network error."""
        self._close()
        return self._exchange.failure(
            network_error(error, handled, any_library=self._exchange.any_library)
        )

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self._body = iter(_left, b"")
            opened.close()


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
    if proxy:
        exchange.proxy = f"{host}:{port}"
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in entries]
    if not proxy:
        check_addresses(exchange.request, addresses)
    exchange.phase = Phase.CONNECT
    return addresses


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


def _left() -> bytes:
    raise Fault(Reason.CLOSED, "the exchange was left before its end")
