"""Recordings of programs, as text: one line for each operation, and then the data that was written.

The data is there because SQLite and the library have to read it again. It is compressed: of most
pages, SQLite has written many versions. Nothing in a recording comes from the machine that it was
made on: paths are relative, and the service, its key and its tasks are inventions.
"""

from __future__ import annotations

import lzma
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Final

from .disk import (
    Link,
    MakeFile,
    MakeFolder,
    Mark,
    Operation,
    Remove,
    Rename,
    Resize,
    Sync,
    Write,
)

FOLDER: Final = Path(__file__).parent / "recordings"
COMMAND: Final = "python -m tests.powercuts --record"

_DATA: Final = "data:"
_TOP: Final = "."
_WIDTH: Final = 100


def save(name: str, operations: Sequence[Operation]) -> None:
    """Write the recording *name*."""
    data = b"".join(one.data for one in operations if isinstance(one, Write))
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    lines = [*map(_line, operations), _DATA, *wrap(b64encode(packed).decode(), _WIDTH)]
    path_of(name).write_text("\n".join([f"# Made by: {COMMAND}", *lines, ""]), "utf-8")


def load(name: str) -> list[Operation]:
    """Return the operations of the recording *name*."""
    lines, _, packed = path_of(name).read_text("utf-8").partition(f"\n{_DATA}\n")
    data = lzma.decompress(b64decode(packed))
    return [*_read(lines.splitlines()[1:], data)]


def order(operations: Iterable[Operation]) -> list[str]:
    """Return what the library asked for and in which order, and leave SQLite's own files out.

    Of a transaction of SQLite, its commit is told: its rollback journal is removed. A name that is
    new in each run is told without what is random in it.
    """
    told: list[str] = []
    synced: dict[str, int] = {}
    sizes: dict[str, int] = {}
    databases: set[str] = set()
    after_journal = False
    for one in operations:
        match one:
            case Sync(path) if path in databases or path.endswith("-journal"):
                after_journal = path.endswith("-journal")
                continue
            case Sync() if after_journal:  # SQLite syncs the folder of its rollback journal
                pass
            case _:
                told += _told(one, sizes, synced, databases)
        after_journal = isinstance(one, Remove) and one.path.endswith("-journal")
    return told


def _told(
    one: Operation, sizes: dict[str, int], synced: dict[str, int], databases: set[str]
) -> Iterator[str]:
    match one:
        case MakeFile(path) if path.endswith("-journal"):
            databases.add(path.removesuffix("-journal"))
        case Remove(path) if path.endswith("-journal"):
            if not path.endswith(".new-journal"):  # nobody can open a file without its name
                yield steady(f"commit {path.removesuffix('-journal')}")
        case Write(path, offset, data):
            sizes[path] = max(sizes.get(path, 0), offset + len(data))
        case Resize(path, size):
            sizes[path] = size
        case Sync(path):
            written = path in sizes and sizes[path] != synced.get(path, 0)
            synced[path] = sizes.get(path, 0)
            yield steady(f"sync {path or _TOP}{' (longer)' if written else ''}")
        case Link(path, to) | Rename(path, to):
            for known in (sizes, synced):
                if path in known:
                    known[to] = known[path]
            if path in databases:
                databases.add(to)
            yield steady(_line(one))
        case _:
            yield steady(_line(one))


def steady(line: str) -> str:
    """Return *line* without random names, so that two runs have the same lines."""
    return re.sub(r"(?<![0-9a-f])([0-9a-f]{16}|[0-9a-f]{12})(?![0-9a-f])", "*", line)


def _line(one: Operation) -> str:
    match one:
        case Write(path, offset, data):
            return f"write {offset} {len(data)} {path}"
        case Resize(path, size):
            return f"resize {size} {path}"
        case Link(path, to):
            return f"link {path} -> {to}"
        case Rename(path, to):
            return f"rename {path} -> {to}"
        case Mark(text):
            return f"mark {text}"
        case MakeFolder(path):
            return f"make-folder {path}"
        case MakeFile(path):
            return f"make-file {path}"
        case Remove(path):
            return f"remove {path}"
        case Sync(path):
            return f"sync {path or _TOP}"


def _read(lines: Iterable[str], data: bytes) -> Iterator[Operation]:
    read = 0
    for line in lines:
        kind, _, rest = line.partition(" ")
        number, _, path = rest.partition(" ")
        name, _, to = rest.partition(" -> ")
        match kind:
            case "write":
                length, _, path = path.partition(" ")
                yield Write(path, int(number), data[read : read + int(length)])
                read += int(length)
            case "resize":
                yield Resize(path, int(number))
            case "mark":
                yield Mark(rest)
            case "link":
                yield Link(name, to)
            case "rename":
                yield Rename(name, to)
            case "make-folder":
                yield MakeFolder(rest)
            case "make-file":
                yield MakeFile(rest)
            case "remove":
                yield Remove(rest)
            case "sync":
                yield Sync("" if rest == _TOP else rest)
            case _:
                raise ValueError(line)


def path_of(name: str) -> Path:
    """Return where the recording *name* is."""
    return FOLDER / f"{name}.txt"
