"""When each task may next be polled, remembered from one call of a client to the next."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import attrs

from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.records.tasks import Task

LIMIT: Final = 10_000
"""Tasks that are remembered: the most recently polled ones."""


class _Known(NamedTuple):
    """What is remembered of a task: not its record, which may be large."""

    family: str | None
    model: str | None
    requested_model: str | None
    next_poll_at: float


class NextPolls:
    """Remembers when each task may next be polled.

    Many short waits for a task then poll no more often than one long wait.

    It is safe to use from several threads, because each step is a single dictionary operation.

    Args:
        limit: How many tasks to remember.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, _Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tasks)

    def note(self, operation: object, now: float) -> None:
        """Record a poll, before it is sent and after its exchange.

        Both are needed, because a wait may be cancelled in between.

        Args:
            operation: Any operation; only polls are recorded.
            now: Seconds on the driver's clock.
        """
        if not isinstance(operation, Poll):
            return
        task = operation.task
        self._tasks.pop(task.id, None)
        if operation.has_ended:
            return  # its status is final
        # `due` is not set before the exchange ends, nor if it settled the operation.
        due = operation.due if operation.due > now else now + operation.interval
        permitted = due + operation.wall_offset
        self._tasks[task.id] = _Known(task.family, task.model, task.requested_model, permitted)
        if len(self._tasks) > self._limit:
            self._tasks.popitem(last=False)

    def recall(self, task: Task) -> Task:
        """Return *task* with the time of its next poll, and with its family and model if known."""
        known = self._tasks.get(task.id)
        if known is None:
            return task
        return attrs.evolve(
            task,
            family=task.family or known.family,
            model=task.model or known.model,
            requested_model=task.requested_model or known.requested_model,
            next_poll_at=max(known.next_poll_at, task.next_poll_at or known.next_poll_at),
        )
