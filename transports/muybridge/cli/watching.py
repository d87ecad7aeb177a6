"""What the client's parts make known to an invocation: when it waits, and what is on its way."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from muybridge.clock import SystemClock
from muybridge.wire.transport import StreamedReply, Transport, TransportError
from muybridge_protocol.http import HttpRequest

if TYPE_CHECKING:
    from muybridge.cli.invocation import Invocation


class WatchedClock(SystemClock):
    """This machine's clock, which tells the progress when the client waits."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        self._invocation.progress.waiting(seconds)
        super().sleep(seconds)


class WatchedTransport:
    """A transport that tells the invocation whether a request that does something is on its way.

    What breaks out of such an exchange, as a second Ctrl-C does, leaves it open whether the
    request was accepted.
    """

    def __init__(self, transport: Transport, invocation: Invocation) -> None:
        self._transport = transport
        self._invocation = invocation

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> _WatchedStream:
        """Send *request* and hand over its reply."""
        stream = self._transport.stream(request, timeout=timeout, authorization=authorization)
        return _WatchedStream(stream, self._invocation, does_something=request.method != "GET")

    def close(self) -> None:
        """Close every idle connection."""
        self._transport.close()


class _WatchedStream:
    def __init__(
        self,
        stream: AbstractContextManager[StreamedReply],
        invocation: Invocation,
        *,
        does_something: bool,
    ) -> None:
        self._stream = stream
        self._invocation = invocation
        self._does_something = does_something

    @property
    def sent(self) -> bool:
        return bool(getattr(self._stream, "sent", True))

    def __enter__(self) -> StreamedReply:
        self._invocation.unanswered = self._does_something
        try:
            return self._stream.__enter__()
        except BaseException as error:
            self._end(error)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.__exit__(kind, error, traceback)
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        # What a failure of the transport means is the library's to say, and it says so.
        if error is None or isinstance(error, TransportError) or not self.sent:
            self._invocation.unanswered = False
