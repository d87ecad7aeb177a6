"""Notes on exceptions about money: what was sent, which task was accepted, how to resume.

An exception that interrupts a paid request, such as Ctrl-C, carries in its notes what is known.
A `ServiceError` says it in its own message.
"""

from __future__ import annotations

from typing import Any

import attrs

from muybridge.drivers.interrupts import HeldInterrupt
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Operation
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import Result, Task, as_task, is_bare
from muybridge_protocol.service import shown_id

UNDER_WAY = (
    "A request that costs money was under way: it may have been accepted. "
    "Look at the account for a new task before sending it again."
)
TEXT_UNDER_WAY = (
    "A text request was under way: it may have been charged. "
    "Its answer is lost; asking again may cost again."
)
NOT_SENT = "The request was not sent, and nothing was charged: it can be sent again."


class PaidNotes:
    """Records the state of a paid request, for the notes of an exception that interrupts the call.

    It is not a context manager: Ctrl-C may arrive while one is being left, after the block and
    before the outcome is returned.
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
        """Book the operation after the exchange."""
        self._operation = operation
        self._under_way = False

    def leave_note(self, error: BaseException) -> None:
        """Add what is known to the notes of *error*, unless it is a `ServiceError`."""
        if isinstance(error, ServiceError):
            return
        said = None if self._operation is None else _outcome(self._operation)
        add_note(error, said)
        add_note(error, UNDER_WAY if self._under_way else None)
        add_note(error, NOT_SENT if self._unsent and said is None else None)


def add_note(error: BaseException, note: str | None) -> None:
    """Add *note* to *error*, unless it has it."""
    if note is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


@attrs.frozen(eq=False, repr=False)
class BrokenOff:
    """An exchange that something other than the network interrupted.

    Args:
        error: Ctrl-C, a cancellation, an exception from a signal handler, or a defect.
        failure: How far the exchange got.
    """

    error: BaseException
    failure: TransportFailure


def interruption_of(error: BaseException, *, sent: bool) -> TransportFailure:
    """Return how far an exchange got before *error* interrupted it."""
    return TransportFailure(
        phase=Phase.SEND if sent else Phase.CONNECT,
        sent=sent,
        reason=Reason.INTERRUPTED,
        detail=type(error).__name__,
    )


def note_request(broken: BrokenOff, request: HttpRequest) -> None:
    """Add to the notes of the interruption whether the *request* may be charged."""
    if request.paid:
        under_way = TEXT_UNDER_WAY if request.interruptible else UNDER_WAY
        add_note(broken.error, under_way if broken.failure.sent else NOT_SENT)


def accepted(task: Task) -> str:
    """Return the note for an exception that ends a call after *task* was created."""
    name = task.id if is_bare(task.id) else task.to_token()
    return f"Task {shown_id(task.id)} was accepted and is still running; to resume: wait({name!r})."


def note_task(error: BaseException, task: Task) -> None:
    """Add to the notes of *error*, which ends the wait, that *task* is still running."""
    if not isinstance(error, ServiceError):
        add_note(error, accepted(task))


def interrupted(operation: Operation[Any], held: HeldInterrupt) -> KeyboardInterrupt:
    """Return the interruption that was held back, with the outcome of *operation* in its notes."""
    interrupt = held.interrupt()
    add_note(interrupt, _outcome(operation))
    return interrupt


def note_outcome(error: BaseException, outcome: object) -> None:
    """Add to the notes of *error*, which preempted *outcome*, what was accepted."""
    add_note(error, _told(outcome))


def _outcome(operation: Operation[Any]) -> str | None:
    """Describe the outcome of a paid *operation*, or return None if it has none yet."""
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
