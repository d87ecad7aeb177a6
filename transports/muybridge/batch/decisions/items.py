"""Let a person decide about an item that may have been accepted.

If its purchase is in a store, the decision is recorded there as well. `step_of` finds out
whether a decision applies and changes nothing, so that a whole table of decisions can be checked
before the first one is applied. `apply_all` records all of them, or none if an item has changed
since it was read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from muybridge.batch.decisions.in_store import NO_REPLY, settle
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, TaskTaken
from muybridge.batch.journaled_create import named_task
from muybridge.batch.port import Journal
from muybridge.batch.shared import Place, open_journal
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families import find_family
from muybridge_protocol.purchases import CannotDecide
from muybridge_protocol.records.json import read_object
from muybridge_protocol.records.tasks import Task, as_task
from muybridge_protocol.service import shown_id


class CannotResolve(LocalError):
    """The decision does not apply to the item."""


class Choice(StrEnum):
    """What a person may decide about an item."""

    ADOPT = "adopt"
    """It was accepted, and this is its task."""
    ABANDON = "abandon"
    """It is neither waited for nor sent again."""
    RESUBMIT = "resubmit"
    """It is sent again. If it was accepted before, it is paid for twice."""


@attrs.frozen(kw_only=True)
class Step:
    """What a decision does.

    Args:
        entry: The item.
        after: Its next state.
        facts: Columns to set.
        choice: The decision.
        task: The task to adopt, or None.
    """

    entry: Entry
    after: State
    facts: Mapping[str, Any]
    choice: Choice
    task: Task | None = None


def adopt(out: Place, item: int | str, task: Task | str) -> Entry:
    """Declare that an ambiguous item was accepted as *task*. The next run waits for it.

    Until the task has ended, you can name another one, in case the first was wrong.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.
        task: The task, its token or its id.

    Raises:
        CannotResolve: The item is not ambiguous, or an item has this task already.
        InvalidIdentifier: *task* is not a valid id.
        JournalUnusable: The journal cannot be used.
        StoreUnusable: The store with its purchase cannot be used. Nothing was decided.
    """
    known = as_task(task)
    with open_journal(out) as journal:
        return apply(journal, step_of(journal, find(journal, item), Choice.ADOPT, known))


def abandon(out: Place, item: int | str) -> Entry:
    """Leave an ambiguous item as it is: it is neither waited for nor resubmitted.

    This also applies to an item whose task was named by `adopt`, and to one that is not sent yet.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.

    Raises:
        CannotResolve: The item is neither ambiguous nor queued, or its response has arrived.
        JournalUnusable: The journal cannot be used.
        StoreUnusable: The store with its purchase cannot be used. Nothing was decided.
    """
    with open_journal(out) as journal:
        return apply(journal, step_of(journal, find(journal, item), Choice.ABANDON))


def resubmit(out: Place, item: int | str, *, i_may_pay_twice: bool = False) -> Entry:
    """Let the next run resubmit an item.

    Args:
        out: The folder of the batch, or a batch in a database.
        item: The item's number or name.
        i_may_pay_twice: Required for an ambiguous item, which may have been charged; not for a
            refused one.

    Raises:
        CannotResolve: The item is neither ambiguous nor refused, or *i_may_pay_twice* is missing.
        JournalUnusable: The journal cannot be used.
        StoreUnusable: The store with its purchase cannot be used. Nothing was decided.
    """
    with open_journal(out) as journal:
        entry = find(journal, item)
        step = step_of(journal, entry, Choice.RESUBMIT, i_may_pay_twice=i_may_pay_twice)
        return apply(journal, step)


def step_of(
    journal: Journal,
    entry: Entry,
    choice: Choice,
    task: Task | None = None,
    *,
    i_may_pay_twice: bool = False,
) -> Step:
    """Return what a decision does, and change nothing.

    Args:
        journal: The batch's journal.
        entry: The item.
        choice: The decision.
        task: The task to adopt.
        i_may_pay_twice: Whether an ambiguous item may be sent again.

    Raises:
        CannotResolve: The decision does not apply to the item.
    """
    facts: dict[str, Any] = {}
    match choice:
        case Choice.ADOPT:
            if task is None:
                raise CannotResolve(f"the task of {entry.label} is missing")
            task, facts = _adopted(journal, entry, task)
            after = State.SUBMITTED
        case Choice.ABANDON:
            after = State.ABANDONED
        case Choice.RESUBMIT:
            after, facts = State.QUEUED, {"candidate": None}
            if entry.state is State.AMBIGUOUS and not i_may_pay_twice:
                raise CannotResolve(
                    f"{entry.label} may have been accepted and charged: say that you may pay "
                    "twice (--i-may-pay-twice)"
                )
    match choice:
        case Choice.RESUBMIT:
            other = entry.state is State.REFUSED
        case Choice.ABANDON:
            other = _was_adopted(entry) or (entry.state is State.QUEUED and entry.owner is None)
        case Choice.ADOPT:
            other = _was_adopted(entry)
    if entry.state is not State.AMBIGUOUS and not other:
        raise CannotResolve(f"{entry.label} is {entry.state}: there is nothing to decide about it")
    _check_response(journal, entry, task)
    if after is not State.ABANDONED:
        facts = {**NO_REPLY, **facts}
    if after is State.QUEUED:
        try:
            journal.check_ended(entry)
        except ClaimLost as error:
            raise CannotResolve(str(error)) from None
    return Step(entry=entry, after=after, facts=facts, choice=choice, task=task)


def apply_all(journal: Journal, steps: Sequence[Step]) -> tuple[Entry, ...]:
    """Record decisions in the store and in the journal, and return the items as they are then.

    Raises:
        CannotResolve: An item has changed since its step was checked, or another item or request
            has the task. Nothing was decided.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    try:
        with journal.transaction():
            for step in sorted(steps, key=_number):  # or two tables could wait for each other
                _move(journal, step)
            settle((step.entry, step.choice, step.task) for step in steps)
    except (ClaimLost, TaskTaken, CannotDecide) as error:
        raise CannotResolve(str(error)) from None
    return tuple(journal.entry(step.entry.number) for step in steps)


def apply(journal: Journal, step: Step) -> Entry:
    """Record a decision as `apply_all` does, and return the item."""
    (entry,) = apply_all(journal, [step])
    return entry


def _move(journal: Journal, step: Step) -> None:
    entry = step.entry
    try:
        journal.move(entry, entry.state, step.after, by=None, judged=True, **step.facts)
    except TaskTaken:
        task = shown_id(step.facts["candidate"])
        raise CannotResolve(
            f"task {task} belongs to another item already: {entry.label} cannot adopt it"
        ) from None


def _number(step: Step) -> int:
    return step.entry.number


def find(journal: Journal, item: int | str) -> Entry:
    """Return the item with this name or number.

    Raises:
        CannotResolve: There is none, or there are several.
    """
    match journal.called(str(item)):
        case [entry]:
            return entry
        case []:
            raise CannotResolve(f"there is no item {str(item)!r} in the batch")
        case several:
            said = f"{len(several)} items are called {str(item)!r}; give the number"
            raise CannotResolve(said)


def _adopted(journal: Journal, entry: Entry, task: Task) -> tuple[Task, dict[str, Any]]:
    """Return the task as it is adopted, and the facts of its item."""
    if (label := journal.label_of_task(task.id)) is not None:
        raise CannotResolve(f"task {task.id} is {label} already")
    model = read_object(entry.body).get("model")
    adopted = attrs.evolve(
        task,
        family=find_family(entry.family).name,
        requested_model=model if isinstance(model, str) else None,
        submitted_at=task.submitted_at,
    )
    facts = {
        "token": adopted.to_token(),
        "candidate": task.id,
        "began": time.time() if adopted.began_at is None else adopted.began_at,
    }
    return adopted, facts


def _check_response(journal: Journal, entry: Entry, task: Task | None) -> None:
    """Check that the response of an ambiguous item does not say what has become of it.

    Raises:
        CannotResolve: It names the item's task, which is not *task*.
    """
    known = named_task(entry) if entry.state is State.AMBIGUOUS else None
    if known is None or known == (task and task.id) or journal.label_of_task(known) is not None:
        return
    raise CannotResolve(
        f"the response to {entry.label} has arrived: it is task {shown_id(known)}. Run the batch "
        f"again, which waits for that task, or adopt it"
    )


def _was_adopted(entry: Entry) -> bool:
    """Whether a person named the task. A task that the service named cannot be changed."""
    if entry.state is not State.SUBMITTED or entry.token is None:
        return False
    return entry.task_id == entry.candidate
