"""Function calls and their results in a conversation, in every protocol, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muybridge import Conversation, FunctionCall, collect, function_calls, next_messages

from .drivers import AnyClient, MakeClient
from .in_process import World

MODEL = "textg-2.5-pro"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "Do I need a coat?"

Answer = Callable[[tuple[FunctionCall, ...]], list[Any]]


@pytest.fixture
def client(make_client: MakeClient, world: World) -> AnyClient:
    return make_client(world)


def results(calls: tuple[FunctionCall, ...]) -> list[Any]:
    """Return the result of each of *calls*, which have the arguments that were declared."""
    assert [(call.name, call.arguments) for call in calls] == [("weather", {"city": "city"})]
    return [call.result({"sky": "grey"}) for call in calls]


def talk_natively(client: AnyClient, *, streaming: bool) -> str:
    talk = Conversation().say(QUESTION)
    extra = {"tools": [{"functionDeclarations": [{"name": "weather", "parameters": CITY}]}]}

    def ask() -> Any:
        if not streaming:
            return client.generate_content(MODEL, talk, extra=extra)
        with client.stream_generate_content(MODEL, talk, extra=extra) as stream:
            return stream.collect()

    answer = ask()
    talk = talk.hear(answer.content).say(results(answer.function_calls))
    return ask().text


def talk_in_chat(client: AnyClient, *, streaming: bool) -> str:
    function = {"name": "weather", "parameters": CITY}
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}],
                            "tools": [{"type": "function", "function": function}]}  # fmt: skip

    def ask() -> dict[str, Any]:
        if not streaming:
            return client.chat_completions(body)
        with client.stream_chat_completions(body) as stream:
            return collect(list(stream))

    answer = ask()
    body["messages"] += next_messages(answer, results(function_calls(answer)))
    return ask()["choices"][0]["message"]["content"]


def talk_in_messages(client: AnyClient, *, streaming: bool) -> str:
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}],
                            "max_tokens": 500,
                            "tools": [{"name": "weather", "input_schema": CITY}]}  # fmt: skip

    def ask() -> dict[str, Any]:
        if not streaming:
            return client.messages(body)
        with client.stream_messages(body) as stream:
            return collect(list(stream))

    answer = ask()
    body["messages"] += next_messages(answer, results(function_calls(answer)))
    return ask()["content"][0]["text"]


@pytest.mark.parametrize("talk", [talk_natively, talk_in_chat, talk_in_messages])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_conversation_goes_on_after_a_call(
    client: AnyClient, talk: Callable[..., str], streaming: object
) -> None:
    """A call is read, its result is returned, and the model's next answer knows it."""
    text = talk(client, streaming=streaming)
    assert "Function results: weather " in text
    assert "sky" in text
    assert "grey" in text
    assert f'Last user text: "{QUESTION}".' in text
