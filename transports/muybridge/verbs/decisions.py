"""Decide about purchases of which nobody knows whether they were charged.

A person looks at the account, and decides. What they decide is checked whole before the first
decision is recorded, and all decisions are recorded in one transaction, or none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import attrs

from muybridge.batch.items.decision_table import DECISIONS, NOTHING_DECIDED
from muybridge.files.tables import Line, plain, read_table, write_table
from muybridge.purchases.consent import check_consent
from muybridge.purchases.store import Choosing, Store
from muybridge.verbs.spending import sweep, time_of
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.purchases import (
    CannotDecide,
    Choice,
    Measure,
    Purchase,
    State,
    countable,
)
from muybridge_protocol.records.tasks import as_task

COLUMNS: Final = (
    "key", "time", "family", "model", "name", "tags", "candidate", "reason", "decision", "task",
    "cost",
)  # fmt: skip
"""The columns of the table that a person fills in: the last three."""


@attrs.frozen(kw_only=True)
class Decision:
    """What a person has decided about a purchase, or has found out.

    Args:
        key: The purchase.
        choice: What was decided, or None if only its cost is given.
        task: The id or the token of the task to adopt, or None.
        cost: What it has cost, or None to leave that as it is.
        where: Where the decision was read, for messages, or "".
    """

    key: str
    choice: Choice | None = attrs.field(default=None, converter=attrs.converters.optional(Choice))
    task: str | None = None
    cost: Decimal | None = None
    where: str = ""


def undecided(store: Store) -> tuple[Purchase, ...]:
    """Return the purchases about which a person has to decide, from the oldest on.

    Nothing is created if the store does not exist. A sender that has died is noticed only if the
    store can be written.

    Raises:
        StoreUnusable: The store cannot be read.
    """
    sweep(store)
    return tuple(store.purchases(State.AMBIGUOUS))


def unpriced(store: Store) -> tuple[Purchase, ...]:
    """Return the purchases that count as spent and whose cost is unknown, from the oldest on.

    Raises:
        StoreUnusable: The store cannot be read.
    """
    sweep(store)
    purchases = (one for one in store.purchases() if one.is_spent)
    return tuple(one for one in purchases if one.amounts[Measure.COST] is None)


def find(store: Store, key: str) -> Purchase:
    """Return a purchase. A sender that has died is noticed only if the store can be written.

    Raises:
        CannotDecide: There is no such purchase.
        StoreUnusable: The store cannot be read.
    """
    sweep(store)
    try:
        return store.find(key)
    except LookupError as error:
        raise CannotDecide(f"{_sentence(error, store)}. Nothing was changed.") from None


def decision_table(purchases: Sequence[Purchase]) -> str:
    """Return *purchases* as CSV, with empty columns `decision`, `task` and `cost` to fill in."""
    return write_table(COLUMNS, map(_described, purchases))


def read_decisions(path: str | os.PathLike[str]) -> tuple[Decision, ...]:
    """Return the decisions in a table. Lines without one are ignored.

    Args:
        path: A CSV file with the column `key`, and `decision`, `task` and `cost` as needed.

    Raises:
        InvalidInput: Some lines are wrong; all problems are listed.
        OSError: The file cannot be read.
    """
    decisions: list[Decision] = []
    problems: list[InputProblem] = []
    for line in read_table(Path(path), COLUMNS, {"key"}):
        try:
            if (decision := _read(line)) is not None:
                decisions.append(decision)
        except ValueError as error:
            problems.append(InputProblem(line.where, str(error)))
    if problems:
        raise InvalidInput(DECISIONS, problems, NOTHING_DECIDED)
    return tuple(decisions)


def read_cost(text: str) -> Decimal:
    """Return the amount of money that *text* says.

    Raises:
        ValueError: It is not a number of at least 0.
    """
    try:
        cost = countable(Decimal(text))
    except InvalidOperation:
        cost = None
    if cost is None:
        raise ValueError(f"a cost must be a number of at least 0 (got {text!r})")
    return cost


def decide(
    store: Store,
    decisions: Sequence[Decision],
    *,
    not_charged: bool = False,
    i_may_pay_twice: bool = False,
) -> tuple[Purchase, ...]:
    """Record decisions, all or none. Nothing is sent.

    A decision that was recorded before changes nothing, so decisions can be repeated if it was lost
    whether they were recorded.

    Args:
        store: The store.
        decisions: What was decided.
        not_charged: Required to release: the account shows that it was not charged.
        i_may_pay_twice: Required to resubmit: it may have been charged all the same.

    Returns:
        The purchases as they are then, in the order of the decisions.

    Raises:
        CannotDecide: The decision does not apply, or what is required was not said.
        InvalidInput: The same, of some of several decisions; all problems are listed.
        StoreUnusable: The store cannot be used.
    """
    _check_said(decisions, not_charged=not_charged, i_may_pay_twice=i_may_pay_twice)
    places = [one.where or f"decision {n}" for n, one in enumerate(decisions, start=1)]
    wrong = _contradictions(decisions, places)
    if not wrong and not store.database.exists():  # who decides about nothing creates nothing
        wrong = {n: LookupError(f"there is no purchase {it.key}") for n, it in enumerate(decisions)}
    if not wrong:
        try:
            return tuple(
                store.decide_all(
                    Choosing(one.key, one.choice, one.task, one.cost) for one in decisions
                )
            )
        except CannotDecide as error:
            wrong = error.reasons
    reasons = {n: _sentence(reason, store) for n, reason in wrong.items()}
    if len(decisions) == 1:
        raise CannotDecide(f"{reasons[0]}. Nothing was changed.")
    problems = (InputProblem(places[n], text) for n, text in sorted(reasons.items()))
    raise InvalidInput(DECISIONS, problems, NOTHING_DECIDED)


def _check_said(decisions: Sequence[Decision], *, not_charged: bool, i_may_pay_twice: bool) -> None:
    which = f"purchase {decisions[0].key}" if len(decisions) == 1 else "some purchases"
    check_consent(
        {one.choice for one in decisions},
        which,
        not_charged=not_charged,
        i_may_pay_twice=i_may_pay_twice,
    )


def _contradictions(
    decisions: Sequence[Decision], places: Sequence[str]
) -> Mapping[int, Exception]:
    """Return what is wrong with decisions, whatever the store has."""
    wrong: dict[int, Exception] = {}
    seen: dict[str, str] = {}
    for n, one in enumerate(decisions):
        where = seen.setdefault(one.key, places[n])
        try:
            if where != places[n]:
                raise CannotDecide(f"purchase {one.key} is already in {where}")
            _check_form(one)
        except ValueError as error:
            wrong[n] = error
    return wrong


def _check_form(one: Decision) -> None:
    if one.choice is None and one.cost is None:
        raise CannotDecide(f"there is no decision about purchase {one.key}")
    if one.choice is Choice.ADOPT and not one.task:
        raise CannotDecide(f"to adopt purchase {one.key}, give its task")
    if one.choice is not Choice.ADOPT and one.task:
        raise CannotDecide(f"a task is given, but the decision is {one.choice or 'missing'}")
    if one.task:
        as_task(one.task)


def _sentence(reason: Exception, store: Store) -> str:
    if isinstance(reason, LookupError):
        return f"{reason.args[0]} in {store.place}"
    return str(reason)


def _read(line: Line) -> Decision | None:
    """Return the decision of a line, or None if it has none.

    Raises:
        ValueError: It is wrong.
    """
    if line.problem:
        raise ValueError(line.problem)
    key, word, task, cost = (
        plain(line.cells.get(name, "").strip()) for name in ("key", "decision", "task", "cost")
    )
    if not (word or task or cost):
        return None
    if not key:
        raise ValueError("the key is missing")
    if task and not word:
        raise ValueError(f"a task is given without a decision: write {Choice.ADOPT}, or remove it")
    if word and word.lower() not in list(Choice):
        raise ValueError(f"{word!r} is not one of {', '.join(Choice)}")
    return Decision(
        key=key,
        choice=Choice(word.lower()) if word else None,
        task=task or None,
        cost=read_cost(cost) if cost else None,
        where=line.where,
    )


def _described(purchase: Purchase) -> Iterator[str]:
    """Yield the cells of a purchase."""
    yield purchase.key
    yield time_of(purchase.armed_at)
    yield purchase.family
    yield purchase.model
    yield purchase.once or ""
    yield " ".join(purchase.tags)
    yield purchase.candidate or ""
    yield purchase.reason or ""
    yield ""
    yield ""
    yield ""
