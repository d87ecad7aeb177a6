"""Reads one response from the bytes of a connection, and does no I/O.

A head ends at its first empty line, as does each informational response before it. Heads and
chunked bodies go through httptools, which is llhttp, the parser of Node. It is strict by default,
and whatever it refuses is malformed. A body of known length, or one that ends with its connection,
bypasses it, because it would copy every piece.

The parser's callbacks only append to a list, and are written in C. None of our code runs inside the
parser, so no signal handler does either, and only a lack of memory can raise there.

`feed` takes bytes as they arrive, and `read` returns the decoded body, piece by piece, until
`complete`. Both stay within bounds: heads and the overhead of chunks are limited, and compressed
bytes are decompressed in small steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Final

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserUpgrade,
    HttpResponseParser,
)

from muybridge.wire._content_coding import Inflation
from muybridge.wire._framing import Framing, listed
from muybridge.wire.exchange import PIECE, Fault
from muybridge_protocol.http import HttpHead, Reason

_LARGE_PIECE: Final = 256 * 1024
"""The most bytes to read at a time from a body of known length. In pieces of 64 KiB, a download
takes a third longer."""
_OVERHEAD_LIMIT: Final = 64 * 1024
"""The most bytes of a head, of a line of a chunked body, or of its trailer."""
_MOST_FIELDS: Final = 100
_LEAST: Final = 100
"""The lowest valid status."""
_FINAL: Final = 200
"""The lowest status of a final response, after which no other follows."""
_STATUS_LINE: Final = b"HTTP/1."
_HEAD_END: Final = b"\r\n\r\n"
_BEGIN, _END = b"begin", b""
"""What the parser appends where a message begins and ends. Its body stands in between."""
_NOTHING: Final[Iterator[bytes]] = iter(())


class ResponseReader:
    """One response, as far as it has arrived.

    Args:
        method: The method of the request.
        paid: Whether the request was paid.
    """

    def __init__(self, method: str, *, paid: bool = False) -> None:
        self.head: HttpHead | None = None
        self.complete: bool = False
        """Whether all of the body has been read."""
        self.keeps_alive: bool = False
        """Whether the head allows another request on the connection."""
        self.is_followed: bool = False
        """Whether something that nobody asked for arrived after the response."""
        self._method = method
        self._paid = paid
        self._framing: Framing
        self._missing: int | None = None
        self._inflation: Inflation | None = None
        self._inflated = _NOTHING
        self._pieces: deque[bytes]
        self._has_ended = False
        self._is_malformed = False
        self._overhead = 0
        self._arrived = bytearray()

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        return self.head is not None and self._framing.ends_with_connection

    @property
    def wanted(self) -> int:
        """The most bytes to receive next."""
        return PIECE if self._missing is None else min(self._missing, _LARGE_PIECE)

    def feed(self, data: bytes) -> None:
        """Take the bytes that arrived next, or none at the end of the connection.

        Raises:
            Fault: The response violates HTTP/1, something is too long, or the body ended early.
            EOFError: The head ended early.
        """
        if not data:
            self._feed_end()
        while data and self.head is None:
            block, data = self._cut_head(data)
            if block is not None:
                self._take_head(block)
        if data:
            self._feed_body(data)

    def read(self) -> bytes:
        """Return the next piece of the decoded body, or none if no more has arrived.

        Raises:
            Fault: The body violates HTTP/1 or its coding.
        """
        for piece in self._inflated:
            return piece
        while self._pieces:
            piece = self._pieces.popleft()
            if self._inflation is None:
                return piece
            self._inflated = self._inflation.feed(piece)
            for inflated in self._inflated:
                return inflated
        if self._is_malformed:
            raise _malformed()
        if self._has_ended and not self.complete:
            if self._inflation is not None:
                self._inflation.end()
            self.complete = True
        return b""

    def _make_parser(self) -> None:
        self._parsed: list[bytes] = []
        tell = self._parsed.append
        self._parser = HttpResponseParser(
            SimpleNamespace(
                on_message_begin=partial(tell, _BEGIN),
                on_body=tell,
                on_message_complete=partial(tell, _END),
            )
        )
        # Some servers pad the sizes of their chunks.
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)

    def _cut_head(self, data: bytes) -> tuple[bytearray | None, bytes]:
        """Take the part of *data* that belongs to a head.

        Returns:
            The head that decides, if it is whole, and the rest of *data*.
        """
        before = len(self._arrived)
        if before == 0:
            # Only now: where thousands wait, the garbage collector visits all that they hold.
            self._make_parser()
        self._arrived += data
        if not _STATUS_LINE.startswith(self._arrived[: len(_STATUS_LINE)]):
            raise Fault(Reason.MALFORMED, "the response is not HTTP/1")
        blank_line = self._arrived.find(_HEAD_END, max(0, before - len(_HEAD_END)))
        end = len(self._arrived) if blank_line < 0 else blank_line + len(_HEAD_END)
        if not self._parse(data[: end - before]):
            raise _malformed()
        if end > _OVERHEAD_LIMIT:
            raise Fault(Reason.MALFORMED, "the response's head is too long")
        if blank_line < 0:
            return None, b""
        status = self._parser.get_status_code()
        if status < _LEAST:
            raise _malformed()
        block, rest = self._arrived[:blank_line], data[end - before :]
        if status < _FINAL:  # it is informational, and has no body
            self._arrived = bytearray()
            return None, rest
        return block, rest

    def _take_head(self, block: bytearray) -> None:
        """Read the head, and find out where the body ends and how it is coded."""
        status = self._parser.get_status_code()
        first, *lines = block.decode("latin-1").split("\r\n")
        if len(lines) > _MOST_FIELDS:
            raise Fault(Reason.MALFORMED, "the response has too many headers")
        headers: list[tuple[str, str]] = []
        for line in lines:
            name, _, value = line.partition(":")
            headers.append((name, value.strip(" \t")))
        head = HttpHead(status, tuple(headers))
        items = listed(head)
        framing = self._framing = Framing.of(self._method, status, items)
        self._inflation = Inflation.of(items["content-encoding"], paid=self._paid)
        self._pieces = deque()
        options = items["connection"]
        usual = not first.startswith("HTTP/1.0") or "keep-alive" in options
        self.keeps_alive = usual and "close" not in options and not framing.ends_with_connection
        if not framing.chunked:
            self._missing = 0 if framing.bodiless else framing.length
            self._has_ended = self._missing == 0
        self._parsed.clear()
        self.head = head

    def _feed_body(self, data: bytes) -> None:
        if self._has_ended:
            self.is_followed = True
        elif self._framing.chunked:
            self._feed_chunks(data)
        elif self._missing is None:
            self._pieces.append(data)
        else:
            self._pieces.append(data[: self._missing])
            self.is_followed = len(data) > self._missing
            self._missing = max(0, self._missing - len(data))
            self._has_ended = not self._missing

    def _feed_chunks(self, data: bytes) -> None:
        is_sound = self._parse(data)
        parsed, self._parsed[:] = self._parsed[:], ()
        self._has_ended = _END in parsed
        end = parsed.index(_END) if self._has_ended else len(parsed)
        self._pieces += parsed[:end]
        if self._has_ended:
            # The parser has read on, into whatever follows: another response, or bytes that are not
            # HTTP.
            self.is_followed = len(parsed) > end + 1 or not is_sound
            return
        self._is_malformed = not is_sound
        # A chunk's size line and the trailer yield no piece, so that they could go on without end.
        self._overhead = 0 if parsed else self._overhead + len(data)
        if self._overhead > _OVERHEAD_LIMIT:
            raise Fault(Reason.MALFORMED, "the response's trailer is too long")

    def _feed_end(self) -> None:
        """Take the end of the connection.

        Raises:
            Fault: The body is not complete.
            EOFError: The head is not complete.
        """
        if self.ends_with_connection:
            self._has_ended = True
        elif not self._has_ended:
            raise self._cut_off()

    def _cut_off(self) -> Exception:
        if self.head is None:
            return EOFError()  # `Exchange` describes it
        if self._missing is not None:
            return Fault(Reason.TRUNCATED, f"the body ended {self._missing} bytes early")
        return Fault(Reason.TRUNCATED, "the chunked body ended early")

    def _parse(self, data: bytes) -> bool:
        """Let the parser read *data*, and return whether it is valid HTTP/1.

        The parser's messages are left out, because they may quote the response.
        """
        try:
            self._parser.feed_data(data)
        except HttpParserCallbackError:
            raise MemoryError from None  # the callbacks raise nothing else
        except (HttpParserError, HttpParserUpgrade):
            return False
        return True


def _malformed() -> Fault:
    return Fault(Reason.MALFORMED, "the response violates HTTP/1")
