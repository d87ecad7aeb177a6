"""Telling the user what an operation made known, and leaving notes where an id might be lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from muybridge_protocol.codec import readable
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event, Polled, Submitted
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations import Operation
from muybridge_protocol.tasks import Result, Task

UNDER_WAY = (
    "A request that costs money was under way: it may have been accepted. "
    "Look at the account for a new task before sending it again."
)
TEXT_UNDER_WAY = (
    "A text request was under way: it may have been charged. "
    "Its answer is lost; asking again may cost again."
)


@attrs.frozen
class Listeners:
    """Those who are told of events.

    Args:
        on_submitted: Called with each task the moment its id is known, or None.
        on_event: Called with each event, or None.
    """

    on_submitted: Callable[[Task], None] | None
    on_event: Callable[[Event], None] | None

    def tell(self, events: tuple[Event, ...]) -> None:
        """Tell *events*. What a listener raises has the id of an accepted task in its notes."""
        for event in events:
            task = event.task if isinstance(event, Submitted) else None
            try:
                try:
                    if task is not None and self.on_submitted is not None:
                        self.on_submitted(task)
                finally:
                    if self.on_event is not None:
                        self.on_event(event)
            except BaseException as error:
                if task is not None:
                    error.add_note(accepted(task))
                raise


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

    def begin(self, request: HttpRequest) -> None:
        """Book that *request* is about to be sent."""
        self._under_way = request.paid

    def withdraw(self) -> None:
        """Book that it was not sent."""
        self._under_way = False

    def book(self, operation: Operation[Any]) -> None:
        """Book what came of it."""
        self._operation = operation
        self._under_way = False

    def leave_note(self, error: BaseException) -> None:
        """Note with *error* what is known. Errors of the service say it themselves."""
        if isinstance(error, ServiceError):
            return
        said = None if self._operation is None else _outcome(self._operation)
        for note in (said, UNDER_WAY if self._under_way else None):
            if note is not None and note not in getattr(error, "__notes__", ()):
                error.add_note(note)


def note_under_way(error: BaseException, request: HttpRequest) -> None:
    """Note with *error*, which breaks *request* off, what that may have cost."""
    if request.paid:
        error.add_note(TEXT_UNDER_WAY if request.interruptible else UNDER_WAY)


def accepted(task: Task) -> str:
    """Return the note that goes with whatever ends a call after *task* was created."""
    return f"Task {task.id} was accepted and goes on: wait({task.id!r}) asks for its result."


def interrupted(operation: Operation[Any]) -> KeyboardInterrupt:
    """Return the interruption that was held back during a paid request, with what it led to."""
    interrupt = KeyboardInterrupt()
    note = _outcome(operation)
    if note is not None:
        interrupt.add_note(note)
    return interrupt


def _outcome(operation: Operation[Any]) -> str | None:
    """Return what a paid *operation* has come to, in words, or None if nothing was accepted."""
    match operation.settled.outcome if operation.settled is not None else None:
        case Task() as task:
            return accepted(task)
        case HttpResponse(status=status, body=body):
            said = readable(body.decode("utf-8", "replace"))
            return f"The service answered with status {status}: {said}"
        case ServiceError() as error:
            return str(error)
        case _:
            return None
