"""Content codings, undone piece by piece and within bounds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from muybridge.wire.exchange import PIECE, Fault
from muybridge_protocol.http import Reason, content_codings

_ZLIB, _RAW_DEFLATE, _GZIP = 15, -15, 31


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
    def of(cls, labels: Sequence[str], *, paid: bool) -> Inflation | None:
        """Return a decoder for the body of a response, or None if it is not coded.

        Args:
            labels: The items of its `Content-Encoding`, in lower case.
            paid: Whether it is the response to a paid request.

        Raises:
            Fault: It cannot be decoded, and the request was paid. What has arrived is then kept as
                it came, because it may name a task. Otherwise, only reading the body fails: whoever
                reads the head may do without it.
        """
        codings = content_codings(labels) if labels else ()
        if not codings:
            return None
        inflation = cls(codings)
        if paid and not inflation._decodable:
            raise _undecodable()
        return inflation

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
                # A gzip body may consist of several members, one after the other. A deflated one
                # ends here.
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
