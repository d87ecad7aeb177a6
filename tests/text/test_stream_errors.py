"""Errors that a service reports in mid-stream, in whatever layout: each is raised in its words."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import moments
from muybridge_protocol.http import MEBIBYTE, Phase, Reason, TransportFailure
from muybridge_protocol.text import stream_parser
from muybridge_protocol.text.dialects import CHAT, MESSAGES, NATIVE, Dialect
from muybridge_protocol.text.stream_parser import MalformedStream, StreamParser
from muybridge_protocol.text.stream_reader import StreamInterrupted, StreamReader
from tables import table

BROKEN = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED)
MESSAGE = "The operation was cancelled {[\u2026]}."
DETAIL = {"@type": "type.googleapis.com/google.rpc.DebugInfo", "detail": "[ORIGINAL ERROR] {"}
ERROR: dict[str, Any] = {
    "error": {"code": 499, "message": MESSAGE, "status": "CANCELLED", "details": [DETAIL]}
}
BARE = {"code": 503, "message": MESSAGE}


def said(text: str, reason: str | None) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]}


BEFORE: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "a part": [said("a", None)],
    "reasons": [said("a", "STOP"), said("b", "STOP")],
    "an end": [said("a", None), said("b", "STOP")],
}


def sse(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def bare(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def array(events: list[dict[str, Any]]) -> bytes:
    return b"[" + b"".join(json.dumps(event).encode() + b",\n" for event in events)


def interruption(
    body: bytes, dialect: Dialect[Any] = NATIVE, failure: TransportFailure | None = None
) -> StreamInterrupted:
    """Return how the stream is interrupted, which must not depend on how it is cut in pieces."""
    told: list[StreamInterrupted] = []
    for size in (len(body), 1):
        reader = StreamReader(dialect)
        found = None
        try:
            for at in range(0, len(body), size):
                list(reader.take(body[at : at + size]))
            if failure is None:
                list(reader.end())
            else:
                found = reader.fail(failure)
        except StreamInterrupted as error:
            found = error
        assert found is not None
        told.append(found)
    assert len({(str(error), error.arrived) for error in told}) == 1
    return told[0]


PRETTY = json.dumps(ERROR, indent=2, ensure_ascii=False).encode()
LISTED = json.dumps([ERROR], indent=2, ensure_ascii=False).encode()
ON_ONE_LINE = json.dumps(ERROR).encode()
LAYOUTS: dict[str, bytes] = {
    "one line": b"data: " + ON_ONE_LINE + b"\n\n",
    "one line without its end": b"data: " + ON_ONE_LINE,
    "bare": ON_ONE_LINE + b"\n",
    "bare and pretty": PRETTY + b"\n",
    "bare, pretty and without its end": PRETTY,
    "bare, pretty and indented": b"  " + PRETTY.replace(b"\n", b"\n  "),
    "bare, pretty and with CRLF": PRETTY.replace(b"\n", b"\r\n"),
    "bare, pretty and with blank lines": PRETTY.replace(b"\n", b"\n\n"),
    "bare, and pretty with tabs": json.dumps(ERROR, indent="\t").encode(),
    "bare, and pretty without indents": json.dumps(ERROR, indent=0).encode() + b"\n\n",
    "in a bare array": b"[" + ON_ONE_LINE + b"]\n",
    "in a bare array, pretty": LISTED + b"\r\n",
    "in an array": b"data: [" + ON_ONE_LINE + b"]\n\n",
    "in an array, then bare lines": b"data: " + LISTED + b"\n\n",
    "data, then bare lines": b"data: " + PRETTY + b"\n\n",
    "data, then bare lines without an end": b"data: " + PRETTY,
    "data without a space, then bare lines": b"data:"
    + PRETTY.replace(b"\n", b"\r\n")
    + b"\r\n\r\n",
    "data on each line": b"data: " + PRETTY.replace(b"\n", b"\ndata: ") + b"\n\n",
    "a field of its own": b"error: " + ON_ONE_LINE + b"\n\n",
    "a field of its own, without an error": b"error:" + json.dumps(BARE).encode() + b"\r\n\r\n",
    "a field of its own, pretty": b"error: " + PRETTY + b"\n\n",
    "a named event": b"event: error\ndata: " + ON_ONE_LINE + b"\n\n",
    "named after its data": b"data: " + ON_ONE_LINE + b"\nevent:error\n\n",
    "named, and pretty": b"event: error\r\ndata: " + PRETTY.replace(b"\n", b"\r\n") + b"\r\n\r\n",
    "named, and bare": b"event: error\n" + PRETTY,
    "named without an error": b"event: error\ndata: " + json.dumps(BARE).encode() + b"\n\n",
    "named, pretty, without an error": b"event: error\ndata: "
    + json.dumps(BARE, indent=1).encode()
    + b"\n\n",
    "named, with an identifier": b"event: error\nid: 7\ndata: " + json.dumps(BARE).encode(),
    "named, and a text": b"event: error\ndata: " + MESSAGE.encode() + b"\n\n",
    "named, and a JSON string": b"event: error\ndata: " + json.dumps(MESSAGE).encode() + b"\n\n",
    "after a comment": b": busy\n\n" + PRETTY,
}


@table("failure", [None, BROKEN])
@table("before", BEFORE)
@table("layout", LAYOUTS)
def test_an_error_among_server_sent_events(
    layout: str, before: str, failure: TransportFailure | None
) -> None:
    """An error is raised in the service's words, whatever its lines are, after an end, too."""
    events = BEFORE[before] or [{"usageMetadata": {}}]
    error = interruption(sse(events) + LAYOUTS[layout], failure=failure)
    assert error.reason == f"the service reported an error: {MESSAGE}"
    assert error.arrived == len(events)
    assert error.failure in {None, failure}
    named = "without an error" in layout or layout == "named, with an identifier"
    text = layout in {"named, and a text", "named, and a JSON string"}
    assert error.error == (BARE if named else {"error": MESSAGE} if text else ERROR)


@table("dialect", [CHAT, MESSAGES])
@table("layout", LAYOUTS)
def test_an_error_in_each_protocol(layout: str, dialect: Dialect[Any]) -> None:
    """The layouts are the same in each protocol."""
    error = interruption(sse([{"id": "x"}]) + LAYOUTS[layout], dialect)
    assert error.reason == f"the service reported an error: {MESSAGE}"
    assert error.arrived == 1


def test_an_error_after_a_hole() -> None:
    """One that follows an event that cannot be read is raised, if the answer had ended."""
    error = interruption(sse(BEFORE["an end"]) + b"data: {\n\n" + PRETTY)
    assert error.reason == f"the service reported an error: {MESSAGE}"


OTHER_LAYOUTS = {
    "one line": ON_ONE_LINE,
    "pretty": PRETTY,
    "in an array": LISTED,
    "a server-sent event": b"data: " + ON_ONE_LINE + b"\n\n",
    "a server-sent event, pretty": b"\ndata: " + PRETTY + b"\n\n",
    "a named event": b"event: error\ndata: " + json.dumps(BARE).encode() + b"\n\n",
    "after a line of text": b"Bad gateway\n" + PRETTY,
}


@table("before", BEFORE)
@table("form", [array, bare])
@table("layout", OTHER_LAYOUTS)
def test_an_error_among_json(layout: str, form: Any, before: str) -> None:
    """So is one after objects or within an array, also where it should not be there like that."""
    body = form(BEFORE[before] or [{"usageMetadata": {}}])
    bodies = [body + OTHER_LAYOUTS[layout]]
    if form is array:
        bodies += [body + OTHER_LAYOUTS[layout] + b"\n]", body[:-2] + b"\n" + OTHER_LAYOUTS[layout]]
    for other in bodies:
        assert interruption(other).reason == f"the service reported an error: {MESSAGE}"


def test_the_first_thing() -> None:
    """An error in place of the whole stream is raised in each form."""
    for body in (PRETTY, LISTED, b"event: error\ndata: " + PRETTY, b"\n data: x\n" + PRETTY):
        assert interruption(body).reason == f"the service reported an error: {MESSAGE}"


def test_an_error_that_is_cut_off() -> None:
    """What is no whole error is an interruption all the same, unless the answer had ended."""
    for before, name in itertools.product(("a part", "reasons"), LAYOUTS):
        begin = 9 if name == "after a comment" else 1
        for size in range(begin, len(LAYOUTS[name]), 23):
            assert interruption(sse(BEFORE[before]) + LAYOUTS[name][:size])


def test_an_error_without_words() -> None:
    """An event that is named an error is one, whatever it holds."""
    start = sse(BEFORE["an end"])
    for rest in (b"event: error\n\n", b"event: error\ndata\n\n", b"event: error\ndata: {}\n\n"):
        error = interruption(start + rest)
        assert error.reason.startswith("the service reported an error:")
        assert error.error is not None


def test_no_error() -> None:
    """What is named otherwise, or tells nothing, is no error."""
    start, end = sse(BEFORE["a part"]), sse(BEFORE["an end"])
    for rest in (b"event: errors\n\n", b"event: error\nevent: ping\n\n", b"error: x\n\n", b"{}\n"):
        reader = StreamReader(NATIVE)
        assert len(list(reader.take(start + rest + end))) == 3 + (rest == b"{}\n")
        assert list(reader.end()) == []


def test_events_after_what_looks_like_json() -> None:
    """A text that never ends does not swallow the events after it."""
    for junk in (b"{\n", b"[\n", b"[{\n\n", b'{"a":\nx\n'):
        reader = StreamReader(NATIVE)
        body = sse(BEFORE["an end"]) + junk + sse([{"usageMetadata": {}}])
        assert len(list(reader.take(body))) == 3
        assert list(reader.end()) == []
        assert interruption(sse(BEFORE["a part"]) + junk + sse(BEFORE["an end"])).arrived == 1


def test_pretty_events_are_read() -> None:
    """Any event may have a field's name on its first line only, or on none."""
    events = BEFORE["an end"]
    for begin in (b"data: ", b"data:", b"", b"id: 5\nevent: x\n", b"event: x\ndata: "):
        for indent in (0, 1, "\t"):
            body = b"".join(
                begin + json.dumps(event, indent=indent).encode() + b"\n\n" for event in events
            )
            reader = StreamReader(NATIVE)
            body = b"data: null\n\n" + body
            assert [chunk.raw for chunk in reader.take(body)] == events


def test_named_errors_are_told_apart() -> None:
    """A payload says whether its event is named an error, and the next one is not."""
    found = list(StreamParser().feed(b"event: error\ndata: 1\n\ndata: 2\n\nevent: x\ndata: 3\n\n"))
    assert found == [b"1", b"2", b"3"]
    assert [type(payload) for payload in found] == [stream_parser.ErrorEvent, bytes, bytes]


@pytest.mark.parametrize(
    "body",
    [
        b"data: {" + b'"a":1,' * 9000 + b"\n" + b'"a":\n' * 40_000,
        b"data: {\n" + b"x\ndata: {\n" * 40_000,
        b"data: {}\n" + b"}\n" * 80_000,
        b"{\n" * 80_000,
        b"[\n{\n" * 40_000,
        b"{}\n" * 80_000,
        b'{"a":\n\n' * 40_000,
    ],
    ids=lambda body: ascii(body[:12]),
)
def test_the_cost_is_linear(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that may be JSON are looked at once, or twice where they follow a field's name."""
    looked_at = 0
    joined = moments.at("lines of a stream joined")
    feed = joined.value

    def counting(self: Any, window: bytes, payloads: list[bytes]) -> None:
        nonlocal looked_at
        looked_at += len(window)
        feed(self, window, payloads)

    monkeypatch.setattr(*joined.place, counting)
    parser = StreamParser(server_sent=True)
    for at in range(0, len(body), 4096):
        list(parser.feed(body[at : at + 4096]))
    list(parser.end())
    assert looked_at <= 2 * len(body)


def test_memory_of_a_text_without_end() -> None:
    """A JSON text over many lines is bounded as every event is."""
    parser = StreamParser(event_limit=MEBIBYTE)
    list(parser.feed(b'data: x\n\n{"a": [\n'))
    lines = b'"%s",\n' % (b"x" * 999) * 60
    with pytest.raises(MalformedStream, match="more than"):
        all(list(parser.feed(lines)) == [] for _ in range(20))


# A generated error in a random layout at a random place of a stream.

words = st.text(st.sampled_from('ab{}[]":\\, \u2028é馬'), min_size=1, max_size=12).filter(str.strip)
values = st.recursive(
    words | st.integers(-9, 999) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def errors(draw: st.DrawFn) -> dict[str, Any]:
    inner = draw(st.dictionaries(words, values, max_size=2)) | {
        "code": draw(st.integers(400, 599)),
        "message": draw(words),
    }
    return draw(
        st.sampled_from([{"error": inner}, {"type": "error", "error": inner}])
        | st.just({"x": draw(values), "error": inner})
    )


@st.composite
def layouts(draw: st.DrawFn, error: dict[str, Any]) -> bytes:
    """Lay *error* out: on one line or several, with the fields' names of an event or without."""
    indent = draw(st.sampled_from([None, 0, 1, 2, "\t"]))
    value: Any = [error] if draw(st.booleans()) else error
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans())).encode()
    match draw(st.sampled_from(["bare", "first line", "each line"])):
        case "first line":
            text = b"data: " + text
        case "each line":
            text = b"data: " + text.replace(b"\n", b"\ndata: ")
        case _:
            pass
    if draw(st.booleans()):
        text = b"event: error\n" + text
    end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    return (text + draw(st.sampled_from([b"", b"\n", b"\n\n"]))).replace(b"\n", end)


@given(st.data(), st.sampled_from([sse, bare, array]))
def test_any_error_in_any_layout(data: st.DataObject, form: Any) -> None:
    """Whatever an error is, however it is laid out and wherever it stands, it is raised."""
    error = data.draw(errors())
    before = data.draw(
        st.lists(st.sampled_from([said("a", None), said("b", "STOP"), {"x": 1}]), max_size=4)
    )
    after = data.draw(st.sampled_from([b"", b"\n", b"\n\n" + sse([said("c", "STOP")])]))
    body = form(before) + data.draw(layouts(error)) + after
    found = interruption(body, failure=data.draw(st.sampled_from([None, BROKEN])))
    assert found.error == error
    assert found.arrived == len(before)
    shown = re.sub(r"\s+", " ", error["error"]["message"]).strip()
    assert re.sub(r"\s+", " ", found.reason).startswith(f"the service reported an error: {shown}")
