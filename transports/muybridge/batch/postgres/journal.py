"""`PostgresJournal`: the journal of a batch that workers on many machines share.

A worker holds a lease, by the database's clock, and renews it as long as it lives. Three things
follow from a lease being a guess, unlike a lock: a worker may be declared dead and live on, because
it was paused or cut off.

- Its id is a fencing token. `take` and `arm` lock the worker's row and check it in the statement
  that writes, so nobody can declare a worker dead between the check and the write.
- Between arming and sending it may be paused, too. A create that has not begun `send_within`
  seconds after it was armed is not sent.
- Its response may arrive after its items were taken away. `report_late` puts the id where it
  belongs. A person's `resubmit` is refused as long as the create may still be under way.

One gap remains, and no journal can close it: a pause between the last check and the first byte,
if a person has the item sent again during that very pause.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, Final, Self, cast

from muybridge.batch.items import BatchProblem, InvalidBatch
from muybridge.batch.journal_entries import (
    JUDGED,
    Entry,
    NewItem,
    State,
    check_step,
    label_of,
    late_step,
    names_task,
    storable_facts,
    storable_texts,
    stray_values,
    task_id_in,
)
from muybridge.batch.journal_errors import (
    DAMAGED,
    OUTDATED,
    ClaimLost,
    JournalMissing,
    JournalOutdated,
    JournalUnusable,
    StillSending,
)
from muybridge.batch.limits.rate import Permits, check_rate, stored_rate
from muybridge.batch.limits.spending import (
    check_change,
    needs_of,
    unknown_amounts,
)
from muybridge.batch.port import Stray
from muybridge.batch.postgres import budgets, rates, schema, tables
from muybridge.batch.postgres.connecting import (
    Connection,
    connect,
    named,
    telling,
    telling_taken,
)
from muybridge.batch.postgres.written import Written
from muybridge.batch.storable_values import storable
from muybridge_protocol.estimates import PriceList
from muybridge_protocol.purchases import Budget, BudgetUse, read_amounts, written_amounts
from muybridge_protocol.records.convert import structure, wire_names
from muybridge_protocol.records.json import InvalidJson, read_object

LEASE: Final = 30.0
"""Seconds for which a registration holds."""
_SEND_WITHIN: Final = 5.0
_PAGE: Final = 500
"""Items read at once."""

_COLUMNS: Final = tuple(wire_names(Entry))
_GIVEN: Final = tuple(wire_names(NewItem))
_OF_A_STRAY: Final = tuple(wire_names(Stray))
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM muybridge_items WHERE batch = %(batch)s"  # noqa: S608  our own names
_RETURNED: Final = f"RETURNING {', '.join(f'items.{name}' for name in _COLUMNS)}"


class PostgresJournal:
    """The journal of one batch in PostgreSQL. Only one thread may use it at a time.

    `PostgresJournal.create` begins a batch; it is a context manager.

    Args:
        url: The database, as libpq has it: `postgresql://USER@HOST/DATABASE`.
        batch: The batch's name.
        lease: Seconds for which the registration of a worker holds.

    Raises:
        JournalMissing: There is no such batch.
        JournalUnusable: The database cannot be used, or could lose what it has confirmed.
    """

    def __init__(self, url: str, batch: str, *, lease: float = LEASE) -> None:
        self.batch: str = batch
        self.lease: float | None = lease
        self.send_within: float = min(_SEND_WITHIN, lease / 4)
        self.is_new: bool = False
        """Whether this process has just begun it."""
        self.id: str
        """Distinguishes the batch from every other one, in any database."""
        self.prices: PriceList | None = None
        """What the creates of added items cost, for a budget that limits that."""
        self.out: str | None
        """Where its results go, or None if each worker is told."""
        self._url = url
        self._seconds = lease
        self._written = Written()
        self._place = named(url)
        self._db = connect(url)
        self._steps = self._db.cursor()  # a new one for each step takes a tenth longer
        try:
            with telling(self._place):
                self._id, self.id, self._service, self.out, self._first = self._found(self._db)
                self._has_budget = budgets.use_of(self._db, self._id) is not None
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def create(
        cls,
        url: str,
        batch: str,
        service: str,
        items: Iterable[NewItem],
        *,
        lease: float = LEASE,
        budget: Budget | None = None,
        prices: PriceList | None = None,
        out: str | None = None,
        rate: float | None = None,
    ) -> Self:
        """Begin a batch, unless another process has just done so, and open its journal.

        It appears whole or not at all.

        Args:
            url: The database.
            batch: The batch's name.
            service: Where its tasks are.
            items: The items of the batch.
            lease: Seconds for which the registration of a worker holds.
            budget: What its creates may consume in all, or None for no limit.
            prices: What they cost, if the budget limits that.
            out: Where its results go, or None if each worker has its own place.
            rate: Requests a second of everybody at this service, infinity for no limit, or None to
                leave it unchanged.

        Raises:
            InvalidBatch: An item needs an unknown amount of what the budget limits.
            JournalUnusable: It cannot be written.
            Unstorable: An item cannot be recorded.
        """
        place = named(url)
        with connect(url) as db, telling(place):
            # Apart from the items: what changes a table locks out everybody else.
            with tables.beginning(db):
                tables.make(db, place)
            with tables.beginning(db):
                begun = db.execute(
                    "INSERT INTO muybridge_batches (uid, name, service, out) "
                    "VALUES (%s, %s, %s, %s) ON CONFLICT (name) DO NOTHING RETURNING id",
                    (secrets.token_hex(8), _text(batch), _text(service), out and _text(out)),
                ).fetchone()
                db.execute(rates.BEGIN, (_text(service),))
                if begun is not None:
                    if budget is not None:
                        budgets.begin(db, begun[0], budget)
                    _insert(db, begun[0], 1, _with_needs(items, prices, budget, first=1))
                    if rate is not None:
                        rates.limit(db, _text(service), stored_rate(rate))
        journal = cls(url, batch, lease=lease)
        journal.prices = prices
        journal.is_new = begun is not None
        return journal

    def reopen(self) -> Self:
        """Return another journal of the same batch, with a connection of its own."""
        again = type(self)(self._url, self.batch, lease=self._seconds)
        again._written = self._written  # noqa: SLF001  of this class
        return again

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<PostgresJournal {self.name}>"

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @property
    def name(self) -> str:
        """Where it is, for messages, without a user or a password."""
        return f"{self._place} ({self.batch})"

    @property
    def service(self) -> str:
        """Where the batch's tasks are."""
        return self._service

    # Items

    def add(self, items: Iterable[NewItem], *, after: int, budget: Budget | None = None) -> None:
        """Add items after the last one, which is *after*, all of them or none.

        Args:
            items: The items.
            after: The number of the last item.
            budget: The one that the batch is about to get, or None to keep its own.

        Raises:
            InvalidBatch: An item needs an unknown amount of what the budget limits.
            JournalUnusable: Another process has just added items.
            Unstorable: An item cannot be recorded.
        """
        with telling(self._place), self._db.waiting(), self._db.changing():
            self._lock_batch()
            last = self._value("SELECT coalesce(max(number), 0) FROM muybridge_items "
                               "WHERE batch = %(batch)s")  # fmt: skip
            if last != after:
                raise JournalUnusable(
                    f"{self.name}: another process has just added items. Run the batch again."
                )
            use = budgets.use_of(self._db, self._id)
            limited = None if use is None else budget or use.budget
            needed = _with_needs(items, self.prices, limited, first=after + 1)
            _insert(self._db, self._id, after + 1, needed)

    def entries(self, state: State | None = None) -> Iterator[Entry]:
        """Yield every item, or those in a state, by number, reading a page at a time."""
        last = 0
        which = "" if state is None else "AND state = %(state)s "
        rest = f"{which}AND number > %(last)s ORDER BY number LIMIT {_PAGE}"
        while page := self._select(rest, last=last, state=state):
            yield from page
            last = page[-1].number

    def entry(self, number: int) -> Entry:
        """Return the item *number*.

        Raises:
            LookupError: There is none.
        """
        found = self._select("AND number = %(number)s", number=storable(number, int))
        if not found:
            raise LookupError(f"there is no item {number}")
        return found[0]

    def called(self, item: str) -> list[Entry]:
        """Return the items with this name, or else the one with this number."""
        wanted = _text(item)
        by_name = "AND name = %(item)s AND name <> '' ORDER BY number"
        if found := self._select(by_name, item=wanted):
            return found
        is_number = item.isascii() and item.isdigit() and len(item) < 19  # noqa: PLR2004  of 64 bits
        if not is_number or str(int(item)) != item:
            return []
        return self._select("AND number = %(number)s", number=int(item))

    def label_of_task(self, task_id: str) -> str | None:
        """Return what messages call the item whose task has this id, or None.

        It may be an item of another batch of the same service.
        """
        rows = self._rows(schema.WITH_TASK, task=_text(task_id), service=self._service)
        if not rows:
            return None
        number, name, batch = rows[0]
        label = label_of(number, name)
        return label if batch == self.batch else f"{label} of the batch {batch}"

    def counts(self) -> dict[State, int]:
        """Return how many items are in each state, without empty states."""
        rows = self._rows(schema.COUNTS)
        found = {State(state): count for state, count in rows}
        return {state: found[state] for state in State if state in found}

    def is_recorded(self, path: str, *, besides: int) -> bool:
        """Whether a file *path* is recorded for an item other than *besides*."""
        return bool(
            self._select("AND path = %(path)s AND number <> %(n)s", path=_text(path), n=besides)
        )

    # Workers

    def register(self, worker: str, note: Callable[[int], object] | None = None) -> None:
        """Record that *worker* is at work, give it a lease, and forget workers dead for long.

        From now on, what is written first checks that the last write of the worker is still there.
        """
        facts = {"worker": worker, "host": _text(socket.gethostname()), "pid": os.getpid()}
        self._change(schema.FORGET_WORKERS)
        self._change(schema.REGISTER, **facts, lease=self._seconds)
        self._written.begin(worker, note)

    def renew(self, worker: str) -> None:
        """Extend the lease of *worker*.

        Raises:
            ClaimLost: It was declared dead.
        """
        mark = self._written.mark(worker)
        if not self._change(schema.RENEW, worker=worker, lease=self._seconds, **mark):
            self._check_fresh(mark)
            raise ClaimLost(f"worker {worker} was declared dead: its items are another one's.")
        self._written.confirm(mark)

    def has_written(self, worker: str, writes: int) -> bool:
        """Whether the journal has so many writes of *worker*; an older copy of it has not."""
        return bool(self._rows(schema.HAS_WRITTEN, worker=worker, writes=writes))

    def forget(self, worker: str) -> None:
        """Forget *worker*, which has ended, unless it owns items."""
        self._change(schema.FORGET, worker=worker)

    def bury(self, worker: str, *, ended: bool) -> bool:
        """Declare *worker* dead if it has ended or its lease has expired; tell whether it is."""
        if self._change(schema.BURY, worker=worker, ended=ended):
            return True
        return bool(self._value(schema.IS_BURIED, worker=worker))

    def owners(self) -> list[str]:
        """Return the workers that own items, alive or dead."""
        rows = self._rows(
            "SELECT DISTINCT owner FROM muybridge_items "
            "WHERE batch = %(batch)s AND owner IS NOT NULL"
        )
        return [row[0] for row in rows]

    def owned_by(self, worker: str) -> list[Entry]:
        """Return the items of *worker*."""
        return self._select("AND owner = %(owner)s ORDER BY number", owner=worker)

    # Steps

    def take(self, owner: str, *, creates: bool, besides: Iterable[int] = ()) -> Entry | None:
        """Give the most urgent free item to *owner*, and return it, or None if there is none.

        Results come first, soonest expiry first, then created tasks, then tasks to create. A worker
        that is dead, or whose lease has expired, gets none.

        Args:
            owner: The worker.
            creates: Whether it may be a task to create.
            besides: Numbers of items to skip.
        """
        passed, mark = [*besides], self._written.mark(owner)
        free = [State(row[1]) for row in sorted(self._rows(schema.FREE, besides=passed))]
        for state in free:
            if state is State.QUEUED and not creates:
                continue
            after = State.CLAIMED if state is State.QUEUED else state
            steps = {"owner": owner, "state": state, "after": after, "besides": passed, **mark}
            # In one statement: what is read later may belong to another worker by then.
            with telling(self._place), self._db.change():
                taken = self._entries(f"{schema.TAKE} {_RETURNED}", **steps)
            if taken:
                self._written.confirm(mark)
                return taken[0]
        if free:
            self._check_fresh(mark)
        return None

    def transaction(self) -> AbstractContextManager[object]:
        """Return a context whose steps are all recorded at its end, or none of them."""
        return self._transaction()

    def arm(self, entry: Entry, attempt: int, *, by: str, lasts: float) -> None:
        """Record that the create number *attempt* of a claimed item is about to be sent.

        Raises:
            ClaimLost: It is not claimed, not the worker's, or the worker's lease has expired.
            JournalUnusable: It could not be recorded.
            OverBudget: It does not fit into the budget. Nothing was recorded.
        """
        facts = {"owner": by, "number": entry.number, "attempt": attempt, "lasts": lasts}
        mark = self._written.mark(by)
        with self._counting():
            if not self._change(schema.ARM, **facts, **mark):
                self._check_fresh(mark)
                raise ClaimLost(f"{entry.label} is not this worker's any more. It was not sent.")
            if self._has_budget:
                budgets.reserve(self._db, self._id, entry.number)
        self._written.confirm(mark)

    def move(
        self,
        entry: Entry,
        before: State,
        after: State,
        *,
        by: str | None,
        judged: bool = False,
        shares: bool = False,
        **facts: Any,
    ) -> None:
        """Move an item durably from the state *before* to *after*.

        Args:
            entry: The item.
            before: Its current state.
            after: Its next state, or the same one to set only columns.
            by: The worker that owns it, or None.
            judged: Whether the step was decided by what *entry* says of its create.
            shares: Whether other items may have its task as well.
            **facts: Columns to set.

        Raises:
            ClaimLost: It is not in the state *before*, not the worker's, or not as it was judged.
                `StillSending` if it is to be sent again while its create may be under way.
            TaskTaken: Its task belongs to another item.
            Unstorable: A column cannot be stored. The item is unchanged.
            ValueError: There is no such step, or it is for `arm` to take.
        """
        check_step(before, after)
        if after is State.ARMED and before is not after:
            raise ValueError("only `arm` arms an item: it checks the worker's lease")
        named = names_task(before, after, by)
        names, values = self._assignments(facts, names_task=named, shares=shares)
        step: dict[str, object] = {"number": entry.number, "before": before, "after": after}
        step |= {"by": by, "wall": time.time()}
        statement = schema.MOVE.format(facts=names)
        if judged:
            statement += schema.AS_JUDGED
            step |= {f"judged_{name}": getattr(entry, name) for name in JUDGED}
        releases = before is State.ARMED and after in budgets.RELEASING
        if self._count_change(statement, entry.number, {**step, **values}, releases=releases):
            return
        if (before, after, by) == (State.AMBIGUOUS, State.QUEUED, None):
            self.check_ended(entry)
        raise ClaimLost(f"{entry.label} is not {before} any more: another one moved it.")

    def check_ended(self, entry: Entry) -> None:
        """Check that the last create of an ambiguous item has certainly ended.

        Raises:
            StillSending: It may still be under way.
        """
        left = self._value(schema.STILL_SENDING, number=entry.number, wall=time.time())
        if left is not None:
            raise StillSending(
                f"the request of {entry.label} may still be under way: try again in "
                f"{int(cast('float', left)) + 1} seconds."
            )

    def report_late(
        self, number: int, attempt: int, after: State, *, by: str, **facts: Any
    ) -> bool:
        """Record the response to a create whose item was taken away from its worker.

        Returns:
            Whether the item took it; otherwise it is a stray.

        Raises:
            TaskTaken: Its task belongs to another item. Nothing was recorded.
            ValueError: No response leads to *after*.
        """
        reached, facts = late_step(after, facts)
        names, values = self._assignments(facts, names_task=True)
        step = {"number": number, "attempt": attempt, "after": reached, "by": by}
        if self._count_change(
            schema.REPORT_LATE.format(facts=names),
            number,
            {**step, **values},
            releases=reached in budgets.RELEASING,
        ):
            return True
        kept = dict(zip(("token", "reply_status", "reply"), stray_values(facts), strict=True))
        self._change(schema.KEEP_STRAY, **step, **kept)
        return False

    def strays(self) -> list[Stray]:
        """Return the responses that their items could not take."""
        rows = self._rows(
            f"SELECT {', '.join(_OF_A_STRAY)} FROM muybridge_strays "  # noqa: S608  our own names
            "WHERE batch = %(batch)s ORDER BY number, attempt, worker"
        )
        return [structure(dict(zip(_OF_A_STRAY, row, strict=True)), Stray) for row in rows]

    # Where results go

    def store_in(self, out: str) -> None:
        """Change where the results go. Workers read it when they start."""
        self._change("UPDATE muybridge_batches SET out = %(out)s WHERE id = %(batch)s",
                     out=_text(out))  # fmt: skip
        self.out = out

    # The budget

    def limit_budget(self, budget: Budget) -> None:
        """Change the budget of a batch that was begun with one.

        Raises:
            InvalidBatch: It was begun without one, or what is limited was not counted.
        """
        with self._transaction():
            use = budgets.use_of(self._db, self._id, locks=True)
            check_change(budget, use)
            budgets.limit(self._db, self._id, budget)

    def complete_needs(self, budget: Budget | None) -> None:
        """Fill in what unsent items need, as far as it was unknown and the prices tell it now.

        Args:
            budget: The one that the batch is about to get, or None to keep its own.

        Raises:
            InvalidBatch: An item that is not sent yet needs an unknown amount of what it limits.
        """
        with self._db.waiting():
            self._lock_batch()
        problems: list[BatchProblem] = []
        last = 0
        while rows := self._rows(schema.UNKNOWN_NEEDS, last=last, page=_PAGE):
            for number, state, family, body, written in rows:
                last = number
                item = NewItem(name="", stem="", family=family, body=read_object(body))
                told, needs = needs_of(item, self.prices), read_amounts(written)
                needs = {one: told[one] if it is None else it for one, it in needs.items()}
                values = {"number": number, "before": written, "needs": written_amounts(needs)}
                if values["needs"] != written:
                    self._change(schema.COMPLETE_NEEDS, **values)
                if budget is not None and state != State.REFUSED:
                    problems += unknown_amounts(budget, number, needs)
        if problems:
            raise InvalidBatch(problems)

    def budget_use(self) -> BudgetUse | None:
        """Return how far the budget is used up, or None if there is none."""
        with telling(self._place):
            return budgets.use_of(self._db, self._id)

    # The request rate

    def limit_rate(self, rate: float) -> None:
        """Limit the requests of everybody at this service, or not, if *rate* is infinite.

        Raises:
            ValueError: It is not above 0.
        """
        check_rate(rate)
        with telling(self._place):
            rates.limit(self._db, self._service, stored_rate(rate))

    def acquire_permits(self, wanted: int) -> Permits:
        """Return permits for requests, which nobody else gets."""
        with telling(self._place):
            return rates.acquire(self._db, self._service, wanted)

    def throttle(self, seconds: float) -> None:
        """Give nobody permits for *seconds*, because the service has asked to slow down."""
        with telling(self._place):
            rates.throttle(self._db, self._service, seconds)

    # The database

    def _lock_batch(self) -> None:
        """Let other submissions wait until this transaction ends.

        Each begins with it. Otherwise, one that had changed items and one that had changed the
        batch could wait for each other.
        """
        self._rows("SELECT 1 FROM muybridge_batches WHERE id = %(batch)s FOR UPDATE")

    def _found(self, db: Connection) -> tuple[int, str, str, str | None, int]:
        """Return what is known of the batch.

        Returns:
            Its number, its id, its service, where its results go, and the number of the first batch
            at this service.
        """
        found: tuple[Any, ...] | None = None
        if tables.are_there(db, self._place):
            found = db.execute(
                "SELECT id, uid, service, out, "
                "(SELECT min(id) FROM muybridge_batches WHERE service = batches.service) "
                "FROM muybridge_batches AS batches WHERE name = %s",
                (_text(self.batch),),
            ).fetchone()
        if found is None:
            raise JournalMissing(f"There is no batch {self.batch!r} in {self._place}.")
        return found[0], found[1], found[2], found[3], found[4]

    def _rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        with telling(self._place):
            # A prepared plan serves any state, so it could not use the index of the free items.
            done = self._db.execute(
                statement.encode(), {"batch": self._id, **values}, prepare=False
            )
            rows: list[tuple[Any, ...]] = done.fetchall()
            return rows

    def _value(self, statement: str, **values: object) -> object:
        rows = self._rows(statement, **values)
        return rows[0][0] if rows else None

    def _change(self, statement: str, **values: object) -> bool:
        """Execute a statement durably, and return whether it changed a row."""
        with telling(self._place), telling_taken("muybridge_tasks"), self._db.change():
            done = self._steps.execute(statement.encode(), {"batch": self._id, **values})
            return int(done.rowcount) == 1

    def _count_change(
        self, statement: str, number: int, values: Mapping[str, object], *, releases: bool
    ) -> bool:
        """Take a step, and release what the item has reserved if that is what it means.

        Raises:
            JournalOutdated: It lacks what was written before.
        """
        mark = self._written.mark_of(values["by"])
        with self._transaction() if releases and self._has_budget else nullcontext():
            changed = self._change(statement, **values, **mark)
            if changed and releases and self._has_budget:
                budgets.release(self._db, self._id, number)
        if changed:
            self._written.confirm(mark)
        else:
            self._check_fresh(mark)
        return changed

    def _check_fresh(self, mark: Mapping[str, object]) -> None:
        """Check that the journal has what was written before.

        Raises:
            JournalOutdated: It is an older copy of itself.
        """
        known = {"worker": mark["me"], "writes": mark["writes"]}
        if mark["me"] is not None and not self._rows(schema.HAS_WRITTEN, **known):
            raise JournalOutdated(OUTDATED.format(name=self.name))

    def _counting(self) -> AbstractContextManager[None]:
        """Return a context that is a transaction, if the batch has a budget."""
        return self._transaction() if self._has_budget else nullcontext()

    @contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        with telling(self._place), self._written.whole(), self._db.changing():
            yield

    def _select(self, rest: str, **values: object) -> list[Entry]:
        return self._entries(f"{_SELECT} {rest}", **values)

    def _entries(self, statement: str, **values: object) -> list[Entry]:
        rows = self._rows(statement, **values)
        try:
            return [structure(dict(zip(_COLUMNS, row, strict=True)), Entry) for row in rows]
        except InvalidJson as error:
            raise JournalUnusable(f"{self.name} is damaged ({error}). {DAMAGED}") from error

    def _assignments(
        self, facts: Mapping[str, Any], *, names_task: bool, shares: bool = False
    ) -> tuple[str, dict[str, object]]:
        """Return *facts* as the end of a SET clause, and its values."""
        values = {name: _stored(value) for name, value in storable_facts(facts).items()}
        if "token" in values:
            task = task_id_in(facts["token"])
            values["task"] = None if task is None else _text(task)
            if names_task:
                values["service"] = None if shares else self._first
        return "".join(f", {name} = %({name})s" for name in values), values


def _with_needs(
    items: Iterable[NewItem], prices: PriceList | None, budget: Budget | None, *, first: int
) -> Iterator[tuple[NewItem, str | None]]:
    """Yield each item with what its create consumes, or None if nobody counts that.

    Raises:
        InvalidBatch: At the end, if some need an unknown amount of what the budget limits.
    """
    problems: list[BatchProblem] = []
    for number, item in enumerate(items, start=first):
        if budget is None:
            yield item, None
            continue
        needs = needs_of(item, prices)
        problems += unknown_amounts(budget, number, needs)
        yield item, written_amounts(needs)
    if problems:
        raise InvalidBatch(problems)


def _insert(
    db: Connection, batch: int, first: int, items: Iterable[tuple[NewItem, str | None]]
) -> None:
    copying = f"COPY muybridge_items (batch, number, needs, {', '.join(_GIVEN)}) FROM STDIN"
    with db.cursor() as cursor, cursor.copy(copying.encode()) as copy:
        for number, (item, needs) in enumerate(items, start=first):
            copy.write_row((batch, number, needs, *map(_stored, storable_texts(item))))
    # Without statistics, a step may read the whole batch to find one item. SKIP_LOCKED, because the
    # database collects them itself when it cleans up, and that may take hours.
    db.execute("ANALYZE (SKIP_LOCKED) muybridge_items")


def _stored(value: object) -> object:
    """Return *value* as PostgreSQL stores it: a text cannot contain NUL."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


def _text(value: str) -> str:
    return str(_stored(storable(value, str)))
