"""Batches: many requests, a journal that survives whatever stops the process, and a contact sheet.

from muybridge import Client, batch

with Client() as client:
    report = batch.run(client, "requests.jsonl", "out")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.batch.events import BatchEvent, Report, What
from muybridge.batch.items import BatchProblem, InvalidBatch, read_items
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import JournalMissing, JournalUnusable
from muybridge.batch.opening import WrongService, status
from muybridge.batch.resolving import CannotResolve, abandon, adopt, resubmit
from muybridge.batch.runner import run
from muybridge.extras import obtainable

if TYPE_CHECKING:
    from muybridge.batch.trio_runner import run_trio

__all__ = [
    "BatchEvent",
    "BatchProblem",
    "CannotResolve",
    "Entry",
    "InvalidBatch",
    "JournalMissing",
    "JournalUnusable",
    "Report",
    "State",
    "What",
    "WrongService",
    "abandon",
    "adopt",
    "read_items",
    "resubmit",
    "run",
    "run_trio",
    "status",
]
_NAMES: Final[list[str]] = globals().pop("__all__")  # as in `muybridge`
_NEEDS: Final = {"run_trio": ("trio",)}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return obtainable(_NAMES, _NEEDS)
    if name != "run_trio":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from muybridge.batch.trio_runner import run_trio  # noqa: PLC0415  trio is an extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("muybridge"):
            raise
        raise ModuleNotFoundError(
            f'run_trio needs {error.name}: pip install "muybridge[trio]"', name=error.name
        ) from None
    return run_trio


def __dir__() -> list[str]:
    return sorted({*globals(), *obtainable(_NAMES, _NEEDS)})
