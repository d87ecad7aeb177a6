"""Give files their names in a batch's folder, which may hold other people's files."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Container, Iterator
from itertools import count, takewhile
from pathlib import Path, PurePath
from typing import Final

import attrs

from muybridge.files.durable import sync_folders

_NUMBER: Final = re.compile(r"-\d+\Z")


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


def taken_names(saved: Path, folder: Path, stem: str) -> list[str]:
    """Return the names that files in *folder* have, of those that `place` tries for *saved*."""
    tried = numbered(folder / f"{stem}{saved.suffix}")
    return [path.name for path in takewhile(os.path.lexists, tried)]


def place(saved: Path, folder: Path, stem: str, leftovers: Container[str]) -> Placed:
    """Move *saved* into *folder* durably, under a name that no other file has.

    If one of *leftovers* has the same content, an earlier run placed it and ended before it could
    record it: it becomes this item's.

    Args:
        saved: A whole file on the same disk.
        folder: The destination.
        stem: The intended name, without the suffix.
        leftovers: The names that an earlier run may have given and that no other item has.

    Raises:
        OSError: It cannot be moved.
    """
    size, sha256 = saved.stat().st_size, checksum(saved)

    def is_ours(path: Path) -> bool:
        return path.name in leftovers and _holds(path, size, sha256)

    wanted = folder / f"{stem}{saved.suffix}"
    path, _ = link(saved, wanted, is_ours)
    # The new name is on the disk before the old one goes, so a power cut leaves at least one.
    sync_folders(folder)
    saved.unlink()
    return Placed(path, size, sha256, avoided="" if path == wanted else wanted.name)


def link(file: Path, wanted: Path, is_ours: Callable[[Path], bool]) -> tuple[Path, bool]:
    """Link *file* to the path *wanted*, or to a numbered one beside it.

    Unlike a renamed file, a linked one never takes the place of another. A path that is taken
    is left as it is, and returned if *is_ours* says that it is the file's already.

    Returns:
        The path, and whether the file was linked to it.

    Raises:
        OSError: It cannot be linked.
    """
    paths = numbered(wanted)
    while True:
        path = next(paths)
        try:
            os.link(file, path)
        except FileExistsError:
            if is_ours(path):
                return path, False
        else:
            return path, True


def numbered(wanted: Path) -> Iterator[Path]:
    """Yield *wanted*, and then the same with the numbers from 2 on."""
    yield wanted
    for number in count(2):
        yield wanted.with_stem(f"{wanted.stem}-{number}")


def stems_of(name: str) -> list[str]:
    """Return the stems of which `numbered` makes the file *name*, with whatever suffix."""
    path = PurePath(name)
    stems = [path.stem, _NUMBER.sub("", path.stem)]
    return [*stems, *(f"{stem}{path.suffix}" for stem in stems)]  # a file may have no suffix


def _holds(path: Path, size: int, sha256: str) -> bool:
    """Whether *path* is a regular file with this content. Links and pipes are not opened."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size == size and checksum(path) == sha256


def checksum(path: Path) -> str:
    """Return the SHA-256 of the file at *path*, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
