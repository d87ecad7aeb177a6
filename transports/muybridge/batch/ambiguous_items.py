"""Let a person decide about an item that may have been accepted.

If its create is in a ledger, the decision settles its entry there as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from muybridge.batch.decisions import NO_REPLY, settle
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost
from muybridge.batch.port import Journal
from muybridge.batch.shared import Place, open_journal
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families import find_family
from muybridge_protocol.records.json import read_object
from muybridge_protocol.records.tasks import Task, as_task

if TYPE_CHECKING:
    from muybridge.ledger import Ledger


class CannotResolve(LocalError):
    """This decision does not apply to the item."""


def adopt(out: Place, item: int | str, task: Task | str) -> Entry:
    """Declare that an ambiguous item was accepted as *task*. The next run waits for it.

    Until the task has ended, you can name another one, in case the first was wrong.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.
        task: The task, its token or its id.

    Raises:
        CannotResolve: The item is not ambiguous, or an item has this task already.
        InvalidIdentifier: The id cannot be one.
        JournalUnusable: The journal cannot be used.
        LedgerUnusable: The ledger that has its create cannot be used. Nothing was decided.
    """
    known = as_task(task)
    with open_journal(out) as journal:
        entry = _find(journal, item)
        other = journal.with_task(known.id)
        if other is not None:
            raise CannotResolve(f"task {known.id} is {other.label} already")
        model = read_object(entry.body).get("model")
        adopted = attrs.evolve(
            known,
            family=find_family(entry.family).name,
            requested_model=model if isinstance(model, str) else None,
            submitted_at=known.submitted_at,
        )
        return _decide(
            journal,
            entry,
            State.SUBMITTED,
            lambda ledger, key: ledger.adopt(key, adopted),
            token=adopted.to_token(),
            candidate=known.id,
            began=time.time() if adopted.began_at is None else adopted.began_at,
        )


def abandon(out: Place, item: int | str) -> Entry:
    """Leave an ambiguous item as it is: it is neither waited for nor resubmitted.

    This also applies to an item whose task was named by `adopt`.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.

    Raises:
        CannotResolve: The item is not ambiguous.
        JournalUnusable: The journal cannot be used.
        LedgerUnusable: The ledger that has its create cannot be used. Nothing was decided.
    """
    with open_journal(out) as journal:
        return _decide(journal, _find(journal, item), State.ABANDONED, _abandoned)


def resubmit(out: Place, item: int | str, *, i_may_pay_twice: bool = False) -> Entry:
    """Let the next run resubmit an item.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.
        i_may_pay_twice: Required for an ambiguous item, which may have been charged. A refused one
            was not.

    Raises:
        CannotResolve: The item is neither ambiguous nor refused, or the word is missing.
        JournalUnusable: The journal cannot be used.
        LedgerUnusable: The ledger that has its create cannot be used. Nothing was decided.
    """
    with open_journal(out) as journal:
        entry = _find(journal, item)
        if entry.state is State.AMBIGUOUS and not i_may_pay_twice:
            raise CannotResolve(
                f"{entry.label} may have been accepted and charged: say that you may pay "
                "twice (--i-may-pay-twice)"
            )
        return _decide(journal, entry, State.QUEUED, _resubmitted, candidate=None)


def _abandoned(ledger: Ledger, key: str) -> None:
    ledger.abandon(key)


def _resubmitted(ledger: Ledger, key: str) -> None:
    ledger.resubmit(key)


def _decide(
    journal: Journal,
    entry: Entry,
    after: State,
    in_ledger: Callable[[Ledger, str], object],
    **facts: object,
) -> Entry:
    other = entry.state is State.REFUSED if after is State.QUEUED else _was_adopted(entry)
    if entry.state is not State.AMBIGUOUS and not other:
        raise CannotResolve(f"{entry.label} is {entry.state}: there is nothing to decide about it")
    if after is not State.ABANDONED:
        facts = {**NO_REPLY, **facts}
    try:
        if after is State.QUEUED:
            journal.check_ended(entry)  # first: what the ledger is told reaches the item later
        settle(entry, in_ledger)
        journal.move(entry, entry.state, after, by=None, **facts)
    except ClaimLost as error:
        raise CannotResolve(str(error)) from None
    return journal.entry(entry.number)


def _was_adopted(entry: Entry) -> bool:
    """Whether a person named the task. A task that the service named cannot be changed."""
    if entry.state is not State.SUBMITTED or entry.token is None:
        return False
    return entry.task_id == entry.candidate


def _find(journal: Journal, item: int | str) -> Entry:
    found = journal.called(str(item))
    if len(found) != 1:
        many = f"{len(found)} items are called {str(item)!r}; give the number"
        raise CannotResolve(many if found else f"there is no item {str(item)!r} in the batch")
    return found[0]
