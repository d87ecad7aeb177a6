"""Reads a reply's head, and what comes right behind it, out of the bytes of a connection.

httptools finds the fields, the chunks and the end. It is Node's own parser, strict unless told
otherwise, and takes a twentieth of the time of one in Python: an exchange as a whole takes a
third less.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Final

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserUpgrade,
    HttpResponseParser,
)

from muybridge.wire.exchange import Fault
from muybridge_protocol.http import Reason

_OVERHEAD_LIMIT: Final = 64 * 1024
"""Most bytes that a reply's head, a line of a chunked body or its trailer may have."""
_LEAST: Final = 100
"""The lowest status that there is."""
_FINAL: Final = 200
"""The lowest status of a reply that no other one follows."""


class ReplyReader:
    """One reply, as far as it has come.

    `on_message_begin`, `on_header`, `on_headers_complete`, `on_body` and `on_message_complete`
    are called by the parser.
    """

    __slots__ = (
        "_is_malformed",
        "_overhead",
        "_parser",
        "_pieces",
        "fields",
        "has_ended",
        "has_head",
        "is_followed",
        "keeps_alive",
        "status",
    )

    def __init__(self) -> None:
        self.status: int = 0
        self.fields: list[tuple[bytes, bytes]] = []
        self.has_head: bool = False
        self.has_ended: bool = False
        """Whether all of a chunked body has come, or of one that came with the head."""
        self.keeps_alive: bool = False
        """Whether the head lets another request follow on the connection."""
        self.is_followed: bool = False
        """Whether something came behind the reply that nobody asked for."""
        self._pieces: deque[bytes] = deque()
        self._overhead = 0
        self._is_malformed = False
        parser = HttpResponseParser(self)
        self._parser: HttpResponseParser | None = parser
        # What an informational reply says of the connection ends nothing, and some servers pad the
        # sizes of their chunks.
        parser.set_dangerous_leniencies(
            lenient_keep_alive=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Take what has come next.

        Raises:
            Fault: The head is not what HTTP/1 asks for, or something is too long.
        """
        parser = self._parser
        if parser is None:
            self.is_followed = True
            return
        self._overhead += len(data)
        handled = sys.exception()
        try:
            parser.feed_data(data)
        except HttpParserCallbackError as error:
            raise _met(error, handled) from None
        except (HttpParserError, HttpParserUpgrade):
            # What the parser says about a reply is left out: it may quote the reply.
            self.is_followed, self._is_malformed = self.has_ended, not self.has_ended
        if not self.has_head:
            self._check()
        if self.has_ended:
            self.let_go()
        if self._overhead > _OVERHEAD_LIMIT and not self.has_ended:
            what = "trailer" if self.has_head else "head"
            raise Fault(Reason.MALFORMED, f"the reply's {what} is too long")

    def next_piece(self) -> bytes:
        """Return the next piece of the body that has come, a chunk or less, or nothing.

        Raises:
            Fault: What comes next is not what HTTP/1 asks for.
        """
        if self._pieces:
            return self._pieces.popleft()
        self._check()
        return b""

    def let_go(self) -> None:
        """Let go of the parser, where somebody else reads on.

        It holds this reader, too, and neither would go before the next garbage collection.
        """
        self._parser = None

    def _check(self) -> None:
        if self._is_malformed:
            raise Fault(Reason.MALFORMED, "the reply is not what HTTP/1 asks for")

    def on_message_begin(self) -> None:
        """Note that a reply begins, be it this one, an informational one before it, or another."""
        self.is_followed = self.has_ended

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head. Those of a trailer are of no use."""
        if not self.has_head:
            self.fields.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Take the end of the head, unless another reply follows this one."""
        parser = self._parser
        if self.has_head or self._is_malformed or parser is None:
            return
        status = parser.get_status_code()
        too_long = self._overhead > _OVERHEAD_LIMIT and _size(self.fields) > _OVERHEAD_LIMIT
        if status < _LEAST or too_long:
            self._is_malformed = True
            return
        if status < _FINAL:
            self.fields.clear()
            self._overhead = 0
            return
        # Once the reply has ended, the parser knows it no longer.
        self.status, self.keeps_alive = status, parser.should_keep_alive()
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body. That of an informational reply is none of this one's."""
        if self.has_head and not self.has_ended:
            self._pieces.append(body)
            self._overhead = 0

    def on_message_complete(self) -> None:
        """Take the reply's end, or that of an informational one."""
        self.has_ended = self.has_head


def _met(error: HttpParserCallbackError, handled: BaseException | None) -> BaseException:
    """Return what was raised amid what the parser calls: Ctrl-C, or the memory's end.

    Nothing of ours raises anything there. Where our caller is handling an error, Python has put
    that one in the place of what was met, which was Ctrl-C far more often.
    """
    met = error.__context__
    return KeyboardInterrupt() if met is None or met is handled else met


def _size(fields: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) for name, value in fields)
