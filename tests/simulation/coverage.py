"""What a campaign has to see: a world that never does a thing proves nothing of it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from muybridge.ledger import State

from .service import Fate, rows

ENOUGH: Final = 10_000
"""Worlds after which a campaign must have seen everything, and not only most things."""

_OFTEN: Final = (
    *Fate,
    "a connection breaks",
    "a connection hangs",
    "a connection is refused",
    "a lookup hangs",
    "a name is not found",
    "BEGIN fails",
    "INSERT fails",
    "COMMIT fails",
    "a commit reports an error, and is on the disk",
    "a transaction waits for another",
    "kill",
    "a program is started again",
    "cancellation",
    "Ctrl-C",
    "the machine is busy",
    "the machine sleeps",
    "the wall clock is set",
    "accepted",
    "a result is saved",
    f"an entry is {State.ACCEPTED}",
    f"an entry is {State.RELEASED}",
    f"an entry is {State.AMBIGUOUS}",
    "create told: a task",
    "create told: Cancelled",
    "create told: CreateAmbiguous",
    "create told: LedgerUnusable",
    "create told: NotSent",
    "create told: OverBudget",
)
"""Faults, states of entries and outcomes that a few hundred worlds of names see."""
_RARELY: Final = (
    *rows("create"),
    *rows("poll"),
    *rows("download"),
    "create told: OnceUnderWay",
    "create told: RateLimited",
    "create told: Refused",
    "a person chooses to abandon",
    "a person chooses to adopt",
    "a person chooses to release",
    "a person chooses to resubmit",
)
"""Every row of the delivery tables, and what follows from rare ones."""

EXPECTED: Final = {"names": (_OFTEN, _RARELY)}
"""By kind of world: what some hundred worlds have seen, and what thousands have."""


def unseen(kind: str, counts: Counter[str], worlds: int) -> list[str]:
    """Return what the worlds of a kind have to see and have not."""
    often, rarely = EXPECTED.get(kind, ((), ()))
    return [what for what in (*often, *(rarely if worlds >= ENOUGH else ())) if not counts[what]]
