"""From the pieces of a streamed reply to its chunks, and what its end means."""

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
from muybridge_protocol.text.dialects import Dialect, Ending, tells_error
from muybridge_protocol.text.stream_parser import (
    DONE,
    ErrorEvent,
    EventTooLarge,
    MalformedStream,
    StreamParser,
)

T = TypeVar("T")

_SAYS_NOTHING: Final = re.compile(rb"[A-Za-z][A-Za-z_-]*")
"""A payload that keeps a connection alive: a bare word, such as `null` or `ping`."""
_LINE: Final = re.compile(rb"\S(?:[^\n]*\S)?")
"""A line without the white space around it."""
_BEGINNING: Final = 1024
"""Bytes of a body that are looked at to show how it begins."""
_WINDOW: Final = 64 * 1024
"""Bytes of what has arrived that are read again in one go."""


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class StreamInterrupted(ServiceError):
    """A streamed reply ended before the answer was complete. It was not asked for again.

    Args:
        reason: What happened, in words.
        dialect: What the stream's events are.
        raw: Everything that had arrived of the reply.
        arrived: How many chunks that is.
        failure: How the exchange failed, or None where the service ended it.
        error: The event in which the service told an error, or None.
    """

    reason: str
    dialect: Dialect[Any] = attrs.field(repr=False)
    raw: bytes = attrs.field(default=b"", repr=False)
    arrived: int = 0
    failure: TransportFailure | None = None
    error: JsonObject | None = attrs.field(default=None, repr=False)

    @property
    def chunks(self) -> tuple[Any, ...]:
        """Every chunk that had arrived whole, as the stream gave them."""
        reader = StreamReader(self.dialect, event_limit=max(EVENT_LIMIT, len(self.raw)))
        return tuple(islice(reader.read_again(self.raw), self.arrived))

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"The stream was cut off: {self.reason.removesuffix('.')}."

    def about(self) -> str:
        """Return what there is of it, as a sentence."""
        if not self.arrived:
            return "Nothing of the answer had arrived."
        chunks = "1 chunk" if self.arrived == 1 else f"{self.arrived} chunks"
        return f"What had arrived, {chunks}, is in the error's `chunks`."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "It may have been charged, and was not asked for again."


class StreamReader(Generic[T]):
    """Takes the body of a streamed reply piece by piece, and gives its chunks.

    What has arrived is kept as the bytes that it was.

    Args:
        dialect: What its events are.
        event_limit: Most bytes that one event may have.
        clean: Takes out of an event, or of all that has arrived, what nobody is to see.
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
        self._spent = False  # what still comes is not looked at
        self._unread = ""  # why something was not read
        self._malformed = False  # nothing but an error is looked for
        self.end_is_told: bool = True
        """Whether the exchange would have failed if the body had been cut off between events. It
        would not where nothing but the connection's end says where the body ends."""

    @property
    def complete(self) -> bool:
        """Whether the answer is complete, whatever becomes of the rest of the body."""
        return self._ending.certain or (self._parser.over and self._ending.seen)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come, so that there is no need to wait for the body's end."""
        return self._spent or self._ending.over or self._parser.over

    def take(self, piece: bytes) -> Iterator[T]:
        """Yield the chunks that *piece* completes. The next piece is for when there are no more.

        Raises:
            StreamInterrupted: The service told an error, or what it sent cannot be read.
        """
        self._raw += piece
        if self.over:
            return iter(())
        return self._chunks(self._parser.feed(piece), self._event_limit)

    def end(self) -> Iterator[T]:
        """Yield what is left at the end of the body, or once the stream is over.

        After a complete answer that may be a stump.

        Raises:
            StreamInterrupted: The answer is not complete, or the service told an error.
        """
        if not self.over:
            yield from self._chunks(self._parser.end(), self._event_limit)
        reason = self._why_incomplete()
        if reason:
            raise self._interrupted(reason)
        self._ending.end()

    def fail(self, failure: TransportFailure) -> StreamInterrupted | None:
        """Return what it means that the exchange failed: nothing, if the answer is complete.

        An error that the service reported first comes before the failure.
        """
        complete, reason, error = self.complete, str(failure), None
        try:  # a whole event may lack only what ends it
            for _ in self._chunks(() if self.over else self._parser.end(), self._event_limit):
                pass
        except StreamInterrupted as interruption:
            if interruption.error is not None:
                complete, reason, error = False, interruption.reason, interruption.error
        return None if complete else self._interrupted(reason, failure=failure, error=error)

    def leave(self) -> StreamInterrupted | None:
        """Return what it means that nobody reads on: nothing, if the answer is complete."""
        if self.complete:
            return None
        return self._interrupted("it was left before the answer was complete")

    def received(self) -> Iterator[T]:
        """Yield again every chunk that has arrived whole."""
        reader = StreamReader(self._dialect, event_limit=self._event_limit, clean=self._clean)
        return reader.read_again(self._raw)

    def read_again(self, raw: bytes | bytearray) -> Iterator[T]:
        """Yield the chunks that *raw*, the beginning of a reply, holds whole. It is not kept."""
        with suppress(StreamInterrupted):
            for at in range(0, len(raw), _WINDOW):
                if self.over:
                    break
                window = bytes(raw[at : at + _WINDOW])
                yield from self._chunks(self._parser.feed(window), self._event_limit)
            yield from self.end()

    def _chunks(self, payloads: Iterable[bytes], limit: float) -> Iterator[T]:
        """Yield the chunks that *payloads* are.

        Args:
            payloads: What events may be. Of a large one nothing is kept beside its text while its
                JSON is read, and no text once it is.
            limit: Most bytes that one may have.
        """
        dialect, ending, clean = self._dialect, self._ending, self._clean
        watch, chunk = dialect.watch, dialect.chunk
        text = ""
        try:
            for payload in payloads:
                if payload == DONE:
                    if dialect.done_ends or ending.seen:
                        ending.close()
                        return
                    continue
                if type(payload) is ErrorEvent:
                    raise self._told(self._error_in(payload, limit))
                events: Sequence[JsonObject] = ()
                unread = ""
                try:
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
                if unread and len(text) > limit / 2:  # there is no room for the lines in it
                    text = ""
                    self._pass_over(f"an event cannot be read: {unread}")
                    continue
                if unread:
                    payload, text = payload or text.encode(), ""  # noqa: PLW2901  as it was
                    rest = limit - len(payload) / 2  # it is there all the while
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
                    # Hardly any has either, and each call counts among so many events.
                    if ("error" in event or "type" in event) and tells_error(event):
                        raise self._told(event)
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
        except EventTooLarge as error:
            self._pass_over(str(error))
            self._spent = True
        except MalformedStream as error:
            if self.over:
                return
            self._unread, self._malformed = str(error), True
            self._parser = StreamParser(event_limit=self._event_limit, server_sent=True)
            yield from self._chunks(self._parser.feed(error.rest), limit)

    def _is_lines(self, payload: bytes, limit: float) -> bool:
        """Whether each line of *payload*, which itself is no event, may be one.

        Some services forget the blank lines between events. Then the first line is an event, or a
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
        """Take note of an event that cannot be read, which is forgiven after the answer's end.

        Raises:
            StreamInterrupted: The answer is not complete.
        """
        if not self.complete:
            raise self._interrupted(reason)
        self._unread = reason

    def _error_in(self, payload: bytes, limit: float) -> JsonObject:
        """Return what an event that is named an error holds: an object, or what stands for one."""
        try:
            value: Any = read_event(self._clean(payload), limit)
        except InvalidJson:
            value = self._clean(payload).decode("utf-8", "replace")
        several = as_array(value)
        record = as_object(several[0] if len(several) == 1 else value)
        return {"error": value} if record is None else record

    def _told(self, error: JsonObject) -> StreamInterrupted:
        said = error_text(error)
        return self._interrupted(f"the service told an error: {said}", error=error)

    def _why_incomplete(self) -> str:
        """Return why the answer is not complete, or "" if it is, now that the body has ended."""
        if self.complete:
            return ""
        if self._unread:
            return self._unread
        if not self._ending.seen:
            began = self._beginning()
            said = f"; it begins: {began}" if began else ""
            return f"it ended without saying that the answer is complete{said}"
        if self._parser.unfinished:
            return "the body ends inside an event or array"
        if not self.end_is_told:
            return (
                "the connection closed, and nothing else says that the answer is complete: the "
                "response has neither a length nor chunks, and each event has a reason to stop"
            )
        return ""

    def _beginning(self) -> str:
        """Return how the body begins, fit for a message, or "" if it holds events."""
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
    """Return the objects that an event is: one, or an array of them.

    Raises:
        InvalidJson: It is something else.
    """
    if type(value) is dict:
        return (cast("JsonObject", value),)
    if not isinstance(value, list) or not all(isinstance(event, dict) for event in as_array(value)):
        raise InvalidJson("it is not a JSON object")
    return as_array(value)
