"""The ledger: every paid request, before its first byte is sent and after its response.

A budget cannot be exceeded, because one transaction does it all: it sums up what is spent, compares
that with each budget, and writes the entry that reserves the amount. Whoever comes next, from
whichever thread or process, sees that entry. It is on the disk before the first byte of the
request, so a process that dies afterwards leaves it behind, and it stays spent. The amount is
released only if the request certainly did nothing.

A request is paid for at most once under a name for the same reason: the transaction that arms it
finds whoever has the name already.

This module knows neither SQL nor clocks nor event loops. A `Store` keeps the entries, and the
caller says what time it is.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from itertools import combinations
from typing import Any

import attrs

from muybridge.ledger.entries import Entry, Purchase, State
from muybridge.ledger.errors import (
    CannotResolve,
    EntryUnstorable,
    Exceeded,
    LedgerUnusable,
    NameHeld,
    OnceTaken,
    TaskTaken,
)
from muybridge.ledger.store import Rows, Store
from muybridge_protocol.errors import InvalidToken
from muybridge_protocol.identifiers import shown_id
from muybridge_protocol.purchases import Amounts, Budget, Measure
from muybridge_protocol.records.tasks import Result, Task, as_task

UNKNOWN_END = (
    "the process was stopped while the request was on its way: it may have been accepted and "
    "charged"
)
UNSTORABLE = "the rest of its outcome cannot be stored"
ABANDONED = "it may have been accepted; a person left it as it is, so it counts as spent"
NAMES_ANOTHER = (
    "was already used for another request, and nothing was sent. Use another name for this "
    "request, or send the same request as before."
)


class Ledger:
    """The paid requests of everyone who uses one store.

    Args:
        store: Keeps the entries.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._late: dict[_Conclusion, None] = {}

    @property
    def place(self) -> str:
        """Where it is, as `open_ledger` takes it."""
        return self._store.place

    def account(self, digest: Callable[[bytes], str]) -> str:
        """Return what *digest* makes of this ledger's salt."""
        return digest(self._store.salt)

    def arm(self, purchase: Purchase, budgets: Sequence[Budget], wall: float) -> None:
        """Reserve what *purchase* consumes, and record that it is about to be sent.

        Args:
            purchase: One attempt to send a paid request, under a key that was never used.
            budgets: What must not be exceeded.
            wall: Unix seconds.

        Raises:
            Exceeded: It does not fit into a budget.
            NameHeld: Another entry has its name.
            LedgerUnusable: It could not be recorded. The request must not be sent.
        """
        owner = self._store.owner
        facts = {field.name: getattr(purchase, field.name) for field in attrs.fields(Purchase)}
        entry = Entry(**facts, time=wall, state=State.ARMED, owner=owner)
        is_written = False
        try:
            with self._writing() as rows:
                self._check_permitted(rows, purchase, budgets, wall)
                is_written = True
                rows.put(entry)
        except BaseException:
            # A commit that reports an error may be on the disk all the same. Nobody sends now.
            if is_written:
                self._late[_Conclusion(entry.key, State.RELEASED)] = None
            raise

    def conclude(
        self,
        key: str,
        state: State,
        *,
        token: str | None = None,
        candidate: str | None = None,
        reason: str | None = None,
        cost: Decimal | None = None,
    ) -> Entry | None:
        """Record the outcome of a request that was armed.

        It is news even if somebody believed this process dead meanwhile, or a person released the
        entry: what was accepted is spent. If it cannot be recorded, the next use of this object
        records it. An entry is one attempt, so its outcome is right whenever it is recorded.

        A value that the store cannot take is left out, and the rest is recorded: the cost becomes
        unknown, and an accepted request whose token cannot be stored is ambiguous.

        Args:
            key: Identifies its entry.
            state: Its next state.
            token: The task's token, or None.
            candidate: What looks like an id in an ambiguous response, or None.
            reason: Why it is in this state, on one line, or None.
            cost: What it has cost, or None if nothing more is known about that.

        Returns:
            The entry as it is then, or None if there is none. It is ambiguous if another entry has
            its task.

        Raises:
            LedgerUnusable: It could not be recorded. The entry stays armed, and so counts as spent.
        """
        self._late[_Conclusion(key, state, token, candidate, reason, cost)] = None
        return self.find(key)

    def spent(self, budget: Budget, wall: float) -> Amounts:
        """Return what counts as spent in the period of *budget* that contains *wall*.

        Nothing is written: a ledger that does not exist yet is empty.

        Raises:
            LedgerUnusable: The ledger cannot be read.
        """
        return self._store.spent(budget.since(wall))

    def find(self, key: str) -> Entry | None:
        """Return the entry *key*, or None."""
        with self._writing() as rows:
            return rows.find(key)

    def named(self, account: str, once: str, digest: str) -> Entry | None:
        """Return the entry that has the name *once*, or None if the name is free.

        Args:
            account: Whose it is.
            once: The name.
            digest: The digest of the request.

        Raises:
            OnceTaken: It belongs to another request.
            LedgerUnusable: The ledger cannot be read or written.
        """
        mine = self._store.owner
        with self._writing() as rows:
            entry = rows.named(account, once)
            if entry is None:
                return None
            if entry.digest != digest:
                raise OnceTaken(f"The name given to create_once {NAMES_ANOTHER}")
            if entry.owner != mine and self._is_left_behind(entry):
                entry = _ambiguous(entry)
                rows.put(entry)
            return entry

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, from the oldest on. Those that dead processes left are ambiguous."""
        self._take_over()
        return self._store.entries()

    def adopt(self, key: str, task: Task | Result | str) -> Entry:
        """Declare that an ambiguous request was accepted as *task*. It stays spent.

        You can name another task later, in case the first was wrong.

        Raises:
            CannotResolve: The entry is not ambiguous, or another one has this task (`TaskTaken`).
        """
        return self._decide(adoption(key, task))

    def abandon(self, key: str) -> Entry:
        """Leave an ambiguous request as it is. It stays spent, and nobody is asked about it again.

        Raises:
            CannotResolve: The entry is not ambiguous.
        """
        return self._decide(abandonment(key))

    def release(self, key: str) -> Entry:
        """Declare that an ambiguous request was not accepted. What it reserved is free again.

        Raises:
            CannotResolve: The entry is not ambiguous.
        """
        return self._decide(Decision(key, lambda entry: attrs.evolve(entry, state=State.RELEASED)))

    def resubmit(self, key: str) -> Entry:
        """Allow the request of an ambiguous entry to be sent again. The entry stays spent.

        Raises:
            CannotResolve: The entry is not ambiguous.
        """
        return self._decide(resubmission(key))

    def decide_all(self, decisions: Iterable[Decision]) -> None:
        """Record decisions, all of them or none, except about entries that need none any more.

        Raises:
            TaskTaken: Another entry has the task of one of them. Nothing was decided.
            LedgerUnusable: The ledger cannot be used. Nothing was decided.
        """
        self._take_over()
        with self._writing() as rows:
            for decision in decisions:
                try:
                    _decided(rows, decision)
                except TaskTaken:
                    raise
                except CannotResolve:
                    pass

    def _decide(self, decision: Decision) -> Entry:
        self._take_over()
        with self._writing() as rows:
            return _decided(rows, decision)

    def _check_permitted(
        self, rows: Rows, purchase: Purchase, budgets: Sequence[Budget], wall: float
    ) -> None:
        if rows.find(purchase.key) is not None:
            raise LedgerUnusable(
                f"{self.place} already has an entry {purchase.key}. Nothing is sent."
            )
        if purchase.once is not None and rows.named(purchase.account, purchase.once):
            raise NameHeld
        for budget in budgets:
            spent = rows.spent(budget.since(wall))
            exceeded = budget.exceeded_by(purchase.amounts, spent)
            if exceeded is not None:
                raise Exceeded(exceeded)

    def _take_over(self) -> None:
        """Make the armed entries of dead processes ambiguous."""
        if self._late:
            self._record_late()
        armed = [*self._store.entries(State.ARMED)]
        if not armed:  # perhaps there is no store: nobody is to create one who only looks
            return
        mine = self._store.owner
        left = [entry.key for entry in armed if entry.owner != mine and self._is_left_behind(entry)]
        for key in left:
            with self._store.writing() as rows:
                entry = rows.find(key)
                if entry is not None and entry.state is State.ARMED:
                    rows.put(_ambiguous(entry))

    def _record_late(self) -> None:
        """Record every conclusion that is not recorded yet."""
        with self._writing():
            pass

    @contextmanager
    def _writing(self) -> Generator[Rows]:
        """Begin a transaction, and first record in it what could not be recorded before."""
        with self._store.writing() as rows:
            late = tuple(self._late)
            for conclusion in late:
                entry = rows.find(conclusion.key)
                if entry is not None:
                    _record(rows, conclusion, entry)
            yield rows
        for conclusion in late:
            self._late.pop(conclusion, None)

    def _is_left_behind(self, entry: Entry) -> bool:
        return entry.state is State.ARMED and not self._store.lives(entry.owner)


@attrs.frozen
class Decision:
    """What a person decides about an ambiguous entry.

    Args:
        key: Identifies the entry.
        change: Returns the entry as it is then.
        also: Whether it applies to an entry that is not ambiguous.
    """

    key: str
    change: Callable[[Entry], Entry]
    also: Callable[[Entry], bool] = lambda _: False


def adoption(key: str, task: Task | Result | str) -> Decision:
    """Return the decision that the request of the entry *key* was accepted as *task*."""
    known = as_task(task)

    def adopted(entry: Entry) -> Entry:
        found = attrs.evolve(
            known,
            family=known.family or entry.family or None,
            requested_model=known.requested_model or entry.model or None,
        )
        token = found.to_token()
        accepted = attrs.evolve(entry, state=State.ACCEPTED, token=token, reason=None)
        return attrs.evolve(accepted, candidate=found.id)

    return Decision(key, adopted, _was_adopted)


def abandonment(key: str) -> Decision:
    """Return the decision to leave the request of the entry *key* as it is."""
    return Decision(key, lambda entry: attrs.evolve(entry, state=State.ACCEPTED, reason=ABANDONED))


def resubmission(key: str) -> Decision:
    """Return the decision that the request of the entry *key* may be sent again."""
    return Decision(key, lambda entry: attrs.evolve(entry, state=State.RESUBMITTED))


def _decided(rows: Rows, decision: Decision) -> Entry:
    """Record *decision*, and return its entry."""
    entry = rows.find(decision.key)
    if entry is None:
        raise CannotResolve(f"the ledger has no entry {decision.key!r}")
    if entry.state is not State.AMBIGUOUS and not decision.also(entry):
        raise CannotResolve(
            f"entry {decision.key} is {entry.state}: there is nothing to decide about it"
        )
    decided = decision.change(entry)
    other = rows.sharing(decided)
    if other is not None and decided.task is not None:
        task = shown_id(decided.task.id)
        raise TaskTaken(f"entry {_called(other)} already has task {task}")
    rows.put(decided)
    return decided


@attrs.frozen(eq=False)
class _Conclusion:
    """The outcome of one attempt to send a request.

    Args:
        key: Identifies its entry.
        state: The next state of its entry.
        token: The task's token, or None.
        candidate: What looks like an id in an ambiguous response, or None.
        reason: Why it is in this state, on one line, or None.
        cost: What the request has cost, or None if nothing more is known about that.
    """

    key: str
    state: State
    token: str | None = None
    candidate: str | None = None
    reason: str | None = None
    cost: Decimal | None = None

    def after(self, entry: Entry) -> Entry:
        """Return *entry* with this outcome, unless a person has decided otherwise about it.

        Even then the id of a task is recorded, if the person has named none.
        """
        if self.cost is not None:
            entry = attrs.evolve(entry, amounts={**entry.amounts, Measure.COST: self.cost})
        known = attrs.evolve(
            entry,
            state=self.state,
            token=self.token,
            candidate=self.candidate,
            reason=self.reason,
        )
        if entry.state in (State.ARMED, State.AMBIGUOUS):
            return known
        if entry.state is State.RELEASED and self.state is State.ACCEPTED:
            return attrs.evolve(known, once=None)  # another request may have the name
        return attrs.evolve(entry, token=self.token if entry.token is None else entry.token)


def _record(rows: Rows, conclusion: _Conclusion, entry: Entry) -> None:
    """Record *conclusion* about *entry*, as far as the store can take it.

    One that stayed unrecorded would make every later transaction of this process fail.
    """
    for known in _ever_less(conclusion.after(entry), entry):
        with suppress(EntryUnstorable, InvalidToken):
            rows.put(_with_its_own_task(rows, known))
            return


def _ever_less(known: Entry, before: Entry) -> Iterator[Entry]:
    """Yield *known*, and then without ever more of the values that it has and *before* has not."""
    losses: list[dict[str, Any]] = [{"reason": UNSTORABLE}, {"candidate": None}]
    if known.amounts != before.amounts:
        # Not what was reserved: a budget must not count less than the request has cost.
        losses.append({"amounts": {**known.amounts, Measure.COST: None}})
    if known.token != before.token:
        state = State.AMBIGUOUS if known.state is State.ACCEPTED else known.state
        losses.append({"token": before.token, "state": state, "reason": UNSTORABLE})
    for count in range(len(losses) + 1):
        for lost in combinations(losses, count):
            yield attrs.evolve(known, **ChainMap(*lost))


def _with_its_own_task(rows: Rows, entry: Entry) -> Entry:
    """Return *entry*, ambiguous if its task is that of another entry.

    A service that gives one id to two requests has perhaps lost one of them, or charged once.
    """
    task = entry.task  # before the store reads its token
    other = rows.sharing(entry)
    if other is None or task is None:
        return entry
    return attrs.evolve(
        entry,
        state=State.AMBIGUOUS if entry.state is State.ACCEPTED else entry.state,
        token=None,
        candidate=task.id,
        reason=f"the service gave it task {shown_id(task.id)}, which entry {_called(other)} has",
    )


def _called(entry: Entry) -> str:
    return entry.key if entry.name is None else f"{entry.key} ({entry.name})"


def _ambiguous(entry: Entry) -> Entry:
    return attrs.evolve(entry, state=State.AMBIGUOUS, reason=UNKNOWN_END)


def _was_adopted(entry: Entry) -> bool:
    """Whether a person named the task. A task that the service named cannot be changed."""
    if entry.state is not State.ACCEPTED or entry.candidate is None:
        return False
    return entry.task is not None and entry.task.id == entry.candidate
