"""Errors of the ledger. Each of them is raised before anything is sent."""

from __future__ import annotations

from muybridge.purchases.errors import InvalidLimit, OnceTaken, OnceUnderWay
from muybridge_protocol.errors import LocalError, MuybridgeError

__all__ = [
    "CannotResolve", "EntryUnstorable", "Exceeded", "InvalidLimit", "LedgerUnusable", "NameHeld",
    "OnceTaken", "OnceUnderWay", "TaskTaken",
]  # fmt: skip


class LedgerUnusable(MuybridgeError):
    """The ledger cannot be read or written, so nothing is sent. The message says why."""


class EntryUnstorable(LedgerUnusable):
    """A value of an entry cannot be stored. The store and the rest of the transaction are fine."""


class CannotResolve(LocalError):
    """This decision does not apply to the entry."""


class TaskTaken(CannotResolve):
    """Another entry has the task that a person names."""


class Exceeded(Exception):
    """A request does not fit into a budget. The message says which limit, and how much is left."""


class NameHeld(Exception):
    """Another entry has the name of a request."""
