"""Polling a task's result until the task ends (spec, `GET /v1/result/{id}`).

A poll costs nothing and changes nothing, so almost any failure is retried. The task is paid for,
and must not be lost to an outage. Only a terminal status, a refusal, a protocol violation or the
deadline of the wait ends it. Every error carries the task, so that another wait can resume it.

The pace comes from the specification's table, by family and model: the first poll comes after one
interval, and the interval grows. Three rules keep a wait from polling more often than that:

- After a failure, the next poll comes no sooner than after a response. An outage never raises the
  rate.
- A short timeout does not bring the next poll forward: the error that ends the wait carries the
  time from which the task may be polled again.
- As long as only the id is known, the pace is that of an unknown family. The first record names
  the model, and with it the family and its pace.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, assert_never

import attrs

from muybridge_protocol.delivery import (
    LONGEST_WAIT,
    POLL,
    Verdict,
    backoff,
    fraction,
    refusal,
    retry_after,
)
from muybridge_protocol.errors import (
    ProtocolViolation,
    ResultExpired,
    ResultIncomplete,
    ServiceError,
    ServiceUnreachable,
    TaskFailed,
    TaskNotFound,
    WaitTimeout,
)
from muybridge_protocol.events import Polled, ServiceSilent, Throttled, WillRetry
from muybridge_protocol.families.family import Pacing
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations.operation import (
    API_TIMEOUT,
    Operation,
    Send,
    Settled,
    Wait,
    api_headers,
    check_seconds,
)
from muybridge_protocol.records.json import RAW_LIMIT, InvalidJson, read_object
from muybridge_protocol.records.tasks import (
    Result,
    Status,
    Task,
    is_terminal,
    may_follow,
    read_result,
)
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

UNKNOWN_PACING = Pacing(5, 30, assumed=True)
"""The pace for a task of unknown family."""
UNANSWERED_PACING = Pacing(30, 60, assumed=True)
"""The pace for a task of unknown family while its polls fail, also with 429: that of the slowest
family, because it may belong to that one."""
LOCAL_INTERVAL = 0.1
"""Seconds to the first poll of a service on this machine, whose tasks may take milliseconds. From
there the interval grows as usual, to a quarter of the time that the task has taken. So if the
address is a tunnel to the real service, that sees twenty polls in half a minute, and then its own
pace."""
GROWTH = 1.25
"""Factor by which the interval grows after each poll, up to the longest of the pacing."""
SPREAD = 0.25
"""Largest random delay added to a failed poll, as a part of the interval. Without it, tasks that
were polled together before an outage would all be polled at the same moment after it."""
WAIT_TIMEOUT = 3600.0
"""Default timeout of a wait, in seconds."""
SILENCE = 600.0
"""Seconds without a valid response after which each failed poll reports `ServiceSilent`."""
SILENT_TRIES = 3
"""Polls that must have failed by then, because the caller's own pace may be one poll an hour."""
NEWBORN = 60.0
"""Seconds after its creation during which a task that is not found may still appear."""
UNREADABLE_TRIES = 3
"""Additional polls after a response that cannot be read or lacks its URL."""
QUERY_TRIES = 3
"""Attempts in all for a single query."""
TIMELY = 10.0
"""Seconds for which a task may have ended unnoticed, at least, and its end still count as noticed
in time. Where polls are rarer, it is two intervals."""

_ROUNDING = 1e-5
"""Seconds that a time may be off because Unix seconds are large numbers."""


def result_query(task: Task, service: Service) -> HttpRequest:
    """Return the result query for *task*, without the key."""
    return HttpRequest(
        method="GET",
        url=service.result_url(task.id),
        headers=api_headers(None),
        authorized=True,
    )


@attrs.frozen(kw_only=True)
class Poll(Operation[Result]):
    """Query a task's result, once or until the task ends.

    Args:
        task: The task.
        once: Whether the first valid response is the outcome, whatever its status.
        pacing: How often to poll.
        started: When it started, on the driver's clock.
        wall_offset: What to add to the driver's clock to get Unix seconds.
        deadline: When to stop, on the driver's clock, or None for never.
        born: When the task was created, on the driver's clock, or None if unknown.
        interval: Seconds until the next poll.
        heard: When the last valid response arrived, on the driver's clock.
        seen: The status in the last valid response, or None before the first one.
        failures: Attempts that have failed in a row.
        unreadable: Responses in a row that could not be read.
        incomplete: Responses in a row that said `completed` without a URL.
        reason: Why the last attempt failed, in words.
    """

    task: Task
    once: bool = False
    pacing: Pacing
    started: float
    wall_offset: float
    deadline: float | None
    born: float | None
    interval: float
    heard: float
    seen: Status | str | None = None
    failures: int = 0
    unreadable: int = 0
    incomplete: int = 0
    reason: str = ""

    @classmethod
    def start(
        cls,
        task: Task,
        service: Service,
        *,
        now: float,
        wall: float,
        seed: int,
        timeout: float = API_TIMEOUT,
        wait: float | None = WAIT_TIMEOUT,
        poll_interval: float | None = None,
    ) -> Self:
        """Return the operation that waits for *task* to end.

        A task that was just created is first polled after one interval. If only the id is known,
        the task may be old, and is polled at once. No task is polled before its `next_poll_at`,
        but one that lies too far ahead can only come from a wrong clock and is limited.

        Args:
            task: The task to wait for.
            service: Where the service is.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Timeout of one exchange, in seconds.
            wait: Seconds to wait in all, or None for no timeout.
            poll_interval: Seconds between polls, or None for the specification's pace.
        """
        check_seconds("wait", wait, least=-math.inf)
        check_seconds("poll_interval", poll_interval, least=0)
        if poll_interval is None:
            pacing = _pacing(task, service)
        else:
            pacing = Pacing(poll_interval, poll_interval)
        family, began, permitted = task.known_family, task.began_at, task.next_poll_at
        # Clocks differ: a task that seems to come from the future was created just now.
        born = None if began is None else min(now, began - wall + now)
        due = now
        # If the wall clock was set back, every wait seems to begin when the task was created.
        if began is not None and born is not None and (permitted is None or began <= wall):
            due = max(now, born + pacing.shortest)
        if permitted is not None:
            due = max(due, now + _limited(permitted - wall, pacing))
        if due > now:
            due = math.ceil(due * 1e6) / 1e6  # up: rounding of Unix seconds must not poll too soon
        family_name = task.family if family is None else family.name
        if family_name != task.family or permitted is not None:
            task = attrs.evolve(task, family=family_name, next_poll_at=None)
        poll = cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=due,
            task=task,
            pacing=pacing,
            started=now,
            wall_offset=wall - now,
            deadline=None if wait is None else now + wait,
            born=born,
            interval=pacing.shortest,
            heard=now,
        )
        if task.status in (Status.FAILED, Status.CANCELLED):
            return attrs.evolve(poll, settled=Settled(poll._outcome(task.to_result())))
        return poll

    @classmethod
    def query(
        cls,
        task: Task,
        service: Service,
        *,
        now: float,
        wall: float,
        seed: int,
        timeout: float = API_TIMEOUT,
        poll_interval: float | None = None,
    ) -> Self:
        """Return the operation that queries *task* once; the arguments are those of `start`.

        The first attempt is immediate. Retries keep the pace.
        """
        poll = cls.start(
            task,
            service,
            now=now,
            wall=wall,
            seed=seed,
            timeout=timeout,
            wait=None,
            poll_interval=poll_interval,
        )
        # `start` settles a task that failed when it was created. A query asks for it all the same.
        return attrs.evolve(poll, once=True, due=now, settled=None, events=())

    @property
    def has_ended(self) -> bool:
        """Whether the service has reported a terminal status."""
        return self.settled is not None and self.seen is not None and is_terminal(self.seen)

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "get" if self.once else "wait"

    def age(self, now: float) -> float | None:
        """Return how many seconds ago the task was created, or None if that is not known."""
        return None if self.born is None else now - self.born

    def postpone(self, due: float, now: float) -> Self:
        """Return the operation, which is due, postponed until the task may be polled again.

        Args:
            due: When it may be polled, on the driver's clock.
            now: Seconds on the same clock.
        """
        return self if due - now <= _ROUNDING else attrs.evolve(self, due=due)

    def interval_at(self, now: float) -> float:
        """Return the seconds from a poll that ends at *now* to the next one.

        One that was late, because others had to go first or an exchange hung, is followed by no
        sooner ones than if all had been in time.
        """
        return min(self.pacing.longest, max(self.interval, now - self.due))

    def next_action(self, now: float) -> Send | Wait | Settled[Result]:
        """Return what to do next, at *now*."""
        if self.settled is not None:
            return self.settled
        deadline = math.inf if self.deadline is None else self.deadline
        if now >= deadline:
            return Settled(self._timeout())
        if now < self.due:
            return Wait(min(self.due, deadline))
        return Send(self._request(), min(now + self.timeout, deadline))

    def _receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a whole response."""
        status = response.status
        match verdict := POLL.judge_status(status):
            case Verdict.ANSWER:
                return self._read(response, now)
            case Verdict.REFUSED:
                return self._settle(refusal(response, self.task))
            case Verdict.MISSING:
                return self._missing(response, now)
            case Verdict.THROTTLED:
                return self._throttle(response, now)
            case Verdict.VIOLATION:
                return self._settle(self._violation(f"a redirect (status {status})", response))
            case Verdict.RETRY:
                pause = retry_after(response, now + self.wall_offset)
                return self._retry(f"status {status}", now, pause=pause)
            case _:
                assert_never(verdict)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange."""
        if POLL.judge_failure(failure) is Verdict.NOT_SENT:
            silent = now - self.heard
            return self._settle(
                ServiceUnreachable(
                    silent=silent, reason=str(failure), advice=failure.remedies, task=self.task
                )
            )
        return self._retry(str(failure), now)

    def _request(self) -> HttpRequest:
        return result_query(self.task, self.service)

    def _read(self, response: HttpResponse, now: float) -> Self:
        try:
            result = read_result(read_object(response.body), family=self.task.family)
        except InvalidJson as error:
            return self._not_understood(f"the response cannot be read: {error}", response, now)
        if result.id != self.task.id:
            return self._settle(self._violation("the response is for another task", response))
        before = self.task.status if self.seen is None else self.seen
        if not may_follow(before, result.status):
            reason = f"the task was {before} and is now said to be {result.status}"
            return self._settle(self._violation(reason, response))
        news: dict[str, Any] = {
            "seen": result.status,
            "heard": now,
            "failures": 0,
            "unreadable": 0,
            "events": (self._polled(result, before, now),),
        }
        poll = self._with_family_of(result, now)
        if poll.once:
            return attrs.evolve(poll, **news, settled=Settled(result))
        if is_terminal(result.status):
            return poll._end(result, now, news)
        interval = poll.interval_at(now)
        grown = min(poll.pacing.longest, interval * GROWTH)
        return attrs.evolve(poll, **news, due=now + interval, interval=grown)

    def _polled(self, result: Result, before: Status | str | None, now: float) -> Polled:
        age = self.age(now)
        took = age if is_terminal(result.status) and self._is_timely(now) else None
        return Polled(result, changed=result.status != before, age=age, took=took)

    def _is_timely(self, now: float) -> bool:
        """Whether a task that has ended was still in progress shortly before *now*."""
        # It was in progress when it was created. Whoever waits later may find that it ended long
        # ago, and whoever has seen the end before has told it.
        last = self.born if self.seen is None else self.heard
        ended = self.seen is not None and is_terminal(self.seen)
        return last is not None and not ended and now - last <= max(TIMELY, 2 * self.pacing.longest)

    def _with_family_of(self, result: Result, now: float) -> Self:
        """Return the operation with the family that *result* reveals, if it was unknown."""
        task = self.task
        if task.family is not None or result.family is None:
            return self
        created = result.created if task.created is None else task.created
        task = attrs.evolve(
            task, family=result.family, model=task.model or result.model, created=created
        )
        began = task.began_at
        born = None if began is None else min(now, began - self.wall_offset)
        if self.pacing != UNKNOWN_PACING:  # the caller has chosen it
            return attrs.evolve(self, task=task, born=born)
        pacing = _pacing(task, self.service)
        # After failures, knowing the family must not raise the rate.
        interval = max(self.interval, pacing.shortest) if self.failures else pacing.shortest
        return attrs.evolve(self, task=task, born=born, pacing=pacing, interval=interval)

    def _end(self, result: Result, now: float, news: dict[str, Any]) -> Self:
        if result.status != Status.COMPLETED or result.url is not None:
            return attrs.evolve(self, **news, settled=Settled(self._outcome(result)))
        if self.incomplete >= UNREADABLE_TRIES:
            error = ResultIncomplete(result=result, task=self.task)
            return attrs.evolve(self, **news, settled=Settled(error))
        return attrs.evolve(self, **news, incomplete=self.incomplete + 1, due=now + self.interval)

    def _outcome(self, result: Result) -> Result | ServiceError:
        if result.status in (Status.FAILED, Status.CANCELLED):
            return TaskFailed(result=result, task=self.task)
        return result

    def _missing(self, response: HttpResponse, now: float) -> Self:
        age = self.age(now)
        if age is not None and age <= NEWBORN and not self._is_last_try:
            return self._retry("the service does not know the task yet (status 404)", now)
        family = self.task.known_family
        lost = family is not None and family.retention.record_too
        kept = family.retention.seconds if family is not None else None
        kind = TaskNotFound
        if lost and age is not None and kept is not None and age >= kept:
            kind = ResultExpired
        error = refusal(response, self.task)
        return self._settle(
            kind(status=error.status, message=error.message, body=error.body, task=self.task)
        )

    def _throttle(self, response: HttpResponse, now: float) -> Self:
        reason = f"status {response.status}"
        # A service that answers 429 is not silent.
        answered = attrs.evolve(self, heard=now)
        pause = retry_after(response, now + self.wall_offset)
        return answered._again(reason, now, pause=pause, throttled=True)

    def _not_understood(self, reason: str, response: HttpResponse, now: float) -> Self:
        tries = self.unreadable + 1
        if tries > UNREADABLE_TRIES or self._is_last_try:
            return self._settle(self._violation(reason, response))
        return attrs.evolve(self, unreadable=tries)._retry(reason, now)

    def _retry(self, reason: str, now: float, *, pause: float | None = None) -> Self:
        return self._again(reason, now, pause=pause, throttled=False)

    def _again(self, reason: str, now: float, *, pause: float | None, throttled: bool) -> Self:
        """Retry no sooner than after a response, so that an outage never raises the rate."""
        failures, silent = self.failures + 1, now - self.heard
        if self._is_last_try:
            return self._settle(ServiceUnreachable(silent=silent, reason=reason, task=self.task))
        interval, longest = self.interval_at(now), self.pacing.longest
        if self.pacing == UNKNOWN_PACING and not self.once:
            longest = UNANSWERED_PACING.longest
            interval = max(self.interval, UNANSWERED_PACING.shortest)
        if pause is None:
            spread = interval * (1 + SPREAD * fraction(self.seed + failures))
            delay = max(backoff(self.seed, failures), spread)
        else:
            delay = max(min(pause, LONGEST_WAIT), interval)
        event: Throttled | ServiceSilent | WillRetry
        if throttled:
            event = Throttled("poll", delay)
        elif silent >= SILENCE and failures >= SILENT_TRIES:
            event = ServiceSilent(silent, reason, delay)
        else:
            event = WillRetry("poll", reason, delay, failures)
        return attrs.evolve(
            self,
            failures=failures,
            reason=reason,
            due=now + delay,
            interval=min(longest, interval * GROWTH),
            events=() if self._ends_by(now + delay) else (event,),
        )

    def _ends_by(self, due: float) -> bool:
        """Whether the wait has ended at *due*, so that what is due then is not announced."""
        return self.deadline is not None and due >= self.deadline

    @property
    def _is_last_try(self) -> bool:
        return self.once and self.failures + 1 >= QUERY_TRIES

    def _timeout(self) -> WaitTimeout:
        assert self.deadline is not None  # noqa: S101  nothing else causes it
        return WaitTimeout(
            waited=self.deadline - self.started,
            status=self.task.status if self.seen is None else self.seen,
            silent=self.deadline - self.heard if self.failures else None,
            reason=self.reason if self.failures else "",
            task=attrs.evolve(self.task, next_poll_at=self.due + self.wall_offset),
        )

    def _violation(self, reason: str, response: HttpResponse) -> ProtocolViolation:
        return ProtocolViolation(
            reason=reason,
            status=response.status,
            raw=response.body[:RAW_LIMIT],
            task=self.task,
        )


def _limited(seconds: float, pacing: Pacing) -> float:
    """Return *seconds* until a permitted poll, limited because a wrong clock may have set them."""
    return min(seconds, max(pacing.longest, LONGEST_WAIT))


def _pacing(task: Task, service: Service) -> Pacing:
    family = task.known_family
    pacing = UNKNOWN_PACING
    if family is not None:
        pacing = family.pacing_of(task.requested_model or task.model)
    return attrs.evolve(pacing, shortest=LOCAL_INTERVAL) if service.is_local else pacing


def too_often(task: Task, poll_interval: float | None, service: Service) -> str | None:
    """Return why *poll_interval* is too short for *task*, as a sentence, or None.

    Args:
        task: The task to poll.
        poll_interval: Seconds between polls, or None for the specification's pace.
        service: Where the service is; on this machine any interval is allowed.
    """
    if poll_interval is None or service.is_local:
        return None
    minimum = _pacing(task, service).minimum
    if minimum is None or poll_interval >= minimum:
        return None
    return (
        f"A poll interval of {poll_interval:g} s is below the {minimum:g} s that the service "
        f"states as the minimum for family {task.family}; it may answer 429."
    )
