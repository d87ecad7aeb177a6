"""Give files their names in a batch's folder, which may hold other people's files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import attrs

from muybridge.batch.journal import sync_folders


@attrs.frozen
class Placed:
    """A result under its name.

    Args:
        path: Where it is.
        size: Its bytes.
        sha256: Its checksum.
        avoided: The intended name, if another file had it; or "".
    """

    path: Path
    size: int
    sha256: str
    avoided: str = ""


def place(saved: Path, folder: Path, stem: str, is_recorded: Callable[[str], bool]) -> Placed:
    """Move *saved* into *folder* durably, under a name that no other file has.

    If a file with the same content belongs to no other item, an earlier run placed it and ended
    before it could record it: it becomes this item's.

    Args:
        saved: A whole file on the same disk.
        folder: The destination.
        stem: The intended name, without the suffix.
        is_recorded: Whether a name is recorded for another item.

    Raises:
        OSError: It cannot be moved.
    """
    size, sha256 = saved.stat().st_size, _checksum(saved)

    def is_ours(path: Path) -> bool:
        return _holds(path, size, sha256) and not is_recorded(path.name)

    wanted = f"{stem}{saved.suffix}"
    path = link(saved, folder / wanted, is_ours)
    sync_folders(folder)
    saved.unlink()
    return Placed(path, size, sha256, avoided="" if path.name == wanted else wanted)


def link(file: Path, wanted: Path, is_ours: Callable[[Path], bool]) -> Path:
    """Link *file* to the path *wanted*, or to a numbered one beside it, and return which.

    Unlike a renamed file, a linked one never takes the place of another. A path that is taken
    is left as it is, and returned if *is_ours* says that it is the file's already.

    Raises:
        OSError: It cannot be linked.
    """
    path, number = wanted, 1
    while True:
        try:
            os.link(file, path)
        except FileExistsError:
            if is_ours(path):
                return path
        else:
            return path
        number += 1
        path = wanted.with_stem(f"{wanted.stem}-{number}")


def _holds(path: Path, size: int, sha256: str) -> bool:
    """Whether *path* is a regular file with this content. Links and pipes are not opened."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == size and _checksum(path) == sha256


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
