"""`Journal`: what a batch needs of the place where its progress is kept.

    queued -> claimed -> armed -> submitted -> completed <-> downloaded
                           |          '------> failed
                           |-> refused
                           '-> ambiguous     (a person decides: adopt, abandon or resubmit)

A person may also abandon what is queued, and resubmit what was refused.

The journal is the only truth about a batch. Workers keep nothing that they could not read from it
again, except a response that it could not take, which waits in a file on the worker's disk. The
scheduler, the recovery and the decisions of people know this port alone. `SqliteJournal` implements
it for one machine, and `muybridge.testing.journal_conformance` checks an implementation.

Money depends on six rules, which every implementation keeps:

**Each step is durable, conditional and whole.** When a call returns, what it wrote survives a power
cut. A step names the state that the item must be in and the worker that must own it, and changes
nothing if either is different. So of two who try the same step, one fails with `ClaimLost`.

**`arm` comes before the first byte of a create, and counts.** Item and attempt together name one
create for ever: an armed item may have been accepted, so nobody but a person sends it again.

**A dead worker does nothing more.** A worker is one incarnation of a process, under an id that is
drawn anew at each start, so the id is a fencing token. Once `bury` has declared it dead, it can
neither take nor arm, even if it turns out to be alive: it may have been paused, or cut off.

**A late response is news, not an error.** A worker that is declared dead while its create is on its
way may still receive the response. `report_late` records it: on the item, if nothing has happened
to it since, or else as a stray. A paid id is lost in neither case.

**A judgement holds for what was judged.** A step that was decided by what the item's response says,
or by its absence, compares it once more (`judged`), because a response may arrive between reading
and writing. And a task belongs to one item, unless items share it on purpose: the journal
checks that in the step that sets it, because two may try at the same time.

**An older copy of itself takes nothing.** A backup that is put back does not know what was paid for
since it was made. A worker counts its writes, in a row of its own that nobody else writes, and each
write fails with `JournalOutdated` if the row has fewer than were confirmed. Nothing else shows it:
numbers of rows are handed out again, and others may have written since.

Beside the items, a journal keeps the request rate that everybody shares who uses it. Permits are
acquired in portions, so that most requests cost no write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import attrs

from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.journal_errors import (
    ClaimLost,
    OverBudget,
    StillSending,
    TaskTaken,
    UnknownAmount,
    Unstorable,
)
from muybridge.batch.limits.rate import Permits
from muybridge_protocol.records.candidates import find_id

if TYPE_CHECKING:
    from muybridge_protocol.purchases import Budget, BudgetUse

__all__ = [
    "ClaimLost",
    "Journal",
    "NewItem",
    "OverBudget",
    "Permits",
    "SharedJournal",
    "StillSending",
    "Stray",
    "TaskTaken",
    "UnknownAmount",
    "Unstorable",
]


@attrs.frozen(kw_only=True)
class Stray:
    """A response that arrived when its item could not take it any more.

    Args:
        number: The item.
        attempt: Which of the item's creates it belongs to.
        worker: The worker that received it.
        state: What the item would have become.
        token: The task's token, if its id is known, or None.
        reply_status: The status of the response, or None if it was processed.
        reply: The body of the response, or as much as had arrived, or None if it was processed.
    """

    number: int
    attempt: int
    worker: str
    state: State = attrs.field(converter=State)
    token: str | None
    reply_status: int | None
    reply: bytes | None = attrs.field(repr=False)

    @property
    def task_id(self) -> str | None:
        """The id that the response names, or None."""
        return find_id((self.reply or b"") if self.token is None else self.token.encode())


class Journal(Protocol):
    """The journal of one batch, open.

    Every method may raise `JournalUnusable`: it cannot be read or written. Nothing more is sent.
    Every method that writes may raise `JournalOutdated`, which is one.
    """

    @property
    def name(self) -> str:
        """Where it is, for messages, without a password."""
        ...

    @property
    def service(self) -> str:
        """Where the batch's tasks are."""
        ...

    @property
    def lease(self) -> float | None:
        """Seconds for which a registration holds, or None if it holds while its process lives."""
        ...

    @property
    def send_within(self) -> float:
        """Seconds after arming within which a create must begin; a later one is not sent.

        A worker that was paused for longer may have been declared dead in the meantime.
        """
        ...

    def close(self) -> None:
        """Close it. Nothing is read or written afterwards."""
        ...

    # Items

    def add(self, items: Iterable[NewItem], *, after: int) -> None:
        """Add all *items* after the last one, which is *after*, or none of them.

        Raises:
            JournalUnusable: Another process has just added items.
            Unstorable: An item cannot be recorded.
        """
        ...

    def entries(self, state: State | None = None) -> Iterator[Entry]:
        """Yield every item, or those in a state, by number, reading a page at a time."""
        ...

    def entry(self, number: int) -> Entry:
        """Return the item *number*.

        Raises:
            LookupError: There is none.
        """
        ...

    def called(self, item: str) -> list[Entry]:
        """Return the items with this name, or else the one with this number."""
        ...

    def label_of_task(self, task_id: str) -> str | None:
        """Return what messages call the item whose task has this id, or None.

        It may be an item of another batch that the journal knows, at the same service.
        """
        ...

    def counts(self) -> dict[State, int]:
        """Return how many items are in each state, without empty states."""
        ...

    def is_recorded(self, path: str, *, besides: int) -> bool:
        """Whether a file *path* is recorded for an item other than *besides*."""
        ...

    # Workers

    def register(self, worker: str, note: Callable[[int], object] | None = None) -> None:
        """Record that *worker* is at work. Its id was never used before.

        From now on, whatever is written through this journal first checks that the last write of
        the worker is still there, in the same transaction.

        Args:
            worker: The worker.
            note: Called with the number of its writes after each of them.
        """
        ...

    def has_written(self, worker: str, writes: int) -> bool:
        """Whether the journal has so many writes of *worker*; an older copy of it has not."""
        ...

    def forget(self, worker: str) -> None:
        """Forget *worker*, which has ended, unless it owns items."""
        ...

    def renew(self, worker: str) -> None:
        """Record that *worker* is still at work.

        Raises:
            ClaimLost: It was declared dead. It must stop; responses that it still awaits count.
        """
        ...

    def bury(self, worker: str, *, ended: bool) -> bool:
        """Declare *worker* dead if it is, and return whether it is.

        Args:
            worker: The worker.
            ended: Whether its process is known to have ended.
        """
        ...

    def owners(self) -> list[str]:
        """Return the workers that own items, alive or dead."""
        ...

    def owned_by(self, worker: str) -> list[Entry]:
        """Return the items of *worker*."""
        ...

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
        ...

    def arm(self, entry: Entry, attempt: int, *, by: str, lasts: float) -> None:
        """Record that the create number *attempt* of a claimed item is about to be sent.

        Args:
            entry: The item.
            attempt: Which of the item's creates it is, from 1.
            by: The worker that owns it.
            lasts: Seconds after which the create has certainly ended.

        Raises:
            ClaimLost: It is not claimed, not the worker's, or the worker is dead or its lease has
                expired. It must not be sent.
            JournalUnusable: It could not be recorded. It must not be sent.
            OverBudget: It does not fit into the budget of the batch. It must not be sent.
                `UnknownAmount` if that is because nobody knows how much it needs.
        """
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Return a context whose steps are all recorded at its end, or none of them."""
        ...

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
        """Move an item from the state *before* to *after*.

        Args:
            entry: The item.
            before: Its current state.
            after: Its next state, or the same one to set only columns.
            by: The worker that owns it, or None.
            judged: Whether the step was decided by what *entry* says of its create. Then nothing
                changes if that has changed: see `JUDGED` in `muybridge.batch.journal_entries`.
            shares: Whether other items may have its task as well, if *facts* set a token.
            **facts: Columns to set.

        Raises:
            ClaimLost: It is not in the state *before*, not the worker's, or not as it was judged.
            TaskTaken: *facts* set a token, and its task belongs to another item, here or in another
                batch that the journal knows, at the same service.
            Unstorable: A column cannot be stored. The item is unchanged.
            ValueError: There is no such step.
        """
        ...

    def check_ended(self, entry: Entry) -> None:
        """Check that the last create of an item has certainly ended, so that it may be sent again.

        Raises:
            StillSending: It may still be under way.
        """
        ...

    def report_late(
        self, number: int, attempt: int, after: State, *, by: str, **facts: Any
    ) -> bool:
        """Record the response to a create whose item was taken away from its worker.

        If the item is ambiguous because of this very create, it goes to *after* without an owner,
        or gets *facts* alone if *after* is ambiguous or armed. Else the response is kept as a
        stray.

        Args:
            number: The item.
            attempt: Which of the item's creates it belongs to.
            after: What the item becomes because of it.
            by: The worker that armed it.
            **facts: Columns to set.

        Returns:
            Whether the item took it.

        Raises:
            TaskTaken: *facts* set a token whose task belongs to another item. Nothing was recorded.
        """
        ...

    def strays(self) -> list[Stray]:
        """Return the responses that their items could not take."""
        ...

    # The request rate

    def limit_rate(self, rate: float) -> None:
        """Limit how many requests a second everybody sends together who shares this limit.

        Args:
            rate: Requests a second, or infinity for no limit.

        Raises:
            ValueError: It is not above 0.
        """
        ...

    def acquire_permits(self, wanted: int) -> Permits:
        """Return permits for requests, which nobody else gets.

        Args:
            wanted: How many requests the caller wants to send. It may get fewer, but at least one.
        """
        ...

    def throttle(self, seconds: float) -> None:
        """Give nobody permits for *seconds*, because the service has asked to slow down."""
        ...


class SharedJournal(Journal, Protocol):
    """A journal that workers on several machines use at the same time."""

    id: str
    """Distinguishes the batch from every other one, in any database."""

    def reopen(self) -> SharedJournal:
        """Return another journal of the same batch, which another thread may use."""
        ...

    def limit_budget(self, budget: Budget) -> None:
        """Change the budget of a batch that was begun with one.

        `arm` reserves what an item needs in the transaction that arms it, so that no limit is ever
        exceeded. The step that takes an armed item to claimed, queued or refused releases it, and
        so does a late response with that outcome. An ambiguous item stays spent, even if a person
        has it sent again.

        Raises:
            InvalidBatch: It was begun without one, or what is limited was not counted.
        """
        ...

    @property
    def out(self) -> str | None:
        """Where the results of the batch go, or None if each worker is told."""
        ...

    def store_in(self, out: str) -> None:
        """Change where the results of the batch go. Workers read it when they start."""
        ...

    def budget_use(self) -> BudgetUse | None:
        """Return how far the budget of the batch is used up, or None if it has none."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
