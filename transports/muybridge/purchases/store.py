"""`Store`: the purchases of everyone who uses one database, and what they may spend."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from decimal import Decimal
from functools import wraps
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar
from weakref import WeakSet

import attrs

from muybridge.purchases.errors import Lost, NoneDecided, StillSending, StoreUnusable
from muybridge.purchases.history import PLACES, Duration, History, find_history
from muybridge.purchases.items import (
    SELECT_ITEMS,
    Place,
    insert_items,
    lock_items,
    may_begin,
    place_of,
    read_item,
    update_items,
)
from muybridge.purchases.lists import Lists, Member
from muybridge.purchases.port import Conflict, Database, Mark, Rows
from muybridge.purchases.rates import (
    Permits,
    RequestRate,
    check_rate,
    lock_rate,
    read_rate,
    sharers_of,
    stored_rate,
    write_rate,
)
from muybridge.purchases.schema import (
    COLUMNS,
    EVER,
    OPEN,
    TABLES,
    UPGRADES,
    VERSION,
    are_open,
    listed,
)
from muybridge.purchases.steps import (
    SELECT,
    SELECT_LIMITS,
    Arming,
    Decision,
    Moving,
    News,
    Step,
    Transaction,
    Withdrawal,
    alone,
    find_all,
    indexed,
    limits_of,
    named,
    of_version,
    read,
    read_limits,
    read_list,
    sums_of,
    twin,
)
from muybridge_protocol.purchases import (
    AFTER_CHOICE,
    DAY,
    EVERYTHING,
    NAMED,
    STEPS,
    UNKNOWN_END,
    Amounts,
    Budget,
    Choice,
    Item,
    Measure,
    Order,
    Outcome,
    Period,
    Purchase,
    Stage,
    State,
    StoredBudget,
    Sums,
    all_countable,
    day_of,
    decided,
    followed,
    is_key,
    priced,
    read_amounts,
    read_sums,
    totals,
    written_budget,
)
from muybridge_protocol.purchases.purchase import called
from muybridge_protocol.records.tasks import Result, Task, as_task

P = ParamSpec("P")
T = TypeVar("T")

SEND_WITHIN: Final = 5.0
"""Seconds after which an armed purchase that was not sent yet must not be sent any more.

Only where owners live on leases: there, somebody may believe the sender dead.
"""
_ATTEMPTS: Final = 5
"""Attempts at a list whose transactions are in the way of others'."""
_PAGE: Final = 500
"""Purchases read at once."""


@attrs.frozen(kw_only=True)
class NewItem:
    """An item for a batch.

    Args:
        name: The user's name for it, or "".
        stem: The name of its file, without the suffix; unique in the batch.
        family: The family of the request.
        body: The request as it is sent, as JSON.
        amounts: What it consumes, as `written_amounts` has it, if whoever sends it may not know its
            price; or None.
    """

    name: str = ""
    stem: str
    family: str
    body: str
    amounts: str | None = None

    def of(self, batch: int, number: int) -> Item:
        """Return it as the item *number* of a batch."""
        facts = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return Item(**facts, batch=batch, number=number, stage=Stage.QUEUED)


@attrs.frozen
class Choosing:
    """What a person has decided about a purchase whose outcome nobody knows, or has found out.

    Args:
        key: The purchase.
        choice: What was decided, or None if only its cost is given.
        task: The task that it has created, to adopt it.
        cost: What it has cost, or None to leave that as it is.
    """

    key: str
    choice: Choice | None
    task: Task | Result | str | None = None
    cost: Decimal | None = None

    def change(self) -> Callable[[Purchase, float], Purchase]:
        """Return what it does to the purchase, given the time."""
        task = None if self.task is None else as_task(self.task)

        def change(purchase: Purchase, now: float) -> Purchase:
            if self.choice is not None:
                purchase = self._decided(purchase, self.choice, task, now)
            if self.cost is not None:
                purchase = priced(purchase, {Measure.COST: self.cost})
            return purchase

        return change

    def _decided(
        self, purchase: Purchase, choice: Choice, task: Task | None, now: float
    ) -> Purchase:
        if purchase.state is State.ARMED:
            raise StillSending(
                f"{called(purchase)} is still under way. Decide when its sender has ended"
            )
        # Whoever did not hear that a decision was recorded repeats it.
        after = AFTER_CHOICE[State.AMBIGUOUS][choice]
        if (purchase.state, purchase.task) == (after, None if task is None else task.id):
            return purchase
        return decided(purchase, choice, now, task)


@attrs.frozen
class Kind:
    """What purchases have in common that are added up together.

    Args:
        day: Their day, in days since 1970.
        family: Their family.
        model: Their model.
        state: Their state.
        tags: Their tags.
        amounts: What each of them consumes.
    """

    day: int
    family: str
    model: str
    state: State
    tags: tuple[str, ...]
    amounts: Amounts


@attrs.frozen(kw_only=True)
class Pruning:
    """What was removed from a store, and what of the same time was not.

    Args:
        removed: How many purchases were removed, by state.
        named: How many stay because their name is still promised.
        followed: How many stay because an item of a batch refers to them.
        undecided: How many stay because nobody knows yet how they have ended.
    """

    removed: Mapping[State, int]
    named: int
    followed: int
    undecided: int


def repeating(method: Callable[P, T]) -> Callable[P, T]:
    """Repeat a transaction that was in the way of another one."""

    @wraps(method)
    def repeated(*arguments: P.args, **more: P.kwargs) -> T:
        for _ in range(_ATTEMPTS):
            with suppress(Conflict):
                return method(*arguments, **more)
        raise StoreUnusable("The store is too busy. Nothing was changed. Run again later.")

    return repeated


@attrs.define
class _Known:
    """What is known of a store, whoever uses it in this process.

    Args:
        salt: Its salt, or None if nobody has used it yet.
        mark: The last purchase that was committed, or None.
    """

    salt: str | None = None
    mark: Mark | None = None


class Store:
    """The purchases of everyone who uses one database. Safe to use from many threads.

    It is a context manager.

    Args:
        database: Keeps them.
    """

    def __init__(self, database: Database) -> None:
        self.database: Database = database
        self._known = _Known()
        self.begin()
        _STORES.add(self)

    def begin(self) -> None:
        """Begin with nothing to record: at first, and again in a forked child."""
        self._limited: set[str] = set()
        self._late: dict[Step, None] = {}
        self._lists: Lists[Step] = Lists(self._commit, self._take_back, alone)
        self._part = secrets.randbelow(self.database.parts)

    def another(self) -> Self:
        """Return the same store for something that lives and dies by itself, such as a worker.

        It is another owner: what becomes of it does not concern this one. Close both.
        """
        other = copy(self)
        other.database = self.database.another()
        other.begin()
        _STORES.add(other)
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def place(self) -> str:
        """Where it is, without a password."""
        return self.database.place

    @property
    def send_within(self) -> float:
        """Seconds after which an armed purchase that was not sent yet must not be sent any more."""
        return SEND_WITHIN if self.database.leases else float("inf")

    def account(self, digest: Callable[[bytes], str]) -> str:
        """Return what *digest* makes of this store's salt.

        Raises:
            StoreUnusable: It cannot be read or written.
        """
        if self._known.salt is None:
            with self.transaction():
                pass  # which reads it
        return digest(str(self._known.salt).encode())

    def close(self) -> None:
        """Record what could not be recorded yet, if that is possible now, and close connections."""
        try:
            self.record_late()
        except StoreUnusable:
            pass
        finally:
            self.database.close()

    # Purchases

    def arm(
        self,
        order: Order,
        *,
        key: str | None = None,
        lasts: float = 100.0,
        budgets: Sequence[Budget] = (),
        item: Place | None = None,
    ) -> Purchase:
        """Record that *order* is about to be sent. When this returns, that is durable.

        Whatever it raises, send nothing, and the purchase is withdrawn.

        Args:
            order: What is bought.
            key: The purchase's key, random and never used before, or None to draw one.
            lasts: Seconds after which its exchange has certainly ended, once it was begun.
            budgets: What must not be exceeded, besides what the store limits. They count everybody.
            item: The item of a batch that it is for, which must be free or this process's. It is
                claimed and armed in the same transaction.

        Raises:
            NameHeld: Another purchase has its name.
            Exceeded: It does not fit into a budget.
            Lost: The owner was declared dead, or the item is not free.
            StoreUnusable: It could not be recorded.
        """
        owner = self.database.owner()
        arming = Arming(
            order=attrs.evolve(order, amounts=all_countable(order.amounts)),
            key=key or secrets.token_hex(16),
            owner=owner,
            lasts=lasts + (SEND_WITHIN if self.database.leases else 0.0),
            budgets=budgets,
            item=item,
        )
        return self._written([arming])[0]

    def conclude(self, key: str, outcome: Outcome) -> Purchase:
        """Record how the POST of a purchase has ended: now or late, once or repeatedly.

        If it cannot be recorded, the next use of this object records it.

        Returns:
            The purchase as it is then. It is ambiguous if another one has its task.

        Raises:
            LookupError: There is no such purchase.
            StoreUnusable: It could not be recorded. Until it is, the purchase counts as spent.
        """
        news = News(key, outcome)
        try:
            return self._written([news])[0]
        except LookupError:
            raise
        except BaseException:
            self._late[news] = None
            raise

    def withdraw(self, key: str) -> None:
        """Release the purchase *key*, if there is one, because it was certainly not sent.

        Raises:
            StoreUnusable: It could not be recorded. The next use of this object does so.
        """
        self._late[Withdrawal(key)] = None
        self.record_late()

    def record_late(self) -> None:
        """Record every outcome that could not be recorded yet.

        Raises:
            StoreUnusable: That is still so.
        """
        if self._late:
            self._lists.write([])

    def decide(
        self,
        key: str,
        choice: Choice,
        task: Task | Result | str | None = None,
        *,
        wall: float | None = None,
    ) -> Purchase:
        """Record what a person has decided about a purchase whose outcome nobody knows.

        One that was recorded before changes nothing.

        Args:
            key: The purchase.
            choice: What was decided.
            task: The task that it has created, to adopt it.
            wall: The time by this machine's clock, or None to read it.

        Raises:
            CannotDecide: There is nothing to decide (`StillSending`, `TaskTaken`).
            LookupError: There is no such purchase.
            StoreUnusable: The store cannot be used. Nothing was decided.
        """
        try:
            [decision] = self.decide_all([Choosing(key, choice, task)], wall=wall)
        except NoneDecided as error:
            raise error.reasons[0] from None
        return decision

    def decide_all(
        self,
        choices: Iterable[Choosing],
        *,
        moves: Iterable[tuple[Item, Stage]] = (),
        only_checked: bool = False,
        wall: float | None = None,
    ) -> list[Purchase]:
        """Record decisions in one transaction, all or none. Return the purchases.

        Args:
            choices: What was decided.
            moves: Items for which nothing is under way, each with the stage that was decided.
            only_checked: Whether nothing is recorded, so that `NoneDecided` is raised in any case.
            wall: The time by this machine's clock, or None to read it.

        Raises:
            NoneDecided: Some do not apply. It has the reason of each.
            StoreUnusable: The store cannot be used. None was recorded; unless it was lost how the
                transaction has ended: repeat them, which changes nothing if they were.
        """
        self.sweep()
        here = time.time() if wall is None else wall
        decisions: list[Step] = [
            Decision(one.key, one.change(), None if one.choice is None else here) for one in choices
        ]
        moving = [Moving(item=item, after=after, facts={"reason": None}) for item, after in moves]
        return self._decided([*decisions, *moving], only_checked=only_checked)

    @repeating
    def _decided(self, decisions: Sequence[Step], *, only_checked: bool = False) -> list[Purchase]:
        if not decisions and only_checked:
            raise NoneDecided({})
        if not decisions:
            return []
        members = [Member[Step](one) for one in decisions]
        with self.transaction() as turn:
            self._carry_out(turn, members)
            reasons = {n: one.error for n, one in enumerate(members) if one.error is not None}
            if reasons or only_checked:
                raise NoneDecided(reasons)
        return [one.result for one in members if isinstance(one.step, Decision)]

    def price(self, key: str, amounts: Mapping[Measure, Decimal]) -> Purchase:
        """Record what a purchase has consumed, as a person has found out.

        Raises:
            LookupError: There is no such purchase.
            StoreUnusable: The store cannot be used.
        """
        return self._written([Decision(key, lambda purchase, _: priced(purchase, amounts))])[0]

    def _written(self, steps: Sequence[Step]) -> list[Purchase]:
        """Write *steps*, or raise the first error of one."""
        told = self._lists.write(steps)
        for one in told:
            if isinstance(one, Exception):
                raise one
        return [one for one in told if isinstance(one, Purchase)]

    def find(self, key: str) -> Purchase:
        """Return a purchase.

        Raises:
            LookupError: There is no such purchase.
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            found = {} if rows is None else find_all(rows, [key])
        if key not in found:
            raise LookupError(f"there is no purchase {key}")
        return found[key]

    def named(self, account: str, name: str) -> Purchase | None:
        """Return the purchase that has a name, or None. One that nobody sends is ambiguous.

        If it is the name of identical requests, that is every purchase that these join.

        Raises:
            StoreUnusable: The store cannot be read or written.
        """
        self.record_late()
        with self.reading() as rows:
            found = None
            if rows is not None:
                found = named(rows, account, name) or twin(rows, account, name)
        if found is not None and found.state is State.ARMED and self.sweep():
            return self.named(account, name)
        return found

    def bought(self, account: str, task: str) -> Purchase | None:
        """Return the purchase that has a task, or None.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            found = [] if rows is None else rows.run(
                f"{SELECT} WHERE account = :account AND task = :task",
                account=account, task=indexed(task),
            )  # fmt: skip
        return read(found[0]) if found else None

    def purchases(self, *states: State) -> Iterator[Purchase]:
        """Yield the purchases in *states*, or all of them, from the oldest on, a page at a time.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        values = {f"state{n}": state.value for n, state in enumerate(states)}
        where = f"AND state IN (:{', :'.join(values)})" if states else ""
        if are_open(states):
            where = f"{where} AND {OPEN}"
        for page in self._by_time(f"armed_at, key, {', '.join(COLUMNS)}", where, **values):
            for _, _, *row in page:
                yield read(row)

    def kinds(self) -> Iterator[tuple[Kind, int]]:
        """Yield each kind of purchase that counts as spent, and how many there are of it.

        They are read a page at a time, much faster than whole purchases. A kind may come again.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        columns = "armed_at, key, family, model, state, tags, amounts"
        for page in self._by_time(columns, f"AND state <> '{State.RELEASED}'"):
            counted = Counter((day_of(float(at)), *row) for at, _, *row in page)
            for (day, family, model, state, tags, amounts), count in counted.items():
                facts = (State(state), read_list(tags), read_amounts(amounts))
                yield Kind(day, family, model, *facts), count

    def _by_time(self, columns: str, where: str, **values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield pages of purchases, from the oldest on. The time and the key are first."""
        at, key = -1.0, ""
        while True:
            with self.reading() as rows:
                found = [] if rows is None else rows.run(
                    # The first condition is one for an index, also where OR is none.
                    f"SELECT {columns} FROM muybridge_purchases WHERE armed_at >= :at "
                    f"AND (armed_at > :at OR key > :key) {where} "
                    "ORDER BY armed_at, key LIMIT :most",
                    at=at, key=key, most=_PAGE, **values,
                )  # fmt: skip
            if not found:
                return
            yield found
            at, key, *_ = found[-1]

    # How long tasks take

    def history(self, digest: Callable[[bytes], str], task: str) -> History | None:
        """Return how long tasks like *task* have taken, or None if no purchase has this task.

        Args:
            digest: Returns the account, as for `account`.
            task: The task's id.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            if rows is None:
                return None
            return find_history(rows, digest(str(self._known.salt).encode()), indexed(task))

    def note_duration(self, history: History, seconds: float) -> None:
        """Note how long a task has taken. The next use of this object records it."""
        # A process may wait for years and buy nothing: it keeps no more than a history has.
        if len(self._late) < PLACES:
            self._late[Duration(history.tasks, seconds)] = None

    # Owners

    @repeating
    def register(self, lease: float) -> None:
        """Begin to take items, for *lease* seconds; then, and before, call `renew`.

        Without leases, this process holds a lock instead, and lives as long as it does.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        owner = self.database.owner()
        if self.database.leases:
            with self.transaction() as turn:
                turn.rows.run(
                    "INSERT INTO muybridge_owners (id, host, pid, lease, lease_until) "
                    "VALUES (:id, :host, :pid, :lease, {now} + :lease) ON CONFLICT DO NOTHING",
                    id=owner, host=socket.gethostname(), pid=os.getpid(), lease=lease,
                )  # fmt: skip

    @repeating
    def unregister(self) -> None:
        """End the lease of this process, which has given back what it had taken.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        if self.database.leases:
            with self.transaction() as turn:
                turn.rows.run(
                    "DELETE FROM muybridge_owners WHERE id = :owner AND buried_at IS NULL",
                    owner=self.database.owner(),
                )  # fmt: skip

    @repeating
    def renew(self) -> None:
        """Extend the lease of this process.

        Raises:
            Lost: It was declared dead: its items are another one's.
            StoreUnusable: It cannot be recorded.
        """
        if self.database.leases:
            with self.transaction() as turn:
                if not turn.rows.change(
                    "UPDATE muybridge_owners SET lease_until = {now} + lease "
                    "WHERE id = :owner AND buried_at IS NULL", owner=self.database.owner(),
                ):  # fmt: skip
                    raise Lost(f"worker {self.database.owner()} was declared dead")

    def free_items(self) -> None:
        """Take their items from owners that are dead.

        Raises:
            StoreUnusable: The store cannot be read or written.
        """
        with self.reading() as rows:
            found = [] if rows is None else rows.run(
                "SELECT DISTINCT owner FROM muybridge_item WHERE owner IS NOT NULL"
            )  # fmt: skip
        for (owner,) in found:
            if self._is_gone(str(owner)):
                self._free_items_of(str(owner))

    def bury(self, owner: str) -> None:
        """Declare *owner* dead, whose process has certainly ended, and free its items.

        What it was sending is ambiguous.

        Raises:
            StoreUnusable: The store cannot be read or written.
        """
        with self.reading() as rows:
            armed = [] if rows is None else rows.run(
                f"SELECT key FROM muybridge_purchases WHERE owner = :owner AND state = 'armed' "
                f"AND {OPEN}", owner=owner,
            )  # fmt: skip
        if armed:
            self._written([News(str(key), UNKNOWN_END) for (key,) in armed])
        self._free_items_of(owner, has_ended=True)

    @repeating
    def _free_items_of(self, owner: str, *, has_ended: bool = False) -> None:
        with self.transaction() as turn:
            rows = turn.rows
            # An armed item follows its purchase, and nobody knows yet what that has come to.
            left = rows.run(
                f"{SELECT_ITEMS} WHERE owner = :owner AND stage <> 'armed' "
                "ORDER BY batch, number {for_update}", owner=owner,
            )  # fmt: skip
            if self.database.leases:
                # No lease lasts twice as long, unless the clock was put back.
                rows.run(
                    "UPDATE muybridge_owners SET buried_at = {now} WHERE id = :owner "
                    "AND buried_at IS NULL AND (:has_ended = 1 "
                    "OR lease_until <= {now} OR lease_until > {now} + 2 * lease)",
                    owner=owner, has_ended=int(has_ended),
                )  # fmt: skip
                if rows.run(
                    "SELECT 1 FROM muybridge_owners WHERE id = :owner AND buried_at IS NULL",
                    owner=owner,
                ):
                    return
            freed: dict[Place, Item] = {}
            for item in map(read_item, left):
                stage = Stage.QUEUED if item.stage is Stage.CLAIMED else item.stage
                freed[item.batch, item.number] = attrs.evolve(item, stage=stage, owner=None)
            update_items(rows, freed)

    def sweep(self) -> int:
        """Make ambiguous what nobody can be sending any more. Return how many purchases that are.

        Without leases, that is when the owner's lock is free; else, when the time is over for
        which its exchange may last, by the database's clock.

        Raises:
            StoreUnusable: The store cannot be read or written.
        """
        self.record_late()
        ended = "sending_until <= {now} AND" if self.database.leases else ""
        with self.reading() as rows:
            if rows is None:
                return 0
            armed = rows.run(
                "SELECT key, owner FROM muybridge_purchases "
                f"WHERE {ended} state = 'armed' AND {OPEN}"
            )
        left = [str(key) for key, owner in armed if self._is_gone(str(owner))]
        if left:  # who only looks writes nothing
            self._written([News(key, UNKNOWN_END) for key in left])
        return len(left)

    def _is_gone(self, owner: str) -> bool:
        return self.database.leases or not self.database.lives(owner)

    # Items of batches

    @repeating
    def begin_batch(
        self,
        name: str,
        items: Iterable[NewItem],
        *,
        service: str = "",
        place: str | None = None,
        number: int | None = None,
    ) -> int:
        """Begin a batch, whole or not at all, and return its number; or find it.

        Args:
            name: Its name, also in the tag `batch=NAME` of its purchases.
            items: Its items. They can be iterated over again.
            service: Where its tasks are.
            place: Where its results go, or None if each worker has its own place.
            number: A random number for it, so that the caller sees whether the batch is new, or
                None.

        Raises:
            ValueError: Two items have the same stem.
            StoreUnusable: It cannot be recorded.
        """
        with self.transaction() as turn:
            rows = turn.rows
            found = rows.run("SELECT number FROM muybridge_batch WHERE name = :name", name=name)
            if found:
                return int(found[0][0])
            if number is None:
                number = random_number()
            rows.run(
                "INSERT INTO muybridge_batch (number, name, service, place) "
                "VALUES (:number, :name, :service, :place)",
                number=number, name=name, service=service, place=place,
            )  # fmt: skip
            new = (item.of(number, one) for one, item in enumerate(items, 1))
            insert_items(rows, _with_own_stems(new, items))
            return number

    @repeating
    def take(self, batch: int, *stages: Stage, most: int = 1) -> list[tuple[Item, Purchase | None]]:
        """Give free items in *stages* to this process, each with its purchase.

        One that is queued is claimed then. Results come in the order in which they expire.

        Args:
            batch: The batch.
            *stages: From which stages, the most urgent first.
            most: Most items.

        Raises:
            Lost: This process was declared dead.
            StoreUnusable: The store cannot be used.
        """
        owner = self.database.owner()
        taken: dict[Place, Item] = {}
        with self.transaction() as turn:
            for stage in stages:
                # The queue can be very long; this is the order of its index.
                order = "number" if stage is Stage.QUEUED else "expires IS NULL, expires, number"
                found = turn.rows.run(
                    f"{SELECT_ITEMS} WHERE batch = :batch AND stage = :stage AND owner IS NULL "
                    f"ORDER BY {order} LIMIT :most {{skip_locked}}",
                    batch=batch, stage=stage.value, most=most - len(taken),
                )  # fmt: skip
                after = Stage.CLAIMED if stage is Stage.QUEUED else stage
                for item in map(read_item, found):
                    mine = attrs.evolve(item, stage=after, owner=owner)
                    taken[place_of(item)] = mine
            update_items(turn.rows, taken)
            turn.check_alive(owner, leases=self.database.leases)
            keys = {item.purchase for item in taken.values() if item.purchase is not None}
            bought = find_all(turn.rows, keys)
        return [(item, bought.get(str(item.purchase))) for item in taken.values()]

    def move(self, item: Item, after: Stage, **facts: Any) -> Item:
        """Take a step of an item of this process's that concerns no purchase.

        Args:
            item: The item as it was read.
            after: Its next stage, or the same one.
            **facts: Its other values.

        Raises:
            Lost: It is in another stage, or another process's.
            ValueError: There is no such step.
            StoreUnusable: It cannot be recorded.
        """
        [moved] = self.move_all([(item, after, facts)])
        if isinstance(moved, Lost):
            raise moved
        return moved

    def move_all(
        self, steps: Iterable[tuple[Item, Stage, Mapping[str, Any]]], *, late: bool = False
    ) -> list[Item | Lost]:
        """Take steps of many items, as `move` does, in as few transactions as possible.

        Args:
            steps: The items as they were read, each with its next stage and its other values.
            late: Whether the next use of this object takes them, if they cannot be recorded.

        Raises:
            ValueError: There is no such step.
            StoreUnusable: They cannot be recorded.
        """
        moving: list[Step] = []
        for item, after, facts in steps:
            if after is not item.stage and after not in STEPS.get(item.stage, ()):
                raise ValueError(f"no item goes from {item.stage} to {after}")
            moving.append(Moving(item=item, after=after, facts=facts))
        try:
            return self._lists.write(moving) if moving else []
        except BaseException:
            if late:
                self._late |= dict.fromkeys(moving)
            raise

    @repeating
    def join(self, item: Item, key: str) -> Item:
        """Let an item, free or claimed, follow the purchase *key* of an identical request.

        Nothing is sent for it. While the purchase's outcome is unknown, it waits without an owner.

        Raises:
            Lost: It is another process's, or the purchase holds its name no more: arm anew.
            StoreUnusable: It cannot be recorded.
        """
        place = (item.batch, item.number)
        with self.transaction() as turn:
            bought = find_all(turn.rows, [key], "{for_update}").get(key)
            known = lock_items(turn.rows, (), [place]).get(place)
            if known is None or not may_begin(known, self.database.owner()):
                raise Lost(f"item {item.number} is another worker's, or is done")
            if bought is None or not bought.holds_name:
                raise Lost(f"purchase {key} holds no name any more")
            waiting = attrs.evolve(known, stage=Stage.JOINED, purchase=key, owner=None)
            joined = followed(waiting, bought)
            update_items(turn.rows, {place: joined})
        return joined

    def items(self, batch: int, *, after: int = 0, most: int = _PAGE) -> list[Item]:
        """Return a page of items, by number.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            if rows is None:
                return []
            found = rows.run(
                f"{SELECT_ITEMS} WHERE batch = :batch AND number > :after ORDER BY number "
                "LIMIT :most", batch=batch, after=after, most=most,
            )  # fmt: skip
        return [read_item(row) for row in found]

    def counts(self, batch: int) -> dict[Stage, int]:
        """Return how many items are in each stage, without empty ones.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            found = [] if rows is None else rows.run(
                "SELECT stage, count(*) FROM muybridge_item WHERE batch = :batch GROUP BY stage",
                batch=batch,
            )  # fmt: skip
        return {Stage(stage): int(count) for stage, count in found}

    def strays(self, batch: int) -> list[Purchase]:
        """Return the purchases of a batch that were paid for, and whose task no item has.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            if rows is None:
                return []
            found = rows.run(
                f"{SELECT} WHERE batch = :batch AND (late IS NOT NULL OR task IS NOT NULL "
                "AND NOT EXISTS (SELECT 1 FROM muybridge_item WHERE purchase = key "
                "AND muybridge_item.batch = muybridge_purchases.batch "
                "AND muybridge_item.number = muybridge_purchases.number "
                "AND stage NOT IN ('queued', 'refused', 'abandoned'))) ORDER BY key",
                batch=batch,
            )
        return [read(row) for row in found]

    # Request rates

    @repeating
    def limit_rate(self, service: str, rate: float) -> None:
        """Limit how many requests a second all batches of the store send to *service* together.

        Args:
            service: Where their tasks are.
            rate: Requests a second, or infinity for no limit.

        Raises:
            ValueError: It is not above 0.
            StoreUnusable: It cannot be recorded.
        """
        check_rate(rate)
        with self.transaction() as turn:
            write_rate(turn.rows, service, lock_rate(turn.rows, service).limited(stored_rate(rate)))

    def has_rate(self, service: str) -> bool:
        """Whether the requests to *service* are limited.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            return rows is not None and read_rate(rows, service).rate is not None

    @repeating
    def acquire_permits(self, service: str, wanted: int) -> Permits:
        """Return permits for requests to *service*, which nobody else gets.

        Without a rate, nothing is written.

        Args:
            service: Where they go.
            wanted: How many requests the caller wants to send. It may get fewer, but at least one.

        Raises:
            StoreUnusable: The store cannot be used.
        """
        leases = self.database.leases
        with self.reading() as rows:
            rate = RequestRate() if rows is None else read_rate(rows, service)
            if rows is None or rate.rate is None:
                now = 0.0 if rows is None else float(rows.run("SELECT {now}")[0][0])
                return rate.acquire(wanted, sharers=1, now=now)[1]
        with self.transaction() as turn:
            sharers = sharers_of(turn.rows, leases=leases)
            rate = lock_rate(turn.rows, service)
            after, permits = rate.acquire(wanted, sharers=sharers, now=turn.now)
            write_rate(turn.rows, service, after)
        return permits

    @repeating
    def throttle(self, service: str, seconds: float) -> None:
        """Give nobody permits for *seconds*, because *service* has asked to slow down.

        Raises:
            StoreUnusable: It cannot be recorded.
        """
        with self.transaction() as turn:
            rate = lock_rate(turn.rows, service)
            write_rate(turn.rows, service, rate.throttled(seconds, now=turn.now))

    # Budgets

    @repeating
    def limit(self, tag: str, budget: Budget, *, from_now: bool | None = None) -> StoredBudget:
        """Limit what everybody may spend under *tag*, in the period of *budget*.

        The tag may have a budget for this period already. Its other limits stay as they are.

        Args:
            tag: The tag, or `EVERYTHING`; or a key alone, for each of its values separately. Then
                every purchase needs a tag with this key.
            budget: The limits.
            from_now: Whether only what is armed from now on counts, and not what was spent before;
                or None to leave that as it is. A new budget counts what was before.

        Raises:
            ValueError: The tag cannot be used, or there is no limit.
            StoreUnusable: The store cannot be written.
        """
        after = StoredBudget(tag=tag, budget=budget, counted_under=tag)
        with self.transaction() as turn:
            # Whoever counts under this tag, and has not seen the limit, ends first.
            turn.rows.hold([EVERYTHING if is_key(tag) else tag])
            before = _of_period(limits_of(turn.rows, [tag]).get(tag, ()), budget.per)
            if before is not None:
                limits = {str(one): it for one, it in before.budget.limits.items()}
                limits |= {str(one): it for one, it in budget.limits.items()}
                after = attrs.evolve(before, budget=Budget(**limits, per=budget.per))
            if from_now:
                # No user's tag is called so, because it is not printable.
                name = f"budget\t{secrets.token_hex(8)}"
                after = attrs.evolve(after, counted_under=name, since=turn.now)
            elif from_now is False:
                after = attrs.evolve(after, counted_under=tag, since=None)
            if not after.budget.limits:
                raise ValueError("a budget has at least one limit")
            _lift(turn.rows, tag, budget.per)
            turn.rows.run(
                "INSERT INTO muybridge_limits (tag, period, counted_under, since, limits) "
                "VALUES (:tag, :period, :counted_under, :since, :limits)",
                tag=tag, period=budget.per or "", counted_under=after.counted_under,
                since=after.since, limits=written_budget(after.budget),
            )  # fmt: skip
        return after

    @repeating
    def lift(self, tag: str, per: Period | None = None) -> StoredBudget:
        """Lift every limit on what everybody may spend under *tag* in a period, or in all.

        Raises:
            LookupError: There is none.
            StoreUnusable: The store cannot be written.
        """
        if not self.database.exists():  # who lifts a limit creates no store
            raise LookupError(tag)
        with self.transaction() as turn:
            turn.rows.hold([EVERYTHING if is_key(tag) else tag])
            found = _of_period(limits_of(turn.rows, [tag]).get(tag, ()), per)
            if found is None:
                raise LookupError(tag)
            _lift(turn.rows, tag, per)
        return found

    def limits(self) -> list[StoredBudget]:
        """Return the stored budgets, by tag and period.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            found = [] if rows is None else rows.run(f"{SELECT_LIMITS} ORDER BY tag, period")
        return [*map(read_limits, found)]

    def spent(self, tag: str = EVERYTHING, budget: Budget | None = None) -> Amounts:
        """Return what counts as spent under *tag* in the current period of *budget*.

        Nothing is written: a store that does not exist yet is empty.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            if rows is None:
                return totals(read_sums([]))
            days = None
            if budget is not None:
                days = budget.days(float(rows.run("SELECT {now}")[0][0]))
            return totals(read_sums(sums_of(rows, tag, *(days or (EVER, EVER)))))

    def spent_of_key(self, stored: StoredBudget) -> dict[str, Amounts]:
        """Return what counts as spent of a budget for a key, by tag.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        begin = stored.label_of(f"{stored.tag}=")
        with self.reading() as rows:
            if rows is None:
                return {}
            now = float(rows.run("SELECT {now}")[0][0])
            first, last = stored.budget.days(now) or (EVER, EVER)
            found = rows.run(
                "SELECT tag, sums FROM muybridge_spent WHERE substr(tag, 1, :length) = :begin "
                "AND day BETWEEN :first AND :last ORDER BY tag",
                length=len(begin), begin=begin, first=first, last=last,
            )  # fmt: skip
        sums: dict[str, list[str]] = {}
        for label, text in found:
            value = str(label)[len(begin) :]
            sums.setdefault(f"{stored.tag}={value}", []).append(str(text))
        return {tag: totals(read_sums(texts)) for tag, texts in sums.items()}

    def pruned_spent(self, key: str | None = None) -> dict[tuple[str, int], Sums]:
        """Return what was spent on days of which purchases were removed, by tag and day.

        The sums have what is removed and what is not. Without `prune`, there are none.

        Args:
            key: What the tags begin with, before "=", or None for `EVERYTHING`.

        Raises:
            StoreUnusable: The store cannot be read.
        """
        with self.reading() as rows:
            if rows is None:
                return {}
            values: dict[str, Any] = {"tag": key or EVERYTHING}
            where = "tag = :tag"
            if key is not None:
                values |= {"length": len(key) + 1, "begin": f"{key}="}
                where = "(tag = :tag OR substr(tag, 1, :length) = :begin)"
            found = rows.run(
                f"SELECT tag, day, sums FROM muybridge_spent WHERE {where} AND day <> {EVER} "
                f"AND day * {DAY} < (SELECT pruned_before FROM muybridge_store)", **values,
            )  # fmt: skip
        sums: dict[tuple[str, int], list[str]] = {}
        for name, day, text in found:
            sums.setdefault((str(name), int(day)), []).append(str(text))
        return {place: read_sums(texts) for place, texts in sums.items()}

    # Housekeeping

    @repeating
    def prune(self, before: float) -> Pruning:
        """Remove settled purchases that were armed before a time.

        What was spent stays counted. The newest purchase stays, and each that an item of a batch
        refers to, and each that has a name: its name is still promised.

        Args:
            before: Unix seconds.

        Raises:
            StoreUnusable: The store cannot be written.
        """
        if not self.database.exists():  # there is nothing to remove, and so nothing to create
            return Pruning(removed={}, named=0, followed=0, undecided=0)
        with self.transaction() as turn:
            before = min(before, turn.now)
            removed = {
                state: turn.rows.change(f"DELETE {_OLD} AND {_SETTLED} AND state = :state",
                                        before=before, state=state.value)
                for state in _PRUNED
            }  # fmt: skip
            left = turn.rows.run(
                f"SELECT state, name IS NOT NULL AND state IN ({listed(NAMED)}), count(*) {_OLD} "
                "GROUP BY 1, 2", before=before,
            )  # fmt: skip
            turn.rows.run(
                "UPDATE muybridge_store SET pruned_before = :before WHERE pruned_before < :before",
                before=before,
            )
        settled = [(bool(has_name), int(n)) for state, has_name, n in left if state in _PRUNED]
        return Pruning(
            removed={state: count for state, count in removed.items() if count},
            named=sum(n for has_name, n in settled if has_name),
            followed=sum(n for has_name, n in settled if not has_name),
            undecided=sum(int(n) for state, _, n in left if state not in _PRUNED),
        )

    def accept(self) -> None:
        """Use an older copy that was put in the store's place, because the latest one is lost.

        Purchases that were made since the copy do not count, and their names are free: whoever
        repeats one pays again. Processes that have used the latest one still refuse the copy.

        Raises:
            StoreUnusable: It cannot be read.
        """
        with self.database.reading() as rows:
            salt = Transaction(rows, self.place, None, None).salt
            newest = rows.run(
                "SELECT key, armed_at FROM muybridge_purchases ORDER BY armed_at DESC, key LIMIT 1"
            )
        [(key, armed_at)] = newest or [("none", 0)]
        self._known.salt, self._known.mark = salt, None
        self.database.note_seen(Mark(salt if newest else "none", str(key), float(armed_at)))

    def upgrade(self) -> int:
        """Upgrade the tables of an earlier version, all or nothing. Return which that was.

        Raises:
            StoreUnusable: It has a newer version, or cannot be written.
        """
        with self.database.transaction() as rows:
            [(version,)] = rows.run("SELECT version FROM muybridge_store {for_update}")
            if version > VERSION:
                raise StoreUnusable(f"{self.place} {of_version(int(version))}")
            for step in range(int(version), VERSION):
                if step not in UPGRADES:
                    raise StoreUnusable(f"{self.place}: version {step} cannot be upgraded.")
                for statement in UPGRADES[step]:
                    rows.run(statement)
            if version < VERSION:
                rows.run("UPDATE muybridge_store SET version = :version", version=VERSION)
        return int(version)

    # Transactions

    def _commit(self, members: Sequence[Member[Step]]) -> None:
        """Write a list. What is in the way of others is repeated, at last one by one."""
        waited = max(time.monotonic() - one.arrived for one in members)
        for _ in range(_ATTEMPTS):
            with suppress(Conflict):
                self._write(members, waited)
                return
        for one in members:
            try:
                self._write([one], waited)
            except Conflict:
                one.failure = StoreUnusable(f"{self.place} is too busy. Nothing is sent.")
                one.is_settled = True

    def _write(self, members: Sequence[Member[Step]], waited: float = 0.0) -> None:
        """Write *members* in one transaction, and first what could not be recorded before."""
        late = [*self._late]
        rows: Rows | None = None
        try:
            with self.transaction(waited) as turn:
                rows = turn.rows
                for one in members:
                    one.result = one.error = None
                mark = self._carry_out(turn, [*(Member[Step](step) for step in late), *members])
        except BaseException as error:
            if rows is not None and rows.is_ending and not isinstance(error, Conflict):
                for one in members:
                    one.is_uncertain = True
                    if isinstance(error, Exception):  # nobody of them will send
                        self._take_back(one.step)
            raise
        if mark is not None:
            self._known.mark = mark
            self.database.note_seen(mark)
        for one in members:
            one.is_settled = True
        for step in late:
            self._late.pop(step, None)

    def _carry_out(self, turn: Transaction, members: Sequence[Member[Step]]) -> Mark | None:
        leases, part, limited = self.database.leases, self._part, self._limited
        return turn.carry_out(members, leases=leases, part=part, limited=limited)

    def _take_back(self, step: Step | None) -> None:
        """Withdraw a step that may have been written, with the next transaction."""
        if isinstance(step, Arming):
            self._late[Withdrawal(step.key)] = None

    @contextmanager
    def transaction(self, waited: float = 0.0) -> Generator[Transaction]:
        """Begin a transaction of this store, which is created if it does not exist."""
        if self._known.salt is None:
            self.database.create(TABLES, secrets.token_hex(16))
        with self.database.transaction(waited=waited) as rows:
            mark = self._known.mark or self.database.seen()
            turn = Transaction(rows, self.place, self._known.salt, mark)
            yield turn
        self._known.salt = turn.salt

    @contextmanager
    def reading(self) -> Generator[Rows | None]:
        """Begin to read. There are no rows if there is no store yet."""
        if self._known.salt is None and not self.database.exists():
            yield None
            return
        with self.database.reading() as rows:
            mark = self._known.mark or self.database.seen()
            self._known.salt = Transaction(rows, self.place, self._known.salt, mark).salt
            yield rows


_PRUNED: Final = (State.ACCEPTED, State.RELEASED, State.ABANDONED, State.RESUBMITTED)
_OLD: Final = (
    "FROM muybridge_purchases WHERE armed_at < :before AND armed_at < (SELECT last FROM "
    "(SELECT max(armed_at) AS last FROM muybridge_purchases) AS newest)"
)
_SETTLED: Final = (
    f"(name IS NULL OR state NOT IN ({listed(NAMED)})) "
    "AND NOT EXISTS (SELECT 1 FROM muybridge_item WHERE purchase = key)"
)
"""What may be removed, of what is in one of the states above."""


def _of_period(stored: Iterable[StoredBudget], per: Period | None) -> StoredBudget | None:
    return next((one for one in stored if one.budget.per == per), None)


def _lift(rows: Rows, tag: str, per: Period | None) -> None:
    rows.run(
        "DELETE FROM muybridge_limits WHERE tag = :tag AND period = :period",
        tag=tag, period=per or "",
    )  # fmt: skip


def random_number() -> int:
    """Return a number for a batch: not one of a sequence, which a copy would hand out again."""
    return secrets.randbits(62)


def _with_own_stems(items: Iterable[Item], given: Iterable[NewItem]) -> Iterator[Item]:
    """Yield *items*, of which no two have the same stem.

    A list that somebody has made is checked. Millions of items are read from elsewhere, where their
    stems were made, and only the database remembers all of those.
    """
    seen: set[str] | None = set() if isinstance(given, Sequence) else None
    for item in items:
        if seen is not None:
            if item.stem in seen:
                raise ValueError("two items of the batch have the same stem")
            seen.add(item.stem)
        yield item


_STORES: Final[WeakSet[Store]] = WeakSet()


def _begin_in_child() -> None:
    """Leave the parent's locks to the parent: a thread that does not exist here may hold them."""
    for store in tuple(_STORES):
        store.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
