"""What a transport is: one method that sends a described request and hands over the reply.

A transport moves bytes and reports faults. It decides nothing: no retry, no redirect, no cookie,
no credentials of its own.
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
"""Most bytes of an incomplete reply that a transport keeps in a failure."""


class TransportError(Exception):
    """An exchange that gave no whole reply; *failure* says how far it came."""

    def __init__(self, failure: TransportFailure) -> None:
        super().__init__(failure)
        self.failure: TransportFailure = failure

    def keep(self, arrived: bytes) -> None:
        """Keep all that had *arrived* of a body, which may name a task at its end."""
        if len(arrived) > len(self.failure.partial):
            self.failure = attrs.evolve(self.failure, partial=arrived)
            super().__init__(self.failure)


class StreamedReply(Protocol):
    """A reply whose head has arrived and whose body is still to be read."""

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body piece by piece.

        Raises:
            TransportError: The body ended early, was malformed, stalled, took longer than the
                exchange may, or grew over the request's limit.
        """
        ...


class Transport(Protocol):
    """Sends requests. Safe to use from many threads."""

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedReply]:
        """Send *request* and hand over its reply; leaving the context ends the exchange.

        Nothing is sent before the context is entered. What comes from elsewhere in the middle of
        an exchange, such as an exception of a signal handler, comes out as itself. The context may
        have an attribute `sent` that says whether a byte of the request was handed to the network,
        for whoever has to know it then; without one, it is assumed.

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
    """Send *request* and read its whole reply.

    Args:
        transport: The transport to send it with.
        request: What to send.
        timeout: Seconds that the whole exchange may take.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        TransportError: There is no whole reply; what had arrived is kept in its failure.
    """
    with transport.stream(request, timeout=timeout, authorization=authorization) as reply:
        body = BytesIO()
        try:
            for piece in reply.pieces():
                body.write(piece)
        except TransportError as error:
            if request.paid:
                error.keep(body.getvalue())
            raise
        return HttpResponse(reply.head.status, reply.head.headers, body.getvalue())
