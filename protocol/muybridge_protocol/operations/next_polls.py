"""When tasks may next be polled, from one call of a client to the next."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import attrs

from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.records.tasks import Task

LIMIT: Final = 10_000
"""Tasks that are remembered: those that were polled last."""


class NextPolls:
    """Remembers when each task may next be polled, so that many short waits keep the pace of one.

    It may be used from many threads: each of its steps is a single one of the dictionary's.

    Args:
        limit: Most tasks that are remembered.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tasks)

    def note(self, operation: object, now: float) -> None:
        """Note a poll that is about to be sent, or that was sent and has been answered or not.

        Both must be noted: a wait may be cancelled in between.

        Args:
            operation: Any operation; only polls are noted.
            now: Seconds on the driver's clock.
        """
        if not isinstance(operation, Poll):
            return
        self._tasks.pop(operation.task.id, None)
        if operation.has_ended:
            return  # its record does not change any more
        # Until an exchange has ended, or where it settled the operation, nothing has set `due`.
        due = operation.due if operation.due > now else now + operation.interval
        permitted = due + operation.wall_offset
        self._tasks[operation.task.id] = attrs.evolve(
            operation.task, next_poll_at=permitted, raw={}
        )
        if len(self._tasks) > self._limit:
            self._tasks.popitem(last=False)

    def recall(self, task: Task) -> Task:
        """Return *task* with when it may next be polled, and its family if that was learnt."""
        known = self._tasks.get(task.id)
        if known is None or known.next_poll_at is None:
            return task
        return attrs.evolve(
            task,
            family=task.family or known.family,
            model=task.model or known.model,
            requested_model=task.requested_model or known.requested_model,
            next_poll_at=max(known.next_poll_at, task.next_poll_at or known.next_poll_at),
        )
