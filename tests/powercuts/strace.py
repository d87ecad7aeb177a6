"""Read what `strace` has seen of a program: its operations on a disk, and its marks."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

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
    folder_of,
)

_READING: Final = "read", "lseek"
_CHANGING: Final = (
    "open", "openat", "creat", "write", "pwrite64", "ftruncate", "truncate", "fsync", "fdatasync",
    "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir",
    "mkdirat", "mmap",
)  # fmt: skip
_UNKNOWN: Final = (
    "writev", "pwritev", "pwritev2", "fallocate", "sendfile", "copy_file_range", "splice",
    "symlink", "symlinkat", "openat2", "sync_file_range",
)  # fmt: skip
"""Calls that would change the disk, and that the model does not have."""

_BEGUN: Final = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>")
_RESUMED: Final = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_CALL: Final = re.compile(r"\d+ +(\w+)\((.*)\) += (\d+)(?:<(.*)>)?.*")
_BYTES: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_HANDLE: Final = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?")


class CannotTrace(Exception):
    """`strace` is not there, or may not trace."""


def trace(command: Sequence[str], log: Path, environment: dict[str, str]) -> str:
    """Run *command* under strace, and return what strace has written to *log*.

    Raises:
        CannotTrace: strace cannot be run here.
    """
    calls = ",".join(f"?{call}" for call in (*_READING, *_CHANGING, *_UNKNOWN))
    options = ["-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={calls}", "-o", str(log)]
    try:
        done = subprocess.run(  # noqa: S603  our own program
            ["strace", *options, *command],  # noqa: S607  wherever the system has it
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except FileNotFoundError as error:
        raise CannotTrace("there is no strace: install it, on Debian with apt-get") from error
    if done.returncode not in (0, -signal.SIGKILL):  # strace ends as the program does
        raise CannotTrace(done.stderr)
    return log.read_text("ascii")


def operations(log: str, root: Path, marks: Path) -> Iterator[Operation]:
    """Yield the operations below *root*, in the order in which they were completed.

    Each line that is written to the file *marks* is a mark among them.

    Raises:
        NotImplementedError: The program did what the model does not have.
    """
    reader = _Reader(str(root), str(marks))
    for line in _whole_lines(log):
        call = _CALL.fullmatch(line)
        if call is not None:
            yield from reader.read(call[1], call[2], int(call[3]), _text(call[4] or ""))


def _whole_lines(log: str) -> Iterator[str]:
    """Yield one line a call: strace writes two if another thread comes in between."""
    begun: dict[str, str] = {}
    for line in log.splitlines():
        if first := _BEGUN.fullmatch(line):
            begun[first[1]] = f"{first[1]} {first[2]}"
        elif rest := _RESUMED.fullmatch(line):
            yield begun.pop(rest[1]) + rest[2]
        else:
            yield line


@attrs.define
class _Reader:
    """Reads calls one after another, and knows what is open.

    Args:
        root: The folder of interest.
        marks: The file with the marks.
    """

    root: str
    marks: str
    _offsets: dict[int, int] = attrs.field(factory=dict[int, int], init=False)
    _known: set[str] = attrs.field(factory=lambda: {""}, init=False)

    def read(self, call: str, arguments: str, told: int, told_path: str) -> Iterator[Operation]:
        handle = _HANDLE.match(arguments)
        number = int(handle[1]) if handle else -1
        path = None if handle is None or handle[3] else self._inside(_text(handle[2]))
        match call:
            case "open" | "openat" | "creat":
                yield from self._open(arguments, told, self._inside(told_path))
            case "read":
                self._offsets[number] = self._offsets.get(number, 0) + told
            case "lseek":
                self._offsets[number] = told
            case "write" if handle is not None and _text(handle[2]) == self.marks:
                yield Mark(_data(arguments).decode().rstrip())
            case "write":
                offset = self._offsets.get(number, 0)
                self._offsets[number] = offset + told
                if path is not None:
                    yield Write(path, offset, _data(arguments)[:told])
            case "mmap":
                self._refuse_shared(arguments)
            case _ if call in _UNKNOWN:
                if path is not None or self.root in _text(arguments):
                    raise NotImplementedError(f"{call}({arguments[:200]})")
            case _ if path is not None:
                yield from self._by_handle(call, path, arguments, told)
            case _:
                yield from self._by_name(call, arguments)

    def _open(self, arguments: str, number: int, path: str | None) -> Iterator[Operation]:
        self._offsets[number] = 0
        if path is None:
            return
        if "O_APPEND" in arguments or "O_TMPFILE" in arguments:
            raise NotImplementedError(f"open({arguments[:200]})")
        if path not in self._known and "O_CREAT" in arguments:
            self._known.add(path)
            yield MakeFile(path)
        elif "O_TRUNC" in arguments:
            yield Resize(path, 0)

    def _by_handle(self, call: str, path: str, arguments: str, told: int) -> Iterator[Operation]:
        match call:
            case "pwrite64":
                offset = int(arguments.rpartition(", ")[2])
                yield Write(path, offset, _data(arguments)[:told])
            case "fsync" | "fdatasync":
                yield Sync(path)
            case "ftruncate":
                yield Resize(path, int(arguments.rpartition(", ")[2]))
            case _:
                yield from self._by_name(call, arguments)

    def _by_name(self, call: str, arguments: str) -> Iterator[Operation]:
        names = [self._inside(_text(name[1])) for name in _BYTES.finditer(arguments)]
        if not names or all(name is None for name in names):
            return
        if None in names:
            raise NotImplementedError(f"{call} into or out of the folder: {arguments[:200]}")
        path, to = str(names[0]), str(names[-1])
        match call:
            case "mkdir" | "mkdirat":
                self._known.add(path)
                yield MakeFolder(path)
            case "unlink" | "unlinkat" | "rmdir":
                self._known.discard(path)
                yield Remove(path)
            case "link" | "linkat":
                self._known.add(to)
                yield Link(path, to)
            case "rename" | "renameat" | "renameat2":
                self._known.discard(path)
                self._known.add(to)
                yield Rename(path, to)
            case _:
                raise NotImplementedError(f"{call}({arguments[:200]})")

    def _refuse_shared(self, arguments: str) -> None:
        """Refuse a mapping through which a file may change without a call.

        The only one that SQLite needs is that of a `-shm` file, which no state has.
        """
        if "MAP_SHARED" not in arguments or "PROT_WRITE" not in arguments:
            return
        mapped = re.search(r"\d+<((?:\\x[0-9a-f]{2})*)>", arguments)
        path = self._inside(_text(mapped[1])) if mapped else None
        if path is not None and not path.endswith("-shm"):
            raise NotImplementedError(f"{path} is mapped, and may change without a system call")

    def _inside(self, path: str) -> str | None:
        """Return *path* relative to the root, or None if it is elsewhere."""
        if path == self.root:
            return ""
        if folder_of(path) and path.startswith(f"{self.root}/"):
            return path.removeprefix(f"{self.root}/")
        return None


def _text(escaped: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), escaped)


def _data(arguments: str) -> bytes:
    """Return the data that a call was given."""
    found = _BYTES.search(arguments.partition(">")[2])
    assert found is not None, arguments[:200]
    assert found[2] is None, "strace has cut off the data"
    return bytes.fromhex(found[1].replace("\\x", ""))
