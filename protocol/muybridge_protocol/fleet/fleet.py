"""Many operations at once: which one is due, which one waits, and slowing down together.

A `Fleet` holds creates and polls, and tells a driver what to do, one action at a time:

    fleet = Fleet(service, wall_offset=wall - now, seed=7, concurrency=32)
    fleet.add("a horse", request, now)          # a MediaRequest: create it, then wait for it
    fleet.add("an old task", task, now)         # a Task: wait for it

    fleet.next_action(now) -> Dispatch(ticket, key, request, deadline)   send it, beside others
                            | FleetOutcome(key, outcome, ...)            an operation has ended
                            | Wait(until)          until then, or until an exchange ends
                            | Busy()               until an exchange ends
                            | Done()               nothing is left
    fleet.receive(ticket, response, now) -> events    after a whole response
    fleet.fail(ticket, failure, now) -> events        after a failed exchange

Exchanges may end in any order. Ask for the next action after each of them. Every key yields exactly
one outcome, unless it is dropped. After `stop`, nothing more is sent, but paid requests under way
are still awaited, and `outstanding` lists what is left. As everywhere in the core, `now` is seconds
on a monotonic clock.

An operation goes through these states. Retries go back and forth between the middle two:

    add(request) -> queued -> create under way <-> create at rest -> an error, or a task:
    add(task) --------------> poll at rest <-> poll under way -----> a result, or an error

`Create` and `Poll` alone decide what to retry and when. The fleet only chooses which of those that
are due goes first: families take turns, creates and polls take turns, and results that expire
sooner go first (`fairness`). After a 429 or a `Retry-After` all of them wait, and after an outage
the polls that have piled up are spread over their interval (`throttle`). There may be a million
tasks, so an operation at rest keeps no record of the service.

`next_action` asks these questions in this order:

1. Is there an outcome? It may have an id, and must reach its user before anything else is sent.
2. Is the fleet stopped? Then only paid requests are awaited. Polls can be repeated later.
3. Is there a free connection? If not, the next event is the end of an exchange: `Busy`.
4. May anything be sent (`throttle`, `allowance`)? If not, the next event is a moment: `Wait`.
   `Busy` would be wrong here. If nothing is under way, the driver would sleep forever.
5. Whose turn is it? The operation may turn out not to be due, because others have polled its task,
   or because the polls are being spread after an outage. Then the next one is asked.

`concurrency` limits the tasks in progress, each from its create to its end: when one has ended, the
next request is created. A task that is added is in progress at the service already. So it counts,
but it is polled whatever the limit.

Fleets on several machines may share one rate (`shares_rate`). Such a fleet sends only with permits
(`allowance`): before each action, ask for as many as `wanted_permits` says, and pass them to
`allow`. If it needs one and has none, its action is to wait until now: ask again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final, Generic

import attrs

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.events import Event
from muybridge_protocol.families import FAMILIES, check_request
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet.actions import Busy, Dispatch, Done, FleetOutcome, K, Outstanding
from muybridge_protocol.fleet.allowance import Allowance
from muybridge_protocol.fleet.fairness import Member, Turns
from muybridge_protocol.fleet.throttle import Throttle
from muybridge_protocol.http import HttpResponse, TransportFailure
from muybridge_protocol.operations import defaults
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.operations.operation import (
    API_TIMEOUT,
    Send,
    Settled,
    Wait,
    check_seconds,
)
from muybridge_protocol.operations.poll import WAIT_TIMEOUT, Poll
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service

CONCURRENCY: Final = defaults.CONCURRENCY
"""Default number of tasks in progress at once."""

_NO_RECORD: Final[JsonObject] = {}
"""Shared, because a million empty dictionaries would take 80 MB."""


class Fleet(Generic[K]):
    """Many creates and polls, and which of them is sent next.

    Args:
        service: Where the service is.
        wall_offset: What to add to the driver's clock to get Unix seconds.
        seed: A random number for this fleet; the delays of all its operations derive from it.
        concurrency: Largest number of tasks in progress at once. No request is created while
            there are as many.
        per_family: The same for one family: one number for all families, or by name.
        connections: Largest number of exchanges at once, creates and polls alike.
        timeout: Timeout of one exchange, in seconds.
        wait: Seconds to wait for a task in all, or None for no timeout.
        poll_interval: Seconds between polls, or None for the specification's pace.
        next_polls: When each task may next be polled, if others may have polled it.
        shares_rate: Whether requests need permits, because others send at the same rate.

    Raises:
        InvalidAddress: The service has no base URL.
        ValueError: A limit is below 1, or a number of seconds is invalid.
    """

    def __init__(
        self,
        service: Service,
        *,
        wall_offset: float,
        seed: int,
        concurrency: int = CONCURRENCY,
        per_family: int | Mapping[str, int] | None = None,
        connections: int = defaults.CONNECTIONS,
        timeout: float = API_TIMEOUT,
        wait: float | None = WAIT_TIMEOUT,
        poll_interval: float | None = None,
        next_polls: NextPolls | None = None,
        shares_rate: bool = False,
    ) -> None:
        limits = dict(per_family) if isinstance(per_family, Mapping) else {}
        if not isinstance(per_family, Mapping) and per_family is not None:
            limits = dict.fromkeys((*FAMILIES, ""), per_family)
        if min((concurrency, connections, *limits.values())) < 1:
            raise ValueError("concurrency, per_family and connections are at least 1")
        check_seconds("timeout", timeout)
        check_seconds("wait", wait, least=-math.inf)
        check_seconds("poll_interval", poll_interval, least=0)
        service.require_base_url()  # fail here, and not in the middle of the run
        self._service = service
        self._wall_offset = wall_offset
        self._seed = seed
        self._connections = connections
        self._timeout = timeout
        self._wait = wait
        self._poll_interval = poll_interval
        self._next_polls = next_polls
        self._throttle = Throttle(seed=seed)
        self._allowance = Allowance() if shares_rate else None
        self._keys: set[K] = set()
        self._turns: Turns[K] = Turns(concurrency, limits)
        self._under_way: dict[int, Member[K]] = {}
        self._ended: deque[FleetOutcome[K]] = deque()
        self._numbers = 0
        self._tickets = 0
        self._stopped = False

    def __len__(self) -> int:
        """Return the number of operations that have not ended."""
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<Fleet of {len(self)}, {len(self._under_way)} under way>"

    @property
    def under_way(self) -> int:
        """Number of requests that have been dispatched and have not ended."""
        return len(self._under_way)

    @property
    def paid(self) -> int:
        """Number of them that may be charged."""
        return sum(isinstance(member.operation, Create) for member in self._under_way.values())

    def add(self, key: K, work: MediaRequest | Task, now: float) -> None:
        """Add a request to create, or a task to wait for.

        Args:
            key: Identifies it in its outcome. It must differ from those of operations under way.
            work: The request or the task.
            now: Seconds on the driver's clock.

        Raises:
            ValueError: The key is in use.
            InvalidRequest: It has a URL on this machine that the service did not give out.
            TypeError: The work is neither a request nor a task.
        """
        if key in self._keys:
            raise ValueError(f"the key {key!r} is in use")
        if not isinstance(work, Task):
            check_request(work, self._service)
        self._keys.add(key)
        self._numbers += 1
        if isinstance(work, Task):
            member = Member(self._numbers, key, None, self._turns.lane(work.family))
            self._turns.begin(member)
            self._rest(member, self._poll(work, self._numbers, now), now)
        else:
            lane = self._turns.lane(work.family.name)
            self._turns.join(Member(self._numbers, key, work, lane))

    def next_action(self, now: float) -> Dispatch[K] | FleetOutcome[K] | Wait | Busy | Done:
        """Return what to do next, at *now*."""
        if self._ended:
            return self._ended.popleft()
        if self._stopped:
            return Busy() if self.paid else Done()
        if not self._keys:
            return Done()
        if len(self._under_way) >= self._connections:
            return Busy()
        turns = self._turns
        turns.wake(now)
        while turns:
            if now < self._throttle.until:
                return Wait(self._throttle.until)
            if self._allowance is not None:
                if self._allowance.wanted(1, now):
                    # Perhaps it has fallen due only since the driver asked how many to get. `Busy`
                    # would let the driver wait for an exchange, and there may be none.
                    return Wait(now)
                if now < self._allowance.at:
                    return Wait(self._allowance.at)
            action = self._begin(turns.next(), now)
            if action is not None:
                return action
        if turns.wakes is not None:
            return Wait(turns.wakes)
        return Busy()

    def wanted_permits(self, now: float) -> int:
        """Return how many permits to ask for before the next action, and pass to `allow`.

        That is 0 unless something is due, no permit is left and nothing else holds it back. Without
        them, the next action is to wait until now.

        Args:
            now: Seconds on the driver's clock.
        """
        held_back = self._ended or self._stopped or now < self._throttle.until
        if self._allowance is None or held_back or len(self._under_way) >= self._connections:
            return 0
        self._turns.wake(now)
        return self._allowance.wanted(self._turns.due, now) if self._turns else 0

    def allow(self, count: int, now: float, *, at: float, interval: float) -> None:
        """Take permits for *count* requests. Those that are not used soon lapse.

        Args:
            count: How many requests may be sent.
            now: Seconds on the driver's clock.
            at: When the first one may be sent, on the driver's clock.
            interval: Seconds between two of them.
        """
        if self._allowance is not None:
            self._allowance.grant(count, at, interval, now)

    @property
    def paused_until(self) -> float:
        """Until when the service has asked to send nothing, on the driver's clock."""
        return self._throttle.until

    def receive(self, ticket: int, response: HttpResponse, now: float) -> tuple[Event, ...]:
        """Process a whole response, and return the events that it caused.

        Args:
            ticket: That of the exchange.
            response: The response.
            now: Seconds on the driver's clock.

        Raises:
            RuntimeError: No such exchange is under way.
        """
        member, operation = self._exchange(ticket)
        operation = operation.receive(response, now)
        wall = now + self._wall_offset
        self._throttle.record_response(response, sent=member.sent, now=now, wall=wall)
        return self._go_on(ticket, operation, now)

    def fail(self, ticket: int, failure: TransportFailure, now: float) -> tuple[Event, ...]:
        """Process the failure of an exchange, and return the events that it caused.

        Args:
            ticket: That of the exchange.
            failure: How far it got.
            now: Seconds on the driver's clock.

        Raises:
            RuntimeError: No such exchange is under way.
        """
        member, operation = self._exchange(ticket)
        operation = operation.fail(failure, now)
        self._throttle.record_failure(sent=member.sent)
        return self._go_on(ticket, operation, now)

    def settle(self, ticket: int, outcome: Task | ServiceError, now: float) -> None:
        """End a dispatch whose create was not sent, because it has an outcome all the same.

        Args:
            ticket: That of the dispatch.
            outcome: The task, which is then waited for, or the error.
            now: Seconds on the driver's clock.

        Raises:
            RuntimeError: No such exchange is under way.
        """
        self._exchange(ticket)
        member = self._release(ticket)
        if isinstance(outcome, Task):
            self._rest(member, self._poll(outcome, member.number, now), now)
        else:
            self._end(member, outcome, None)

    def postpone(self, ticket: int, until: float, now: float) -> None:
        """End a dispatch whose request was not sent. It is dispatched again, after *until*.

        Args:
            ticket: That of the dispatch.
            until: When, on the driver's clock.
            now: Seconds on the same clock.

        Raises:
            RuntimeError: No such exchange is under way.
        """
        self._exchange(ticket)
        self._turns.rest(self._release(ticket), until, now)

    def operation_of(self, ticket: int) -> Create | Poll:
        """Return the operation whose request was dispatched with *ticket*.

        Raises:
            RuntimeError: No such exchange is under way.
        """
        return self._exchange(ticket)[1]

    def take_outcome(self) -> FleetOutcome[K] | None:
        """Return the next outcome, as `next_action` would, or None if there is none.

        It is for drivers that save the outcome of an exchange before anything else happens.
        """
        return self._ended.popleft() if self._ended else None

    def drop(self, key: K) -> None:
        """Forget the operation *key*, unless it has ended: it sends nothing more, with no outcome.

        If a request of it is under way, that counts as ended, and its ticket becomes invalid.
        """
        if key not in self._keys:
            return
        self._keys.remove(key)
        for ticket, member in self._under_way.items():
            if member.key == key:
                self._turns.end(self._release(ticket))
                return
        member = next(one for one in self._turns.members() if one.key == key and not one.dropped)
        member.dropped = True
        if member.operation is not None:
            self._turns.end(member)

    def stop(self) -> None:
        """Send nothing more. `next_action` is `Busy` as long as a paid request is under way."""
        self._stopped = True

    def outstanding(self) -> Iterator[Outstanding[K]]:
        """Yield what has not ended: first what is under way, then the rest in arrival order."""
        resting = [member for member in self._turns.members() if not member.dropped]
        resting.sort(key=attrgetter("number"))
        for members, under_way in ((self._under_way.values(), True), (resting, False)):
            for member in members:
                yield Outstanding(
                    key=member.key, request=member.request, task=member.task, under_way=under_way
                )

    def _begin(self, member: Member[K], now: float) -> Dispatch[K] | FleetOutcome[K] | None:
        """Return what *member* does at *now*, or None if it is not due after all."""
        if member.dropped:
            self._turns.back(member)
            return None
        operation = member.operation
        if operation is None:
            # Only now: its deadline counts from its turn on, however long it stood in the queue.
            operation = member.operation = self._create(member, now)
            self._turns.begin(member)
        match operation.next_action(now):
            case Send(request, deadline):
                if isinstance(operation, Poll):
                    later = self._after_outage(operation, now)
                    if later > now:
                        self._turns.back(member)
                        self._turns.rest(member, later, now)
                        return None
                    paced = operation
                    if self._next_polls is not None:
                        paced = self._next_polls.claim(operation, now)
                    if paced is not operation:  # others have polled the task meanwhile
                        self._turns.back(member)
                        self._rest(member, paced, now)
                        return None
                self._tickets += 1
                self._under_way[self._tickets] = member
                member.sent = now
                self._throttle.record_request(now)
                if self._allowance is not None:
                    self._allowance.use()
                return Dispatch(self._tickets, member.key, request, deadline)
            case Wait():
                self._turns.back(member)
                self._rest(member, operation, now)
                return None
            case Settled(outcome):
                self._turns.back(member)
                assert not isinstance(outcome, Task)  # noqa: S101  a create settles in `receive`
                # The error of a wait that times out says when the task may next be polled.
                task = outcome.task if isinstance(outcome, ServiceError) else None
                self._end(member, outcome, task or member.task)
                return self._ended.popleft()

    def _create(self, member: Member[K], now: float) -> Create:
        assert member.request is not None  # noqa: S101  a task has an operation from the start
        return Create.start(
            member.request,
            self._service,
            now=now,
            wall=now + self._wall_offset,
            seed=seed_of(self._seed, member.number),
            timeout=self._timeout,
        )

    def _after_outage(self, poll: Poll, now: float) -> float:
        """Return when to send *poll*, which is due, or when its wait ends, whichever is sooner."""
        later = self._throttle.after_outage(poll.due, poll.interval_at(now), poll.seed)
        return later if poll.deadline is None else min(later, poll.deadline)

    def _poll(self, task: Task, number: int, now: float) -> Poll:
        wall = now + self._wall_offset
        if self._next_polls is not None:
            task = self._next_polls.recall(task, now=now, wall=wall)
        return Poll.start(
            task,
            self._service,
            now=now,
            wall=wall,
            seed=seed_of(self._seed, number),
            timeout=self._timeout,
            wait=self._wait,
            poll_interval=self._poll_interval,
        )

    def _exchange(self, ticket: int) -> tuple[Member[K], Create | Poll]:
        member = self._under_way.get(ticket)
        if member is None or member.operation is None:
            raise RuntimeError(
                f"No exchange with ticket {ticket!r} is under way: report the end of each Dispatch "
                "once, with the ticket of that Dispatch."
            )
        return member, member.operation

    def _go_on(self, ticket: int, operation: Create | Poll, now: float) -> tuple[Event, ...]:
        """End the exchange of *ticket*, which led to *operation*, and put its member to rest."""
        member = self._release(ticket)
        events = operation.events
        if self._next_polls is not None:
            self._next_polls.note(operation, now)
        # The member keeps its place among those in progress: its task is polled next.
        if isinstance(operation, Create) and operation.settled is not None:
            created = operation.settled.outcome
            if isinstance(created, ServiceError):
                self._end(member, created, None)
                return events
            operation = self._poll(created, member.number, now)
        self._rest(member, operation, now)
        return events

    def _release(self, ticket: int) -> Member[K]:
        """End the exchange of *ticket*, and return its member."""
        member = self._under_way.pop(ticket)
        self._turns.back(member)
        return member

    def _rest(self, member: Member[K], operation: Create | Poll, now: float) -> None:
        """Put *member* to rest until *operation* is due again, unless it has ended."""
        wake = operation.due
        if isinstance(operation, Poll):
            if operation.settled is not None:
                self._end(member, operation.settled.outcome, operation.task)
                return
            self._turns.move(member, operation.task.family)  # the poll may have revealed it
            if operation.deadline is not None:
                wake = min(wake, operation.deadline)  # the wait ends there, even between two polls
            operation = _without_records(operation)
        member.operation = operation
        self._turns.rest(member, wake, now)

    def _end(self, member: Member[K], outcome: Result | ServiceError, task: Task | None) -> None:
        self._keys.discard(member.key)
        self._turns.end(member)
        self._ended.append(
            FleetOutcome(key=member.key, outcome=outcome, request=member.request, task=task)
        )


def _without_records(poll: Poll) -> Poll:
    """Return *poll* without the records of its task, which may take megabytes."""
    task = poll.task
    if task.raw is not _NO_RECORD:
        task = attrs.evolve(task, raw=_NO_RECORD)
    return attrs.evolve(poll, events=(), task=task)


def seed_of(seed: int, number: int) -> int:
    """Return the seed of the *number*-th operation of a fleet with *seed*, a number of 64 bits.

    The seeds lie far apart, because an operation also uses the numbers that follow its seed.
    """
    # 2**64 divided by the golden ratio: its multiples are spread evenly over all numbers of 64
    # bits.
    return (seed + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
