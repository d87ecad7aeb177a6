"""Every journal of ours passes the kit that checks other people's, and the kit notices mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.port import Journal
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.testing.conformance import NotConforming
from muybridge.testing.journal_conformance import SERVICE, JournalConformance


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
    by = now.owner
    SqliteJournal.move(self, now, now.state, after, **{**more, "by": by})


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


@pytest.mark.parametrize(
    ("method", "mistake", "check"),
    [
        ("move", _unconditional, "test_the_first_one_to_take_a_step_is_the_only_one"),
        ("report_late", _forgetful, "test_a_late_response_is_news"),
        ("report_late", _blind, "test_a_late_response_to_an_earlier_create_changes_nothing"),
        ("take", _generous, "test_the_most_urgent_item_is_first"),
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

    suite = Suite()
    suite.setup_method()
    with pytest.raises(NotConforming, match="why:"):
        getattr(suite, check)()
    suite.teardown_method()
