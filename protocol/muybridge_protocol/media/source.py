"""Where the bytes of a medium come from, as far as they are at hand.

Whatever reads headers asks a `Source` for the few bytes that it needs. A file has them all. Of
something at a URL there are only fragments: if `Fragments` lack what is asked for, they raise
`Wanted`. The caller fetches that, and starts over with more fragments. To start over is cheap,
because headers are small, and so the readers stay plain functions that know nothing of waiting.
"""

from __future__ import annotations

from typing import Protocol, Self

import attrs


class Damaged(Exception):
    """The data contradict their format; the message says how.

    Args:
        message: How.
        truncated: Whether they end before they should.
    """

    def __init__(self, message: str, *, truncated: bool = False) -> None:
        super().__init__(message)
        self.truncated: bool = truncated


def truncation() -> Damaged:
    """Return the error of data that end before they should."""
    return Damaged("they end too early", truncated=True)


class Wanted(Exception):
    """The bytes are not at hand.

    Args:
        offset: Where they begin.
        length: How many they are.
        closed: Why they cannot be had, or None if they can be fetched.
    """

    def __init__(self, offset: int, length: int, closed: str | None = None) -> None:
        super().__init__(offset, length, closed)
        self.offset: int = offset
        self.length: int = length
        self.closed: str | None = closed


class Source(Protocol):
    """The bytes of one medium."""

    @property
    def size(self) -> int | None:
        """How many bytes there are, or None if that is unknown."""
        ...

    @property
    def complete(self) -> bool:
        """Whether all of them are at hand, so that reading them costs little."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on, or fewer at the end.

        Raises:
            Wanted: They are not at hand.
        """
        ...


@attrs.frozen
class Fragments:
    """Some of the bytes of a medium.

    Args:
        pieces: Offsets and bytes, in ascending order and without overlap.
        size: How many bytes there are in all, or None if that is unknown.
        closed: Why no more bytes can be had, or None if they can.
    """

    pieces: tuple[tuple[int, bytes], ...] = attrs.field(default=(), repr=False)
    size: int | None = None
    closed: str | None = None

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return all the bytes of a medium."""
        return cls(((0, data),), len(data))

    @property
    def complete(self) -> bool:
        """Whether all bytes are at hand."""
        return self.size is not None and self.held == self.size

    @property
    def held(self) -> int:
        """How many bytes are at hand."""
        return sum(len(data) for _, data in self.pieces)

    def having(self, offset: int, data: bytes) -> Self:
        """Return these fragments and *data* at *offset*, of which nothing was at hand."""
        merged: list[tuple[int, bytes]] = []
        for start, piece in sorted((*self.pieces, (offset, data))):
            if merged and merged[-1][0] + len(merged[-1][1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + piece)
            else:
                merged.append((start, piece))
        return attrs.evolve(self, pieces=tuple(merged))

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on, or fewer at the end.

        Raises:
            Wanted: They are not at hand. It says from where on.
        """
        end = offset + length if self.size is None else min(offset + length, self.size)
        if end <= offset:
            return b""
        first = offset
        for start, piece in self.pieces:
            if start <= offset < start + len(piece):
                if end <= start + len(piece):
                    return piece[offset - start : end - start]
                first = start + len(piece)
        raise Wanted(first, end - first, self.closed)


@attrs.define
class Bounded:
    """The bytes of *source*, which may only be read *left* times more.

    Every step of a reader reads something, so this bounds what a hostile file can make it do.
    """

    source: Source
    left: int

    @property
    def size(self) -> int | None:
        """How many bytes there are, or None if that is unknown."""
        return self.source.size

    @property
    def complete(self) -> bool:
        """Whether all of them are at hand."""
        return self.source.complete

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on, or fewer at the end.

        Raises:
            Damaged: It has been read too often.
        """
        if not self.left:
            raise Damaged("its headers have too many parts")
        self.left -= 1
        return self.source.read(offset, length)


@attrs.frozen
class Window:
    """The bytes of *source* from *start* on, such as the note inside a picture."""

    source: Source
    start: int

    @property
    def size(self) -> int | None:
        """How many bytes there are, or None if that is unknown."""
        return None if self.source.size is None else max(0, self.source.size - self.start)

    @property
    def complete(self) -> bool:
        """Whether all of them are at hand."""
        return self.source.complete

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on, or fewer at the end."""
        return self.source.read(self.start + offset, length)


def exactly(source: Source, offset: int, length: int) -> bytes:
    """Return *length* bytes from *offset* on.

    Raises:
        Damaged: There are fewer.
        Wanted: They are not at hand.
    """
    data = source.read(offset, length)
    if len(data) < length:
        raise truncation()
    return data
