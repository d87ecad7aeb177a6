"""Downloaded results whose files are gone: the next run downloads them again.

Until then they count as completed, which is what a task is called whose result is to be downloaded.
The store keeps the name and the checksum of such a file. So if the service no longer has it, a
run recognizes the file that is put back.

Only a batch in a folder looks for its files: its store may be in the same folder, so one cannot be
there without the other. A shared batch's folder may be on another machine, and S3 would have to be
asked about each result.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from muybridge.batch.file_names import checksum
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge.purchases.errors import Lost
from muybridge.signals import ignoring_errors
from muybridge_protocol.purchases import Stage


def counts_as_found(batch: Batch, folder: Path) -> tuple[dict[Stage, int], int]:
    """Return how many items are in each state, and how many of the completed have lost their file.

    Empty states are left out.
    """
    noticed = sum(_lacks_file(entry, folder) for entry in batch.entries(Stage.COMPLETED))
    missing = sum(1 for _ in _missing(batch, folder))
    counts = Counter(batch.counts())
    missing = min(missing, counts[Stage.DOWNLOADED])  # a run may just have noticed it
    counts += Counter({Stage.DOWNLOADED: -missing, Stage.COMPLETED: missing})
    missing = min(missing + noticed, counts[Stage.COMPLETED])  # or have downloaded it
    return {state: counts[state] for state in Stage if counts[state]}, missing


def as_found(entry: Entry, folder: Path) -> Entry:
    """Return *entry* as it is without its file, if that is not in *folder* or not checked yet."""
    back = is_back(entry, folder)
    if not back and not _lacks_file(entry, folder):
        return entry
    reason = _reason(entry) if entry.state is Stage.DOWNLOADED else entry.reason
    if back and reason == _reason(entry):
        reason = f"{entry.path} is there again, and the next run checks it"
    return attrs.evolve(
        entry, state=Stage.COMPLETED, reason=reason, path=None, size=None, sha256=None
    )


def is_back(entry: Entry, folder: Path) -> bool:
    """Whether *entry* is completed and its missing file is in *folder* again."""
    if entry.state is not Stage.COMPLETED or entry.path is None:
        return False
    with ignoring_errors(OSError):
        found = (folder / entry.path).stat()
        if stat.S_ISREG(found.st_mode) and found.st_size == entry.size:
            return True
    return False


def follow_files(batch: Batch, folder: Path) -> list[Entry]:
    """Record which files are missing in *folder* and which are back, and return the missing items.

    A run downloads what is completed. Its task is known, so nothing is created. A file that is back
    counts only if it is the same, and not another item's by now.
    """
    numbers = [*_missing(batch, folder)]
    back = [entry for entry in batch.entries(Stage.COMPLETED) if _is_same(entry, folder)]
    if not numbers and not back:
        return []
    entries = [batch.entry(number) for number in numbers]
    gone = [entry for entry in entries if _lacks_file(entry, folder)]
    for entry in gone:
        with suppress(Lost):  # another run has just noticed it
            batch.move(batch.item(entry.number), Stage.COMPLETED, reason=_reason(entry))
    taken = {name for _, name in batch.files()}
    for entry in back:
        name = entry.path or ""
        if batch.entry(entry.number) == entry and name not in taken:
            taken.add(name)
            with suppress(Lost):
                batch.move(batch.item(entry.number), Stage.DOWNLOADED, reason=None)
    return [as_found(entry, folder) for entry in gone]


def _missing(batch: Batch, folder: Path) -> Iterator[int]:
    return (number for number, name in batch.files() if _is_missing(folder / name))


def _lacks_file(entry: Entry, folder: Path) -> bool:
    if entry.path is None:
        return False
    if entry.state is Stage.COMPLETED:
        return not is_back(entry, folder)
    return entry.state is Stage.DOWNLOADED and _is_missing(folder / entry.path)


def _is_same(entry: Entry, folder: Path) -> bool:
    """Whether nobody works on *entry*, and the file that it has lost is in *folder* again."""
    if entry.owner is not None or entry.path is None or not is_back(entry, folder):
        return False
    with ignoring_errors(OSError):
        if checksum(folder / entry.path) == entry.sha256:
            return True
    return False


def _is_missing(path: Path) -> bool:
    """Whether there is nothing at *path*. If that cannot be found out, something may be there."""
    with ignoring_errors(OSError):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
    return False


def _reason(entry: Entry) -> str:
    return f"{entry.path} is missing"
