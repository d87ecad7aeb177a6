"""Write to the disk so that nothing is lost without an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from muybridge.signals import ignoring_errors


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write the whole of *data* to an unbuffered *file*.

    A nearly full disk takes only the beginning and raises nothing: only the count shows it.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def make_folders(folder: Path, *, mode: int = 0o777) -> None:
    """Create *folder* and every missing one above it, and flush each new name to the disk.

    Args:
        folder: The folder.
        mode: Its permissions, if it is new. Those above it have the usual ones.
    """
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(mode=mode, exist_ok=True)
    sync_folders(folder.parent)


def sync_names(folder: Path) -> None:
    """Flush the name of *folder*, and of every folder above it, to the disk.

    Whoever has just made them, such as another process or the user's program, may not have done so.

    Raises:
        OSError: The name of *folder* cannot be flushed. Those above are flushed as far as possible:
            a user may be unable to open them, or their file system to flush them.
    """
    place = folder.resolve()
    for above in place.parents:
        with ignoring_errors(PermissionError if above == place.parent else OSError):
            sync_folders(above)


def sync_folders(*folders: Path) -> None:
    """Flush the names in *folders* to the disk, if the system can."""
    if os.name != "posix":
        return
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
