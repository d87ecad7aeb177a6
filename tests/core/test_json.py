"""JSON as it is read: strictly, and with one kind of error for whatever is wrong."""

from __future__ import annotations

import contextlib
import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.json import (
    BYTES_A_VALUE,
    EVENT_LIMIT,
    VALUES_LIMIT,
    InvalidJson,
    error_message,
    event_value,
    read_event,
    read_json,
    read_object,
    readable,
    write_json,
)

DEEP = 10**5

REJECTED: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \r\n",
    "mark alone": b"\xef\xbb\xbf",
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbf{}",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "-Infinity": b"-Infinity",
    "1e999": b'{"a":1e999}',
    "-1e999": b"[-1e999]",
    "duplicate names": b'{"a":1,"a":1}',
    "inner duplicate names": b'[{"b":{"a":1,"b":2,"a":3}}]',
    "duplicate names in disguise": b'{"id":1,"\\u0069d":2}',
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and open": b"[" * DEEP,
    "rather deep": b"[" * 101 + b"]" * 101,
    "too many objects": b"[" + b"{}," * 50_000 + b"{}]",
    "too many arrays": b"[" + b"[]," * 50_000 + b"[]]",
    "too many numbers": b"[" + b"1," * 100_000 + b"1]",
    "too many texts": b"[" + b'"",' * 200_001 + b'""]',
    "too many names": b'{"x":[' + b'{"a":1},' * 40_000 + b"1]}",
    "5000 digits": b"9" * 5000,
    "5000 digits inside": b'{"a":-' + b"1" * 5000 + b"}",
    "trailing value": b"{} {}",
    "trailing comma": b"[1,]",
    "trailing NUL": b"{}\x00",
    "trailing bracket": b"{}]",
    "truncated": b'{"a":',
    "truncated string": b'{"a":"b',
    "comment": b"{} // no",
    "single quotes": b"{'a':1}",
    "bare name": b"{a:1}",
    "leading zero": b"01",
    "plus": b"+1",
    "hexadecimal": b"0x1",
    "control mark in a string": b'"a\nb"',
    "odd escape": b'"\\x41"',
    "odd white space": b"\xc2\xa0{}",
    "invalid UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "cut UTF-8": b'"\xe2\x82"',
    "UTF-16": "{}".encode("utf-16"),
    "UTF-16 without mark": "{}".encode("utf-16-le"),
    "UTF-32": "{}".encode("utf-32"),
    "UTF-32 without mark": "{}".encode("utf-32-be"),
    "Latin-1": '{"a":"ü"}'.encode("latin-1"),
    "HTML": b"<html></html>",
}


@pytest.mark.parametrize("name", REJECTED)
@pytest.mark.parametrize("read", [read_json, read_object])
def test_rejected(read: Callable[[bytes], Any], name: str) -> None:
    """What is not strict UTF-8 JSON is refused with InvalidJson and a sentence, nothing else."""
    with pytest.raises(InvalidJson) as caught:
        read(REJECTED[name])
    assert type(caught.value) is InvalidJson
    assert 0 < len(str(caught.value)) < 200
    assert error_message(REJECTED[name]).isprintable()
    find_id(REJECTED[name])


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b' \t\r\n{"a" : [1, 2.5, "x", null, true]}\n', {"a": [1, 2.5, "x", None, True]}),
        (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        ('{"é":"\U0001f40e"}'.encode(), {"é": "\U0001f40e"}),
        (b'"\\ud83d\\udc0e"', "\U0001f40e"),
        (b'"\\ud800"', "\ud800"),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
        (b"9" * 300, int("9" * 300)),
        (b"[" * 100 + b"]" * 100, None),
        (b"[" + b"[]," * 5000 + b"[]]", None),
        (b"null", None),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_accepted(body: bytes, value: object) -> None:
    """Strict UTF-8 JSON is read, with or without a byte order mark."""
    found = read_json(body)
    assert value is None or found == value


@pytest.mark.parametrize("piece", ["{}", "[]", "1", '{"a":[1]}'])
def test_many_values(piece: str) -> None:
    """A response is read up to a number of values; more, which would fill the memory, are refused.

    They are counted before any is made, and a text body in the same way as bytes.
    """
    marks = sum(map(piece.count, ",:[{")) + 1
    most = (VALUES_LIMIT - 1) // marks
    fits = "[" + ",".join([piece] * most) + "]"
    assert len(read_json(fits)) == len(read_json(fits.encode())) == most
    for body in (more := "[" + ",".join([piece] * (most + 2)) + "]", more.encode()):
        with pytest.raises(InvalidJson, match="too many values"):
            read_json(body)


def test_marks_in_texts() -> None:
    """A long text may be full of commas, colons, brackets and quotes: it is one value."""
    text = ',:[{"' * 60_000
    assert read_json(json.dumps([text])) == read_json(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize("read", [read_json, read_event])
@pytest.mark.parametrize("mark", ["y", "\xe9", "\u4e2d", "\N{HORSE}"])
@pytest.mark.parametrize("escaped", [True, False])
def test_a_wide_text(read: Callable[[bytes], Any], mark: str, escaped: bool) -> None:  # noqa: FBT001  a case
    """A long string is read with any character in it or beside it, and after a byte order mark."""
    long = "iVBORw0KGgo/" * (MEBIBYTE // 6)
    record = {"text": f"{mark} \\ {mark}", "data": f"{mark}{long}", "more": [long, mark, "\n"]}
    body = b"\xef\xbb\xbf" + json.dumps(record, ensure_ascii=escaped).encode()
    assert read(body) == record


@pytest.mark.parametrize("read", [read_json, read_event])
@pytest.mark.parametrize("wrong", [b"\x80", b"\xc3", b"\xf0\x9f\x90"])
def test_a_long_text_that_is_not_utf8(read: Callable[[bytes], Any], wrong: bytes) -> None:
    """Invalid UTF-8 is reported as such, even in a long text with rare characters."""
    with pytest.raises(InvalidJson, match="UTF-8"):
        read(b'["\xf0\x9f\x90\x8e","' + b"y" * MEBIBYTE + b'","' + wrong + b'"]')


def test_an_event_may_hold_more() -> None:
    """An event may hold more values than a record, and no more than its own limit."""
    body = b"[" + b"1," * (VALUES_LIMIT + 1) + b"1]"
    assert len(read_event(body)) == VALUES_LIMIT + 2
    with pytest.raises(InvalidJson, match="too many values"):
        read_json(body)


@pytest.mark.parametrize("text", ["", ',:[{\\"' * 60_000])
@pytest.mark.parametrize("limit", [EVENT_LIMIT, 2 * EVENT_LIMIT])
def test_an_event_holds_as_many_values_as_its_limit_allows(limit: int, text: str) -> None:
    """The larger its limit, the more values an event may hold, whatever is in its strings."""
    most = limit // BYTES_A_VALUE
    begin = f"[{json.dumps(text)},".encode()
    assert len(read_event(begin + b"1," * (most - 2) + b"1]", limit)) == most
    with pytest.raises(InvalidJson, match="too many values"):
        read_event(begin + b"1," * (most - 1) + b"1]", limit)


@pytest.mark.parametrize("mark", ["", "\xe9"])
def test_what_values_take(mark: str) -> None:
    """Values take no more memory than documented, even names that are all different."""
    chain = f'{{"{mark}%x":' * 90 + "1" + "}" * 90
    chains = (chain % tuple(range(begin, begin + 90)) for begin in range(4096, 48_096, 90))
    text = f"[{','.join(chains)}]"
    marks = text.count("{") + text.count(":") + text.count(",")
    tracemalloc.start()
    try:
        value = event_value(text)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(value) == 489
    assert most < 172 * marks


def test_an_answer_without_a_limit() -> None:
    """An answer that may have any size may have any number of values."""
    assert len(read_event(b"[" + b"1," * 600_000 + b"1]", float("inf"))) == 600_001


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null", b"true", b"1.5"])
def test_only_objects(body: bytes) -> None:
    """A record is an object; any other JSON value is rejected."""
    read_json(body)
    with pytest.raises(InvalidJson, match="not a JSON object"):
        read_object(body)


def test_deep_replies_under_a_deep_stack() -> None:
    """A deep response is rejected in the same way however deep the reader's own stack is."""

    def at(depth: int) -> None:
        if depth:
            at(depth - 1)
            return
        for size in (50, 500, 900, DEEP):
            body = b'{"id":"a","error":' + b"[" * size + b"]" * size + b"}"
            try:
                read_object(body)
            except InvalidJson:
                assert size > 50
            error_message(body)

    at(sys.getrecursionlimit() // 2)


@given(st.binary(max_size=64))
def test_any_bytes(body: bytes) -> None:
    """Any bytes are read, or refused with InvalidJson; a message about them is fit to print."""
    with contextlib.suppress(InvalidJson):
        read_json(body)
    assert error_message(body).isprintable()
    find_id(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_round_trip(value: object) -> None:
    """What is written is read as the same value."""
    try:
        written = write_json(value)
    except UnicodeEncodeError:
        return
    assert read_json(written) == value
    assert b"\n" not in written


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], "\ud800"])
def test_what_json_cannot_say(value: object) -> None:
    """NaN, infinities and half characters are not written."""
    with pytest.raises(ValueError, match=r"JSON|surrogates"):
        write_json(value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"error": {"message": "no credit"}}, "no credit"),
        ({"error": "no credit"}, "no credit"),
        ({"message": "no\ncredit"}, "no credit"),
        ({"msg": "no credit", "code": "7"}, "no credit"),
        ({"detail": [{"loc": "x"}]}, '[{"loc": "x"}]'),
        ("plain", "plain"),
        ({"code": 5}, '{"code": 5}'),
    ],
)
def test_what_an_error_says(said: object, message: str) -> None:
    """The service's words are found in an error response, whose shape is not specified."""
    assert error_message(json.dumps(said).encode()) == message
    assert error_message(b"<html>sorry</html>") == ""
    assert error_message(b"Bad\x07 gateway\r\n") == "Bad  gateway"


def test_readable() -> None:
    """A text for a message is on one line, printable and not too long."""
    assert readable("a\r\nb\x00\u202e\ud800c") == "a  b  \ufffdc"
    assert readable("x" * 600) == "x" * 500 + "..."
    assert readable("x" * 10**6, 10) == "x" * 10 + "..."
