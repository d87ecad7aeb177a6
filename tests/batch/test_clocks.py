"""Workers whose clocks are an hour off: the store's clock decides about leases and the rate."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

import moments
from client.event_loops import ClockEventLoop, TrioClock
from muybridge import AsyncClient, Client, batch
from muybridge.batch import Report, SharedBatch, SharedReport, Stage
from muybridge.batch.items.folder import own_store
from muybridge.purchases import Store
from muybridge.purchases.rates import Permits
from muybridge.testing import SkippingClock
from muybridge_protocol.service import Service

from .begun import begun
from .billing import BillingServer
from .conftest import Work
from .fixtures import submit
from .postgres_server import Postgres
from .runner_process import KEY, horses

HOUR = 3600.0
SHIFTS = {"ahead": HOUR, "right": 0.0, "behind": -HOUR}
RATE = 400.0
ITEMS = 6
PACE = 5.0


class Skewed(SkippingClock):
    """The machine's clock, wrong by *shift* seconds, which waits for nothing."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self._shift = shift
        self._began = super().monotonic()

    @property
    def waited(self) -> float:
        """Seconds that it has skipped, and a few more."""
        return self.monotonic() - 2 * HOUR - self._shift - self._began

    def monotonic(self) -> float:
        """Return wrong monotonic seconds, above 0 however lately the machine was started."""
        return super().monotonic() + 2 * HOUR + self._shift

    def wall(self) -> float:
        """Return wrong Unix seconds."""
        return super().wall() + self._shift


Go = Callable[..., Any]
Both = tuple[Go, Go]


@pytest.fixture(params=["requests", "trio", "asyncio"])
def by_clock(request: pytest.FixtureRequest) -> Go:
    """Call the blocking or the async function of a batch with a client that goes by a clock."""

    def go(server: BillingServer, clock: Skewed, both: Both, *given: Any) -> Any:
        *arguments, options = given
        with Client(KEY, server.url, poll_interval=PACE, clock=clock) as client:
            return both[0](client, *arguments, **options)

    async def go_async(
        server: BillingServer, clock: Skewed, both: tuple[Go, Go], *given: Any
    ) -> Any:
        *arguments, options = given
        async with AsyncClient(KEY, server.url, poll_interval=PACE, wall=clock.wall) as client:
            return await both[1](client, *arguments, **options)

    def under_trio(server: BillingServer, clock: Skewed, *given: Any) -> Any:
        return trio.run(go_async, server, clock, *given, clock=TrioClock(clock))

    def under_asyncio(server: BillingServer, clock: Skewed, *given: Any) -> Any:
        with asyncio.Runner(loop_factory=lambda: ClockEventLoop(clock)) as runner:
            return runner.run(go_async(server, clock, *given))

    return {"requests": go, "trio": under_trio, "asyncio": under_asyncio}[request.param]


WORK = (batch.work, batch.work_async)
RUN = (batch.run, batch.run_async)


@pytest.fixture
def permits(monkeypatch: pytest.MonkeyPatch) -> list[Permits]:
    """The permits that stores gave."""
    given: list[Permits] = []
    taken = moments.at("permits taken")
    acquire = taken.value

    def acquiring(store: Store, service: str, wanted: int) -> Permits:
        given.append(acquire(store, service, wanted))
        return given[-1]

    monkeypatch.setattr(*taken.place, acquiring)
    return given


def test_workers_of_a_database(
    by_clock: Go,
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    permits: list[Permits],
    tmp_path: Path,
) -> None:
    """Nothing is paid for twice, no live worker is declared dead, and each request has a permit."""
    service = Service(base_url=server.url)
    batch.submit(shared, horses(ITEMS), service, rate=RATE)
    clock_of_database = "SELECT extract(epoch FROM clock_timestamp())::float8"
    ((began,),) = postgres.execute(clock_of_database)

    def go(name: str) -> SharedReport:
        clock, out = Skewed(SHIFTS[name]), tmp_path / name
        return by_clock(server, clock, WORK, shared, out, {"creates": 1})

    with ThreadPoolExecutor(len(SHIFTS)) as threads:
        reports = [*threads.map(go, SHIFTS)]
    assert all(report.done for report in reports)
    with shared.open() as found:
        assert found.counts() == {Stage.DOWNLOADED: ITEMS}
        assert found.strays() == []
    assert (server.posts, server.doubles) == (ITEMS, [])
    ((next_at,),) = postgres.execute("SELECT next_at FROM muybridge_rates", url=str(shared.store))
    given = sum(each.count for each in permits)
    assert given >= server.requests - ITEMS, "each request but the downloads has one"
    assert next_at >= began + given / RATE, "no permit was given twice"
    assert max(each.after for each in permits) < 60, "and nobody waits for an hour"


def test_runs_of_a_folder(
    by_clock: Go,
    server: BillingServer,
    permits: list[Permits],
    tmp_path: Path,
) -> None:
    """The same is true of processes that work on a batch in a folder."""
    began, out = time.time(), tmp_path / "out"
    begun(out, (item.new() for item in batch.read_items(horses(ITEMS))), server.url).store.close()

    def go(name: str) -> Report:
        options = {"concurrency": 1, "rate": RATE}
        return by_clock(server, Skewed(SHIFTS[name]), RUN, None, out, options)

    with ThreadPoolExecutor(len(SHIFTS)) as threads:
        assert len([*threads.map(go, SHIFTS)]) == len(SHIFTS)
    assert batch.status(out).counts == {Stage.DOWNLOADED: ITEMS}
    with closing(sqlite3.connect(own_store(out))) as db:
        ((next_at,),) = db.execute("SELECT next_at FROM muybridge_rates")
    assert (server.posts, server.doubles) == (ITEMS, [])
    given = sum(each.count for each in permits)
    assert given >= server.requests - ITEMS
    assert next_at >= began + given / RATE
    assert max(each.after for each in permits) < 60


_AHEAD = """
CREATE TABLE ahead AS SELECT interval '1 hour' AS ahead;
CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
    SELECT pg_catalog.clock_timestamp() + ahead FROM ahead
$$
"""


def put_back(postgres: Postgres) -> tuple[SharedBatch, Callable[[], None]]:
    """Return a batch whose database has a clock that is an hour ahead, and what puts that back."""
    fresh = postgres.fresh()
    ((schema,),) = postgres.execute("SELECT current_schema", url=fresh)
    postgres.execute(_AHEAD, url=fresh)
    url = postgres.with_options(f"-c search_path={schema},pg_catalog")

    def right() -> None:
        postgres.execute("UPDATE ahead SET ahead = interval '0'", url=url)

    return SharedBatch(url, "horses"), right


@pytest.mark.parametrize("rate", [RATE, math.inf], ids=["limited", "lifted"])
def test_a_database_whose_clock_is_put_back(
    rate: float, by_clock: Go, server: BillingServer, postgres: Postgres, tmp_path: Path
) -> None:
    """Nobody waits for the hour, whether the rate stays or is lifted."""
    shared, right = put_back(postgres)
    service = Service(base_url=server.url)
    batch.submit(shared, horses(1), service, rate=RATE)
    assert by_clock(server, Skewed(0.0), WORK, shared, tmp_path / "first", {}).done
    right()
    batch.submit(shared, horses(2), service, rate=rate)
    clock = Skewed(0.0)
    assert by_clock(server, clock, WORK, shared, tmp_path / "second", {}).done
    assert clock.waited < HOUR / 4
    assert (server.posts, server.doubles) == (2, [])


def test_a_dead_worker_of_another_time(
    work: Work, server: BillingServer, postgres: Postgres
) -> None:
    """Its items are taken over although its lease seems to hold for an hour."""
    shared, right = put_back(postgres)
    submit(server, shared, 2)
    with shared.open() as dead:
        dead.store.register(1)
        assert dead.take(1, creates=1)
    right()
    assert work(server, shared, lease=1, seconds=20).done
    assert (server.posts, server.doubles) == (2, [])


def test_a_machine_whose_clock_is_put_back(
    by_clock: Go, server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a batch in a folder, whose rate goes by the machine's clock."""
    out, wall = tmp_path / "out", time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: wall() + HOUR)
        options = {"rate": RATE, "limit": 1}
        assert by_clock(server, Skewed(HOUR), RUN, horses(2), out, options).counts
    clock = Skewed(0.0)
    assert by_clock(server, clock, RUN, None, out, {}).done
    assert clock.waited < HOUR / 4
    assert (server.posts, server.doubles) == (2, [])


@pytest.mark.parametrize("first", ["ahead", "behind"])
def test_a_task_from_another_clock(
    first: str, by_clock: Go, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """A worker waits as long as it was told, and takes over a task without the other one's clock.

    What the first one notes about the next poll is an hour off for the second.
    """
    batch.submit(shared, horses(1), Service(base_url=server.url))
    clock = Skewed(SHIFTS[first])
    server.status = "processing"
    options = {"timeout": 30.0, "seconds": 60.0}
    by_clock(server, clock, WORK, shared, tmp_path / first, options)
    assert batch.shared_status(shared).counts == {Stage.SUBMITTED: 1}
    assert 30 <= clock.waited < 120
    server.status = "completed"
    clock = Skewed(-SHIFTS[first])
    assert by_clock(server, clock, WORK, shared, tmp_path / "second", {}).done
    assert clock.waited < HOUR / 10
    assert (server.posts, server.doubles) == (1, [])
