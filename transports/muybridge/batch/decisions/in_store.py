"""One decision about an ambiguous create, for the two places that have it recorded.

A batch's item is in the journal, and its purchase is in the store of the client that sent it, if it
has one. The item names the purchase. A decision about the item is recorded in the store first: if
the process dies in between, the item is still ambiguous, and deciding again is harmless. A decision
about the purchase reaches the item when the batch is run again, and so does a task that the store
has recorded and the journal could not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, TaskTaken
from muybridge.batch.port import Journal
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.purchases import Choosing, Purchase, Store

NO_REPLY: Mapping[str, Any] = {"reply_status": None, "reply": None, "reason": None}
"""What is left of a response that a decision has replaced."""


def settle(decisions: Iterable[tuple[Entry, str, Task | None]]) -> None:
    """Record decisions about items in the store that has their purchases, unless it knows better.

    Those in one store are recorded together, or none of them: a part of a table that was refused
    would be followed by the next run.

    Args:
        decisions: The items, each with what was decided, and the task to adopt or None.

    Raises:
        StoreUnusable: The store cannot be read or written.
        StillSending: Somebody may still be sending the request of an item.
        TaskTaken: The task that a decision names belongs to another purchase.
    """
    by_place: dict[str, list[Choosing]] = {}
    for entry, choice, task in decisions:
        if entry.store is not None and entry.purchase is not None:
            from muybridge.purchases import Choice, Choosing

            made = Choosing(entry.purchase, Choice(choice), task)
            by_place.setdefault(entry.store, []).append(made)
    for place, choices in by_place.items():
        with ExitStack() as stack:
            store = _store_at(place, stack)
            if store is not None:
                _decide_all(store, choices)


def _decide_all(store: Store, choices: Sequence[Choosing]) -> None:
    """Record decisions, all or none, except about purchases that need none any more."""
    from muybridge import purchases

    try:
        store.decide_all(choices)
    except purchases.NoneDecided as error:
        for reason in error.reasons.values():
            if isinstance(reason, purchases.StillSending | purchases.TaskTaken):
                raise reason from None
        # A process that died earlier has left no purchase, and a settled one needs no decision.
        _decide_all(store, [one for n, one in enumerate(choices) if n not in error.reasons])


def apply_decisions(journal: Journal) -> None:
    """Move the ambiguous items whose purchases in the store are decided."""
    if not journal.counts().get(State.AMBIGUOUS):
        return
    stores: dict[str | None, Store | None] = {}
    with ExitStack() as stack:
        for entry in journal.entries(State.AMBIGUOUS):
            if entry.store not in stores:
                stores[entry.store] = _store_at(entry.store, stack, is_needed=False)
            _apply(journal, entry, stores[entry.store])


def _apply(journal: Journal, entry: Entry, store: Store | None) -> None:
    if store is None or entry.purchase is None:
        return
    from muybridge.purchases import StoreUnusable

    step = None
    # If it cannot be read, the item waits for a decision of its own.
    with suppress(StoreUnusable, LookupError):
        step = _step(store.find(entry.purchase))
    if step is not None:
        after, facts = step
        # Somebody has just decided about the item, or another one has that task.
        with suppress(ClaimLost, TaskTaken):
            journal.move(entry, State.AMBIGUOUS, after, by=None, judged=True, **facts)


def _step(decided: Purchase) -> tuple[State, dict[str, Any]] | None:
    """Return the next state of an item whose purchase is *decided*, or None if that is not."""
    from muybridge.purchases import State as Bought

    match decided.state:
        case Bought.ACCEPTED if decided.token is not None:
            began = Task.from_token(decided.token).began_at or decided.armed_at
            facts = attributes(decided, "token", "candidate")
            return State.SUBMITTED, {**NO_REPLY, **facts, "began": began}
        case Bought.ABANDONED:
            return State.ABANDONED, {}
        case Bought.RELEASED | Bought.RESUBMITTED:
            return State.QUEUED, {**NO_REPLY, "candidate": None}
        case _:
            return None


def _store_at(place: str | None, stack: ExitStack, *, is_needed: bool = True) -> Store | None:
    """Return the store at *place*, or None if there is none.

    A place says neither who uses a database nor the password. If it is where the environment has
    the store, that says it.

    Args:
        place: The store's place.
        stack: Closes it.
        is_needed: Whether to raise if it cannot be read.
    """
    if place is None:
        return None
    from muybridge.purchases import StoreUnusable, open_store

    try:
        store = stack.enter_context(open_store())
        if store.place != place:
            store = stack.enter_context(open_store(place))
        return store if store.database.exists() else None
    except StoreUnusable:
        if is_needed:
            raise
        return None
