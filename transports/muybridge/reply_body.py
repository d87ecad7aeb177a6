"""How a reply's body is delimited and encoded, read strictly and within bounds.

http.client takes a junk `Content-Length` for none, prefers `Transfer-Encoding` where both are
given, and counts an early end as the end. Here each of these is a fault, because a body cut short
must never pass for a whole one.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Protocol

from muybridge.watched_exchange import Fault
from muybridge_protocol.http import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.client import HTTPMessage

PIECE = 64 * 1024
"""Most bytes of a body that are read, or decoded, at a time."""

_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")
_LINE_LIMIT = 16 * 1024
_TRAILER_LIMIT = 64 * 1024
_BODILESS = (204, 304)
_ZLIB, _RAW_DEFLATE, _GZIP = 15, -15, 31


class Source(Protocol):
    """What a body is read from."""

    def read1(self, size: int, /) -> bytes:
        """Return what is there, up to *size* bytes, or nothing at the end."""
        ...

    def readline(self, size: int, /) -> bytes:
        """Return bytes up to the end of a line, or *size* bytes."""
        ...


def framed(source: Source, method: str, status: int, headers: HTTPMessage) -> Iterator[bytes]:
    """Return the pieces of the body as it was transferred.

    Raises:
        Fault: The headers contradict each other; or, on reading, the body ended early or is
            malformed.
    """
    codings = _listed(headers, "transfer-encoding")
    lengths = set(_listed(headers, "content-length"))
    if codings and (codings != ["chunked"] or lengths):
        raise Fault(Reason.MALFORMED, "unknown Transfer-Encoding, or one with Content-Length")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise Fault(Reason.MALFORMED, "Content-Length is not one number")
    if method == "HEAD" or status in _BODILESS:
        return iter(())
    if codings:
        return _chunks(source)
    if lengths:
        return _counted(source, int(lengths.pop()))
    return iter(lambda: source.read1(PIECE), b"")


def decoded(pieces: Iterator[bytes], headers: HTTPMessage) -> Iterator[bytes]:
    """Return *pieces* without their content coding, never more than `PIECE` bytes at a time.

    Raises:
        Fault: There is more than one coding, or one other than gzip and deflate; or, on reading,
            the body is not what its coding asks for.
    """
    codings = [name for name in _listed(headers, "content-encoding") if name != "identity"]
    match codings:
        case []:
            return pieces
        case ["gzip" | "x-gzip"]:
            return _inflated(pieces, gzip=True)
        case ["deflate"]:
            return _inflated(pieces, gzip=False)
        case _:
            raise Fault(Reason.MALFORMED, "Content-Encoding is neither gzip nor deflate")


def _listed(headers: HTTPMessage, name: str) -> list[str]:
    values = headers.get_all(name)
    if values is None:
        return []
    return [item.strip().lower() for value in values for item in str(value).split(",")]


def _counted(source: Source, length: int) -> Iterator[bytes]:
    while length:
        piece = source.read1(min(length, PIECE))
        if not piece:
            raise Fault(Reason.TRUNCATED, f"the body ended {length} bytes early")
        length -= len(piece)
        yield piece


def _chunks(source: Source) -> Iterator[bytes]:
    while size := _chunk_size(source):
        yield from _counted(source, size)
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


def _inflated(pieces: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    decoder = None
    for piece in pieces:
        if decoder is None:
            decoder = zlib.decompressobj(_GZIP if gzip else _deflate_format(piece))
        data, full = piece, False
        # A full step may leave output behind in the decoder after its last input.
        while data or full:
            if decoder.eof:
                if not gzip:
                    raise Fault(Reason.MALFORMED, "bytes follow the deflated body")
                decoder = zlib.decompressobj(_GZIP)
            try:
                out = decoder.decompress(data, PIECE)
            except zlib.error:
                raise Fault(Reason.MALFORMED, "the body is not what its coding says") from None
            if out:
                yield out
            data = decoder.unconsumed_tail or decoder.unused_data
            full = len(out) == PIECE and not decoder.eof
    if decoder is not None and not decoder.eof:
        raise Fault(Reason.TRUNCATED, "the body ended inside its coding")


def _deflate_format(start: bytes) -> int:
    """Tell the zlib format, which the standard asks for, from the bare one that some send."""
    deflated = start[0] & 0x0F == zlib.DEFLATED
    checked = len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0  # noqa: PLR2004  # of the format
    return _ZLIB if deflated and checked else _RAW_DEFLATE
