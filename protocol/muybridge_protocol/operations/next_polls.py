"""When each task may next be polled, remembered from one call of a client to the next.

A wait starts from what `recall` returns, because others may have polled its task before. Others may
also poll it while the wait goes on, so the wait must `claim` each poll just before sending it.

It goes by the driver's clock, because somebody may set the wall clock between two polls.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import attrs

from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.records.tasks import Task

Op = TypeVar("Op")

LIMIT: Final = 10_000
"""Tasks that are remembered: the most recently polled ones."""
SHORTLY: Final = 1.0
"""Seconds after which a wait looks again while another one's poll of its task is under way. If the
task turns out to have ended, no wait has to sit out another interval."""


class _Schedule(NamedTuple):
    """What is remembered of a task: not its record, which may be large."""

    family: str | None
    model: str | None
    requested_model: str | None
    due: float
    """When its next poll may be sent, on the driver's clock."""
    under_way: bool
    permits: list[None]
    """One, for the next poll, until somebody takes it."""

    def take(self) -> bool:
        """Take the permit, and return whether it was there. No two threads can take the same."""
        try:
            self.permits.pop()
        except IndexError:
            return False
        return True


_ENDED: Final = _Schedule(None, None, None, -math.inf, under_way=False, permits=[])
"""What is remembered of a task that has ended. It may be polled at any time: it does not change."""


class NextPolls:
    """Remembers when each task may next be polled.

    Many waits for a task then poll no more often than one, whether they follow each other or run at
    the same time.

    It is safe to use from several threads, because each step is a single operation of a dictionary
    or a list.

    Args:
        limit: How many tasks to remember.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, _Schedule] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tasks)

    def claim(self, operation: Op, now: float) -> Op:
        """Return *operation* if it may send its poll now, or postponed if another one has sent one.

        A poll that may be sent is recorded before its exchange, because the wait may be cancelled
        in between.

        Args:
            operation: Any operation that is due; only polls need a claim.
            now: Seconds on the driver's clock.
        """
        if not isinstance(operation, Poll):
            return operation
        ours = _schedule_of(operation, now, under_way=True)
        # Of several threads that come first at the same time, one alone finds its own schedule
        # here.
        schedule = self._tasks.setdefault(operation.task.id, ours)
        if schedule is _ENDED:
            return operation
        shortly = now + SHORTLY
        is_first = True
        if schedule is not ours and not operation.once:  # a single query waits for nobody
            due = min(schedule.due, shortly) if schedule.under_way else schedule.due
            later = operation.postpone(due, now)
            if later is not operation:
                return later
            # Several may have found the same schedule and its time over. Its permit goes to one of
            # them.
            is_first = schedule.take()
        self._remember(operation.task.id, ours)
        return operation if is_first else operation.postpone(shortly, now)

    def note(self, operation: object, now: float) -> None:
        """Record a poll after its exchange.

        Args:
            operation: Any operation; only polls are recorded.
            now: Seconds on the driver's clock.
        """
        if isinstance(operation, Poll):
            schedule = (
                _ENDED if operation.has_ended else _schedule_of(operation, now, under_way=False)
            )
            self._remember(operation.task.id, schedule)

    def recall(self, task: Task, *, now: float, wall: float) -> Task:
        """Return *task* with the time of its next poll, and with its family and model if known.

        Args:
            task: The task.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.
        """
        schedule = self._tasks.get(task.id)
        if schedule is None or schedule is _ENDED:
            return task
        permitted = wall + schedule.due - now
        return attrs.evolve(
            task,
            family=task.family or schedule.family,
            model=task.model or schedule.model,
            requested_model=task.requested_model or schedule.requested_model,
            next_poll_at=max(permitted, task.next_poll_at or permitted),
        )

    def _remember(self, task: str, schedule: _Schedule) -> None:
        self._tasks[task] = schedule
        with suppress(KeyError):  # another thread has made room
            self._tasks.move_to_end(task)
        if len(self._tasks) > self._limit:
            with suppress(KeyError):
                self._tasks.popitem(last=False)


def _schedule_of(poll: Poll, now: float, *, under_way: bool) -> _Schedule:
    task = poll.task
    # `due` is not set before the exchange ends, nor if it settled the operation.
    due = poll.due if poll.due > now else now + poll.interval
    return _Schedule(
        task.family,
        task.model,
        task.requested_model,
        due,
        under_way=under_way,
        permits=[None],
    )
