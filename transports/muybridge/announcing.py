"""Telling the user what an operation made known, and leaving notes where an id might be lost."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import attrs

from muybridge_protocol.codec import readable
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event, Polled, Submitted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Operation
from muybridge_protocol.tasks import Result, Task

UNDER_WAY = (
    "A request that costs money was under way: it may have been accepted. "
    "Look at the account for a new task before sending it again."
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


@contextmanager
def accounted(tasks: list[Task]) -> Generator[None, None, None]:
    """Leave a note of each of *tasks* with whatever breaks the block off.

    Errors of the service carry the task themselves.

    Args:
        tasks: The tasks that were accepted so far. It may grow inside the block.
    """
    try:
        yield
    except ServiceError:
        raise
    except BaseException as error:
        for note in map(accepted, tasks):
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        raise


def submitted(events: tuple[Event, ...]) -> list[Task]:
    """Return the tasks that *events* make known as accepted."""
    return [event.task for event in events if isinstance(event, Submitted)]


def accepted(task: Task) -> str:
    """Return the note that goes with whatever ends a call after *task* was created."""
    return f"Task {task.id} was accepted and goes on: wait({task.id!r}) asks for its result."


def interrupted(operation: Operation[Any]) -> KeyboardInterrupt:
    """Return the interruption that was held back during a paid request, with what it led to."""
    interrupt = KeyboardInterrupt()
    outcome = operation.settled.outcome if operation.settled is not None else None
    if isinstance(outcome, Task):
        interrupt.add_note(accepted(outcome))
    elif isinstance(outcome, HttpResponse):
        said = readable(outcome.body.decode("utf-8", "replace"))
        interrupt.add_note(f"The service answered with status {outcome.status}: {said}")
    elif isinstance(outcome, ServiceError):
        interrupt.add_note(str(outcome))
    return interrupt
