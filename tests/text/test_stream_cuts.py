"""Streams cut off at every byte: a part of an answer is never taken for the whole of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.text.dialects import CHAT, MESSAGES, NATIVE, Dialect
from muybridge_protocol.text.stream_reader import StreamInterrupted, StreamReader

BROKEN = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED)
WORDS = ("A horse ", "has \u201cfour\u201d ", "hooves {[:\n")
TEXT = "".join(WORDS)


def native(said: str, reason: bool) -> dict[str, Any]:  # noqa: FBT001  it is mapped
    candidate = {"content": {"role": "model", "parts": [{"text": said}]}, "index": 0}
    return {"candidates": [{**candidate, "finishReason": "STOP"} if reason else candidate]}


def chat(said: str, reason: bool) -> dict[str, Any]:  # noqa: FBT001  as above
    reasons = {"finish_reason": "stop" if reason else None}
    return {"choices": [{"index": 0, "delta": {"content": said}, **reasons}]}


def message(said: str, reason: bool) -> dict[str, Any]:  # noqa: FBT001  as above
    delta = {"type": "text_delta", "text": said}
    return {
        "type": "content_block_delta",
        "delta": {**delta, "stop_reason": "end_turn"} if reason else delta,
    }


def text_of(dialect: Dialect[Any], chunks: Sequence[Any]) -> str:
    """Return the text that *chunks* bring."""
    if dialect is NATIVE:
        return "".join(chunk.text for chunk in chunks if chunk.candidates)
    if dialect is CHAT:
        return "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)
    deltas = [chunk["delta"] for chunk in chunks if "delta" in chunk]
    return "".join(delta.get("text", "") for delta in deltas)


EVENTS: dict[str, tuple[Dialect[Any], Callable[[str, bool], dict[str, Any]], bytes]] = {
    "native": (NATIVE, native, b""),
    "chat": (CHAT, chat, b"data: [DONE]\n\n"),
    "messages": (MESSAGES, message, b'data: {"type": "message_stop"}\n\n'),
}
REASONS = {"each": (True, True, True), "last": (False, False, True), "none": (False, False, False)}


def sse(events: Sequence[Any], mark: bytes) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + mark


def named(events: Sequence[Any], mark: bytes) -> bytes:
    body = sse(events, b"").replace(b"data: ", b"id: 1\r\nevent: chunk\r\ndata: ")
    return body.replace(b"\n\n", b"\r\n\r\n") + mark


def array(events: Sequence[Any], _: bytes) -> bytes:
    return json.dumps(events, indent=1).encode() + b"\n"


def bare(events: Sequence[Any], _: bytes) -> bytes:
    return b"\n".join(json.dumps(event).encode() for event in events)


FORMS = {"sse": sse, "named": named, "array": array, "bare": bare}

FRAMINGS: dict[str, tuple[bool, TransportFailure | None]] = {
    "cut": (True, BROKEN),
    "closed": (False, None),
    "whole": (True, None),
}
"""Whether the head tells where the body ends, and how the exchange ends: its frames were cut off,
the connection's end is the only end, or the body was cut off upstream and well framed after that.
"""


def read(
    dialect: Dialect[Any], body: bytes, framing: str
) -> tuple[list[Any], StreamInterrupted | None]:
    """Return the chunks of *body*, and how its stream was interrupted, if it was."""
    told, failure = FRAMINGS[framing]
    reader = StreamReader(dialect)
    reader.end_is_announced = told
    chunks: list[Any] = []
    try:
        chunks += reader.take(body)
        if failure is None or reader.over:
            chunks += reader.end()
    except StreamInterrupted as error:
        return chunks, error
    return chunks, None if failure is None else reader.fail(failure)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    ("form", "marked"),
    [("sse", True), ("sse", False), ("named", True), ("named", False), ("array", False),
     ("bare", False)],
)  # fmt: skip
@pytest.mark.parametrize("layout", REASONS)
@pytest.mark.parametrize("name", EVENTS)
def test_cut_at_every_byte(name: str, marked: bool, layout: str, form: str, framing: str) -> None:  # noqa: FBT001  a column
    """Wherever a stream is cut off, its text is complete, or the error says that it is not.

    Nothing tells a stream whose events all have a reason to stop, and which was cut off between two
    of them upstream and well framed after that, from a whole one.
    """
    dialect, event, mark = EVENTS[name]
    events = [event(word, reason) for word, reason in zip(WORDS, REASONS[layout], strict=True)]
    body = FORMS[form](events, mark if marked else b"")
    for size in range(len(body) + 1):
        chunks, error = read(dialect, body[:size], framing)
        if error is not None:
            assert error.arrived == len(error.chunks)
            assert len(error.chunks) >= len(chunks)
            assert error.failure == FRAMINGS[framing][1] or error.failure is None
        elif text_of(dialect, chunks) != TEXT:
            between = (
                (b"\n\n", b"\r\n\r", b"\r\n\r\n") if form in {"sse", "named"} else (b"}", b"\n")
            )
            assert body[:size].endswith(between)
            assert (layout, framing) == ("each", "whole")
            assert form != "array"


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["each", "last"])
@pytest.mark.parametrize("name", EVENTS)
def test_whole_streams(name: str, layout: str, form: str, framing: str) -> None:
    """A whole stream is complete, unless it says so no better than a part of it would."""
    dialect, event, mark = EVENTS[name]
    events = [event(word, reason) for word, reason in zip(WORDS, REASONS[layout], strict=True)]
    chunks, error = read(dialect, FORMS[form](events, mark), framing)
    has_mark = form == "array" or (bool(mark) and form != "bare")
    complete = layout == "last" or has_mark or framing == "whole"
    assert (error is None) is complete
    assert text_of(dialect, chunks) == TEXT
    if error is not None:
        assert text_of(dialect, error.chunks) == TEXT


@pytest.mark.parametrize("framing", FRAMINGS)
def test_an_answer_of_one_event(framing: str) -> None:
    """Its reason to stop counts if the body is known to be whole, for others may follow it."""
    body = sse([native("Yes.", reason=True)], b"")
    chunks, error = read(NATIVE, body, framing)
    assert [chunk.text for chunk in chunks] == ["Yes."]
    assert (error is None) is (framing == "whole")
    assert read(NATIVE, body[:-1], framing)[1] is not None
    for rest in (b"d", b"data: ", b"event: x\n", b'data: {"a"', b"{", b"data: 5\n\n", b"{x}\n"):
        assert read(NATIVE, body + rest, framing)[1] is not None
    for rest in (b"\n", b": still here", b": still here\n\n", b"data: null\n\n"):
        assert (read(NATIVE, body + rest, framing)[1] is None) is (framing == "whole")
    for rest in (b"data: [DONE]", b"data: [DONE]\n\n"):
        assert (read(NATIVE, body + rest, framing)[1] is None) is (
            framing != "cut" or rest[-1:] == b"\n"
        )


def test_an_event_that_is_too_large_after_a_reason() -> None:
    """An event that is too large was a part of the answer, if others had a reason to stop, too."""
    reader = StreamReader(NATIVE, event_limit=200)
    first = sse([native("a", reason=True)], b"")
    assert len(list(reader.take(first))) == 1
    with pytest.raises(StreamInterrupted, match="more than 200 bytes"):
        list(reader.take(sse([native("b" * 300, reason=True)], b"")))


def test_the_message_of_a_closed_connection() -> None:
    """Where nothing but the connection's end says that an answer is complete, the error says so."""
    _, error = read(NATIVE, sse([native("Yes.", reason=True)], b""), "closed")
    assert error is not None
    assert error.reason == (
        "the connection closed, and nothing else says that the answer is complete: the response "
        "has neither a length nor chunks, and each event has a reason to stop"
    )
