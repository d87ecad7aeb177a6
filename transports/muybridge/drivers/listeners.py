"""Deliver the events of operations: to the hook for ids first, then to the log and `on_event`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from muybridge.drivers.notes import accepted
from muybridge.signals import ignoring_errors
from muybridge_protocol.arguments import check_callable
from muybridge_protocol.events import Event, Submitted
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.observability.logs import Log
    from muybridge_protocol.observations import AnyEvent

T = TypeVar("T")


@attrs.frozen(eq=False, repr=False)
class Listeners:
    """The hooks of a client.

    Args:
        on_submitted: Called with each task as soon as its id is known, or None.
        on_event: Called with each event, or None.

    Raises:
        TypeError: One of them cannot be called.
    """

    on_submitted: Callable[[Task], None] | None
    on_event: Callable[[AnyEvent], None] | None

    def __attrs_post_init__(self) -> None:
        check_callable("on_submitted", self.on_submitted)
        check_callable("on_event", self.on_event)

    @property
    def listen(self) -> bool:
        """Whether anyone listens for more than ids."""
        return self.on_event is not None or find_log() is not None

    def tell(self, events: Sequence[AnyEvent], log: Log | None = None) -> None:
        """Deliver *events* in order, to the hook for ids first.

        An exception from a listener carries the id of an accepted task in its notes.

        Args:
            events: What happened.
            log: Logs them as well, or None.
        """
        if self.on_submitted is None and self.on_event is None and log is None:
            return
        tasks = [event.task for event in events if isinstance(event, Submitted)]
        try:
            try:
                if self.on_submitted is not None:
                    for task in tasks:
                        _call(self.on_submitted, task)
            finally:
                if log is not None:
                    for event in events:
                        with ignoring_errors():  # of a log handler: logging must not end a call
                            log.write(event)
                if self.on_event is not None:
                    for event in events:
                        _call(self.on_event, event)
        except BaseException as error:
            for task in tasks:
                error.add_note(accepted(task))
            raise


def _call(listener: Callable[[T], None], value: T) -> None:
    try:
        listener(value)
    except (StopIteration, StopAsyncIteration) as error:
        # These would end a loop over results as if there were no more of them.
        raise RuntimeError(f"a listener raised {type(error).__name__}") from error


def find_log() -> Log | None:
    """Return what logs events, or None if no handler would see the records."""
    logging = sys.modules.get("logging")  # not loaded: nobody has made a handler
    if logging is None:
        return None
    root = logging.root
    # A logger below `muybridge` leaves a placeholder for `muybridge` itself.
    if not root.handlers and "muybridge" not in root.manager.loggerDict:
        return None
    if not root.handlers and not _has_own_handlers(logging):
        return None
    from muybridge.observability.logs import Log

    return Log()


def _has_own_handlers(logging: Any) -> bool:
    loggers = logging.Logger.manager.loggerDict
    for name in _LOGGERS:
        for handler in getattr(loggers.get(name), "handlers", ()):
            if type(handler) is not logging.NullHandler:
                return True
    return False


_LOGGERS = ("muybridge", "muybridge.requests", "muybridge.tasks", "muybridge.calls")


class SilentTracker:
    """A call nobody listens to; only `on_submitted` fires.

    Args:
        listeners: The client's.
    """

    __slots__ = ("_listeners",)

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners

    def expect(self, usual: float, age: float | None) -> None:
        """Tell how long such tasks usually take."""

    def sending(self, request: HttpRequest) -> None:
        """Tell that *request* is about to be sent.

        Raises:
            BaseException: From a listener. Nothing was sent.
        """

    def head(self, status: int, now: float) -> None:
        """Tell that the head of a streamed response has arrived."""

    def responded(self, response: HttpResponse, now: float) -> None:
        """Record a whole response. `tell_end` reports it, once it has been read."""

    def failed(self, failure: TransportFailure, now: float | None) -> None:
        """Record an exchange without a whole response. `tell_end` reports it.

        Args:
            failure: What happened.
            now: When, on the driver's clock, or None for the moment of the report.
        """

    def piece(self, size: int) -> None:
        """Count a piece of a streamed text."""

    def chunk(self, chunk: object) -> None:
        """Count a chunk of a streamed text."""

    def tell(self, events: tuple[Event, ...]) -> None:
        """Tell *events* of an exchange in progress."""

    def tell_end(self, events: tuple[Event, ...]) -> None:
        """Tell that an exchange has ended, if one was in progress, and the *events* it led to."""
        self._listeners.tell(events)

    def end(self, outcome: object = None) -> None:
        """Tell that the call has ended, with a value or an exception.

        An exception from a listener does not replace the one that ended the call.
        """
