"""Replies with generated text: what they hold, and why they have no text."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muybridge_protocol.records.convert import structure, unstructure
from muybridge_protocol.text import responses
from muybridge_protocol.text.content import Content, Part
from muybridge_protocol.text.responses import (
    Candidate,
    FinishReason,
    GenerateContentChunk,
    GenerateContentResponse,
    NoText,
    UsageMetadata,
)

FULL: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm, ", "thought": True},
                    {"text": "A "},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                    {"functionCall": {"name": "f"}},
                    {"text": "horse"},
                ],
            },
            "finishReason": "STOP",
            "finishMessage": "done",
            "index": 0,
            "avgLogprobs": -0.1,
        },
        {"content": {"parts": [{"text": "B"}]}, "finishReason": "NEW_REASON", "index": 1},
    ],
    "usageMetadata": {
        "promptTokenCount": 3,
        "candidatesTokenCount": 4,
        "totalTokenCount": 7,
        "thoughtsTokenCount": 1,
    },
    "modelVersion": "x",
}


def candidate(*parts: object, **fields: object) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **fields}]}


def test_a_full_response() -> None:
    """A response gives the answers, the reasons and the counts, and keeps what it does not know."""
    response = GenerateContentResponse(FULL)
    assert response.text == "A horse"
    assert response.finish_reason is FinishReason.STOP
    first, second = response.candidates
    assert first.text == "A horse"
    assert (first.index, first.finish_message) == (0, "done")
    assert first.raw["avgLogprobs"] == -0.1
    assert (second.index, second.text, second.finish_reason) == (1, "B", "NEW_REASON")
    assert type(second.finish_reason) is str
    assert second.finish_message is None
    assert response.parts[0] == Part(text="hm, ", thought=True)
    assert response.parts[2] == Part.from_bytes(b"\0\0\0", "image/png")
    assert response.parts[3].extra == {"functionCall": {"name": "f"}}
    assert response.content.role == "model"
    assert unstructure(response.content) == FULL["candidates"][0]["content"]
    assert response.usage_metadata == UsageMetadata(3, 4, 7, FULL["usageMetadata"])
    assert response.prompt_feedback is None
    assert response.raw is FULL


WITHOUT_TEXT: list[tuple[dict[str, Any], str]] = [
    (
        {"promptFeedback": {"blockReason": "SAFETY"}},
        "The prompt was blocked (SAFETY).",
    ),
    (
        {
            "promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "no\nway"},
            "candidates": [],
        },
        "The prompt was blocked (OTHER: no way).",
    ),
    ({}, "The response has no candidate, and does not say why."),
    ({"promptFeedback": {}}, "The response has no candidate, and does not say why."),
    (
        {"candidates": [{"finishReason": "SAFETY", "finishMessage": "unsafe"}]},
        "The model stopped early (SAFETY: unsafe).",
    ),
    (candidate({"text": ""}, finishReason="NEW\nREASON"), "The model stopped early (NEW REASON)."),
    (
        candidate(finishReason="MAX_TOKENS"),
        "The limit of output tokens was reached before any text; raise max_output_tokens.",
    ),
    (
        candidate({"functionCall": {}}, finishReason="STOP"),
        "The answer has no text; its parts contain functionCall. Read function_calls.",
    ),
    (
        candidate(
            {"text": "hm", "thought": True},
            {"inlineData": {"mimeType": "image/png", "data": "AA"}},
            {"inlineData": {"mimeType": "image/png", "data": "AQ"}},
        ),
        "The answer has no text; its parts contain image/png, thoughts.",
    ),
    (candidate(finishReason="STOP"), "The answer is empty."),
    (candidate({"text": ""}), "The answer is empty."),
    ({"candidates": [{}]}, "The answer is empty."),
    (
        candidate({"f\x1b[2J" + "x" * 500: 1}),
        "The answer has no text; its parts contain f [2J" + "x" * 195 + "....",
    ),
]


@pytest.mark.parametrize(("raw", "why"), WITHOUT_TEXT, ids=lambda value: ascii(value)[:50])
def test_no_text_says_why(raw: dict[str, Any], why: str) -> None:
    """A response without text tells in one sentence what stands in its place."""
    response = GenerateContentResponse(raw)
    with pytest.raises(NoText) as caught:
        _ = response.text
    assert str(caught.value) == caught.value.why == why
    assert caught.value.response == response
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own
    assert (str(again), again.response) == (why, response)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, ""),
        ({"usageMetadata": {}}, ""),
        (candidate({"text": ""}), ""),
        (candidate({"text": "a"}), "a"),
        (candidate({"text": "a"}, finishReason="SAFETY"), "a"),
        (candidate({"functionCall": {}}, finishReason="STOP"), ""),
        (candidate(finishReason="STOP"), ""),
        (candidate(finishReason="MAX_TOKENS"), ""),
        ({"candidates": [{"finishReason": "STOP"}], "promptFeedback": {"blockReason": "X"}}, ""),
    ],
    ids=str,
)
def test_a_chunk_may_bring_no_text(raw: dict[str, Any], text: str) -> None:
    """A chunk without text has the empty text, for more may follow or the answer is done."""
    assert GenerateContentChunk(raw).text == text


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "The prompt was blocked (SAFETY)."),
        (candidate(finishReason="SAFETY"), "The model stopped early (SAFETY)."),
        (candidate({"text": "", "thoughtSignature": "x"}, finishReason="OTHER"),
         "The model stopped early (OTHER)."),
    ],
    ids=str,
)  # fmt: skip
def test_a_chunk_that_ends_badly(raw: dict[str, Any], why: str) -> None:
    """A chunk that stands in the place of an answer, or breaks it off, says why."""
    with pytest.raises(NoText) as caught:
        _ = GenerateContentChunk(raw).text
    assert str(caught.value) == why


def test_a_reason_is_not_good_because_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A withheld answer stays an error when the library gets to know its finish reason."""
    source = inspect.getsource(responses)
    member = '    STOP = "STOP"\n'
    assert source.count(member) == 1
    extended = ModuleType("extended_responses")
    monkeypatch.setitem(sys.modules, extended.__name__, extended)
    code = source.replace(member, f'    RECITATION = "RECITATION"\n    """Withheld."""\n{member}')
    exec(compile(code, responses.__file__, "exec"), vars(extended))  # noqa: S102  our own code
    withheld = candidate(finishReason="RECITATION")
    for kind in (extended.GenerateContentChunk, extended.GenerateContentResponse):
        response = kind(withheld)
        assert response.finish_reason is extended.FinishReason.RECITATION
        with pytest.raises(extended.NoText, match=r"stopped early \(RECITATION\)"):
            response.text  # noqa: B018  it raises
    assert extended.GenerateContentChunk(candidate(finishReason="STOP")).text == ""


def test_no_answer_to_go_on_from() -> None:
    """Where there is no answer there are no parts, and no turn for a conversation."""
    blocked = GenerateContentResponse({"promptFeedback": {"blockReason": "SAFETY"}})
    assert blocked.parts == blocked.candidates == ()
    assert blocked.finish_reason is None
    assert blocked.prompt_feedback is not None
    assert blocked.prompt_feedback.block_reason == "SAFETY"
    with pytest.raises(NoText, match="blocked"):
        _ = blocked.content
    silent = GenerateContentResponse({"candidates": [{"finishReason": "STOP"}]})
    assert silent.content == Content((), "model")


@pytest.mark.parametrize("count", [True, 1.0, "1", None, [], 10**30, -(2**70)])
def test_counts_are_integers(count: Any) -> None:
    """A count that is none reads as missing, and stays in the raw record."""
    response = GenerateContentResponse({"usageMetadata": {"totalTokenCount": count}})
    usage = response.usage_metadata
    assert usage is not None
    assert usage.total_token_count is None
    assert usage.raw["totalTokenCount"] == count
    assert structure({"index": count}, Candidate).index == 0


def test_responses_are_values() -> None:
    """Responses that hold the same are equal, and can be copied and pickled, read before or not."""
    for kind in (GenerateContentResponse, GenerateContentChunk):
        response = kind(FULL)
        _ = response.candidates, response.usage_metadata, response.candidates[0].content
        assert response == kind(copy.deepcopy(FULL))
        assert copy.deepcopy(response) == copy.copy(response) == response
        again = pickle.loads(pickle.dumps(response))  # noqa: S301  our own
        assert type(again) is kind
        assert again == response
        assert again.candidates == response.candidates
    assert GenerateContentResponse(FULL) != GenerateContentChunk(FULL)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (FULL, "<GenerateContentResponse STOP 'A horse'>"),
        ({}, "<GenerateContentResponse unfinished ''>"),
        (candidate({"text": "a\x1b\nb\ud800" + "x" * 999}, finishReason="y" * 99),
         "<GenerateContentResponse " + "y" * 40 + "... 'a  b\ufffd" + "x" * 55 + "...'>"),
    ],
    ids=["full", "empty", "odd"],
)  # fmt: skip
def test_a_short_repr(raw: dict[str, Any], shown: str) -> None:
    """The repr of a response is one short printable line."""
    assert repr(GenerateContentResponse(raw)) == shown
    assert repr(structure(raw, Candidate, raw=raw)) == "Candidate()"


@pytest.mark.parametrize("kind", [GenerateContentResponse, GenerateContentChunk])
def test_half_characters(kind: type[GenerateContentResponse]) -> None:
    """A character that came as two halves is one in the text, and half of one can be printed."""
    for said, text in (
        ("a\ud83d", "a\ufffd"),
        ("\udc0e b", "\ufffd b"),
        ("\ud83d\udc0e", "\U0001f40e"),
        ("\ufeffcaf\u00e9 \U0001f40e", "\ufeffcaf\u00e9 \U0001f40e"),
    ):
        response = kind(candidate({"text": said}))
        assert response.text == text
        assert response.parts[0].text == said
    halves = kind(candidate({"text": "\ud83d"}, {"text": "\udc0e"}))
    assert halves.text == "\U0001f40e"


@pytest.mark.parametrize("reason", ["FINISH_REASON_UNSPECIFIED", "", None, 1])
def test_reasons_that_are_none(reason: object) -> None:
    """A reason that is not specified is no reason."""
    response = GenerateContentChunk(candidate(finishReason=reason))
    assert response.finish_reason is None
    assert response.text == ""


# Anything that JSON can hold.

NAMES = ["candidates", "content", "parts", "text", "thought", "role", "index", "finishReason",
         "finishMessage", "usageMetadata", "totalTokenCount", "promptFeedback", "blockReason",
         "blockReasonMessage", "inlineData", "mimeType", "data", "x"]  # fmt: skip
leaves = st.sampled_from(
    [None, True, False, 0, 1, -1, 1.5, 10**30, "", "STOP", "a", "\ud800", "AA=="]
)
json_values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=8,
)
parts = st.lists(
    json_values
    | st.fixed_dictionaries({"text": json_values}, optional={"thought": json_values, "x": leaves}),
    max_size=3,
)
contents = json_values | st.fixed_dictionaries(
    {"parts": parts | json_values}, optional={"role": json_values}
)
candidates = st.lists(
    json_values
    | st.fixed_dictionaries(
        {"content": contents}, optional={"finishReason": leaves, "index": json_values}
    ),
    max_size=3,
)
raws = st.fixed_dictionaries(
    {},
    optional={
        "candidates": candidates | json_values,
        "usageMetadata": json_values,
        "promptFeedback": json_values,
    },
)


def slow_text(response: GenerateContentResponse) -> str:
    return response.candidates[0].text if response.candidates else ""


ODD_PARTS: list[list[Any]] = [
    [{"text": "a", "thought": "yes"}, {"text": "b", "thought": 1}, {"text": "c", "thought": True}],
    [{"text": "a"}, "b", {"text": "c"}],
    ["text"],
    [{"text": "a"}, 5, None, [], ["text"], {"text": "b"}],
    [{"text": "a"}, {"text": 5}, {"text": None}, {}],
]


@pytest.mark.parametrize(
    ("parts", "text"), list(zip(ODD_PARTS, ["ab", "ac", "", "ab", "a"], strict=True)), ids=str
)
def test_odd_parts(parts: list[Any], text: str) -> None:
    """Parts that are no objects are no parts, and only `true` makes a text a thought."""
    chunk = GenerateContentChunk(candidate(*parts))
    assert chunk.text == slow_text(chunk) == chunk.content.text == text
    assert len(chunk.parts) == sum(isinstance(part, dict) for part in parts)
    assert unstructure(chunk.content)["parts"] == [part for part in parts if isinstance(part, dict)]


@example(candidate(*ODD_PARTS[0]))
@example(candidate(*ODD_PARTS[3]))
@example(candidate({"text": "\ud800"}))
@example(candidate({"text": "\ud83d"}, {"text": "\ude00"}))
@given(raws)
def test_any_object_is_a_response(raw: dict[str, Any]) -> None:
    """Whatever a reply holds, each property has its type, and nothing is raised but NoText."""
    before = copy.deepcopy(raw)
    for kind in (GenerateContentResponse, GenerateContentChunk):
        response = kind(raw)
        for found in response.candidates:
            assert isinstance(found.text.encode(), bytes)
            assert isinstance(found.index, int)
            assert isinstance(found.finish_reason, str | None)
            assert isinstance(found.finish_message, str | None)
            assert all(isinstance(part, Part) for part in found.content.parts)
            json.dumps(unstructure(found.content))
        assert isinstance(response.finish_reason, str | None)
        assert isinstance(response.parts, tuple)
        assert response.usage_metadata is None or response.usage_metadata.raw is not None
        feedback = response.prompt_feedback
        if feedback is not None:
            assert isinstance(feedback.block_reason, str | None)
            assert isinstance(feedback.block_reason_message, str | None)
        assert repr(response).isprintable()
        assert len(repr(response)) < 300
        try:
            text = response.text
        except NoText as error:
            assert str(error).isprintable()  # noqa: PT017  it need not be raised
            assert slow_text(response) == ""
        else:
            assert text == slow_text(response)
    assert raw == before
