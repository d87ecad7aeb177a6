"""What the library asks of the disk, seen from within its process, and so without strace.

Python tells its audit hooks of files and folders that are made, linked, renamed and removed.
`os.fsync` is wrapped, and `sqlite3.connect`, whose connections tell of their commits. That is
enough to see in which order the library writes. Only strace sees what SQLite asks for by itself.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

import attrs
import pytest

from .recording import steady


@attrs.define
class Audit:
    """Notes the order, in the words of `recording.order`. It cannot be ended.

    Args:
        root: The folder of interest.
        note: Called with each line.
    """

    root: Path
    note: Callable[[str], None]
    _synced: dict[int, int] = attrs.field(factory=dict[int, int], init=False)

    def begin(self) -> None:
        """Begin to note."""
        sys.addaudithook(self._hear)
        fsync, connect = os.fsync, sqlite3.connect

        def noted_fsync(handle: int) -> None:
            fsync(handle)
            self._sync(handle)

        def noted_connect(path: Path, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(path, **options)
            connection.set_trace_callback(partial(self._statement, path))
            return connection

        process = pytest.MonkeyPatch()
        process.setattr(os, "fsync", noted_fsync)
        process.setattr(sqlite3, "connect", noted_connect)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note what is about to be done, if it will not fail."""
        match event, arguments:
            case "open", (path, _, int(flags)) if flags & os.O_CREAT:
                if not isinstance(path, int) and not os.path.lexists(path):
                    self._note("make-file {}", path)
            case "os.mkdir", (path, *_) if not os.path.lexists(path):
                self._note("make-folder {}", path)
            case "os.remove" | "os.rmdir", (path, *_) if os.path.lexists(path):
                self._note("remove {}", path)
            case "os.link", (path, to, *_) if not os.path.lexists(to):
                self._note("link {} -> {}", path, to)
            case "os.rename", (path, to, *_):
                self._note("rename {} -> {}", path, to)
            case _:
                pass

    def _statement(self, database: Path, statement: str) -> None:
        changed = database.with_name(f"{database.name}-journal").exists()
        if statement == "COMMIT" and changed and database.suffix != ".new":
            self._note("commit {}", database)

    def _sync(self, handle: int) -> None:
        found = os.fstat(handle)
        is_longer = found.st_size != self._synced.get(found.st_ino, 0) and S_ISREG(found.st_mode)
        self._synced[found.st_ino] = found.st_size
        path = Path(f"/proc/self/fd/{handle}").readlink()
        self._note("sync {}" + (" (longer)" if is_longer else ""), path)

    def _note(self, line: str, *paths: Any) -> None:
        places = [Path(os.fsdecode(path)).absolute() for path in paths]
        if all(place.is_relative_to(self.root) for place in places):
            names = [place.relative_to(self.root).as_posix() for place in places]
            self.note(steady(line.format(*names)))
