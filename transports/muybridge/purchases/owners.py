"""Who is at work with a store: each owner holds a lock on a file of its own while it lives.

The operating system releases the lock when the process ends, even if it is killed. A process id
would not do, because it may be reused. Within a process, an owner lives as long as anything refers
to its store, and so at least until its last request has ended.
"""

from __future__ import annotations

import os
import secrets
import weakref
from pathlib import Path
from typing import BinaryIO

from muybridge.files.locks import check_record_locks, lock
from muybridge.signals import ignoring_errors


class Owners:
    """The owners of the purchases of one store, one of them for this object.

    Args:
        folder: Where their files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: str | None = None

    def mine(self) -> str:
        """Return the name of this owner, which holds its lock from now on. Call it in turns.

        Raises:
            OSError: The file cannot be created or locked.
        """
        if self._mine is None:
            self._mine = self._enlist()
        return self._mine

    def lives(self, name: str) -> bool:
        """Whether the owner *name* is alive. The file of a dead one is removed.

        Raises:
            OSError: Its file cannot be opened.
        """
        path = self._path(name)
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            return False
        with file:
            # The file is removed while it is locked, so an owner that has just created it
            # (`_enlist`) sees afterwards that it is gone, and takes another name.
            if not lock(file):
                return True
            with ignoring_errors(OSError):
                path.unlink()
            return False

    def _enlist(self) -> str:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            name = secrets.token_hex(8)
            path = self._path(name)
            number = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            file = os.fdopen(number, "r+b", buffering=0)
            try:
                check_record_locks(file)
                # Another process may have looked at it, and removed it, before it was locked.
                is_mine = lock(file) and path.exists()
            except BaseException:  # a disk that cannot lock
                file.close()
                path.unlink(missing_ok=True)
                raise
            if is_mine:
                weakref.finalize(self, _leave, os.getpid(), path, file)
                return name
            file.close()

    def _path(self, name: str) -> Path:
        return self._folder / f"owner-{name}"


def _leave(pid: int, path: Path, file: BinaryIO) -> None:
    """Remove the file of an owner, unless it is that of a forked child's parent."""
    if pid == os.getpid():
        with ignoring_errors(OSError):
            path.unlink()
    file.close()
