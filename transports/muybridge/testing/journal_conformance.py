"""Whether a journal is correct: a test suite to inherit, for implementations of `Journal`.

    class TestMyJournal(JournalConformance):
        def make_journal(self, items):
            return MyJournal.create(..., SERVICE, items)

        def reopen(self, journal):
            return MyJournal(...)

If a registration is a lease, inherit `LeasedJournalConformance`, which needs `expire` as well. If
the journal is a `SharedJournal`, inherit `BudgetedJournalConformance`, which needs `make_budgeted`.
Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. `muybridge.batch.port` has the rules. It needs the extra `testing`.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final, cast

import attrs

from muybridge.batch.items import InvalidBatch
from muybridge.batch.journal_entries import TRANSITIONS, Entry, NewItem, State
from muybridge.batch.journal_errors import ClaimLost, JournalUnusable, OverBudget, Unstorable
from muybridge.batch.port import Journal, SharedJournal
from muybridge.ledger.budget import Budget, Measure

try:
    import pytest

    from muybridge.testing.conformance.lessons import Lesson
except ModuleNotFoundError as _missing:
    if _missing.name not in ("pytest", "trustme"):
        raise
    raise ModuleNotFoundError(
        f"muybridge.testing.journal_conformance needs {_missing.name}: "
        'pip install "muybridge[testing]"',
        name=_missing.name,
    ) from None

SERVICE: Final = "https://service.test"
"""Where the tasks of every batch are."""
TOKEN: Final = '{"muybridge_task":1,"id":"task-1","family":"imgb"}'  # noqa: S105  it holds no secret

FIRST = Lesson(
    "of two workers that both believe they have an item, both send it, and it is paid for twice",
    "`take` and `move`: one conditional update that names the state before and the owner, and "
    "whose count of rows is checked",
)
FENCE = Lesson(
    "a worker that was paused is declared dead, and another one has its items; if it then "
    "continues where it was, its item is paid for twice",
    "`take` and `arm`: they check that the worker is not buried and that its lease holds, by one "
    "clock for all, in the statement that writes",
)
LATE = Lesson(
    "the id of a paid task is lost, because the worker that received it was declared dead before",
    "`report_late`: ambiguous because of this very attempt, or else a stray that is kept",
)
WHOLE = Lesson(
    "what the journal has changed on the way is not what was paid for",
    "the types of the columns, and how values are written and read; "
    "`muybridge.batch.sqlite_values` makes values storable",
)
ORDER = Lesson(
    "links of results expire while other work is done, and what was paid for is lost",
    "the order in which `take` looks: completed by expiry, then submitted by expiry, then queued",
)
SEEN = Lesson(
    "what one worker has armed, another one sends",
    "every method: the change is committed, durably, when it returns",
)

RATE = Lesson(
    "the workers together send faster than the account allows, and the service refuses requests",
    "`acquire_permits`, `throttle`: one transaction that reads and writes the rate; "
    "`muybridge.batch.limits.rate` has the arithmetic",
)
BUDGET = Lesson(
    "a batch costs more than its user allowed",
    "`arm`: reserve what the item needs in the transaction that arms it; `move` and `report_late`: "
    "release it only if the create certainly did nothing",
)
_SLOW: Final = 0.001
"""Requests a second, so few that the duration of a test does not matter."""


def new_items(count: int) -> list[NewItem]:
    """Return *count* items with names."""
    return [
        NewItem(name=f"h{number}", stem=f"h{number}", family="imgb", body={"prompt": "A horse"})
        for number in range(1, count + 1)
    ]


class JournalConformance:
    """The checks of a journal.

    Inherit it in a class whose name begins with `Test`, and override `make_journal` and `reopen`.
    """

    def make_journal(self, items: Sequence[NewItem]) -> Journal:
        """Return the journal of a new batch of *items*, whose tasks are at `SERVICE`."""
        raise NotImplementedError(f"{type(self).__name__} must say how its journal is made")

    def reopen(self, journal: Journal) -> Journal:
        """Return a journal of the same batch, opened as by another process."""
        raise NotImplementedError(f"{type(self).__name__} must say how its journal is opened")

    def setup_method(self) -> None:
        """Prepare to close every journal."""
        self._open: ExitStack = ExitStack()

    def teardown_method(self) -> None:
        """Close every journal."""
        self._open.close()

    def _journal(self, count: int = 3, *workers: str) -> Journal:
        journal = self._open.enter_context(closing(self.make_journal(new_items(count))))
        for worker in workers or ("one",):
            journal.register(worker)
        return journal

    # Items

    def test_items_are_kept_as_they_are(self) -> None:
        """Every item is read as it was added, in order, by whoever opens the journal."""
        texts = ["plain", "Füße 🐎", "a\tb", 'quote " and \\', "nul \0 in it", "x" * 100_000]
        body = {"prompt": texts, "n": 1, "ratio": 0.1, "none": None, "yes": True}
        items = [NewItem(name=text[:50], stem=f"s{n}", family="imgb", body=body)
                 for n, text in enumerate(texts) if text.isprintable()]  # fmt: skip
        journal = self._open.enter_context(closing(self.make_journal(items)))
        with closing(self.reopen(journal)) as other:
            for number, (item, entry) in enumerate(zip(items, other.entries(), strict=True), 1):
                found = (entry.number, entry.name, entry.stem, entry.family)
                expected = (number, item.name, item.stem, item.family)
                WHOLE.require(found == expected, f"item {number}: {expected}", found)
                read = json.loads(entry.body)
                WHOLE.require(read == body, f"the body {body}", read)
                facts = (entry.state, entry.owner, entry.attempt, entry.token)
                unsent = (State.QUEUED, None, 0, None)
                WHOLE.require(facts == unsent, f"a new item is {unsent}", facts)
            WHOLE.require(other.service == SERVICE, SERVICE, other.service)

    def test_items_are_added_whole_or_not_at_all(self) -> None:
        """Items are added after the last one, all of them, and only if nobody was faster."""
        journal = self._journal(3)
        fresh = [NewItem(name="", stem=f"n{n}", family="imgb", body={}) for n in range(2)]
        for wrong in (0, 2, 4):
            with _refused(JournalUnusable, FIRST, "added after another number than the last one"):
                journal.add(fresh, after=wrong)
        unwritable = NewItem(name="", stem="x", family="imgb", body={"a": {1, 2}})
        with _refused(Unstorable, WHOLE, "an item that cannot be written"):
            journal.add([*fresh, unwritable], after=3)
        journal.add(fresh, after=3)
        numbers = [entry.number for entry in journal.entries()]
        WHOLE.require(numbers == [1, 2, 3, 4, 5], "items 1 to 5", numbers)

    def test_items_are_found(self) -> None:
        """An item is found by number, name and task, and a file by its path."""
        journal = self._journal(3)
        entry = self._submitted(journal)
        journal.move(entry, State.SUBMITTED, State.COMPLETED, by="one", path="a.png")
        found = [entry.number for entry in (*journal.called("h2"), *journal.called("3"))]
        WHOLE.require(found == [2, 3], "h2 is item 2, and 3 is item 3", found)
        WHOLE.require(journal.called("h9") == [], "no item is called h9", journal.called("h9"))
        by_task = journal.with_task("task-1")
        WHOLE.require(by_task and by_task.number == 1, "item 1 has task-1", by_task)
        WHOLE.require(journal.with_task("task-9") is None, "no item has task-9", "one")
        recorded = [journal.is_recorded("a.png", besides=n) for n in (1, 2)]
        WHOLE.require(recorded == [False, True], "a.png is item 1's", recorded)
        counts = journal.counts()
        expected = {State.QUEUED: 2, State.COMPLETED: 1}
        WHOLE.require(counts == expected, str(expected), counts)
        with pytest.raises(LookupError):
            journal.entry(4)

    @pytest.mark.parametrize(
        ("fact", "value", "stored"),
        [
            ("reason", "half \ud83d", "half \ufffd"),
            ("reason", "two\nlines", "two lines"),
            ("token", "Füße 🐎", "Füße 🐎"),
            ("size", 2**63 - 1, 2**63 - 1),
            ("size", 2**63, None),
            ("expires", 7, 7.0),
            ("began", 1767225600.123456, 1767225600.123456),
            ("reply", b"\xff\x00", b"\xff\x00"),
            ("reply", b"", b""),
            ("reply_status", 0, 0),
            ("result", '{"a": 1e400}', '{"a": 1e400}'),
        ],
    )
    def test_facts_are_kept_as_they_are(self, fact: str, value: object, stored: object) -> None:
        """A fact is read as it was written, and one that cannot be written is made writable."""
        journal = self._journal(1)
        journal.move(journal.entry(1), State.QUEUED, State.QUEUED, by=None, **{fact: value})
        with closing(self.reopen(journal)) as other:
            found = getattr(other.entry(1), fact)
        WHOLE.require(found == stored, f"{fact}={stored!r}", repr(found))

    @pytest.mark.parametrize(
        ("fact", "value"), [("reason", b"a"), ("reply", "a"), ("size", 1.5), ("attempt", None)]
    )
    def test_a_fact_of_another_kind_is_refused(self, fact: str, value: object) -> None:
        """A value that its column is not for changes nothing."""
        journal = self._journal(1)
        before = journal.entry(1)
        with _refused(Unstorable, WHOLE, f"{fact}={value!r}"):
            journal.move(before, State.QUEUED, State.QUEUED, by=None, **{fact: value})
        WHOLE.require(journal.entry(1) == before, "nothing changed", journal.entry(1))

    # Steps

    def test_only_listed_steps_are_taken(self) -> None:
        """No item goes from one state to another that the table does not list."""
        journal = self._journal(1)
        entry = journal.entry(1)
        for before in State:
            for after in set(State) - TRANSITIONS[before] - {before}:
                with _refused(ValueError, FIRST, f"from {before} to {after}"):
                    journal.move(entry, before, after, by=None)
        with _refused(ValueError, WHOLE, "a column that does not exist"):
            journal.move(entry, State.QUEUED, State.QUEUED, by=None, body="{}")
        FIRST.require(journal.entry(1) == entry, "nothing changed", journal.entry(1))

    def test_the_first_one_to_take_a_step_is_the_only_one(self) -> None:
        """A step that another one has taken, or that is not the worker's, changes nothing."""
        journal = self._journal(2, "one", "two")
        entry = self._taken(journal, "one")
        with _refused(ClaimLost, FIRST, "arming another worker's item"):
            journal.arm(entry, 1, by="two", lasts=60)
        journal.arm(entry, 1, by="one", lasts=60)
        with _refused(ClaimLost, FIRST, "arming an armed item"):
            journal.arm(entry, 2, by="one", lasts=60)
        for by in ("two", None):
            with _refused(ClaimLost, FIRST, f"a step of {by} with the item of one"):
                journal.move(entry, State.ARMED, State.REFUSED, by=by)
        with _refused(ClaimLost, FIRST, "a step from a state that the item has left"):
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

        _at_once(take, [str(number) for number in range(4)])
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

        _at_once(arm, ["a", "b", "c", "d"])
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
            facts = {"owner": None, "expires": expires}
            journal.move(entry, State.SUBMITTED, State.COMPLETED, by="one", **facts)
        for number, expires in ((4, None), (5, 50.0)):
            entry = self._submitted(journal, f"task-{number}")
            facts = {"owner": None, "expires": expires}
            journal.move(entry, State.SUBMITTED, State.SUBMITTED, by="one", **facts)
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

    # Workers

    def test_owners_are_known(self) -> None:
        """Whoever recovers finds the workers that own items, and their items."""
        journal = self._journal(3, "one", "two")
        mine = [self._taken(journal, "one"), self._taken(journal, "one")]
        self._taken(journal, "two")
        owners = sorted(journal.owners())
        FENCE.require(owners == ["one", "two"], "owned by one and two", owners)
        owned = [entry.number for entry in journal.owned_by("one")]
        FENCE.require(owned == [entry.number for entry in mine], "items 1 and 2", owned)

    # Late responses

    def test_a_late_response_is_news(self) -> None:
        """A paid id that arrives after its worker was declared dead belongs to the item."""
        journal, entry = self._lost()
        told = {"token": TOKEN, "reason": None}
        took = journal.report_late(1, 1, State.SUBMITTED, by="one", **told)
        LATE.require(took, "the item takes it", "a stray")
        found = journal.entry(entry.number)
        facts = (found.state, found.owner, found.token, found.reason)
        expected = (State.SUBMITTED, None, TOKEN, None)
        LATE.require(facts == expected, str(expected), facts)
        LATE.require(journal.strays() == [], "no stray", journal.strays())

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
        wanted = (True, expected, None, 418, b"a teapot")
        LATE.require(facts == wanted, str(wanted), facts)

    def test_a_late_response_that_no_item_takes_is_kept(self) -> None:
        """If a person has decided meanwhile, or it is not this create's, the response is kept."""
        journal, entry = self._lost()
        journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
        before = journal.entry(1)
        for attempt in (1, 2):
            took = journal.report_late(1, attempt, State.SUBMITTED, by="one", token=TOKEN)
            LATE.require(not took, "no item takes it", "one does")
        LATE.require(journal.entry(1) == before, "the item is as it was", journal.entry(1))
        with closing(self.reopen(journal)) as other:
            strays = [(s.number, s.attempt, s.worker, s.state, s.token) for s in other.strays()]
        expected = [(1, attempt, "one", State.SUBMITTED, TOKEN) for attempt in (1, 2)]
        LATE.require(strays == expected, str(expected), strays)

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
        state = journal.entry(1).state
        LATE.require(state is State.AMBIGUOUS, "ambiguous", state)

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
            with _refused(ValueError, LATE, f"a late response that leads to {after}"):
                journal.report_late(entry.number, 1, after, by="one")

    # The request rate

    def test_without_a_rate_everybody_may_send(self) -> None:
        """As long as no rate is set, as many permits are given as are wanted, and at once."""
        journal = self._journal(1)
        for wanted in (1, 1000):
            permits = journal.acquire_permits(wanted)
            facts = (permits.count, permits.after, permits.interval)
            RATE.require(facts == (wanted, 0, 0), f"{wanted} permits at once", facts)

    def test_each_permit_is_given_once(self) -> None:
        """However many processes acquire permits at the same time, no two get the same one."""
        journal = self._journal(1)
        journal.limit_rate(_SLOW)
        places: list[int] = []

        def acquire(_: str) -> None:
            with closing(self.reopen(journal)) as mine:
                for _time in range(3):
                    permits = mine.acquire_permits(5)
                    places.append(round(permits.after * _SLOW))

        _at_once(acquire, ["a", "b", "c", "d"])
        RATE.require(sorted(places) == [*range(12)], "12 permits, one after the other", places)

    def test_a_pause_holds_for_everybody(self) -> None:
        """Nobody gets a permit before a pause has ended. A shorter one does not cut it short."""
        journal = self._journal(1)
        with closing(self.reopen(journal)) as other:
            journal.throttle(10_000)
            journal.throttle(5_000)
            for rate in (math.inf, _SLOW):
                journal.limit_rate(rate)
                after = other.acquire_permits(1).after
                RATE.require(9_000 < after <= 10_000, "10,000 seconds", after)  # noqa: PLR2004  less the test's

    def test_a_rate_may_be_changed_and_lifted(self) -> None:
        """The last rate that was set is the rate, and infinity is none."""
        journal = self._journal(1)
        for rate in (0, -1, math.nan):
            with _refused(ValueError, RATE, f"a rate of {rate}"):
                journal.limit_rate(rate)
        journal.limit_rate(1)
        journal.limit_rate(1_000)
        permits = journal.acquire_permits(7)
        facts = (permits.count, permits.interval)
        RATE.require(facts == (7, 0.001), "7 permits, a millisecond apart", facts)
        journal.limit_rate(math.inf)
        count = journal.acquire_permits(5_000).count
        RATE.require(count == 5_000, "5,000 permits", count)  # noqa: PLR2004  as wanted

    # Helpers

    def _taken(self, journal: Journal, owner: str) -> Entry:
        entry = journal.take(owner, creates=True)
        FIRST.require(entry, f"an item for {owner}", "none")
        assert entry is not None  # noqa: S101  for type checkers
        return entry

    def _submitted(self, journal: Journal, task: str = "task-1") -> Entry:
        """Create the next queued item."""
        done = [entry.number for entry in journal.entries() if entry.state is not State.QUEUED]
        entry = journal.take("one", creates=True, besides=done)
        FIRST.require(entry, "a queued item", "none")
        assert entry is not None  # noqa: S101  for type checkers
        journal.arm(entry, 1, by="one", lasts=60)
        token = TOKEN.replace("task-1", task)
        journal.move(entry, State.ARMED, State.SUBMITTED, by="one", token=token)
        return entry

    def _lost(self) -> tuple[Journal, Entry]:
        """Return a journal whose item 1 is ambiguous, because its worker was declared dead."""
        journal = self._journal(1)
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        FENCE.require(journal.bury("one", ended=True), "one is dead", "it is not")
        journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None, reason="lost")
        return journal, entry


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
        with _refused(ClaimLost, FENCE, "arming after the lease has expired"):
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
        FENCE.require(entry is None, "nothing for a worker that is not registered", entry)

    def test_only_the_worker_that_armed_an_item_reports_late(self) -> None:
        """A worker of another batch on the same machine knows nothing of this one's items."""
        journal, _ = self._lost()
        journal.register("two")
        took = journal.report_late(1, 1, State.SUBMITTED, by="two", token=TOKEN)
        LATE.require(not took, "a stray", "the item took it")

    def _cannot_continue(self, journal: Journal, entry: Entry) -> None:
        with _refused(ClaimLost, FENCE, "renewing the lease of a dead worker"):
            journal.renew("one")
        FENCE.require(journal.take("one", creates=True) is None, "nothing is taken", "an item")
        with _refused(ClaimLost, FENCE, "arming by a dead worker"):
            journal.arm(entry, 1, by="one", lasts=60)
        found = journal.entry(entry.number)
        FENCE.require(found.state is State.CLAIMED, "the item is claimed", found)


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

        _at_once(arm, ["a", "b", "c"])
        BUDGET.require(len(armed) <= 10, "10 creates at most", armed)  # noqa: PLR2004  the limit
        spent = self._spent(journal)
        BUDGET.require(spent == len(armed), f"{len(armed)} spent", spent)
        counts = journal.counts()
        BUDGET.require(counts[State.ARMED] == len(armed), f"{len(armed)} are armed", counts)

    def test_what_does_not_fit_is_not_armed(self) -> None:
        """An item beyond the limit keeps its state, and a higher limit lets it through."""
        journal = self._budgeted(2, Budget(creates=1, pictures=100))
        first = self._taken(journal, "one")
        journal.arm(first, 1, by="one", lasts=60)
        entry = self._taken(journal, "one")
        with _refused(OverBudget, BUDGET, "arming beyond the limit"):
            journal.arm(entry, 1, by="one", lasts=60)
        found = journal.entry(2)
        facts = (found.state, found.owner, found.attempt, self._spent(journal))
        BUDGET.require(facts == (State.CLAIMED, "one", 0, 1), "claimed, and 1 spent", facts)
        with closing(self.reopen(journal)) as other:
            cast("SharedJournal", other).limit_budget(Budget(creates=2))
        journal.arm(entry, 1, by="one", lasts=60)
        BUDGET.require(self._spent(journal) == 2, "2 spent", self._spent(journal))  # noqa: PLR2004  two items

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
        BUDGET.require(self._spent(journal) == spent, f"{spent} spent", self._spent(journal))

    def test_an_ambiguous_create_stays_spent(self) -> None:
        """If a person has an ambiguous item sent again, both creates count, and a stray's does."""
        journal = self._budgeted(1, Budget(creates=2))
        entry = self._taken(journal, "one")
        for attempt in (1, 2):
            journal.arm(entry, attempt, by="one", lasts=0)
            journal.move(entry, State.ARMED, State.AMBIGUOUS, by="one", owner=None)
            journal.move(entry, State.AMBIGUOUS, State.QUEUED, by=None)
            BUDGET.require(
                self._spent(journal) == attempt, f"{attempt} spent", self._spent(journal)
            )
            entry = self._taken(journal, "one")
        journal.report_late(1, 1, State.REFUSED, by="one")
        BUDGET.require(self._spent(journal) == 2, "2 spent", self._spent(journal))  # noqa: PLR2004  both
        with _refused(OverBudget, BUDGET, "a third create"):
            journal.arm(entry, 3, by="one", lasts=0)

    def test_a_refused_step_releases_nothing(self) -> None:
        """A step that another worker has taken changes nothing about the budget."""
        journal = self._budgeted(1, Budget(creates=1), "one", "two")
        entry = self._taken(journal, "one")
        journal.arm(entry, 1, by="one", lasts=0)
        with _refused(ClaimLost, BUDGET, "releasing another worker's item"):
            journal.move(entry, State.ARMED, State.REFUSED, by="two")
        with _refused(ClaimLost, BUDGET, "arming an armed item"):
            journal.arm(entry, 2, by="one", lasts=0)
        BUDGET.require(self._spent(journal) == 1, "1 spent", self._spent(journal))

    def test_a_batch_without_a_budget_gets_none(self) -> None:
        """What was sent without a budget was not counted, so none can be given later."""
        journal = cast("SharedJournal", self._journal(1))
        BUDGET.require(journal.budget_use() is None, "no budget", journal.budget_use())
        with _refused(InvalidBatch, BUDGET, "a budget given later"):
            journal.limit_budget(Budget(creates=1))

    def test_the_place_for_results_is_kept(self) -> None:
        """Everybody who opens the journal reads the place that was written last."""
        journal = cast("SharedJournal", self._journal(1))
        WHOLE.require(journal.out is None, "no place", journal.out)
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


@contextmanager
def _refused(kind: type[Exception], lesson: Lesson, what: str) -> Generator[None, None, None]:
    """Check that the block raises *kind*."""
    __tracebackhide__ = True
    try:
        yield
    except kind:
        return
    lesson.refuse(f"{kind.__name__}: {what}", "it was accepted")


def _at_once(work: Callable[[str], None], names: Sequence[str]) -> None:
    """Do *work* for each name in a thread of its own, and raise the first error."""
    errors: list[BaseException] = []

    def guarded(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001  raised below, where pytest sees it
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
