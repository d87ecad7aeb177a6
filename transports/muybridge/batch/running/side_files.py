"""The files of a runner: its lock, and the responses to paid requests.

A runner is one process at work on a batch. As long as it lives, it holds a lock on a file of its
own. A process that gets another runner's lock knows that it is dead, and may take over its items.

The file says which process it is, and which purchase it has armed last. It stays until the next
runner has seen that the store still has that. So an older copy of the store is noticed.

A `ResponseSlot` is a file that gets its full size before the first create is sent. A response is in
it, and on the disk, before anything reads it, until the store has its outcome. If the store cannot
be written, or the process dies, the next run reads the file. The response names its purchase, so it
may be read again at any time.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import attrs

from muybridge.batch.disk_errors import unusable
from muybridge.files.durable import sync_folders, write_all
from muybridge.files.locks import is_locked, lock
from muybridge.signals import ignoring_errors
from muybridge_protocol.records.convert import View, ours, structure, unstructure
from muybridge_protocol.records.json import RAW_LIMIT, readable

UNFINISHED: Final = 0
"""In place of an HTTP status: only a part of the response had arrived."""
_REMEMBERED: Final = 20 * 24 * 3600.0
"""Seconds for which the store must have what a dead runner has armed. Later, it may be pruned."""
_OWNER_AT: Final = 64
_PROCESS_AT: Final = 128
"""Where a runner's file says which process it is."""
_LONGEST_PROCESS: Final = 200
_LOOKS: Final = 1000
"""How often a lock is tried that nobody seems to hold."""
_HEADER: Final = 256
_SIZE: Final = _HEADER + RAW_LIMIT


@attrs.frozen(kw_only=True)
class KeptResponse:
    """A response in a side file.

    Args:
        key: The purchase that it belongs to.
        status: Its HTTP status, or `UNFINISHED`.
        body: Its body, or as much as had arrived, at most 64 KiB.
    """

    key: str
    status: int
    body: bytes = attrs.field(metadata=ours())


_FACTS = View(KeptResponse, only=("key", "status"))


class ResponseSlot:
    """A side file for one response at a time.

    Args:
        path: Where to create it.

    Raises:
        StoreUnusable: There is no room for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with unusable(path, "Make room on the disk, then run again."):
            self._file = _create(path)
            try:
                write_all(self._file, bytes(_SIZE))
                os.fsync(self._file.fileno())
                sync_folders(path.parent)
            except BaseException:
                self._file.close()
                path.unlink()
                raise
        self.is_used: bool = False

    def keep(self, response: KeptResponse) -> None:
        """Keep *response* durably: it outlasts this process, and a power cut.

        Raises:
            OSError: It cannot be written.
        """
        body = response.body[:RAW_LIMIT]
        facts = {**unstructure(response, _FACTS), "size": len(body), "crc": zlib.crc32(body)}
        self._file.seek(0)
        write_all(self._file, json.dumps(facts).encode().ljust(_HEADER) + body)
        # Before it is flushed: a file that may have the response must not be removed, even if that
        # fails.
        self.is_used = True
        os.fsync(self._file.fileno())

    def clear(self) -> None:
        """Forget the response, whose outcome is in the store."""
        with ignoring_errors(OSError):
            self._file.seek(0)
            # Not flushed: a response that comes back after a power cut is recorded again, and
            # changes nothing.
            write_all(self._file, bytes(_HEADER))
            self.is_used = False

    def close(self) -> None:
        """Close the file, and remove it if it is empty."""
        self._file.close()
        if not self.is_used:
            with ignoring_errors(OSError):
                self._path.unlink()


class Runner:
    """One process at work on a batch, as long as the context lasts.

    Args:
        place: The folder for its files, on a disk of this machine. It exists.
        owner: What the store calls this process.

    Raises:
        StoreUnusable: On entering, if its lock cannot be made.
    """

    def __init__(self, place: Path, owner: str = "") -> None:
        self._place = place
        self._owner = owner
        self._slots: list[ResponseSlot] = []
        self.name: str = ""
        self._has_written = False
        self.leaves_something = False
        """Whether the store misses something, so that the next run has to look."""

    def __enter__(self) -> Self:
        ours = False
        with unusable(
            self._place,
            "Nothing was sent. Use a folder on a disk of this machine that can be written to and "
            "locked.",
        ):
            while not ours:
                self.name = secrets.token_hex(8)
                self._path = _lock_path(self._place, self.name)
                self._file = _create(self._path)
                try:
                    # Another runner may have removed it while cleaning up.
                    ours = lock(self._file) and self._path.exists()
                    if ours:
                        with ignoring_errors(OSError):  # nothing depends on it
                            owner = self._owner.encode("ascii")
                            write_all(self._file, b" " * _OWNER_AT)
                            write_all(self._file, owner.ljust(_PROCESS_AT - _OWNER_AT))
                            write_all(self._file, _this_process())
                finally:
                    if not ours:
                        self._file.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for slot in self._slots:
            slot.close()
        # A runner that has armed something leaves its file, so that the next one checks the store
        # by it.
        if not (self.leaves_something or self.keeps_responses or self._has_written):
            with ignoring_errors(OSError):
                self._path.unlink()
        self._file.close()

    @property
    def keeps_responses(self) -> bool:
        """Whether a side file holds a response, because the store could not take its outcome."""
        return any(slot.is_used for slot in self._slots)

    @property
    def has_company(self) -> bool:
        """Whether another runner is alive."""
        return bool(processes_at_work(self._place, but=self.name))

    def note(self, key: str) -> None:
        """Note that the purchase *key* is in the store, for whoever comes next.

        It need not outlast a power cut, nor be the last of two threads': an earlier one is true as
        well.
        """
        self._has_written = True
        # Each thread writes at a position of its own; Windows has no pwrite.
        with ignoring_errors(OSError), self._path.open("r+b", buffering=0) as file:
            write_all(file, key.encode("ascii").ljust(_OWNER_AT))

    def new_slot(self) -> ResponseSlot:
        """Return a new side file."""
        slot = ResponseSlot(self._place / f"response-{self.name}-{len(self._slots)}")
        self._slots.append(slot)
        return slot


class DeadRunner:
    """The files of a dead runner, locked against others as long as the context lasts."""

    def __init__(self, place: Path, name: str, file: BinaryIO | None) -> None:
        self._place = place
        self._name = name
        self._file = file

    @classmethod
    def find(cls, place: Path, name: str) -> DeadRunner | None:
        """Return the files in *place* of the runner *name*, or None if it is alive on this machine.

        None also stands for one whose items another process has just recovered.

        Raises:
            StoreUnusable: Its lock cannot be opened.
        """
        file = _open_lock(place, name)
        if file is None:
            return cls(place, name, None)
        # Another process may have recovered its items, and removed the file, before the lock.
        if _lock_dead(file) and _lock_path(place, name).exists():
            return cls(place, name, file)
        file.close()
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            for path in self._side_files():
                path.unlink(missing_ok=True)
            _lock_path(self._place, self._name).unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()

    @property
    def path(self) -> Path:
        """The file with its lock, which may be gone."""
        return _lock_path(self._place, self._name)

    @property
    def armed(self) -> str | None:
        """The key of the purchase that it has armed last, or None if that is not known.

        After a long time, the store may have been pruned.
        """
        if self._file is None or time.time() - os.fstat(self._file.fileno()).st_mtime > _REMEMBERED:
            return None
        return self._text_at(0, _OWNER_AT)

    @property
    def owner(self) -> str | None:
        """What its store has called it, or None if that is not known."""
        return None if self._file is None else self._text_at(_OWNER_AT, _PROCESS_AT)

    def responses(self) -> Iterator[tuple[Path, KeptResponse]]:
        """Yield its side files that hold responses, and these.

        Raises:
            StoreUnusable: A side file cannot be read.
        """
        for path in self._side_files():
            with unusable(
                path,
                "It may hold the response to a paid request. Nothing was sent. Make the file "
                "readable, then run again.",
            ):
                data = path.read_bytes()
            if (response := _read_slot(data)) is not None:
                yield path, response

    def _text_at(self, begin: int, end: int) -> str | None:
        assert self._file is not None  # noqa: S101  it has left one
        self._file.seek(begin)
        text = self._file.read(end - begin).decode("ascii", "replace").strip()
        # After a power cut, a file may have its length without its data.
        return text if text and text.isprintable() else None

    def _side_files(self) -> list[Path]:
        return sorted(self._place.glob(f"response-{self._name}-*"))


def known_runners(place: Path) -> list[str]:
    """Return the names of all runners that have a file in *place*, alive or dead."""
    runners = [path.name.removeprefix("runner-") for path in place.glob("runner-*")]
    responses = (path.name.removeprefix("response-") for path in place.glob("response-*"))
    return [*{*runners, *(name.rpartition("-")[0] for name in responses)}]


def processes_at_work(place: Path, *, but: str = "") -> list[str]:
    """Return the processes whose runners in *place* are alive, such as `pid 12 on stable`.

    Args:
        place: The folder of their files.
        but: The runner to leave out.

    Raises:
        StoreUnusable: The lock of one cannot be opened.
    """
    processes: list[str] = []
    for name in sorted({*known_runners(place)} - {but}):
        file = _open_lock(place, name)
        if file is None:
            continue
        with file:
            if is_locked(file):
                file.seek(_PROCESS_AT)
                named = readable(file.read(_LONGEST_PROCESS).decode("utf-8", "replace"))
                processes.append(named or "pid unknown")
    return processes


def _lock_dead(file: BinaryIO) -> bool:
    """Lock *file*, and return whether that succeeded: its runner is dead."""
    for _ in range(_LOOKS):
        if lock(file):
            return True
        if is_locked(file):
            return False
        time.sleep(0.001)  # somebody looks at it just now (`processes_at_work`)
    return False


def _this_process() -> bytes:
    return f"pid {os.getpid()} on {socket.gethostname()}".encode("utf-8", "replace")


def _open_lock(place: Path, name: str) -> BinaryIO | None:
    """Open the lock of the runner *name*, or return None if it has left none.

    Raises:
        StoreUnusable: It cannot be opened.
    """
    path = _lock_path(place, name)
    with unusable(path, "Nothing was sent."):
        try:
            return path.open("r+b", buffering=0)
        except FileNotFoundError:
            return None


def _lock_path(place: Path, name: str) -> Path:
    return place / f"runner-{name}"


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600), "r+b", buffering=0)


def _read_slot(data: bytes) -> KeptResponse | None:
    """Return the response in a side file, or None if there is no whole one."""
    try:
        facts = json.loads(data[:_HEADER])
        body = data[_HEADER : _HEADER + facts["size"]]
        if zlib.crc32(body) != facts["crc"]:
            return None
        return structure(facts, KeptResponse, body=body)
    except (ValueError, LookupError, TypeError):
        return None
