"""The body of a streamed text reply, in pieces however cut, into the payloads of its events.

The service does not say which form its streams have, so the form is told by the first byte: `[` is
a JSON array of objects, `{` is JSON objects one after another, with or without commas, and anything
else is server-sent events, read as the WHATWG's standard says. A payload is a JSON text that is not
looked into, or `DONE`.

Inline pictures make events of many MiB normal. So the cost is linear in the size of the body
however it is cut, long strings are passed over by the C functions of `bytes`, and what is kept
is never more than one event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from muybridge_protocol.codec import EVENT_LIMIT

DONE: Final = b"[DONE]"
"""The payload that some services send last; it is not JSON."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHITE_SPACE: Final = b" \t\r\n"
_WINDOW: Final = 64 * 1024
"""Bytes that are looked at in one go: a large piece must not become a long list of lines."""


class MalformedStream(ValueError):
    """A body that is no stream of events; the message says why."""


class EventTooLarge(MalformedStream):
    """An event, or a line, that has more bytes than it may have."""


class StreamParser:
    """Takes the body of a streamed reply in pieces, however it is cut, and gives the payloads.

    What a call returns must be used up before the next call. After an exception the
    parser is of no further use.

    Args:
        event_limit: Most bytes that one event may have. They are counted as they come: with field
            names, without line ends. A line without end counts as an event.
    """

    def __init__(self, *, event_limit: int = EVENT_LIMIT) -> None:
        self._event_limit = event_limit
        self._begun = False
        self._head = b""
        self._form: _ServerSentEvents | _Objects | None = None
        self.over: bool = False
        """Whether the body has said that nothing follows: it is an array that has ended."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the payloads of the events that *piece* completes.

        Raises:
            MalformedStream: It does not go on as it may. Events before that have been given.
            EventTooLarge: An event has more than *event_limit* bytes.
        """
        if len(piece) > _WINDOW:
            for at in range(0, len(piece), _WINDOW):
                yield from self.feed(piece[at : at + _WINDOW])
            return
        if self._form is None:
            piece = self._begin(piece)
        if self._form is None or not piece:
            return
        payloads: list[bytes] = []
        try:
            self._form.feed(piece, payloads)
        finally:  # what came before an exception is given before it is raised
            payloads.reverse()
            while payloads:
                yield payloads.pop()  # nothing here keeps it while it is read
            self.over = self._form.over

    def end(self) -> Iterator[bytes]:
        """Yield the last payload, if the body ended without the blank line that completes it.

        A server-sent event that was cut within its line cannot be told from a whole one. Its JSON
        can.

        Raises:
            MalformedStream: The body ends inside an event.
        """
        payloads = [] if self._form is None else self._form.end()
        while payloads:
            yield payloads.pop(0)

    def _begin(self, window: bytes) -> bytes:
        """Choose the form once it is known, and return what of *window* belongs to it."""
        if not self._begun:
            window = self._head + window
            if len(window) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(window):
                self._head = window
                return b""
            self._begun = True
            window = window.removeprefix(_BYTE_ORDER_MARK)
        window = window.lstrip(_WHITE_SPACE)
        match window[:1]:
            case b"":
                pass
            case b"[":
                self._form = _Objects(self._event_limit, first=b"{]", following=b",]")
                return window[1:]
            case b"{":
                self._form = _Objects(self._event_limit, first=b"{", following=b",{")
            case _:
                self._form = _ServerSentEvents(self._event_limit)
        return window


class _ServerSentEvents:
    """Lines, ended by CR, LF or CRLF. A blank line ends an event.

    Services that break down in the middle of a stream tell so in a JSON object without a field's
    name. On a line of its own it is an event of its own.
    """

    over: Final = False

    def __init__(self, event_limit: int) -> None:
        self._event_limit = event_limit
        self._line = bytearray()  # a line whose end has not come
        self._after_cr = False
        self._data: bytes | None = None  # the first data line of an event
        self._more_data = bytearray()  # all, once there is a second; they can be many and short
        self._size = 0

    def feed(self, window: bytes, payloads: list[bytes]) -> None:
        # To split takes a tenth of the time of `splitlines`.
        many = self._after_cr or b"\r" in window
        lines = self._lines(window) if many else window.split(b"\n")
        rest = lines.pop()
        if self._line and lines:
            lines[0] = b"".join((self._line, lines[0]))
            self._line.clear()
        data, size, limit = self._data, self._size, self._event_limit
        self._data = None
        lines.reverse()
        while lines:
            line = lines.pop()  # so that nothing else keeps a long one
            if data is None and lines and not lines[-1] and line.startswith(b"data: "):
                # One line and a blank one, as nearly every event: it takes half the time.
                if len(line) > limit:
                    raise self._too_large()
                lines.pop()
                line = line[6:]
                line = line.strip()  # in two steps, so that a long one stands there twice at most
                if line:
                    payloads.append(line)
                continue
            if not line:
                if data is not None:
                    payload = self._joined() if self._more_data else data.strip()
                    if payload:
                        payloads.append(payload)
                    data, size, payload = None, 0, b""
                continue
            length = len(line)
            if size + length > limit:
                raise self._too_large()
            if line.startswith(b"data: "):
                line = line[6:]
            elif line.startswith(b"data:"):
                line = line[5:]
            elif line == b"data":
                line = b""
            elif line.startswith(b"{"):
                payloads.append(line)
                continue
            else:
                continue  # a comment, or a field that says nothing about the payload
            size += length
            if data is None:
                data = line
            else:
                if not self._more_data:
                    self._more_data += data
                    data = b""  # before the other grows
                self._more_data += b"\n"
                self._more_data += line
        self._data, self._size = data, size
        if rest:
            self._line += rest
            if size + len(self._line) > limit:
                raise self._too_large()

    def end(self) -> list[bytes]:
        payloads: list[bytes] = []
        self.feed(b"\n\n", payloads)
        return payloads

    def _joined(self) -> bytes:
        """Return the lines of an event.

        Of a large one no copy is made: even a hole that a copy leaves in the heap may be a few
        bytes too small for the text that comes next. White space may then be left at its end.
        """
        joined, self._more_data = self._more_data, bytearray()
        if len(joined) <= _WINDOW:
            return bytes(joined).strip()
        found = _NOT_WHITE_SPACE.search(joined)
        del joined[: found.start() if found else None]
        return cast("bytes", joined)  # which is read as they are

    def _lines(self, window: bytes) -> list[bytes]:
        """Return the lines in *window*, the last of which has not ended."""
        if self._after_cr and window.startswith(b"\n"):
            window = window[1:]  # the other half of one line end
        self._after_cr = window.endswith(b"\r")
        lines = window.splitlines()
        return lines if lines and not window.endswith((b"\r", b"\n")) else [*lines, b""]

    def _too_large(self) -> EventTooLarge:
        return EventTooLarge(f"an event or a line has more than {self._event_limit} bytes")


_NOT_WHITE_SPACE: Final = re.compile(rb"[^ \t\r\n]")
# Passes over whole strings, up to a brace, a string without end, or the end of the window.
_MARK: Final = re.compile(rb'[^"{}]*+(?:"[^"]*+"[^"{}]*+)*+(["{}]?)')


class _Objects:
    """JSON objects with white space and commas between them; an array's have to have commas.

    Only braces and strings are looked at, to find where an object ends. Whether it is JSON is for
    whoever reads it.

    Args:
        event_limit: Most bytes that an object may have.
        first: The bytes that may stand first.
        following: The bytes that may stand after an object.
    """

    def __init__(self, event_limit: int, *, first: bytes, following: bytes) -> None:
        self._event_limit = event_limit
        self._allowed = first
        self._following = following
        self._held = b""
        self._object = bytearray()  # an object whose end has not come
        self._depth = 0
        self._in_string = False

    def feed(self, window: bytes, payloads: list[bytes]) -> None:
        window = self._held + window
        self._held = b""
        plain = window
        if b"\\" in window:
            # Of the same length, and without escapes: each quote in it begins or ends a string.
            plain = window.replace(rb"\\", b"__").replace(rb"\"", b"__")
            if plain.endswith(b"\\"):  # its other half has not come
                self._held = b"\\"
                plain = plain[:-1]
        begin, size = 0, len(plain)
        while begin < size:
            if not self._depth:
                begin = self._find_object(plain, begin)
                if begin == size:
                    return
            end = self._find_end(plain, begin)
            if len(self._object) + end - begin > self._event_limit:
                raise EventTooLarge(f"an event has more than {self._event_limit} bytes")
            if self._object or self._depth:
                self._object += window[begin:end]
            if not self._depth:
                self._allowed = self._following
                if self._object:
                    payloads.append(bytes(self._object))
                    self._object.clear()
                else:
                    payloads.append(window[begin:end])
            begin = end

    @property
    def over(self) -> bool:
        """Whether nothing may stand after what has come."""
        return not self._allowed

    def end(self) -> list[bytes]:
        if self._depth or self._held:
            raise MalformedStream("the body ends inside an event")
        return []

    def _find_object(self, plain: bytes, at: int) -> int:
        """Return where an object begins, or the end of *plain*."""
        while found := _NOT_WHITE_SPACE.search(plain, at):
            mark = found[0]
            if mark not in self._allowed:
                raise self._misplaced(mark)
            if mark == b"{":
                return found.start()
            self._allowed = b"{" if mark == b"," else b""
            at = found.end()
        return len(plain)

    def _find_end(self, plain: bytes, at: int) -> int:
        """Return where the object ends, or the end of *plain*."""
        size = len(plain)
        if self._in_string:
            at = plain.find(b'"', at) + 1
            if not at:
                return size
            self._in_string = False
        for found in _MARK.finditer(plain, at):
            mark = found[1]
            if mark == b"{":
                self._depth += 1
            elif mark == b"}":
                self._depth -= 1
                if not self._depth:
                    return found.end()
            else:
                self._in_string = bool(mark)
                break
        return size

    def _misplaced(self, found: bytes) -> MalformedStream:
        if not self._allowed:
            return MalformedStream("the body goes on after the end of its JSON array")
        return MalformedStream(f"{found!r} stands where an event should begin")
