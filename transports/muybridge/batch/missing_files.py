"""Downloaded results whose files are gone: the next run downloads them again.

Until then they count as completed, which is what a task is called whose result is to be downloaded.

Only a batch in a folder looks for its files: its journal is in the same folder, so one cannot be
there without the other. A shared batch's folder may be on another machine, and S3 would have to be
asked about each result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.drivers.interrupts import ignoring_errors


def counts_as_found(journal: SqliteJournal, folder: Path) -> tuple[dict[State, int], int]:
    """Return how many items are in each state, and how many of the completed have lost their file.

    Empty states are left out.
    """
    missing = sum(1 for _ in _missing(journal, folder))
    counts = Counter(journal.counts())
    missing = min(missing, counts[State.DOWNLOADED])  # a run may just have noticed it
    counts += Counter({State.DOWNLOADED: -missing, State.COMPLETED: missing})
    return {state: counts[state] for state in State if counts[state]}, missing


def as_found(entry: Entry, folder: Path) -> Entry:
    """Return *entry*, as completed if it is downloaded and has no file in *folder*."""
    if not _lacks_file(entry, folder):
        return entry
    return attrs.evolve(entry, state=State.COMPLETED, **_facts(entry))


def reopen_missing(journal: SqliteJournal, folder: Path) -> list[Entry]:
    """Record that files are missing in *folder*, and return their items.

    A run downloads what is completed. Its task is known, so nothing is created.
    """
    numbers = [*_missing(journal, folder)]
    if not numbers:
        return []
    with journal.transaction():  # nobody else records a file meanwhile
        entries = [journal.entry(number) for number in numbers]
        gone = [entry for entry in entries if _lacks_file(entry, folder)]
        for entry in gone:
            journal.move(entry, entry.state, State.COMPLETED, by=None, **_facts(entry))
    return [as_found(entry, folder) for entry in gone]


def _missing(journal: SqliteJournal, folder: Path) -> Iterator[int]:
    return (number for number, name in journal.files() if _is_missing(folder / name))


def _lacks_file(entry: Entry, folder: Path) -> bool:
    if entry.state is not State.DOWNLOADED or entry.path is None:
        return False
    return _is_missing(folder / entry.path)


def _is_missing(path: Path) -> bool:
    """Whether there is nothing at *path*. If that cannot be found out, something may be there."""
    with ignoring_errors(OSError):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
    return False


def _facts(entry: Entry) -> dict[str, Any]:
    reason = f"{entry.path} is missing"
    return {"reason": reason, "path": None, "size": None, "sha256": None}
