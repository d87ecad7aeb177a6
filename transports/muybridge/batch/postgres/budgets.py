"""The budget of a batch in PostgreSQL.

It has a row of its own, which is locked last in every transaction that uses it, after the item's.
Creates are armed one after the other while it is locked, so a batch without a budget has no row.
"""

from __future__ import annotations

from typing import Final

from muybridge.batch.journal_entries import State
from muybridge.batch.limits.spending import (
    Spending,
)
from muybridge.batch.postgres.connecting import Connection
from muybridge_protocol.purchases import (
    Budget,
    BudgetUse,
    read_amounts,
    read_budget,
    written_budget,
)

RELEASING: Final = frozenset({State.CLAIMED, State.QUEUED, State.REFUSED})
"""What an armed item becomes if its create certainly did nothing."""

_BEGIN: Final = "INSERT INTO muybridge_budgets (batch, limits, spent) VALUES (%s, %s, %s)"
_LIMIT: Final = "UPDATE muybridge_budgets SET limits = %s WHERE batch = %s"
_READ: Final = "SELECT limits, spent FROM muybridge_budgets WHERE batch = %s"
_LOCK: Final = "SELECT limits, spent FROM muybridge_budgets WHERE batch = %s FOR UPDATE"
_NEEDS: Final = "SELECT needs FROM muybridge_items WHERE batch = %s AND number = %s"
_WRITE: Final = "UPDATE muybridge_budgets SET spent = %s WHERE batch = %s"


def begin(db: Connection, batch: int, budget: Budget) -> None:
    """Give a new batch a budget."""
    db.execute(_BEGIN, (batch, written_budget(budget), Spending().written()))


def limit(db: Connection, batch: int, budget: Budget) -> None:
    """Change the limits of a batch that has a budget."""
    with db.change():
        db.execute(_LIMIT, (written_budget(budget), batch))


def use_of(db: Connection, batch: int, *, locks: bool = False) -> BudgetUse | None:
    """Return how far the budget is used up, or None if there is none.

    Args:
        db: The database.
        batch: The batch.
        locks: Whether nobody else may change it before this transaction ends.
    """
    row = db.execute(_LOCK if locks else _READ, (batch,)).fetchone()
    if row is None:
        return None
    spent = Spending.read(row[1]).amounts
    return BudgetUse(budget=read_budget(row[0]), spent=spent, exceeded=None)


def reserve(db: Connection, batch: int, number: int) -> None:
    """Reserve what an item needs, within the transaction that arms it.

    Raises:
        OverBudget: It does not fit. The transaction must end without a change.
    """
    _change(db, batch, number, reserves=True)


def release(db: Connection, batch: int, number: int) -> None:
    """Release what an item has reserved, within the transaction that records why."""
    _change(db, batch, number, reserves=False)


def _change(db: Connection, batch: int, number: int, *, reserves: bool) -> None:
    (needs,) = _row(db, _NEEDS, batch, number)
    limits, spent = _row(db, _LOCK, batch)
    amounts, before = read_amounts(needs), Spending.read(spent)
    after = before.reserve(amounts, read_budget(limits)) if reserves else before.release(amounts)
    db.execute(_WRITE, (after.written(), batch))


def _row(db: Connection, statement: str, *values: int) -> tuple[str, ...]:
    row = db.execute(statement.encode(), values).fetchone()
    assert row is not None  # noqa: S101  the batch has a budget, and the item is its own
    return row
