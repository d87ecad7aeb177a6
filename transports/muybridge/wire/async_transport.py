"""What a transport is to a driver that does not block; the names are those of `transport`.

It knows of no asynchronous library. What is said there holds here: a transport moves bytes,
reports faults and decides nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from typing import Protocol

from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse


class AsyncStreamedReply(Protocol):
    """A reply whose head has arrived and whose body is still to be read."""

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the decoded body, which may be left at any time.

        Raises:
            TransportError: On iterating: the body ended early, was malformed, stalled, took
                longer than the exchange may, or grew over the request's limit.
        """
        ...


class AsyncTransport(Protocol):
    """Sends requests for many tasks at once.

    An exchange may be cancelled at any time and then closes its connection, with one exception:
    that of a request which says so (`HttpRequest.shielded`) is shielded, within its time-out, from
    its first byte on until its reply's last one, and there is no checkpoint between these, nor
    after them. So a cancellation that comes out of it means that nothing was sent.
    """

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractAsyncContextManager[AsyncStreamedReply]:
        """Send *request* and hand over its reply; leaving the context ends the exchange.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds that the whole exchange may take, from looking up the name to the
                last byte of the body, however slowly the bytes come in.
            authorization: The value of the `Authorization` header, or None to send none. A
                transport neither keeps nor shows it.

        Raises:
            TransportError: On entering, when there is no whole head.
        """
        ...

    async def close(self) -> None:
        """Close every idle connection."""
        ...


async def beginning(reply: AsyncStreamedReply) -> bytes:
    """Return the first 64 KiB of the body, or less where it ends before.

    Raises:
        TransportError: It ended early or could not be read.
    """
    body = bytearray()
    async for piece in reply.pieces():
        body += piece
        if len(body) >= PARTIAL_LIMIT:
            break
    return bytes(body[:PARTIAL_LIMIT])


async def exchange(
    transport: AsyncTransport,
    request: HttpRequest,
    *,
    timeout: float,  # noqa: ASYNC109  # the transport keeps it
    authorization: str | None = None,
) -> HttpResponse:
    """Send *request* and read its whole reply.

    Args:
        transport: The transport to send it with.
        request: What to send.
        timeout: Seconds that the whole exchange may take.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        TransportError: There is no whole reply; what had arrived is kept in its failure.
    """
    stream = transport.stream(request, timeout=timeout, authorization=authorization)
    return await whole(stream, paid=request.paid)


async def whole(
    stream: AbstractAsyncContextManager[AsyncStreamedReply], *, paid: bool
) -> HttpResponse:
    """Enter *stream*, which a transport has returned, and read the whole reply.

    Args:
        stream: What the transport returned.
        paid: Whether the request was a paid one, so that all that arrives is kept.

    Raises:
        TransportError: There is no whole reply; what had arrived is kept in its failure.
    """
    async with stream as reply:
        body = BytesIO()
        try:
            async for piece in reply.pieces():
                body.write(piece)
        except TransportError as error:
            if paid:
                error.keep(body.getvalue())
            raise
        return HttpResponse(reply.head.status, reply.head.headers, body.getvalue())
