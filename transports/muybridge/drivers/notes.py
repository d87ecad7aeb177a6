"""Notes on exceptions about money: what was sent, which task was accepted, how to resume.

An exception that interrupts a paid request, such as Ctrl-C, carries in its notes what is known.
A `ServiceError` says it in its own message.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from muybridge.signals import HeldInterrupt
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Operation
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import Result, Task, as_task
from muybridge_protocol.remedies import Remedy, RemedyKind, in_python
from muybridge_protocol.service import shown_id

UNDER_WAY = (
    "A request that costs money was under way: it may have been accepted. Before you send the "
    "request again, check your account for a new task."
)
TEXT_UNDER_WAY = (
    "A text request was under way: it may have been charged. The answer is lost. Asking again may "
    "cost again."
)
KEPT: Final = 1_000
"""The maximum number of tasks that a client keeps for `interrupted_tasks`."""
_TOLD: Final = 20
"""The maximum number of them that the notes of one exception name."""
NOT_SENT = "The request was not sent, and nothing was charged: it can be sent again."
TWIN_UNDER_WAY = TransportFailure(
    phase=Phase.CONNECT,
    sent=False,
    reason=Reason.INTERRUPTED,
    detail="an identical request is still on its way",
)
"""Why a create is not sent now, although nothing has failed: see `muybridge.purchases.joining`."""


class InterruptedTasks:
    """The tasks whose calls something other than an error of the service has ended.

    An exception's notes are lost where nobody sees the exception: a cancel scope swallows it, a
    task group drops those of its cancelled tasks. What is kept here is not.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Task, str]] = {}
        """By id: the task, and the note about it."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, those interrupted last at the end."""
        return tuple(task for task, _ in [*self._kept.values()])

    def keep(self, error: BaseException, task: Task, note: str) -> None:
        """Keep *task*, and add *note* to *error*, which ends a call about it."""
        if isinstance(error, ServiceError):
            return
        add_note(error, note)
        # Removed first, so that the task comes last in the order, where it is dropped last.
        self.forget(task)
        self._kept[task.id] = task, note
        # Another thread may have forgotten it meanwhile.
        for forgotten in [*self._kept][:-KEPT]:
            self._kept.pop(forgotten, None)

    def forget(self, task: Task) -> None:
        """Forget *task*: its result has arrived."""
        self._kept.pop(task.id, None)

    def tell(self, error: BaseException) -> None:
        """Add the notes to *error*, which ends the use of the client."""
        notes = [note for _, note in [*self._kept.values()]]
        for note in notes[:_TOLD]:
            add_note(error, note)
        if len(notes) > _TOLD:
            add_note(error, f"{len(notes) - _TOLD} more tasks are in interrupted_tasks.")


class PaidNotes:
    """Records the state of a paid request, for the notes of an exception that interrupts the call.

    It is not a context manager: Ctrl-C may arrive while one is being left, after the block and
    before the outcome is returned.

    Args:
        tasks: Keeps the task if it was accepted, or None.
    """

    def __init__(self, tasks: InterruptedTasks | None = None) -> None:
        self._tasks = tasks
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
        outcome = _outcome(self._operation)
        note = _note(outcome)
        if isinstance(outcome, Task | Result) and self._tasks is not None:
            note_task(error, as_task(outcome), self._tasks)
        else:
            add_note(error, note)
        add_note(error, UNDER_WAY if self._under_way else None)
        add_note(error, NOT_SENT if self._unsent and note is None else None)


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
    resume = in_python(Remedy(kind=RemedyKind.WAIT, task=task.reference))
    return f"Task {shown_id(task.id)} was accepted; {resume}."


def note_task(error: BaseException, task: Task, tasks: InterruptedTasks) -> None:
    """Add to the notes of *error*, which ends a call, that *task* was accepted."""
    tasks.keep(error, task, accepted(task))


def note_download(error: BaseException, task: Task, tasks: InterruptedTasks) -> None:
    """Add to the notes of *error*, which ends a download, how to repeat it."""
    resume = in_python(Remedy(kind=RemedyKind.DOWNLOAD, task=task.reference))
    note = f"The download of task {shown_id(task.id)} was interrupted; {resume}."
    tasks.keep(error, task, note)


def interrupted(operation: Operation[Any], held: HeldInterrupt) -> KeyboardInterrupt:
    """Return the interruption that was held back, with the outcome of *operation* in its notes."""
    interrupt = held.interrupt()
    add_note(interrupt, _note(_outcome(operation)))
    return interrupt


def note_outcome(error: BaseException, outcome: object) -> None:
    """Add to the notes of *error*, which preempted *outcome*, what was accepted."""
    add_note(error, _note(outcome))


def _outcome(operation: Operation[Any] | None) -> object:
    """Return the outcome of a paid *operation*, or None if it has none yet."""
    return None if operation is None or operation.settled is None else operation.settled.outcome


def _note(outcome: object) -> str | None:
    match outcome:
        case Task() | Result():
            return accepted(as_task(outcome))
        case HttpResponse(status=status, body=body):
            text = readable(body.decode("utf-8", "replace"))
            return f"The service answered with status {status}: {text}"
        case ServiceError() as error:
            return str(error)
        case _:
            return None
