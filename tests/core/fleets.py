"""Fleets on a virtual clock, against a service that is made up."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet, FleetOutcome
from muybridge_protocol.fleet.fleet import seed_of
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations import Create, Poll, Send, Settled, Wait
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.tasks import Task

from .driving import LINK, SEEDED, SERVICE, WALL, After, Streamed, reply, result

Reaction = HttpResponse | TransportFailure


@attrs.frozen
class Seen:
    """A request that a fleet has sent."""

    at: float
    key: Any
    request: HttpRequest
    deadline: float

    @property
    def paid(self) -> bool:
        return self.request.paid


class Shadow:
    """One operation of a fleet, driven alone next to it: it must do the same.

    Args:
        number: The how many-th operation of the fleet it is.
        work: The request or the task.
        now: When it was added.
        options: The fleet's.
    """

    def __init__(
        self, number: int, work: MediaRequest | Task, now: float, options: dict[str, Any]
    ) -> None:
        self._options = options
        self._seed = seed_of(options.get("seed", 0), number)
        self._work = work
        self._operation: Create | Poll | None = None
        self.may_be_sent = True
        """Whether its paid request certainly has not been accepted."""
        if isinstance(work, Task):
            self._operation = self._poll(work, now)

    def sends(self, sent: Dispatch[Any], now: float) -> None:
        """Check what is sent."""
        if self._operation is None:
            assert isinstance(self._work, MediaRequest)
            self._operation = Create.start(
                self._work,
                SERVICE,
                now=now,
                wall=now + WALL,
                seed=self._seed,
            )
        assert self._operation.next_action(now) == Send(sent.request, sent.deadline)
        if sent.request.paid:
            assert self.may_be_sent, "a paid request is sent twice"
            self.may_be_sent = False

    def hears(self, reaction: Reaction, events: tuple[Event, ...], now: float) -> None:
        """Check what a response or failure leads to."""
        operation = self._operation
        assert operation is not None
        if isinstance(reaction, HttpResponse):
            operation = operation.receive(reaction, now)
            self.may_be_sent = reaction.status == 429
        else:
            operation = operation.fail(reaction, now)
            self.may_be_sent = not reaction.sent
        assert operation.events == events
        if isinstance(operation, Create) and isinstance(operation.settled, Settled):
            created = operation.settled.outcome
            if isinstance(created, Task):
                operation = self._poll(created, now)
        self._operation = operation

    def ends(self, outcome: FleetOutcome[Any], now: float) -> None:
        """Check how it ends."""
        assert self._operation is not None
        action = self._operation.next_action(now)
        assert isinstance(action, Settled)
        expected = action.outcome
        task = self._operation.task if isinstance(self._operation, Poll) else None
        if isinstance(expected, ServiceError):
            assert isinstance(outcome.outcome, ServiceError)
            assert type(outcome.outcome) is type(expected)
            assert str(outcome.outcome) == str(expected)
            assert outcome.outcome.task == expected.task
        else:
            assert outcome.outcome == expected
        assert outcome.task == task
        assert outcome.request is (self._work if isinstance(self._work, MediaRequest) else None)

    def _poll(self, task: Task, now: float) -> Poll:
        return Poll.start(
            task,
            SERVICE,
            now=now,
            wall=now + WALL,
            seed=self._seed,
            wait=self._options.get("wait", WAIT_TIMEOUT),
            poll_interval=self._options.get("poll_interval"),
        )


class FleetDrive:
    """Drives a fleet on a virtual clock, each of its operations with a shadow.

    Args:
        react: Says what comes of a request, and when, if not at once.
        options: The fleet's. Without `concurrency`, any number of tasks may be in progress.
    """

    def __init__(self, react: Callable[[Seen], Reaction | After], **options: Any) -> None:
        self._concurrency: int = options.pop("concurrency", 1_000_000)
        self.fleet: Fleet[Any] = Fleet(
            SERVICE, wall_offset=WALL, concurrency=self._concurrency, **SEEDED | options
        )
        self.react = react
        self._options = options
        self.now = 0.0
        self.seen: list[Seen] = []
        self.outcomes: list[FleetOutcome[Any]] = []
        self.settled_at: dict[Any, float] = {}
        self.events: list[tuple[Any, Event]] = []
        self.most: Counter[str] = Counter()
        """Most requests under way at once: `all`, and by family."""
        self.under_way: list[tuple[float, int, Dispatch[Any], Reaction]] = []
        self._shadows: dict[Any, Shadow] = {}
        self._families: dict[Any, str] = {}
        self._begun: set[Any] = set()

    def add(self, key: Any, work: MediaRequest | Task) -> None:
        self.fleet.add(key, work, self.now)
        self._shadows[key] = Shadow(len(self._shadows) + 1, work, self.now, self._options)
        family = work.family if isinstance(work, Task) else work.family.name
        self._families[key] = family or ""
        self._begun.discard(key)  # of one that was dropped
        if isinstance(work, Task):
            self._begun.add(key)

    def outcome(self, key: Any) -> FleetOutcome[Any]:
        (outcome,) = (outcome for outcome in self.outcomes if outcome.key == key)
        return outcome

    def order(self) -> list[Any]:
        """Return whose requests were sent, in their order."""
        return [seen.key for seen in self.seen]

    def times(self, key: Any = None) -> list[float]:
        """Return when requests were sent: of *key*, or all."""
        return [seen.at for seen in self.seen if key is None or seen.key == key]

    def run(self, *, until: float = float("inf"), limit: int = 100_000) -> None:
        for _ in range(limit):
            if not self.step(until):
                return
        raise AssertionError(f"no end after {limit} actions")

    def step(self, until: float = float("inf")) -> bool:
        """Do one action, and return whether there may be another by *until*."""
        match self.fleet.next_action(self.now):
            case Dispatch() as sent:
                self._send(sent)
            case FleetOutcome() as outcome:
                self._shadows[outcome.key].ends(outcome, self.now)
                self.outcomes.append(outcome)
                self.settled_at[outcome.key] = self.now
            case Wait(time):
                assert time > self.now, "a wait that does not wait"
                if self.hear(min(time, until)):
                    return True
                self.now = min(time, until)
                return time <= until
            case Busy():
                assert self.under_way, "busy with nothing"
                return self.hear(until)
            case Done():
                return False
        return True

    def hear(self, until: float = float("inf")) -> bool:
        """Take the next response, if there is one by *until*."""
        if not self.under_way or self.under_way[0][0] > until:
            return False
        at, _, sent, reaction = heapq.heappop(self.under_way)
        self.now = max(self.now, at)
        if isinstance(reaction, HttpResponse):
            events = self.fleet.receive(sent.ticket, reaction, self.now)
        else:
            events = self.fleet.fail(sent.ticket, reaction, self.now)
        self._shadows[sent.key].hears(reaction, events, self.now)
        self.events += [(sent.key, event) for event in events]
        return True

    def _send(self, sent: Dispatch[Any]) -> None:
        self._shadows[sent.key].sends(sent, self.now)
        if sent.key not in self._begun:
            left = {one.key for one in self.fleet.outstanding()}
            assert len(left & self._begun) < self._concurrency, "too many tasks in progress"
            self._begun.add(sent.key)
        seen = Seen(self.now, sent.key, sent.request, sent.deadline)
        self.seen.append(seen)
        told = self.react(seen)
        after = told if isinstance(told, After) else After(0.0, told)
        at, reaction = self.now + after.seconds, after.reaction
        assert not isinstance(reaction, Streamed)
        heapq.heappush(self.under_way, (at, sent.ticket, sent, reaction))
        keys = Counter(sent.key for _, _, sent, _ in self.under_way)
        assert max(keys.values()) == 1, "two exchanges for one operation at once"
        self.most |= Counter(self._families[key] for key in keys)
        self.most["all"] = max(self.most["all"], len(self.under_way))


class MadeUpService:
    """Accepts everything; each task takes a number of queries.

    Args:
        queries: How many queries find a task still at work.
        latency: Seconds to each response.
    """

    def __init__(self, queries: int = 2, latency: float = 0.0) -> None:
        self._left: Counter[str] = Counter()
        self._queries = queries
        self._numbers = itertools.count()
        self.latency = latency
        self.created: Counter[Any] = Counter()

    def __call__(self, seen: Seen) -> After:
        return After(self.latency, self.answer(seen))

    def answer(self, seen: Seen) -> HttpResponse:
        if seen.paid:
            self.created[seen.key] += 1
            return reply(200, {"id": f"made-{next(self._numbers)}", "status": "queued"})
        name = seen.request.url.rpartition("/")[2]
        self._left[name] += 1
        if self._left[name] > self._queries:
            return result("completed", name, video_url=LINK)
        return result("processing", name)


def known_task(name: str, family: str = "imga", *, age: float = 0.0, **fields: Any) -> Task:
    """Return a task of *family* that was created *age* seconds ago at time zero."""
    return Task(id=name, family=family, submitted_at=WALL - age, **fields)
