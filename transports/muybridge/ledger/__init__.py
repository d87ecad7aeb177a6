"""The ledger of paid requests: budgets, what was spent, and requests that are paid for once.

from muybridge.ledger import Budget, open_ledger

client = muybridge.Client(budget=Budget(creates=100, cost="25.00", per="day"))
for entry in open_ledger().entries():
print(entry.family, entry.state)
"""

from __future__ import annotations

from muybridge.ledger.entries import Entry, Purchase, State
from muybridge.ledger.errors import (
    CannotResolve,
    EntryUnstorable,
    Exceeded,
    InvalidLimit,
    LedgerUnusable,
    NameHeld,
    OnceTaken,
    OnceUnderWay,
    TaskTaken,
)
from muybridge.ledger.ledger import Ledger
from muybridge.ledger.store import Rows, Store
from muybridge_protocol.purchases import Amounts, Budget, BudgetUse, Measure

__all__ = [
    "Amounts",
    "Budget",
    "BudgetUse",
    "CannotResolve",
    "Entry",
    "EntryUnstorable",
    "Exceeded",
    "InvalidLimit",
    "Ledger",
    "LedgerUnusable",
    "Measure",
    "NameHeld",
    "OnceTaken",
    "OnceUnderWay",
    "Purchase",
    "Rows",
    "State",
    "Store",
    "TaskTaken",
]
