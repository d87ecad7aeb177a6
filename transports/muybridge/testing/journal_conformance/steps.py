"""No two workers have an item, and an item takes no step that the table does not list."""

from __future__ import annotations

from contextlib import closing

from muybridge.batch.journal_entries import TRANSITIONS, State
from muybridge.batch.journal_errors import ClaimLost
from muybridge.testing.journal_conformance.any_journal import TOKEN, AnyJournal, at_once, refused
from muybridge.testing.journal_conformance.lessons import FENCE, FIRST, ORDER, SEEN, WHOLE


class Steps(AnyJournal):
    """The checks of how items go from state to state."""

    def test_only_listed_steps_are_taken(self) -> None:
        """No item goes from one state to another that the table does not list."""
        journal = self._journal(1)
        entry = journal.entry(1)
        for before in State:
            for after in set(State) - TRANSITIONS[before] - {before}:
                with refused(ValueError, FIRST, f"from {before} to {after}"):
                    journal.move(entry, before, after, by=None)
        with refused(ValueError, WHOLE, "a column that does not exist"):
            journal.move(entry, State.QUEUED, State.QUEUED, by=None, body="{}")
        FIRST.require(journal.entry(1) == entry, "nothing changed", journal.entry(1))

    def test_the_first_one_to_take_a_step_is_the_only_one(self) -> None:
        """A step that another one has taken, or that is not the worker's, changes nothing."""
        journal = self._journal(2, "one", "two")
        entry = self._taken(journal, "one")
        with refused(ClaimLost, FIRST, "arming another worker's item"):
            journal.arm(entry, 1, by="two", lasts=60)
        journal.arm(entry, 1, by="one", lasts=60)
        with refused(ClaimLost, FIRST, "arming an armed item"):
            journal.arm(entry, 2, by="one", lasts=60)
        for by in ("two", None):
            with refused(ClaimLost, FIRST, f"a step of {by} with the item of one"):
                journal.move(entry, State.ARMED, State.REFUSED, by=by)
        with refused(ClaimLost, FIRST, "a step from a state that the item has left"):
            journal.move(entry, State.CLAIMED, State.QUEUED, by="one", owner=None)
        found = journal.entry(1)
        facts = (found.state, found.owner, found.attempt)
        FIRST.require(facts == (State.ARMED, "one", 1), "armed by one, for the first time", facts)

    def test_no_item_is_given_twice(self) -> None:
        """Many workers, each with a connection of its own, are never given the same item."""
        journal = self._journal(24, *(str(number) for number in range(4)))
        given: list[int] = []

        def take(owner: str) -> None:
            with closing(self.reopen(journal)) as mine:
                while (entry := mine.take(owner, creates=True)) is not None:
                    given.append(entry.number)

        at_once(take, [str(number) for number in range(4)])
        FIRST.require(sorted(given) == [*range(1, 25)], "each item once", sorted(given))

    def test_no_item_is_armed_twice(self) -> None:
        """If several processes arm the same create at the same time, one of them may send it."""
        journal = self._journal(1)
        entry = self._taken(journal, "one")
        armed: list[str] = []

        def arm(name: str) -> None:
            with closing(self.reopen(journal)) as mine:
                try:
                    mine.arm(entry, 1, by="one", lasts=60)
                except ClaimLost:
                    return
                armed.append(name)

        at_once(arm, ["a", "b", "c", "d"])
        FIRST.require(len(armed) == 1, "one of four arms the item", armed)

    def test_a_step_is_seen_by_others(self) -> None:
        """When a step returns, every other process sees it."""
        journal = self._journal(1)
        with closing(self.reopen(journal)) as other:
            seen: list[State] = []
            entry = self._taken(journal, "one")
            seen.append(other.entry(1).state)
            journal.arm(entry, 1, by="one", lasts=60)
            seen.append(other.entry(1).state)
            journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=TOKEN)
            seen.append(other.entry(1).state)
        expected = [State.CLAIMED, State.ARMED, State.SUBMITTED]
        SEEN.require(seen == expected, str(expected), seen)

    def test_the_most_urgent_item_is_first(self) -> None:
        """Results come before tasks, and tasks before creates; what expires soonest is first."""
        journal = self._journal(6)
        for number, expires in ((1, None), (2, 200.0), (3, 100.0)):
            entry = self._submitted(journal, f"task-{number}")
            step = (entry, State.SUBMITTED, State.COMPLETED)
            journal.move(*step, by="one", owner=None, expires=expires)
        for number, expires in ((4, None), (5, 50.0)):
            entry = self._submitted(journal, f"task-{number}")
            step = (entry, State.SUBMITTED, State.SUBMITTED)
            journal.move(*step, by="one", owner=None, expires=expires)
        passed = journal.take("one", creates=True, besides=[3, 2])
        ORDER.require(passed and passed.number == 1, "item 1, past 3 and 2", passed)
        found = [journal.take("one", creates=False) for _ in range(5)]
        numbers = [None if entry is None else entry.number for entry in found]
        expected = [3, 2, 5, 4, None]
        ORDER.require(numbers == expected, str(expected), numbers)
        last = journal.take("one", creates=True)
        ORDER.require(last and last.state is State.CLAIMED, "item 6, claimed", last)
        states = [None if entry is None else entry.state for entry in found]
        kept = [State.COMPLETED, State.COMPLETED, State.SUBMITTED, State.SUBMITTED, None]
        ORDER.require(states == kept, "what was created keeps its state", states)

    def test_owners_are_known(self) -> None:
        """Whoever recovers finds the workers that own items, and their items."""
        journal = self._journal(3, "one", "two")
        mine = [self._taken(journal, "one"), self._taken(journal, "one")]
        self._taken(journal, "two")
        owners = sorted(journal.owners())
        FENCE.require(owners == ["one", "two"], "owned by one and two", owners)
        owned = [entry.number for entry in journal.owned_by("one")]
        FENCE.require(owned == [entry.number for entry in mine], "items 1 and 2", owned)
