"""What the journal in PostgreSQL does with items, beyond what every journal does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from muybridge.batch.journal_entries import NewItem
from muybridge.batch.journal_errors import StoreUnusable
from muybridge.testing.journal_conformance import SERVICE
from muybridge.testing.journal_conformance.any_journal import TOKEN, new_items

import moments
from muybridge.purchases import Budget, Measure
from muybridge_protocol.estimates import parse_prices

from .postgres_server import Postgres

psycopg = pytest.importorskip("psycopg")
connecting = pytest.importorskip("muybridge.purchases.connecting")
tables = pytest.importorskip("muybridge.batch.postgres.tables")
PostgresJournal = pytest.importorskip("muybridge.batch.postgres").PostgresJournal


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.fresh()


@pytest.fixture
def journal(url: str) -> Iterator[Any]:
    with PostgresJournal.create(url, "horses", SERVICE, new_items(3)) as created:
        created.register("one")
        yield created


@pytest.mark.parametrize(("lease", "seconds"), [(30.0, 5.0), (20.0, 5.0), (8.0, 2.0)])
def test_a_create_begins_soon_after_it_was_armed(lease: float, seconds: float, url: str) -> None:
    """It has a quarter of a lease for that, and five seconds at most."""
    with PostgresJournal.create(url, "horses", SERVICE, [], lease=lease) as journal:
        assert journal.send_within == seconds


def test_a_batch_has_an_id(journal: Any, url: str) -> None:
    """It tells the batch from every other one, and stays the same for whoever opens it."""
    with (
        PostgresJournal.create(url, "mules", SERVICE, []) as mules,
        PostgresJournal(url, "horses") as again,
    ):
        assert not again.is_new
        assert journal.id == again.id != mules.id
        assert len(journal.id) == len(mules.id) == 16


def test_items_are_added_by_one_process_at_a_time(
    journal: Any, postgres: Postgres, url: str
) -> None:
    """Nobody else can add items between the check of the last one and the first new one."""
    asks = "SELECT id FROM muybridge_batches FOR UPDATE NOWAIT"

    def items() -> Iterator[NewItem]:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            postgres.execute(asks, url=url)
        yield attrs.evolve(*new_items(1), name="h4", stem="h4")

    journal.add(items(), after=3)
    assert journal.counts() == {Stage.QUEUED: 4}
    assert postgres.execute(asks, url=url)


def test_added_items_have_prices(url: str) -> None:
    """A budget that limits the cost also counts items that were added later."""
    tiers = '{family = "imgb", model = "imgb-2", tier = "low", per_picture = 0.5}'
    prices = parse_prices(f'currency = "EUR"\nprices = [\n{tiers}]')
    body = {"model": "imgb-2", "prompt": "x", "quality": "low"}
    first, second = (attrs.evolve(item, body=body) for item in new_items(2))
    budget = Budget(cost=5)
    made = PostgresJournal.create(url, "horses", SERVICE, [first], budget=budget, prices=prices)
    with made as journal:
        journal.add([second], after=1)
        journal.register("one")
        for _ in range(2):
            journal.arm(journal.take("one", creates=True), 1, by="one", lasts=60)
        assert journal.budget_use().spent[Measure.COST] == 1


def test_an_item_that_is_not_there(journal: Any) -> None:
    """It is reported by its number."""
    with pytest.raises(LookupError, match=r"^there is no item 4$"):
        journal.entry(4)


def test_only_arm_arms(journal: Any) -> None:
    """A plain step would not check the lease of the worker."""
    entry = journal.take("one", creates=True)
    with pytest.raises(ValueError, match="only `arm` arms an item"):
        journal.move(entry, Stage.CLAIMED, Stage.ARMED, by="one")
    assert journal.entry(1).state is Stage.CLAIMED


def test_a_damaged_item_is_reported(journal: Any, postgres: Postgres, url: str) -> None:
    """The message tells which batch it is, and what to do."""
    postgres.execute("UPDATE muybridge_items SET state = 'flying'", url=url)
    with pytest.raises(StoreUnusable, match=r"\(horses\) is damaged \('flying' is no State\)\. "):
        journal.entry(1)


def test_what_is_read_is_not_prepared(journal: Any) -> None:
    """A plan for any state could not use the index of the items that are free."""
    for _ in range(10):
        journal.counts()
    db = moments.connection_of(journal)
    kept = db.execute("SELECT statement FROM pg_prepared_statements", prepare=False).fetchall()
    assert kept == []


def test_tables_are_made_by_one_process_at_a_time(postgres: Postgres, url: str) -> None:
    """Whoever begins a batch holds a lock, even before there is a table."""
    held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = %s"
    with connecting.connect(url) as db:
        pid = db.info.backend_pid
        with tables.beginning(db):
            assert postgres.execute(held, pid) == [(1,)]
        assert postgres.execute(held, pid) == []


def test_a_task_of_another_batch_is_known(journal: Any, url: str) -> None:
    """Nobody adopts a task that another batch of the same service has; elsewhere, ids differ."""
    for name, service in (("mules", SERVICE), ("cats", "https://other.test")):
        with PostgresJournal.create(url, name, service, new_items(1)) as other:
            other.register(name)
            entry = other.take(name, creates=True)
            other.arm(entry, 1, by=name, lasts=60)
            token = TOKEN.replace("task-1", f"{name}-task")
            other.move(entry, Stage.ARMED, Stage.SUBMITTED, by=name, token=token)
            assert other.label_of_task(f"{name}-task") == "item 1 (h1)"
    assert journal.label_of_task("mules-task") == "item 1 (h1) of the batch mules"
    assert journal.label_of_task("cats-task") is None
