"""What the client's parts make known to an errand: when it waits, and what is on its way."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muybridge.clock import SystemClock
from muybridge.wire.transport import StreamedReply, Transport, TransportError
from muybridge_protocol.http import HttpRequest

if TYPE_CHECKING:
    from muybridge.cli.errand import Errand


class WatchedClock(SystemClock):
    """This machine's clock, which tells the progress when the client waits."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        self._errand.progress.waiting(seconds)
        super().sleep(seconds)


class WatchedTransport:
    """A transport that tells the errand whether a request that does something is on its way.

    What breaks out of such an exchange, as a second Ctrl-C does, leaves it open whether the
    request was accepted.
    """

    def __init__(self, transport: Transport, errand: Errand) -> None:
        self._transport = transport
        self._errand = errand

    @contextmanager
    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Generator[StreamedReply, None, None]:
        """Send *request* and hand over its reply."""
        self._errand.unanswered = request.method != "GET"
        try:
            with self._transport.stream(
                request, timeout=timeout, authorization=authorization
            ) as reply:
                yield reply
        except TransportError:
            # What that means is the library's to say, and it says so.
            self._errand.unanswered = False
            raise
        self._errand.unanswered = False

    def close(self) -> None:
        """Close every idle connection."""
        self._transport.close()
