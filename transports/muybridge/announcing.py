"""Telling the user what an operation made known, and leaving notes where an id might be lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.interrupts import HeldInterrupt, ignoring_errors
from muybridge_protocol.codec import readable
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event, Polled, Submitted
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Operation
from muybridge_protocol.service import shown_id
from muybridge_protocol.tasks import Result, Task, as_task, is_bare

if TYPE_CHECKING:
    from muybridge.logs import Log
    from muybridge_protocol.observations import AnyEvent

UNDER_WAY = (
    "A request that costs money was under way: it may have been accepted. "
    "Look at the account for a new task before sending it again."
)
TEXT_UNDER_WAY = (
    "A text request was under way: it may have been charged. "
    "Its answer is lost; asking again may cost again."
)
NOT_SENT = "The request was not sent, and nothing was charged: it can be sent again."


@attrs.frozen
class Listeners:
    """Those who are told of events.

    Args:
        on_submitted: Called with each task the moment its id is known, or None.
        on_event: Called with each event, or None.

    Raises:
        TypeError: One of them cannot be called.
    """

    on_submitted: Callable[[Task], None] | None
    on_event: Callable[[AnyEvent], None] | None

    def __attrs_post_init__(self) -> None:
        for name, listener in (("on_submitted", self.on_submitted), ("on_event", self.on_event)):
            if listener is not None and not callable(listener):
                raise TypeError(f"{name} must be callable, or None (got {listener!r})")

    def follow(self, operation: Operation[Any], now: Callable[[], float]) -> Unfollowed:
        """Return what tells of the call that *operation* is.

        Args:
            operation: The operation at its beginning.
            now: Tells seconds on the driver's clock.
        """
        log = find_log()
        if self.on_event is None and log is None:
            return Unfollowed(self)
        from muybridge.following import Followed, info_of  # noqa: PLC0415  for listeners alone

        return Followed(self, log, info_of(operation), now)

    @property
    def listen(self) -> bool:
        """Whether there is anybody who is told of more than ids."""
        return self.on_event is not None or find_log() is not None

    def tell(self, events: Sequence[AnyEvent], log: Log | None = None) -> None:
        """Tell *events* in their order, but the hook for ids first.

        What a listener raises has the id of an accepted task in its notes.

        Args:
            events: What became known.
            log: What writes them down as well, or None.
        """
        if self.on_submitted is None and self.on_event is None and log is None:
            return
        tasks = [event.task for event in events if isinstance(event, Submitted)]
        try:
            try:
                if self.on_submitted is not None:
                    for task in tasks:
                        self.on_submitted(task)
            finally:
                if log is not None:
                    for event in events:
                        with ignoring_errors():  # of a log handler: logging ends no call
                            log.write(event)
                if self.on_event is not None:
                    for event in events:
                        self.on_event(event)
        except BaseException as error:
            for task in tasks:
                error.add_note(accepted(task))
            raise


def find_log() -> Log | None:
    """Return what writes events down, or None where no handler waits for records."""
    logging = sys.modules.get("logging")  # not loaded before: nobody has made a handler
    if logging is None:
        return None
    root = logging.root
    # A logger below `muybridge` has left a place for that one, too.
    if not root.handlers and "muybridge" not in root.manager.loggerDict:
        return None
    if not root.handlers and not _has_own_handlers(logging):
        return None
    from muybridge.logs import Log  # noqa: PLC0415  for those who log

    return Log()


def _has_own_handlers(logging: Any) -> bool:
    known = logging.Logger.manager.loggerDict
    return any(
        type(handler) is not logging.NullHandler
        for name in _LOGGERS
        if name in known
        for handler in getattr(known[name], "handlers", ())
    )


_LOGGERS = ("muybridge", "muybridge.requests", "muybridge.tasks", "muybridge.calls")


class Unfollowed:
    """A call of which nobody is told, but for the id of the task that it creates.

    Args:
        listeners: The client's.
    """

    __slots__ = ("_listeners",)

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners

    def sending(self, request: HttpRequest, now: float) -> None:
        """Tell that *request* is about to be sent.

        Raises:
            BaseException: A listener has raised it. Nothing was sent.
        """

    def head(self, status: int, now: float) -> None:
        """Tell that the head of a reply has come whose body comes in pieces."""

    def replied(self, response: HttpResponse, now: float) -> None:
        """Take note of a whole reply. It is told by `tell_end`, once it has been read."""

    def failed(self, failure: TransportFailure, now: float | None) -> None:
        """Take note of an exchange without a whole reply. It is told by `tell_end`.

        Args:
            failure: What happened.
            now: When, on the driver's clock, or None for the moment at which it is told.
        """

    def piece(self, size: int) -> None:
        """Count a piece of a streamed text."""

    def chunk(self, chunk: object) -> None:
        """Count a chunk of a streamed text."""

    def tell(self, events: tuple[Event, ...]) -> None:
        """Tell *events* of an exchange that goes on."""

    def tell_end(self, events: tuple[Event, ...]) -> None:
        """Tell that an exchange has ended, if one was under way, and what it has led to."""
        self._listeners.tell(events)

    def end(self, outcome: object = None) -> None:
        """Tell that the call has ended, with a value or an exception.

        What a listener raises does not take the place of an exception.
        """


class Changes:
    """Tells which replies bring something new to one who watches a task."""

    def __init__(self) -> None:
        self._last: Result | None = None

    def of(self, event: Event) -> Result | None:
        """Return the result that *event* brings, if its status or its link is new."""
        if not isinstance(event, Polled):
            return None
        told, self._last = self._last, event.result
        new = told is None or event.changed or told.url != event.result.url
        return event.result if new else None


class Ledger:
    """What a paid request has come to so far, for the note of whatever breaks its call off.

    It is no context manager: Ctrl-C may come as one is left, when the block is behind and the
    outcome not yet returned.
    """

    def __init__(self) -> None:
        self._operation: Operation[Any] | None = None
        self._under_way = False
        self._unsent = False

    def begin(self, request: HttpRequest) -> None:
        """Book that *request* is about to be sent."""
        self._under_way, self._unsent = request.paid, False

    def withdraw(self) -> None:
        """Book that it was not sent."""
        self._under_way, self._unsent = False, True

    def book(self, operation: Operation[Any]) -> None:
        """Book what came of it."""
        self._operation = operation
        self._under_way = False

    def leave_note(self, error: BaseException) -> None:
        """Note with *error* what is known. Errors of the service say it themselves."""
        if isinstance(error, ServiceError):
            return
        said = None if self._operation is None else _outcome(self._operation)
        _add_note(error, said)
        _add_note(error, UNDER_WAY if self._under_way else None)
        _add_note(error, NOT_SENT if self._unsent and said is None else None)


def _add_note(error: BaseException, note: str | None) -> None:
    if note is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


@attrs.frozen
class BrokenOff:
    """How an exchange ended that something other than the network broke off.

    Args:
        error: What did: Ctrl-C, a cancellation, what a signal handler raises, or a defect.
        failure: How far the exchange had come.
    """

    error: BaseException
    failure: TransportFailure


def interruption_of(error: BaseException, *, sent: bool) -> TransportFailure:
    """Return how far an exchange came that *error* broke off."""
    return TransportFailure(
        phase=Phase.SEND if sent else Phase.CONNECT,
        sent=sent,
        reason=Reason.INTERRUPTED,
        detail=type(error).__name__,
    )


def note_request(broken: BrokenOff, request: HttpRequest) -> None:
    """Note with what broke an exchange off whether its *request* may be charged."""
    if request.paid:
        under_way = TEXT_UNDER_WAY if request.interruptible else UNDER_WAY
        _add_note(broken.error, under_way if broken.failure.sent else NOT_SENT)


def break_off(
    broken: BrokenOff,
    operation: Operation[Any],
    request: HttpRequest,
    followed: Unfollowed,
    ledger: Ledger,
    now: float,
) -> None:
    """Tell everybody that an exchange was broken off; then its error can be raised.

    Args:
        broken: How it ended. Afterwards what is known is in the notes of its error.
        operation: What the exchange was for. It may write down what is known.
        request: What was to be sent.
        followed: What tells of the call.
        ledger: Where the request is booked.
        now: Seconds on the driver's clock.
    """
    failure = broken.failure
    followed.failed(failure, now)
    note_request(broken, request)
    if not request.paid:
        return
    if not failure.sent:
        ledger.withdraw()
    try:
        after = operation.fail(failure, now)
        followed.tell_end(after.events if failure.sent else ())
    except Exception as other:  # noqa: BLE001  a journal's or a listener's: one can be raised
        _add_note(broken.error, f"{type(other).__name__} besides: {other}")


def accepted(task: Task) -> str:
    """Return the note that goes with whatever ends a call after *task* was created."""
    name = task.id if is_bare(task.id) else task.to_token()
    return f"Task {shown_id(task.id)} was accepted and is still running; to resume: wait({name!r})."


def note_task(error: BaseException, task: Task) -> None:
    """Note with *error*, which ends the wait for *task*, that the task is still running."""
    if not isinstance(error, ServiceError):
        _add_note(error, accepted(task))


def interrupted(operation: Operation[Any], held: HeldInterrupt) -> KeyboardInterrupt:
    """Return the interruption that was held back during a paid request, with what it led to."""
    interrupt = held.interrupt()
    _add_note(interrupt, _outcome(operation))
    return interrupt


def note_outcome(error: BaseException, outcome: object) -> None:
    """Note with *error*, which came before *outcome* could be handed over, what was accepted."""
    _add_note(error, _told(outcome))


def _outcome(operation: Operation[Any]) -> str | None:
    """Return what a paid *operation* has come to, in words, or None if nothing was accepted."""
    return None if operation.settled is None else _told(operation.settled.outcome)


def _told(outcome: object) -> str | None:
    match outcome:
        case Task() | Result():
            return accepted(as_task(outcome))
        case HttpResponse(status=status, body=body):
            said = readable(body.decode("utf-8", "replace"))
            return f"The service answered with status {status}: {said}"
        case ServiceError() as error:
            return str(error)
        case _:
            return None
