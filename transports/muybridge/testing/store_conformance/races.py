"""Whether threads of several processes pay once, stay within budgets, and lose no response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from muybridge.purchases import Exceeded, Lost, NameHeld, Store
from muybridge.purchases.store import NewItem
from muybridge.testing.store_conformance.checks import (
    PROCESSES,
    THREADS,
    THROTTLED,
    StoreChecks,
    accepted,
    order,
)
from muybridge.testing.store_conformance.lessons import BUDGETS, ITEMS, NAMES, TASKS
from muybridge_protocol.purchases import (
    DAY,
    NOTHING,
    UNKNOWN_END,
    Budget,
    CannotDecide,
    Choice,
    Measure,
    Outcome,
    Period,
    Stage,
    State,
    plus,
    totals,
)

MIDNIGHT: Final = 1_772_323_200.0  # 2026-03-01, 00:00 UTC
_MOST: Final = 20
_ITEMS: Final = 40
_SOME: Final = 0.2
_PERIODS: Final[tuple[tuple[Period | None, int], ...]] = ((None, 1), ("day", 2), ("month", 2))
"""Periods, and how many of one create each are armed on both sides of a month's end."""


class Races(StoreChecks):
    """Checks of many at once."""

    def test_a_name_is_paid_for_once(self) -> None:
        """Threads of several processes race for names that refusals free again and again."""
        database, store = self._made()
        names = [f"once {n}" for n in range(5)]

        def buy(store: Store, chance: Random) -> list[str]:
            paid: list[str] = []
            for name in chance.sample(names, len(names)):
                for turn in range(4):
                    try:
                        bought = store.arm(order(name))
                    except NameHeld:
                        break
                    if turn < 3:  # noqa: PLR2004  the last one is accepted
                        store.conclude(bought.key, THROTTLED)
                    else:
                        store.conclude(bought.key, accepted(bought.key))
                        paid.append(name)
            return paid

        paid = Counter(name for one in self._race(database, buy, lesson=NAMES) for name in one)
        NAMES.require(max(paid.values(), default=0) <= 1, "each name is paid for once", paid)
        held = Counter(one.name for one in store.purchases(State.ARMED, State.ACCEPTED))
        NAMES.require(max(held.values(), default=0) <= 1, "each name is held once", held)

    def test_a_budget_is_used_up_and_not_exceeded(self) -> None:
        """One that all know, and one of each process that counts everybody."""
        for stored in (True, False):
            database, store = self._made()
            budget = Budget(creates=_MOST)
            if stored:
                store.limit("", budget)
            armed = sum(self._race(database, _limited([] if stored else [budget])))
            BUDGETS.require(armed == _MOST, f"{_MOST} creates in all", armed)
            spent = store.spent()[Measure.CREATES]
            BUDGETS.require(spent == armed, f"{armed} spent", spent)

    def test_a_budget_while_people_decide_and_prune(self) -> None:
        """What is released can be spent again, and what is removed stays counted: none beyond."""
        database, store = self._made()
        store.conclude(store.arm(order()).key, Outcome(state=State.AMBIGUOUS))
        stored = store.limit("", Budget(creates=_MOST), from_now=True)

        def buy(store: Store, chance: Random) -> int:
            paid = 0
            with suppress(Exceeded):
                while True:
                    bought = store.arm(order())
                    store.conclude(bought.key, Outcome(state=State.AMBIGUOUS))
                    choice = chance.choice((Choice.RELEASE, Choice.ABANDON, Choice.RESUBMIT))
                    paid += store.decide(bought.key, choice).is_spent
                    if chance.random() < _SOME:
                        store.prune(float("inf"))
            return paid

        paid = sum(self._race(database, buy))
        BUDGETS.require(paid == _MOST, f"{_MOST} creates in all", paid)
        for name, counted in ((stored.counted_under, _MOST), ("", _MOST + 1)):
            spent = store.spent(name)[Measure.CREATES]
            BUDGETS.require(spent == counted, f"{counted} spent", spent)

    def test_midnight_and_the_end_of_a_month(self) -> None:
        """Who arms before midnight and who arms after it see each other."""
        for per, most in _PERIODS:
            database, _ = self._made()
            clocks = (MIDNIGHT - 0.01, MIDNIGHT) * (PROCESSES // 2)
            budget = Budget(creates=1, per=per)
            armed = sum(self._race(database, _limited([budget]), clocks=clocks))
            BUDGETS.require(armed == most, f"{most} a {per or 'budget'}", armed)

    def test_conclusions_repeated_and_late(self) -> None:
        """A late response reaches its own purchase, whoever has decided meanwhile."""
        database, store = self._made()
        other = self._reopened(database)
        first = store.arm(order("once x"))
        other.conclude(first.key, UNKNOWN_END)
        for _ in range(2):
            store.conclude(first.key, accepted("T"))
            other.conclude(first.key, UNKNOWN_END)
        found = other.named("a", "once x")
        NAMES.require(found and found.task == "T", "the name leads to task T", found)
        second = store.arm(order("once y"))
        store.conclude(second.key, UNKNOWN_END)
        later = second.armed_at + DAY
        self._reopened(database, later).decide(second.key, Choice.RESUBMIT, wall=later)
        third = other.arm(order("once y"))
        store.conclude(second.key, accepted("U"))
        other.conclude(third.key, accepted("V"))
        found = store.named("a", "once y")
        NAMES.require(found and found.task == "V", "the name leads to task V", found)
        late = other.find(second.key)
        NAMES.require(late.task == "U", "the late response is kept", late)
        spent = other.spent()[Measure.CREATES]
        BUDGETS.require(spent == 3, "3 spent", spent)  # noqa: PLR2004  each POST

    def test_a_task_belongs_to_one_purchase(self) -> None:
        """However many responses name it at the same moment."""
        database, _ = self._made()

        def buy(store: Store, _: Random) -> State:
            return store.conclude(store.arm(order()).key, accepted("T")).state

        states = Counter(self._race(database, buy, lesson=TASKS))
        expected = {State.ACCEPTED: 1, State.AMBIGUOUS: PROCESSES * THREADS - 1}
        TASKS.require(states == expected, f"{expected}", states)

    def test_an_item_is_taken_once(self) -> None:
        """However many look for one at the same moment."""
        database, store = self._made()
        items = [NewItem(stem=f"{n}", family="f", body="{}") for n in range(_ITEMS)]
        batch = store.begin_batch("b", items)

        def take(store: Store, chance: Random) -> list[int]:
            mine: list[int] = []
            while True:
                with suppress(Lost):
                    taken = store.take(batch, Stage.QUEUED, most=chance.randint(1, 3))
                    if not taken:
                        return mine
                    for item, _ in taken:
                        store.arm(order(), item=(item.batch, item.number))
                        mine.append(item.number)

        store.register(600)
        taken = Counter(number for one in self._race(database, take) for number in one)
        expected = dict.fromkeys(range(1, _ITEMS + 1), 1)
        ITEMS.require(taken == expected, "each item is taken once", taken)

    def test_everything_at_once(self) -> None:
        """Steps and decisions of any order, under any tags: none fails, and the sums are right."""
        database, store = self._made()
        tags = ("a=1", "b=1", "c=1")

        def buy(store: Store, chance: Random) -> None:
            for _ in range(5):
                mine = chance.sample(tags, chance.randint(0, 3))
                bought = store.arm(order(None, *mine))
                state = chance.choice((State.ACCEPTED, State.RELEASED, State.AMBIGUOUS))
                store.conclude(bought.key, Outcome(state=state))
                if chance.random() < _SOME:
                    store.limit(chance.choice(tags), Budget(creates=1000))
                if chance.random() < _SOME:
                    store.sweep()
                if state is State.AMBIGUOUS:
                    with suppress(CannotDecide):
                        store.decide(bought.key, chance.choice((Choice.RELEASE, Choice.ABANDON)))

        self._race(database, buy)
        for tag in ("", *tags):
            counted = NOTHING
            for one in store.purchases():
                if one.is_spent and tag in one.counted_under:
                    counted = plus(counted, one.amounts)
            spent = store.spent(tag)
            BUDGETS.require(spent == totals(counted), f"{totals(counted)} under {tag!r}", spent)


def _limited(budgets: Sequence[Budget]) -> Callable[[Store, Random], int]:
    """Return what arms until *budgets* are used up, and returns how often."""

    def buy(store: Store, _: Random) -> int:
        armed = 0
        with suppress(Exceeded):
            while True:
                store.arm(order(), budgets=budgets)
                armed += 1
        return armed

    return buy
