"""What a fleet sends while the service is down for half an hour, and just after it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import WaitTimeout
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.fleet import Dispatch, Fleet, FleetOutcome
from muybridge_protocol.http import HttpResponse, Reason, TransportFailure
from muybridge_protocol.operations import Send, Wait
from muybridge_protocol.records.tasks import Task

from .driving import (
    LINK,
    SERVICE,
    WALL,
    After,
    lost,
    next_action,
    poll,
    reply,
    result,
    unsent,
)

MODELS = {name: next((m.name for m in family.models), f"{name}-2")
          for name, family in FAMILIES.items()}  # fmt: skip
KINDS = [*FAMILIES, "bare id"]
FAULTS: dict[str, After] = {
    "503": After(0.1, reply(503)),
    "503 with Retry-After": After(0.1, reply(503, Retry_After="90")),
    "reset": After(0.1, lost()),
    "refused": After(0.1, unsent()),
    "hangs": After(60.0, lost(reason=Reason.TIMED_OUT)),
}
BEGINS, ENDS, DONE_AT, OVER = 120.0, 1920.0, 2100.0, 2700.0
MINUTE = 60.0


@attrs.frozen
class Seen:
    """What a service saw of a fleet."""

    times: list[float]
    outcomes: list[FleetOutcome[int]]

    def between(self, begin: float, end: float) -> int:
        return sum(begin <= time < end for time in self.times)

    def rate(self) -> float:
        """Return the requests of a minute, once all intervals have grown."""
        return self.between(900, 2700) / 30


def tasks(kind: str, count: int, *, staggered: bool) -> Iterable[Task]:
    """Yield tasks that were created at once, or one after another within half a minute."""
    for number in range(count):
        name = f"t{number}"
        age = 30 * number / count if staggered else 0.0
        if kind == "bare id":
            yield Task(id=name)
        else:
            yield Task(id=name, family=kind, requested_model=MODELS[kind], submitted_at=WALL - age)


def watched(
    kind: str, count: int, fault: str | None, *, begins: float = BEGINS, connections: int = 64,
    staggered: bool = True, wait: float | None = None,
) -> Seen:  # fmt: skip
    """Return what a service sees of a fleet that is down from *begins* to `ENDS`.

    A bare id is of the slowest family. Without a fault tasks never end, else all are completed
    soon after the outage.
    """
    model = MODELS["vidv" if kind == "bare id" else kind]
    fleet: Fleet[int] = Fleet(
        SERVICE, wall_offset=WALL, seed=7, concurrency=count, connections=connections, wait=wait
    )
    for number, task in enumerate(tasks(kind, count, staggered=staggered)):
        fleet.add(number, task, 0.0)

    def react(key: int) -> After:
        if fault is not None and begins <= now < ENDS:
            return FAULTS[fault]
        done = fault is not None and now >= DONE_AT
        status, more = ("completed", {"video_url": LINK}) if done else ("processing", {})
        return After(0.05, result(status, f"t{key}", model=model, **more))

    seen, now = Seen([], []), 0.0
    under_way: list[tuple[float, int, HttpResponse | TransportFailure]] = []
    while now < OVER:
        match fleet.next_action(now):
            case Dispatch() as sent:
                seen.times.append(now)
                after = react(sent.key)
                at = min(now + after.seconds, sent.deadline)
                assert not hasattr(after.reaction, "pieces")
                heapq.heappush(under_way, (at, sent.ticket, after.reaction))  # type: ignore[arg-type]
                continue
            case FleetOutcome() as outcome:
                seen.outcomes.append(outcome)
                continue
            case Wait(until):
                pass
            case _:
                until = OVER
        if under_way and under_way[0][0] <= until:
            now, ticket, reaction = heapq.heappop(under_way)
            if isinstance(reaction, HttpResponse):
                fleet.receive(ticket, reaction, now)
            else:
                fleet.fail(ticket, reaction, now)
        else:
            now = until
    return seen


@cache
def healthy(kind: str, count: int) -> Seen:
    return watched(kind, count, None)


# Every run tries each kind and each fault; the nightly run tries each kind with each fault.
CELLS = [
    pytest.param(
        kind,
        fault,
        id=f"{kind}-{fault}",
        marks=() if number == at % len(FAULTS) else pytest.mark.nightly,
    )
    for at, kind in enumerate(KINDS)
    for number, fault in enumerate(FAULTS)
]


@pytest.mark.parametrize(("kind", "fault"), CELLS)
def test_an_outage_makes_a_fleet_quieter(kind: str, fault: str) -> None:
    """Down for half an hour, a fleet sends no more than in health, recovers, and loses nothing."""
    count = 12 if kind.startswith("img") else 60
    usual, seen = healthy(kind, count), watched(kind, count, fault)
    assert 0 < seen.between(BEGINS, ENDS) <= usual.between(BEGINS, ENDS)
    for minute in range(600, int(ENDS), 60):
        assert seen.between(minute, minute + MINUTE) <= 1.2 * usual.rate()
    assert seen.between(ENDS, ENDS + MINUTE) <= 1.2 * usual.rate()
    first = next(time for time in seen.times if time >= ENDS)
    assert seen.between(first, first + MINUTE) <= 1.2 * usual.rate()
    assert sorted(outcome.key for outcome in seen.outcomes) == list(range(count))
    assert all(outcome.result is not None for outcome in seen.outcomes)


@pytest.mark.parametrize("fault", ["503", "hangs"])
def test_a_thousand_tasks_of_one_moment_come_back_one_after_another(fault: str) -> None:
    """An outage from the first poll on, of tasks that were all created at once, makes no burst."""
    seen = watched("vidg", 1000, fault, begins=0, connections=8, staggered=False)
    usual = 1000.0  # of each minute, with 60 s between the polls of a task
    assert max(seen.between(at, at + MINUTE) for at in range(600, 2040, 10)) <= 1.2 * usual
    assert seen.between(ENDS, DONE_AT) > 1000
    assert len(seen.outcomes) == 1000
    assert all(outcome.result is not None for outcome in seen.outcomes)


@pytest.mark.parametrize("fault", FAULTS)
def test_waits_of_a_fleet_end_at_their_deadline_and_not_before(fault: str) -> None:
    """A wait that ends within the outage ends in time, and its error keeps the pace."""
    seen = watched("vidv", 20, fault, wait=900)
    assert len(seen.outcomes) == 20
    for outcome in seen.outcomes:
        assert isinstance(outcome.error, WaitTimeout)
        assert outcome.error.waited == 900
        assert outcome.task is outcome.error.task
        assert outcome.task is not None
        assert outcome.task.next_poll_at is not None
        assert WALL + 120 < outcome.task.next_poll_at < WALL + 1020


@pytest.mark.parametrize(("kind", "fault"), CELLS)
def test_waits_without_a_fleet_are_as_quiet(kind: str, fault: str) -> None:
    """Many clients that each wait for one task do the same without knowing of each other."""
    down = FAULTS[fault]
    times: list[float] = []
    usual: list[float] = []
    for number, about in enumerate(tasks(kind, 20, staggered=False)):
        model = MODELS["vidv" if kind == "bare id" else kind]
        answer = After(0.05, result("processing", about.id, model=model))
        times += alone(about, number, lambda now, a=answer: down if BEGINS <= now < ENDS else a)
        usual += alone(about, number, lambda _, a=answer: a)
    rate = sum(time >= 900 for time in usual) / 30
    assert sum(BEGINS <= time < ENDS for time in times) <= sum(
        BEGINS <= time < ENDS for time in usual
    )
    if fault != "503 with Retry-After":  # which is obeyed to the second
        assert sum(ENDS <= time < ENDS + MINUTE for time in times) <= 1.25 * rate


def alone(about: Task, seed: int, react: Callable[[float], After]) -> list[float]:
    """Return when one wait polls, until `OVER`."""
    operation, now, times = poll(about, seed=seed, wait=OVER), 0.0, list[float]()
    while now < OVER:
        match next_action(operation, now):
            case Wait(until):
                now = until
                continue
            case Send(_, deadline):
                times.append(now)
                after = react(now)
                now = min(now + after.seconds, deadline)
            case _:
                break
        reaction: Any = after.reaction
        answered = isinstance(reaction, HttpResponse)
        operation = (operation.receive if answered else operation.fail)(reaction, now)
    return times
