"""A file lock that the operating system releases when its holder ends, even if it is killed."""

from __future__ import annotations

import sys
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    def lock(file: BinaryIO) -> bool:
        """Lock *file* until it is closed, and return whether that succeeded."""
        # Windows forbids others to read locked bytes, so lock one far beyond the content.
        position = file.seek(0, 1)
        file.seek(1 << 40)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(position)
        return True

    def check_record_locks(file: BinaryIO) -> None:
        """Do nothing: here, `lock` uses the locks that SQLite uses."""

    def is_locked(file: BinaryIO) -> bool:
        """Whether another process has locked *file*, or looks at it now. Close it afterwards."""
        return not lock(file)

else:
    import fcntl

    def lock(file: BinaryIO) -> bool:
        """Lock *file* until it is closed, and return whether that succeeded."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def check_record_locks(file: BinaryIO) -> None:
        """Check that the disk of *file*, which nobody has locked, has the locks that SQLite uses.

        SQLite takes a disk that refuses them for one on which others are writing.

        Raises:
            OSError: It does not.
        """
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_UN)
        except (BlockingIOError, PermissionError):
            pass  # somebody looks at it: the disk can lock

    def is_locked(file: BinaryIO) -> bool:
        """Whether another process has locked *file*. Close it afterwards."""
        try:
            # Whoever else looks is not in the way, and is told apart from whoever has locked it.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(file, fcntl.LOCK_UN)
        return False
