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


def citations(*places: tuple[int, int]) -> dict[str, Any]:
    return {"citationSources": [{"startIndex": begin, "endIndex": end} for begin, end in places]}


def test_citations_come_in_pieces() -> None:
    """Each chunk cites the sources of its own text, and all of them are kept."""
    whole = collected(
        chunk({"text": "a"}),
        chunk({"text": "b"}, citationMetadata=citations((118, 262), (146, 401))),
        chunk({"text": "c"}, citationMetadata=citations((164, 401))),
        chunk({"text": "d"}),
        chunk({"text": "e"}, finishReason="STOP", citationMetadata=citations((712, 869))),
    )
    (candidate,) = whole["candidates"]
    assert candidate["citationMetadata"] == citations(
        (118, 262), (146, 401), (164, 401), (712, 869)
    )
    for name in ("citations", "citationSources"):
        parts = [{"citationMetadata": {name: [{"uri": uri}]}} for uri in "abc"]
        (candidate,) = collected(*(chunk(**part) for part in parts))["candidates"]
        assert candidate["citationMetadata"] == {name: [{"uri": uri} for uri in "abc"]}


def test_probabilities_come_in_pieces() -> None:
    """The probabilities of tokens are those of the whole text, in its order."""

    def logprobs(*tokens: str) -> dict[str, Any]:
        said = [{"token": token, "logProbability": -0.5} for token in tokens]
        return {"topCandidates": [{"candidates": [one]} for one in said], "chosenCandidates": said}

    for pieces in (["a"], ["b", "c"], ["d"]), (["a"], ["a", "b"], ["a"]), (["a", "b"], ["b"]):
        chunks = [chunk({"text": "t"}, logprobsResult=logprobs(*piece)) for piece in pieces]
        (candidate,) = collected(*chunks)["candidates"]
        assert candidate["logprobsResult"] == logprobs(*(token for one in pieces for token in one))


def test_cumulative_lists_are_not_doubled() -> None:
    """Where each chunk repeats what came before it, the last one has it all."""
    for pieces in (["ab", "abc", "abc"], ["", "a"], ["a", "a"]):
        (candidate,) = collected(
            *(chunk(citationMetadata=citations(*((ord(c), 0) for c in piece))) for piece in pieces)
        )["candidates"]
        assert candidate["citationMetadata"] == citations(*((ord(c), 0) for c in pieces[-1]))


def test_grounding_comes_in_pieces() -> None:
    """Objects are merged at any depth: lists are joined, of other values the last counts."""
    whole = collected(
        chunk({"text": "a"}, groundingMetadata={}, urlContextMetadata={"urlMetadata": [{"u": 1}]}),
        chunk({"text": "b"}, groundingMetadata={"webSearchQueries": ["q"], "retrieval": {"x": 1}}),
        chunk(
            {"text": "c"},
            groundingMetadata={
                "webSearchQueries": ["r"],
                "searchEntryPoint": {"renderedContent": "<p>"},
                "retrieval": {"y": None, "x": 2},
                "groundingChunks": [{"web": {"uri": "u"}}],
            },
            urlContextMetadata=None,
        ),
        chunk(groundingMetadata={"retrieval": {"y": 3}, "webSearchQueries": None}),
    )
    (candidate,) = whole["candidates"]
    assert candidate["groundingMetadata"] == {
        "webSearchQueries": ["q", "r"],
        "searchEntryPoint": {"renderedContent": "<p>"},
        "retrieval": {"x": 2, "y": 3},
        "groundingChunks": [{"web": {"uri": "u"}}],
    }
    assert candidate["urlContextMetadata"] == {"urlMetadata": [{"u": 1}]}


def test_what_is_of_the_moment() -> None:
    """Safety ratings and counts of tokens are of the whole so far: the last ones count."""
    first, last = [{"category": "A", "probability": "LOW"}], [{"category": "B"}]
    counted: dict[str, Any] = {"promptTokenCount": 1, "details": [1]}
    whole = collected(
        {**chunk({"text": "a"}, safetyRatings=first), "usageMetadata": counted},
        {**chunk({"text": "b"}, safetyRatings=last), "usageMetadata": {"details": [2]}},
    )
    assert whole["candidates"][0]["safetyRatings"] == last
    assert whole["usageMetadata"] == {"details": [2]}


def test_fields_that_change_their_type() -> None:
    """Where a field has values of several types, the last counts."""
    for values in ([1], {"a": 1}), ({"a": 1}, [1]), ({"a": 1}, 5, {"b": 1}), ([1], "x", [2]):
        (candidate,) = collected(*(chunk(x=value) for value in values))["candidates"]
        assert candidate["x"] == values[-1]


lists = st.lists(st.integers(0, 3) | st.dictionaries(st.just("uri"), st.integers(0, 3)), max_size=4)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), lists, max_size=2), max_size=4))
def test_nothing_of_a_list_is_lost(metadata: list[dict[str, Any]]) -> None:
    """Every item that any chunk holds is in the whole, and the chunks are left as they were."""
    chunks = [chunk({"text": "t"}, metadata={"inner": piece}) for piece in metadata]
    before = copy.deepcopy(chunks)
    whole = collected(*chunks)
    assert chunks == before
    for piece in metadata:
        for name, items in piece.items():
            found = whole["candidates"][0]["metadata"]["inner"][name]
            assert all(item in found for item in items)
    assert collected(whole) == whole


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
