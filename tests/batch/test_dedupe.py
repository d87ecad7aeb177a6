"""`batch run --dedupe`: identical requests share one task, and each item has its own file."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import moments
from muybridge import batch
from muybridge.batch import BatchEvent, Stage, What
from muybridge.cli.commands import muybridge
from muybridge.purchases import State as Bought
from muybridge.purchases.booking import Books
from processes import Nursery
from stores import purchases_at

from .billing import BillingServer, Fault
from .conftest import Run
from .runner_process import KEY, horses
from .test_runs import faults


def twins(count: int, of: int = 1) -> list[dict[str, Any]]:
    """Return *count* items with the same request."""
    (item,) = horses(1, first=of)
    return [{**item, "name": f"h{of}-{number}"} for number in range(1, count + 1)]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_each_has_its_own_file(
    server: BillingServer, run: Run, store: str, concurrency: int
) -> None:
    """Identical items are paid for once, and each result is saved under its own name."""
    report = run(server, [*twins(3), *horses(1, first=2)], concurrency=concurrency, dedupe=True)
    assert report.counts == {Stage.DOWNLOADED: 4}
    assert server.posts == 2
    paths = [report.path_of(entry) for entry in report.entries]
    assert len({*paths}) == 4
    first, second, third, other = (path.read_bytes() for path in paths if path is not None)
    assert first == second == third != other
    assert len([one for one in purchases_at(store) if one.state is Bought.ACCEPTED]) == 2
    assert run(server, None, dedupe=True).done
    assert server.posts == 2


def test_twins_of_the_same_moment(
    server: BillingServer, run: Run, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If two look for the name before either has it, one is sent, and the other waits and joins.

    That is no failed try: no listener is told of a retry, and nothing is counted as one.
    """
    named = moments.at("name looked up").value
    looked: list[str] = []
    told: list[BatchEvent] = []

    def both_at_once(books: Books, once: str, digest: str) -> Any:
        looked.append(once)
        return None if len(looked) <= 3 else named(books, once, digest)

    monkeypatch.setattr(*moments.at("name looked up").place, both_at_once)
    monkeypatch.setattr(*moments.constant("pause before a name is looked up again"), 0.01)
    report = run(server, twins(3), dedupe=True, on_event=told.append)
    assert report.counts == {Stage.DOWNLOADED: 3}
    assert [event for event in told if event.what in (What.RETRY, What.POSTPONED)] == []
    assert server.posts == 1
    assert [one.state for one in purchases_at(store)] == [Bought.ACCEPTED]


def test_without_it_each_is_paid(server: BillingServer, run: Run, store: str) -> None:
    """Without the option, items are paid for one by one."""
    assert run(server, twins(2)).done
    assert (server.posts, len(purchases_at(store))) == (2, 2)


def test_another_batch_joins(server: BillingServer, run: Run, store: str, tmp_path: Path) -> None:
    """An item joins the task that another batch has paid for, if that is in the same store."""
    assert run(server, twins(1), dedupe=True).done
    (tmp_path / "out").rename(tmp_path / "first")
    report = run(server, twins(2), dedupe=True)
    assert (report.done, server.posts) == (True, 1)
    assert [entry.task_id for entry in report.entries] == server.accepted["horse 1"] * 2
    assert len(purchases_at(store)) == 1


def test_one_that_is_ambiguous(run: Run, store: str, tmp_path: Path) -> None:
    """If one may have been accepted, the others wait for the decision, and are never sent."""
    with BillingServer(faults(Fault.ACCEPTED_RESET)) as server:
        report = run(server, twins(3), concurrency=1, dedupe=True)
        assert report.counts == {Stage.JOINED: 2, Stage.AMBIGUOUS: 1}
        assert server.posts == 1
        waiting = report.entries[1]
        assert waiting.reason is not None
        assert "an identical request was sent before" in waiting.reason
        assert "muybridge decide" in waiting.reason
        batch.adopt(tmp_path / "out", 1, server.accepted["horse 1"][0])
        assert run(server, None, dedupe=True).counts == {Stage.DOWNLOADED: 3}
        assert server.posts == 1
    assert [one.state for one in purchases_at(store)] == [Bought.ACCEPTED]


def test_one_that_is_refused(run: Run, store: str) -> None:
    """A refused request has no task to join, so the next one is sent and judged by itself."""
    with BillingServer(faults(Fault.REFUSED)) as server:
        report = run(server, twins(2), concurrency=1, dedupe=True)
    assert report.counts == {Stage.REFUSED: 1, Stage.DOWNLOADED: 1}
    assert server.posts == 2
    assert len(purchases_at(store)) == 2


def test_a_budget(run: Run, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that joins uses up nothing of a budget."""
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "1")
    with BillingServer() as server:
        assert run(server, twins(4), dedupe=True).counts == {Stage.DOWNLOADED: 4}
    assert len([one for one in purchases_at(store) if one.state is not Bought.RELEASED]) == 1


def test_an_embedded_service(run: Run, server: BillingServer, tmp_path: Path) -> None:
    """A service that forgets its tasks cannot be asked for them later: nothing is sent."""
    with pytest.raises(ValueError, match="an embedded service forgets its tasks"):
        run(server, twins(2), dedupe=True, local=True)
    assert server.requests == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("driver", ["requests", "trio", "asyncio"])
@pytest.mark.parametrize("step", ["before: response kept", "after: items taken"])
def test_a_runner_that_was_killed(
    nursery: Nursery, tmp_path: Path, path: Path, driver: str, step: str
) -> None:
    """However a runner ends, no identical request is sent a second time."""
    folder = tmp_path / "out"
    order: dict[str, Any] = {"folder": str(folder), "store": str(path), "dedupe": True}
    with BillingServer() as server:
        order |= {"url": server.url, "driver": driver}
        assert nursery.run(**order, items=1, copies=3, concurrency=1, kill_at=step) == -9
        nursery.run(**order)
        counts = batch.status(folder).counts
        if step == "after: items taken":
            assert counts == {Stage.DOWNLOADED: 3}
        else:
            assert counts == {Stage.AMBIGUOUS: 1, Stage.JOINED: 2}
        assert server.posts == 1


def test_batches_at_the_same_time(tmp_path: Path, store: str) -> None:
    """Batches of several processes share the tasks of identical items, whoever sends them."""
    drivers = ("requests", "trio", "asyncio")
    with BillingServer() as server, ExitStack() as stack, ThreadPoolExecutor(len(drivers)) as pool:
        forking = [stack.enter_context(Nursery("batch.runner_process")) for _ in drivers]
        running = [
            pool.submit(
                one.run,
                url=server.url,
                folder=str(tmp_path / driver),
                items=4,
                copies=2,
                store=store,
                dedupe=True,
                driver=driver,
            )
            for one, driver in zip(forking, drivers, strict=True)
        ]
        assert [one.result() for one in running] == [0, 0, 0]
        assert server.posts == 4
    for driver in drivers:
        assert batch.status(tmp_path / driver).counts == {Stage.DOWNLOADED: 8}


def test_the_command(server: BillingServer, tmp_path: Path, store: str) -> None:
    """`--dedupe` does the same on the command line, and is part of the command that resumes."""
    source, out = tmp_path / "b.jsonl", tmp_path / "out"
    source.write_text("\n".join(map(json.dumps, twins(3))), encoding="utf-8")
    env = {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}
    words = ["batch", "run", str(source), "--out", str(out), "--dedupe", "--poll-interval", "0.005"]
    first = CliRunner().invoke(muybridge, [*words, "--limit", "1"], env=env)
    assert first.exit_code == 5
    assert "--limit 1 --dedupe" in first.stderr
    done = CliRunner().invoke(muybridge, words, env=env)
    assert (done.exit_code, server.posts) == (0, 1)
    assert sorted(path.name for path in out.glob("*.png")) == ["h1-1.png", "h1-2.png", "h1-3.png"]
    wrong = CliRunner().invoke(muybridge, [*words, "--local"], env=env)
    assert (wrong.exit_code, "--dedupe cannot be combined with --local" in wrong.stderr) == (
        2,
        True,
    )
    assert len(purchases_at(store)) == 1
