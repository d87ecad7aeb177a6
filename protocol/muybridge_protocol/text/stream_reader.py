"""Read the chunks of a streamed response, and decide what its end means.

A response that is not streamed is whole or it is not. A streamed one may end at any byte, and its
answer has been paid for either way. So the reader never takes a part for the whole, and never loses
what has arrived:

- The `Ending` of the dialect says whether the events so far form a complete answer. It may be
  certain of that, or only if the body ends properly as well.
- What follows a complete answer and cannot be read is ignored, but an error that the service
  reports always counts.
- Everything else is a `StreamInterrupted`, which has the chunks that arrived.

The body is kept as the bytes that arrived; chunks are read from it again when they are asked for.
Of a large event there is never more than the body, its text and its value at a time: hence the
variables that are emptied as soon as they have been read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, TypeVar, cast

import attrs

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.http import TransportFailure
from muybridge_protocol.records.json import (
    EVENT_LIMIT,
    SMALL,
    InvalidJson,
    JsonObject,
    as_array,
    as_object,
    error_text,
    event_text,
    event_value,
    read_event,
    readable,
)
from muybridge_protocol.remedies import Face, Remedy, RemedyKind, as_sentence, in_python
from muybridge_protocol.text.dialects import Dialect, Ending, tells_error
from muybridge_protocol.text.stream_parser import (
    DONE,
    ErrorEvent,
    MalformedStream,
    StreamParser,
)

T = TypeVar("T")

_SAYS_NOTHING: Final = re.compile(rb"[A-Za-z][A-Za-z_-]*")
"""A keep-alive payload: a bare word, such as `null` or `ping`."""
_LINE: Final = re.compile(rb"\S(?:[^\n]*\S)?")
"""A line without surrounding white space."""
_BEGINNING: Final = 1024
"""Bytes of a body that are examined to show its beginning."""
_WINDOW: Final = 64 * 1024
"""Bytes that are read again at a time."""


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class StreamInterrupted(ServiceError):
    """A streamed response ended before the answer was complete. It is not requested again.

    Args:
        reason: What happened, in words.
        dialect: The protocol of the stream.
        raw: The part of the response that arrived.
        arrived: How many chunks that is.
        failure: How the exchange failed, or None if the service ended it.
        error: The event in which the service reported an error, or None.
    """

    _charged = "perhaps"

    reason: str
    dialect: Dialect[Any] = attrs.field(repr=False)
    raw: bytes = attrs.field(default=b"", repr=False)
    arrived: int = 0
    failure: TransportFailure | None = None
    error: JsonObject | None = attrs.field(default=None, repr=False)

    @property
    def chunks(self) -> tuple[Any, ...]:
        """Every chunk that arrived whole."""
        reader = StreamReader(self.dialect, event_limit=max(EVENT_LIMIT, len(self.raw)))
        return tuple(islice(reader.read_again(self.raw), self.arrived))

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return as_sentence(f"The stream was cut off: {self.reason}")

    def about(self, face: Face = in_python) -> str:
        """Return what arrived and where it is, as a sentence."""
        if not self.arrived:
            return "No part of the answer arrived."
        chunks = "1 chunk" if self.arrived == 1 else f"{self.arrived} chunks"
        where = " ".join(filter(None, map(face, self.remedies)))
        return f"What had arrived, {chunks}, {where}." if where else f"Only {chunks} arrived."

    def next_step(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all
        """Return what to do next, as a sentence."""
        return "It may have been charged, and was not requested again."

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.READ, attribute="chunks"),) if self.arrived else ()


class StreamReader(Generic[T]):
    """Takes the body of a streamed response piece by piece, and yields its chunks.

    Args:
        dialect: The protocol of the stream.
        event_limit: Most bytes of one event.
        clean: Redacts secrets in an event, or in everything that arrived.
    """

    def __init__(
        self,
        dialect: Dialect[T],
        *,
        event_limit: int = EVENT_LIMIT,
        clean: Callable[[bytes], bytes] = lambda body: body,
    ) -> None:
        self._dialect = dialect
        self._clean = clean
        self._event_limit = event_limit
        self._parser = StreamParser(event_limit=event_limit)
        self._ending = Ending()
        self._raw = bytearray()
        self._count = 0
        self._spent = False  # the rest of the body is ignored
        self._unread = ""  # why an event could not be read
        self._malformed = False  # only errors are looked for in the rest
        self.end_is_announced: bool = True
        """Whether the exchange fails if the body is cut off between events. It does not if only
        the end of the connection ends the body."""

    @property
    def complete(self) -> bool:
        """Whether the answer is complete, whatever happens to the rest of the body."""
        return self._ending.certain or (self._parser.over and self._ending.seen)

    @property
    def over(self) -> bool:
        """Whether nothing more is expected, so that the end of the body need not be awaited."""
        return self._spent or self._ending.over or self._parser.over

    def take(self, piece: bytes) -> Iterator[T]:
        """Yield the chunks that *piece* completes. Exhaust them before the next piece.

        Raises:
            StreamInterrupted: The service reported an error, or an event cannot be read.
        """
        self._raw += piece
        if self.over:
            return iter(())
        return self._chunks(self._parser.feed(piece), self._event_limit)

    def end(self) -> Iterator[T]:
        """Yield the remaining chunks at the end of the body, or once the stream is over.

        Raises:
            StreamInterrupted: The answer is not complete, or the service reported an error.
        """
        if not self.over:
            yield from self._chunks(self._parser.end(), self._event_limit)
        reason = self._why_incomplete()
        if reason:
            raise self._interrupted(reason)
        self._ending.end()

    def fail(self, failure: TransportFailure) -> StreamInterrupted | None:
        """Return the error for a failed exchange, or None if the answer is complete.

        An error that the service reported takes precedence over the failure.
        """
        complete, reason, error = self.complete, str(failure), None
        try:  # the last event may lack only its end
            for _ in self._chunks(() if self.over else self._parser.end(), self._event_limit):
                pass
        except StreamInterrupted as interruption:
            if interruption.error is not None:
                complete, reason, error = False, interruption.reason, interruption.error
        return None if complete else self._interrupted(reason, failure=failure, error=error)

    def leave(self) -> StreamInterrupted | None:
        """Return the error for a stream that is closed early, or None if the answer is complete."""
        if self.complete:
            return None
        return self._interrupted("it was left before the answer was complete")

    def received(self) -> Iterator[T]:
        """Yield every chunk that has arrived whole, from the first one on."""
        reader = StreamReader(self._dialect, event_limit=self._event_limit, clean=self._clean)
        return reader.read_again(self._raw)

    def read_again(self, raw: bytes | bytearray) -> Iterator[T]:
        """Yield the whole chunks in *raw*, the beginning of a response, without keeping it."""
        with suppress(StreamInterrupted):
            for at in range(0, len(raw), _WINDOW):
                if self.over:
                    break
                window = bytes(raw[at : at + _WINDOW])
                yield from self._chunks(self._parser.feed(window), self._event_limit)
            yield from self.end()

    def _chunks(self, payloads: Iterable[bytes], limit: float) -> Iterator[T]:
        """Yield the chunks in *payloads*.

        Args:
            payloads: The payloads of events, or lines that may be.
            limit: Most bytes of one of them.
        """
        dialect, ending, clean = self._dialect, self._ending, self._clean
        watch, chunk = dialect.watch, dialect.chunk
        text = ""
        try:
            for payload in payloads:
                if payload == DONE:
                    # Where a dialect has an event for its end, this word alone proves nothing.
                    if dialect.done_ends or ending.seen:
                        ending.close()
                        return
                    continue
                if type(payload) is ErrorEvent:
                    raise self._service_error(self._error_in(payload, limit))
                events: Sequence[JsonObject] = ()
                unread = ""
                try:
                    # A large event is kept in one form at a time, so that memory stays bounded.
                    if len(payload) <= SMALL:
                        value: Any = read_event(clean(payload))
                    else:
                        text = event_text(clean(payload), limit)
                        payload = b""  # noqa: PLW2901  no longer needed
                        value = event_value(text)
                        text = ""
                    events = _events(value)
                except InvalidJson as error:
                    unread = str(error)
                if unread and len(text) > limit / 2:  # no room to read its lines
                    text = ""
                    self._pass_over(f"an event cannot be read: {unread}")
                    continue
                if unread:
                    payload, text = payload or text.encode(), ""  # noqa: PLW2901  as it was
                    rest = limit - len(payload) / 2  # it is kept meanwhile
                    if len(payload) <= limit / 2 and self._is_lines(payload, rest):
                        lines = (line[0] for line in _LINE.finditer(payload))
                        yield from self._chunks(lines, rest)
                        if self.over:
                            return
                    elif not _SAYS_NOTHING.fullmatch(payload):
                        payload = b""  # noqa: PLW2901  no longer needed
                        self._pass_over(f"an event cannot be read: {unread}")
                    continue
                for event in events:
                    # Hardly any event has either, and a call for each one would be slow.
                    if ("error" in event or "type" in event) and tells_error(event):
                        raise self._service_error(event)
                    if self._malformed:
                        self._pass_over(self._unread)
                        continue
                    watch(event, ending)
                    if self._unread and not self.complete:
                        raise self._interrupted(self._unread)
                    self._count += 1
                    yield chunk(event)
                    if ending.over:
                        return
        except MalformedStream as error:
            if error.too_large:
                self._pass_over(str(error))
                # The parser cannot go on behind an event that it has not kept.
                self._spent = True
                return
            if self.over:
                return
            # Where events begin is unknown from here on. The rest is read by lines, for an error of
            # the service that explains it.
            self._unread, self._malformed = str(error), True
            self._parser = StreamParser(event_limit=self._event_limit, server_sent=True)
            yield from self._chunks(self._parser.feed(error.rest), limit)

    def _is_lines(self, payload: bytes, limit: float) -> bool:
        """Whether *payload*, which is not an event, may have one on each line.

        Some services omit the blank lines between events. Then the first line is an event or a
        word.
        """
        first = _LINE.match(payload)
        end = len(payload) if first is None else first.end()
        if end == len(payload):
            return False
        if (end == len(DONE) and payload.startswith(DONE)) or _SAYS_NOTHING.fullmatch(
            payload, 0, end
        ):
            return True
        try:
            _events(read_event(self._clean(payload[:end]), limit))
        except InvalidJson:
            return False
        return True

    def _pass_over(self, reason: str) -> None:
        """Record an event that cannot be read. After the end of the answer, it is ignored.

        Raises:
            StreamInterrupted: The answer is not complete.
        """
        if not self.complete:
            raise self._interrupted(reason)
        self._unread = reason

    def _error_in(self, payload: bytes, limit: float) -> JsonObject:
        """Return the error in an event with the name `error`, as an object in any case."""
        try:
            value: Any = read_event(self._clean(payload), limit)
        except InvalidJson:
            value = self._clean(payload).decode("utf-8", "replace")
        several = as_array(value)
        record = as_object(several[0] if len(several) == 1 else value)
        return {"error": value} if record is None else record

    def _service_error(self, error: JsonObject) -> StreamInterrupted:
        message = error_text(error)
        return self._interrupted(f"the service reported an error: {message}", error=error)

    def _why_incomplete(self) -> str:
        """Return why the answer is not complete at the end of the body, or "" if it is."""
        if self.complete:
            return ""
        if self._unread:
            return self._unread
        if not self._ending.seen:
            began = self._beginning()
            excerpt = f"; it begins: {began}" if began else ""
            return f"it ended without saying that the answer is complete{excerpt}"
        if self._parser.unfinished:
            return "the body ends inside an event or array"
        if not self.end_is_announced:
            return (
                "the connection closed, and nothing else says that the answer is complete: the "
                "response has neither a length nor chunks, and each event has a reason to stop"
            )
        return ""

    def _beginning(self) -> str:
        """Return the beginning of a body without events, fit for a message, or ""."""
        begin = self._clean(bytes(self._raw[:_BEGINNING])).decode("utf-8", "replace")
        shown = readable(begin, 200)
        return "" if self._count or shown.startswith(("[", "{")) else shown

    def _interrupted(
        self,
        reason: str,
        *,
        failure: TransportFailure | None = None,
        error: JsonObject | None = None,
    ) -> StreamInterrupted:
        return StreamInterrupted(
            reason=reason,
            dialect=self._dialect,
            raw=self._clean(bytes(self._raw)),
            arrived=self._count,
            failure=failure,
            error=error,
        )


def _events(value: Any) -> Sequence[JsonObject]:
    """Return the objects in the value of an event: itself, or the items of an array.

    Raises:
        InvalidJson: It is something else.
    """
    if type(value) is dict:
        return (cast("JsonObject", value),)
    if not isinstance(value, list) or not all(isinstance(event, dict) for event in as_array(value)):
        raise InvalidJson("it is not a JSON object")
    return as_array(value)
