"""Streams in each protocol: their chunks, and what their end means."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.text.dialects import CHAT, MESSAGES, NATIVE, Dialect, Ending, tells_error
from muybridge_protocol.text.responses import GenerateContentChunk
from muybridge_protocol.text.stream_parser import EVENT_LIMIT
from muybridge_protocol.text.stream_reader import StreamInterrupted, StreamReader
from tables import table

BROKEN = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED)
CUT = "it ended without saying that the answer is complete"


def sse(*events: object) -> bytes:
    return b"".join(b"data: %s\n\n" % _payload(event) for event in events)


def array(*events: object) -> bytes:
    return b"[" + b"\n,\r\n".join(_payload(event) for event in events) + b"]"


def bare(*events: object) -> bytes:
    return b"\n".join(_payload(event) for event in events)


def _payload(event: object) -> bytes:
    return event if isinstance(event, bytes) else json.dumps(event, ensure_ascii=False).encode()


FORMS = [sse, array, bare]


@dataclass
class Read:
    """What a reader gave, and how it ended."""

    chunks: list[Any]
    complete: bool
    error: StreamInterrupted | None

    @property
    def events(self) -> list[Any]:
        return [getattr(chunk, "raw", chunk) for chunk in self.chunks]


def read(
    dialect: Dialect[Any],
    pieces: Iterable[bytes],
    *,
    failure: TransportFailure | None = None,
    **options: Any,
) -> Read:
    reader = StreamReader[Any](dialect, **options)
    chunks: list[Any] = []
    error = None
    try:
        for piece in pieces:
            _take(reader.take(piece), chunks)
        if failure is None:
            _take(reader.end(), chunks)
    except StreamInterrupted as interruption:
        error = interruption
    else:
        error = reader.fail(failure) if failure is not None else None
    if error is None:
        assert list(reader.received())[: len(chunks)] == chunks  # a stump may be whole JSON
    else:
        assert list(error.chunks)[: len(chunks)] == chunks
        assert error.arrived == len(error.chunks)
    return Read(chunks, reader.complete, error)


def _take(found: Iterable[Any], chunks: list[Any]) -> None:
    for chunk in found:
        chunks.append(chunk)  # noqa: PERF402  one by one, so that those before an error are kept


def text(said: str, index: int = 0, **fields: object) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": said}]}
    return {"candidates": [{"content": content, "index": index, **fields}]}


def choice(said: str, index: int = 0, reason: object = None) -> dict[str, Any]:
    delta = {"content": said}
    return {"choices": [{"delta": delta, "index": index, "finish_reason": reason}]}


STARTED: dict[str, Any] = {"type": "message_start", "message": {"content": [], "stop_reason": None}}
SAID = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}}
DONE = b"[DONE]"

WHOLE: dict[str, tuple[Dialect[Any], list[Any]]] = {
    "reason in the last": (NATIVE, [text("a"), text("b", finishReason="STOP")]),
    "reason by itself": (NATIVE, [text("a"), {"candidates": [{"finishReason": "MAX_TOKENS"}]}]),
    "unknown reason": (NATIVE, [text("a", finishReason="NEW")]),
    "reason, then usage": (NATIVE, [text("a", finishReason="STOP"), {"usageMetadata": {}}]),
    "same candidate again": (NATIVE, [text("a", finishReason="STOP"), text("")]),
    "two candidates": (
        NATIVE,
        [text("a"), text("b", 1), text("", 1, finishReason="STOP"), text("", finishReason="OTHER")],
    ),
    "a reason in every event": (
        NATIVE,
        [text("a", finishReason="STOP"), text("b", finishReason="STOP")],
    ),
    "a reason first": (NATIVE, [text("", finishReason="STOP"), text("a")]),
    "a chat reason in every event": (CHAT, [choice("a", 0, "stop"), choice("b", 0, "stop")]),
    "a stop_reason first": (
        MESSAGES,
        [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, SAID],
    ),
    "blocked prompt": (NATIVE, [BLOCKED]),
    "blocked in the middle": (NATIVE, [text("a"), BLOCKED]),
    "odd indexes": (
        NATIVE,
        [{"candidates": [{"index": []}, 5, None]}, {"candidates": [{"finishReason": "STOP"}]}],
    ),
    "chat reason": (CHAT, [choice("a"), choice("", reason="stop")]),
    "chat reason and usage": (CHAT, [choice("a", reason="length"), {"choices": [], "usage": {}}]),
    "two choices": (CHAT, [choice("a"), choice("b", 1, "stop"), choice("", 0, "stop")]),
    "a whole chat reply": (CHAT, [{"choices": [{"message": {}, "finish_reason": "stop"}]}]),
    "message_stop": (MESSAGES, [STARTED, SAID, {"type": "message_stop"}]),
    "stop_reason": (
        MESSAGES,
        [SAID, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}],
    ),
    "a whole message": (MESSAGES, [{"type": "message", "content": [], "stop_reason": "end_turn"}]),
}
CUT_OFF: dict[str, tuple[Dialect[Any], list[Any]]] = {
    "nothing": (NATIVE, []),
    "no reason": (NATIVE, [text("a"), text("b")]),
    "no candidate": (NATIVE, [{"usageMetadata": {}}]),
    "one of two": (NATIVE, [text("a"), text("b", 1), text("", 1, finishReason="STOP")]),
    "empty reason": (NATIVE, [text("a", finishReason="")]),
    "a reason that is none": (NATIVE, [text("a", finishReason="FINISH_REASON_UNSPECIFIED")]),
    "null reason": (NATIVE, [text("a", finishReason=None)]),
    "reason elsewhere": (NATIVE, [text("a"), {"finishReason": "STOP"}]),
    "chat's reason": (NATIVE, [choice("a", reason="stop")]),
    "feedback alone": (NATIVE, [{"promptFeedback": {}}, {"promptFeedback": {"blockReason": None}}]),
    "empty error": (
        NATIVE,
        [{"error": None}, {"error": {}}, {"error": {"code": 0, "message": ""}}],
    ),
    "chat without": (CHAT, [choice("a"), choice("b")]),
    "one of two choices": (CHAT, [choice("a"), choice("b", 1), choice("", 1, "stop")]),
    "no choice": (CHAT, [{"choices": []}, {"choices": None}]),
    "message without": (MESSAGES, [STARTED, SAID, {"type": "content_block_stop"}]),
    "null stop_reason": (MESSAGES, [{"type": "message_delta", "delta": {"stop_reason": None}}]),
}


@table("form", FORMS)
@table("name", WHOLE)
def test_complete_streams(name: str, form: Any) -> None:
    """A stream that says in its protocol's way that the answer is complete ends well."""
    dialect, events = WHOLE[name]
    found = read(dialect, [form(*events)])
    assert found.error is None
    assert found.complete
    assert found.events == events


@table("form", FORMS)
@table("name", CUT_OFF)
def test_incomplete_streams(name: str, form: Any) -> None:
    """A stream that ends without saying so was cut off, and the error has all that had arrived."""
    dialect, events = CUT_OFF[name]
    found = read(dialect, [form(*events)])
    assert not found.complete
    assert found.error is not None
    assert found.error.reason == CUT
    assert (found.error.failure, found.error.error) == (None, None)
    assert found.events == events
    assert list(found.error.chunks) == found.chunks
    assert found.error.raw == form(*events)


@table(
    ("dialect", "event", "complete"),
    [(NATIVE, text("a"), False), (CHAT, choice("a"), True), (MESSAGES, SAID, False)],
)
def test_done(dialect: Dialect[Any], event: dict[str, Any], complete: bool) -> None:  # noqa: FBT001  a column
    """`[DONE]` says in chat completions that the answer is complete, and nothing elsewhere."""
    found = read(dialect, [sse(event, DONE)])
    assert found.complete is complete
    assert (found.error is None) is complete
    assert found.events == [event]


def test_native_chunks_are_typed() -> None:
    """Chunks of the native protocol are typed, those of the other two are the events."""
    native = read(NATIVE, [sse(*WHOLE["reason in the last"][1])]).chunks
    assert all(type(chunk) is GenerateContentChunk for chunk in native)
    assert [chunk.text for chunk in native] == ["a", "b"]
    assert read(CHAT, [sse(choice("a", reason="stop"))]).chunks == [choice("a", reason="stop")]


# Errors within the stream.

ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ({"error": {"code": 429, "message": "no\ncredit", "status": "X"}}, {}, "no credit"),
    ({"error": "no credit"}, {}, "no credit"),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, {}, "busy"),
    ({"type": "error", "message": "busy"}, {}, "busy"),
    ([{"error": {"message": "no credit"}}], {"error": {"message": "no credit"}}, "no credit"),
    ({"error": {"message": "x" * 9999}}, {}, "x" * 500 + "..."),
    ({"error": 5}, {}, "5"),
    ({"error": {"code": 7, "message": ""}}, {}, ""),
]  # fmt: skip


@table("dialect", [NATIVE, CHAT, MESSAGES])
@table(("event", "inner", "said"), ERRORS)
def test_errors_in_the_stream(
    dialect: Dialect[Any], event: Any, inner: dict[str, Any], said: str
) -> None:
    """An error that the service tells in the stream raises, with it and all that came before."""
    first: dict[str, Any] = {"x": 1}
    # An array within an array is no event of the other forms.
    for form in (sse,) if inner else (sse, bare):
        body: bytes = form(first, event, text("never"))
        found = read(dialect, [body])
        assert found.error is not None
        assert found.error.error == (inner or event)
        assert found.error.reason == f"the service reported an error: {said}"
        assert found.events == [first]
        assert found.error.arrived == 1
        assert tells_error(found.error.error or {})


def test_an_error_after_the_end_counts() -> None:
    """An error that the service tells after the answer is complete is still raised."""
    for events in ((text("a", finishReason="STOP"), {"error": "x"}),):
        for body in (sse(*events), sse(*events).rstrip()):
            found = read(NATIVE, [body])
            assert found.error is not None
            assert found.error.error == {"error": "x"}


# Reasons to stop that are not to be relied on.

CALL = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}
EARLY: dict[str, tuple[Dialect[Any], list[Any]]] = {
    "in every event": (NATIVE, [text("a", finishReason="STOP"), text("b", finishReason="STOP")]),
    "first": (NATIVE, [text("", finishReason="STOP"), text("a")]),
    "before a part of another kind": (NATIVE, [text("a", finishReason="STOP"), CALL]),
    "of one of two": (
        NATIVE,
        [text("a", finishReason="STOP"), text("b", 1, finishReason="STOP"), text("c", 1)],
    ),
    "then another": (
        NATIVE,
        [text("a", finishReason="STOP"), text("b"), text("", finishReason="STOP")],
    ),
    "chat": (CHAT, [choice("a", 0, "stop"), choice("b", 0, "stop")]),
    "messages": (
        MESSAGES,
        [SAID, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, SAID],
    ),
}


@table("name", EARLY)
def test_reasons_that_come_early(name: str) -> None:
    """Where a candidate speaks after its reason to stop, only the body's end ends the answer."""
    dialect, events = EARLY[name]
    ended = read(dialect, [sse(*events)])
    assert ended.error is None
    assert ended.complete
    broken = read(dialect, [sse(*events)], failure=BROKEN)
    assert broken.error is not None
    assert broken.error.failure == BROKEN
    assert broken.events == ended.events == events
    junk = read(dialect, [sse(*events, b"{")])
    assert junk.error is not None
    assert junk.error.reason.startswith("an event cannot be read")


def test_what_is_no_answer_after_the_reason() -> None:
    """Empty parts, roles and counts after a reason to stop do not put it in doubt."""
    more: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}],
        "usage": {},
    }
    thought = {"candidates": [{"content": {"parts": [{"text": "", "thought": True}]}}]}
    stopped = text("b", finishReason="STOP")
    cases: list[tuple[Dialect[Any], list[Any]]] = [
        (CHAT, [choice("a"), choice("b", reason="stop"), more]),
        (NATIVE, [text("a"), stopped, thought, {"usageMetadata": {}}]),
        (NATIVE, [text("a"), stopped, text("", 0), {"candidates": [{"content": 5}]}]),
    ]
    for dialect, events in cases:
        assert read(dialect, [sse(*events)], failure=BROKEN).error is None


# The rest of the body.

STOPPED = text("whole", finishReason="STOP")
SAID_A = text("a")
JUNK = [
    sse(SAID_A, STOPPED, b"end"),
    sse(SAID_A, STOPPED, b"17"),
    sse(SAID_A, STOPPED, b'{"a":'),
    sse(SAID_A, STOPPED, b"[done]"),
    sse(SAID_A, STOPPED) + b"<html>\n\n",
    sse(SAID_A, STOPPED, b"{}{"),
    array(SAID_A, STOPPED) + b"x",
    array(SAID_A, STOPPED) + b"]",
    array(SAID_A, STOPPED)[:-1] + b",]",
    array(SAID_A, STOPPED)[:-1] + b"}]",
    bare(SAID_A, STOPPED) + b"\nBad gateway",
    bare(SAID_A, STOPPED) + b"]",
]


@table("body", JUNK)
def test_junk_after_the_end(body: bytes) -> None:
    """What comes after the answer is complete, and cannot be read, is forgiven."""
    for pieces in ([body], [body[at : at + 1] for at in range(len(body))]):
        for failure in (None, BROKEN):
            found = read(NATIVE, pieces, failure=failure)
            assert found.error is None
            assert found.events[:2] == [SAID_A, STOPPED]


def test_what_follows_junk() -> None:
    """Counts and errors after an event that was forgiven are not lost with it."""
    usage = {"usageMetadata": {"totalTokenCount": 7}}
    found = read(NATIVE, [sse(SAID_A, STOPPED, b"17", usage)])
    assert found.error is None
    assert found.events == [SAID_A, STOPPED, usage]
    for body in (
        sse(SAID_A, STOPPED, b"17", {"error": "late"}),
        array(SAID_A, STOPPED, b'{"a":x}', {"error": "late"}),
        bare(SAID_A, STOPPED, b'{"a":x}', {"error": "late"}),
    ):
        found = read(NATIVE, [body])
        assert found.error is not None
        assert found.error.error == {"error": "late"}


def test_a_hole_in_the_answer() -> None:
    """An event is not forgiven if the answer goes on after it: it was a part of it."""
    found = read(NATIVE, [sse(text("a", finishReason="STOP"), b'{"a":\xff}', STOPPED)])
    assert found.error is not None
    assert found.error.reason.startswith("an event cannot be read")
    assert found.events == [text("a", finishReason="STOP")]


OVER: dict[str, tuple[Dialect[Any], bytes]] = {
    "DONE": (CHAT, sse(choice("a"), DONE)),
    "DONE after a reason": (NATIVE, sse(STOPPED, DONE)),
    "message_stop": (MESSAGES, sse(SAID, {"type": "message_stop"})),
    "the array's end": (NATIVE, array(STOPPED)),
    "the end of an array that is none": (NATIVE, array(text("a"))),
    "the end of an empty array": (NATIVE, b"[]"),
}


@table("name", OVER)
def test_streams_that_are_over(name: str) -> None:
    """Where a stream says that nothing follows it is over at once, and nothing follows."""
    dialect, body = OVER[name]
    reader = StreamReader[Any](dialect)
    for at in range(len(body.rstrip())):
        assert not reader.over
        list(reader.take(body[at : at + 1]))
    list(reader.take(body[len(body.rstrip()) :]))
    assert reader.over
    assert list(reader.take(sse(text("b"), {"error": "x"}))) == []
    whole = read(dialect, [body])
    assert read(dialect, [body + b"{"]).events == whole.events
    assert read(dialect, [body + sse(text("b"))]).events == whole.events
    assert whole.complete is ("none" not in name and "empty" not in name)
    assert (whole.error is None) is whole.complete


@table("dialect", [NATIVE, CHAT, MESSAGES])
def test_streams_that_are_not_over(dialect: Dialect[Any]) -> None:
    """A reason to stop does not say that nothing follows: the tokens may be counted later."""
    reader = StreamReader[Any](dialect)
    said = {**text("a"), **choice("a"), **SAID}
    stopped = {**STOPPED, **choice("a", reason="stop"), "stop_reason": "end_turn"}
    assert len(list(reader.take(sse(said, stopped)))) == 2
    assert reader.complete
    assert not reader.over


# What is read all the same.


@table("word", [b"null", b"ping", b"keep-alive", b"true", b"NaN"])
def test_bare_words(word: bytes) -> None:
    """A bare word in an event's place keeps the connection alive, and says nothing."""
    for body in (sse(word, text("a"), word, STOPPED), sse(word, text("a"), STOPPED, word)):
        found = read(NATIVE, [body])
        assert found.error is None
        assert found.events == [text("a"), STOPPED]
    assert read(NATIVE, [sse(text("a"), word)]).error is not None


@table("number", [b"NaN", b"Infinity", b"-Infinity"])
@table("form", FORMS)
def test_numbers_that_are_none(number: bytes, form: Any) -> None:
    """A number that JSON does not have is read as null, and nothing of the answer is lost."""
    found = read(NATIVE, [form(b'{"a":[' + number + b"]}", STOPPED)])
    assert found.error is None
    assert found.events == [{"a": [None]}, STOPPED]


def test_no_blank_lines() -> None:
    """Events that no blank line divides are read one by one."""

    def lines(*payloads: object) -> bytes:
        return b"".join(b"data: %s\n" % _payload(payload) for payload in payloads)

    found = read(NATIVE, [lines(text("a"), b"ping", text("b"), STOPPED)])
    assert found.error is None
    assert found.events == [text("a"), text("b"), STOPPED]
    found = read(CHAT, [lines(b"null", choice("a"), DONE, choice("b"))])
    assert found.error is None
    assert found.events == [choice("a")]
    found = read(NATIVE, [lines(text("a"), {"error": "x"}, STOPPED)])
    assert found.error is not None
    assert found.error.error == {"error": "x"}
    assert found.events == [text("a")]
    found = read(NATIVE, [lines(text("a"), b"{x}", STOPPED)])
    assert found.error is not None
    assert found.events == [text("a")]
    for last in (STOPPED, text("b")):
        pretty = json.dumps(last, indent=1).encode().replace(b"\n", b"\ndata: ")
        assert read(NATIVE, [b"data: " + pretty]).events == [last]
    found = read(NATIVE, [b'data: {"a":\ndata: x}\n\n'])
    assert found.error is not None
    assert "Expecting value" in found.error.reason


def _without_a(said: bytes) -> bytes:
    return said.replace(b"a", b"*")


@table(
    ("body", "shown"),
    [
        (b"<html>\n<p>Bad gateway", "<html> <p>Bad gateway"),
        (b"\n busy \x1b[0m", "busy  [0m"),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        (b": ping\n" + b"x" * 9999, ": ping " + "x" * 193 + "..."),
    ],
)
def test_bodies_that_are_no_streams(body: bytes, shown: str) -> None:
    """A body that holds no events is shown by its beginning."""
    found = read(NATIVE, [body])
    assert found.error is not None
    assert found.error.reason == f"{CUT}; it begins: {shown}"
    clean = read(NATIVE, [body], clean=_without_a)
    assert clean.error is not None
    assert "a" not in clean.error.reason.partition("begins: ")[2]


# What cannot be read.

BAD = [b"{x}", b'{"a":1e999}', b'{"a":' + b"9" * 5000 + b"}", b'{"a":"\xff"}',
       b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}"]  # fmt: skip


@table("form", FORMS)
@table("event", BAD)
def test_bad_events(event: bytes, form: Any) -> None:
    """An event that cannot be read ends the stream, with all that came before."""
    found = read(NATIVE, [form(text("a"), event, text("b", finishReason="STOP"))])
    assert found.error is not None
    assert found.error.reason.startswith("an event cannot be read: ")
    assert len(str(found.error)) < 500
    assert found.events == [text("a")]


@table("event", [b"5", b'"x"', b"[5]", b'[{"a":1},null]'])
def test_events_are_objects(event: bytes) -> None:
    """An event that is neither an object nor an array of objects ends the stream."""
    found = read(NATIVE, [sse(text("a"), event)])
    assert found.error is not None
    assert found.error.reason == "an event cannot be read: it is not a JSON object"
    assert found.events == [text("a")]


def test_an_array_of_events() -> None:
    """An event that is an array of objects is each of them."""
    found = read(NATIVE, [sse([text("a"), text("b")], [], [text("c", finishReason="STOP")])])
    assert found.error is None
    assert [chunk.text for chunk in found.chunks] == ["a", "b", "c"]


def test_names_that_stand_twice() -> None:
    """Of a name that stands twice in an event the last counts."""
    found = read(NATIVE, [b'data: {"a":1,"a":2}\n\n'])
    assert found.events == [{"a": 2}]


@table("form", FORMS)
def test_a_large_event(form: Any) -> None:
    """An event over the limit ends the stream, and does not appear among what had arrived."""
    body = form(text("a"), text("x" * 500), text("b", finishReason="STOP"))
    for pieces in ([body], [body[at : at + 7] for at in range(0, len(body), 7)]):
        found = read(NATIVE, pieces, event_limit=200)
        assert found.error is not None
        assert "has more than 200 bytes" in found.error.reason
        assert found.events == [text("a")]
        assert list(found.error.chunks) == found.chunks
    assert read(NATIVE, [body], event_limit=2000).error is None


@table("size", [999, 199_999])
def test_much_without_blank_lines(size: int) -> None:
    """Events that no blank line divides may together have half of an event's largest size."""
    events = text("a" * size), text("b"), STOPPED
    body = b"".join(b"data: %s\n" % _payload(event) for event in events)
    assert read(NATIVE, [body], event_limit=2 * len(body)).events == list(events)
    found = read(NATIVE, [body], event_limit=2 * size)
    assert found.error is not None
    assert found.error.reason.startswith("an event cannot be read")
    assert found.events == []


def test_truncated_streams() -> None:
    """A body that ends inside an event was cut off, and says so."""
    body = array(text("a"), text("b", finishReason="STOP"))
    found = read(NATIVE, [body[:-20]])
    assert found.error is not None
    assert found.error.reason == "the body ends inside an event"
    assert found.events == [text("a")]
    found = read(NATIVE, [sse(text("a"), text("b"))[:-20]])
    assert found.error is not None
    assert found.error.reason.startswith("an event cannot be read")


@table("form", FORMS)
def test_a_stump_after_the_end(form: Any) -> None:
    """What is cut off after the answer is complete is forgiven, for nothing of it is lost."""
    stopped = text("b", finishReason="STOP")
    body = form(text("a"), stopped, {"usageMetadata": {"totalTokenCount": 7}})
    begin = body.index(b'"usageMetadata"')
    for size in range(begin, len(body)):
        for failure in (None, BROKEN):
            found = read(NATIVE, [body[:size]], failure=failure)
            assert found.error is None
            assert found.events[:2] == [text("a"), stopped]


# Failed exchanges.


def test_a_failure_after_the_end() -> None:
    """An exchange that fails after the answer is complete is none the worse for it."""
    found = read(NATIVE, [sse(text("a"), text("b", finishReason="STOP"))], failure=BROKEN)
    assert found.complete
    assert found.error is None


def test_a_failure_before_the_end() -> None:
    """An exchange that fails earlier has cut the stream off, and the error says how."""
    found = read(NATIVE, [sse(text("a"), text("b"))], failure=BROKEN)
    assert found.error is not None
    assert found.error.failure == BROKEN
    assert found.error.reason == "the response is truncated"
    assert [chunk.text for chunk in found.error.chunks] == ["a", "b"]


def test_an_event_without_its_blank_line() -> None:
    """An event that is whole but for what ends it is among what had arrived at a failure."""
    for last in (text("b"), text("b", finishReason="STOP")):
        found = read(NATIVE, [sse(text("a"), last).rstrip()], failure=BROKEN)
        assert found.events == [text("a")]
        assert found.error is not None
        assert found.error.arrived == 2
        assert [chunk.text for chunk in found.error.chunks] == ["a", "b"]
    found = read(NATIVE, [sse(text("a"), text("b"))[:-5]], failure=BROKEN)
    assert found.error is not None
    assert [chunk.text for chunk in found.error.chunks] == ["a"]


def test_a_stream_that_was_left() -> None:
    """Who leaves a stream early can be told what had arrived; after its end there is nothing."""
    reader = StreamReader(NATIVE)
    list(reader.take(sse(text("a"))))
    left = reader.leave()
    assert left is not None
    assert "left" in left.reason
    assert [chunk.text for chunk in left.chunks] == ["a"]
    list(reader.take(sse(text("", finishReason="STOP"))))
    assert reader.leave() is None


def test_what_is_kept_is_clean() -> None:
    """What takes the key out of the reply does so in chunks, errors and what is kept."""

    def clean(raw: bytes) -> bytes:
        return raw.replace(b"SECRET", b"[key]")

    reader = StreamReader(NATIVE, clean=clean)
    chunks = list(reader.take(sse(text("a SECRET"))))
    assert [chunk.text for chunk in chunks] == ["a [key]"]
    assert [chunk.text for chunk in reader.received()] == ["a [key]"]
    with pytest.raises(StreamInterrupted) as caught:
        list(reader.take(sse({"error": "no SECRET"})))
    error = caught.value
    assert b"SECRET" not in error.raw
    assert error.error == {"error": "no [key]"}
    assert "SECRET" not in str(error) + repr(error)


# The error itself.


def interruption() -> StreamInterrupted:
    error = read(NATIVE, [sse(text("top secret"), text("b"), {"error": "busy"})]).error
    assert error is not None
    return error


def test_the_message() -> None:
    """The message says what happened, how much there is, and what it may have cost."""
    assert str(interruption()) == (
        "The stream was cut off: the service reported an error: busy. "
        "What had arrived, 2 chunks, is in the error's `chunks`. "
        "It may have been charged, and was not requested again."
    )
    one = read(NATIVE, [sse(text("a"))], failure=BROKEN).error
    assert str(one) == (
        "The stream was cut off: the response is truncated. "
        "What had arrived, 1 chunk, is in the error's `chunks`. "
        "It may have been charged, and was not requested again."
    )
    none = read(NATIVE, []).error
    assert str(none) == (
        f"The stream was cut off: {CUT}. No part of the answer arrived. "
        "It may have been charged, and was not requested again."
    )


def test_the_message_does_not_hold_the_answer() -> None:
    """Neither the message nor the repr of the error shows what the model said."""
    error = interruption()
    assert "secret" not in str(error) + repr(error)
    assert b"secret" in error.raw


def test_the_error_travels() -> None:
    """The error can be pickled and copied with everything that had arrived."""
    error = interruption()
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301  our own
        assert str(again) == str(error)
        assert again.chunks == error.chunks
        assert again.error == {"error": "busy"}
        assert again.dialect == NATIVE
    assert [chunk.text for chunk in error.chunks] == ["top secret", "b"]


# However it is cut.

CUTTABLE = [(name, form) for name in (*WHOLE, *CUT_OFF) for form in FORMS]


def told(found: Read) -> tuple[Any, ...]:
    error = found.error
    return found.events, found.complete, error and (str(error), error.error, error.chunks)


@table(("name", "form"), CUTTABLE)
def test_byte_by_byte(name: str, form: Any) -> None:
    """The same chunks and the same end come of a stream byte by byte."""
    dialect, events = {**WHOLE, **CUT_OFF}[name]
    body = form(*events)
    whole = read(dialect, [body])
    assert told(read(dialect, [bytes([byte]) for byte in body])) == told(whole)


@table("form", FORMS)
def test_every_split_point(form: Any) -> None:
    """The same chunks and the same end come of a stream cut in two anywhere, even in a letter."""
    for events in (
        [text("caf\u00e9 \U0001f40e"), text("b", finishReason="STOP")],
        [text("\U0001f40e"), {"error": {"message": "\u00e9"}}],
        [text("a"), b"{x}"],
    ):
        body = form(*events)
        whole = told(read(NATIVE, [body]))
        for at in range(len(body) + 1):
            assert told(read(NATIVE, [body[:at], body[at:]])) == whole


events = st.lists(
    st.sampled_from([text("a"), text("b", 1), text("", finishReason="STOP"), BLOCKED, {}, DONE,
                     choice("a"), choice("", reason="stop"), SAID, {"type": "message_stop"},
                     {"error": "x"}, b"{x}", b"5", b"null", b"[", b'{"a":1e999}', [text("c")]]),
    max_size=5,
)  # fmt: skip


@given(
    st.sampled_from([NATIVE, CHAT, MESSAGES]),
    st.sampled_from(FORMS),
    events,
    st.binary(max_size=3) | st.just(b""),
    st.lists(st.integers(0, 400), max_size=5),
    st.none() | st.just(BROKEN),
)
def test_any_stream_ends_lawfully(
    dialect: Dialect[Any],
    form: Any,
    said: list[Any],
    junk: bytes,
    cuts: list[int],
    failure: TransportFailure | None,
) -> None:
    """Any stream, however cut and ended, gives chunks, and then ends well or with one error."""
    body = form(*said) + junk
    places = [0, *sorted(cuts), len(body)]
    pieces = [body[begin:end] for begin, end in zip(places, [*places[1:], len(body)], strict=True)]
    found = read(dialect, pieces, failure=failure)
    assert told(found) == told(read(dialect, [body], failure=failure))
    assert found.error is not None or found.complete
    if found.error is not None:
        assert str(found.error).isprintable()
        assert found.error.raw == b"".join(pieces)[: len(found.error.raw)]


# Memory.


BOMBS: dict[str, Callable[[], bytes]] = {
    "arrays": lambda: b"[" + b"[]," * 10**6 + b"[]]",
    "objects": lambda: b"{" + b",".join(b'"%d":{}' % n for n in range(400_000)) + b"}",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_within_an_event(name: str) -> None:
    """An event of a great many values takes no more memory than a few of the largest."""
    event = b'{"a":' + BOMBS[name]() + b"}"
    tracemalloc.start()
    try:
        found = read(NATIVE, [b"data: " + event + b"\n\n"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.error is not None
    assert "too many values" in found.error.reason
    assert peak < 4 * EVENT_LIMIT


def test_an_ending_by_itself() -> None:
    """No candidate has ended before one has begun, and each counts by its number."""
    ending = Ending()
    assert not ending.seen
    ending.watch([], "why")
    assert not ending.seen
    ending.watch([{"index": 3}, {"index": 4, "why": "x"}], "why")
    assert not ending.seen
    ending.watch([{"index": 3, "why": "x"}], "why")
    assert ending.seen
    ending.watch([{"index": 5}], "why")
    assert not ending.seen
    ending.end()
    assert ending.seen
