"""Downloaded results whose files are gone: the next run downloads them again.

Until then they count as completed, which is what a task is called whose result is to be downloaded.
The store keeps the name and the checksum of such a file. So if the service no longer has it, a
run recognizes the file that is put back.

Only a batch in a folder looks for its files: its store may be in the same folder, so one cannot be
there without the other. A shared batch's folder may be on another machine, and S3 would have to be
asked about each result.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.results.items import Items, Outline
from muybridge.batch.results.places.file_names import checksum
from muybridge.purchases.errors import Lost
from muybridge.signals import ignoring_errors
from muybridge_protocol.purchases import Stage

MOST_LOOKED_FOR: Final = 100_000
"""Most results for whose files a status looks. To look for a million takes longer than anybody
waits for a few counts; runs and contact sheets read each item anyway."""


def counts_as_found(items: Items, folder: Path) -> tuple[dict[Stage, int], int]:
    """Return how many items are in each state, and how many of the completed have lost their file.

    Empty states are left out. If there are very many results, nobody looks for their files.
    """
    found = items.counts()
    if sum(found.get(stage, 0) for stage in (Stage.COMPLETED, Stage.DOWNLOADED)) > MOST_LOOKED_FOR:
        return dict(found), 0
    noticed = sum(lacks_file(one, folder) for one in items.outlines(Stage.COMPLETED))
    missing = sum(1 for _ in _missing(items, folder))
    if not noticed and not missing:
        return dict(found), 0
    counts = Counter(items.counts())
    missing = min(missing, counts[Stage.DOWNLOADED])  # a run may just have noticed it
    counts += Counter({Stage.DOWNLOADED: -missing, Stage.COMPLETED: missing})
    missing = min(missing + noticed, counts[Stage.COMPLETED])  # or have downloaded it
    return {state: counts[state] for state in Stage if counts[state]}, missing


def as_found(entry: Entry, folder: Path) -> Entry:
    """Return *entry* as it is without its file, if that is not in *folder* or not checked yet."""
    back = is_back(entry, folder)
    if not back and not lacks_file(entry, folder):
        return entry
    reason = _reason(entry) if entry.state is Stage.DOWNLOADED else entry.reason
    if back and reason == _reason(entry):
        reason = f"{entry.path} is there again, and the next run checks it"
    return attrs.evolve(
        entry, state=Stage.COMPLETED, reason=reason, path=None, size=None, sha256=None
    )


def is_back(item: Entry | Outline, folder: Path) -> bool:
    """Whether *item* is completed and its missing file is in *folder* again."""
    if item.state is not Stage.COMPLETED or item.path is None:
        return False
    with ignoring_errors(OSError):
        status = (folder / item.path).stat()
        if stat.S_ISREG(status.st_mode) and status.st_size == item.size:
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
    missing = [entry for entry in entries if entry.owner is None and lacks_file(entry, folder)]
    for entry in missing:
        with suppress(Lost):  # another run has just noticed it
            batch.move(batch.item(entry.number), Stage.COMPLETED, reason=_reason(entry))
    names = {entry.path for entry in back}
    downloaded = batch.outlines(Stage.DOWNLOADED) if back else ()
    paths = {one.path for one in downloaded if one.path in names}
    for entry in back:
        # Checksums take long: another run may have done something for it meanwhile.
        if batch.entry(entry.number) == entry and entry.path not in paths:
            paths.add(entry.path)
            with suppress(Lost):
                batch.move(batch.item(entry.number), Stage.DOWNLOADED, reason=None)
    return [as_found(entry, folder) for entry in missing]


def _missing(items: Items, folder: Path) -> Iterator[int]:
    return (one.number for one in items.outlines(Stage.DOWNLOADED) if lacks_file(one, folder))


def lacks_file(item: Entry | Outline, folder: Path) -> bool:
    """Whether *item* was downloaded to *folder*, and its file is not there or not checked yet."""
    if item.path is None:
        return False
    if item.state is Stage.COMPLETED:
        return not is_back(item, folder)
    return item.state is Stage.DOWNLOADED and _is_missing(f"{folder}{os.sep}{item.path}")


def _is_same(entry: Entry, folder: Path) -> bool:
    """Whether nobody works on *entry*, and the file that it has lost is in *folder* again."""
    if entry.owner is not None or entry.path is None or not is_back(entry, folder):
        return False
    with ignoring_errors(OSError):
        if checksum(folder / entry.path) == entry.sha256:
            return True
    return False


def _is_missing(path: str) -> bool:
    """Whether there is nothing at *path*. If that cannot be found out, something may be there."""
    if os.access(path, os.F_OK):  # which takes a third of the time of what follows
        return False
    with ignoring_errors(OSError):
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
    return False


def _reason(entry: Entry) -> str:
    return f"{entry.path} is missing"
