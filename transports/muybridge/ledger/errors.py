"""Errors of the ledger. Each of them is raised before anything is sent."""

from __future__ import annotations

from muybridge_protocol.errors import LocalError, MuybridgeError


class LedgerUnusable(MuybridgeError):
    """The ledger cannot be read or written, so nothing is sent. The message says why."""


class EntryUnstorable(LedgerUnusable):
    """A value of an entry cannot be stored. The store and the rest of the transaction are fine."""


class InvalidLimit(LocalError):
    """A limit in the environment cannot be read. Nothing was sent."""


class OnceTaken(LocalError):
    """Another request was already sent under this name. Nothing was sent."""


class OnceUnderWay(MuybridgeError):
    """Another call is still sending the request of this name. Nothing was sent again."""

    _charged = "perhaps"


class CannotResolve(LocalError):
    """This decision does not apply to the entry."""


class TaskTaken(CannotResolve):
    """Another entry has the task that a person names."""


class Exceeded(Exception):
    """A request does not fit into a budget. The message says which limit, and how much is left."""


class NameHeld(Exception):
    """Another entry has the name of a request."""
