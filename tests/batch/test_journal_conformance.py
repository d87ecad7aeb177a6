"""Every journal of ours passes the kit that checks other people's, and the kit notices mistakes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

import moments
from muybridge.batch.journal_entries import JUDGED, Entry, NewItem, State
from muybridge.batch.port import Journal
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.testing.conformance import NotConforming
from muybridge.testing.journal_conformance import SERVICE, JournalConformance
from muybridge.testing.journal_conformance.any_journal import TOKEN


class TestSqliteJournal(JournalConformance):
    """The journal of a batch on one machine passes all of it."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_journal(self, items: Sequence[NewItem]) -> SqliteJournal:
        return SqliteJournal.create(self.folder, SERVICE, items)

    def reopen(self, journal: Journal) -> SqliteJournal:
        return SqliteJournal(cast("SqliteJournal", journal).folder)


class Careless(SqliteJournal):
    """A journal with one mistake."""


def _unconditional(self: SqliteJournal, entry: Entry, _: State, after: State, **more: Any) -> None:
    now = self.entry(entry.number)
    more["by"] = now.owner
    SqliteJournal.move(self, now, now.state, after, **more)


def _sharing(self: SqliteJournal, *step: Any, shares: bool = False, **more: Any) -> None:  # noqa: ARG001
    SqliteJournal.move(self, *step, shares=True, **more)


def _piecemeal(_: SqliteJournal) -> AbstractContextManager[object]:
    return nullcontext()


def _forgetful(self: SqliteJournal, number: int, *_: Any, **__: Any) -> bool:
    return self.entry(number).state is not State.AMBIGUOUS


def _blind(self: SqliteJournal, number: int, _attempt: int, after: State, **more: Any) -> bool:
    current = self.entry(number).attempt
    return SqliteJournal.report_late(self, number, current, after, **more)


def _generous(self: SqliteJournal, owner: str, **_: Any) -> Entry | None:
    for entry in self.entries():
        if entry.state is State.QUEUED:
            SqliteJournal.move(self, entry, State.QUEUED, State.CLAIMED, by=None, owner=owner)
            return self.entry(entry.number)
    return None


def _agreeing(*_: Any) -> bool:
    return True


def _guessing(self: SqliteJournal, worker: str, _: int) -> bool:
    return SqliteJournal.has_written(self, worker, 0)


def _silent(self: SqliteJournal, worker: str, _: Any = None) -> None:
    SqliteJournal.register(self, worker)


def _idle(*_: Any) -> None:
    pass


def _hasty(self: SqliteJournal, worker: str) -> None:
    with closing(sqlite3.connect(self.path)) as db, db:
        db.execute("DELETE FROM runners WHERE name = ?", (worker,))


@pytest.mark.parametrize(
    ("method", "mistake", "check"),
    [
        ("move", _unconditional, "test_the_first_one_to_take_a_step_is_the_only_one"),
        ("move", _sharing, "test_a_task_belongs_to_one_item"),
        ("transaction", _piecemeal, "test_steps_are_taken_together"),
        ("report_late", _forgetful, "test_a_late_response_is_news"),
        ("report_late", _blind, "test_a_late_response_to_an_earlier_create_changes_nothing"),
        ("take", _generous, "test_the_most_urgent_item_is_first"),
        ("has_written", _agreeing, "test_the_writes_of_a_worker_are_counted"),
        ("has_written", _guessing, "test_the_writes_of_a_worker_are_counted"),
        ("register", _silent, "test_the_writes_of_a_worker_are_counted"),
        ("forget", _idle, "test_a_worker_that_owns_items_is_not_forgotten"),
        ("forget", _hasty, "test_a_worker_that_owns_items_is_not_forgotten"),
    ],
)
def test_a_mistake_is_noticed(
    method: str, mistake: Any, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that breaks a rule fails the check of that rule, which says what it would cost."""
    monkeypatch.setattr(Careless, method, mistake)

    class Suite(TestSqliteJournal):
        def make_journal(self, items: Sequence[NewItem]) -> SqliteJournal:
            return Careless.create(tmp_path, SERVICE, items)

        def reopen(self, journal: Journal) -> SqliteJournal:
            return Careless(cast("SqliteJournal", journal).folder)

    suite = Suite()
    suite.setup_method()
    with pytest.raises(NotConforming, match="why:"):
        getattr(suite, check)()
    suite.teardown_method()


@pytest.mark.parametrize("fact", ["attempt", "reply_status", "reply", "token", "candidate"])
def test_a_hasty_judgement_is_noticed(
    fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judgement that does not compare a fact fails the check, which says what it would cost."""
    compared = "".join(f" AND {name} IS ?" for name in JUDGED)
    without = compared.replace(f"{fact} IS ?", "(? IS NULL OR TRUE)")
    monkeypatch.setattr(*moments.constant("what a judgement compares"), without)
    suite = TestSqliteJournal()
    suite.folder = tmp_path
    suite.setup_method()
    value = {"attempt": 2, "reply_status": 200, "reply": b"{}"}.get(fact, TOKEN)
    with pytest.raises(NotConforming, match="its id, which is paid for, is lost"):
        suite.test_a_judgement_holds_for_what_was_judged(fact, value)
    suite.teardown_method()
