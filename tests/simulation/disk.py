"""The disk under a world's own files: what is synced, what a power cut leaves, and no more room.

The files are real, and processes read and write them as ever. Beside them the disk remembers what
would be there after a power cut: the content of each file when it was last synced, and the names in
each folder when that was. A kill loses nothing of what was written. A power cut may lose whatever
was not synced, or keep it, or keep a part of it:

- Names come and go by operations: a file is created, linked, renamed, removed. Each happens whole
  or not at all. On an ordered disk those that survive are the first ones. On any other disk each
  may survive without those before it that concern other names.
- The content of a file is what was synced, or what was written, or some blocks of each. On a disk
  that is not ordered, a file may have grown by zeros.

SQLite writes its files itself. A power cut leaves of them what a kill does: how SQLite stands power
cuts is another matter. Their names are like those of all files.

A disk that fills up refuses what is new: names, and bytes beyond the end of a file, of which it may
take some. It takes what replaces bytes that are there.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs

from .world import World

BLOCK: Final = 512
"""Bytes that are written together or not at all."""


@attrs.define(eq=False)
class Node:
    """A file or a folder, whatever its names are.

    Args:
        is_folder: Whether it is a folder.
        synced: The content of a file when it was last synced.
    """

    is_folder: bool
    synced: bytes = b""
    last: bytes = b""
    """What was in it when its last name was removed."""
    is_foreign: bool = False
    """Whether SQLite writes it."""


Names = dict[str, Node]
Operation = dict[str, Node | None]
"""Names that change together: what each of them stands for afterwards."""


@attrs.define(eq=False)
class Disk:
    """A disk.

    Args:
        world: The world.
        root: The folder that is on it.
        faults: Returns how often it has no room, from 0 to 1.
    """

    world: World
    root: Path
    faults: Callable[[], float] = lambda: 0.0
    _names: Names = attrs.field(factory=Names)
    _synced: Names = attrs.field(factory=Names)
    _pending: list[Operation] = attrs.field(factory=list[Operation])
    """What has happened to names since, in its order."""
    _inodes: dict[int, Node] = attrs.field(factory=dict[int, Node])

    @property
    def parts(self) -> list[tuple[object, str, object]]:
        """What takes the place of parts of the standard library."""
        return [
            (os, "open", self._open),
            (os, "fdopen", self._open_file),
            (io, "open", self._open_file),
            (builtins, "open", self._open_file),
            (os, "fsync", self._sync),
            (os, "link", self._link),
            (os, "rename", self._rename),
            (os, "replace", self._rename),
            (os, "unlink", self._unlink),
            (os, "remove", self._unlink),
            (os, "mkdir", self._make_folder),
            (os, "rmdir", self._remove_folder),
        ]

    def leave_to_sqlite(self, path: Any) -> None:
        """Note that SQLite writes the file at *path*."""
        node = self._names.get(str(path))
        if node is not None:
            node.is_foreign = True

    def cut(self) -> None:
        """Cut the power. All processes have ended."""
        is_ordered = self.world.chance(0.5)
        names = self._surviving_names(is_ordered=is_ordered)
        contents = {
            node: self._surviving_content(node, is_ordered=is_ordered)
            for node in names.values()
            if not node.is_folder
        }
        self._put(names, contents)
        self._names, self._synced, self._pending = names, dict(names), []

    # What processes do.

    def _open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        if not self._has(path):
            return _open(path, flags, *more, **named)
        is_new = bool(flags & os.O_CREAT) and self._begin_name(path)
        number = _open(path, flags, *more, **named)
        if is_new:
            self._add(path, number)
        return number

    def _open_file(
        self, file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any
    ) -> Any:
        is_ours = isinstance(file, int) or self._has(file)
        if not is_ours or not set(mode) & set("wxa+"):
            return _open_file(file, mode, buffering, *more, **named)
        is_new = not isinstance(file, int) and mode[0] in "wxa" and self._begin_name(file)
        raw = _File(file, mode.replace("b", "").replace("t", ""), self)
        if is_new:
            self._add(file, raw.fileno())
        if buffering == 0:
            return raw
        buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, **named)

    def _sync(self, file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        self.world.breathe()
        found = os.fstat(number)
        node = self._inodes.get(found.st_ino)
        if node is None and found.st_ino != self.root.stat().st_ino:
            return
        self._fail_at_times("a sync fails", None)
        if node is not None and not node.is_folder:
            with _open_file(f"/proc/self/fd/{number}", "rb") as content:
                node.synced = content.read()
            return
        folder = Path(f"/proc/self/fd/{number}").readlink()
        left: list[Operation] = []
        for operation in self._pending:
            if any(Path(name).parent == folder for name in operation):
                _apply(operation, self._synced)
            else:
                left.append(operation)
        self._pending = left

    def _link(self, source: Any, target: Any, **named: Any) -> None:
        self._begin_name(target)
        _link(source, target, **named)
        if self._has(target) and str(source) in self._names:
            self._happen({str(target): self._names[str(source)]})

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        self.world.breathe()
        self._remember(target)
        _rename(source, target, **named)
        if self._has(target) and str(source) in self._names:
            self._happen({str(source): None, str(target): self._names[str(source)]})

    def _unlink(self, path: Any, **named: Any) -> None:
        self.world.breathe()
        self._remember(path)
        _unlink(path, **named)
        if str(path) in self._names:
            self._happen({str(path): None})

    def _make_folder(self, path: Any, *more: Any, **named: Any) -> None:
        is_new = self._begin_name(path)
        _make_folder(path, *more, **named)
        if is_new and self._has(path):
            node = self._inodes[Path(path).stat().st_ino] = Node(is_folder=True)
            self._happen({str(path): node})

    def _remove_folder(self, path: Any, **named: Any) -> None:
        self.world.breathe()
        _remove_folder(path, **named)
        if str(path) in self._names:
            self._happen({str(path): None})

    # What the disk knows.

    def _has(self, path: Any) -> bool:
        return str(path).startswith(f"{self.root}/")

    def _begin_name(self, path: Any) -> bool:
        """Return whether *path* is new, if there is room for it."""
        if not self._has(path):
            return False
        self.world.breathe()
        if os.path.lexists(path):
            return False
        self._fail_at_times("there is no room for a name", path)
        return True

    def _fail_at_times(self, what: str, path: Any) -> None:
        if self.world.current is not None and self.world.chance(self.faults()):
            self.world.count(what)
            self.world.tell(f"{what}: {path}")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path and str(path))

    def _add(self, path: Any, number: int) -> None:
        node = self._inodes[os.fstat(number).st_ino] = Node(is_folder=False)
        self._happen({str(path): node})

    def _happen(self, operation: Operation) -> None:
        _apply(operation, self._names)
        self._pending.append(operation)

    def _remember(self, path: Any) -> None:
        """Remember what is in a file that is about to lose a name."""
        node = self._names.get(str(path))
        if node is not None and Path(path).exists():
            node.last = _content(str(path))

    # What a power cut leaves.

    def _surviving_names(self, *, is_ordered: bool) -> Names:
        world = self.world
        names, lost = dict(self._synced), set[str]()
        first = world.random.randrange(len(self._pending) + 1)
        for number, operation in enumerate(self._pending):
            survives = number < first if is_ordered else world.chance(0.5)
            if survives and not lost.intersection(operation):
                _apply(operation, names)
            else:
                world.count("a power cut loses a name")
                lost.update(operation)
        root = str(self.root)
        return {
            name: node
            for name, node in names.items()
            if all(
                str(above) in names
                for above in Path(name).parents
                if str(above).startswith(f"{root}/")
            )
        }

    def _surviving_content(self, node: Node, *, is_ordered: bool) -> bytes:
        old, new = node.synced, self._present(node)
        if node.is_foreign or new == old:
            return new
        chance = self.world.random
        self.world.count("a power cut meets a file that is not synced")
        kept = chance.choice(("old", "new", "torn"))
        if kept != "torn":
            return old if kept == "old" else new
        size = chance.choice((len(old), len(new)))
        grown = new if is_ordered else bytes(len(new))
        under = old + grown[len(old) :]
        blocks = (
            chance.choice((under, new))[start : start + BLOCK] for start in range(0, size, BLOCK)
        )
        return b"".join(blocks)[:size]

    def _present(self, node: Node) -> bytes:
        path = next((name for name, one in self._names.items() if one is node), None)
        return node.last if path is None else _content(path)

    def _put(self, names: Names, contents: dict[Node, bytes]) -> None:
        """Let these names and contents be what is on the disk."""
        shelf = Path(tempfile.mkdtemp(dir=self.root.parent))
        places: dict[Node, Path] = {}
        present = {node: name for name, node in self._names.items() if not node.is_folder}
        for number, (node, content) in enumerate(contents.items()):
            places[node] = place = shelf / str(number)
            if node in present:
                _link(present[node], place)
            if not (node in present and node.is_foreign):
                with _open_file(place, "wb") as file:
                    file.write(content)
        folders = [name for name, node in self._names.items() if node.is_folder]
        for name in set(self._names).difference(folders):
            _unlink(name)
        for name in set(folders).difference(names):
            shutil.rmtree(name, ignore_errors=True)
        for name, node in sorted(names.items()):
            if not node.is_folder:
                _link(places[node], name)
            elif not Path(name).is_dir():
                _make_folder(name)
        shutil.rmtree(shelf)
        self._inodes = {os.lstat(name).st_ino: node for name, node in names.items()}


class _File(io.FileIO):
    """An open file of a disk that may fill up."""

    def __init__(self, file: Any, mode: str, disk: Disk) -> None:
        super().__init__(file, mode)
        self._disk = disk

    def write(self, data: Any) -> int:
        """Write *data*, or a part of it if there is no more room."""
        disk = self._disk
        disk.world.breathe()
        view = memoryview(data).cast("B")
        grows = self.tell() + len(view) > os.fstat(self.fileno()).st_size
        if grows and disk.world.current is not None and disk.world.chance(disk.faults()):
            view = view[: disk.world.random.randrange(len(view))]
            disk.world.count("a write finds no room")
            disk.world.tell("a write finds no room")
            if not view:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(view) or 0


def _apply(operation: Operation, names: Names) -> None:
    for name, node in operation.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _content(path: str) -> bytes:
    with _open_file(path, "rb") as file:
        content: bytes = file.read()
    return content


_open: Final = os.open
_open_file: Final = io.open
_link: Final = os.link
_rename: Final = os.replace
_unlink: Final = os.unlink
_make_folder: Final = os.mkdir
_remove_folder: Final = os.rmdir
