"""What an async transport is. The names are those of `transport`, and so are the rules.

This module depends on no event loop's library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from typing import Protocol

from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse


class AsyncStreamedResponse(Protocol):
    """A response whose head has arrived and whose body is still to be read."""

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the decoded body, which may be abandoned at any time.

        Raises:
            TransportError: While iterating: the body ended early, was malformed, stalled, missed
                the deadline of the exchange, or exceeded the request's limit.
        """
        ...


class AsyncTransport(Protocol):
    """Sends requests for many tasks at once.

    An exchange may be cancelled at any time, and then closes its connection. There is one
    exception: if the request is `shielded` (`HttpRequest.shielded`), the exchange is shielded,
    within its timeout, from the first byte of the request to the last byte of the response, with
    no unshielded checkpoint in between or afterwards. So a cancellation that leaves it means that
    nothing was sent. Under asyncio, this includes `Task.cancel`: the task is cancelled at its next
    suspension after the exchange.
    """

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractAsyncContextManager[AsyncStreamedResponse]:
        """Send *request* and return its response; leaving the context ends the exchange.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds for the whole exchange, from the name lookup to the last byte of the
                body, however slowly the bytes arrive.
            authorization: The value of the `Authorization` header, or None to send none. A
                transport neither keeps nor shows it.

        Raises:
            TransportError: On entering, if the head did not arrive whole.
        """
        ...

    async def close(self) -> None:
        """Close every idle connection."""
        ...


async def beginning(response: AsyncStreamedResponse) -> bytes:
    """Return the first 64 KiB of the body, or all of it if it is shorter.

    Raises:
        TransportError: It ended early or could not be read.
    """
    body = bytearray()
    async for piece in response.pieces():
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
    """Send *request* and read its whole response.

    Args:
        transport: The transport to send it with.
        request: What to send.
        timeout: Seconds for the whole exchange.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        TransportError: The response did not arrive whole; its failure keeps what had arrived.
    """
    stream = transport.stream(request, timeout=timeout, authorization=authorization)
    return await whole(stream, paid=request.paid)


async def whole(
    stream: AbstractAsyncContextManager[AsyncStreamedResponse], *, paid: bool
) -> HttpResponse:
    """Enter *stream*, which a transport returned, and read the whole response.

    Args:
        stream: What the transport returned.
        paid: Whether the request may be charged, so that everything that arrives is kept.

    Raises:
        TransportError: The response did not arrive whole; its failure keeps what had arrived.
    """
    async with stream as response:
        body = BytesIO()
        try:
            async for piece in response.pieces():
                body.write(piece)
        except TransportError as error:
            if paid:
                error.keep(body.getvalue())
            raise
        head = response.head
        return HttpResponse(head.status, head.headers, body.getvalue())
