"""A journal whose values or whose file is bad: what is shown, and what is not sent any more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from muybridge_protocol.purchases import Stage
from muybridge.batch.journal_errors import StoreUnusable, Unstorable
from muybridge.batch.sqlite.journal import SqliteJournal

from .test_journal_values import SERVICE, check_shown, journal_of, new_item


@pytest.mark.parametrize(
    ("fact", "value", "stored"),
    [
        ("reason", "half \ud83d", "half \ufffd"),
        ("token", "half \ud83d", "half \ufffd"),
        ("size", 2**63 - 1, 2**63 - 1),
        ("size", 2**63, None),
        ("size", -(2**63), -(2**63)),
        ("size", -(2**63) - 1, None),
        ("expires", 2**64, None),
        ("expires", 7, 7.0),
        ("reply", b"\xff\x00", b"\xff\x00"),
    ],
)
def test_what_a_value_becomes(fact: str, value: Any, stored: object) -> None:
    """Text is made encodable, and an integer that is too large is left out; all else is kept."""
    with journal_of(new_item()) as journal:
        entry = journal.entry(1)
        journal.move(entry, State.QUEUED, State.QUEUED, by=None, **{fact: value})
        assert getattr(journal.entry(1), fact) == stored


@pytest.mark.parametrize(
    ("fact", "value"), [("reason", b"text"), ("reply", "text"), ("size", 1.5), ("attempt", None)]
)
def test_a_value_of_another_kind_is_refused(fact: str, value: Any) -> None:
    """A value that its column is not for is one item's error, and changes nothing."""
    with journal_of(new_item()) as journal:
        before = journal.entry(1)
        with pytest.raises(Unstorable):
            journal.move(before, State.QUEUED, State.QUEUED, by=None, **{fact: value})
        assert journal.entry(1) == before


def test_a_request_that_is_no_json_is_refused() -> None:
    """Items that cannot be written are not added, nor are those beside them."""
    with journal_of(new_item()) as journal:
        with pytest.raises(Unstorable, match="cannot be written as JSON"):
            journal.add([new_item("0002"), new_item("0003", body={"a": {1, 2}})], after=1)
        assert len(list(journal.entries())) == 1


def test_a_files_name_is_recorded_for_one_item() -> None:
    """A name that one item's file has is another one's no more."""
    with journal_of(new_item(), new_item("0002")) as journal:
        journal.move(journal.entry(1), State.QUEUED, State.QUEUED, by=None, path="a.png")
        assert journal.is_recorded("a.png", besides=2)
        assert not journal.is_recorded("a.png", besides=1)
        assert not journal.is_recorded("b.png", besides=2)


@pytest.mark.parametrize("text", ["a\nb", "x" * 10_000_000, "\x1b[2J"])
def test_a_reason_is_short_and_on_one_line(text: str) -> None:
    """A reason is stored, and shown, on one line and clipped, also one that was stored before."""
    with journal_of(new_item(), new_item("0002")) as journal:
        journal.move(journal.entry(1), State.QUEUED, State.QUEUED, by=None, reason=text)
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as db:
            db.execute("UPDATE items SET reason = ? WHERE number = 2", (text,))
            size: int = db.execute("SELECT sum(length(reason)) FROM items").fetchone()[0]
        assert size < len(text) + 2100
        for entry in journal.entries():
            assert entry.reason is not None
            assert entry.reason.isprintable()
            assert len(entry.reason) < 2100


def test_a_failed_journal_arms_nothing_more(tmp_path: Path) -> None:
    """Once the journal could not be written, no item is armed, whether it can be written again."""
    items = [new_item(), new_item("0002")]
    with SqliteJournal.create(tmp_path, SERVICE.require_base_url(), items, patience=0) as journal:
        first, second = (journal.take("one", creates=True) for _ in range(2))
        assert first is not None
        assert second is not None
        with closing(sqlite3.connect(journal.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnusable, match="Another process is writing"):
                journal.move(first, State.CLAIMED, State.ARMED, by="one")
        with pytest.raises(StoreUnusable, match="Nothing more is sent"):
            journal.move(second, State.CLAIMED, State.ARMED, by="one")
        journal.move(second, State.CLAIMED, State.QUEUED, by="one", owner=None)
    with SqliteJournal(tmp_path) as again:
        entry = again.take("two", creates=True)
        assert entry is not None
        again.move(entry, State.CLAIMED, State.ARMED, by="two")


def _blob(db: sqlite3.Connection) -> None:
    db.execute("UPDATE items SET name = CAST(x'ff' AS TEXT), token = CAST(x'7bff' AS TEXT)")


def _no_json(db: sqlite3.Connection) -> None:
    db.execute("UPDATE items SET body = '[', result = '{', token = '{}', path = 'h.png'")


def _no_family(db: sqlite3.Connection) -> None:
    db.execute("UPDATE items SET family = 'imgz', path = 'h.png'")


@pytest.mark.parametrize("spoil", [_blob, _no_json, _no_family])
def test_a_spoilt_row_is_shown(spoil: Callable[[sqlite3.Connection], None], tmp_path: Path) -> None:
    """A row whose values mean nothing is an item that cannot be shown, and no more."""
    SqliteJournal.create(tmp_path, SERVICE.require_base_url(), [new_item()]).close()
    with closing(sqlite3.connect(tmp_path / "journal" / "store.sqlite3")) as db:
        spoil(db)
        db.commit()
    check_shown(tmp_path)
