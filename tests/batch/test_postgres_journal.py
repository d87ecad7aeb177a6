"""The journal that many machines share: the kit, and what a database may do to it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import pytest
from syrupy.assertion import SnapshotAssertion

import moments
from muybridge.batch.items.reading import InvalidBatch
from muybridge.batch.journal_entries import NewItem, State
from muybridge.batch.journal_errors import (
    ClaimLost,
    BatchMissing,
    JournalOutdated,
    StoreUnusable,
    OverBudget,
    StillSending,
    Unstorable,
)
from muybridge.batch.limits.spending import Spending
from muybridge.batch.port import Journal, SharedJournal
from muybridge.purchases import Budget, Measure
from muybridge.testing.conformance import NotConforming
from muybridge.testing.journal_conformance import SERVICE, BudgetedJournalConformance
from muybridge.testing.journal_conformance.any_journal import TOKEN, new_items

from .postgres_server import Postgres

postgres_journal = pytest.importorskip("muybridge.batch.postgres")
PostgresJournal = postgres_journal.PostgresJournal
schema: Any = import_module("muybridge.batch.postgres.schema")


class TestPostgresJournal(BudgetedJournalConformance):
    """The journal in PostgreSQL passes all of it."""

    @pytest.fixture(autouse=True)
    def _database(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.url = postgres.fresh()

    def make_journal(self, items: Sequence[NewItem]) -> Journal:
        return cast("Journal", PostgresJournal.create(self.url, "horses", SERVICE, items))

    def make_budgeted(self, items: Sequence[NewItem], budget: Budget) -> SharedJournal:
        made = PostgresJournal.create(self.url, "horses", SERVICE, items, budget=budget)
        return cast("SharedJournal", made)

    def reopen(self, journal: Journal) -> Journal:
        return cast("Journal", cast("Any", journal).reopen())

    def expire(self, journal: Journal, worker: str) -> None:  # noqa: ARG002  one database for all
        expire(self.postgres, self.url, worker)


def expire(postgres: Postgres, url: str, worker: str) -> None:
    """Let the lease of *worker* run out at once, by the database's clock."""
    statement = (
        "UPDATE muybridge_workers SET lease_until = clock_timestamp() - interval '1 ms' "
        "WHERE id = %s"
    )
    postgres.execute(statement, worker, url=url)


def leave_out(
    module: ModuleType, statement: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a statement of *module* have *new* instead of *old*."""
    whole: str = getattr(module, statement)
    assert old in whole
    monkeypatch.setattr(module, statement, whole.replace(old, new))


def fails(check: str, postgres: Postgres, *arguments: Any, **more: Any) -> None:
    """Expect the check of the kit with *check* in its name to fail."""
    suite = TestPostgresJournal()
    suite.postgres, suite.url = postgres, postgres.fresh()
    (name,) = (name for name in dir(suite) if name.startswith("test_") and check in name)
    suite.setup_method()
    with pytest.raises(NotConforming):
        getattr(suite, name)(*arguments, **more)
    suite.teardown_method()


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.fresh()


@pytest.fixture
def journal(url: str) -> Iterator[Any]:
    with PostgresJournal.create(url, "horses", SERVICE, new_items(3)) as created:
        created.register("one")
        yield created


@pytest.mark.parametrize(
    ("statement", "old", "new", "check"),
    [
        ("TAKE", " AND lease_until > clock_timestamp()", "", "whose_lease_has_expired"),
        ("ARM", " AND lease_until > clock_timestamp()", "", "whose_lease_has_expired"),
        ("TAKE", "buried_at IS NULL AND lease_until", "lease_until", "a_dead_worker"),
        ("ARM", "buried_at IS NULL AND lease_until", "lease_until", "a_dead_worker"),
        ("RENEW", " AND buried_at IS NULL", "", "a_dead_worker"),
        ("BURY", "lease_until <= clock_timestamp()", "true", "a_live_worker"),
        ("ARM", " AND owner IS NOT DISTINCT FROM %(owner)s", "", "the_first_one_to_take_a_step"),
        ("ARM", "state = 'claimed' AND", "", "the_first_one_to_take_a_step"),
        ("MOVE", "AND owner IS NOT DISTINCT FROM %(by)s", "", "the_first_one_to_take_a_step"),
        ("MOVE", "AND state = %(before)s", "", "the_first_one_to_take_a_step"),
        ("REPORT_LATE", "AND attempt = %(attempt)s", "", "response_to_the_first_try"),
        ("TABLES", "UNIQUE INDEX muybridge_tasks", "INDEX muybridge_tasks", "belongs_to_one_item"),
        ("TABLES", "UNIQUE INDEX muybridge_tasks", "INDEX muybridge_tasks", "to_one_of_many"),
        ("REPORT_LATE", "AND armed_by = %(by)s", "", "only_the_worker_that_armed"),
        ("REPORT_LATE", "AND state = 'ambiguous'", "", "late_response_that_no_item_takes"),
        ("REPORT_LATE", "attempt = %(attempt)s", "attempt = 7", "a_late_response_is_news"),
        ("TAKE", "ORDER BY expires, number", "ORDER BY number", "the_most_urgent_item"),
    ],
)
def test_a_statement_without_its_condition_is_noticed(
    statement: str,
    old: str,
    new: str,
    check: str,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever condition of a statement is left out, a check of the kit fails."""
    from muybridge.batch.postgres import schema

    leave_out(schema, statement, old, new, monkeypatch)
    fails(check, postgres)


@pytest.mark.parametrize("fact", ["attempt", "reply_status", "reply", "token", "candidate"])
def test_a_fact_that_is_not_compared_is_noticed(
    fact: str, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a judgement does not compare, a check of the kit fails."""
    from muybridge.batch.postgres import schema

    condition = f"    AND {fact} IS NOT DISTINCT FROM %(judged_{fact})s\n"
    leave_out(schema, "AS_JUDGED", condition, "", monkeypatch)
    value: Any = {"attempt": 2, "reply_status": 200, "reply": b"{}"}.get(fact, TOKEN)
    fails("what_was_judged", postgres, fact, value)


@pytest.mark.parametrize("forgetful", ["fsync", "synchronous_commit", "full_page_writes"])
def test_a_server_that_forgets_is_refused(
    forgetful: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that may lose what it has confirmed is refused, and the connection to it closed."""
    asked: list[Any] = []
    read = moments.at("setting of a database read")
    setting = read.value

    def forgetting(db: Any, name: str) -> str:
        asked.append(db)
        return "off" if name == forgetful else setting(db, name)

    monkeypatch.setattr(*read.place, forgetting)
    with pytest.raises(StoreUnusable, match=f"{forgetful} is off"):
        PostgresJournal(url, "horses")
    assert all(db.closed for db in asked)


def test_a_session_that_forgets_is_refused(postgres: Postgres) -> None:
    """So is an address that asks for fast commits."""
    fast = postgres.with_options("-c synchronous_commit=off")
    with pytest.raises(StoreUnusable, match="synchronous_commit is off"):
        PostgresJournal.create(fast, "horses", SERVICE, new_items(1))


def _newer(postgres: Postgres, url: str) -> None:
    postgres.execute("UPDATE muybridge_schema SET version = version + 1", url=url)


def _none(postgres: Postgres, url: str) -> None:
    postgres.execute("DELETE FROM muybridge_schema", url=url)


def _older(postgres: Postgres, url: str) -> None:
    postgres.execute("ALTER TABLE muybridge_workers DROP COLUMN writes", url=url)
    postgres.execute("UPDATE muybridge_schema SET version = 3", url=url)


@pytest.mark.parametrize(
    ("spoil", "version", "advice"),
    [
        (_newer, "5", "Upgrade muybridge on every machine"),
        (_older, "3", "Let its batches end with the muybridge that began them"),
        (_none, "none", "Let its batches end with the muybridge that began them"),
    ],
)
def test_other_tables_are_refused(
    spoil: Callable[[Postgres, str], None],
    version: str,
    advice: str,
    postgres: Postgres,
    url: str,
) -> None:
    """Tables of another version are neither read nor written."""
    PostgresJournal.create(url, "horses", SERVICE, new_items(1)).close()
    spoil(postgres, url)
    knows = f"of version {version}, and this muybridge knows version 4. Nothing was sent. {advice}"
    with pytest.raises(StoreUnusable, match=knows):
        PostgresJournal(url, "horses")
    with pytest.raises(StoreUnusable, match=knows):
        PostgresJournal.create(url, "mules", SERVICE, new_items(1))


def test_the_version_stands_for_the_columns(
    postgres: Postgres, url: str, snapshot: SnapshotAssertion
) -> None:
    """Whoever changes a column increases `schema.VERSION`, because other versions would fail."""
    PostgresJournal.create(url, "horses", SERVICE, []).close()
    columns = postgres.execute(
        "SELECT relname || '.' || attname || ' ' || format_type(atttypid, atttypmod) "
        "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attnum > 0 "
        "ORDER BY relname, attnum",
        url=url,
    )
    assert {schema.VERSION: [column for (column,) in columns]} == snapshot


def test_there_may_be_none(url: str) -> None:
    """A database without the batch is reported as such, and nothing is created in it."""
    with pytest.raises(BatchMissing, match="no batch 'horses'"):
        PostgresJournal(url, "horses")
    PostgresJournal.create(url, "mules", SERVICE, new_items(1)).close()
    with pytest.raises(BatchMissing, match="no batch 'horses'"):
        PostgresJournal(url, "horses")


def test_the_second_one_to_begin_joins_the_first(url: str) -> None:
    """If another process has just begun the same batch, its journal is opened."""
    with PostgresJournal.create(url, "horses", SERVICE, new_items(3)) as first:
        assert first.is_new
    with PostgresJournal.create(url, "horses", "https://other.test", new_items(1)) as second:
        assert not second.is_new
        assert (second.service, second.counts()) == (SERVICE, {State.QUEUED: 3})


def test_batches_do_not_see_each_other(url: str) -> None:
    """Two batches in the same tables share nothing."""
    with (
        PostgresJournal.create(url, "horses", SERVICE, new_items(2)) as horses,
        PostgresJournal.create(url, "mules", SERVICE, new_items(1)) as mules,
    ):
        horses.register("one")
        mules.register("two")
        assert mules.take("one", creates=True) is None
        entry = mules.take("two", creates=True)
        with pytest.raises(ClaimLost):
            horses.arm(entry, 1, by="two", lasts=1)
        assert horses.counts() == {State.QUEUED: 2}
        assert not horses.bury("two", ended=True)
        mules.arm(entry, 1, by="two", lasts=1)


def test_a_batch_whose_items_cannot_be_stored_is_not_begun(url: str) -> None:
    """A batch appears whole or not at all."""
    same = [NewItem(name="", stem="a", family="imgb", body={})] * 2
    with pytest.raises(Exception, match="stem"):
        PostgresJournal.create(url, "horses", SERVICE, same)
    with pytest.raises(BatchMissing):
        PostgresJournal(url, "horses")


def test_a_person_waits_until_nobody_can_be_sending(
    journal: Any, postgres: Postgres, url: str
) -> None:
    """An ambiguous item is sent again only once its create has certainly ended."""
    entry = journal.take("one", creates=True)
    journal.arm(entry, 1, by="one", lasts=60)
    journal.bury("one", ended=True)
    journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
    with pytest.raises(StillSending, match=r"under way: try again in \d+ seconds"):
        journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
    assert journal.entry(1).state is State.AMBIGUOUS
    postgres.execute("UPDATE muybridge_items SET sending_until = clock_timestamp()", url=url)
    journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
    assert journal.entry(1).state is State.QUEUED


def test_an_id_is_known_to_the_database(journal: Any) -> None:
    """A person who adopts a task is told whose it is, without reading every item."""
    entry = journal.take("one", creates=True)
    journal.arm(entry, 1, by="one", lasts=60)
    journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=TOKEN)
    assert journal.label_of_task("task-1") == "item 1 (h1)"
    journal.move(entry, State.SUBMITTED, State.SUBMITTED, by="one", token=None)
    assert journal.label_of_task("task-1") is None


def test_a_password_is_never_shown(postgres: Postgres, url: str) -> None:
    """No message, name or repr repeats the password of the database."""
    with_password = url.replace("postgres:@", "postgres:hush-4711@", 1)
    assert with_password != url
    with PostgresJournal.create(with_password, "horses", SERVICE, new_items(1)) as journal:
        assert "hush" not in f"{journal!r} {journal.name}"
        postgres.execute("DROP TABLE muybridge_strays", url=url)
        with pytest.raises(StoreUnusable) as raised:
            journal.strays()
    assert "hush" not in str(raised.value)
    for wrong in ("postgresql://u:hush@[/x", "host=a password=hush nonsense", "hush"):
        with pytest.raises(StoreUnusable) as raised:
            PostgresJournal(wrong, "horses")
        assert "hush" not in f"{raised.value}{raised.value.__cause__}"


@pytest.mark.parametrize(("version", "is_refused"), [(139_999, True), (140_000, False)])
def test_an_old_server_is_refused(
    url: str,
    version: int,
    is_refused: bool,  # noqa: FBT001  a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL 14 is new enough, and what is older is refused with its version."""
    monkeypatch.setattr("psycopg.ConnectionInfo.server_version", version)
    expected = pytest.raises(StoreUnusable, match=r"14 or newer is required .*version 13")
    with expected if is_refused else nullcontext():
        PostgresJournal.create(url, "horses", SERVICE, new_items(1)).close()


def test_without_psycopg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg, the error says what to install."""
    name = "muybridge.batch.postgres.connecting"
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "muybridge\[postgres\]"'):
        import_module(name)


def test_a_database_that_cannot_be_reached_is_told() -> None:
    """Where nobody listens, nothing is sent, and the message says which host."""
    with pytest.raises(StoreUnusable, match=r"postgresql://127\.0\.0\.1/x: .*Nothing more"):
        PostgresJournal("postgresql://127.0.0.1:1/x?connect_timeout=2", "horses")


@pytest.mark.parametrize(
    ("statement", "old", "new", "check"),
    [
        ("rate read", "rate, next_at", "rate, 0::float8", "each_permit_is_given_once"),
        ("rate written", "SET next_at = %s", "SET next_at = 0 * %s", "each_permit_is_given_once"),
        ("rate written", "paused_until = %s", "paused_until = 0 * %s", "a_pause_holds"),
        ("rate limited", "= %(rate)s, n", "= 1.0 + 0 * %(rate)s, n", "a_rate_may_be_changed"),
    ],
)
def test_a_rate_that_is_not_kept_is_noticed(
    statement: str,
    old: str,
    new: str,
    check: str,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a statement about the rate leaves out, a check of the kit fails."""
    leave_out(*moments.constant(statement), old, new, monkeypatch)
    fails(check, postgres)


def _nothing(*_: object) -> None:
    """Count nothing."""


@pytest.mark.parametrize(
    ("name", "wrong", "check"),
    [
        ("RELEASING", {State.CLAIMED, State.QUEUED}, ("refused", State.REFUSED, 0)),
        ("RELEASING", {State.CLAIMED, State.REFUSED}, ("queued", State.QUEUED, 0)),
        ("RELEASING", {State.QUEUED, State.AMBIGUOUS}, ("ambiguous", State.AMBIGUOUS, 1)),
        ("release", _nothing, ("late", State.QUEUED, 0)),
        ("reserve", _nothing, ("armed", State.ARMED, 1)),
    ],
)
def test_a_budget_that_is_miscounted_is_noticed(
    name: str,
    wrong: Any,
    check: tuple[str, State, int],
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is released or reserved wrongly, a check of the kit fails."""
    from muybridge.batch.postgres import budgets

    monkeypatch.setattr(budgets, name, wrong)
    case, after, spent = check
    name = "only_what_did_nothing_is_released"
    fails(name, postgres, after, late=case == "late", spent=spent)


def test_what_was_not_counted_cannot_be_limited(url: str) -> None:
    """Once a create of unknown cost was armed, no limit on the cost can be kept."""
    items = [attrs.evolve(item, body={"model": "imgb-2", "prompt": "x"}) for item in new_items(1)]
    made = PostgresJournal.create(url, "horses", SERVICE, items, budget=Budget(creates=5))
    with made as journal:
        journal.register("one")
        entry = journal.take("one", creates=True)
        journal.limit_budget(Budget(cost=5))
        with pytest.raises(OverBudget, match="cost is unknown"):
            journal.arm(entry, 1, by="one", lasts=0)
        journal.limit_budget(Budget(creates=5))
        journal.arm(entry, 1, by="one", lasts=0)
        with pytest.raises(InvalidBatch, match="the sum of their cost is unknown"):
            journal.limit_budget(Budget(cost=5))
        use = journal.budget_use()
        assert (use.budget, use.spent[Measure.COST]) == (Budget(creates=5), None)
        journal.move(entry, State.ARMED, State.REFUSED, by="one", owner=None)
        journal.limit_budget(Budget(cost=5))
        assert journal.budget_use().spent[Measure.COST] == 0


def test_what_is_armed_while_a_limit_is_set(url: str) -> None:
    """A limit is checked against what counts when it is set, not against what counted before."""
    psycopg = import_module("psycopg")
    items = [attrs.evolve(item, body={"model": "imgb-2", "prompt": "x"}) for item in new_items(1)]
    unknown = Spending().reserve(dict.fromkeys(Measure), Budget()).written()
    told: list[str] = []

    def limit(journal: Any) -> None:
        try:
            journal.limit_budget(Budget(cost=5))
        except InvalidBatch as error:
            told.append(str(error))

    with (
        PostgresJournal.create(url, "horses", SERVICE, items, budget=Budget(creates=5)) as one,
        psycopg.connect(url) as arming,
        psycopg.connect(url, autocommit=True) as looking,
    ):
        arming.execute("UPDATE muybridge_budgets SET spent = %s", (unknown,))
        limiting = threading.Thread(target=limit, args=(one,))
        limiting.start()
        while not looking.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert limiting.is_alive()
        arming.commit()
        limiting.join(60)
        assert "is unknown" in "".join(told)
        assert one.budget_use().budget == Budget(creates=5)


def test_batches_of_a_service_share_its_rate(url: str) -> None:
    """Two batches at the same service share one rate; those at another one have their own."""
    with (
        PostgresJournal.create(url, "horses", SERVICE, new_items(1)) as horses,
        PostgresJournal.create(url, "mules", SERVICE, new_items(1)) as mules,
        PostgresJournal.create(url, "cats", "https://other.test", new_items(1)) as cats,
    ):
        horses.limit_rate(0.001)
        assert mules.acquire_permits(9).count == 1
        assert 900 < horses.acquire_permits(9).after <= 1000
        assert cats.acquire_permits(9).count == 9
        for worker in ("one", "two"):
            horses.register(worker)
        mules.limit_rate(12)
        mules.register("three")
        assert mules.acquire_permits(100).count == 4, "a third of what 12 yield in a second"


def test_the_counts_agree_with_the_items(postgres: Postgres, journal: Any, url: str) -> None:
    """Whoever moves items in whatever way, the counts are those of the items."""
    journal.add(new_items(6)[3:], after=3)
    with journal.reopen() as other:
        other.register("two")
        for mine, worker in ((journal, "one"), (other, "two"), (journal, "one")):
            entry = mine.take(worker, creates=True)
            mine.arm(entry, 1, by=worker, lasts=0)
            mine.move(entry, State.ARMED, State.ARMED, by=worker, reply_status=200, reply=b"")
        other.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
    statement = "UPDATE muybridge_items SET state = 'abandoned' WHERE number IN (3, 6)"
    postgres.execute(statement, url=url)
    with pytest.raises(Unstorable):
        journal.add([*new_items(1), *new_items(1)], after=6)
    assert journal.counts() == {State.QUEUED: 2, State.ARMED: 2, State.ABANDONED: 2}


def test_workers_that_are_dead_for_long_are_forgotten(
    postgres: Postgres, journal: Any, url: str
) -> None:
    """A worker that registers removes those that ended long ago and own nothing, and no others."""
    for worker in ("owning", "dead", "silent", "fresh"):
        journal.register(worker)
    journal.take("owning", creates=True)
    for worker in ("dead", "fresh"):
        assert journal.bury(worker, ended=True)
    long_ago = (
        "UPDATE muybridge_workers SET lease_until = lease_until - interval '31 days', "
        "buried_at = buried_at - interval '31 days' WHERE id <> 'fresh'"
    )
    postgres.execute(long_ago, url=url)
    with PostgresJournal.create(url, "mules", SERVICE, new_items(1)) as mules:
        mules.register("elsewhere")
    known = "SELECT id FROM muybridge_workers ORDER BY id"
    assert len(postgres.execute(known, url=url)) == 6
    journal.register("two")
    found = [row[0] for row in postgres.execute(known, url=url)]
    assert found == ["elsewhere", "fresh", "owning", "two"]
    with pytest.raises(JournalOutdated):  # nothing distinguishes that from an older copy
        journal.renew("silent")


def test_a_closed_journal_is_closed(url: str) -> None:
    """After its context nothing is read from a journal, or written to it."""
    with PostgresJournal.create(url, "horses", SERVICE, new_items(1)) as journal:
        pass
    with pytest.raises(StoreUnusable), closing(journal):
        journal.counts()


def test_the_durations_of_the_page(journal: Any) -> None:
    """A lease and the time within which a create begins are those of the page."""
    page = (Path(__file__).parents[2] / "docs" / "many-machines.md").read_text(encoding="utf-8")
    assert (journal.lease, journal.send_within) == (30, 5)
    assert "claims items for 30 seconds at a time (its *lease*" in page
    assert "paused for more than five seconds just before sending" in " ".join(page.split())
