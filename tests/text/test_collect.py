"""Chunks folded into the response that they are pieces of."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.text.responses import (
    FinishReason,
    GenerateContentChunk,
    GenerateContentResponse,
    collect,
)

from .test_responses import raws


def answer(*parts: object, **fields: object) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


def chunk(*parts: object, **fields: object) -> dict[str, Any]:
    return {"candidates": [answer(*parts, **fields)]}


def collected(*raw: dict[str, Any]) -> dict[str, Any]:
    return collect(map(GenerateContentChunk, raw)).raw


IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
SIGNED = {"text": "", "thoughtSignature": "c2ln"}


def test_text_is_joined() -> None:
    """Text that goes on becomes one part, thoughts and the answer apart, others stay between."""
    whole = collected(
        chunk({"text": "h", "thought": True}),
        chunk({"text": "m", "thought": True}, {"text": "A "}),
        chunk({"text": "ho", "thought": False}),
        chunk(IMAGE, {"text": "r"}),
        chunk({"text": "se"}, IMAGE, IMAGE),
        chunk(SIGNED, finishReason="STOP"),
        {"usageMetadata": {"totalTokenCount": 7}},
    )
    assert whole == {
        **chunk(
            {"text": "hm", "thought": True},
            {"text": "A ho"},
            IMAGE,
            {"text": "rse"},
            IMAGE,
            IMAGE,
            SIGNED,
            finishReason="STOP",
        ),
        "usageMetadata": {"totalTokenCount": 7},
    }
    response = GenerateContentResponse(whole)
    assert response.text == "A horse"
    assert response.finish_reason is FinishReason.STOP


def test_several_candidates() -> None:
    """Each candidate is collected by its own index, whatever the order in which they come."""
    whole = collected(
        chunk({"text": "b"}, index=1),
        {"candidates": [answer({"text": "a"}), answer({"text": "B"}, index=1)]},
        chunk({"text": "A"}, index=0, finishReason="STOP"),
    )
    found = GenerateContentResponse(whole).candidates
    assert [(one.index, one.text, one.finish_reason) for one in found] == [
        (0, "aA", "STOP"),
        (1, "bB", None),
    ]


def test_the_last_said_counts() -> None:
    """Of everything beside the parts the last that was said counts, and null says nothing."""
    whole = collected(
        {"a": 1, "b": {"x": 1}, **chunk({"text": "t"}, finishReason="STOP", rating=1)},
        {"a": 2, "b": {"y": 1}, **chunk(finishReason=None, rating=2)},
        {"a": None, "c": None, "candidates": []},
    )
    assert whole == {
        "a": 2,
        "b": {"y": 1},
        "c": None,
        **chunk({"text": "t"}, finishReason="STOP", rating=2),
    }


def test_nothing_collected() -> None:
    """No chunks make an empty response, and a blocked prompt stays one."""
    assert collected() == {}
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert collected(blocked) == blocked


texts = st.text(max_size=6)
others = st.sampled_from([IMAGE, SIGNED, {"functionCall": {"name": "f"}}])
# What is said, cut into pieces of text: neighbours of one kind would be joined.
runs = st.lists(
    st.tuples(st.booleans(), texts.filter(bool), st.lists(st.integers(0, 6), max_size=3)),
    max_size=4,
)


@given(runs, st.lists(st.tuples(st.integers(0, 4), others), max_size=3), st.data())
def test_a_response_split_anywhere(
    said: list[tuple[bool, str, list[int]]], between: list[tuple[int, Any]], data: st.DataObject
) -> None:
    """The chunks of a response, cut anywhere between and inside its texts, are that response."""
    pieces: list[dict[str, Any]] = []
    whole: list[dict[str, Any]] = []
    for number, (thought, text, cuts) in enumerate(said):
        more = {"thought": True} if thought else {}
        alone = [other for place, other in between if place == number]
        if whole and not alone and whole[-1].keys() == {"text", *more}:
            whole[-1]["text"] += text
        else:
            whole += [*copy.deepcopy(alone), {"text": text, **more}]
        pieces += alone
        places = [0, *sorted(cuts), len(text)]
        pieces += [
            {"text": text[begin:end], **more} for begin, end in pairwise(places) if begin <= end
        ]
    chunks: list[dict[str, Any]] = []
    while pieces:
        count = data.draw(st.integers(1, len(pieces)))
        chunks.append(chunk(*pieces[:count], index=0))
        del pieces[:count]
    chunks.append({"candidates": [{"index": 0, "finishReason": "STOP"}], "modelVersion": "x"})
    before = copy.deepcopy(chunks)
    expected: dict[str, Any] = {"index": 0, "finishReason": "STOP"}
    if whole:
        expected["content"] = {"role": "model", "parts": whole}
    assert collected(*chunks) == {"candidates": [expected], "modelVersion": "x"}
    assert chunks == before


@given(st.lists(raws, max_size=4))
def test_any_chunks_are_collected(chunks: list[dict[str, Any]]) -> None:
    """Whatever chunks hold, they are collected, are left as they were, and lose no text."""
    before = copy.deepcopy(chunks)
    made = [GenerateContentChunk(raw) for raw in chunks]
    whole = collect(made)
    assert type(whole) is GenerateContentResponse
    assert chunks == before
    said: dict[int, str] = {}
    for one in made:
        for candidate in one.candidates:
            said[candidate.index] = said.get(candidate.index, "") + candidate.text
    assert {one.index: one.text for one in whole.candidates} == said
    assert collect([whole]) == whole


def test_half_characters_are_joined() -> None:
    """A character that was cut in two by the chunks is whole again, and can be sent back."""
    whole = collect(
        map(GenerateContentChunk, [chunk({"text": "a \ud83d"}), chunk({"text": "\udc0e \ud83d"})])
    )
    assert whole.text == "a \U0001f40e \ufffd"
    assert whole.content.text == whole.text
