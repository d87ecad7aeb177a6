"""An older copy of a journal, such as a backup, is told apart from the journal."""

from __future__ import annotations

from contextlib import closing

from muybridge.batch.journal_entries import State
from muybridge.testing.journal_conformance.any_journal import TOKEN, AnyJournal
from muybridge.testing.journal_conformance.lessons import FRESH


class Freshness(AnyJournal):
    """The checks of what a journal knows of its workers' writes."""

    def test_the_writes_of_a_worker_are_counted(self) -> None:
        """Each step of a worker is counted, and a copy without the last of them is told apart."""
        journal = self._journal(1, "two")
        told: list[int] = []
        journal.register("one", told.append)
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=60)
        journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=TOKEN)
        grown = told == sorted(told) and told[-1:] >= [3]
        FRESH.require(grown, "a number that grows with each of three steps", told)
        with closing(self.reopen(journal)) as other:
            known = other.has_written("one", told[-1])
            FRESH.require(known, f"{told[-1]} writes of one", "it has fewer")
            known = other.has_written("one", told[-1] + 1_000)
            FRESH.require(not known, "not so many writes of one as a later copy has", "it has them")
            known = other.has_written("nobody", 0)
            FRESH.require(not known, "nothing of a worker that never registered", "it is known")

    def test_a_worker_that_owns_items_is_not_forgotten(self) -> None:
        """The writes of a worker are kept as long as it owns items, and no longer."""
        journal = self._journal(1, "two")
        told: list[int] = []
        journal.register("one", told.append)
        entry = self._taken(journal, "one")
        with closing(self.reopen(journal)) as other:
            other.forget("one")
            known = other.has_written("one", told[-1])
            FRESH.require(known, "one is known, for it owns item 1", "it was forgotten")
            journal.move(entry, State.CLAIMED, State.QUEUED, by="one", owner=None)
            other.forget("one")
            FRESH.require(not other.has_written("one", 0), "one was forgotten", "it is known")
            FRESH.equal(other.entry(1).state, State.QUEUED, "its item is still queued")
