"""Split the body of a streamed text response into the payloads of its events.

The specification does not show the format of streams, so the first byte decides: `[` begins a JSON
array of objects, `{` begins JSON objects one after another, with or without commas, and anything
else is server-sent events as in the WHATWG standard. A payload is unparsed JSON, `DONE`, or an
`ErrorEvent`. Parsing it is up to `StreamReader`.

The body arrives in pieces that may be cut anywhere: between CR and LF, within a character, after
the backslash of an escape. So a parser keeps the line or the object that is still incomplete, and
the events must not depend on the cuts.

Everything that arrives has been paid for. So a parser drops nothing that may be an event:

- Events before an error are yielded before it is raised, and the error has the rest of the piece.
- An event without the blank line that completes it is yielded at the end of the body, and
  `unfinished` says so. Whether the text is whole is decided by the protocol, not here.
- Services report an error in the middle of a stream in many layouts: as an event named `error`, in
  a field `error`, or as bare JSON on one line or several. The standard ignores lines without a
  field name, so such a stream would seem to end without an error. Lines that look like JSON are
  therefore read as JSON.

To find where an object ends, it is enough to count braces outside of strings. Only escapes make
strings difficult. They are overwritten first, in a copy of the same length: then each remaining
quote begins or ends a string, and positions are those of the original.

Inline pictures make events of many MiB normal. So the cost is linear in the size of the body,
however it is cut, the C methods of `bytes` skip long strings, and at most one event is kept. While
a large event is passed on, nothing here may refer to it or to the line that it was in: the caller
has room for one copy only. That is why lists are popped from and variables are reused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from muybridge_protocol.records.json import EVENT_LIMIT

DONE: Final = b"[DONE]"
"""The payload that some services send last; it is not JSON."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_WHITE_SPACE: Final = b" \t\r\n"
_WINDOW: Final = 64 * 1024
"""Bytes that are split at a time: a large piece must not become a long list of lines."""


class ErrorEvent(bytes):
    """The data of a server-sent event with the name `error`. It may not be JSON."""


class MalformedStream(ValueError):
    """The body is not a stream of events; the message says why.

    Args:
        message: Why.
        too_large: Whether an event or a line exceeds the limit.
    """

    rest: bytes = b""
    """The rest of the piece, from the error on."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large: bool = too_large


class StreamParser:
    """Takes the body of a streamed response in pieces, and yields the payloads.

    Exhaust the iterator that a call returns before the next call. After an exception, the parser
    cannot be used any further.

    Args:
        event_limit: Most bytes of one event as it arrives, with field names and without line ends.
            An unfinished line counts as an event.
        server_sent: Whether the body is server-sent events, whatever its first byte is.
    """

    def __init__(self, *, event_limit: int = EVENT_LIMIT, server_sent: bool = False) -> None:
        self._event_limit = event_limit
        self._begun = False
        self._head = b""
        self._form: _ServerSentEvents | _Objects | None = None
        if server_sent:
            self._form = _ServerSentEvents(event_limit)
        self.over: bool = False
        """Whether the body is an array that has ended, so that nothing may follow."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the payloads of the events that *piece* completes.

        Raises:
            MalformedStream: The piece is malformed, or an event has more bytes than the limit.
                Events before the error have been yielded.
        """
        if len(piece) > _WINDOW:
            for at in range(0, len(piece), _WINDOW):
                try:
                    yield from self.feed(piece[at : at + _WINDOW])
                except MalformedStream as error:
                    error.rest += piece[at + _WINDOW :]
                    raise
            return
        if self._form is None:
            piece = self._begin(piece)
        if self._form is None or not piece:
            return
        payloads: list[bytes] = []
        try:
            self._form.feed(piece, payloads)
        finally:  # events before an error are yielded before it is raised
            payloads.reverse()
            while payloads:
                yield payloads.pop()  # nothing here refers to it while it is read
            self.over = self._form.over

    def end(self) -> Iterator[bytes]:
        """Yield the last payload, if the body ended without the blank line that completes it.

        It may be truncated, which only its JSON shows.

        Raises:
            MalformedStream: The body ends inside an event.
        """
        payloads = [] if self._form is None else self._form.end()
        while payloads:
            yield payloads.pop(0)

    @property
    def unfinished(self) -> bool:
        """Whether the body ended inside an event or array, if only a blank line is missing."""
        return self._form is not None and self._form.unfinished

    def _begin(self, window: bytes) -> bytes:
        """Choose the form once it is known, and return the part of *window* that belongs to it."""
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
                self._form = _Objects(self._event_limit, is_array=True)
                return window[1:]
            case b"{":
                self._form = _Objects(self._event_limit, is_array=False)
            case _:
                self._form = _ServerSentEvents(self._event_limit)
        return window


class _ServerSentEvents:
    """Lines, ended by CR, LF or CRLF. A blank line ends an event.

    A service that fails in the middle of a stream often reports the error as JSON that is not an
    event by the standard: in a field `error`, on lines of its own, pretty-printed, or with a field
    name on its first line only. So lines without a field name that look like JSON are read as such,
    up to the last bracket or to the next line with a field name.
    """

    over: Final = False

    def __init__(self, event_limit: int) -> None:
        self._event_limit = event_limit
        self._line = bytearray()  # an unfinished line
        self._after_cr = False
        self.unfinished = False
        self._more_data = bytearray()  # all lines, if there are several
        self._reset()

    def _reset(self) -> None:
        self._begun = False  # whether the event has a line
        self._is_error = False  # whether its name is `error`
        self._data: bytes | None = None  # its first data line
        self._size = 0
        self._text: _Objects | None = None  # unfinished JSON on lines without a field name
        self._looked_for_text = False

    def feed(self, window: bytes, payloads: list[bytes]) -> None:
        # `split` takes a tenth of the time of `splitlines`.
        many = self._after_cr or b"\r" in window
        lines = self._lines(window) if many else window.split(b"\n")
        rest = lines.pop()
        if self._line and lines:
            lines[0] = b"".join((self._line, lines[0]))
            self._line.clear()
        lines.reverse()
        while lines:
            # A line is popped where it is used, so that nothing else refers to a long one.
            if self._begun or lines[-2:-1] != [b""] or not lines[-1].startswith(b"data: "):
                self._take(lines.pop(), payloads)
            else:  # a line of data and a blank line, like nearly every event: twice as fast
                if len(lines[-1]) > self._event_limit:
                    raise self._too_large()
                line = lines.pop()[6:]
                lines.pop()
                line = line.strip()  # in two steps, to make at most two copies
                if line:
                    payloads.append(line)
        if rest:
            self._line += rest
            if self._size + len(self._line) > self._event_limit:
                raise self._too_large()

    def end(self) -> list[bytes]:
        payloads: list[bytes] = []
        if self._line:
            self.feed(b"\n", payloads)
        self.unfinished = self._begun
        self._finish(payloads)
        return payloads

    def _take(self, line: bytes, payloads: list[bytes]) -> None:
        if self._size + len(line) > self._event_limit:
            raise self._too_large()
        if not line and self._text is None:
            self._finish(payloads)
        elif field := _FIELD.match(line):
            if self._text is not None:  # its end is missing
                self._finish(payloads)
            self._begun = True
            name, size = field[1], len(line)
            line = line[field.end() :]
            del field  # it refers to the whole line
            if name == b"event":
                self._is_error = line.strip() == b"error"
            elif name in (b"data", b"error"):
                self._is_error = self._is_error or name == b"error"
                self._size += size
                self._take_data(line)
        elif self._text is not None:
            self._continue_text(self._text, line, payloads)
        elif not line.startswith(b":"):
            self._take_unnamed(line, payloads)

    def _take_data(self, line: bytes) -> None:
        if self._data is None:
            self._data = line
            return
        if not self._more_data:
            self._more_data += self._data
            self._data = b""  # before the other grows
        self._more_data += b"\n"
        self._more_data += line

    def _take_unnamed(self, line: bytes, payloads: list[bytes]) -> None:
        """Take a line without a field name. It is ignored unless it is JSON."""
        # Pretty-printed JSON may have a field name on its first line only, so this line may
        # continue the data before it. That is looked for once in an event, because it reads that
        # data anew.
        first = None if self._more_data or self._looked_for_text else self._data
        if first is not None and _JSON_GOES_ON.match(line):
            self._looked_for_text = True
            text, objects = self._text_in(first)
            if text is not None:
                self._data, self._size, self._text = None, 0, text
                self._give(objects, payloads)
                self._continue_text(text, line, payloads)
                return
        if not _JSON.match(line):
            self._begun = True
            return
        if self._data is not None:
            self._finish(payloads)
        self._text, objects = self._text_in(line)
        self._begun = True
        if self._text is None:
            objects = objects or [line.strip()]
        self._give(objects, payloads)
        if self._text is None:
            self._reset()

    def _text_in(self, begin: bytes) -> tuple[_Objects | None, list[bytes]]:
        """Return the unfinished JSON that *begin* begins, or None, and the objects found in it."""
        begin = begin.strip()
        if len(begin) > _WINDOW or not _JSON.match(begin):
            return None, []
        text, objects = _Objects(self._event_limit, is_array=begin.startswith(b"[")), list[bytes]()
        try:
            text.feed(begin.removeprefix(b"[") + b"\n", objects)
        except MalformedStream:
            return None, []
        return (text if text.unfinished else None), objects

    def _continue_text(self, text: _Objects, line: bytes, payloads: list[bytes]) -> None:
        objects: list[bytes] = []
        try:
            text.feed(line + b"\n", objects)
        except MalformedStream as error:
            if error.too_large:
                raise
            objects.append(error.rest.strip())
            self._text = None
        finally:
            self._give(objects, payloads)
        if self._text is None or not text.unfinished:
            self._reset()

    def _finish(self, payloads: list[bytes]) -> None:
        """Add the payload of the current event, if it has one, and begin another event."""
        if not self._begun:
            return
        data, self._data = self._data, None
        if self._text is not None:
            payload = self._text.stump
        else:
            payload = self._joined() if self._more_data else (data or b"").strip()
        if payload or (self._is_error and self._text is None):
            self._give([payload], payloads)
        self._reset()

    def _give(self, objects: list[bytes], payloads: list[bytes]) -> None:
        payloads += map(ErrorEvent, objects) if self._is_error else objects

    def _joined(self) -> bytes:
        """Return the data lines of an event, joined.

        Large events are not copied, to avoid fragmenting the heap. They may then end in white
        space.
        """
        joined, self._more_data = self._more_data, bytearray()
        if len(joined) <= _WINDOW:
            return bytes(joined).strip()
        match = _NOT_WHITE_SPACE.search(joined)
        del joined[: match.start() if match else None]
        return cast("bytes", joined)  # it is read like bytes

    def _lines(self, window: bytes) -> list[bytes]:
        """Return the lines in *window*; the last one is unfinished."""
        if self._after_cr and window.startswith(b"\n"):
            window = window[1:]  # the second half of a line end
        self._after_cr = window.endswith(b"\r")
        lines = window.splitlines()
        if not lines or window.endswith((b"\r", b"\n")):
            lines.append(b"")
        return lines

    def _too_large(self) -> MalformedStream:
        message = f"an event or a line has more than {self._event_limit} bytes"
        return MalformedStream(message, too_large=True)


_FIELD: Final = re.compile(rb"(data|event|id|retry|error(?=:[ \t]*\{))(?:: ?|\Z)")
"""A field of the standard, or JSON in a field `error`, as some services send it."""
_JSON: Final = re.compile(rb"[ \t]*(?:\{|\[[ \t]*(?:\{|\Z))")
"""The beginning of an object, or of an array of objects."""
_JSON_GOES_ON: Final = re.compile(rb'[ \t]*(?:["{}\[\],\d-]|(?:true|false|null)\b)')
_NOT_WHITE_SPACE: Final = re.compile(rb"[^ \t\r\n]")
# Skips whole strings, up to a brace, an unfinished string, or the end of the window.
_MARK: Final = re.compile(rb'[^"{}]*+(?:"[^"]*+"[^"{}]*+)*+(["{}]?)')


class _Objects:
    """JSON objects with white space and commas between them. In an array, commas are required.

    Only braces and strings are examined, to find where an object ends. Whether it is valid JSON is
    for the caller to find out.

    Args:
        event_limit: Most bytes of an object.
        is_array: Whether they are in an array, whose opening bracket has been consumed.
    """

    def __init__(self, event_limit: int, *, is_array: bool) -> None:
        self._event_limit = event_limit
        self._is_array = is_array
        self._allowed = b"{]" if is_array else b"{"  # the characters that may come next
        self._following = b",]" if is_array else b",{"  # those that may come after an object
        self._held = b""
        self._object = bytearray()  # an unfinished object
        self._depth = 0
        self._in_string = False

    def feed(self, window: bytes, payloads: list[bytes]) -> None:
        window = self._held + window
        self._held = b""
        plain = window
        if b"\\" in window:
            # The same length without escapes: each quote in it begins or ends a string.
            plain = window.replace(rb"\\", b"__").replace(rb"\"", b"__")
            if plain.endswith(b"\\"):  # the escaped character is in the next piece
                self._held = b"\\"
                plain = plain[:-1]
        begin, size = 0, len(plain)
        while begin < size:
            if not self._depth:
                begin = self._find_object(plain, begin, window)
                if begin == size:
                    return
            end = self._find_end(plain, begin)
            if len(self._object) + end - begin > self._event_limit:
                message = f"an event has more than {self._event_limit} bytes"
                raise MalformedStream(message, too_large=True)
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
        """Whether nothing may follow."""
        return not self._allowed

    @property
    def unfinished(self) -> bool:
        """Whether the end of an object or array, or the object after a comma, is missing."""
        if self._depth or self._held or self._allowed == b"{":
            return True
        return self._is_array and not self.over

    @property
    def stump(self) -> bytes:
        """The beginning of the unfinished object or array."""
        return bytes(self._object).strip() or (b"[" if self._is_array else b"")

    def end(self) -> list[bytes]:
        if self._depth or self._held:
            raise MalformedStream("the body ends inside an event")
        return []

    def _find_object(self, plain: bytes, at: int, window: bytes) -> int:
        """Return where an object begins, or the end of *plain*: *window* without escapes."""
        while match := _NOT_WHITE_SPACE.search(plain, at):
            mark = match[0]
            if mark not in self._allowed:
                raise self._misplaced(mark, window[match.start() :])
            if mark == b"{":
                return match.start()
            self._allowed = b"{" if mark == b"," else b""
            at = match.end()
        return len(plain)

    def _find_end(self, plain: bytes, at: int) -> int:
        """Return where the object ends, or the end of *plain*."""
        size = len(plain)
        if self._in_string:
            at = plain.find(b'"', at) + 1
            if not at:
                return size
            self._in_string = False
        for match in _MARK.finditer(plain, at):
            mark = match[1]
            if mark == b"{":
                self._depth += 1
            elif mark == b"}":
                self._depth -= 1
                if not self._depth:
                    return match.end()
            else:
                self._in_string = bool(mark)
                break
        return size

    def _misplaced(self, misplaced: bytes, rest: bytes) -> MalformedStream:
        error = MalformedStream(
            f"{misplaced!r} stands where an event should begin"
            if self._allowed
            else "the body continues after the end of its JSON array"
        )
        error.rest = rest
        return error
