"""Streamed replies: the same events however the body is cut, and never half an event."""

from __future__ import annotations

import base64
import itertools
import json
import re
import tracemalloc
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.streams import (
    BOM,
    EMPTY_BODIES,
    JSON,
    MALFORMED,
    SERVER_SENT,
    SHORT,
    STREAMS,
    Stream,
)

from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.text.stream_parser import (
    DONE,
    EVENT_LIMIT,
    MalformedStream,
    StreamParser,
)

Outcome = tuple[list[bytes], type[MalformedStream] | None]


def outcome(pieces: Iterable[bytes], limit: int = EVENT_LIMIT) -> Outcome:
    """Return the payloads that *pieces* give, and how the stream fails, if it does."""
    parser = StreamParser(event_limit=limit)
    payloads: list[bytes] = []
    try:
        for piece in pieces:
            payloads.extend(parser.feed(piece))  # keeps what came before an exception
        payloads.extend(parser.end())
    except MalformedStream as error:
        return payloads, type(error)
    return payloads, None


def single_bytes(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


def in_two(body: bytes) -> Iterator[list[bytes]]:
    for at in range(len(body) + 1):
        yield [body[:at], body[at:]]


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_whole(stream: Stream) -> None:
    """A body in one piece gives its events."""
    assert outcome([stream.body]) == (stream.payloads, None)


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_byte_by_byte(stream: Stream) -> None:
    """Each event is given with the byte that completes it, neither earlier nor later."""
    parser = StreamParser()
    payloads: list[bytes] = []
    for at, byte in enumerate(single_bytes(stream.body)):
        payloads += parser.feed(byte)
        assert payloads == stream.given(at + 1)
    assert [*payloads, *parser.end()] == stream.payloads


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_every_split_point(stream: Stream) -> None:
    """A body in two pieces gives the same events, and empty pieces change nothing."""
    for first, second in in_two(stream.body):
        parser = StreamParser()
        assert list(parser.feed(first)) == stream.given(len(first))
        assert list(parser.feed(b"")) == []
        assert outcome([first, second]) == outcome([b"", first, b"", second, b""])
        assert outcome([first, second]) == (stream.payloads, None)


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_large_pieces(stream: Stream) -> None:
    """A piece of any size is as good as many, wherever the parser itself divides it."""
    body = stream.body.removeprefix(BOM).lstrip()
    for at in range(len(body)):
        room = 64 * 1024 - at
        padding = b" " * room if stream.is_json else b":%s\n" % (b"x" * (room - 2))
        assert outcome([padding + body]) == (stream.payloads, None)


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_truncated_at_every_byte(stream: Stream) -> None:
    """A truncated body gives every event that is whole, and none that is not its own.

    A server-sent event that is cut within its line is given as it is, because nothing tells it
    from a whole one. JSON that is cut inside an event is told.
    """
    for size in range(len(stream.body)):
        whole = stream.given(size)
        given, failure = outcome([stream.body[:size]])
        assert outcome(single_bytes(stream.body[:size])) == (given, failure)
        assert given[: len(whole)] == whole
        if stream.is_json:
            assert given == whole
            assert failure is (MalformedStream if stream.inside(size) else None)
        else:
            assert failure is None
            rest = given[len(whole) :]
            assert len(rest) <= 1
            for last in rest:
                assert stream.payloads[len(whole)].startswith(last)


def outcomes_with(stream: Stream, before: bytes, junk: bytes) -> list[Outcome]:
    """Return what *stream* gives with *junk* after it, in one piece, in bytes, and by itself."""
    body = stream.body + before
    return [outcome(pieces) for pieces in ([body + junk], single_bytes(body + junk), [body, junk])]


@pytest.mark.parametrize("junk", [b"junk", b":", b"\x00", b"\xff\xfe", b"]\n}", b"data", b"\r\n\n"])
def test_trailing_junk_after_events(junk: bytes) -> None:
    """Whatever is no data after the last server-sent event changes nothing."""
    found = {name: outcomes_with(stream, b"\n\n", junk) for name, stream in SERVER_SENT.items()}
    assert found == {name: [(stream.payloads, None)] * 3 for name, stream in SERVER_SENT.items()}


@pytest.mark.parametrize(
    "junk", [b"junk", b"5", b'"', b"\x00", b"\xff", b"}", b"\\", b"\n: x", b":"]
)
def test_trailing_junk_after_json(junk: bytes) -> None:
    """Junk after JSON is told, after every event has been given."""
    found = {name: outcomes_with(stream, b"", junk) for name, stream in JSON.items()}
    told = {name: [(stream.payloads, MalformedStream)] * 3 for name, stream in JSON.items()}
    assert found == told


def test_white_space_after_json() -> None:
    """White space after JSON is no junk."""
    found = {name: outcome([stream.body + b" \r\n\t"]) for name, stream in JSON.items()}
    assert found == {name: (stream.payloads, None) for name, stream in JSON.items()}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    """What is neither an array nor objects is told, after the events before it."""
    body, payloads = MALFORMED[name]
    for pieces in ([body], single_bytes(body), *in_two(body)):
        assert outcome(pieces) == (payloads, MalformedStream)


def test_events_before_an_exception() -> None:
    """Events of the same piece are given before the exception for a later one."""
    events = StreamParser().feed(b"[" + SHORT + b"," + SHORT + b",5]")
    assert next(events) == SHORT
    assert next(events) == SHORT
    with pytest.raises(MalformedStream, match="b'5' stands where an event should begin"):
        next(events)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[] 1", "continues after the end of its JSON array"),
        (b"[\x1b", r"b'\\x1b' stands where an event should begin"),
        (b'{"a":"}', "ends inside an event"),
    ],
)
def test_messages(body: bytes, said: str) -> None:
    """An exception says in printable words what is wrong."""
    parser = StreamParser()
    with pytest.raises(MalformedStream, match=said) as caught:
        list(itertools.chain(parser.feed(body), parser.end()))
    assert str(caught.value).isprintable()


def test_done() -> None:
    """The mark that ends some streams is told from JSON by comparing it with `DONE`."""
    assert outcome([b"data: [DONE]\r\n\r\n"]) == ([DONE], None)


@pytest.mark.parametrize("size", [9, 99_999])
def test_an_event_in_lines(size: int) -> None:
    """An event of any size may be in lines, and its payload begins with what it says."""
    long = b'"%s"' % (b"x" * size)
    for lines in ([b"[", long, b"]"], [long, b""], [b"", long], [b"", b" ", long, b" "]):
        body = b"".join(b"data: %s\n" % line for line in lines)
        (payload,), failure = outcome([body + b"\n"])
        assert payload.startswith((b"[\n", long))
        assert payload.strip() == b"\n".join(lines).strip()
        assert failure is None
        assert outcome([body + b"\n" + body + b"\n"]) == ([payload, payload], None)
    assert outcome([b"data:\n" * size + b"\n" + b"data: 1\n\n"]) == ([b"1"], None)


LIMIT = 100
FITS = b'{"a":"%s"}' % (b"x" * (LIMIT - 8))
FULL = b'data: {"a":"%s"}' % (b"x" * (LIMIT - 14))
TOO_LARGE: dict[str, bytes] = {
    "data": FULL + b"x",
    "data in lines": b"data: 1\n" * (LIMIT // 7) + b"dat",
    "data after a comment": b": x\n" + FULL + b"x",
    "data after other data": b"data: 1\n" + b"data: " + b"x" * (LIMIT - 12),
    "a comment": b":" + b"x" * LIMIT,
    "a comment within an event": b"data: 1\n:" + b"x" * (LIMIT - 7),
    "another field": b"id: " + b"x" * (LIMIT - 3),
    "no field": b"x" * (LIMIT + 1),
}
TOO_LARGE_IN_JSON: dict[str, bytes] = {
    "a string": FITS[:-2] + b"xxx",
    "white space": b'{"a":1' + b" " * (LIMIT - 5),
    "nesting": b'{"a":' * 20 + b"{",
    "escapes": b'{"a":"' + rb"\"" * 47 + b"x",
}


@pytest.mark.parametrize("rest", [b"", b'"}\n\ndata: 1\n\n', b"\n", b"\r\n\r\n"])
@pytest.mark.parametrize(
    ("before", "large"),
    [(b"data: " + SHORT + b"\n\n", large) for large in TOO_LARGE.values()]
    + [(b"[" + SHORT + b",", large) for large in TOO_LARGE_IN_JSON.values()]
    + [(SHORT + b"\n", large) for large in TOO_LARGE_IN_JSON.values()],
)
def test_one_byte_too_many(before: bytes, large: bytes, rest: bytes) -> None:
    """An event or line over the limit is refused with the first byte that is too many."""
    for pieces in ([before + large + rest], single_bytes(before + large + rest)):
        assert outcome(pieces, LIMIT) == ([SHORT], MalformedStream)
    parser = StreamParser(event_limit=LIMIT)
    for byte in single_bytes((before + large)[:-1]):
        list(parser.feed(byte))
    with pytest.raises(MalformedStream, match="more than 100 bytes") as caught:
        list(parser.feed(large[-1:]))
    assert caught.value.too_large


@pytest.mark.parametrize(
    "body",
    [FULL + b"\n\n", FULL + b"\r\n\r\n", FULL, b"[" + FITS + b"]", FITS],
)
def test_largest_events(body: bytes) -> None:
    """An event may have as many bytes as the limit, one after another."""
    (payload,), _ = outcome([body])
    assert len(payload) == LIMIT - (6 if body.startswith(b"d") else 0)
    assert outcome([body], LIMIT) == ([payload], None)
    assert outcome(single_bytes(body), LIMIT) == ([payload], None)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b": still here\n" * 50, 0),
        (b"data: " + SHORT + b"\n" + b": still here\nid: 5\n" * 50 + b"\n", 1),
        (b"event: ping\n\n" * 50, 0),
        (b"data\n\n" * 50, 0),
        (b"\r\n" * 200, 0),
        (b"data: " + SHORT + b"\n\n" + b"\n" * 200, 1),
        (b" " * 200 + SHORT, 1),
        (b"[" + b" " * 200 + SHORT + b"\n" * 200 + b"," + b" " * 200 + SHORT, 2),
        ((b"data: " + SHORT + b"\n\n") * 50, 50),
        ((b"data: 1\n" * 10 + b"\n") * 20, 20),
        ((SHORT + b"\n") * 50, 50),
    ],
)
def test_the_limit_is_for_each_event(body: bytes, count: int) -> None:
    """Signs of life, white space and earlier events do not count."""
    for pieces in ([body], single_bytes(body)):
        payloads, failure = outcome(pieces, LIMIT)
        assert (len(payloads), failure) == (count, None)


@contextmanager
def memory() -> Generator[list[int], None, None]:
    """Measure the most bytes that are allocated at a time."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "piece", [b": still here\n", b"id: 12345\n", b"\r\n", b"data\n\n", b"data: {}\n\n"]
)
def test_nothing_accumulates(piece: bytes) -> None:
    """What is done with is not kept, in however many pieces it came, or in one."""
    body = piece * (MEBIBYTE // 2 // len(piece))
    for size in (1000, len(body)):
        limit, tries = MEBIBYTE * 3 // 4, 0
        while True:
            parser = StreamParser()
            with memory() as peak:
                for at in range(0, len(body), size):
                    for _ in parser.feed(body[at : at + size]):
                        pass
            tries += 1
            if peak[0] < limit or tries == 3:  # threads of earlier tests may allocate as well
                break
        assert peak[0] < limit


@pytest.mark.parametrize("begin", [b'data: {"a":"', b'[{"a":"', b'{"a":"'])
def test_memory_of_a_large_event(begin: bytes) -> None:
    """While an event arrives, its bytes are kept once; when it is given, there is one copy more."""
    parser, size = StreamParser(), 4 * MEBIBYTE
    with memory() as peak:
        list(parser.feed(begin))
        for _ in range(size // 65536):
            assert not list(parser.feed(b"x" * 65536))
    assert peak[0] < 1.5 * size
    with memory() as peak:
        (payload,) = parser.feed(b'"}\n\n')
    assert len(payload) > size
    assert peak[0] < 2.25 * size  # what had been allocated before is not counted


def test_memory_of_many_lines() -> None:
    """An event of many short lines takes no more than its bytes."""
    parser = StreamParser()
    with memory() as peak:
        for _ in range(100):
            list(parser.feed(b"data:ab\n" * 1000))
    assert peak[0] < 800_000


def test_an_endless_line_ends_at_the_limit() -> None:
    """Memory stays at the limit and a piece, because a line without end is refused there."""
    for begin in (b":", b"data: ", b"x", b"[{", b'{"a":"'):
        parser = StreamParser(event_limit=MEBIBYTE)
        endless = itertools.chain([begin], itertools.repeat(b"x" * 65536))
        with memory() as peak, pytest.raises(MalformedStream, match="more than"):
            all(list(parser.feed(piece)) == [] for piece in endless)
        assert peak[0] < 1.5 * MEBIBYTE


def test_inline_pictures_of_several_mebibytes() -> None:
    """Events of several MiB are normal, in every form and cutting."""
    picture = base64.b64encode(bytes(range(256)) * 12 * 1024)
    event = b'{"text":"\\"","data":"%s"}' % picture
    two = [event, event]
    bodies = (b"".join(b"data: %s\r\n\r\n" % e for e in two), b"[%s\n,\r\n%s]" % (event, event))
    for body in bodies:
        for size in (len(body), 65536, 1 << 16 | 1, 4093):
            pieces = [body[at : at + size] for at in range(0, len(body), size)]
            assert outcome(pieces) == (two, None)


# A JSON value in the characters that could mislead a parser.
texts = st.text(st.sampled_from('"\\{}[],: \n\r\taé馬\U0001f40e\u2028\x85'), max_size=12)
objects = st.dictionaries(
    texts,
    st.recursive(
        texts | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
blanks = st.text(st.sampled_from(" \t\r\n"), max_size=4).map(str.encode)


@st.composite
def events(draw: st.DrawFn) -> bytes:
    value = draw(objects)
    ascii_only = draw(st.booleans())
    return json.dumps(value, ensure_ascii=ascii_only, indent=draw(st.none() | st.just(1))).encode()


@st.composite
def server_sent(draw: st.DrawFn, payloads: list[bytes]) -> bytes:
    noise = st.sampled_from([b": hello", b":", b"event: x", b"id", b"datas: {}", b"retry:1"])
    lines: list[bytes] = []
    for payload in payloads:
        for part in payload.split(b"\n"):
            lines += draw(st.lists(noise, max_size=1))
            plain = not part.startswith(b" ") and draw(st.booleans())
            lines.append((b"data:" if plain else b"data: ") + part)
        lines += [b""] * draw(st.integers(1, 3))
        lines += draw(st.lists(noise | st.just(b""), max_size=2))
    body = bytearray()
    for line in lines:
        end = draw(st.sampled_from([b"\n", b"\r", b"\r\n"]))
        if not line and end == b"\n" and body.endswith(b"\r"):
            end = b"\r\n"  # CR and LF of two lines would be one line end
        body += line + end
    if draw(st.booleans()) and lines and not lines[-1]:
        return bytes(body).rstrip(b"\r\n")  # without the last blank line
    return bytes(body)


@st.composite
def array(draw: st.DrawFn, payloads: list[bytes]) -> bytes:
    between = [draw(blanks) + b"," + draw(blanks) for _ in payloads]
    inside = b"".join(itertools.chain(*zip(payloads, between, strict=True)))
    return b"[" + draw(blanks) + inside.rstrip().removesuffix(b",") + draw(blanks) + b"]"


@st.composite
def bare(draw: st.DrawFn, payloads: list[bytes]) -> bytes:
    return b"".join(payload + draw(blanks) for payload in payloads)


def cut(draw: st.DrawFn, body: bytes) -> list[bytes]:
    places = draw(st.lists(st.integers(0, len(body)), max_size=8))
    return [body[a:b] for a, b in itertools.pairwise([0, *sorted(places), len(body)])]


@given(st.data())
def test_any_events_in_any_form(data: st.DataObject) -> None:
    """The same events come out of every form, with any line ends, however cut."""
    payloads = data.draw(st.lists(events(), max_size=4))
    form = data.draw(st.sampled_from([server_sent, array, bare]))
    head = data.draw(st.sampled_from([b"", BOM])) + data.draw(blanks)
    body = head + data.draw(form(payloads))
    for pieces in ([body], single_bytes(body), data.draw(st.composite(cut)(body))):
        assert outcome(pieces) == (payloads, None)


def read_by_the_standard(body: bytes) -> list[bytes]:
    """Return the payloads of server-sent events, read as simply as the standard words it."""
    found: list[bytes] = []
    data = b""
    for line in [*body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        name, _, value = line.partition(b":")
        if line and name == b"data":
            data += value.removeprefix(b" ") + b"\n"
        elif not line:
            found += [data.strip()] if data.strip() else []
            data = b""
    return found


line_tokens = st.sampled_from([b"data:", b"data", b": ", b"\n", b"\r", b"\r\n", b" ", b"[DONE]"])
json_tokens = st.sampled_from([*(b"%c" % mark for mark in b'[]{},"\\'), b'\\"', b'{"a":"', b'"}'])
tokens = line_tokens | json_tokens | st.sampled_from([b"x", b"{}", BOM, BOM[:1], b"\xff"])
bodies = st.lists(tokens, max_size=24).map(b"".join) | st.binary(max_size=64)


@given(bodies, st.sampled_from([5, 12, EVENT_LIMIT]), st.data())
def test_any_bytes(body: bytes, limit: int, data: st.DataObject) -> None:
    """Any bytes are read or refused, and the same way however they are cut."""
    expected = outcome([body], limit)
    assert outcome(single_bytes(body), limit) == expected
    assert outcome(data.draw(st.composite(cut)(body)), limit) == expected
    assert all(len(payload) <= limit for payload in expected[0])


@given(st.lists(tokens, max_size=24).map(b"".join))
def test_any_lines(rest: bytes) -> None:
    """Server-sent events are read as the standard says, whatever the lines are, JSON aside."""
    # A letter in front of it makes a line of JSON one of those that are ignored.
    body = re.sub(rb"(?<=[\r\n])(?=[ \t]*[\[\]{}\",])", b"x", b"data" + rest)
    assert outcome([body]) == (read_by_the_standard(body), None)


def test_an_empty_body() -> None:
    """A body without anything in it is no events."""
    assert outcome([]) == ([], None)
    for stream in EMPTY_BODIES.values():
        assert stream.payloads == []
