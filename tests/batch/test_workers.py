"""Workers on a shared batch, in one process: turns, leases, late responses, failures."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

import moments
from muybridge import Client, ImgbRequest, batch
from muybridge.batch import (
    SharedBatch,
    SharedReport,
    Stage,
)
from muybridge.batch.items.requests import amounts_of_item
from muybridge.purchases import Budget, Measure, StoreUnusable, open_store
from muybridge.purchases import State as Bought
from muybridge_protocol.errors import InvalidInput, LocalError
from muybridge_protocol.estimates import parse_prices
from muybridge_protocol.fleet import Fleet
from muybridge_protocol.purchases import Order, Outcome
from muybridge_protocol.service import Service

from .billing import BillingServer, Fault, at_random
from .conftest import Work
from .fixtures import submit
from .postgres_server import Postgres
from .runner_process import KEY, horses
from .test_runs import faults


def expire(postgres: Postgres, shared: SharedBatch) -> None:
    """Let the lease of every worker run out, and pretend that no request is under way."""
    url = str(shared.store)
    postgres.execute("UPDATE muybridge_owners SET lease_until = 0", url=url)
    postgres.execute("UPDATE muybridge_purchases SET sending_until = 0", url=url)


def declare_dead(postgres: Postgres, shared: SharedBatch) -> Stage:
    """Let every worker be dead, as far as others can tell, and return the first item's stage."""
    expire(postgres, shared)
    with shared.open() as found:
        found.recover()
        return found.entry(1).state


def test_a_worker_finishes_the_batch(
    work: Work, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """A worker takes turns until nothing is left, and saves every result."""
    assert submit(server, shared, 6).counts == {Stage.QUEUED: 6}
    report = work(server, shared)
    assert (report.counts, report.done, report.stopped) == ({Stage.DOWNLOADED: 6}, True, "")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == [
        f"h{number}.png" for number in range(1, 7)
    ]
    assert (server.posts, server.doubles) == (6, [])
    with shared.open() as found:
        assert not list((tmp_path / "out" / f"batch-{found.number:x}").glob("response-*"))
        assert found.owners() == []


def test_two_workers_share_the_items(
    server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """Two workers at once never send the same item."""
    submit(server, shared, 12)
    reports: list[SharedReport] = []

    def go(name: str) -> None:
        with Client(KEY, server.url, poll_interval=0.005) as client:
            reports.append(batch.work(client, shared, tmp_path / name, creates=2, lease=3))

    threads = [threading.Thread(target=go, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.counts for report in reports] == [{Stage.DOWNLOADED: 12}] * 2
    assert (server.posts, server.doubles) == (12, [])


def test_creates_are_limited_apart_from_tasks(
    work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """However many tasks are in progress, only so many creates are under way at once."""
    submit(server, shared, 8)
    under_way: list[int] = []

    def look(_: str) -> None:
        with shared.open() as store:
            counts = store.counts()
            under_way.append(counts.get(Stage.ARMED, 0) + counts.get(Stage.CLAIMED, 0))

    server.on_create = look
    assert work(server, shared, creates=2, concurrency=8).done
    assert max(under_way) <= 2


def test_what_is_ambiguous_is_left_to_a_person(work: Work, shared: SharedBatch) -> None:
    """A create whose response is lost is never resent, and a person decides about it."""
    with BillingServer(lambda _: Fault.ACCEPTED_RESET) as server:
        submit(server, shared, 2)
        report = work(server, shared)
        assert report.counts == {Stage.AMBIGUOUS: 2}
        assert [entry.number for entry in report.ambiguous] == [1, 2]
        assert server.posts == 2
        assert batch.adopt(shared, "h1", server.accepted["horse 1"][0]).state is Stage.SUBMITTED
        assert batch.abandon(shared, "h2").state is Stage.ABANDONED
        assert work(server, shared).counts == {Stage.ABANDONED: 1, Stage.DOWNLOADED: 1}


def test_workers_share_a_rate(
    work: Work, shared: SharedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request of a worker has a permit of the store, and a 429 pauses all workers."""

    permits: list[int] = []
    acquire = moments.at("permits taken").value

    def counting(store: Any, service: str, wanted: int) -> Any:
        given = acquire(store, service, wanted)
        permits.append(given.count)
        return given

    monkeypatch.setattr(*moments.at("permits taken").place, counting)
    with BillingServer(faults(Fault.THROTTLED)) as server:
        batch.submit(shared, horses(2), Service(base_url=server.url), rate=500)
        report = work(server, shared, creates=1)
        downloads = 2
        assert sum(permits) >= server.requests - downloads
        assert len(permits) < server.requests - downloads
    assert (report.counts, server.posts, server.doubles) == ({Stage.DOWNLOADED: 2}, 3, [])


def test_a_budget_holds_for_all_workers(
    work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """A worker ends when the budget is used up, says so, and continues with a higher limit."""
    service = Service(base_url=server.url)
    batch.submit(shared, horses(4), service, budget=Budget(creates=3))
    report = work(server, shared, creates=2)
    assert report.counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 3}
    assert "it needs 1 create, and none of the limit of 3 creates is left" in report.stopped
    assert report.budget is not None
    assert report.budget.spent[Measure.CREATES] == 3
    assert work(server, shared).counts == report.counts
    assert server.posts == 3
    batch.submit(shared, horses(5), service, budget=Budget(creates=5))
    assert work(server, shared).counts == {Stage.DOWNLOADED: 5}
    assert (server.posts, server.doubles) == (5, [])


def test_workers_race_for_a_budget(shared: SharedBatch, tmp_path: Path) -> None:
    """Whatever becomes of their creates, three workers never have more accepted than allowed."""
    weights = {Fault.NONE: 5, Fault.REFUSED: 3, Fault.ACCEPTED_RESET: 1, Fault.LOST_RESET: 1}
    with BillingServer(at_random(5, weights)) as server:
        service = Service(base_url=server.url)
        batch.submit(shared, horses(30), service, budget=Budget(creates=9))

        def go(name: str) -> None:
            with Client(KEY, server.url, poll_interval=0.005) as client:
                batch.work(client, shared, tmp_path / name, creates=3, lease=5)

        threads = [threading.Thread(target=go, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report = batch.shared_status(shared)
        assert report.budget is not None
        assert report.budget.spent[Measure.CREATES] == 9
        assert report.counts[Stage.DOWNLOADED] + report.counts[Stage.AMBIGUOUS] == 9
        assert sum(map(len, server.accepted.values())) <= 9
        assert server.doubles == []


def test_a_cost_that_is_unknown_is_refused(server: BillingServer, shared: SharedBatch) -> None:
    """A limit on cost needs a price for each item."""
    service = Service(base_url=server.url)
    with pytest.raises(InvalidInput, match="item 2: cost: the limit of 5 in cost cannot be"):
        batch.submit(shared, horses(2), service, budget=Budget(cost=5))
    with pytest.raises(StoreUnusable, match="There is no batch") as caught:
        batch.shared_status(shared)
    assert caught.value.lacks == "batch"
    with pytest.raises(ValueError, match="leave `per` out"):
        batch.submit(shared, horses(2), service, budget=Budget(creates=5, per="day"))
    tiers = "".join(
        f'{{family = "imgb", model = "imgb-2", tier = "{tier}", per_picture = 0.5}},\n'
        for tier in ("low", "medium", "high")
    )
    prices = parse_prices(f'currency = "EUR"\nprices = [\n{tiers}]')
    batch.submit(shared, horses(2), service, budget=Budget(cost="0.7"), prices=prices)
    use = batch.submit(shared, horses(3), service, budget=Budget(creates=9)).budget
    assert use is not None
    assert (use.budget, use.spent[Measure.COST]) == (Budget(creates=9, cost="0.7"), 0)
    unlimited = SharedBatch(str(shared.store), "mules")
    assert batch.submit(unlimited, horses(1), service).budget is None
    later = batch.submit(unlimited, horses(1), service, budget=Budget(creates=1)).budget
    assert later is not None
    assert later.budget == Budget(creates=1)


def test_a_429_pauses_all_workers(
    work: Work, shared: SharedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is asked to slow down tells the store, with or without a rate."""

    pauses: list[float] = []
    throttle = moments.at("rate paused").value

    def noting(store: Any, service: str, seconds: float) -> None:
        pauses.append(seconds)
        throttle(store, service, seconds)

    monkeypatch.setattr(*moments.at("rate paused").place, noting)
    with BillingServer(faults(Fault.THROTTLED)) as server:
        submit(server, shared, 1)
        assert work(server, shared).done
    assert len(pauses) == 1
    assert 0 < pauses[0] <= 0.125
    with shared.open() as store:
        store.throttle(1000)
        assert 900 < store.acquire_permits(1).after <= 1000


def test_a_late_response_belongs_to_its_item(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A worker that is declared dead while its create is under way still records the id."""
    submit(server, shared, 1)
    states: list[Stage] = []
    server.on_create = lambda _: states.append(declare_dead(postgres, shared))
    report = work(server, shared)
    assert states == [Stage.AMBIGUOUS]
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 1}, ())
    assert (server.posts, server.doubles) == (1, [])


def test_a_worker_that_was_given_an_open_store_goes_on_as_another_owner(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A worker that is declared dead goes on, whether it was given a store or its place.

    So does everything else that this process does with the store, such as another worker's work.
    """
    submit(server, shared, 3)

    def declare(_: str) -> None:
        if server.posts == 1:
            declare_dead(postgres, shared)

    server.on_create = declare
    with open_store(str(shared.store)) as store:
        opened = SharedBatch(store, shared.name)
        for _ in range(2):
            report = work(server, opened, seconds=20)
            assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 3}, ())
    assert (server.posts, server.doubles) == (3, [])


def test_a_process_goes_on_after_a_run_of_it_was_declared_dead(
    server: BillingServer, postgres: Postgres, tmp_path: Path
) -> None:
    """If a run that uses a client's store is declared dead, only the run ends, not the client."""
    url = postgres.fresh()

    def declare(_: str) -> None:
        if server.posts == 1:
            postgres.execute("UPDATE muybridge_owners SET lease_until = 0", url=url)
            with open_store(url) as other:
                other.free_items()

    server.on_create = declare
    with (
        open_store(url) as store,
        Client(KEY, server.url, store=store, poll_interval=0.005) as client,
    ):
        with pytest.raises(StoreUnusable, match="has not heard of this run"):
            batch.run(client, horses(3), tmp_path, concurrency=1)
        assert batch.run(client, horses(3), tmp_path).counts == {Stage.DOWNLOADED: 3}
        assert client.create(ImgbRequest(model="imgb-2", prompt="a foal")).id
    assert (server.posts, server.doubles) == (4, [])


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "\x1b[2J", "\ud83d"])
def test_names_that_cannot_be_shown(server: BillingServer, shared: SharedBatch, name: str) -> None:
    """No batch is begun under a name that is empty, very long or not printable."""
    with pytest.raises(InvalidInput, match="the name: it must have 1 to 200 characters"):
        submit(server, attrs.evolve(shared, name=name), 1)


def test_the_longest_name(server: BillingServer, shared: SharedBatch) -> None:
    """A batch may have a name of 200 characters."""
    assert submit(server, attrs.evolve(shared, name="ß" * 200), 1).counts == {Stage.QUEUED: 1}


def test_a_late_response_that_nobody_waits_for_is_kept(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """If a person has resubmitted the item meanwhile, the id is a stray, and it is not lost."""
    submit(server, shared, 1)

    def decide(_: str) -> None:
        if server.posts == 1:
            declare_dead(postgres, shared)
            batch.resubmit(shared, 1, i_may_pay_twice=True)
            with shared.open() as found:  # another worker has sent it again
                order = Order(account="a", amounts=amounts_of_item(found.item(1), None))
                found.store.arm(order, key="again", item=(found.number, 1))
                found.store.conclude("again", Outcome(state=Bought.AMBIGUOUS, reason="lost"))

    server.on_create = decide
    report = work(server, shared)
    assert report.counts == {Stage.AMBIGUOUS: 1}
    (stray,) = report.strays
    assert (stray.number, stray.state) == (1, Bought.ACCEPTED)
    assert server.accepted["horse 1"] == [stray.task]


def test_a_late_response_to_what_was_abandoned(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """If a person has abandoned the item meanwhile, it goes on: it is paid for after all."""
    submit(server, shared, 1)

    def abandon(_: str) -> None:
        declare_dead(postgres, shared)
        batch.abandon(shared, 1)

    server.on_create = abandon
    report = work(server, shared)
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 1}, ())
    assert (server.posts, server.doubles) == (1, [])


def test_a_worker_that_is_busy_stays_alive(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A query that takes longer than a lease leaves its item to the worker, which renews it."""
    submit(server, shared, 1)
    owners: list[tuple[str | None, str | None]] = []

    def outlast(_: str) -> None:
        if owners:
            return
        with shared.open() as found:
            before = found.entry(1).owner
            postgres.execute("SELECT pg_sleep(2.1)", url=str(shared.store))
            found.recover()
            owners.append((before, found.entry(1).owner))

    server.on_query = outlast
    assert work(server, shared, lease=2).counts == {Stage.DOWNLOADED: 1}
    ((before, after),) = owners
    assert before is not None
    assert after == before


def test_a_worker_that_was_paused_does_not_send(
    work: Work, server: BillingServer, shared: SharedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A create that was armed too long ago is armed anew, and sent once."""
    submit(server, shared, 1)
    times = iter([0.0, 5.1])  # armed, and about to send; then the clock stands still
    monkeypatch.setattr(*moments.at("purchase about to be sent").place, lambda: next(times, 7.0))
    report = work(server, shared)
    assert report.counts == {Stage.DOWNLOADED: 1}
    with shared.open() as found:
        assert [one.state for one in found.purchases(1)] == [Bought.RELEASED, Bought.ACCEPTED]
    assert (server.posts, server.doubles) == (1, [])


@pytest.mark.parametrize("is_dead", [False, True], ids=["alive", "declared dead"])
def test_a_response_waits_on_the_disk_while_the_database_is_away(
    work: Work,
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_dead: bool,
) -> None:
    """The id of a create that is accepted while the database is away is recorded afterwards."""
    submit(server, shared, 1)
    concluded = moments.at("verdict recorded")
    original = concluded.value
    failed: list[Stage] = []

    def away(store: Any, *arguments: Any) -> Any:
        if not failed:
            with shared.open() as found:
                failed.append(found.entry(1).state)
            raise StoreUnusable("the database is away", away=True)
        return original(store, *arguments)

    if is_dead:
        server.on_create = lambda _: declare_dead(postgres, shared)
    monkeypatch.setattr(*concluded.place, away)
    report = work(server, shared)
    assert failed == [Stage.AMBIGUOUS if is_dead else Stage.ARMED]
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 1}, ())
    assert (server.posts, server.doubles) == (1, [])


def test_another_batch_or_service_is_refused(
    work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """A worker sends nothing for a batch that is not there, or whose tasks are elsewhere."""
    with pytest.raises(StoreUnusable, match="There is no batch"):
        work(server, shared)
    batch.submit(shared, horses(1), Service(base_url="https://service.test"))
    with pytest.raises(StoreUnusable, match=r"begun at https://service\.test"):
        work(server, shared)
    with pytest.raises(StoreUnusable, match="begun at"):
        submit(server, shared, 1)
    assert server.requests == 0


def test_items_are_appended(server: BillingServer, shared: SharedBatch) -> None:
    """Submitting again adds what is new, and refuses what differs."""
    submit(server, shared, 2)
    assert submit(server, shared, 3).counts == {Stage.QUEUED: 3}
    assert submit(server, shared, 3).counts == {Stage.QUEUED: 3}
    with pytest.raises(InvalidInput, match="differs from the batch"):
        batch.submit(shared, horses(3, first=2), Service(base_url=server.url))
    with pytest.raises(InvalidInput, match=r"has 3 items \(got 2\); submit the same"):
        submit(server, shared, 2)
    assert [entry.name for entry in batch.shared_status(shared).entries] == ["h1", "h2", "h3"]


def test_the_address_is_not_shown() -> None:
    """The address of a database may hold a password, and no repr shows it."""
    assert "hush" not in repr(SharedBatch("postgresql://u:hush@host/x", "horses"))


def test_the_place_of_the_batch(
    server: BillingServer, shared: SharedBatch, work: Work, tmp_path: Path
) -> None:
    """A worker without a place uses the batch's; one with another place is refused at once."""
    batch.submit(shared, horses(1), Service(base_url=server.url), out=tmp_path / "a")
    batch.submit(shared, horses(1), Service(base_url=server.url), out=tmp_path / "b")
    with pytest.raises(LocalError, match="and this worker was given"):
        work(server, shared)
    assert server.requests == 0
    assert work(server, shared, out=None).out == str(tmp_path / "b")
    assert [path.name for path in tmp_path.glob("*/*.png")] == ["h1.png"]
    assert (tmp_path / "b" / "h1.png").exists()
    assert work(server, shared, out=tmp_path / "x" / ".." / "b").done


def test_a_place_is_needed(server: BillingServer, shared: SharedBatch, work: Work) -> None:
    """Without a place from anybody, nothing is sent, and a place must mean the same everywhere."""
    submit(server, shared, 1)
    with pytest.raises(LocalError, match="has no place for its results"):
        work(server, shared, out=None)
    with pytest.raises(LocalError, match="another folder on each machine"):
        batch.submit(shared, horses(1), Service(base_url=server.url), out="pictures")
    assert batch.shared_status(shared).out is None
    assert server.requests == 0


def test_a_worker_of_limited_time(server: BillingServer, shared: SharedBatch, work: Work) -> None:
    """When its time is over, a worker gives back what is under way, and another one finishes it."""
    submit(server, shared, 3)
    server.status = "processing"
    counts = dict[Stage, int]()
    for _ in range(100):  # on a busy machine, the time may be over before anything is sent
        if counts != {Stage.SUBMITTED: 3}:
            counts = work(server, shared, seconds=0.3).counts
    assert counts == {Stage.SUBMITTED: 3}
    with shared.open() as store:
        assert store.owners() == []
    server.status = "completed"
    assert work(server, shared, seconds=60).counts == {Stage.DOWNLOADED: 3}
    assert server.posts == 3


def test_what_falls_due_between_two_looks_at_the_clock(
    work: Work, server: BillingServer, shared: SharedBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker does not wait for ever if a poll falls due right after it has asked for permits."""
    submit(server, shared, 2)
    wanted = Fleet[int].wanted_permits
    looks = itertools.count()

    def too_early(fleet: Fleet[int], now: float) -> int:
        return wanted(fleet, now) if next(looks) % 2 else 0

    monkeypatch.setattr(*moments.at("permits wanted").place, too_early)
    assert work(server, shared, creates=1, concurrency=1).counts == {Stage.DOWNLOADED: 2}
    assert server.posts == 2


def test_a_poll_writes_nothing(
    work: Work, server: BillingServer, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a task is polled, a worker writes the same to the database."""
    from muybridge.purchases.postgres_connections import Connection

    execute = Connection.execute
    writes: list[bytes] = []

    def noting(db: Any, statement: Any, *arguments: Any, **more: Any) -> Any:
        if any(word in str(statement) for word in ("INSERT", "UPDATE", "DELETE")):
            writes.append(statement)
        return execute(db, statement, *arguments, **more)

    monkeypatch.setattr(Connection, "execute", noting)

    def written(polls: int) -> int:
        left = iter(range(polls))

        def look(path: str) -> None:
            pending = path.startswith("/media") or next(left, None) is not None
            server.status = "processing" if pending else "completed"

        shared = SharedBatch(postgres.fresh(), "horses")
        submit(server, shared, 1)
        server.on_query = look
        writes.clear()
        assert work(server, shared).counts == {Stage.DOWNLOADED: 1}
        return len(writes)

    assert written(polls=30) == written(polls=1) > 0
