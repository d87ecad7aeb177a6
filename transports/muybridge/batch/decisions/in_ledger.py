"""One decision about an ambiguous create, for the two places that have it recorded.

A batch's item is in the journal, and its create is in the ledger of the client that sent it, if it
has one. The item names the entry. A decision about the item is recorded in the ledger first: if the
process dies in between, the item is still ambiguous, and deciding again is harmless. A decision
about the entry reaches the item when the batch is run again, and so does a task that the ledger has
recorded and the journal could not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, TaskTaken
from muybridge.batch.port import Journal

if TYPE_CHECKING:
    from muybridge.ledger import Entry as Purchased
    from muybridge.ledger import Ledger
    from muybridge.ledger.ledger import Decision

NO_REPLY: Mapping[str, Any] = {"reply_status": None, "reply": None, "reason": None}
"""What is left of a response that a decision has replaced."""


def settle(decisions: Iterable[tuple[Entry, Callable[[str], Decision]]]) -> None:
    """Record decisions about items in the ledger that has their creates, unless it knows better.

    Those in one ledger are recorded together, or none of them: a part of a table that was refused
    would be followed by the next run.

    Args:
        decisions: The items, each with its decision, given the key of its entry in the ledger.

    Raises:
        LedgerUnusable: The ledger cannot be read or written.
        TaskTaken: The task that a decision names belongs to another entry.
    """
    by_ledger: dict[str, list[Decision]] = {}
    for entry, decide in decisions:
        if entry.ledger is not None and entry.purchase is not None:
            by_ledger.setdefault(entry.ledger, []).append(decide(entry.purchase))
    for path, made in by_ledger.items():
        ledger = _ledger_at(path)
        # A process that died earlier has left no entry there, and a finished one needs no decision.
        if ledger is None:
            continue
        from muybridge.ledger import errors

        try:
            ledger.decide_all(made)
        except errors.TaskTaken as error:
            raise TaskTaken(str(error)) from None


def apply_decisions(journal: Journal) -> None:
    """Move the ambiguous items whose entries in the ledger are decided."""
    if not journal.counts().get(State.AMBIGUOUS):
        return
    ledgers: dict[str | None, Ledger | None] = {}
    for entry in journal.entries(State.AMBIGUOUS):
        if entry.ledger not in ledgers:
            ledgers[entry.ledger] = _ledger_at(entry.ledger)
        _apply(journal, entry, ledgers[entry.ledger])


def _apply(journal: Journal, entry: Entry, ledger: Ledger | None) -> None:
    if ledger is None or entry.purchase is None:
        return
    from muybridge.ledger import LedgerUnusable

    step = None
    with suppress(LedgerUnusable):  # then the item waits for a decision of its own
        decided = ledger.find(entry.purchase)
        step = None if decided is None else _step(decided)
    if step is not None:
        after, facts = step
        # Somebody has just decided about the item, or another one has that task.
        with suppress(ClaimLost, TaskTaken):
            journal.move(entry, State.AMBIGUOUS, after, by=None, judged=True, **facts)


def _step(decided: Purchased) -> tuple[State, dict[str, Any]] | None:
    """Return the next state of an item whose entry is *decided*, or None if that is not."""
    from muybridge.ledger import State as Spent

    match decided.state:
        case Spent.ACCEPTED if decided.task is not None:
            token, began = decided.token, decided.task.began_at or decided.time
            facts = {"token": token, "began": began, "candidate": decided.candidate}
            return State.SUBMITTED, {**NO_REPLY, **facts}
        case Spent.ACCEPTED:
            return State.ABANDONED, {}
        case Spent.RELEASED | Spent.RESUBMITTED:
            return State.QUEUED, {**NO_REPLY, "candidate": None}
        case _:
            return None


def _ledger_at(path: str | None) -> Ledger | None:
    """Return the ledger in the file *path*, or None if there is none."""
    if path is None or not Path(path).is_file():
        return None
    from muybridge.ledger import open_ledger

    return open_ledger(path)
