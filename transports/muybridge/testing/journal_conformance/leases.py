"""A worker whose lease has expired does nothing more."""

from __future__ import annotations

from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost
from muybridge.batch.port import Journal
from muybridge.testing.journal_conformance.any_journal import TOKEN, refused
from muybridge.testing.journal_conformance.every_journal import JournalConformance
from muybridge.testing.journal_conformance.lessons import FENCE, LATE


class LeasedJournalConformance(JournalConformance):
    """The checks of a journal whose workers have leases."""

    def expire(self, journal: Journal, worker: str) -> None:
        """Let the lease of *worker* run out at once."""
        raise NotImplementedError(f"{type(self).__name__} must say how a lease runs out")

    def test_a_dead_worker_does_nothing_more(self) -> None:
        """A worker that was declared dead can neither renew, take nor arm, if it lives on."""
        journal = self._journal(3)
        entry = self._taken(journal, "one")
        FENCE.require(journal.bury("one", ended=True), "one is dead", "it is not")
        self._cannot_continue(journal, entry)

    def test_a_worker_whose_lease_has_expired_sends_nothing(self) -> None:
        """Nothing is armed after the lease has expired, even if nobody has taken over yet."""
        journal = self._journal(3)
        entry = self._taken(journal, "one")
        self.expire(journal, "one")
        FENCE.require(journal.take("one", creates=True) is None, "nothing is taken", "an item")
        with refused(ClaimLost, FENCE, "arming after the lease has expired"):
            journal.arm(entry, 1, by="one", lasts=60)
        FENCE.require(journal.bury("one", ended=False), "one is dead", "it is not")
        self._cannot_continue(journal, entry)

    def test_a_live_worker_is_not_declared_dead(self) -> None:
        """As long as its lease holds, a worker is alive, however long it has been silent."""
        journal = self._journal(3)
        self._taken(journal, "one")
        FENCE.require(not journal.bury("one", ended=False), "one is alive", "it is buried")
        journal.renew("one")
        FENCE.require(journal.take("one", creates=True), "one takes another item", "nothing")

    def test_an_unknown_worker_gets_nothing(self) -> None:
        """A worker that has not registered cannot be seen to die, so it gets no item."""
        journal = self._journal(1)
        entry = journal.take("nobody", creates=True)
        FENCE.equal(entry, None, "nothing for a worker that is not registered")

    def test_only_the_worker_that_armed_an_item_reports_late(self) -> None:
        """A worker of another batch on the same machine knows nothing of this one's items."""
        journal, _ = self._lost()
        journal.register("two")
        took = journal.report_late(1, 1, State.SUBMITTED, by="two", token=TOKEN)
        LATE.require(not took, "a stray", "the item took it")

    def _cannot_continue(self, journal: Journal, entry: Entry) -> None:
        with refused(ClaimLost, FENCE, "renewing the lease of a dead worker"):
            journal.renew("one")
        FENCE.require(journal.take("one", creates=True) is None, "nothing is taken", "an item")
        with refused(ClaimLost, FENCE, "arming by a dead worker"):
            journal.arm(entry, 1, by="one", lasts=60)
        found = journal.entry(entry.number)
        FENCE.require(found.state is State.CLAIMED, "the item is claimed", found)
