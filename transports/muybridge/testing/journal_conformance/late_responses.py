"""A response that comes after its worker was declared dead loses no id."""

from __future__ import annotations

from contextlib import closing

import pytest

from muybridge.batch.journal_entries import State
from muybridge.testing.journal_conformance.any_journal import TOKEN, AnyJournal, refused
from muybridge.testing.journal_conformance.lessons import LATE


class LateResponses(AnyJournal):
    """The checks of late responses and strays."""

    def test_a_late_response_is_news(self) -> None:
        """A paid id that arrives after its worker was declared dead belongs to the item."""
        journal, entry = self._lost()
        told = {"token": TOKEN, "reason": None}
        took = journal.report_late(1, 1, State.SUBMITTED, by="one", **told)
        LATE.require(took, "the item takes it", "a stray")
        found = journal.entry(entry.number)
        facts = (found.state, found.owner, found.token, found.reason)
        LATE.equal(facts, (State.SUBMITTED, None, TOKEN, None))
        LATE.equal(journal.strays(), [], "no stray")

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            (State.REFUSED, State.REFUSED),
            (State.CLAIMED, State.QUEUED),
            (State.QUEUED, State.QUEUED),
            (State.AMBIGUOUS, State.AMBIGUOUS),
            (State.ARMED, State.AMBIGUOUS),
        ],
    )
    def test_any_late_response_is_news(self, after: State, expected: State) -> None:
        """What certainly did nothing is free again, and what is still unknown stays ambiguous."""
        journal, entry = self._lost()
        took = journal.report_late(1, 1, after, by="one", reply_status=418, reply=b"a teapot")
        found = journal.entry(entry.number)
        facts = (took, found.state, found.owner, found.reply_status, found.reply)
        LATE.equal(facts, (True, expected, None, 418, b"a teapot"))

    def test_a_late_response_that_no_item_takes_is_kept(self) -> None:
        """If a person has decided meanwhile, or it is not this create's, the response is kept."""
        journal, entry = self._lost()
        journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
        before = journal.entry(1)
        for attempt in (1, 2):
            took = journal.report_late(1, attempt, State.SUBMITTED, by="one", token=TOKEN)
            LATE.require(not took, "no item takes it", "one does")
        LATE.equal(journal.entry(1), before, "the item is as it was")
        with closing(self.reopen(journal)) as other:
            strays = [(s.number, s.attempt, s.worker, s.state, s.token) for s in other.strays()]
        LATE.equal(strays, [(1, attempt, "one", State.SUBMITTED, TOKEN) for attempt in (1, 2)])

    def test_a_late_response_to_an_earlier_create_changes_nothing(self) -> None:
        """A response to an earlier create says nothing about the last one."""
        journal, entry = self._lost()
        journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
        journal.register("two")
        again = self._taken(journal, "two")
        journal.arm(again, 2, by="two", lasts=60)
        journal.move(again, State.ARMED, State.AMBIGUOUS, by="two", owner=None)
        took = journal.report_late(1, 1, State.QUEUED, by="one")
        LATE.require(not took, "the second create is still ambiguous", "the item took it")
        LATE.equal(journal.entry(1).state, State.AMBIGUOUS, "ambiguous")

    def test_a_response_to_the_first_try_says_nothing_about_the_second(self) -> None:
        """The attempt tells the creates of one worker apart."""
        journal = self._journal(1)
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        journal.move(entry, State.ARMED, State.CLAIMED, by="one")
        journal.arm(entry, 2, by="one", lasts=0)
        journal.bury("one", ended=True)
        journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
        took = journal.report_late(1, 1, State.QUEUED, by="one")
        LATE.require(not took, "the second create is still ambiguous", "the item took it")
        took = journal.report_late(1, 2, State.SUBMITTED, by="one", token=TOKEN)
        LATE.require(took, "the item takes the second response", "a stray")

    def test_only_what_a_create_leads_to_comes_late(self) -> None:
        """A late response never completes or abandons an item."""
        journal, entry = self._lost()
        for after in (State.COMPLETED, State.FAILED, State.DOWNLOADED, State.ABANDONED):
            with refused(ValueError, LATE, f"a late response that leads to {after}"):
                journal.report_late(entry.number, 1, after, by="one")
