"""Asking for a result until the task ends (spec, `GET /v1/result/{id}`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from muybridge_protocol.codec import RAW_LIMIT, InvalidJson, read_object
from muybridge_protocol.delivery import LONGEST_WAIT, POLL, Verdict, backoff, refusal, retry_after
from muybridge_protocol.errors import (
    ProtocolViolation,
    ResultExpired,
    ResultIncomplete,
    ServiceError,
    ServiceUnreachable,
    TaskCancelled,
    TaskFailed,
    TaskNotFound,
    WaitTimeout,
)
from muybridge_protocol.events import Polled, Throttled, WillRetry
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
from muybridge_protocol.service import Service
from muybridge_protocol.tasks import (
    Result,
    Status,
    Task,
    is_terminal,
    may_follow,
    read_result,
)
from muybridge_protocol.values import evolve, frozen

if TYPE_CHECKING:
    from muybridge_protocol.observations import CallKind

UNKNOWN_PACING = Pacing(5, 30, assumed=True)
"""How often a task is asked for of which only the id is known."""
GROWTH = 1.25
"""What the interval is multiplied with after each reply, up to the pacing's longest."""
WAIT_TIMEOUT = 3600.0
"""Seconds that waiting for a result may take unless said otherwise."""
SILENCE_LIMIT = 600.0
"""Seconds without one valid reply after which waiting is given up."""
SILENT_TRIES = 3
"""Tries that must have failed by then: the caller's own pace may be one query in an hour."""
NEWBORN = 60.0
"""Seconds after its creation in which a task that is not found may yet appear."""
UNREADABLE_TRIES = 3
"""How many more times a reply that cannot be read, or lacks its URL, is asked for."""
QUERY_TRIES = 3
"""How often a single query is tried in all."""
LAST_CALL = 5.0
"""Seconds before the deadline at which a task is asked for that has not answered before."""


def result_query(task: Task, service: Service) -> HttpRequest:
    """Return the result query for *task*, complete but for the key."""
    return HttpRequest(
        method="GET",
        url=service.result_url(task.id),
        headers=api_headers(None),
        authorized=True,
    )


@frozen(kw_only=True)
class Poll(Operation[Result]):
    """Ask for a task's result, once or until it ends.

    Args:
        task: The task.
        once: Whether the first valid reply is the outcome, whatever its status.
        pacing: How often to ask.
        started: When it began, on the driver's clock.
        deadline: When to stop, on the driver's clock, or None for never.
        born: When the task was created, on the driver's clock, or None where not known.
        interval: Seconds until the next query.
        heard: When the last valid reply came, on the driver's clock.
        seen: The status in the last valid reply, or None before the first one.
        failures: Tries that have failed in a row.
        unreadable: Replies in a row that could not be read.
        incomplete: Replies in a row that were completed without a URL.
    """

    task: Task
    once: bool = False
    pacing: Pacing
    started: float
    deadline: float | None
    born: float | None
    interval: float
    heard: float
    seen: Status | str | None = None
    failures: int = 0
    unreadable: int = 0
    incomplete: int = 0

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

        A task that this library has just created is first asked for after one interval; a task
        of which only the id is known may be old, and is asked for at once.

        Args:
            task: The task to wait for.
            service: Where the service is.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.
            seed: A number drawn at random for this operation; its waits follow from it.
            timeout: Seconds that one exchange may take.
            wait: Seconds to wait in all, or None for no limit.
            poll_interval: Seconds between queries, or None for the specification's pace.
        """
        check_seconds("wait", wait, least=-math.inf)
        check_seconds("poll_interval", poll_interval, least=0)
        pacing = _pacing(task) if poll_interval is None else Pacing(poll_interval, poll_interval)
        began = task.began_at
        born = None if began is None else min(now, began - wall + now)
        due = now if born is None else max(now, born + pacing.shortest)
        poll = cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=due,
            task=task,
            pacing=pacing,
            started=now,
            deadline=None if wait is None else now + wait,
            born=born,
            interval=pacing.shortest,
            heard=now,
        )
        if task.status in (Status.FAILED, Status.CANCELLED):
            return evolve(poll, settled=Settled(poll._outcome(task.to_result())))
        return poll._before_the_deadline(now)

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
    ) -> Self:
        """Return the operation that asks for *task* once; the arguments are those of `start`."""
        poll = cls.start(task, service, now=now, wall=wall, seed=seed, timeout=timeout, wait=None)
        return evolve(poll, once=True, due=now, settled=None, events=())

    @property
    def kind(self) -> CallKind:
        """What it does, for those who are told of it."""
        return "get" if self.once else "wait"

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
        """Return the operation after a whole reply."""
        status = response.status
        match POLL.judge_status(status):
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
            case _:
                return self._retry(f"status {status}", now, at_least=retry_after(response) or 0.0)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after an exchange without a whole reply."""
        if POLL.judge_failure(failure) is Verdict.NOT_SENT:
            silent = now - self.heard
            return self._settle(
                ServiceUnreachable(silent=silent, reason=str(failure), task=self.task)
            )
        return self._retry(str(failure), now)

    def _request(self) -> HttpRequest:
        return result_query(self.task, self.service)

    def _read(self, response: HttpResponse, now: float) -> Self:
        try:
            result = read_result(read_object(response.body), family=self.task.family)
        except InvalidJson as error:
            return self._not_understood(f"the reply cannot be read: {error}", response, now)
        if result.id != self.task.id:
            return self._settle(self._violation("it is about another task", response))
        before = self.task.status if self.seen is None else self.seen
        if not may_follow(before, result.status):
            reason = f"the task was {before} and is now said to be {result.status}"
            return self._settle(self._violation(reason, response))
        known: dict[str, Any] = {
            "seen": result.status,
            "heard": now,
            "failures": 0,
            "unreadable": 0,
            "events": (Polled(result, changed=result.status != before),),
        }
        if self.once:
            return evolve(self, **known, settled=Settled(result))
        if is_terminal(result.status):
            return self._end(result, now, known)
        interval = min(self.pacing.longest, self.interval * GROWTH)
        return evolve(self, **known, due=now + self.interval, interval=interval)

    def _end(self, result: Result, now: float, known: dict[str, Any]) -> Self:
        if result.status != Status.COMPLETED or result.url is not None:
            return evolve(self, **known, settled=Settled(self._outcome(result)))
        if self.incomplete >= UNREADABLE_TRIES:
            error = ResultIncomplete(result=result, task=self.task)
            return evolve(self, **known, settled=Settled(error))
        return evolve(self, **known, incomplete=self.incomplete + 1, due=now + self.interval)

    def _outcome(self, result: Result) -> Result | ServiceError:
        if result.status == Status.FAILED:
            return TaskFailed(result=result, task=self.task)
        if result.status == Status.CANCELLED:
            return TaskCancelled(result=result, task=self.task)
        return result

    def _missing(self, response: HttpResponse, now: float) -> Self:
        age = None if self.born is None else now - self.born
        if age is not None and age <= NEWBORN and not self._is_last_try:
            return self._retry("the service does not know the task yet (status 404)", now)
        family = self.task.known_family
        lost = family is not None and family.retention.record_too
        kept = family.retention.seconds if family is not None else None
        kind = TaskNotFound
        if lost and age is not None and kept is not None and age >= kept:
            kind = ResultExpired
        told = refusal(response, self.task)
        return self._settle(
            kind(status=told.status, message=told.message, body=told.body, task=self.task)
        )

    def _throttle(self, response: HttpResponse, now: float) -> Self:
        asked = retry_after(response)
        delay = backoff(self.seed, self.failures + 1) if asked is None else asked
        delay = max(self.interval, min(delay, LONGEST_WAIT))
        # A service that says when to come back is not silent.
        answered = evolve(self, heard=now)
        return answered._again(delay, now, f"status {response.status}", Throttled("poll", delay))

    def _not_understood(self, reason: str, response: HttpResponse, now: float) -> Self:
        tries = self.unreadable + 1
        if tries > UNREADABLE_TRIES or self._is_last_try:
            return self._settle(self._violation(reason, response))
        return evolve(self, unreadable=tries)._retry(reason, now)

    def _retry(self, reason: str, now: float, *, at_least: float = 0.0) -> Self:
        delay = max(
            backoff(self.seed, self.failures + 1),
            min(at_least, LONGEST_WAIT),
            self.pacing.minimum or 0.0,
        )
        return self._again(delay, now, reason, WillRetry("poll", reason, delay, self.failures + 1))

    def _again(self, delay: float, now: float, reason: str, event: WillRetry | Throttled) -> Self:
        """Ask again after *delay* seconds, unless there has been no valid reply for too long."""
        failures = self.failures + 1
        silent = now - self.heard
        lost = silent >= SILENCE_LIMIT and failures >= SILENT_TRIES
        if lost or self._is_last_try:
            return self._settle(ServiceUnreachable(silent=silent, reason=reason, task=self.task))
        again = evolve(self, failures=failures, due=now + delay, events=(event,))
        return again._before_the_deadline(now)

    @property
    def _is_last_try(self) -> bool:
        return self.once and self.failures + 1 >= QUERY_TRIES

    def _before_the_deadline(self, now: float) -> Self:
        """Ask once before the deadline, if there has been no reply and would be none."""
        if self.deadline is None or self.seen is not None or self.due < self.deadline:
            return self
        last_call = self.deadline - min(LAST_CALL, (self.deadline - self.started) / 2)
        return evolve(self, due=last_call) if now < last_call else self

    def _timeout(self) -> WaitTimeout:
        assert self.deadline is not None  # noqa: S101  only a deadline brings this about
        return WaitTimeout(
            waited=self.deadline - self.started,
            status=self.task.status if self.seen is None else self.seen,
            task=self.task,
        )

    def _violation(self, reason: str, response: HttpResponse) -> ProtocolViolation:
        return ProtocolViolation(
            reason=reason,
            status=response.status,
            raw=response.body[:RAW_LIMIT],
            task=self.task,
        )


def _pacing(task: Task) -> Pacing:
    family = task.known_family
    if family is None:
        return UNKNOWN_PACING
    return family.pacing_of(task.requested_model or task.model)


def too_often(task: Task, poll_interval: float | None, service: Service) -> str | None:
    """Return why *poll_interval* is too short for *task*, or None.

    Args:
        task: The task to be asked for.
        poll_interval: Seconds between queries, or None for the specification's pace.
        service: Where the service is; on this machine any interval will do.
    """
    if poll_interval is None or service.is_local:
        return None
    minimum = _pacing(task).minimum
    if minimum is None or poll_interval >= minimum:
        return None
    return (
        f"A poll interval of {poll_interval:g} s is below the {minimum:g} s that the service "
        f"states as the minimum for family {task.family}; it may answer 429."
    )
