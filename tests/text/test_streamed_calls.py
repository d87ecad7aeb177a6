"""Function calls that come in pieces are whole calls, once each, and can be sent back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muybridge import Conversation, FunctionCall, collect, function_calls, next_messages
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentChunk

from .call_forms import CHAT, MESSAGES, NATIVE, PARTIAL, Call, at, more


def told(call: FunctionCall) -> Call:
    return call.id, call.name, dict(call.arguments), call.problem


def collected(*events: dict[str, Any]) -> dict[str, Any]:
    """Return what *events* make up, which must not change them."""
    before = copy.deepcopy(events)
    whole = collect(events)
    assert events == before
    return whole


@pytest.mark.parametrize("form", [*CHAT, *(f"messages: {form}" for form in MESSAGES)])
def test_calls_are_joined(form: str) -> None:
    """Each call is there once, with its own id, name and arguments."""
    known = {**CHAT, **{f"messages: {name}": one for name, one in MESSAGES.items()}}[form]
    assert tuple(map(told, function_calls(collected(*known.events)))) == known.calls


@pytest.mark.parametrize("form", NATIVE)
def test_native_calls_are_joined(form: str) -> None:
    """A native call is whole once all its pieces are there; until then it has a problem."""
    known = NATIVE[form]
    before = copy.deepcopy(known.events)
    whole = collect(map(GenerateContentChunk, known.events))
    assert tuple(map(told, whole.function_calls)) == known.calls
    assert known.events == before
    for call in whole.function_calls:
        kept = {"partialArgs", "willContinue"} & {*call.extra}
        assert bool(kept) == (call.problem == PARTIAL)


def test_a_piece_of_a_native_call_is_not_a_call() -> None:
    """A chunk tells that the call in it has more pieces."""
    for record in (more(name="walk"), more(at("$.a", numberValue=1), name="walk")):
        part = {"functionCall": record}
        chunk = GenerateContentChunk({"candidates": [{"content": {"parts": [part]}}]})
        assert [call.problem for call in chunk.function_calls] == [PARTIAL]


def test_other_fields_of_a_native_part_are_kept() -> None:
    """A signature beside a piece stays beside the call, and parts between stay where they are."""
    parts: list[dict[str, Any]] = [
        {"functionCall": more(at("$.a", numberValue=1), name="walk"), "thoughtSignature": "c2ln"},
        {"text": "Off."},
        {"functionCall": {}},
    ]
    chunks = [
        GenerateContentChunk({"candidates": [{"content": {"parts": [one]}}]}) for one in parts
    ]
    assert collect(chunks).raw["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "walk", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
        {"text": "Off."},
    ]


@pytest.mark.parametrize("form", MESSAGES)
def test_blocks_can_be_sent_back(form: str) -> None:
    """The input of a streamed block is an object, as the protocol wants it in the next request."""
    known = MESSAGES[form]
    if any(problem for *_, problem in known.calls):
        return
    (message,) = next_messages(collected(*known.events))
    assert [block["input"] for block in message["content"]] == [
        arguments for _, _, arguments, _ in known.calls
    ]


@pytest.mark.parametrize("arguments", ["", " ", None])
def test_a_call_without_parameters_can_be_sent_back(arguments: str | None) -> None:
    """Its arguments are the JSON of an empty object."""
    function = {"name": "walk"} if arguments is None else {"name": "walk", "arguments": arguments}
    for delta in (
        {"tool_calls": [{"index": 0, "id": "t1", "function": function}]},
        {"function_call": function},
    ):
        (message,) = next_messages(collected({"choices": [{"index": 0, "delta": delta}]}))
        calls = message.get("tool_calls", [{"function": message.get("function_call")}])
        assert calls[0]["function"] == {"name": "walk", "arguments": "{}"}


def test_the_result_of_a_call_without_tool_calls() -> None:
    """It goes back in a message of the role function, which names the function."""
    answer = collected(*CHAT["one call without tool_calls"].events)
    (call,) = function_calls(answer)
    assert next_messages(answer, [call.result({"speed": 5})]) == [
        answer["choices"][0]["message"],
        {"role": "function", "name": "walk", "content": '{"speed":5}'},
    ]


def test_a_joined_native_call_goes_back() -> None:
    """The next request has the whole call."""
    answer = collect(map(GenerateContentChunk, NATIVE["in pieces"].events))
    talk = Conversation().say("Walk.").hear(answer)
    (call,) = answer.function_calls
    request = GenerateContentRequest.build("textg-2.5-pro", talk.say(call.result("done")))
    assert request.contents[1].function_calls == (call,)
