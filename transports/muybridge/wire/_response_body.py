"""How the body of a response is delimited and encoded, read strictly and within bounds.

http.client ignores an invalid `Content-Length`, prefers `Transfer-Encoding` if both are given, and
accepts an early end as the end. Here each of these is a fault, because a truncated body must never
pass for a complete one.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Protocol

import attrs

from muybridge.wire.exchange import PIECE, Exchange, Fault
from muybridge_protocol.http import HttpHead, Reason

LARGE_PIECE = 256 * 1024
"""The most bytes to read at a time from a body of known length. In pieces of 64 KiB, a download
takes a third longer."""

_LENGTH = re.compile(r"[0-9]{1,18}")
_HEADS = re.compile(rb"(?:HTTP/1\.[01] 1[0-9]{2}[ \r\n].*?\n\r?\n)*.*?\n\r?\n", re.DOTALL)
"""The head of a response, and those of the informational ones before it."""
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")
_LINE_LIMIT = 16 * 1024
_TRAILER_LIMIT = 64 * 1024
_BODILESS = (204, 304)
_ZLIB, _RAW_DEFLATE, _GZIP = 15, -15, 31
_LISTED = ("connection", "content-length", "transfer-encoding")

Listed = Mapping[str, list[str]]
"""The items of each header that tells how to read a response, by its name, all in lower case."""


class Source(Protocol):
    """A stream to read a body from."""

    def read1(self, size: int, /) -> bytes:
        """Return up to *size* bytes that are available, or no bytes at the end."""
        ...

    def readline(self, size: int, /) -> bytes:
        """Return the bytes up to the end of the line, at most *size* of them."""
        ...


@attrs.frozen(eq=False, repr=False)
class Framing:
    """How the end of a body is found.

    Args:
        bodiless: Whether the response has no body, whatever its headers say.
        chunked: Whether the body is chunked.
        length: The number of its bytes, or None. A body without a length or chunks ends with its
            connection.
    """

    bodiless: bool
    chunked: bool
    length: int | None

    @classmethod
    def of(cls, method: str, status: int, items: Listed) -> Framing:
        """Return the framing of a response.

        Args:
            method: The method of its request.
            status: Its status.
            items: What `listed` found in its head.

        Raises:
            Fault: The headers contradict each other, or are invalid.
        """
        codings, lengths = items["transfer-encoding"], items["content-length"]
        if codings and (codings != ["chunked"] or lengths):
            raise Fault(Reason.MALFORMED, "unknown Transfer-Encoding, or one with Content-Length")
        if lengths and (len(set(lengths)) > 1 or not _LENGTH.fullmatch(lengths[0])):
            raise Fault(Reason.MALFORMED, "Content-Length is not one number")
        bodiless = method == "HEAD" or status in _BODILESS
        chunked = bool(codings) and not bodiless
        return cls(bodiless, chunked, int(lengths[0]) if lengths else None)

    def pieces(self, source: Source) -> Iterator[bytes]:
        """Return the pieces of the body as it was transferred.

        Raises:
            Fault: While reading: the body ended early or is malformed.
        """
        if self.bodiless:
            return iter(())
        if self.chunked:
            return _chunks(source)
        if self.length is not None:
            return _counted(source, self.length)
        return iter(lambda: source.read1(PIECE), b"")

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        return not self.bodiless and not self.chunked and self.length is None


def refuse_second_response(exchange: Exchange, head: HttpHead, unread: Callable[[], bytes]) -> None:
    """Refuse a refusal of a paid request if more has arrived behind it, such as another response.

    A paid request has its connection for itself, so nobody knows which response is the true one.
    HTTP libraries drop what follows a response. So this reads again what has arrived. What follows
    the response that accepts a request does not undo it.

    Args:
        exchange: The exchange, whose response has been read to its end.
        head: The head of the response.
        unread: Returns what has arrived on the connection, but was not read. It does not wait.

    Raises:
        Fault: More has arrived.
    """
    if not exchange.request.paid or 200 <= head.status <= 299:  # noqa: PLR2004  the class of success
        return
    behind = unread()
    heads = _HEADS.match(exchange.raw)
    if heads is not None:
        source = BytesIO(exchange.raw[heads.end() :])
        framing = Framing.of(exchange.request.method, head.status, listed(head))
        with suppress(Fault):  # the record may be incomplete
            deque(framing.pieces(source), maxlen=0)
            behind = source.read() + behind
    if behind:
        exchange.keep(behind)
        exchange.followed = True
        raise Fault(Reason.MALFORMED, "more bytes follow the response")


def listed(head: HttpHead) -> Listed:
    """Return the items of the headers that tell how to read a response, in lower case."""
    items: dict[str, list[str]] = {name: [] for name in _LISTED}
    for field, value in head.headers:
        if (name := field.lower()) in items:
            items[name] += [item.strip().lower() for item in value.split(",")]
    return items


def _counted(source: Source, length: int, part: str = "body") -> Iterator[bytes]:
    while length:
        piece = source.read1(min(length, LARGE_PIECE))
        if not piece:
            raise Fault(Reason.TRUNCATED, f"the {part} ended {length} bytes early")
        length -= len(piece)
        yield piece


def _chunks(source: Source) -> Iterator[bytes]:
    while size := _chunk_size(source):
        yield from _counted(source, size, "chunk")
        if _line(source).strip(b"\r\n"):
            raise Fault(Reason.MALFORMED, "a chunk is longer than it says")
    trailer = 0
    while (line := _line(source)) not in (b"\r\n", b"\n"):
        trailer += len(line)
        if trailer > _TRAILER_LIMIT:
            raise Fault(Reason.MALFORMED, "the trailer is too long")


def _chunk_size(source: Source) -> int:
    size = _CHUNK_SIZE.fullmatch(_line(source))
    if size is None:
        raise Fault(Reason.MALFORMED, "a chunk's size is not a number")
    return int(size[1], 16)


def _line(source: Source) -> bytes:
    line = source.readline(_LINE_LIMIT)
    if line.endswith(b"\n"):
        return line
    if len(line) >= _LINE_LIMIT:
        raise Fault(Reason.MALFORMED, "a line of the chunked body is too long")
    raise Fault(Reason.TRUNCATED, "the chunked body ended early")


class Inflation:
    """Decodes a content coding, piece by piece.

    Args:
        codings: The codings of the body. Only gzip and deflate, alone, can be decoded.
    """

    def __init__(self, codings: tuple[str, ...]) -> None:
        self._gzip = codings in (("gzip",), ("x-gzip",))
        self._decodable = self._gzip or codings == ("deflate",)
        self._decoder: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage]  # no other name

    @classmethod
    def of(cls, head: HttpHead, *, paid: bool) -> Inflation | None:
        """Return a decoder for the body of a response, or None if it is not coded.

        Args:
            head: The head of the response.
            paid: Whether it is the response to a paid request.

        Raises:
            Fault: It cannot be decoded, and the request was paid. What has arrived is then kept as
                it came, because it may name a task. Otherwise, only reading the body fails: whoever
                reads the head may do without it.
        """
        if not head.codings:
            return None
        made = cls(head.codings)
        if paid and not made._decodable:
            raise _undecodable()
        return made

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Decode *piece*, the next of the body; yield at most `PIECE` bytes at a time.

        Raises:
            Fault: The piece violates its coding, or cannot be decoded.
        """
        if not self._decodable:
            raise _undecodable()
        decoder = self._decoder
        if decoder is None:
            decoder = zlib.decompressobj(_GZIP if self._gzip else _deflate_format(piece))
        data, full = piece, False
        # A full step may leave output behind in the decoder after its last input.
        while data or full:
            if decoder.eof:
                if not self._gzip:
                    raise Fault(Reason.MALFORMED, "bytes follow the end of the deflated body")
                decoder = zlib.decompressobj(_GZIP)
            self._decoder = decoder
            try:
                out = decoder.decompress(data, PIECE)
            except zlib.error:
                raise Fault(
                    Reason.MALFORMED, "the body does not match its content coding"
                ) from None
            if out:
                yield out
            data = decoder.unconsumed_tail or decoder.unused_data
            full = len(out) == PIECE and not decoder.eof

    def end(self) -> None:
        """Record the end of the body.

        Raises:
            Fault: The coding is incomplete.
        """
        if self._decoder is not None and not self._decoder.eof:
            raise Fault(Reason.TRUNCATED, "the body ended inside its content coding")


def _undecodable() -> Fault:
    return Fault(Reason.MALFORMED, "Content-Encoding is neither gzip nor deflate")


def _deflate_format(start: bytes) -> int:
    """Tell the zlib format, which the standard requires, from the raw one that some send."""
    deflated = start[0] & 0x0F == zlib.DEFLATED
    checked = len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0  # noqa: PLR2004  # of the format
    return _ZLIB if deflated and checked else _RAW_DEFLATE
