"""`batch submit` changes all that it is given, or nothing; its rules are those of the database."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muybridge import Client, batch
from muybridge.batch import SharedBatch, Stage
from muybridge.batch.items.folder import FOLDER
from muybridge.batch.running.side_files import Runner
from muybridge.batch.shared import open_batch
from muybridge.cli.commands import muybridge
from muybridge.purchases import Budget, Measure, StoreUnusable
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.estimates import PriceList, parse_prices
from muybridge_protocol.service import Service

from .billing import BillingServer
from .conftest import Run, Work
from .postgres_server import Postgres
from .runner_process import KEY, horses

PRICES = 'currency = "USD"\nprices = [{model = "imgb-2", tier = "low", per_picture = 0.01}]\n'


def facts(postgres: Postgres, shared: SharedBatch) -> list[Any]:
    """Return all that a submission may change."""
    return [
        postgres.execute(f"SELECT * FROM muybridge_{table} ORDER BY 1, 2", url=str(shared.store))  # noqa: S608  our own names
        for table in ("batch", "item", "limits", "rates")
    ]


@pytest.mark.parametrize(
    ("items", "given", "said"),
    [
        (horses(3, first=7), {}, "differs from the batch"),
        ([{**horse, "prompt": "a cow"} for horse in horses(3)], {}, "item 1: differs from"),
        ([*horses(2), {**horses(3)[2], "name": "cow"}], {}, "item 3: differs from"),
        (horses(1), {}, r"has 3 items \(got 1\)"),
        (horses(4), {"budget": Budget(cost=9)}, "cost is unknown"),
        (horses(3), {"budget": Budget(cost=9)}, "cost is unknown"),
    ],
)
def test_a_refused_submission_changes_nothing(
    items: list[dict[str, Any]],
    given: dict[str, Any],
    said: str,
    work: Work,
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    """A limit, a rate and a place that come with items that are refused are not set, either."""
    service = Service(base_url=server.url)
    where = tmp_path / "out"
    batch.submit(shared, horses(3), service, budget=Budget(creates=1), out=where)
    before = facts(postgres, shared)
    changes: dict[str, Any] = {
        "budget": Budget(creates=1000),
        "rate": 7,
        "out": tmp_path / "elsewhere",
        **given,
    }
    with pytest.raises(InvalidInput, match=said):
        batch.submit(shared, items, service, **changes)
    assert facts(postgres, shared) == before
    report = work(server, shared, out=None)
    assert report.counts == {Stage.QUEUED: 2, Stage.DOWNLOADED: 1}
    assert server.posts == 1


def test_another_service_adds_nothing(
    server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """Items that come for another service are not added, and no rate is set."""
    batch.submit(shared, horses(1), Service(base_url=server.url))
    before = facts(postgres, shared)
    with pytest.raises(StoreUnusable, match="was begun at"):
        batch.submit(shared, horses(2), Service(base_url="https://elsewhere.test"), rate=5)
    assert facts(postgres, shared) == before


Submit = Callable[..., Result]


@pytest.fixture
def submit(server: BillingServer, shared: SharedBatch, tmp_path: Path) -> Submit:
    """Submit so many horses, with more options."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")

    def go(count: int, *options: str) -> Result:
        rows = [{**horse, "quality": "low"} for horse in horses(count)]
        (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        words = ["batch", "submit", str(tmp_path / "b.jsonl"), "--store", str(shared.store)]
        words += ["--name", shared.name, *options]
        words = [str(tmp_path / "prices.toml") if word == "PRICES" else word for word in words]
        env = {"MUYBRIDGE_BASE_URL": server.url, "MUYBRIDGE_API_KEY": KEY}
        return CliRunner().invoke(muybridge, words, env=env)

    return go


def test_lines_are_appended_without_their_price(
    submit: Submit, work: Work, server: BillingServer, shared: SharedBatch
) -> None:
    """A limit that the batch has holds for new lines, whether it is given again or not."""
    assert submit(2, "--max-cost", "5", "--prices", "PRICES").exit_code == 0
    done = submit(4)
    assert done.exit_code == 2
    for number in (3, 4):
        assert f"item {number}: cost: the limit of 5 in cost cannot be checked" in done.stderr
    assert work(server, shared).counts == {Stage.DOWNLOADED: 2}
    assert submit(4, "--prices", "PRICES").exit_code == 0
    assert submit(4, "--max-cost", "6").exit_code == 0, "the prices are known"
    assert work(server, shared).counts == {Stage.DOWNLOADED: 4}
    assert server.posts == 4


@pytest.fixture
def poisoned(server: BillingServer, shared: SharedBatch, postgres: Postgres) -> SharedBatch:
    """A batch of four, of which nobody knows what the first one costs."""
    items = [{**horse, "quality": "low"} for horse in horses(4)]
    service = Service(base_url=server.url)
    batch.submit(shared, items, service, budget=Budget(cost=5), prices=prices())
    postgres.execute(
        "UPDATE muybridge_item SET amounts = NULL WHERE number = 1",
        url=str(shared.store),
    )
    return shared


def prices() -> PriceList:
    """Return what the horses cost."""
    return parse_prices(PRICES)


def test_an_unknown_amount_stops_one_item(
    work: Work, server: BillingServer, poisoned: SharedBatch
) -> None:
    """The others are sent, and the worker says which one is not, and what to do."""
    report = work(server, poisoned, creates=1)
    assert report.counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 3}
    assert report.over_budget
    assert report.stopped.startswith("item 1 (h1): ")
    assert "the limit of 5 in cost cannot be checked, because its cost is unknown" in report.stopped
    assert "It is the stored budget of batch=horses" in report.stopped
    assert report.entries[0].reason == report.stopped.removeprefix("item 1 (h1): ")
    assert server.posts == 3


def test_the_price_is_given_later(work: Work, server: BillingServer, poisoned: SharedBatch) -> None:
    """Prices that come with the same items count for those that are not sent yet."""
    work(server, poisoned)
    items = [{**horse, "quality": "low"} for horse in horses(4)]
    service = Service(base_url=server.url)
    with pytest.raises(InvalidInput, match="item 1: cost"):
        batch.submit(poisoned, items, service, budget=Budget(cost=6))
    batch.submit(poisoned, items, service, prices=prices())
    report = work(server, poisoned)
    assert (report.counts, server.posts) == ({Stage.DOWNLOADED: 4}, 4)
    assert report.budget is not None
    assert str(report.budget.spent[Measure.COST]) == "0.04"


KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "items and prices": (6, {"prices": parse_prices(PRICES)}),
    "prices and place": (4, {"prices": parse_prices(PRICES), "out": "s3://studio/horses"}),
    "place and rate": (4, {"out": "s3://studio/horses", "rate": 5}),
    "limit and rate": (4, {"budget": Budget(creates=9), "rate": 5}),
}


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_submissions_at_the_same_time(
    first: str, second: str, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """Whatever two submissions of a batch change, they never deadlock.

    A worker's step holds up whichever of them comes to the second item.
    """
    psycopg = import_module("psycopg")
    service = Service(base_url=server.url)
    same = [{**horse, "quality": "low"} for horse in horses(6)]
    batch.submit(shared, same[:4], service, budget=Budget(creates=5))
    ended: list[object] = []

    def go(kind: str) -> None:
        count, given = KINDS[kind]
        try:
            batch.submit(shared, same[:count], service, **given)
        except Exception as error:  # noqa: BLE001  the test names it
            ended.append(error)
        else:
            ended.append(None)

    threads = [threading.Thread(target=go, args=(kind,)) for kind in (first, second)]
    with (
        psycopg.connect(str(shared.store)) as working,
        psycopg.connect(postgres.url, autocommit=True) as looking,
    ):
        working.execute("SELECT 1 FROM muybridge_item WHERE number = 2 FOR UPDATE")
        waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while looking.execute(waiting).fetchone()[0] + len(ended) < number:
                pass
        working.commit()
        for thread in threads:
            thread.join(60)
    assert len(ended) == 2
    # Items that another one has just added are a reason to refuse.
    told = ("nother process has just added items", "has 6 items (got 4)")
    refused = [str(error) for error in ended if error is not None]
    assert [why for why in refused if not any(known in why for known in told)] == []
    assert len(refused) <= 1


def test_the_item_is_abandoned(work: Work, server: BillingServer, poisoned: SharedBatch) -> None:
    """An item whose amount nobody tells can be left out."""
    work(server, poisoned)
    assert batch.abandon(poisoned, "h1").state is Stage.ABANDONED
    report = work(server, poisoned)
    assert (report.counts, report.stopped) == ({Stage.ABANDONED: 1, Stage.DOWNLOADED: 3}, "")


def test_a_refused_run_changes_nothing(run: Run, server: BillingServer, tmp_path: Path) -> None:
    """A run at another service than that of a live runner adds no items and sets no rate."""
    out = tmp_path / "out"
    run(server, horses(1), limit=0)
    with BillingServer() as other, Runner(out / FOLDER):
        for items, kind, said in (
            (horses(2), StoreUnusable, "was begun at"),
            (horses(1, 5), InvalidInput, "differs from the batch"),
        ):
            with pytest.raises(kind, match=said):
                run(other, items, rate=5)
        assert other.requests == 0
    assert batch.status(out).counts == {Stage.QUEUED: 1}
    with open_batch(out) as found:
        assert not found.has_rate
    assert run(server, horses(2)).counts == {Stage.DOWNLOADED: 2}


@pytest.mark.parametrize("place", ["folder", "database"])
def test_a_price_that_the_client_does_not_have(
    place: str, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """A budget of the client stops the items that it cannot be checked for, and no others."""
    items = [{**horse, "quality": "low"} for horse in horses(3)]
    items[0]["quality"] = "high"
    store = tmp_path / "store.sqlite3"
    given: dict[str, Any] = {"budget": Budget(cost=5), "prices": prices(), "store": store}
    with Client(KEY, server.url, poll_interval=0.005, **given) as client:
        if place == "folder":
            report: Any = batch.run(client, items, tmp_path / "out", concurrency=1)
        else:
            batch.submit(shared, items, client.service)
            report = batch.work(client, shared, tmp_path / "out", creates=1)
    assert report.counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 2}
    assert report.stopped.startswith("item 1 (h1): ")
    assert "because its cost is unknown. Give its price" in report.stopped
    assert server.posts == 2
