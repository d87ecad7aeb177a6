"""A store that is used for several things at once: each of them lives and dies by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moments import at
from muybridge import Client, ImgbRequest, batch
from muybridge.batch import SharedBatch, SharedReport, Stage
from muybridge.purchases import State as Bought
from muybridge.purchases import open_store
from processes import Nursery

from .billing import BillingServer
from .conftest import Run
from .fixtures import submit
from .postgres_server import Postgres
from .runner_process import KEY, horses

_WITHIN = 30.0


def _within(work: Callable[[], SharedReport]) -> SharedReport:
    """Return what *work* returns, which must not take for ever."""
    reports: list[SharedReport] = []
    thread = threading.Thread(target=lambda: reports.append(work()), daemon=True)
    thread.start()
    thread.join(_WITHIN)
    assert reports, "the worker never ends"
    return reports[0]


def test_a_store_serves_one_turn_after_another(
    server: BillingServer, store: str, tmp_path: Path
) -> None:
    """A worker's next turn does not bury itself for the one before, whose files are still there."""
    with open_store(store) as mine, Client(KEY, server.url, poll_interval=0.005) as client:
        shared = SharedBatch(mine, "horses")
        for count in (3, 6):
            submit(server, shared, count)
            report = _within(lambda: batch.work(client, shared, tmp_path / "out", seconds=20))
            assert report.counts == {Stage.DOWNLOADED: count}
    assert (server.posts, server.doubles) == (6, [])


def test_a_worker_does_not_bury_a_client_with_the_same_store(
    server: BillingServer, store: str, tmp_path: Path
) -> None:
    """A request that a client is sending stays under way, whatever a worker beside it does."""
    states: list[list[Bought]] = []
    request = ImgbRequest(model="imgb-2", prompt="a horse at rest")
    with (
        open_store(store) as mine,
        Client(KEY, server.url, poll_interval=0.005, store=mine) as client,
        Client(KEY, server.url, poll_interval=0.005) as other,
    ):
        shared = SharedBatch(mine, "horses")
        submit(server, shared, 1)
        batch.work(other, shared, tmp_path / "out")

        def work(_: str) -> None:
            server.on_create = lambda _: None
            batch.work(other, shared, tmp_path / "out", seconds=1)
            states.append([one.state for one in mine.purchases()])

        server.on_create = work
        client.create_once("a horse", request)
        assert states == [[Bought.ACCEPTED, Bought.ARMED]]


def test_a_worker_whose_leases_run_out_at_once_ends_all_the_same(
    server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """It takes one incarnation after the other, but not for longer than it was told."""
    submit(server, shared, 1)
    with Client(KEY, server.url, poll_interval=0.005) as client:
        out = tmp_path / "out"
        report = _within(lambda: batch.work(client, shared, out, seconds=0.5, lease=1e-6))
        assert (report.counts, server.posts) == ({Stage.QUEUED: 1}, 0)
        with pytest.raises(ValueError, match=r"lease must be a positive number .* \(got -1\)"):
            batch.work(client, shared, out, lease=-1)


def test_a_run_that_is_declared_dead_says_how_to_resume(
    run: Run, server: BillingServer, postgres: Postgres
) -> None:
    """A run that was paused for longer than its lease sends nothing more, and loses nothing."""
    place = postgres.fresh()

    def bury(_: str) -> None:
        server.on_query = lambda _: None
        postgres.execute("UPDATE muybridge_owners SET lease_until = 0", url=place)
        with open_store(place) as other:
            other.free_items()

    server.on_query = bury
    with pytest.raises(batch.StoreUnusable, match=r"has not heard .* Run it again to resume"):
        run(server, horses(6), store=place, concurrency=1)
    assert server.posts < 6
    assert run(server, None, store=place).counts == {Stage.DOWNLOADED: 6}
    assert (server.posts, server.doubles) == (6, [])


def test_a_run_reports_from_the_store_that_it_was_given(
    run: Run, server: BillingServer, postgres: Postgres
) -> None:
    """The folder does not say how to reach a database: the report, too, is read as it was given."""
    report = run(server, horses(2), store=postgres.fresh())
    assert report.counts == {Stage.DOWNLOADED: 2}
    assert [entry.state for entry in report.entries] == [Stage.DOWNLOADED] * 2


def test_of_two_batches_that_begin_at_once_one_is_forgotten(
    run: Run, server: BillingServer, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder names one batch. No other is left in the store, with items that nobody does."""

    def overtake() -> None:
        monkeypatch.undo()
        other = threading.Thread(target=lambda: run(server, horses(2), store=store))
        other.start()
        other.join()

    at("batch recorded in its folder").strike(overtake, put=monkeypatch.setattr)
    assert run(server, horses(2), store=store).counts == {Stage.DOWNLOADED: 2}
    assert (server.posts, server.doubles) == (2, [])
    with open_store(store) as kept, kept.reading() as rows:
        assert rows is not None
        assert rows.run("SELECT count(*) FROM muybridge_batch") == [(1,)]
        assert rows.run("SELECT count(*) FROM muybridge_item") == [(2,)]


def test_a_run_that_ends_does_not_end_another_with_the_same_store(
    run: Run, server: BillingServer, store: str, tmp_path: Path
) -> None:
    """What a run has taken stays its own when another run of the same client ends."""

    def begin_another(_: str) -> None:
        server.on_query = lambda _: None
        with Client(KEY, server.url, poll_interval=0.005, store=mine) as client:
            assert batch.run(client, horses(1), tmp_path / "other").done
        with open_store(store) as third:
            third.free_items()

    with open_store(store) as mine:
        server.on_query = begin_another
        report = run(server, horses(6), store=mine, concurrency=4)
    assert report.counts == {Stage.DOWNLOADED: 6}
    assert (server.posts, report.stopped) == (7, "")


@pytest.mark.parametrize("step", ["after: verdict recorded", "after: piece saved"])
def test_a_run_that_was_killed_is_resumed_at_once(
    step: str, nursery: Nursery, run: Run, server: BillingServer, store: str, tmp_path: Path
) -> None:
    """The next run on this machine knows that it has ended, and waits for no lease."""
    order = {"url": server.url, "folder": str(tmp_path / "out"), "store": store}
    assert nursery.run(**order, items=4, concurrency=1, kill_at=step) == -9
    with open_store(store) as mine:
        assert run(server, None, store=mine).counts == {Stage.DOWNLOADED: 4}
    assert (server.posts, server.doubles) == (4, [])
