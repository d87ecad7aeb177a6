"""Files get their names in a batch's folder, where files of other people may be."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import attrs

from muybridge.batch.journal import sync_folders

_MOST_NAMES = 1000


@attrs.frozen
class Placed:
    """A result under its name.

    Args:
        path: Where it is.
        size: Its bytes.
        sha256: Its checksum.
        avoided: The name that it was to have, if another file had that; or "".
    """

    path: Path
    size: int
    sha256: str
    avoided: str = ""


def place(saved: Path, folder: Path, stem: str, is_recorded: Callable[[str], bool]) -> Placed:
    """Move *saved* into *folder*, durably, under a name that no other file has.

    A file with the same content that no other item has was put there by a run that ended before the
    journal said so: it becomes this item's.

    Args:
        saved: A whole file on the same disk.
        folder: Where it goes.
        stem: The name that it should have, without the suffix.
        is_recorded: Whether a name is recorded for another item.

    Raises:
        OSError: It cannot be moved.
    """
    size, sha256 = saved.stat().st_size, _checksum(saved)
    wanted = f"{stem}{saved.suffix}"
    for name in (wanted, *(f"{stem}-{n}{saved.suffix}" for n in range(2, _MOST_NAMES))):
        path = folder / name
        try:
            # Unlike a renamed file, a linked one never takes the place of another.
            os.link(saved, path)
        except FileExistsError:
            if not _holds(path, size, sha256) or is_recorded(name):
                continue
        sync_folders(folder)
        saved.unlink()
        return Placed(path, size, sha256, avoided="" if name == wanted else wanted)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder / wanted))


def _holds(path: Path, size: int, sha256: str) -> bool:
    """Whether *path* is a file of its own with this content. Links and pipes are not opened."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == size and _checksum(path) == sha256


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
