"""Whose turn it is: which of the operations that are due is sent next.

- Families take turns, so that no family waits for another. A family at its limit is skipped.
- Within a family, creates and polls take turns.
- A create begins only while fewer tasks are in progress than may be, of all families and of its
  own. One that has begun keeps its place until its task ends, so its retries wait for nobody: they
  stand in front of the creates that have not begun.
- Of two polls, the one whose result expires sooner goes first. But no poll is delayed for longer
  than `SHARE` of its result's remaining time, so that none of them starves.

A member is in exactly one place: in the heap of those that wait for their time, or in its lane,
among the creates or the polls, or under way. `wake` moves it from the first to the second, `next`
from there to the third, and `rest` back to the first.

One number orders the polls: the time at which a poll fell due, plus its patience. It never changes
while the poll waits. So urgent polls overtake patient ones, but every poll's turn comes. Sorting by
expiry alone would starve results that live long. Sorting by due time alone would let a result that
expires in a minute wait behind a thousand that have a day.

A million polls may fall due at the same time. To move all of them in one step would take seconds.
So once `WINDOW` polls are due, the others join them one at a time.

This module only orders operations; `Fleet` runs them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Final, Generic, TypeVar

import attrs

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.poll import Poll
from muybridge_protocol.records.tasks import Status, Task

SHARE: Final = 0.01
"""The part of its result's remaining time for which a due poll may wait for more urgent ones."""
LONGEST_LIFE: Final = 86_400.0
"""Assumed lifetime of a result, in seconds, if the specification does not state one."""
WINDOW: Final = 256
"""Number of due polls among which the more urgent ones go first. While that many are due, others
join them one at a time, so that no step takes long."""

K = TypeVar("K", bound=Hashable)


@attrs.define(eq=False, weakref_slot=False)
class Member(Generic[K]):
    """One operation of a fleet, at rest or under way.

    Args:
        number: Its position in arrival order.
        key: The key that it was added with.
        request: The request that was added, or None if a task was added.
        lane: That of its family.
        operation: The operation in its current state, or None for a create that has not started.
        sent: When its request under way was sent, on the driver's clock.
        dropped: Whether to skip it when it is its turn.
    """

    number: int
    key: K
    request: MediaRequest | None
    lane: Lane[K]
    operation: Create | Poll | None = None
    sent: float = 0.0
    dropped: bool = False

    @property
    def task(self) -> Task | None:
        """The task, or None before there is one."""
        return self.operation.task if isinstance(self.operation, Poll) else None


Agenda = list[tuple[float, int, Member[K]]]
"""A heap of members by time. Their numbers are unique, so members are never compared."""


def patience(poll: Poll, due: float) -> float:
    """Return for how many seconds *poll* may wait for more urgent ones once it is *due*."""
    if Status.COMPLETED in (poll.seen, poll.task.status):
        return 0.0  # the result is ready: fetch it before its link expires
    family = FAMILIES.get(poll.task.family or "")
    retention = None if family is None else family.retention.seconds
    if retention is None or poll.born is None:
        return SHARE * LONGEST_LIFE
    return SHARE * min(max(poll.born + retention - due, 0.0), LONGEST_LIFE)


class Lane(Generic[K]):
    """The operations of one family that are due.

    Args:
        limit: Largest number of tasks in progress at once, and so of requests under way.
    """

    __slots__ = ("creates", "in_progress", "limit", "listed", "poll_next", "polls", "under_way")

    def __init__(self, limit: float) -> None:
        self.limit: float = limit
        self.creates: deque[Member[K]] = deque()
        self.polls: Agenda[K] = []
        self.under_way: int = 0
        self.in_progress: int = 0
        self.listed: bool = False
        self.poll_next: bool = False

    def may_create(self, *, room: bool) -> bool:
        """Return whether a create may go: one that has begun, or a new one if there is *room*."""
        if not self.creates:
            return False
        has_begun = self.creates[0].operation is not None  # those that have begun are in front
        return has_begun or (room and self.in_progress < self.limit)

    def take(self, *, room: bool) -> Member[K]:
        """Return the next member. Creates and polls take turns if both may go."""
        if self.polls and (self.poll_next or not self.may_create(room=room)):
            self.poll_next = False
            return heapq.heappop(self.polls)[2]
        self.poll_next = True
        return self.creates.popleft()


class Turns(Generic[K]):
    """The operations at rest, and whose turn it is.

    Args:
        concurrency: Largest number of tasks in progress at once.
        limits: The same by family. The key "" stands for tasks without a known family.
    """

    def __init__(self, concurrency: int, limits: Mapping[str, int]) -> None:
        self._concurrency = concurrency
        self._in_progress = 0
        self._limits = limits
        self._lanes: dict[str, Lane[K]] = {}
        self._next: deque[Lane[K]] = deque()
        self._waiting: Agenda[K] = []
        self._due = 0

    def __bool__(self) -> bool:
        """Return whether any member can take its turn."""
        return self._first() is not None

    @property
    def due(self) -> int:
        """How many members can take their turn, or wait for others of their family."""
        return self._due + sum(len(lane.creates) for lane in self._lanes.values())

    @property
    def wakes(self) -> float | None:
        """When the next member is due, on the driver's clock, or None if none of them waits."""
        return self._waiting[0][0] if self._waiting else None

    def lane(self, family: str | None) -> Lane[K]:
        """Return the lane of *family*. Unknown families share one."""
        name = family if family is not None and family in FAMILIES else ""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(self._limits.get(name, float("inf")))
        return lane

    def join(self, member: Member[K]) -> None:
        """Add a create to the end of its family's queue."""
        member.lane.creates.append(member)
        self._list(member.lane)

    def begin(self, member: Member[K]) -> None:
        """Count *member* as in progress until `end`."""
        self._in_progress += 1
        member.lane.in_progress += 1

    def end(self, member: Member[K]) -> None:
        """Leave the place of *member* among those in progress to another."""
        self._in_progress -= 1
        member.lane.in_progress -= 1

    def move(self, member: Member[K], family: str | None) -> None:
        """Count *member*, which is in progress, for *family*."""
        member.lane.in_progress -= 1
        member.lane = self.lane(family)
        member.lane.in_progress += 1

    def rest(self, member: Member[K], until: float, now: float) -> None:
        """Put *member* to rest until *until*. If that is over, it queues at once."""
        if until <= now:
            self._line_up(member, until)
        else:
            heapq.heappush(self._waiting, (until, member.number, member))

    def wake(self, now: float) -> None:
        """Move the members that are due at *now* into the queues of their families."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            due, _, member = heapq.heappop(waiting)
            self._line_up(member, due)
            if self._due >= WINDOW and self._next:
                return

    def _line_up(self, member: Member[K], due: float) -> None:
        lane = member.lane
        if isinstance(member.operation, Poll):
            urgency = due + patience(member.operation, due)
            heapq.heappush(lane.polls, (urgency, member.number, member))
            self._due += 1
        else:
            lane.creates.appendleft(member)  # it has already waited for its turn
        self._list(lane)

    def next(self) -> Member[K]:
        """Return the member whose turn it is. Its request counts as under way until `back`.

        Raises:
            IndexError: No member can take its turn.
        """
        first = self._first()
        if first is None:
            raise IndexError("no member can take its turn")
        lane = self._next[first]
        del self._next[first]  # those before it keep their turn
        lane.listed = False
        member = lane.take(room=self._room)
        if isinstance(member.operation, Poll):
            self._due -= 1
        lane.under_way += 1
        self._list(lane)
        return member

    def back(self, member: Member[K]) -> None:
        """Record that the request of *member* has ended."""
        member.lane.under_way -= 1
        self._list(member.lane)

    def members(self) -> Iterator[Member[K]]:
        """Yield every operation at rest."""
        yield from (member for _, _, member in self._waiting)
        for lane in self._lanes.values():
            yield from (member for _, _, member in lane.polls)
            yield from lane.creates

    @property
    def _room(self) -> bool:
        """Whether another create may begin, if its family's limit allows it, too."""
        return self._in_progress < self._concurrency

    def _first(self) -> int | None:
        """Return the place of the next family that can send something, or None."""
        room = self._room
        # A lane whose creates have to wait stays listed, and is passed over: room may come at any
        # time.
        for place, lane in enumerate(self._next):
            if lane.polls or lane.may_create(room=room):
                return place
        return None

    def _list(self, lane: Lane[K]) -> None:
        if not lane.listed and lane.under_way < lane.limit and (lane.polls or lane.creates):
            lane.listed = True
            self._next.append(lane)
