"""Function calls in answers of each protocol, and the turns that return their results."""

from __future__ import annotations

from typing import Any

import pytest

from muybridge import (
    Content,
    Conversation,
    FunctionCall,
    FunctionResult,
    InvalidRequest,
    function_calls,
    next_messages,
)
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentResponse

MODEL = "textg-2.5-pro"
ARGUMENTS = {"speed": 5, "gait": "trot"}


def native(*calls: Any) -> GenerateContentResponse:
    parts = [{"functionCall": call} for call in calls]
    return GenerateContentResponse({"candidates": [{"content": {"parts": parts}}]})


def chat(*calls: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return {"choices": [{"message": message}]}


def messages(*blocks: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(blocks)}


def called(arguments: object, **fields: object) -> dict[str, Any]:
    function = {"name": "gallop", "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function, **fields}


def test_a_call_is_the_same_in_every_protocol() -> None:
    """Name, arguments and id are read from native parts, tool calls and blocks."""
    call = FunctionCall("gallop", ARGUMENTS, "call_1")
    text = '{"speed": 5, "gait": "trot"}'
    block = {"type": "tool_use", "id": "call_1", "name": "gallop", "input": ARGUMENTS}
    speech = {"type": "text", "text": "Off it goes."}
    answer = native({"name": "gallop", "args": ARGUMENTS, "id": "call_1"})
    assert answer.function_calls == (call,)
    assert answer.candidates[0].function_calls == answer.content.function_calls == (call,)
    assert function_calls(chat(called(text))) == (call,)
    assert function_calls(messages(speech, block)) == (call,)
    assert call.problem is None


def test_a_native_call_may_lack_an_id_and_arguments() -> None:
    """What is missing is None or empty, and other fields are kept."""
    (call,) = native({"name": "stop", "thoughtful": True}).function_calls
    assert call == FunctionCall("stop", {}, None, extra={"thoughtful": True})
    assert call.problem is None


WITHOUT_CALLS: list[dict[str, Any]] = [
    {},
    {"choices": []},
    {"choices": [{}]},
    {"choices": [5]},
    {"choices": [{"message": {"tool_calls": None}}]},
    {"content": "text"},
    {"content": [5, {"type": "text"}]},
    chat(),
]


@pytest.mark.parametrize("answer", WITHOUT_CALLS)
def test_an_answer_may_have_no_calls(answer: dict[str, Any]) -> None:
    """An answer without calls, or of another shape, has none."""
    assert function_calls(answer) == ()
    assert GenerateContentResponse(answer).function_calls == ()


@pytest.mark.parametrize("arguments", ["{", "[]", "5", 5, ["x"], '{"a": 1, "a": 2}', "{} {}"])
def test_unreadable_arguments_are_kept(arguments: object) -> None:
    """A call whose arguments cannot be read is not lost: it says so, and has them in `extra`."""
    for (call,) in (function_calls(chat(called(arguments))),
                    native({"name": "gallop", "args": arguments}).function_calls):  # fmt: skip
        assert (call.name, call.arguments) == ("gallop", {})
        assert call.problem == "The arguments are not a JSON object."
        assert call.extra == {"args": arguments}


@pytest.mark.parametrize("arguments", ["", " ", None, {}])
def test_missing_arguments_are_none(arguments: object) -> None:
    """Services leave out the arguments of a function without parameters in several ways."""
    (call,) = function_calls(chat(called(arguments)))
    assert (call.arguments, call.problem) == ({}, None)


@pytest.mark.parametrize("record", [{}, {"name": None}, {"name": 5}, {"args": {}}, "gallop", 5])
def test_a_call_without_a_name_says_so(record: Any) -> None:
    """A call that nobody can make is a value with a problem, and no error."""
    (call,) = native(record).function_calls
    assert (call.name, call.problem) == ("", "The call has no name of a function.")


def test_results_go_back_in_the_native_protocol() -> None:
    """A result is a part of the user's turn, whose response is an object."""
    first, second = native({"name": "f", "id": "1"}, {"name": "g"}).function_calls
    answer = native({"name": "f", "id": "1"}, {"name": "g"})
    talk = Conversation().say("Go.").hear(answer.content)
    talk = talk.say([first.result({"speed": 5}), second.result("done"), "Hurry."])
    request = GenerateContentRequest.build(MODEL, talk)
    assert request.contents[2] == Content(
        [
            {"functionResponse": {"name": "f", "response": {"speed": 5}, "id": "1"}},
            {"functionResponse": {"name": "g", "response": {"result": "done"}}},
            "Hurry.",
        ]
    )
    assert request.contents == GenerateContentRequest.build(MODEL, list(talk.turns)).contents


def test_a_native_result_that_is_not_json_is_refused() -> None:
    """What cannot be written is reported before anything is sent."""
    result = FunctionResult("f", {"speed": float("nan")})
    with pytest.raises(InvalidRequest, match="functionResponse"):
        GenerateContentRequest.build(MODEL, ["Go.", result])


def test_results_go_back_in_chat_completions() -> None:
    """The next messages are the model's, and one of a tool for each result."""
    answer = chat(called("{}"), called("{}", id="call_2"))
    first, second = function_calls(answer)
    assert next_messages(answer, [first.result({"speed": 5}), second.result("caf\u00e9")]) == [
        answer["choices"][0]["message"],
        {"role": "tool", "tool_call_id": "call_1", "content": '{"speed":5}'},
        {"role": "tool", "tool_call_id": "call_2", "content": "caf\u00e9"},
    ]
    assert next_messages(answer) == [answer["choices"][0]["message"]]


def test_results_go_back_in_messages() -> None:
    """The next messages are the model's, and one of the user with all results."""
    answer = messages({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})
    (call,) = function_calls(answer)
    turn = {"role": "assistant", "content": answer["content"]}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "[1,2]"}
    assert next_messages(answer, [call.result([1, 2])]) == [
        turn,
        {"role": "user", "content": [result]},
    ]
    assert next_messages(answer) == [turn]


def test_what_cannot_go_back_is_refused() -> None:
    """A response without a message, and a result that is not JSON, are reported."""
    with pytest.raises(InvalidRequest, match="the answer has no message"):
        next_messages({"candidates": []})
    with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
        next_messages(chat(called("{}")), [FunctionResult("f", object(), "call_1")])
