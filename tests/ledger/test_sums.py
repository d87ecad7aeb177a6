"""The sums that the ledger's file keeps are those of its entries, whatever happens to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import moments
from muybridge.files.sqlite import transaction
from muybridge.ledger import Amounts, Budget, Entry, StoreUnusable, Measure, State, open_ledger
from muybridge.ledger.entries import SPENT
from muybridge.ledger.sqlite_schema import SCHEMA, VERSION
from muybridge.ledger.sqlite_store import SqliteRows, SqliteStore
from muybridge.ledger.store import Rows

from .test_store import NOW, purchase

MIDNIGHT = 1_799_971_200.0
DAY = 86_400.0
PERIODS = (-float("inf"), *(MIDNIGHT + days * DAY for days in range(-1, 4)))

AMOUNTS = st.none() | st.decimals("0", "1000", places=3)
ENTRIES = st.builds(
    Entry,
    key=st.sampled_from("abcd"),
    account=st.just("a"),
    time=st.integers(-2, 3).map(lambda days: MIDNIGHT + days * DAY)
    | st.floats(MIDNIGHT - DAY, MIDNIGHT + 3 * DAY),
    family=st.just("imga"),
    model=st.just("imga"),
    tier=st.none(),
    amounts=st.fixed_dictionaries({
        measure: AMOUNTS if measure in (Measure.SECONDS, Measure.COST) else st.none()
        | st.integers(0, 9).map(Decimal)
        for measure in Measure
    }),
    state=st.sampled_from(State),
    owner=st.just("o"),
)  # fmt: skip


def spent_by(entries: Iterable[Entry], since: float) -> Amounts:
    """Add up *entries* one by one."""
    counted = [one for one in entries if one.state in SPENT and one.time >= since]
    known = {one: [entry.amounts[one] for entry in counted] for one in Measure}
    return {
        measure: None if None in amounts else sum(filter(None, amounts), Decimal(0))
        for measure, amounts in known.items()
    }


def check_sums(rows: Rows, entries: Iterable[Entry]) -> None:
    kept = [*entries]
    for since in PERIODS:
        assert rows.spent(since) == spent_by(kept, since)


def check_file(path: Path) -> None:
    store = SqliteStore(path)
    entries = [*store.entries()]
    with store.writing() as rows:
        check_sums(rows, entries)


class Interrupted(Exception):
    """What ends a transaction before its time."""


@given(steps=st.lists(st.tuples(st.lists(ENTRIES, max_size=6), st.booleans()), max_size=4))
def test_sums(steps: list[tuple[list[Entry], bool]]) -> None:
    """After any changes, of which some are rolled back, each period's sums are its entries'."""
    kept: dict[str, Entry] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SCHEMA)
        rows = SqliteRows(db)
        for entries, fails in steps:
            with suppress(Interrupted), transaction(db):
                for entry in entries:
                    rows.put(entry)
                if fails:
                    raise Interrupted
                kept |= {entry.key: entry for entry in entries}
        check_sums(rows, kept.values())


def test_a_removed_entry(tmp_path: Path) -> None:
    """What another program removes from the file is no longer in the sums."""
    path = tmp_path / "ledger.sqlite3"
    ledger = open_ledger(path)
    for number in range(3):
        ledger.arm(purchase(f"k{number}", creates=1), (), NOW)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM entries WHERE key = 'k1'")
    check_file(path)


def test_a_sum_that_is_too_large(tmp_path: Path) -> None:
    """A sum beyond what the file can hold is refused, and never rounded."""
    ledger = open_ledger(tmp_path / "ledger.sqlite3")
    ledger.arm(purchase("k1", cost=9 * 10**9), (), NOW)
    with pytest.raises(StoreUnusable, match="cannot record"):
        ledger.arm(purchase("k2", cost=9 * 10**9), (), NOW)
    [entry] = ledger.entries()
    assert entry.key == "k1"


VERSION_1 = """
PRAGMA application_id = 1836415340;
CREATE TABLE ledger (salt BLOB NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, account TEXT NOT NULL, time REAL NOT NULL,
    family TEXT NOT NULL, model TEXT NOT NULL, tier TEXT, creates INTEGER, pictures INTEGER,
    seconds INTEGER, calls INTEGER, cost INTEGER, state TEXT NOT NULL, owner TEXT NOT NULL,
    once TEXT, digest TEXT, token TEXT, candidate TEXT, reason TEXT
);
CREATE INDEX spent_entries ON entries (time, creates, pictures, seconds, calls, cost, state)
    WHERE state IN ('armed', 'accepted', 'ambiguous', 'resubmitted');
CREATE UNIQUE INDEX names ON entries (account, once)
    WHERE once NOT NULL AND state IN ('armed', 'accepted', 'ambiguous');
CREATE INDEX states ON entries (state);
INSERT INTO ledger VALUES (x'00112233445566778899aabbccddeeff');
PRAGMA user_version = 1;
"""


def of_version_1(path: Path) -> list[Entry]:
    """Make a ledger as version 1 did, and return its entries."""
    wanted: list[Entry] = []
    with closing(sqlite3.connect(path)) as db:
        db.executescript(VERSION_1)
        for number, state in enumerate([*State, State.ACCEPTED, State.ACCEPTED]):
            cost = None if number == len(State) else number * 10**9 + 1
            row = (f"k{number}", NOW + number * DAY, cost, state, f"once {number}", "d")
            db.execute(
                "INSERT INTO entries (key, account, time, family, model, creates, pictures, "
                "seconds, calls, cost, state, owner, once, digest) "
                "VALUES (?, 'a', ?, 'imga', 'imga', 1, 1, 2500, 3, ?, ?, 'o', ?, ?)",
                row,
            )
            db.commit()
            amounts: dict[Measure, Decimal | None] = {
                Measure.CREATES: Decimal(1),
                Measure.PICTURES: Decimal(1),
                Measure.SECONDS: Decimal("2.5"),
                Measure.CALLS: Decimal(3),
                Measure.COST: None if cost is None else Decimal(cost) / 10**9,
            }
            wanted.append(
                Entry(
                    key=row[0], account="a", time=row[1], family="imga", model="imga", tier=None,
                    amounts=amounts, state=state, owner="o", once=row[4], digest="d",
                )
            )  # fmt: skip
    return wanted


def test_a_ledger_of_version_1(tmp_path: Path) -> None:
    """An older ledger keeps its salt and every entry, and gets the sums of them."""
    path = tmp_path / "ledger.sqlite3"
    before = of_version_1(path)
    store = SqliteStore(path)
    assert store.salt == bytes.fromhex("00112233445566778899aabbccddeeff")
    assert [*store.entries()] == before
    check_file(path)
    ledger = open_ledger(path)
    wanted = purchase("new", cost=1)
    with pytest.raises(Exception, match="the ledger has requests whose cost is unknown"):
        ledger.arm(wanted, [Budget(cost=100)], NOW)
    ledger.arm(attrs.evolve(wanted, key="newer"), [Budget(seconds=100)], NOW)
    check_file(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_migration_that_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process dies while it brings a ledger up to date, the next one starts over."""
    path = tmp_path / "ledger.sqlite3"
    before = of_version_1(path)
    content = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(*moments.constant("sums of an old ledger"), "SELECT * FROM nowhere")
        with pytest.raises(StoreUnusable):
            list(SqliteStore(path).entries())
    assert path.read_bytes() == content
    assert [*SqliteStore(path).entries()] == before
    check_file(path)
