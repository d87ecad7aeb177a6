"""What a run would send, found out before it is run, and runs that send only some of it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from muybridge import batch
from muybridge.batch import Preview, Stage
from muybridge.batch.items.folder import FOLDER, STORE
from muybridge.purchases import Budget, Measure, StoreUnusable
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.estimates import Price, PriceList, Unit
from muybridge_protocol.purchases import Order
from stores import at

from .billing import BillingServer, Fault
from .conftest import Run
from .runner_process import horses

PRICES = PriceList(
    "USD",
    tuple(
        Price(family="imgb", model="imgb-2", tier=tier, unit=Unit.PICTURE, amount=Decimal(amount))
        for tier, amount in (("low", "0.01"), ("high", "0.5"))
    ),
)
HIGH = {"family": "imgb", "model": "imgb-2", "prompt": "a horse", "quality": "high"}
AUTOMATIC = {"family": "vidr", "model": "vidrPlus", "prompt": "a horse"}


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file."""
    found = {path: path.stat() for path in folder.rglob("*")}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def what(found: Preview) -> tuple[int, int]:
    return found.sends, found.left


def test_a_new_batch(tmp_path: Path) -> None:
    """All items of a new batch would be sent; its folder is not made."""
    found = batch.preview([*horses(3), HIGH, AUTOMATIC], tmp_path / "out", prices=PRICES)
    assert what(found) == (5, 0)
    assert found.counts == {}
    counts = {(each.family, each.tier): found.totals.groups[each] for each in found.totals.groups}
    assert {key: total.requests for key, total in counts.items()} == {
        ("imgb", "low"): 3,
        ("imgb", "high"): 1,
        ("vidr", None): 1,
    }
    total = found.totals.total
    assert (total.cost.known, total.cost.unknown) == (Decimal("0.53"), 1)
    assert (total.pictures.total, total.seconds.total) == (4, None)
    assert list(tmp_path.iterdir()) == []


def test_a_limit(tmp_path: Path) -> None:
    """With a limit, the totals are those of the first items, and the others are left."""
    found = batch.preview([HIGH, *horses(3)], tmp_path / "out", limit=2, prices=PRICES)
    assert what(found) == (2, 2)
    assert found.totals.total.cost.total == Decimal("0.51")
    assert what(batch.preview(horses(2), tmp_path / "out", limit=0)) == (0, 2)
    with pytest.raises(ValueError, match="limit must be 0 or more items"):
        batch.preview(horses(2), tmp_path / "out", limit=-1)


def test_identical_requests_that_join(tmp_path: Path) -> None:
    """With dedupe, identical requests are one request to send; a limit still counts items."""
    items = [HIGH, *horses(1), HIGH, *horses(1), {**HIGH, "name": "again"}]
    alone = batch.preview(items, tmp_path / "out", prices=PRICES)
    assert (what(alone), alone.joins) == ((5, 0), 0)
    found = batch.preview(items, tmp_path / "out", prices=PRICES, dedupe=True)
    assert (what(found), found.joins) == ((2, 0), 3)
    assert found.totals.total.cost.total == Decimal("0.51")
    limited = batch.preview(items, tmp_path / "out", limit=3, dedupe=True)
    assert (what(limited), limited.joins) == ((2, 2), 1)


def test_identical_requests_that_are_left(
    server: BillingServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a batch count like those of a file, and what was sent does not count."""
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "store.sqlite3"))
    run(server, [*horses(1), HIGH, HIGH], limit=1, dedupe=True)
    found = batch.preview(None, tmp_path / "out", dedupe=True)
    assert (what(found), found.joins) == ((1, 0), 1)
    assert run(server, None, dedupe=True).done
    assert server.posts == 2


def test_wrong_items(tmp_path: Path) -> None:
    """Items that are not valid are reported as by a run."""
    with pytest.raises(InvalidInput):
        batch.preview([*horses(1), {"family": "imgb"}], tmp_path / "out")
    with pytest.raises(StoreUnusable, match="There is no batch"):
        batch.preview(None, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", ["2", 1.5, -1])
def test_a_limit_that_is_none(server: BillingServer, run: Run, tmp_path: Path, limit: Any) -> None:
    """A limit that is not a number of items is rejected before anything is created."""
    with pytest.raises(ValueError, match="limit must be"):
        run(server, horses(2), limit=limit)
    assert server.requests == 0
    assert not (tmp_path / "out").exists()


def test_a_run_with_a_limit(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A run sends at most as many new items as its limit; the next one goes on after them."""
    first = run(server, horses(5), limit=2, concurrency=4)
    assert first.counts == {Stage.QUEUED: 3, Stage.DOWNLOADED: 2}
    assert first.stopped == "the limit of 2 is reached; new items left: 3"
    assert what(batch.preview(horses(5), tmp_path / "out", limit=2)) == (2, 1)
    second = run(server, None, limit=2)
    assert (server.posts, second.counts[Stage.DOWNLOADED]) == (4, 4)
    third = run(server, horses(5), limit=2)
    assert (server.posts, third.done, third.stopped) == (5, True, "")
    assert server.doubles == []


def test_a_limit_that_is_not_reached(server: BillingServer, run: Run) -> None:
    """A run that sends as many as its limit, and leaves nothing, is not stopped by it."""
    report = run(server, horses(3), limit=3)
    assert (report.done, report.stopped, server.posts) == (True, "", 3)


def test_a_limit_of_nothing(server: BillingServer, run: Run) -> None:
    """With a limit of 0 a run sends nothing new, but finishes what was sent."""
    server.media_works = False
    assert run(server, horses(3), limit=2).counts == {Stage.QUEUED: 1, Stage.COMPLETED: 2}
    server.media_works = True
    report = run(server, None, limit=0)
    assert report.counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 2}
    assert server.posts == 2


def test_refused_items_count(run: Run) -> None:
    """An item that the service refuses was sent, so it counts towards the limit."""
    with BillingServer(lambda _: Fault.REFUSED) as server:
        report = run(server, horses(4), limit=3, concurrency=2)
    assert report.counts == {Stage.QUEUED: 1, Stage.REFUSED: 3}
    assert server.posts == 3


def test_only_what_is_new_is_counted(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """What the batch has and was sent would not be sent again; appended items would be."""
    run(server, horses(2))
    assert what(batch.preview(horses(2), tmp_path / "out")) == (0, 0)
    grown = batch.preview(horses(5), tmp_path / "out")
    assert what(grown) == (3, 0)
    assert grown.counts == {Stage.DOWNLOADED: 2}
    with pytest.raises(InvalidInput, match="differs from the batch"):
        batch.preview(horses(2, first=2), tmp_path / "out")
    with pytest.raises(
        InvalidInput, match=r"has 2 items \(got 1\); submit the same items as before"
    ):
        batch.preview(horses(1), tmp_path / "out")


@pytest.mark.parametrize("state", Stage)
def test_items_in_each_state(server: BillingServer, run: Run, tmp_path: Path, state: Stage) -> None:
    """Only an item that certainly was not sent would be; locally, all that is unfinished."""
    run(server, horses(1), limit=0)
    with closing(sqlite3.connect(tmp_path / "out" / FOLDER / STORE)) as db:
        db.execute("UPDATE muybridge_item SET stage = ?", (state,))
        db.commit()
    unsent = state in {Stage.QUEUED, Stage.CLAIMED}
    ended = state in {Stage.DOWNLOADED, Stage.FAILED, Stage.REFUSED, Stage.ABANDONED}
    assert batch.preview(None, tmp_path / "out").sends == int(unsent)
    assert batch.preview(None, tmp_path / "out", local=True).sends == int(not ended)


def test_nothing_is_written(server: BillingServer, run: Run, tmp_path: Path) -> None:
    """A preview changes no file: not even what a run that was killed has left behind."""
    run(server, horses(3), limit=1)
    leftover = tmp_path / "out" / FOLDER / "batch.json.abc.new"
    leftover.write_bytes(b"")
    before = sizes(tmp_path)
    os.chmod(tmp_path / "out" / FOLDER / STORE, 0o400)  # noqa: PTH101  its mode alone
    assert what(batch.preview(horses(4), tmp_path / "out", prices=PRICES)) == (3, 0)
    assert sizes(tmp_path) == before


def test_a_damaged_store(tmp_path: Path) -> None:
    """A file that is no store is reported, and not written to."""
    place = tmp_path / "out" / FOLDER
    place.mkdir(parents=True)
    (place / STORE).write_bytes(b"no store" * 200)
    with pytest.raises(batch.StoreUnusable):
        batch.preview(horses(1), tmp_path / "out")
    assert (place / STORE).read_bytes() == b"no store" * 200


def test_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store has spent in a budget's period counts, and that of earlier periods does not.

    The environment's limits count as well, and nothing is written.
    """
    path = tmp_path / "store.sqlite3"
    budget = Budget(creates=3, per="month")
    (empty,) = batch.preview(horses(3), tmp_path / "out", budget=budget, store=path).budgets
    assert (empty.spent[Measure.CREATES], empty.exceeded) == (0, None)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "4")
    amounts = dict.fromkeys(Measure, Decimal(1))
    for when in (time.time(), time.time() - 32 * 86_400):
        at(path, when).arm(Order(account="a", family="imgb", model="imgb-2", amounts=amounts))
    content = path.read_bytes()
    mine, ours = batch.preview(horses(3), tmp_path / "out", budget=budget, store=path).budgets
    assert (mine.budget, mine.spent[Measure.CREATES]) == (budget, 1)
    assert mine.exceeded is not None
    assert "2 of the limit of 3 creates a month is left" in mine.exceeded
    assert (ours.spent[Measure.CREATES], ours.exceeded is None) == (2, False)
    fits = batch.preview(horses(2), tmp_path / "out", budget=budget, store=path)
    assert [use.exceeded for use in fits.budgets] == [None, None]
    assert batch.preview(horses(3), tmp_path / "out", local=True, budget=budget).budgets == ()
    assert path.read_bytes() == content


def test_an_unusable_store(tmp_path: Path) -> None:
    """If there is a budget, and the store cannot be read, a preview says so."""
    path = tmp_path / "store.sqlite3"
    path.write_bytes(b"notes" * 1000)
    with pytest.raises(StoreUnusable):
        batch.preview(horses(1), tmp_path / "out", budget=Budget(creates=1), store=path)
    assert batch.preview(horses(1), tmp_path / "out", store=path).budgets == ()


def test_a_file(tmp_path: Path) -> None:
    """A preview takes the files that a run takes."""
    path = tmp_path / "b.jsonl"
    path.write_text("\n".join(map(json.dumps, horses(3))), encoding="utf-8")
    assert what(batch.preview(path, tmp_path / "out")) == (3, 0)
