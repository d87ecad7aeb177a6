"""What a campaign has to see: a world that never does a thing proves nothing of it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from .service import Fate, rows

SOME: Final = 600
"""Worlds that have to see what happens often."""
MANY: Final = 10_000
"""Worlds that have to see everything."""

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
    "a program has threads",
    "power cut",
    "cancellation",
    "Ctrl-C",
    "the machine is busy",
    "the machine sleeps",
    "the wall clock is set",
    "a result is saved",
    "store: armed -> accepted",
    "store: armed -> released",
    "store: armed -> ambiguous",
    "create told: a task",
    "create told: Cancelled",
    "create told: CreateAmbiguous",
    "create told: StoreUnusable",
    "create told: NotSent",
    "create told: OverBudget",
)
"""Faults, steps of purchases and outcomes that some hundred worlds of names see."""
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
    "store: ambiguous -> accepted",
    "store: ambiguous -> released",
    "store: ambiguous -> resubmitted",
)
"""Every row of the delivery tables, and what follows from rare ones."""

_OF_FILES: Final = frozenset(
    {
        "BEGIN fails",
        "INSERT fails",
        "COMMIT fails",
        "a commit reports an error, and is on the disk",
    }
)
_SERVERS_OFTEN: Final = (
    *(what for what in _OFTEN if what not in _OF_FILES),
    "a COMMIT does not arrive",
    "a process stands still",
    "the answer to a COMMIT is lost",
    "the leader is lost",
    "the server hangs",
    "the server is slow",
    "the server refuses",
)
"""What some hundred worlds on a server see."""

_BATCHES_OFTEN: Final = (
    "a power cut loses a name",
    "a power cut meets a file that is not synced",
    "a process stands still",
    "a write finds no room",
    "kill",
    "power cut",
    "item: armed -> ambiguous",
    "item: armed -> claimed",
    "item: armed -> queued",
    "item: armed -> submitted",
    "item: claimed -> armed",
    "item: queued -> armed",
    "item: submitted -> downloaded",
    "item: submitted -> failed",
)
"""What some hundred worlds of batches see."""
_BATCHES_RARELY: Final = (
    *Fate,
    "a response is found in a file",
    "item: ambiguous -> abandoned",
    "item: ambiguous -> queued",
    "item: ambiguous -> submitted",
    "item: armed -> refused",
    "item: claimed -> queued",
    "item: completed -> downloaded",
    "item: claimed -> joined",
    "item: joined -> abandoned",
    "item: joined -> queued",
    "item: joined -> submitted",
    "item: queued -> abandoned",
    "item: queued -> joined",
    "item: queued -> submitted",
    "item: refused -> queued",
    "item: submitted -> abandoned",
    "item: submitted -> completed",
    "store: accepted -> abandoned",
    "store: ambiguous -> abandoned",
    "store: ambiguous -> accepted",
    "store: ambiguous -> released",
    "store: ambiguous -> resubmitted",
    "store: armed -> accepted",
    "store: armed -> ambiguous",
    "store: armed -> released",
)
"""What thousands of them have seen besides."""

_WORKERS_OFTEN: Final = (
    "a COMMIT does not arrive",
    "a process stands still",
    "a worker is declared dead",
    "kill",
    "power cut",
    "the answer to a COMMIT is lost",
    "the leader is lost",
    "the server hangs",
    "the server is slow",
    "the server refuses",
    "item: armed -> ambiguous",
    "item: armed -> claimed",
    "item: armed -> queued",
    "item: armed -> submitted",
    "item: claimed -> armed",
    "item: claimed -> queued",
    "item: queued -> claimed",
    "item: submitted -> downloaded",
    "item: submitted -> failed",
)
"""What some hundred worlds of workers see."""
_WORKERS_RARELY: Final = (
    *Fate,
    "a response is found in a file",
    "item: ambiguous -> abandoned",
    "item: ambiguous -> queued",
    "item: ambiguous -> submitted",
    "item: armed -> refused",
    "item: completed -> downloaded",
    "item: queued -> abandoned",
    "item: refused -> queued",
    "item: submitted -> completed",
    "store: ambiguous -> abandoned",
    "store: ambiguous -> accepted",
    "store: ambiguous -> resubmitted",
    "store: armed -> accepted",
    "store: armed -> ambiguous",
    "store: armed -> released",
)
"""What thousands of them have seen besides."""

EXPECTED: Final = {
    "names": (_OFTEN, _RARELY),
    "servers": (_SERVERS_OFTEN, _RARELY),
    "batches": (_BATCHES_OFTEN, _BATCHES_RARELY),
    "workers": (_WORKERS_OFTEN, _WORKERS_RARELY),
}
"""By kind of world: what some hundred worlds see, and what thousands have seen besides."""


def unseen(kind: str, counts: Counter[str], worlds: int) -> list[str]:
    """Return what so many worlds of a kind have to see and have not."""
    often, rarely = EXPECTED.get(kind, ((), ()))
    expected = ["accepted"]
    if worlds >= SOME:
        expected += often
    if worlds >= MANY:
        expected += rarely
    return [what for what in expected if not counts[what]]
