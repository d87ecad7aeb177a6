"""What a batch makes known while it runs, and what it says at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import attrs

from muybridge.batch.journal_entries import Entry, State


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
    """It goes on in a later run; the detail says why."""


@attrs.frozen(kw_only=True)
class BatchEvent:
    """Something happened to an item.

    Args:
        what: What happened.
        item: The item's number.
        name: What the user calls it, or "".
        detail: More, for people.
        task: The task's id, once it is known, or None.
        path: The file's path, once it is downloaded, or None.
        finished: How many items of the batch are at their end, this one included.
        total: How many items the batch has.
    """

    what: What
    item: int
    name: str
    detail: str = ""
    task: str | None = None
    path: Path | None = None
    finished: int
    total: int


SETTLED = frozenset({State.DOWNLOADED, State.FAILED, State.REFUSED, State.ABANDONED})
"""The states in which nothing is left to do."""


@attrs.frozen(kw_only=True)
class Report:
    """How far a batch has come.

    Args:
        folder: Its folder.
        entries: Its items, read from the journal whenever they are asked for.
        counts: How many items are in each state; a state without any is left out.
        sheet: The contact sheet, or None where it could not be written.
        stopped: Why a run stopped early, or "".
    """

    folder: Path
    entries: Sequence[Entry] = attrs.field(repr=False)
    counts: Mapping[State, int]
    sheet: Path | None = None
    stopped: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: no run would change anything, and nobody has to decide."""
        return SETTLED.issuperset(self.counts)

    @property
    def ambiguous(self) -> tuple[Entry, ...]:
        """The items that a person has to decide about."""
        if State.AMBIGUOUS not in self.counts:
            return ()
        return tuple(entry for entry in self.entries if entry.state is State.AMBIGUOUS)

    def path_of(self, entry: Entry) -> Path | None:
        """Return where the file of *entry* is, or None where there is none."""
        return None if entry.path is None else self.folder / entry.path
