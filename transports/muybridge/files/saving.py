"""Saves downloads: a part file next to the target, renamed to it only when it is complete.

- Nobody ever sees half a file under the final name. Renaming within a folder is one step, so the
  part lies in the folder of its target.
- An interrupted download resumes from its part. After a power cut, a file may have its length
  without its data, so a note next to it has checksums, and only what they confirm is resumed.
- Two downloads to one place would mix their bytes. So the part is locked, and its inode is compared
  after the lock is held: by then, the previous holder may have renamed it.
- The part belongs to one download. It says which (`source`), and by what validator and size the
  server's file was recognized; any other download begins anew.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import unquote, urlsplit

import attrs

from muybridge.files.durable import sync_folders, write_all
from muybridge.files.locks import lock
from muybridge.files.suffixes import SUFFIXES, right_path, suffix_for
from muybridge.signals import genuine, ignoring_errors
from muybridge.wire.exchange import PIECE
from muybridge_protocol.errors import DownloadFailed
from muybridge_protocol.http import without_query
from muybridge_protocol.media.formats import BEGINNING, USUAL
from muybridge_protocol.operations.download import Part
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import Remedy, RemedyKind

_LONGEST_STEM = 100
"""Most characters of a file's name that follow from an id: file systems allow 255 bytes."""
_POSIX = os.name == "posix"
"""Whether open files can be renamed and removed."""
_REMEDIES: Mapping[int, RemedyKind | None] = {
    errno.ENOSPC: RemedyKind.MAKE_ROOM,
    errno.EDQUOT: RemedyKind.MAKE_ROOM,
    errno.EAGAIN: RemedyKind.AWAIT_FILE,
    errno.EIO: RemedyKind.CHECK_DISK,
    errno.ESTALE: None,
}
"""What to change where the same place takes the file later; everywhere else, no retry helps."""
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


@attrs.frozen
class SaveTarget:
    """Where a download goes.

    Args:
        folder: The folder.
        stem: The file's name without its suffix.
        suffix: Its suffix, or None to derive it from the response's media type.
        fallback: The suffix if the media type is unknown.
        adds_suffix: Whether a missing suffix follows from the content.
    """

    folder: Path
    stem: str
    suffix: str | None
    fallback: str
    adds_suffix: bool = False

    @classmethod
    def choose(
        cls,
        where: str | os.PathLike[str],
        url: str | None,
        task: Task | None,
        *,
        adds_suffix: bool = False,
    ) -> SaveTarget:
        """Return where to save, given the file or folder that the user named.

        Args:
            where: A file or a folder. A folder exists already, or its path ends with a slash.
            url: Where the download comes from, or None.
            task: Whose result it is, or None.
            adds_suffix: Whether a missing suffix follows from the content.

        Raises:
            OSError: *where* is not a valid path.
        """
        if not _is_path(os.fspath(where)):
            raise OSError(errno.EINVAL, "not a valid path for a file")
        family = task.known_family if task is not None else None
        name = unquote(urlsplit(url).path.rpartition("/")[2]) if url is not None else ""
        stem, dot, suffix = name.rpartition(".")
        own = f".{suffix.lower()}" if dot and f".{suffix.lower()}" in SUFFIXES.values() else ""
        fallback = USUAL[family.media].suffix if family is not None else own or ".bin"
        path = Path(where)
        if path.is_dir() or os.fspath(where).endswith(("/", os.sep)):
            chosen = own_stem(task.id) if task is not None else safe_stem(stem or name)
            return cls(path, chosen, None, fallback)
        return cls(path.parent, path.stem, path.suffix, fallback, adds_suffix)

    @property
    def part_path(self) -> Path:
        """Where the part is kept."""
        return self.folder / f"{self.stem}{self.suffix or ''}.part"

    def path(self, content_type: str, start: bytes = b"") -> Path:
        """Return the file's path, for a download of *content_type* that begins with *start*."""
        suffix = self.suffix
        if self.adds_suffix and suffix is not None:
            return right_path(self.folder / f"{self.stem}{suffix}", start, content_type)
        if suffix is None:
            suffix = SUFFIXES.get(content_type, self.fallback)
        return self.folder / f"{self.stem}{suffix}"


def safe_stem(text: str) -> str:
    """Return a file name for *text* that is valid on every system and stays within its folder."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:_LONGEST_STEM]
    return f"_{stem}" if not stem or _RESERVED.fullmatch(stem) else stem


def own_stem(task_id: str) -> str:
    """Return a safe file name for a task, which no other task's id leads to."""
    stem = safe_stem(task_id)
    if stem == task_id:
        return stem
    mark = hashlib.sha256(task_id.encode()).hexdigest()[:8]
    return f"{stem[: _LONGEST_STEM - len(mark) - 1]}-{mark}"


def unsaved(
    where: str | os.PathLike[str],
    error: OSError,
    task: Task | None,
    elsewhere: RemedyKind = RemedyKind.CHOOSE_PLACE,
) -> DownloadFailed:
    """Return the error of a download that cannot be saved to *where*.

    Args:
        where: The path, or what messages call an open file.
        error: Why it cannot be saved.
        task: Whose result it is, or None.
        elsewhere: What to do if *where* itself is to blame.
    """
    reason = f"{readable(os.fspath(where))}: {error.strerror or error}"
    kind = _REMEDIES.get(error.errno or 0, elsewhere)
    advice = () if kind is None else (Remedy(kind=kind),)
    return DownloadFailed(reason=reason, lasting=kind is elsewhere, advice=advice, task=task)


class PartFile:
    """The part of a file that has been saved so far; it is kept between runs.

    A note next to it, `*.part.json`, says on its first line which download it belongs to. Further
    lines say how long the part has been, with the checksum of its bytes. Only what they confirm is
    resumed: after a power cut, a file may have its length without its data. Only one process at a
    time can work on a part: the lock keeps all others out.

    Args:
        target: Where the whole file goes.
        source: What identifies the download: a task's id, or a URL.
    """

    def __init__(self, target: SaveTarget, source: str) -> None:
        self._target = target
        self._source = without_query(source)
        self._path = target.part_path
        self._note_path = self._path.with_name(f"{self._path.name}.json")
        self._file: BinaryIO | None = None
        self._note: BinaryIO | None = None
        self._length, self._checksum, self._noted = 0, 0, 0
        self.suffix: str | None = None
        """The suffix of the finished file's content, if that was looked at and is known."""

    def __enter__(self) -> Self:
        if self._target.suffix is not None:
            _refuse_odd(self._target.path(""))
        _refuse_odd(self._note_path)
        while True:
            with ExitStack() as opening:
                file = opening.enter_context(_open_part(self._path))
                if not lock(file):
                    raise BlockingIOError(
                        errno.EWOULDBLOCK, "another download is being saved there right now"
                    )
                if _is_at(file, self._path):
                    if os.fstat(file.fileno()).st_nlink == 1:
                        opening.pop_all()
                        self._file = file
                        return self
                    # It has another name, such as in a backup: leave that one its content.
                    self._path.unlink()
                    continue
            if self._path.is_symlink():  # on systems without O_NOFOLLOW
                raise OSError(errno.ELOOP, "the part is a symbolic link")
            # The lock's previous holder renamed the part to the whole file: start a new part.

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        with ignoring_errors(OSError):
            if self._length > self._noted:
                self._confirm()
        self._close_note()
        file, self._file = self._file, None
        with file:
            empty = file.seek(0, os.SEEK_END) == 0 and (not _POSIX or _is_at(file, self._path))
            if empty and _POSIX:
                # While it is still locked: afterwards it may belong to another process.
                self._remove(self._path, self._note_path)
        if empty and not _POSIX:
            self._remove(self._path, self._note_path)

    @property
    def is_new(self) -> bool:
        """Whether nothing was saved before."""
        return os.fstat(self._opened.fileno()).st_size == 0

    def find(self) -> Part:
        """Return the part of the same download that an earlier run saved, or an empty one.

        It reads the file as far as that goes.
        """
        try:
            if self._note_path.is_symlink():
                return Part()
            first, *lines = self._note_path.read_bytes().splitlines()
            note = json.loads(first)
            validator, total, source = note["validator"], note["total"], note["source"]
            same = note["inode"] == os.fstat(self._opened.fileno()).st_ino
            sound = isinstance(validator, str) and isinstance(total, int | None)
            if source != self._source or not sound or not same:
                return Part()
            self._look_back([(int(length), int(crc)) for length, crc in map(bytes.split, lines)])
        except genuine((OSError, ValueError, LookupError, TypeError, RecursionError)):
            return Part()
        if total is not None and self._length > total:
            return Part()
        return Part(offset=self._length, validator=validator, total=total)

    def begin(self, part: Part) -> None:
        """Prepare to write at the part's offset, and drop everything from there on."""
        if part.offset != self._length:
            assert part.offset == 0  # noqa: S101  what was saved is resumed or dropped
            self._length, self._checksum = 0, 0
        # Truncate first: the note of a new version must never lie next to bytes of an old one.
        self._opened.seek(part.offset)
        self._opened.truncate()
        note = {
            "source": self._source,
            **attributes(part, "validator", "total"),
            # If another file replaces the part, the note does not match it.
            "inode": os.fstat(self._opened.fileno()).st_ino,
        }
        self._close_note()
        temporary = self._note_path.with_name(f"{self._note_path.name}.new")
        temporary.unlink(missing_ok=True)  # it may be a link to another file
        try:
            with temporary.open("xb", buffering=0) as file:
                write_all(file, json.dumps(note).encode() + b"\n" + self._confirmation)
            temporary.replace(self._note_path)
        except BaseException:
            self._remove(temporary)
            raise
        self._note = self._note_path.open("r+b", buffering=0)
        self._note.seek(0, os.SEEK_END)
        self._noted = self._length

    def write(self, piece: bytes) -> None:
        """Save the next piece."""
        try:
            write_all(self._opened, piece)
        finally:  # a full disk takes the beginning of it
            written = memoryview(piece)[: self._opened.tell() - self._length]
            self._length += len(written)
            self._checksum = zlib.crc32(written, self._checksum)
        if self._length - self._noted >= min(self._noted // 8, PIECE):  # pieces may be tiny
            self._confirm()

    def finish(self, content_type: str) -> Path:
        """Turn the part into the finished file, durably, and return its path.

        Args:
            content_type: The media type of the response, or "".
        """
        start = self._start()
        path = self._target.path(content_type, start)
        if self._target.adds_suffix:
            self.suffix = suffix_for(start, content_type)
        _refuse_odd(path)
        os.fsync(self._opened.fileno())
        self._close_note()
        if _POSIX and not _is_at(self._opened, self._path):
            raise OSError(errno.ESTALE, "another program moved or replaced the part")
        if not _POSIX:
            self._opened.close()
            self._file = None
        self._path.replace(path)
        # The note goes last: as long as the new name is not on the disk, the part may be needed
        # again.
        sync_folders(path.parent)
        self._remove(self._note_path)
        return path

    def _look_back(self, confirmed: list[tuple[int, int]]) -> None:
        """Read the part as far as *confirmed* lengths and checksums agree with it."""
        self._opened.seek(0)
        length = checksum = 0
        for wanted in confirmed:
            while piece := self._opened.read(max(0, min(PIECE, wanted[0] - length))):
                length, checksum = length + len(piece), zlib.crc32(piece, checksum)
            if (length, checksum) != wanted:
                return
            self._length, self._checksum = wanted

    @property
    def _confirmation(self) -> bytes:
        """A line with the length of the part and the checksum of its bytes."""
        return b"%d %d\n" % (self._length, self._checksum) if self._length else b""

    def _confirm(self) -> None:
        """Note how long the part is, and the checksum of its bytes."""
        if self._note is not None:
            write_all(self._note, self._confirmation)
            self._noted = self._length

    def _close_note(self) -> None:
        note, self._note = self._note, None
        if note is not None:
            note.close()

    def _start(self) -> bytes:
        """Return the first bytes of the file, if they are looked at."""
        if not self._target.adds_suffix:
            return b""
        self._opened.seek(0)
        return self._opened.read(BEGINNING)

    def _remove(self, *paths: Path) -> None:
        """Remove *paths*. Errors are ignored: the outcome of the download matters more."""
        for path in paths:
            with ignoring_errors(OSError):
                path.unlink(missing_ok=True)

    @property
    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("the part is not open")
        return self._file


def _open_part(path: Path) -> BinaryIO:
    # Never follow a link or write to a pipe or device: a part is always a file of our own.
    wanted = ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
    flags = os.O_RDWR | os.O_CREAT | sum(getattr(os, name, 0) for name in wanted)
    file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
    return file


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _refuse_odd(path: Path) -> None:
    """Refuse to replace a device, a pipe or a socket. A link is replaced, not followed."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EEXIST, f"{path.name} is not a regular file")


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False
