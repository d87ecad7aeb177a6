"""What a transport is: one method that sends a request and returns the response.

A transport moves bytes and reports faults. It decides nothing: it never retries, follows no
redirect, keeps no cookie and has no credentials of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from io import BytesIO
from typing import Protocol

import attrs

from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    TransportFailure,
)

PARTIAL_LIMIT = 64 * 1024
"""The most bytes of an incomplete response that a failure keeps."""


class TransportError(Exception):
    """An exchange without a complete response; *failure* says how far it got."""

    def __init__(self, failure: TransportFailure) -> None:
        super().__init__(failure)
        self.failure: TransportFailure = failure

    def keep(self, arrived: bytes) -> None:
        """Keep everything that had *arrived* of a body: its end may name a task."""
        if len(arrived) > len(self.failure.partial):
            self.failure = attrs.evolve(self.failure, partial=arrived)
            super().__init__(self.failure)


class StreamedResponse(Protocol):
    """A response whose head has arrived and whose body is still to be read."""

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body piece by piece.

        Raises:
            TransportError: The body ended early, was malformed, stalled, missed the deadline of
                the exchange, or exceeded the request's limit.
        """
        ...


class Transport(Protocol):
    """Sends requests. It must be safe to use from many threads."""

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedResponse]:
        """Send *request* and return its response; leaving the context ends the exchange.

        Nothing is sent before the context is entered. An exception from elsewhere, such as one
        raised by a signal handler during the exchange, is not wrapped. The context may have an
        attribute `sent` that says whether any byte of the request was handed to the network;
        without it, the client assumes so.

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

    def close(self) -> None:
        """Close every idle connection."""
        ...


def exchange(
    transport: Transport,
    request: HttpRequest,
    *,
    timeout: float,
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
    with transport.stream(request, timeout=timeout, authorization=authorization) as response:
        body = BytesIO()
        try:
            for piece in response.pieces():
                body.write(piece)
        except TransportError as error:
            if request.paid:
                error.keep(body.getvalue())
            raise
        return HttpResponse(response.head.status, response.head.headers, body.getvalue())
