"""One request rate for all workers: on a clock that is a number, and in real stores."""

from __future__ import annotations

import heapq
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

import moments
from muybridge import batch
from muybridge.batch import Stage
from muybridge.purchases import Store
from muybridge.purchases.rates import Permits, RequestRate, check_rate, stored_rate
from muybridge_protocol.fleet import Dispatch, Fleet
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Wait
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.service import Service

from .billing import BillingServer, Fault
from .conftest import Run
from .runner_process import horses
from .test_runs import faults

PROCESSING = json.dumps({"id": "t", "status": "processing", "created": 1}).encode()


@attrs.define
class Limited:
    """A service that takes *rate* requests a second, and saves up those of a second at most.

    Attributes:
        refuses_after: When it refuses one request in any case, and asks for a minute's pause.
        taken: When requests were taken.
        refused: When requests were refused.
    """

    rate: float
    refuses_after: float = math.inf
    level: float = 5.0
    at: float = 0.0
    taken: list[float] = attrs.field(factory=list[float])
    refused: list[float] = attrs.field(factory=list[float])

    def answer(self, now: float) -> HttpResponse:
        self.level = min(self.rate, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1 or now > self.refuses_after:
            asked = "1" if self.level < 1 else "60"
            self.refuses_after = self.refuses_after if self.level < 1 else math.inf
            self.refused.append(now)
            return HttpResponse(429, (("Retry-After", asked),), b"{}")
        self.level -= 1
        self.taken.append(now)
        return HttpResponse(200, (("Content-Type", "application/json"),), PROCESSING)


@attrs.define
class Simulation:
    """Workers that share a rate, and a service, on a clock that is a number.

    Attributes:
        tasks: How many tasks each worker waits for.
        asked: When permits were acquired.
        sent: When each worker sent.
    """

    shared: RequestRate
    service: Limited
    tasks: tuple[int, ...] = (100, 100, 100)
    source: Random = attrs.field(factory=lambda: Random(7))  # noqa: S311  delays, not secrets
    asked: list[float] = attrs.field(factory=list[float])
    sent: list[list[float]] = attrs.field(factory=list[list[float]])
    wakes: dict[int, float] = attrs.field(factory=dict[int, float])
    events: list[tuple[float, int, int, int, HttpResponse | None]] = attrs.field(factory=list[Any])

    def run(self, seconds: float) -> None:
        """Let the workers poll their tasks, each every 5 seconds or so."""
        fleets = [self._fleet(number) for number in range(len(self.tasks))]
        self.sent = [[] for _ in fleets]
        for number in range(len(fleets)):
            self._act(fleets[number], number, 0.0)
        while self.events[0][0] <= seconds:
            now, _, number, ticket, response = heapq.heappop(self.events)
            if response is None and now != self.wakes[number]:
                continue  # it has done something else in the meantime
            if response is not None:
                before = fleets[number].paused_until
                fleets[number].receive(ticket, response, now)
                if (until := fleets[number].paused_until) > max(before, now):
                    self.shared = self.shared.throttled(until - now, now=now)
            self._act(fleets[number], number, now)

    def _fleet(self, number: int) -> Fleet[int]:
        fleet: Fleet[int] = Fleet(
            Service(base_url="https://api.test"),
            wall_offset=0.0,
            seed=number,
            concurrency=32,
            wait=None,
            poll_interval=5.0,
            shares_rate=True,
        )
        for key in range(self.tasks[number]):
            fleet.add(key, Task(id="t", family="imgb"), 0.0)
        return fleet

    def _act(self, fleet: Fleet[int], number: int, now: float) -> None:
        while True:
            if wanted := fleet.wanted_permits(now):
                self.asked.append(now)
                self.shared, permits = self.shared.acquire(wanted, sharers=len(self.tasks), now=now)
                fleet.allow(permits.count, now, at=now + permits.after, interval=permits.interval)
            match fleet.next_action(now):
                case Dispatch(ticket=ticket):
                    self.sent[number].append(now)
                    response = self.service.answer(now)
                    self._later(now + self.source.uniform(0.01, 0.2), number, ticket, response)
                case Wait(until):
                    if until != self.wakes.get(number):
                        self.wakes[number] = until
                        self._later(until, number, 0, None)
                    return
                case _:
                    return

    def _later(self, at: float, number: int, ticket: int, response: HttpResponse | None) -> None:
        order = self.source.getrandbits(60)
        heapq.heappush(self.events, (at, order, number, ticket, response))


def test_a_shared_rate_is_used_in_full() -> None:
    """Three workers that want more reach at least 95 % of a limit, with 429s under 1 %."""
    world = Simulation(RequestRate(rate=20.0), Limited(20.0))
    world.run(60.0)
    service = world.service
    assert len(service.taken) >= 0.95 * 20 * 60
    assert len(service.refused) < 0.01 * len(service.taken)
    share = [len(sent) / len(service.taken) for sent in world.sent]
    assert min(share) > 0.3, "each of them gets its share"
    assert len(world.asked) <= 1.3 * 3 * 60, "about one write a second for each worker"


def test_without_the_rate_the_service_refuses_many() -> None:
    """The same workers without a rate show that the service of this test would refuse."""
    world = Simulation(RequestRate(), Limited(20.0))
    world.run(60.0)
    assert len(world.service.refused) > 0.03 * len(world.service.taken)


def test_a_busy_worker_gets_what_others_leave() -> None:
    """A worker with much to do is not held to its share while others have little to do."""
    world = Simulation(RequestRate(rate=20.0), Limited(20.0), tasks=(200, 3, 3))
    world.run(60.0)
    assert len(world.service.taken) >= 0.9 * 20 * 60


def test_a_pause_stops_everybody() -> None:
    """After a 429 to one worker, the others use the permits that they have, and send no more."""
    service = Limited(20.0, refuses_after=30.0)
    world = Simulation(RequestRate(rate=20.0), service)
    world.run(100.0)
    (moment,) = service.refused
    sent = sorted(at for worker in world.sent for at in worker if at > moment + 0.2)
    assert len([at for at in sent if at < moment + 60]) <= 20, "at most a portion for each"
    assert [at for at in sent if moment + 2 < at < moment + 60] == []
    assert sent[-1] > 99


@pytest.mark.parametrize(
    ("rate", "wanted", "sharers", "permits"),
    [
        (None, 7, 3, Permits(count=7)),
        (30.0, 100, 3, Permits(count=10, interval=1 / 30)),
        (30.0, 4, 3, Permits(count=4, interval=1 / 30)),
        (30.0, 100, 0, Permits(count=30, interval=1 / 30)),
        (0.5, 100, 3, Permits(count=1, interval=2.0)),
    ],
)
def test_a_portion(rate: float | None, wanted: int, sharers: int, permits: Permits) -> None:
    """A portion is at most a worker's share of what the rate yields in a second, and at least 1."""
    shared = RequestRate(rate=rate, next_at=50.0)
    after, found = shared.acquire(wanted, sharers=sharers, now=100.0)
    assert found == permits
    assert after.next_at == (50.0 if rate is None else 100.0 + permits.count / rate)
    left = 0.0 if rate is None else after.next_at - 100.0
    assert after.acquire(1, sharers=1, now=100.0)[1].after == left
    assert after.acquire(1, sharers=1, now=90.0)[1].after == left, "the clock was put back"


def test_another_rate_does_not_wait_for_the_last_one() -> None:
    """A rate is changed at once, however far ahead the last one was used; a pause holds."""
    slow, _ = RequestRate(rate=0.001).acquire(1, sharers=1, now=100.0)
    for rate in (None, 10.0):
        limited = slow.limited(rate)
        assert limited.acquire(1, sharers=1, now=101.0)[1].after == 0.0
        paused = limited.throttled(60.0, now=100.0)
        assert paused.acquire(1, sharers=1, now=101.0)[1].after == 59.0


def test_a_clock_that_was_put_back() -> None:
    """Nobody waits longer than was left when the rate was last written: for a seat or a pause."""
    busy, _ = RequestRate(rate=1.0).acquire(1, sharers=1, now=100.0)
    assert busy.acquire(1, sharers=1, now=90.0)[1].after == 1.0
    paused = RequestRate(rate=1.0).throttled(60.0, now=100.0)
    assert paused.acquire(1, sharers=1, now=90.0)[1].after == 60.0
    assert busy.limited(2.0).next_at == 0.0


def test_processes_share_a_rate(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request of a run has a permit of the store, which keeps the rate until it is lifted.

    A 429 pauses every process that works on the batch.
    """
    permits: list[int] = []
    pauses: list[float] = []
    acquire, throttle = (
        moments.at("permits taken").value,
        moments.at("rate paused").value,
    )

    def counting(store: Store, service: str, wanted: int) -> Permits:
        given = acquire(store, service, wanted)
        permits.append(given.count)
        return given

    def noting(store: Store, service: str, seconds: float) -> None:
        pauses.append(seconds)
        throttle(store, service, seconds)

    monkeypatch.setattr(*moments.at("permits taken").place, counting)
    monkeypatch.setattr(*moments.at("rate paused").place, noting)
    with BillingServer(faults(Fault.THROTTLED)) as server:
        assert run(server, horses(2), rate=500).done
        downloads = 2
        assert sum(permits) >= server.requests - downloads
        assert len(pauses) == 1
        permits.clear()
        assert run(server, horses(3)).done
        assert permits
        permits.clear()
        assert run(server, horses(4), rate=math.inf).done
        assert run(server, horses(5)).done
        assert permits == []
        with pytest.raises(ValueError, match="rate must be"):
            run(server, horses(6), rate=0)
    assert batch.status(tmp_path / "out").counts == {Stage.DOWNLOADED: 5}


def test_a_rate_is_above_zero() -> None:
    """A rate of nothing would stop a batch for ever, so it is refused. Infinity is no rate."""
    assert RequestRate() == RequestRate(rate=None, next_at=0.0, paused_until=0.0, written_at=0.0)
    assert (stored_rate(math.inf), stored_rate(0.5)) == (None, 0.5)
    for rate in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="rate must be"):
            check_rate(rate)
    for good in (None, 0.1, math.inf):
        check_rate(good)
