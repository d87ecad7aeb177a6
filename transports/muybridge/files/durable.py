"""Write to the disk so that nothing is lost without an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write the whole of *data* to an unbuffered *file*.

    A nearly full disk takes only the beginning and raises nothing: only the count shows it.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


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
