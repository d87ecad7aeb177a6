"""Turns and parts, in Python and on the wire."""

from __future__ import annotations

import base64
import copy
import json
import pickle
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.records.convert import structure, unstructure
from muybridge_protocol.text.content import (
    Blob,
    Content,
    Conversation,
    GenerationConfig,
    Part,
    as_turns,
    decode_base64,
)
from muybridge_protocol.text.request import GenerateContentRequest

PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"
STANDARD = base64.b64encode(PNG).decode()
FOR_URLS = base64.urlsafe_b64encode(PNG).decode().rstrip("=")

RECORDS: list[dict[str, Any]] = [
    {"text": "a horse"},
    {"text": ""},
    {"text": "hm", "thought": True},
    {"text": "so", "thoughtSignature": "c2ln"},
    {"inlineData": {"mimeType": "image/png", "data": STANDARD}},
    {"inlineData": {"mimeType": "image/png", "data": STANDARD, "displayName": "a.png"}},
    {"fileData": {"mimeType": "video/mp4", "fileUri": "https://x.example/a.mp4"}},
    {"file_data": {"mime_type": "video/mp4", "file_uri": "https://x.example/a.mp4"}},
    {"functionCall": {"name": "gallop", "args": {"speed": 5}}, "thoughtSignature": "c2ln"},
    {"functionResponse": {"name": "gallop", "response": {"ok": None}}},
    {"executableCode": {"language": "PYTHON", "code": "1"}, "text": "t", "videoMetadata": {}},
    {"text": 5, "inlineData": "x", "thought": "yes"},
    {},
]


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_a_part_keeps_its_fields(record: dict[str, Any]) -> None:
    """A part that came over the wire goes back as it was, whatever its kind and fields are."""
    before = copy.deepcopy(record)
    assert unstructure(structure(record, Part)) == record == before
    turn = {"role": "model", "parts": [record], "metadata": {"a": [1]}}
    assert unstructure(structure(turn, Content)) == turn


@pytest.mark.parametrize(
    "inline",
    [
        {"inlineData": {"mimeType": "image/png", "data": FOR_URLS}},
        {"inlineData": {"mime_type": "image/png", "data": FOR_URLS + "=="}},
        {"inline_data": {"mime_type": "image/png", "data": STANDARD}},
        {"inline_data": {"mimeType": "image/png", "data": STANDARD.rstrip("=")}},
    ],
    ids=str,
)
def test_inline_data_in_every_spelling(inline: dict[str, Any]) -> None:
    """A file is understood in either case and alphabet, and is sent in camelCase and standard."""
    part = structure(inline, Part)
    assert part == Part.from_bytes(PNG, "image/png")
    assert unstructure(part) == {"inlineData": {"mimeType": "image/png", "data": STANDARD}}


@pytest.mark.parametrize("data", ["!", "a", "ab=c", "ab cd", "aé==", "ab\ncd", "====", 5, None])
def test_what_is_no_base64_is_kept(data: Any) -> None:
    """What cannot be decoded is no file, and goes back as it came."""
    record = {"inlineData": {"mimeType": "image/png", "data": data}}
    part = structure(record, Part)
    assert part.inline_data is None
    assert unstructure(part) == record


@given(st.binary(max_size=40))
def test_base64_is_read_back(data: bytes) -> None:
    """Any bytes are read from their base64 in either alphabet, with and without padding."""
    for text in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert decode_base64(text) == decode_base64(text.rstrip("=")) == data


@pytest.mark.parametrize(
    "data",
    [PNG, bytearray(PNG), memoryview(PNG), memoryview(b"".join(bytes([b, 0]) for b in PNG))[::2]],
)
def test_bytes_like_data(data: Any) -> None:
    """A file may be given as any kind of bytes, and is a value of its own afterwards."""
    part = Part.from_bytes(data, "image/png")
    assert part.inline_data == Blob(PNG, "image/png")
    assert part.inline_data is not None
    assert type(part.inline_data.data) is bytes
    if isinstance(data, bytearray):
        data.clear()
    assert part == Part.from_bytes(PNG, "image/png")
    assert hash(part) == hash(Part.from_bytes(PNG, "image/png"))


@pytest.mark.parametrize("data", [5, "text", None, [1, 2]])
def test_other_data_is_not_made_bytes(data: Any) -> None:
    """What is no bytes stays what it is, for the request to refuse: 5 is not five zero bytes."""
    part = Part.from_bytes(data, "image/png")
    assert part.inline_data is not None
    assert part.inline_data.data is data
    assert repr(data) in repr(part)


def test_a_file_is_not_shown() -> None:
    """The repr of a part tells the size of its file and not its bytes."""
    assert repr(Part.from_bytes(b"x" * 10**6, "image/png")).count("x") < 5
    assert "<1000000 bytes>" in repr(Part.from_bytes(b"x" * 10**6, "image/png"))


PARTS: list[tuple[Any, list[dict[str, Any]]]] = [
    ("a", [{"text": "a"}]),
    (Part(text="a"), [{"text": "a"}]),
    ({"text": "a"}, [{"text": "a"}]),
    (["a", Part(text="b"), {"fileData": {}}], [{"text": "a"}, {"text": "b"}, {"fileData": {}}]),
    (("a",), [{"text": "a"}]),
    ((text for text in "ab"), [{"text": "a"}, {"text": "b"}]),
    ([], []),
]


@pytest.mark.parametrize(("given_", "parts"), PARTS, ids=lambda value: type(value).__name__)
def test_parts_of_a_turn(given_: Any, parts: list[dict[str, Any]]) -> None:
    """A turn is made of strings, parts and mappings, of one or several."""
    assert unstructure(Content(given_)) == {"role": "user", "parts": parts}


TURNS: list[tuple[Any, list[tuple[str | None, list[str]]]]] = [
    ("a", [("user", ["a"])]),
    (["a", "b"], [("user", ["a", "b"])]),
    (
        ["a", Part(text="b"), Content("c", "model"), "d"],
        [("user", ["a", "b"]), ("model", ["c"]), ("user", ["d"])],
    ),
    ([Content("a"), Content("b")], [("user", ["a"]), ("user", ["b"])]),
    (Content("a", None), [(None, ["a"])]),
    ({"role": "model", "parts": [{"text": "a"}]}, [("model", ["a"])]),
    (["a", {"parts": ["b", {"text": "c"}]}], [("user", ["a"]), (None, ["b", "c"])]),
    ({"role": None, "parts": ({"text": "a"},)}, [(None, ["a"])]),
    (
        MappingProxyType({"role": "user", "parts": [OrderedDict[str, str](text="a")]}),
        [("user", ["a"])],
    ),
    ([], []),
    (iter(["a", "b"]), [("user", ["a", "b"])]),
]


@pytest.mark.parametrize(("given_", "turns"), TURNS, ids=lambda value: type(value).__name__)
def test_strings_and_parts_are_grouped(
    given_: Any, turns: list[tuple[str | None, list[str]]]
) -> None:
    """Strings and parts that follow each other are one turn of the user; all else is its own."""
    found = [(turn.role, [part.text for part in turn.parts]) for turn in as_turns(given_)]
    assert found == turns


def test_a_turns_text() -> None:
    """A turn's text is that of its parts without the model's thoughts."""
    turn = Content([Part(text="hm", thought=True), "a", Part(extra={"functionCall": {}}), "b"])
    assert turn.text == "ab"
    assert Content([]).text == ""


def test_settings_that_are_set() -> None:
    """Only the settings that were set are sent, zeros among them, and others beside them."""
    assert unstructure(GenerationConfig()) == {}
    config = GenerationConfig(temperature=0, top_p=0.0, max_output_tokens=5, extra={"seed": 1})
    assert unstructure(config) == {"temperature": 0, "topP": 0.0, "maxOutputTokens": 5, "seed": 1}


def test_a_conversation_is_a_value() -> None:
    """Each step of a conversation gives the next value and leaves the one before as it was."""
    start = Conversation("be terse")
    asked = start.say(["look", Part.from_bytes(PNG, "image/png")])
    heard = asked.hear(Content("a horse", "model"))
    again = heard.say("whose?")
    assert start.turns == ()
    assert [turn.role for turn in again.turns] == ["user", "model", "user"]
    assert again.turns[:2] == heard.turns
    assert again.system_instruction == "be terse"
    assert Conversation(turns=["a", Content("b", "model")]).turns == (  # type: ignore[arg-type]  # a list, too
        Content("a"),
        Content("b", "model"),
    )
    assert pickle.loads(pickle.dumps(again)) == again  # noqa: S301  our own
    assert copy.deepcopy(again) == again


@pytest.mark.parametrize("role", [None, "assistant", "user", "model"])
def test_what_is_heard_is_the_models(role: str | None) -> None:
    """An answer is the model's turn, whichever role the service gave it."""
    assert Conversation().hear(Content("a", role)).turns[0].role == "model"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "thought", "parts", "role", "inlineData", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
objects = st.dictionaries(
    st.sampled_from(["text", "thought", "functionCall", "thoughtSignature", "inline_data"]),
    json_values,
    max_size=4,
)


@given(objects)
def test_any_part_goes_back(record: dict[str, Any]) -> None:
    """Any JSON object is read as a part and goes back as it came, but for `thought: false`."""
    expected = dict(record)
    if expected.get("thought") is False:
        del expected["thought"]
    part = structure(record, Part)
    assert json.loads(json.dumps(unstructure(part))) == expected
    assert structure(unstructure(part), Part) == part
    assert attrs.evolve(part) == part


@given(st.lists(objects, max_size=3), json_values)
def test_any_turn_goes_back(parts: list[dict[str, Any]], other: Any) -> None:
    """Any turn of JSON objects goes back with its role, its parts and its other fields."""
    record = {"role": "model", "parts": [{**part, "thought": True} for part in parts], "x": other}
    assert unstructure(structure(record, Content)) == record


def test_an_empty_answer_is_not_heard() -> None:
    """An answer without parts is refused when it is heard, and not by the request after it."""
    talk = Conversation().say("a")
    with pytest.raises(InvalidRequest, match=r"contents\[1\]\.parts.*the answer is empty"):
        talk.hear(Content((), "model"))
    odd = Content((), "model", extra={"parts": "a"})
    assert talk.hear(odd).turns[1] == odd


HOLLOW: list[dict[str, Any]] = [
    {},
    {"thought": True},
    {"text": None},
    {"functionCall": None},
    {"inlineData": {"mimeType": "image/png", "data": ""}},
]


@pytest.mark.parametrize("hollow", HOLLOW, ids=str)
def test_parts_that_hold_nothing_are_not_sent_back(hollow: dict[str, Any]) -> None:
    """A part of an answer that holds nothing is left out of the next request, not of the answer."""
    record = {"role": "model", "parts": [hollow, {"text": "a horse", "thought": None}, hollow]}
    before = copy.deepcopy(record)
    answer = structure(record, Content)
    talk = Conversation().say("what is it?").hear(answer).say("whose?")
    request = GenerateContentRequest.build("textg-2.5-pro", talk)
    assert json.loads(request.body)["contents"][1] == {
        "role": "model", "parts": [{"text": "a horse"}],
    }  # fmt: skip
    assert record == before
    assert len(answer.parts) == 3
    with pytest.raises(InvalidRequest, match="the answer is empty"):
        Conversation().say("what is it?").hear(structure({"parts": [hollow]}, Content))


def test_what_is_sent_back_as_it_came() -> None:
    """Empty texts with a signature, and parts of other kinds, go back as they came."""
    parts: list[dict[str, Any]] = [
        {"text": ""},
        {"text": "", "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "gallop", "args": {"speed": None}}},
    ]
    talk = Conversation().say("x").hear(structure({"role": 5, "parts": parts}, Content))
    assert unstructure(talk.turns[-1]) == {"role": "model", "parts": parts}
