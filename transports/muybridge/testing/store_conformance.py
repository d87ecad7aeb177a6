"""Whether a database keeps the promises of a store: a test suite to inherit, for `Database`s.

    class TestMyDatabase(StoreConformance):
        def make_database(self):
            return MyDatabase(...)

        def reopen(self, database, now=None):
            return MyDatabase(...)

Each check is a pytest test. On failure it says what was expected, what the mistake would cost, and
where to look. `muybridge.purchases.port` has the rules. It needs a system with `fork`, and the
extra `testing`.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from decimal import Decimal
from random import Random
from typing import Any, Final

from muybridge.purchases import Database, Exceeded, NameHeld, Store, StoreUnusable
from muybridge.testing.conformance.lessons import Lesson
from muybridge_protocol.purchases import (
    NOTHING,
    UNKNOWN_END,
    Amounts,
    Budget,
    Choice,
    Measure,
    Order,
    Outcome,
    Purchase,
    State,
    plus,
    totals,
)
from muybridge_protocol.records.tasks import Task

DURABLE: Final = Lesson(
    "what was paid for is forgotten when a process is killed, and is paid for again",
    "`transaction`: it is durable when its context ends, for every process that opens the database",
)
WHOLE: Final = Lesson(
    "what the store has changed on the way is not what was paid for",
    "the words `real` and `bytes`, and how values are bound and returned",
)
NAMES: Final = Lesson(
    "a request is paid for twice under one name",
    "`Conflict` for what violates a unique index, and transactions that see what others confirmed",
)
BUDGETS: Final = Lesson(
    "several processes together spend more than the budget",
    "`hold`: until the transaction ends, nobody else has the tag, or only as shared",
)
TASKS: Final = Lesson(
    "two purchases have one task, so that one of them is never asked about",
    "`Conflict` for what violates a unique index",
)
UNDONE: Final = Lesson(
    "what was not sent stays reserved, or what was sent is released",
    "`transaction`: if its block raises, nothing of it is written",
)
FRESH: Final = Lesson(
    "an older copy of the database goes unnoticed: what it does not know is paid for again",
    "`run`: each transaction reads the database itself, and nothing that was kept",
)

MIDNIGHT: Final = 1_772_323_200.0  # 2026-03-01, 00:00 UTC
_STORES: Final = 4
_THREADS: Final = 8
_ONE: Final[Amounts] = {it: Decimal(1 if it is Measure.CREATES else 0) for it in Measure}
_THROTTLED: Final = Outcome(state=State.RELEASED, reason="429")


class StoreConformance:
    """The checks of a database. Inherit it, and say how a database is made and opened."""

    def make_database(self) -> Database:
        """Return a new database, in which nothing was created yet."""
        raise NotImplementedError(f"{type(self).__name__} must say how its database is made")

    def reopen(self, database: Database, now: str | None = None) -> Database:
        """Return the same database, opened as by another process.

        Args:
            database: The database.
            now: What its word `now` is to stand for, or None for the usual one.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how its database is opened")

    def setup_method(self) -> None:
        """Prepare to close every store."""
        self._open: ExitStack = ExitStack()

    def teardown_method(self) -> None:
        """Close every store."""
        self._open.close()

    def test_a_killed_process_has_recorded_what_it_was_about_to_send(self) -> None:
        """First of all: what a process has armed, every later one finds."""
        database, store = self._made()
        child = os.fork()
        if child == 0:
            try:
                mine = Store(self.reopen(database))
                mine.arm(_order("once killed"), key="killed")
                mine.conclude("killed", Outcome(state=State.ACCEPTED, task=Task(id="T")))
                mine.arm(_order(), key="sending")
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        for user in (store, self._reopened(database)):
            found = {one.key: one.state for one in user.purchases()}
            expected = {"killed": State.ACCEPTED, "sending": State.ARMED}
            DURABLE.require(found == expected, f"{expected}", found)
            named = user.named("a", "once killed")
            DURABLE.require(named and named.task == "T", "the name leads to task T", named)

    def test_a_purchase_is_read_as_it_was_written(self) -> None:
        """Texts of every language, bytes, numbers with all their digits, and what is missing."""
        database, store = self._made()
        amounts = {**_ONE, Measure.COST: Decimal("0.1234567890123456789"), Measure.SECONDS: None}
        order = Order(account="a", family="f", model="Ünï ☃ 馬", amounts=amounts, name="Ä",
                      digest="d", tags=("x=1", "ä=☃"))  # fmt: skip
        bought = store.arm(order)
        outcome = Outcome(state=State.AMBIGUOUS, reason="r", candidate="C", reply=bytes(range(256)))
        known = self._reopened(database).find(bought.key)
        WHOLE.require(known == bought, f"{bought}", known)
        concluded = store.conclude(bought.key, outcome)
        known = self._reopened(database).find(bought.key)
        WHOLE.require(known == concluded, f"{concluded}", known)

    def test_a_name_is_paid_for_once(self) -> None:
        """Threads of several processes race for names that refusals free again and again."""
        stores = self._several()
        names = [f"once {n}" for n in range(5)]

        def buy(store: Store, chance: Random) -> list[str]:
            paid: list[str] = []
            for name in chance.sample(names, len(names)):
                for turn in range(4):
                    try:
                        bought = store.arm(_order(name))
                    except NameHeld:
                        break
                    if turn < 3:  # noqa: PLR2004  the last one is accepted
                        store.conclude(bought.key, _THROTTLED)
                    else:
                        task = Task(id=bought.key)
                        store.conclude(bought.key, Outcome(state=State.ACCEPTED, task=task))
                        paid.append(name)
            return paid

        paid = Counter(name for one in self._race(stores, buy) for name in one)
        NAMES.require(max(paid.values(), default=0) <= 1, "each name is paid for once", paid)

    def test_a_budget_is_used_up_and_not_exceeded(self) -> None:
        """One that all know, and one of each process that counts everybody."""
        for stored in (True, False):
            stores = self._several()
            budget = Budget(creates=20)
            if stored:
                stores[0].limit("", budget)
            armed = sum(self._race(stores, _limited([] if stored else [budget])))
            BUDGETS.require(armed == 20, "20 creates in all", armed)  # noqa: PLR2004  the budget
            spent = stores[1].spent()[Measure.CREATES]
            BUDGETS.require(spent == armed, f"{armed} spent", spent)

    def test_a_budget_while_people_decide_and_prune(self) -> None:
        """What is released can be spent again, and what is removed stays counted: none beyond."""
        stores = self._several()
        stores[0].conclude(stores[0].arm(_order()).key, Outcome(state=State.AMBIGUOUS))
        stored = stores[0].limit("", Budget(creates=20), from_now=True)

        def buy(store: Store, chance: Random) -> int:
            paid = 0
            with suppress(Exceeded):
                while True:
                    bought = store.arm(_order())
                    store.conclude(bought.key, Outcome(state=State.AMBIGUOUS))
                    choice = chance.choice((Choice.RELEASE, Choice.ABANDON, Choice.RESUBMIT))
                    paid += store.decide(bought.key, choice).is_spent
                    if chance.random() < 0.2:  # noqa: PLR2004  some
                        store.prune(float("inf"))
            return paid

        paid = sum(self._race(stores, buy))
        BUDGETS.require(paid == 20, "20 creates in all", paid)  # noqa: PLR2004  the budget
        for name, counted in ((stored.counted_under, 20), ("", 21)):
            spent = stores[1].spent(name)[Measure.CREATES]
            BUDGETS.require(spent == counted, f"{counted} spent", spent)

    def test_midnight_and_the_end_of_a_month(self) -> None:
        """Who arms before midnight and who arms after it see each other."""
        for per, most in ((None, 1), ("day", 2), ("month", 2)):
            database, _ = self._made()
            budget = Budget(creates=1, per=per)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            stores = [
                self._reopened(database, f"{wall:.3f}")
                for wall in (MIDNIGHT - 0.01, MIDNIGHT) * (_STORES // 2)
            ]
            armed = sum(self._race(stores, _limited([budget])))
            BUDGETS.require(armed == most, f"{most} a {per or 'budget'}", armed)

    def test_conclusions_repeated_and_late(self) -> None:
        """A late response reaches its own purchase, and the name that is free again."""
        database, store = self._made()
        other = self._reopened(database)
        first = store.arm(_order("once x"))
        other.conclude(first.key, UNKNOWN_END)
        for _ in range(2):
            store.conclude(first.key, Outcome(state=State.ACCEPTED, task=Task(id="T")))
            other.conclude(first.key, UNKNOWN_END)
        found = other.named("a", "once x")
        NAMES.require(found and found.task == "T", "the name leads to task T", found)
        spent = other.spent()[Measure.CREATES]
        BUDGETS.require(spent == 1, "1 spent", spent)

    def test_a_task_belongs_to_one_purchase(self) -> None:
        """However many responses name it at the same moment."""
        stores = self._several()

        def buy(store: Store, _: Random) -> Purchase:
            bought = store.arm(_order())
            return store.conclude(bought.key, Outcome(state=State.ACCEPTED, task=Task(id="T")))

        states = Counter(one.state for one in self._race(stores, buy))
        expected = {State.ACCEPTED: 1, State.AMBIGUOUS: _STORES * _THREADS - 1}
        TASKS.require(states == expected, f"{expected}", states)

    def test_a_transaction_that_fails_changes_nothing(self) -> None:
        """Nothing of what its block has done."""
        database, store = self._made()
        bought = store.arm(_order())
        with suppress(ZeroDivisionError), database.transaction() as rows:
            rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=bought.key)
            _ = 1 / 0
        found = [one.key for one in self._reopened(database).purchases()]
        UNDONE.require(found == [bought.key], f"{[bought.key]}", found)

    def test_an_older_copy_is_noticed(self) -> None:
        """It lacks the last purchase that this process has committed."""
        database, store = self._made()
        last = store.arm(_order())
        with self.reopen(database).transaction() as rows:
            rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=last.key)
        try:
            store.arm(_order())
        except StoreUnusable:
            return
        FRESH.refuse("StoreUnusable", "another purchase is armed")

    def test_everything_at_once(self) -> None:
        """Lists of any order, under any tags: no step fails, and the sums are the purchases'."""
        stores = self._several()
        tags = ("a", "b", "c")

        def buy(store: Store, chance: Random) -> None:
            for _ in range(5):
                mine = tuple(chance.sample(tags, chance.randint(0, 3)))
                bought = store.arm(Order(account="a", amounts=_ONE, tags=mine))
                state = chance.choice((State.ACCEPTED, State.RELEASED, State.AMBIGUOUS))
                store.conclude(bought.key, Outcome(state=state))
                if chance.random() < 0.2:  # noqa: PLR2004  some
                    store.limit(chance.choice(tags), Budget(creates=1000))

        self._race(stores, buy)
        for tag in ("", *tags):
            counted = NOTHING
            for one in stores[0].purchases():
                if one.is_spent and tag in one.counted_under:
                    counted = plus(counted, one.amounts)
            spent = stores[0].spent(tag)
            BUDGETS.require(spent == totals(counted), f"{totals(counted)} under {tag!r}", spent)

    def _made(self) -> tuple[Database, Store]:
        database = self.make_database()
        return database, self._open.enter_context(Store(database))

    def _reopened(self, database: Database, now: str | None = None) -> Store:
        return self._open.enter_context(Store(self.reopen(database, now)))

    def _several(self) -> list[Store]:
        database, store = self._made()
        return [store, *(self._reopened(database) for _ in range(_STORES - 1))]

    def _race(self, stores: Sequence[Store], act: Callable[[Store, Random], object]) -> list[Any]:
        """Let threads of each store act at once, and return what each returned."""
        with ThreadPoolExecutor(len(stores) * _THREADS) as pool:
            acting = [
                pool.submit(act, store, Random(f"{number} {thread}"))  # noqa: S311  order, not secrets
                for thread in range(_THREADS)
                for number, store in enumerate(stores)
            ]
            return [one.result() for one in acting]


def _order(name: str | None = None) -> Order:
    return Order(account="a", amounts=_ONE, name=name, digest=name)


def _limited(budgets: Sequence[Budget]) -> Callable[[Store, Random], int]:
    """Return what arms until *budgets* are used up, and returns how often."""

    def buy(store: Store, _: Random) -> int:
        armed = 0
        try:
            while True:
                store.arm(_order(), budgets=budgets)
                armed += 1
        except Exceeded:
            return armed

    return buy
