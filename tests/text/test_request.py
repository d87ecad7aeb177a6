"""The checks of a text request, and what is sent of it."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import json
import math
import pickle
import re
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.records.convert import structure
from muybridge_protocol.records.json import read_json
from muybridge_protocol.text.content import Blob, Content, Conversation, GenerationConfig, Part
from muybridge_protocol.text.request import GenerateContentRequest

MODEL = "textg-2.5-pro"
# Without types: many of these tests give wrong ones.
build: Any = GenerateContentRequest.build
turn: Any = Content
part: Any = Part
settings: Any = GenerationConfig


def body(contents: Any = "x", **arguments: Any) -> Any:
    return json.loads(build(MODEL, contents, **arguments).body)


def problems(contents: Any = "x", **arguments: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as caught:
        build(arguments.pop("model", MODEL), contents, **arguments)
    assert caught.value.family == "text"
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    str(caught.value).encode()
    return [str(problem) for problem in caught.value.problems]


def test_the_smallest() -> None:
    """A plain string is a user's turn, and what was not set is not sent."""
    assert build(MODEL, "hi").body == b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'


def test_the_fullest() -> None:
    """Every argument stands under its name of the specification, and other fields beside it."""
    request = build(
        MODEL,
        [
            Content(["look", Part.from_bytes(b"\xfb\xff", "image/png")]),
            Content([Part(text="hm", thought=True), "a horse"], "model"),
            Content("whose?", extra={"x": 1}),
        ],
        system_instruction="be terse",
        generation_config=GenerationConfig(
            temperature=0.5, top_p=1, max_output_tokens=9, extra={"candidateCount": 2}
        ),
        extra={"safetySettings": [], "caf\u00e9": "\U0001f40e"},
    )
    assert json.loads(request.body) == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "look"},
                    {"inlineData": {"mimeType": "image/png", "data": "+/8="}},
                ],
            },
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "a horse"}]},
            {"role": "user", "parts": [{"text": "whose?"}], "x": 1},
        ],
        "systemInstruction": {"parts": [{"text": "be terse"}]},
        "generationConfig": {
            "temperature": 0.5,
            "topP": 1,
            "maxOutputTokens": 9,
            "candidateCount": 2,
        },
        "safetySettings": [],
        "caf\u00e9": "\U0001f40e",
    }


@pytest.mark.parametrize(
    "part",
    [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "x"}},
        {"file_data": {"file_uri": "https://x.example/a"}},
        {"text": "", "thoughtSignature": "c2ln"},
    ],
    ids=str,
)
def test_an_answer_is_sent_back(part: dict[str, Any]) -> None:
    """A model's answer of any kind can be sent back in the next request, unchanged."""
    answer = {"role": "model", "parts": [part], "x": None}
    assert body(["a", answer, "b"])["contents"][1] == answer
    talk = Conversation().say("a").hear(structure(answer, Content)).say("b")
    assert body(talk)["contents"][1] == answer


def test_a_conversation_brings_its_instruction() -> None:
    """A conversation's system instruction is sent with it, unless another is given."""
    talk = Conversation("be terse").say("hi")
    assert body(talk)["systemInstruction"] == {"parts": [{"text": "be terse"}]}
    other = body(talk, system_instruction=Content(["a", "b"], "model"))
    assert other["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert problems(Conversation("be terse")) == [
        "contents: is required; say something for the model to answer"
    ]


def test_a_conversation_is_not_taken_without_its_instruction() -> None:
    """The class itself takes turns alone, so that no instruction is dropped unseen."""
    talk: Any = Conversation("be terse").say("hi")
    with pytest.raises(InvalidRequest, match="is not a turn"):
        GenerateContentRequest(model=MODEL, contents=talk)


# Each check, with the sentence that its reader gets.

TURN = "say a text, muybridge.load_media(path), Part or Content"
PART = "use strings and Part"
LIST = "a turn is one list: [text, muybridge.load_media(path)]; for several turns, use Content"
FIELDS = "a mapping of fields by name"
MISPLACED = "is a known field and does not belong in extra; set it by its own argument"
CONTENTS: list[tuple[Any, list[str]]] = [
    ([], ["contents: is required; say something for the model to answer"]),
    (None, [f"contents[0]: None is not a turn; {TURN}"]),
    (5, [f"contents[0]: 5 is not a turn; {TURN}"]),
    (b"hi", ["contents[0]: b'hi' is not a turn; use muybridge.load_media(data)"]),
    (
        ["a", 5, ["b"]],
        [f"contents[1]: 5 is not a turn; {TURN}", f"contents[2]: ['b'] is not a turn; {LIST}"],
    ),
    (turn([]), ["contents[0].parts: is required; use at least one part"]),
    ({"role": "user"}, ["contents[0].parts: is required; use at least one part"]),
    (
        [{"role": "user", "content": "hi"}],
        ["contents[0].parts: is required; use parts in place of content, or chat_completions"],
    ),
    ({"parts": "hi"}, ["contents[0].parts: 'hi' is not an array of parts; use an array of parts"]),
    ({"parts": None}, ["contents[0].parts: None is not an array of parts; use an array of parts"]),
    ({"parts": ["a", 5]}, [f"contents[0].parts[1]: 5 is not a part; {PART}"]),
    (turn([None]), [f"contents[0].parts[0]: None is not a part; {PART}"]),
    (turn(5), [f"contents[0].parts[0]: 5 is not a part; {PART}"]),
    (part(), ["contents[0].parts[0]: is empty; use a text or a file"]),
    ({"parts": [{"text": 5}]}, ["contents[0].parts[0].text: 5 is not a string; use a string"]),
    (
        part(text=b"x"),
        [
            (
                "contents[0].parts[0].text: b'x' is not a string; use a string; a file is a part "
                "of its own, muybridge.load_media(path)"
            )
        ],
    ),
    (
        part(text="x", thought=1),
        ["contents[0].parts[0].thought: 1 is not a boolean; use a boolean"],
    ),
    (part(text="a", extra={"text": "b"}), [f"contents[0].parts[0].text: {MISPLACED}"]),
    (part(extra=5), [f"contents[0].parts[0].extra: 5 is not {FIELDS}; use {FIELDS}"]),
    (
        part(inline_data=Blob(b"x", "image/png"), extra={"inline_data": {}}),
        [f"contents[0].parts[0].inline_data: {MISPLACED}"],
    ),
    (
        part(inline_data=5),
        ["contents[0].parts[0].inlineData: 5 is not a file; use Part.from_bytes"],
    ),
    (
        Part.from_bytes(b"", "image/png"),
        ["contents[0].parts[0].inlineData.data: is empty; use the file's bytes"],
    ),
    (
        part.from_bytes(5, "image/png"),
        ["contents[0].parts[0].inlineData.data: 5 is not bytes; use bytes"],
    ),
    *(
        (
            part.from_bytes(b"x", wrong),
            [
                (
                    f"contents[0].parts[0].inlineData.mimeType: {wrong!r} is not a media type; "
                    "use one such as image/png or video/mp4"
                )
            ],
        )
        for wrong in (
            "",
            "png",
            "image/",
            "image/png; x",
            "image/p\u00f1g",
            None,
            "a/b/c",
            "image/png\n",
        )
    ),
    (turn("x", "robot"), ["contents[0].role: 'robot' is not a known role; use user or model"]),
    (turn("x", 5), ["contents[0].role: 5 is not a known role; use user or model"]),
    ({"role": 5, "parts": ["x"]}, ["contents[0].role: 5 is not a string; use a string"]),
    (
        turn("x", "system"),
        [
            (
                "contents[0].role: 'system' is not a known role; use user or model, "
                "and system_instruction for what holds throughout"
            )
        ],
    ),
    (
        turn("x", "assistant"),
        [
            (
                "contents[0].role: 'assistant' is not a known role; "
                "use model for an earlier answer, and user for a user's turn"
            )
        ],
    ),
    (turn("x", extra={"role": "model"}), [f"contents[0].role: {MISPLACED}"]),
    (
        ["a", "b\ud800"],
        [
            (
                "contents[0].parts[1].text: 'b\\ud800' cannot be written as JSON; "
                "use plain JSON values, and strings as names"
            )
        ],
    ),
]


@pytest.mark.parametrize(("contents", "expected"), CONTENTS, ids=lambda value: ascii(value)[:60])
def test_contents_are_checked(contents: Any, expected: list[str]) -> None:
    """What cannot be sent as contents is named with its place and with what would be accepted."""
    assert problems(contents) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"system_instruction": 5},
            ["systemInstruction: 5 is not a turn; use a string or Content"],
        ),
        (
            {"system_instruction": Content([])},
            ["systemInstruction.parts: is required; use at least one part"],
        ),
        (
            {"generation_config": ["temperature"]},
            [("generationConfig: ['temperature'] is not a GenerationConfig; "
             "use GenerationConfig(temperature=...)")],
        ),
        (
            {"generation_config": {"temperature": "hot", "x": {1}}},
            ["generationConfig.temperature: 'hot' is not a number; use a number",
             ("generationConfig.x: {1} cannot be written as JSON; "
              "use plain JSON values, and strings as names")],
        ),
        (
            {"generation_config": GenerationConfig(extra={"topP": 1})},
            [f"generationConfig.topP: {MISPLACED}"],
        ),
        ({"extra": {"contents": []}}, [f"contents: {MISPLACED}"]),
        ({"extra": {"systemInstruction": {}}}, [f"systemInstruction: {MISPLACED}"]),
        ({"extra": {"generationConfig": {}}}, [f"generationConfig: {MISPLACED}"]),
        (
            {"extra": [("a", 1)]},
            [f"extra: [('a', 1)] is not {FIELDS}; use {FIELDS}"],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_other_arguments_are_checked(arguments: dict[str, Any], expected: list[str]) -> None:
    """What cannot be sent as another argument is named, too."""
    assert problems(**arguments) == expected


def test_settings_in_their_form_on_the_wire() -> None:
    """A mapping as settings is what the same names of `GenerationConfig` are."""
    wire = {"temperature": 0.2, "topP": 0.9, "maxOutputTokens": 5, "candidateCount": 2}
    config = GenerationConfig(
        temperature=0.2, top_p=0.9, max_output_tokens=5, extra={"candidateCount": 2}
    )
    made = GenerateContentRequest.build("textg-2.5-pro", "a", generation_config=wire)
    assert made == GenerateContentRequest.build("textg-2.5-pro", "a", generation_config=config)
    assert json.loads(made.body)["generationConfig"] == wire
    bare = GenerateContentRequest.build("textg-2.5-pro", "a", generation_config={"topP": None})
    assert bare.generation_config == GenerationConfig()


NO_NUMBER: list[Any] = [True, "1", math.nan, math.inf, [], b"1", 1j, decimal.Decimal(1)]


@pytest.mark.parametrize("value", NO_NUMBER, ids=repr)
@pytest.mark.parametrize(
    ("name", "field", "kind"),
    [
        ("temperature", "temperature", "a number"),
        ("top_p", "topP", "a number"),
        ("max_output_tokens", "maxOutputTokens", "an integer"),
    ],
)
def test_settings_have_types(name: str, field: str, kind: str, value: Any) -> None:
    """A setting of another type is refused without any conversion."""
    found = problems(generation_config=GenerationConfig(**{name: value}))
    assert found == [f"generationConfig.{field}: {value!r} is not {kind}; use {kind}"]


def test_tokens_are_whole() -> None:
    """The most tokens are a whole number, and one that JSON can carry."""
    assert problems(generation_config=settings(max_output_tokens=1.0)) == [
        "generationConfig.maxOutputTokens: 1.0 is not an integer; use an integer"
    ]
    huge = problems(generation_config=GenerationConfig(max_output_tokens=10**5000))
    assert huge[0].startswith("generationConfig.maxOutputTokens: this int cannot be written")


def test_all_problems_at_once() -> None:
    """A request that is wrong in every way is refused with all of its problems."""
    found = problems(
        ["a\udfff", Content("x", "robot"), 5, {"parts": []}],
        model="textg-2.5-flash-lite-low",
        system_instruction=Content([Part()]),
        generation_config=settings(temperature="hot", extra={"x": object}),
        extra={"y": {1}},
    )
    assert [re.split("[: ]", line)[0] for line in found] == [
        "model",
        "contents[0].parts[0].text",
        "contents[1].role",
        "contents[2]",
        "contents[3].parts",
        "systemInstruction.parts[0]",
        "generationConfig.temperature",
        "generationConfig.x",
        "y",
    ]


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


LOOP: list[Any] = []
LOOP.append(LOOP)
UNWRITABLE: list[Any] = [
    math.nan, -math.inf, b"x", {1}, object(), object, {"a": {5: 1}}, {"a": {"\ud800": 1}}, "\ud800",
    deep(100_000), LOOP, 10**5000, 1j, dt.datetime.now(tz=dt.UTC), {("a",): 1},
    MappingProxyType({}), range(3),
]  # fmt: skip


@pytest.mark.parametrize("value", UNWRITABLE, ids=lambda value: type(value).__name__)
def test_extra_is_json(value: Any) -> None:
    """What JSON cannot carry is refused wherever further fields may stand, by its name."""
    beside: dict[str, Any] = {"x": value}
    for arguments, field in (
        ({"extra": beside}, "x"),
        ({"generation_config": GenerationConfig(extra=beside)}, "generationConfig.x"),
        ({"contents": Content("a", extra=beside)}, "contents[0].x"),
        ({"contents": Part(extra=beside)}, "contents[0].parts[0].x"),
    ):
        (found,) = problems(**arguments)
        assert found.startswith(f"{field}: ")
        assert "cannot be written as JSON" in found


@pytest.mark.parametrize(
    "name", [5, None, ("a",), 10**5000, b"x", "\ud800"], ids=lambda name: type(name).__name__
)
def test_names_are_strings(name: Any) -> None:
    """A field whose name JSON cannot carry is refused."""
    assert "cannot be written as JSON" in problems(extra={name: 1})[0]
    assert "cannot be written as JSON" in problems(Part(extra={name: 1}))[0]


def test_a_later_change_is_not_sent() -> None:
    """A request is written when it is made: what becomes of an `extra` later changes nothing."""
    nested: dict[str, Any] = {"a": [1]}
    request = build(MODEL, Part(text="x", extra={"n": nested}), extra={"m": nested})
    before = request.body
    nested["a"].append(object())
    nested.clear()
    assert request.body == before
    assert json.loads(before)["m"] == {"a": [1]}
    nested["a"] = object()
    with pytest.raises(InvalidRequest):
        attrs.evolve(request, model="textg-2.5-pro-low")


def test_a_request_is_a_value() -> None:
    """Requests that say the same are equal, can be copied, and write no file into their repr."""
    one, other = (build(MODEL, ["a", Part.from_bytes(b"x" * 999, "image/png")]) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)).body == one.body  # noqa: S301  our own
    assert copy.deepcopy(one) == one
    assert "xxxx" not in repr(one)
    assert "body" not in repr(one)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.body = b""


# Anything at all.

ODD: list[Any] = (
    [*UNWRITABLE, None, True, 0, 5, -1.5, "", "x", Ellipsis, Part, Content("x"), Part(text="x"),
     Part(), Blob(b"x", "a/b"), GenerationConfig(), Conversation(), Conversation().say("x"),
     bytearray(b"x"), memoryview(b"x"), frozenset("a"), type, len, "\x00", decimal.Decimal("NaN")]
)  # fmt: skip
# By number, because Hypothesis shows what it chooses from.
odd = st.integers(0, len(ODD) - 1).map(lambda number: ODD[number])
names = st.sampled_from(
    [
        "role",
        "parts",
        "text",
        "thought",
        "inlineData",
        "inline_data",
        "mimeType",
        "data",
        "x",
        "topP",
    ]
)
anything: st.SearchStrategy[Any] = st.recursive(
    odd | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(names | st.sampled_from([5, b"x", "\ud800"]), inner, max_size=3)
        | st.builds(Content, inner, inner, extra=inner)
        | st.builds(Part, text=inner, inline_data=inner, thought=inner, extra=inner)
        | st.builds(Part.from_bytes, inner, inner)
        | st.builds(GenerationConfig, temperature=inner, max_output_tokens=inner, extra=inner)
    ),
    max_leaves=6,
)


@given(anything, anything, anything, anything)
def test_anything_is_sent_as_json_or_refused(
    contents: Any, system: Any, config: Any, extra: Any
) -> None:
    """Whatever Python objects a request is made of, it is strict JSON or `InvalidRequest`."""
    for arguments in (
        {"contents": contents},
        {"system_instruction": system},
        {"generation_config": config},
        {"extra": extra},
        {"contents": contents, "extra": extra, "generation_config": config},
    ):
        try:
            request = build(MODEL, **{"contents": "x", **arguments})
        except InvalidRequest as error:
            str(error).encode()
            continue
        sent = read_json(request.body)
        assert sent["contents"]
        assert all(turn["parts"] for turn in sent["contents"])


# Settings, and a system instruction, as mappings.


@pytest.mark.parametrize(
    ("given_", "sent"),
    [
        ({"max_output_tokens": 3}, {"maxOutputTokens": 3}),
        ({"top_p": 0.5, "temperature": 1, "maxOutputTokens": 3},
         {"topP": 0.5, "temperature": 1, "maxOutputTokens": 3}),
        ({"max_output_tokens": None, "candidateCount": 2}, {"candidateCount": 2}),
        ({"thinking_config": {"a": 1}, "topK": 5, "stopSequences": ["x"], "seed": 1},
         {"thinking_config": {"a": 1}, "topK": 5, "stopSequences": ["x"], "seed": 1}),
    ],
)  # fmt: skip
def test_settings_by_either_name(given_: dict[str, Any], sent: dict[str, Any]) -> None:
    """A mapping of settings may use Python's names; what is sent has the names on the wire."""
    assert body(generation_config=given_)["generationConfig"] == sent
    assert body(generation_config=MappingProxyType(given_))["generationConfig"] == sent


def test_settings_by_both_names() -> None:
    """A setting that is given under both names is refused, for they may differ."""
    for name, wire in (("top_p", "topP"), ("max_output_tokens", "maxOutputTokens")):
        (problem,) = problems(generation_config={name: 1, wire: 1})
        assert f"generationConfig.{name}" in problem
        assert "known field" in problem
        (problem,) = problems(generation_config=settings(extra={name: 1}))
        assert f"generationConfig.{name}" in problem


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maxOutputToken", "maxOutputTokens"),
        ("max_outputTokens", "maxOutputTokens"),
        ("MAX_OUTPUT_TOKENS", "maxOutputTokens"),
        ("max_tokens", "maxOutputTokens"),
        ("maxTokens", "maxOutputTokens"),
        ("topp", "topP"),
        ("temprature", "temperature"),
    ],
)
def test_misspelled_settings(name: str, meant: str) -> None:
    """A name that looks like a known setting is refused, as a limit may depend on it."""
    (problem,) = problems(generation_config={name: 3})
    assert f"generationConfig.{name}" in problem
    assert f"use {meant};" in problem
    sent = body(generation_config=GenerationConfig(extra={name: 3}))
    assert sent["generationConfig"] == {name: 3}
    found = problems(generation_config={name: 3, "topP": "x"}, model="none")
    assert len(found) == 3
    assert any("is not a known text model" in problem for problem in found)


@pytest.mark.parametrize("name", ["system_instruction", "generation_config", "systemInstruction"])
def test_known_fields_are_not_extra(name: str) -> None:
    """A field that has an argument is refused in `extra`, under each of its names."""
    (problem,) = problems(extra={name: {}})
    assert "known field" in problem


def test_a_system_instruction_as_a_mapping() -> None:
    """A system instruction may be a turn in its form on the wire; its role is left out."""
    record = {"parts": [{"text": "Be terse."}], "role": "system"}
    for contents in ("x", Conversation(record).say("x")):
        given_: dict[str, Any] = {} if isinstance(contents, Conversation) else {"x": record}
        sent = body(contents, system_instruction=given_.get("x"))
        assert sent["systemInstruction"] == {"parts": [{"text": "Be terse."}]}
    (problem,) = problems(system_instruction={"text": "Be terse."})
    assert "systemInstruction.parts is required" in problem.replace(": ", " ")
