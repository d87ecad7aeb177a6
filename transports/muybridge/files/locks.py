"""A lock that the operating system releases when its holder ends, however that happens."""

from __future__ import annotations

import sys
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    def lock(file: BinaryIO) -> bool:
        """Lock *file* until it is closed, and return whether that succeeded."""
        # A byte far behind the content is locked, because Windows forbids others to read it.
        position = file.seek(0, 1)
        file.seek(1 << 40)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(position)
        return True

else:
    import fcntl

    def lock(file: BinaryIO) -> bool:
        """Lock *file* until it is closed, and return whether that succeeded."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
