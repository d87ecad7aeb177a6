"""All workers of a shared batch share one budget, and one place for results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import cast

import attrs
import pytest

from muybridge.batch.items import InvalidBatch
from muybridge.batch.journal_entries import NewItem, State
from muybridge.batch.journal_errors import ClaimLost, OverBudget
from muybridge.batch.port import SharedJournal
from muybridge.testing.journal_conformance.any_journal import at_once, new_items, refused
from muybridge.testing.journal_conformance.leases import LeasedJournalConformance
from muybridge.testing.journal_conformance.lessons import BUDGET, WHOLE
from muybridge_protocol.purchases import Budget, Measure


class BudgetedJournalConformance(LeasedJournalConformance):
    """The checks of a journal that keeps what all workers of a batch share: budget and place."""

    def make_budgeted(self, items: Sequence[NewItem], budget: Budget) -> SharedJournal:
        """Return the journal of a new batch with a *budget*, as `make_journal` does."""
        raise NotImplementedError(f"{type(self).__name__} must say how a budget is given")

    def test_a_budget_is_never_exceeded(self) -> None:
        """Three workers that race for the last creates never arm one too many."""
        journal = self._budgeted(24, Budget(creates=10), "a", "b", "c")
        armed: list[int] = []

        def arm(name: str) -> None:
            with closing(self.reopen(journal)) as mine:
                for number in range(100):
                    entry = self._taken(mine, name)
                    try:
                        mine.arm(entry, 1, by=name, lasts=60)
                    except OverBudget:
                        mine.move(entry, State.CLAIMED, State.QUEUED, by=name, owner=None)
                        return
                    if number % 3 == 2:  # noqa: PLR2004  some of them certainly do nothing
                        mine.move(entry, State.ARMED, State.REFUSED, by=name, owner=None)
                    else:
                        armed.append(entry.number)

        at_once(arm, ["a", "b", "c"])
        BUDGET.require(len(armed) <= 10, "10 creates at most", armed)  # noqa: PLR2004  the limit
        BUDGET.equal(self._spent(journal), len(armed), f"{len(armed)} spent")
        counts = journal.counts()
        BUDGET.require(counts[State.ARMED] == len(armed), f"{len(armed)} are armed", counts)

    def test_what_does_not_fit_is_not_armed(self) -> None:
        """An item beyond the limit keeps its state, and a higher limit lets it through."""
        journal = self._budgeted(2, Budget(creates=1, pictures=100))
        first = self._taken(journal, "one")
        journal.arm(first, 1, by="one", lasts=60)
        entry = self._taken(journal, "one")
        with refused(OverBudget, BUDGET, "arming beyond the limit"):
            journal.arm(entry, 1, by="one", lasts=60)
        found = journal.entry(2)
        facts = (found.state, found.owner, found.attempt, self._spent(journal))
        BUDGET.equal(facts, (State.CLAIMED, "one", 0, 1), "claimed, and 1 spent")
        with closing(self.reopen(journal)) as other:
            cast("SharedJournal", other).limit_budget(Budget(creates=2))
        journal.arm(entry, 1, by="one", lasts=60)
        BUDGET.equal(self._spent(journal), 2, "2 spent")

    @pytest.mark.parametrize(
        ("after", "late", "spent"),
        [
            (State.CLAIMED, False, 0),
            (State.QUEUED, False, 0),
            (State.REFUSED, False, 0),
            (State.ARMED, False, 1),
            (State.SUBMITTED, False, 1),
            (State.AMBIGUOUS, False, 1),
            (State.CLAIMED, True, 0),
            (State.QUEUED, True, 0),
            (State.REFUSED, True, 0),
            (State.ARMED, True, 1),
            (State.SUBMITTED, True, 1),
            (State.AMBIGUOUS, True, 1),
        ],
    )
    def test_only_what_did_nothing_is_released(
        self, after: State, *, late: bool, spent: int
    ) -> None:
        """A create counts unless its outcome says that it certainly did nothing."""
        journal = self._budgeted(1, Budget(creates=5))
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        if late:
            journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
            journal.report_late(1, 1, after, by="one")
        else:
            journal.move(entry, State.ARMED, after, by="one")
        BUDGET.equal(self._spent(journal), spent, f"{spent} spent")

    def test_an_ambiguous_create_stays_spent(self) -> None:
        """If a person has an ambiguous item sent again, both creates count, and a stray's does."""
        journal = self._budgeted(1, Budget(creates=2))
        entry = self._taken(journal, "one")
        for attempt in (1, 2):
            journal.arm(entry, attempt, by="one", lasts=0)
            journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
            journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
            BUDGET.equal(self._spent(journal), attempt, f"{attempt} spent")
            entry = self._taken(journal, "one")
        journal.report_late(1, 1, State.REFUSED, by="one")
        BUDGET.equal(self._spent(journal), 2, "2 spent")
        with refused(OverBudget, BUDGET, "a third create"):
            journal.arm(entry, 3, by="one", lasts=0)

    def test_a_refused_step_releases_nothing(self) -> None:
        """A step that another worker has taken changes nothing about the budget."""
        journal = self._budgeted(1, Budget(creates=1), "one", "two")
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        with refused(ClaimLost, BUDGET, "releasing another worker's item"):
            journal.move(entry, State.ARMED, State.REFUSED, by="two")
        with refused(ClaimLost, BUDGET, "arming an armed item"):
            journal.arm(entry, 2, by="one", lasts=0)
        BUDGET.equal(self._spent(journal), 1, "1 spent")

    def test_a_batch_without_a_budget_gets_none(self) -> None:
        """What was sent without a budget was not counted, so none can be given later."""
        journal = cast("SharedJournal", self._journal(1))
        BUDGET.equal(journal.budget_use(), None, "no budget")
        with refused(InvalidBatch, BUDGET, "a budget given later"):
            journal.limit_budget(Budget(creates=1))

    def test_the_place_for_results_is_kept(self) -> None:
        """Everybody who opens the journal reads the place that was written last."""
        journal = cast("SharedJournal", self._journal(1))
        WHOLE.equal(journal.out, None, "no place")
        for place in ("s3://studio/horses", "/srv/Füße"):
            journal.store_in(place)
            with closing(cast("SharedJournal", self.reopen(journal))) as other:
                WHOLE.require(other.out == journal.out == place, place, (other.out, journal.out))

    def _budgeted(self, count: int, budget: Budget, *workers: str) -> SharedJournal:
        body = {"model": "imgb-2", "prompt": "A horse"}
        items = [attrs.evolve(item, body=body) for item in new_items(count)]
        journal = self._open.enter_context(closing(self.make_budgeted(items, budget)))
        for worker in workers or ("one",):
            journal.register(worker)
        return journal

    def _spent(self, journal: SharedJournal) -> int:
        use = journal.budget_use()
        assert use is not None  # noqa: S101  the batch has one
        return int(use.spent[Measure.CREATES] or 0)
