"""The events of a running batch, and the report at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import attrs

from muybridge.batch.items.batch import SETTLED
from muybridge.batch.items.entries import Entries
from muybridge.batch.items.entry import Entry
from muybridge_protocol.purchases import Purchase, Stage


class What(StrEnum):
    """What happened to an item."""

    SENDING = "sending"
    SUBMITTED = "submitted"
    STATUS = "status"
    RETRY = "retry"
    COMPLETED = "completed"
    DOWNLOADED = "downloaded"
    FAILED = "failed"
    REFUSED = "refused"
    AMBIGUOUS = "ambiguous"
    POSTPONED = "postponed"
    """A later run continues it; the detail says why."""


@attrs.frozen(kw_only=True)
class BatchEvent:
    """Something happened to an item.

    Args:
        what: What happened.
        item: The item's number.
        name: The user's name for the item, or "".
        detail: Details, for people.
        task: The task's id, once it is known, or None.
        path: The file's path, once it is downloaded, or None.
        finished: How many items of the batch are finished, including this one.
        total: How many items the batch has.
        failed: How many of its items failed or were refused so far.
        ambiguous: How many of its items need a person's decision so far.
    """

    what: What
    item: int
    name: str
    detail: str = ""
    task: str | None = None
    path: Path | None = None
    finished: int
    total: int
    failed: int = 0
    ambiguous: int = 0


@attrs.frozen(kw_only=True)
class Report:
    """The progress of a batch.

    Args:
        folder: Its folder.
        entries: Its items, read from the store on access.
        counts: How many items are in each state, without empty states.
        name: Its name in its store.
        strays: Purchases that were paid for, and whose task no item has: their responses arrived
            when somebody had decided otherwise.
        sheet: The contact sheet, or None if it could not be written.
        stopped: Why a run stopped early, or "".
        without_sidecar: How many sidecars a run could not write. The results are saved, and the
            next run retries.
        missing: How many of the completed items were downloaded before, and their files are gone.
            The next run downloads them again, which costs nothing. `status` looks for the files of
            at most 100,000 results; a run and `write_sheet` look for all of them.
        at_work: The processes that are at work on it, such as `pid 12 on stable`.
    """

    folder: Path
    entries: Sequence[Entry] = attrs.field(repr=False)
    counts: Mapping[Stage, int]
    name: str = ""
    strays: tuple[Purchase, ...] = ()
    sheet: Path | None = None
    stopped: str = ""
    without_sidecar: int = 0
    missing: int = 0
    at_work: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, neither for a run nor for a person."""
        return {*SETTLED}.issuperset(self.counts)

    @property
    def ambiguous(self) -> tuple[Entry, ...]:
        """The items that need a person's decision."""
        if Stage.AMBIGUOUS not in self.counts:
            return ()
        if isinstance(self.entries, Entries):
            return self.entries.in_stage(Stage.AMBIGUOUS)
        return tuple(entry for entry in self.entries if entry.state is Stage.AMBIGUOUS)

    def path_of(self, entry: Entry) -> Path | None:
        """Return the path of the file of *entry*, or None if there is none."""
        return None if entry.path is None else self.folder / entry.path
