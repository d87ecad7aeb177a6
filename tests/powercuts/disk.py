"""A disk, and the states in which a power cut may leave it. The package's head has the theory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum, StrEnum, auto
from pathlib import Path
from random import Random
from typing import Final

import attrs

SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""
_TOP: Final = 0
"""The number of the folder that holds everything. It was there before."""
NOTED_NUMBER: Final = re.compile(rb'(?<="inode": )\d+')
"""Where the note of an unfinished download says which file it is about."""


@attrs.frozen
class MakeFolder:
    """A new folder."""

    path: str


@attrs.frozen
class MakeFile:
    """A new, empty file."""

    path: str


@attrs.frozen
class Write:
    """Bytes written to a file from *offset* on."""

    path: str
    offset: int
    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Resize:
    """Another length of a file."""

    path: str
    size: int


@attrs.frozen
class Link:
    """A second name of a file."""

    path: str
    to: str


@attrs.frozen
class Rename:
    """Another name of a file, in the same folder."""

    path: str
    to: str


@attrs.frozen
class Remove:
    """A name that is removed."""

    path: str


@attrs.frozen
class Sync:
    """A file or folder that is certainly on the disk afterwards."""

    path: str


@attrs.frozen
class Mark:
    """Something that happened outside the disk: see `service.py`."""

    text: str


Operation = MakeFolder | MakeFile | Write | Resize | Link | Rename | Remove | Sync | Mark


class Model(StrEnum):
    """What a disk promises about what was not synced."""

    STRICT = "strict"
    ORDERED = "ordered"


class Fate(Enum):
    """What becomes of pending data."""

    KEPT = auto()
    LOST = auto()
    BLANK = auto()
    """The file has the length, and zeros instead of the data."""
    HEAD = auto()
    """Only the first half of the sectors is written."""
    TAIL = auto()
    """Only the second half of the sectors is written."""


@attrs.frozen(eq=False)
class _Name:
    """A pending change of names: *path* is now the inode *number*, or nothing; *gone* is gone."""

    path: str
    number: int | None
    gone: str | None = None

    @property
    def folder(self) -> str:
        return folder_of(self.path)

    def apply(self, names: dict[str, int]) -> None:
        if self.gone is not None:
            names.pop(self.gone, None)
        if self.number is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.number


@attrs.frozen(eq=False)
class _Data:
    """Pending data of an inode, or its new length.

    Args:
        number: The inode.
        offset: Where the data begins, or the new length.
        data: The data, or None.
        grows: Whether the file is longer afterwards.
    """

    number: int
    offset: int
    data: bytes | None
    grows: bool

    def apply(self, content: bytearray, fate: Fate = Fate.KEPT) -> None:
        if fate is Fate.LOST:
            return
        if self.data is None:
            _resize(content, self.offset)
            return
        end = self.offset + len(self.data)
        _resize(content, max(end, len(content)))
        first = self.offset // SECTOR
        middle = (first + (-(-end // SECTOR) - first + 1) // 2) * SECTOR  # one sector is the head
        match fate:
            case Fate.BLANK:
                return
            case Fate.HEAD:
                start, stop = self.offset, min(middle, end)
            case Fate.TAIL:
                start, stop = min(middle, end), end
            case _:
                start, stop = self.offset, end
        content[start:stop] = self.data[start - self.offset : stop - self.offset]


@attrs.define
class _Inode:
    """A file or folder: what is certainly on the disk, and its length as programs see it."""

    is_folder: bool = False
    synced: bytes = b""
    pending: list[_Data] = attrs.field(factory=list[_Data])
    size: int = 0


@attrs.frozen
class State:
    """What is left after a cut.

    Args:
        title: Which of the pending changes were lost.
        names: The number of each file and folder, by path.
        contents: The bytes of each file, by number. Folders have none.
    """

    title: str
    names: dict[str, int]
    contents: dict[int, bytes]

    @property
    def digest(self) -> bytes:
        """What is the same for equal states."""
        known = hashlib.blake2b()
        for path, number in sorted(self.names.items()):
            known.update(f"{path}\0{number}\0".encode())
            known.update(self.contents.get(number, b"folder"))
        return known.digest()

    def certain(self, texts: Iterable[str]) -> frozenset[str]:
        """Return those of *texts* that are in a database, in a committed transaction."""
        committed = [
            self.contents[number]
            for path, number in self.names.items()
            if path.endswith(".sqlite3") and f"{path}-journal" not in self.names
        ]
        return frozenset(
            text for text in texts if any(text.encode() in content for content in committed)
        )

    def build(self, root: Path) -> None:
        """Make the files and folders below *root*, which is empty."""
        made: dict[int, Path] = {}
        for path, number in sorted(self.names.items()):
            place = root / path
            if number not in self.contents:
                place.mkdir()
            elif number in made:
                place.hardlink_to(made[number])
            else:
                place.write_bytes(self.contents[number])
                made[number] = place
        for path in self.names:
            if path.endswith(".part.json"):
                _renumber(root / path, made)


def _renumber(note: Path, made: dict[int, Path]) -> None:
    """Give the note of an unfinished download the inode that its file has here."""

    def here(found: re.Match[bytes]) -> bytes:
        file = made.get(int(found[0]))
        return b"0" if file is None else str(file.stat().st_ino).encode()

    note.write_bytes(NOTED_NUMBER.sub(here, note.read_bytes()))


class Disk:
    """A disk while a program runs.

    Args:
        model: What it promises.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._inodes = {_TOP: _Inode(is_folder=True)}
        self._live: dict[str, int] = {"": _TOP}
        self._synced: dict[str, int] = {"": _TOP}
        self._names: list[_Name] = []
        self._last: _Data | None = None

    def do(self, operation: Operation) -> None:
        """Do an operation, as a program sees it."""
        match operation:
            case MakeFolder(path):
                self._bind(path, self._new(is_folder=True))
            case MakeFile(path):
                self._bind(path, self._new())
            case Write(path, offset, data):
                end = offset + len(data)
                self._change(path, offset, data, max(end, self.size(path)))
            case Resize(path, size):
                self._change(path, size, None, size)
            case Link(path, to):
                self._bind(to, self._live[path])
            case Rename(path, to):
                if folder_of(path) != folder_of(to):
                    raise NotImplementedError(f"{path} leaves its folder for {to}")
                self._bind(to, self._live[path], gone=path)
            case Remove(path):
                self._bind(path, None)
            case Sync(path):
                self._sync(path)
            case Mark():
                pass

    def size(self, path: str) -> int:
        """Return the length of a file."""
        return self._inodes[self._live[path]].size

    def states(self, source: Random) -> Iterator[State]:
        """Yield states in which a power cut may leave it now; equal ones may be among them.

        Args:
            source: Draws the random combinations.
        """
        if self._model is Model.STRICT:
            yield from self._strict(source)
        else:
            yield from self._ordered(source)

    def least(self) -> State:
        """Return the state with all that is certain, and nothing else."""
        return self._state("only what was synced", (), lambda _: Fate.LOST)

    def _new(self, *, is_folder: bool = False) -> int:
        number = len(self._inodes)
        self._inodes[number] = _Inode(is_folder=is_folder)
        return number

    def _bind(self, path: str, number: int | None, gone: str | None = None) -> None:
        change = _Name(path, number, gone)
        change.apply(self._live)
        self._names.append(change)

    def _change(self, path: str, offset: int, data: bytes | None, size: int) -> None:
        number = self._live[path]
        inode = self._inodes[number]
        self._last = _Data(number, offset, data, grows=size > inode.size)
        inode.pending.append(self._last)
        inode.size = size

    def _sync(self, path: str) -> None:
        inode = self._inodes[self._live[path]]
        if not inode.is_folder:
            inode.synced = _applied(inode, lambda _: Fate.KEPT)
            inode.pending.clear()
        everywhere = self._model is Model.ORDERED
        left: list[_Name] = []
        for change in self._names:
            if everywhere or (inode.is_folder and change.folder == path):
                change.apply(self._synced)
            else:
                left.append(change)
        self._names = left

    def _strict(self, source: Random) -> Iterator[State]:
        names = self._names
        yield self._state("everything kept", names, lambda _: Fate.KEPT)
        yield self.least()
        yield self._state("data lost", names, lambda _: Fate.LOST)
        yield self._state("names lost", (), lambda _: Fate.KEPT)
        yield self._state("lengths without data", names, lambda _: Fate.BLANK)
        for name in names:
            others = [other for other in names if other is not name]
            yield self._state(f"only {_shown(name)} lost", others, lambda _: Fate.KEPT)
            yield self._state(f"of the names only {_shown(name)} kept", [name], lambda _: Fate.KEPT)
        for number in [number for number, inode in self._inodes.items() if inode.pending]:
            one = f"the data of {self._called(number)}"
            for title, its, other in (
                (f"only {one} lost", Fate.LOST, Fate.KEPT),
                (f"only {one} blank", Fate.BLANK, Fate.KEPT),
                (f"of the data only {one} kept", Fate.KEPT, Fate.LOST),
            ):
                yield self._state(title, names, _one(number, its, other))
        for torn in (Fate.HEAD, Fate.TAIL):
            for rest in (Fate.KEPT, Fate.LOST):
                title = f"the last write torn ({torn.name}), the rest {rest.name}"
                yield self._state(title, names, self._torn(torn, rest))
        for number in range(2):
            chosen = [name for name in names if source.random() < 0.5]
            yield self._state(
                f"random combination {number}", chosen, lambda _: source.choice([*Fate])
            )

    def _ordered(self, source: Random) -> Iterator[State]:
        for count in range(len(self._names), -1, -1):
            names, title = self._names[:count], f"{count} of {len(self._names)} changes of names"
            yield self._state(f"{title}, all data", names, lambda _: Fate.KEPT)
            yield self._state(f"{title}, no data", names, lambda _: Fate.LOST)
            yield self._state(f"{title}, some data", names, self._grown(source))
        yield self._state("the last write torn", self._names, self._torn(Fate.HEAD, Fate.KEPT))

    def _torn(self, how: Fate, rest: Fate) -> Callable[[_Data], Fate]:
        return lambda change: how if change is self._last else rest

    def _grown(self, source: Random) -> Callable[[_Data], Fate]:
        """Return random fates with which each file has grown in order."""
        stopped: set[int] = set()

        def fate(change: _Data) -> Fate:
            if change.data is not None and not change.grows:
                return source.choice((Fate.KEPT, Fate.LOST, Fate.HEAD, Fate.TAIL))
            if change.number in stopped or source.random() < 0.5:
                stopped.add(change.number)
                return Fate.LOST
            return Fate.KEPT

        return fate

    def _state(self, title: str, kept: Collection[_Name], fate: Callable[[_Data], Fate]) -> State:
        names = dict(self._synced)
        for change in kept:
            change.apply(names)
        reached = {path: number for path, number in names.items() if self._is_reached(path, names)}
        contents = {
            number: self._content(number, fate)
            for number in dict.fromkeys(reached.values())
            if not self._inodes[number].is_folder
        }
        return State(title, reached, contents)

    def _content(self, number: int, fate: Callable[[_Data], Fate]) -> bytes:
        ordered = self._model is Model.ORDERED
        return _applied(self._inodes[number], fate, ordered=ordered)

    def _is_reached(self, path: str, names: dict[str, int]) -> bool:
        """Whether a path can be opened: all folders above it are there, too."""
        if not path or path.endswith("-shm"):
            return False
        above = folder_of(path)
        return not above or (above in names and self._is_reached(above, names))

    def _called(self, number: int) -> str:
        names = [path for path, found in self._live.items() if found == number]
        return names[0] if names else f"a removed file ({number})"


def _one(number: int, its: Fate, other: Fate) -> Callable[[_Data], Fate]:
    return lambda change: its if change.number == number else other


def _applied(inode: _Inode, fate: Callable[[_Data], Fate], *, ordered: bool = False) -> bytes:
    content = bytearray(inode.synced)
    for change in inode.pending:
        if ordered:
            _apply_in_order(change, content, fate(change))
        else:
            change.apply(content, fate(change))
    return bytes(content)


def _apply_in_order(change: _Data, content: bytearray, fate: Fate) -> None:
    """Apply a change to a file that never has a length without its data."""
    if change.data is None:
        change.apply(content, fate)
    elif change.grows:
        half = len(change.data) // 2 // SECTOR * SECTOR
        data = change.data[:half] if fate is Fate.HEAD else change.data
        attrs.evolve(change, data=data).apply(
            content, Fate.LOST if fate is Fate.LOST else Fate.KEPT
        )
    elif change.offset + len(change.data) <= len(content):  # else it was never written
        change.apply(content, fate)


def _shown(change: _Name) -> str:
    if change.number is None:
        return f"the removal of {change.path}"
    return f"the name {change.path}"


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def folder_of(path: str) -> str:
    """Return the folder that has *path*; the one that holds everything is ""."""
    return path.rpartition("/")[0]
