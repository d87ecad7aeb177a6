"""Standard streams for a command that must not stop halfway."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Unprinted(OSError):
    """stdout could not be written to."""


class _Messages(io.FileIO):
    """Never fails: a message that cannot be written must not interrupt paid work."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            # None means that the reader is too slow for a stream that does not block.
            return super().write(data) or memoryview(data).nbytes
        except OSError:
            return memoryview(data).nbytes


class _Answers(io.BufferedWriter):
    """Raises `Unprinted` once if it cannot be written to, and discards everything after that.

    The file below it has no Python of ours in it, between whose lines Ctrl-C could come: what was
    written but not yet counted as such would be written again.
    """

    _broken = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._broken:
            return memoryview(data).nbytes
        with self._telling():
            return super().write(data)

    def flush(self) -> None:
        if not self._broken:
            with self._telling():
                super().flush()

    @contextmanager
    def _telling(self) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            self._broken = True
            raise Unprinted(error.errno, error.strerror, "stdout") from error


def guard_streams() -> None:
    """Replace stdout and stderr, so that every write to them fails in these ways alone."""
    # In this order, because each takes the lowest free descriptor.
    sys.stdin = _opened(sys.stdin, "r")
    answers = _opened(sys.stdout, "w")
    messages = _opened(sys.stderr, "w")
    raw_answers = io.FileIO(answers.fileno(), "w", closefd=False)
    raw_messages = _Messages(messages.fileno(), "w", closefd=False)
    sys.stdout = _through(_Answers(raw_answers), answers, line_buffering=raw_answers.isatty())
    sys.stderr = _through(io.BufferedWriter(raw_messages), messages, line_buffering=True)


def _opened(stream: TextIO | None, mode: Literal["r", "w"]) -> TextIO:
    """Return *stream*, or one at its end and without room for one that was closed from the start.

    Otherwise a file or a connection would get its descriptor, and the output would go there.
    """
    if stream is not None:
        return stream
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), mode, closefd=False)


def _through(buffer: io.BufferedWriter, like: TextIO, *, line_buffering: bool) -> TextIO:
    """Return a stream that writes to *buffer*, and else is as *like*."""
    return io.TextIOWrapper(
        buffer, encoding=like.encoding, errors=like.errors, line_buffering=line_buffering
    )
