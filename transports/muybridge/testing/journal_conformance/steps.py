"""No two workers have an item, and an item takes no step that the table does not list."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from muybridge.batch.journal_entries import TRANSITIONS, State
from muybridge.batch.journal_errors import ClaimLost, TaskTaken
from muybridge.testing.journal_conformance.any_journal import TOKEN, AnyJournal, at_once, refused
from muybridge.testing.journal_conformance.lessons import (
    FENCE,
    FIRST,
    JUDGED,
    ONE_ITEM,
    ORDER,
    SEEN,
    TOGETHER,
    WHOLE,
)


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
        FIRST.equal(journal.entry(1), entry, "nothing changed")

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
        FIRST.equal(facts, (State.ARMED, "one", 1), "armed by one, for the first time")

    def test_no_item_is_given_twice(self) -> None:
        """Many workers, each with a connection of its own, are never given the same item."""
        journal = self._journal(24, *(str(number) for number in range(4)))
        given: list[int] = []

        def take(owner: str) -> None:
            with closing(self.reopen(journal)) as mine:
                while (entry := mine.take(owner, creates=True)) is not None:
                    given.append(entry.number)

        at_once(take, [str(number) for number in range(4)])
        FIRST.equal(sorted(given), [*range(1, 25)], "each item once")

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

    @pytest.mark.parametrize(
        ("fact", "value"),
        [
            ("attempt", 2),
            ("reply_status", 200),
            ("reply", b"{}"),
            ("token", TOKEN),
            ("candidate", "task-1"),
        ],
    )
    def test_a_judgement_holds_for_what_was_judged(self, fact: str, value: object) -> None:
        """What was recorded after an item was read is not judged by what was read."""
        journal, facts = self._journal(1), dict[str, Any]({fact: value})
        journal.arm(self._taken(journal, "one"), 1, by="one", lasts=60)
        read = journal.entry(1)
        with closing(self.reopen(journal)) as other:
            other.move(read, State.ARMED, State.ARMED, by="one", **facts)
        before = journal.entry(1)
        with refused(ClaimLost, JUDGED, f"a judgement that knows nothing of {fact}={value!r}"):
            journal.move(read, State.ARMED, State.AMBIGUOUS, by="one", judged=True, owner=None)
        JUDGED.equal(journal.entry(1), before, "nothing changed")
        journal.move(before, State.ARMED, State.AMBIGUOUS, by="one", judged=True, owner=None)
        JUDGED.equal(journal.entry(1).state, State.AMBIGUOUS, "what was read again is judged")

    def test_a_task_belongs_to_one_item(self) -> None:
        """A task that an item has is no other one's, however the other one gets it."""
        journal = self._journal(4)
        self._submitted(journal)
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        before = journal.entry(entry.number)
        with refused(TaskTaken, ONE_ITEM, "a create that names the task of another item"):
            journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=TOKEN)
        ONE_ITEM.equal(journal.entry(2), before, "nothing changed")
        journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
        with refused(TaskTaken, ONE_ITEM, "a late response that names it"):
            journal.report_late(2, 1, State.SUBMITTED, by="one", token=TOKEN)
        with refused(TaskTaken, ONE_ITEM, "a person who adopts it"):
            journal.move(entry, State.AMBIGUOUS, State.SUBMITTED, by=None, token=TOKEN)
        ONE_ITEM.equal(journal.strays(), [], "no stray")
        sharing = self._taken(journal, "one")
        journal.arm(sharing, 1, by="one", lasts=0)
        journal.move(sharing, State.ARMED, State.SUBMITTED, by="one", shares=True, token=TOKEN)
        for _ in range(2):  # the token of a task that is polled changes
            paced = TOKEN.replace("}", ',"next_poll_at":5}')
            journal.move(sharing, State.SUBMITTED, State.SUBMITTED, by="one", token=paced)
        tasks = [entry.task_id for entry in journal.entries()]
        ONE_ITEM.equal(tasks, ["task-1", None, "task-1", None], "items 1 and 3 share the task")

    def test_a_task_is_given_to_one_of_many(self) -> None:
        """If several people adopt a task at the same time, one item gets it."""
        journal = self._journal(4)
        for _ in range(4):
            entry = self._taken(journal, "one")
            journal.arm(entry, 1, by="one", lasts=0)
            journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
        given: list[str] = []

        def adopt(number: str) -> None:
            with closing(self.reopen(journal)) as mine:
                entry = mine.entry(int(number))
                try:
                    mine.move(entry, State.AMBIGUOUS, State.SUBMITTED, by=None, token=TOKEN)
                except TaskTaken:
                    return
                given.append(number)

        at_once(adopt, ["1", "2", "3", "4"])
        ONE_ITEM.require(len(given) == 1, "one of four", given)

    def test_steps_are_taken_together(self) -> None:
        """The steps of a transaction are recorded at its end; if one is refused, none is."""
        journal = self._journal(2)
        first, second = journal.entries()
        with (
            refused(ClaimLost, TOGETHER, "a step from a state in which the item is not"),
            journal.transaction(),
        ):
            journal.move(first, State.QUEUED, State.ABANDONED, by=None)
            journal.move(second, State.CLAIMED, State.QUEUED, by=None)
        found = [*journal.entries()]
        TOGETHER.equal(found, [first, second], "nothing changed")
        with journal.transaction():
            for entry in found:
                journal.move(entry, State.QUEUED, State.ABANDONED, by=None)
        with closing(self.reopen(journal)) as other:
            counts = other.counts()
        TOGETHER.equal(counts, {State.ABANDONED: 2}, "both are abandoned")

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
        SEEN.equal(seen, [State.CLAIMED, State.ARMED, State.SUBMITTED])

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
        ORDER.equal(numbers, [3, 2, 5, 4, None])
        last = journal.take("one", creates=True)
        ORDER.require(last and last.state is State.CLAIMED, "item 6, claimed", last)
        states = [None if entry is None else entry.state for entry in found]
        kept = [State.COMPLETED, State.COMPLETED, State.SUBMITTED, State.SUBMITTED, None]
        ORDER.equal(states, kept, "what was created keeps its state")

    def test_owners_are_known(self) -> None:
        """Whoever recovers finds the workers that own items, and their items."""
        journal = self._journal(3, "one", "two")
        mine = [self._taken(journal, "one"), self._taken(journal, "one")]
        self._taken(journal, "two")
        FENCE.equal(sorted(journal.owners()), ["one", "two"], "owned by one and two")
        owned = [entry.number for entry in journal.owned_by("one")]
        FENCE.equal(owned, [entry.number for entry in mine], "items 1 and 2")
