"""Files that appear whole or not at all: each is a draft beside its place until it is complete.

A draft is locked as long as its writer lives, so whoever can lock one knows that its writer was
killed, and may remove it.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from muybridge.files.locks import lock
from muybridge.signals import ignoring_errors

_SUFFIX: Final = ".new"
"""How the names of all drafts end."""


@contextmanager
def draft(path: Path) -> Generator[BinaryIO, None, None]:
    """Provide a new file beside *path*. Whatever is left under its name at the end is removed.

    Raises:
        OSError: It cannot be created.
    """
    while True:
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}{_SUFFIX}")
        with new.open("xb") as file:
            try:
                # Another process may have taken it for one that was left behind, before the lock.
                if lock(file) and new.exists():
                    yield file
                    return
            finally:
                with ignoring_errors(OSError):
                    new.unlink(missing_ok=True)


def complete(file: BinaryIO) -> Path:
    """Hand the content of a draft to the system, and return where it is, to be named."""
    file.flush()
    if sys.platform == "win32":  # which names no file that is open
        file.close()
    return Path(file.name)


def sweep(folder: Path, name: str = "") -> None:
    """Remove the drafts that killed processes have left in *folder*.

    Args:
        folder: The folder.
        name: The file whose drafts are meant, or "" for any file.
    """
    beginning = f".{name}." if name else "."
    with os.scandir(folder) as entries:  # a batch's folder may hold a million results
        names = [one.name for one in entries if _is_draft(one.name, beginning)]
    for left in names:
        path = folder / left
        with ignoring_errors(OSError), path.open("r+b") as file:
            if lock(file):
                path.unlink()


def _is_draft(name: str, beginning: str) -> bool:
    return name.startswith(beginning) and name.endswith(_SUFFIX)
