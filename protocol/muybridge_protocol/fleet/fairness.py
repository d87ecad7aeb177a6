"""Whose turn it is: which of many operations that are due sends next.

- Families take turns, so that none waits for another; one at its limit is passed over.
- Within a family creates and polls take turns.
- Of two polls the one goes first whose result expires sooner, but no poll is put off for longer
  than `SHARE` of the time that its result has left, so that none starves.

Nothing here knows what an operation says or hears; a `Fleet` does.
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
"""The part of a result's remaining time that a due poll may wait for more urgent ones."""
LONGEST_LIFE: Final = 86_400.0
"""Seconds that a result is taken to live where the specification does not say."""
WINDOW: Final = 256
"""Due polls among which the more urgent ones go first. Those that become due while so many are
left are put among them one at a time, so that no step takes long."""

K = TypeVar("K", bound=Hashable)


@attrs.define(eq=False, weakref_slot=False)
class Member(Generic[K]):
    """One operation of a fleet, at rest or under way.

    Args:
        number: Its position in the order of arrival.
        key: The key that it was added with.
        request: What is or was to be created, or None where a task was added.
        lane: Its family's.
        operation: What comes next of it, or None for a create that has not begun.
        sent: When its request under way was sent, on the driver's clock.
        dropped: Whether it is to be passed over when it is its turn.
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
"""A heap of members by time. No two have the same number, so that members are never compared."""


def patience(poll: Poll, due: float) -> float:
    """Return the seconds that *poll* may wait for more urgent ones, once it is *due*."""
    if Status.COMPLETED in (poll.seen, poll.task.status):
        return 0.0  # a result that is there should be fetched before its link dies
    family = FAMILIES.get(poll.task.family or "")
    retention = None if family is None else family.retention.seconds
    if retention is None or poll.born is None:
        return SHARE * LONGEST_LIFE
    return SHARE * min(max(poll.born + retention - due, 0.0), LONGEST_LIFE)


class Lane(Generic[K]):
    """What is due of one family.

    Args:
        limit: Most requests under way at once.
    """

    __slots__ = ("creates", "limit", "listed", "poll_next", "polls", "under_way")

    def __init__(self, limit: float) -> None:
        self.limit: float = limit
        self.creates: deque[Member[K]] = deque()
        self.polls: Agenda[K] = []
        self.under_way: int = 0
        self.listed: bool = False
        self.poll_next: bool = False

    def take(self) -> Member[K]:
        """Return the next member: of creates and polls in turn, if there are both."""
        if (self.poll_next or not self.creates) and self.polls:
            self.poll_next = False
            return heapq.heappop(self.polls)[2]
        self.poll_next = True
        return self.creates.popleft()


class Turns(Generic[K]):
    """The operations at rest, and whose turn it is.

    Args:
        limits: Most requests under way at once, by family; the key "" stands for the tasks of
            which no known family is told.
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._lanes: dict[str, Lane[K]] = {}
        self._next: deque[Lane[K]] = deque()
        self._waiting: Agenda[K] = []
        self._due = 0

    def __bool__(self) -> bool:
        """Return whether it is anybody's turn."""
        return bool(self._next)

    @property
    def wakes(self) -> float | None:
        """When the next one is due, on the driver's clock, or None if none waits."""
        return self._waiting[0][0] if self._waiting else None

    def lane(self, family: str | None) -> Lane[K]:
        """Return the lane of *family*."""
        name = family if family is not None and family in FAMILIES else ""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(self._limits.get(name, float("inf")))
        return lane

    def join(self, member: Member[K]) -> None:
        """Let a create wait for its turn, at the end of its family's line."""
        member.lane.creates.append(member)
        self._list(member.lane)

    def rest(self, member: Member[K], until: float, now: float) -> None:
        """Let *member* rest until *until*."""
        if until <= now:
            self._line_up(member, until)
        else:
            heapq.heappush(self._waiting, (until, member.number, member))

    def wake(self, now: float) -> None:
        """Give those that are due by *now* their place in their family's line."""
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
            lane.creates.appendleft(member)  # it has waited already
        self._list(lane)

    def next(self) -> Member[K]:
        """Return the one whose turn it is; until `back` its request counts as under way.

        Raises:
            IndexError: It is nobody's turn.
        """
        lane = self._next.popleft()
        lane.listed = False
        member = lane.take()
        if isinstance(member.operation, Poll):
            self._due -= 1
        lane.under_way += 1
        self._list(lane)
        return member

    def back(self, member: Member[K]) -> None:
        """Take note that no request of *member* is under way any more."""
        member.lane.under_way -= 1
        self._list(member.lane)

    def members(self) -> Iterator[Member[K]]:
        """Yield every operation at rest."""
        yield from (member for _, _, member in self._waiting)
        for lane in self._lanes.values():
            yield from (member for _, _, member in lane.polls)
            yield from lane.creates

    def _list(self, lane: Lane[K]) -> None:
        if not lane.listed and lane.under_way < lane.limit and (lane.polls or lane.creates):
            lane.listed = True
            self._next.append(lane)
