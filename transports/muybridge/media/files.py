"""Files whose headers are read."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import BinaryIO, Self

from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import IS_PDF, inspect_media
from muybridge_protocol.rules.files import FileText, file_text


class FileSource:
    """The bytes of a file, of which only those that are asked for are read.

    Args:
        path: The file.

    Raises:
        OSError: On entering: it cannot be opened, or is no regular file.
    """

    complete: bool = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self.size: int = 0

    def __enter__(self) -> Self:
        status = os.stat(self._path)  # noqa: PTH116  any path will do
        if not stat.S_ISREG(status.st_mode):  # to open a pipe could block
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(self._path))
        self._file = open(self._path, "rb")  # noqa: PTH123  closed on leaving
        # Asked once more: another file may have taken the place.
        self.size = os.fstat(self._file.fileno()).st_size
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on, or fewer at the end."""
        if self._file is None or offset >= self.size:
            return b""
        self._file.seek(offset)
        return self._file.read(min(length, self.size - offset))


def inspect_file(path: str | os.PathLike[str]) -> MediaFacts:
    """Return what the headers of the file at *path* say.

    Raises:
        OSError: It cannot be read.
    """
    with FileSource(path) as source:
        return inspect_media(source)


def file_named(text: str, path: str | os.PathLike[str]) -> FileText | None:
    """Return the file at *path*, which the whole of *text* names, or None if there is none.

    What the suffix in *text* says is left to `file_text`.
    """
    if file_text(text) is not None or not os.path.isfile(path):  # noqa: PTH113  it raises nothing
        return None
    try:
        facts = inspect_file(path)
    except OSError:
        return FileText(os.fspath(path))
    return FileText(os.fspath(path), facts.kind is None and facts.defect != IS_PDF)
