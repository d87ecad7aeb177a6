"""Function calls, JSON by schema and several candidates, in every protocol that has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.caller import Caller, read
from emulator.text import (
    ARRAY,
    CHAT,
    MESSAGES,
    PATHS,
    PLAIN,
    PROTOCOLS,
    SSE,
    Body,
    Protocol,
    ask,
    chat,
    events,
    messages,
    native,
    text_of,
)
from emulator.tool_use import (
    ARGUMENTS,
    CITY,
    calls_in,
    declaring,
    reason_of,
    said,
    streamed,
    with_result,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_declared_function_is_called(
    caller: Caller, protocol: Protocol, streaming: object
) -> None:
    """A request that declares functions is answered by a call with arguments by its schema."""
    body = declaring(protocol, "weather", "time")
    record = streamed(caller, protocol, body) if streaming else ask(caller, PATHS[protocol], body)
    assert calls_in(protocol, record) == [("weather", ARGUMENTS)]
    reasons = {"native": "STOP", "chat": "tool_calls", "messages": "tool_use"}
    assert reason_of(protocol, record) == reasons[protocol]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_function_is_called_once(caller: Caller, protocol: Protocol) -> None:
    """Functions are called one after the other, and then a text restates their results."""
    body = declaring(protocol, "weather", "time")
    for name in ("weather", "time"):
        record = ask(caller, PATHS[protocol], body)
        assert calls_in(protocol, record) == [(name, ARGUMENTS)]
        body = with_result(protocol, body, record)
    record = ask(caller, PATHS[protocol], body)
    assert calls_in(protocol, record) == []
    result = '{"degrees": 21}' if protocol == "native" else '"21"'
    assert f"Function results: weather {result}, time {result}." in said(protocol, record)
    assert 'Last user text: "hello".' in said(protocol, record)


@pytest.mark.parametrize("protocol", ["native", "messages"])
def test_a_text_beside_a_result_is_no_new_question(caller: Caller, protocol: Protocol) -> None:
    """If the user's turn has results and a text, functions are not called again."""
    body = declaring(protocol, "weather")
    body = with_result(protocol, body, ask(caller, PATHS[protocol], body))
    last = body["contents" if protocol == "native" else "messages"][-1]
    text: Body = {"text": "Hurry."} if protocol == "native" else {"type": "text", "text": "Hurry."}
    last["parts" if protocol == "native" else "content"].append(text)
    record = ask(caller, PATHS[protocol], body)
    assert calls_in(protocol, record) == []
    assert 'Last user text: "Hurry.".' in said(protocol, record)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_choice_of_functions_is_kept(caller: Caller, protocol: Protocol) -> None:
    """None forbids calls, a name demands that function, and a demand is met again and again."""
    path = PATHS[protocol]
    forbidden = ask(caller, path, declaring(protocol, "weather", choice="none"))
    assert calls_in(protocol, forbidden) == []
    named = ask(caller, path, declaring(protocol, "weather", "time", choice="time"))
    assert calls_in(protocol, named) == [("time", ARGUMENTS)]
    body = declaring(protocol, "weather", choice="any")
    for _ in range(2):
        record = ask(caller, path, body)
        assert calls_in(protocol, record) == [("weather", ARGUMENTS)]
        body = with_result(protocol, body, record)
    unknown = caller.post(path, declaring(protocol, "weather", choice="horse"))
    assert unknown.status == 400
    assert "must be the name of a declared function" in unknown.body.decode()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_that_the_limit_would_cut_is_left_out(caller: Caller, protocol: Protocol) -> None:
    """If a call does not fit into the tokens, there is none, and the reason says so."""
    limit: Body = {"generationConfig": {"maxOutputTokens": 2}}
    limit = limit if protocol == "native" else {"max_tokens": 2}
    record = ask(caller, PATHS[protocol], declaring(protocol, "weather") | limit)
    assert calls_in(protocol, record) == []
    reasons = {"native": "MAX_TOKENS", "chat": "length", "messages": "max_tokens"}
    assert reason_of(protocol, record) == reasons[protocol]


def test_functions_in_other_spellings_are_called(caller: Caller) -> None:
    """Snake case, JSON schemas and chat's allowed tools are understood, other tools ignored."""
    declared = {"name": "f", "parameters_json_schema": CITY}
    tools: list[Body] = [{"googleSearch": {}}, {"function_declarations": [declared, {"name": "g"}]}]
    config = {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}}
    record = ask(caller, PLAIN, native(tools=tools, tool_config=config))
    assert calls_in("native", record) == [("f", ARGUMENTS)]
    allowed = [{"type": "function", "function": {"name": "g"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": allowed}}
    functions = [{"name": "f", "parameters": CITY}, {"name": "g"}]
    tools = [{"type": "function", "function": one} for one in functions]
    body = chat(tools=[{"type": "custom", "custom": {}}, *tools], tool_choice=choice)
    assert calls_in("chat", ask(caller, CHAT, body)) == [("g", {})]
    body = messages(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert calls_in("messages", ask(caller, MESSAGES, body)) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arguments_that_are_not_found_are_refused(caller: Caller, protocol: Protocol) -> None:
    """If no arguments satisfy the schema, the request is refused with the place and a way out."""
    body = declaring(protocol, "weather")
    written = json.dumps(body).replace('{"type": "string"}', '{"not": {}}')
    reply = caller.post(PATHS[protocol], json.loads(written))
    assert reply.status == 400
    message = read(reply)["error"]["message"]
    assert message.startswith("tools[0]")
    assert "city: the local service does not understand not" in message
    assert message.endswith("; script the answer instead")


def asking_for_json(protocol: Protocol, schema: Body) -> Body:
    match protocol:
        case "native":
            config = {"responseMimeType": "application/json", "responseSchema": schema}
            return native(generationConfig=config)
        case "chat":
            form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
            return chat(response_format=form)
        case "messages":
            form = {"type": "json_schema", "schema": schema}
            return messages(output_config={"format": form})


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("streaming", [False, True])
def test_json_is_by_the_schema(caller: Caller, protocol: Protocol, streaming: object) -> None:
    """A request with a schema is answered by JSON that satisfies it."""
    body = asking_for_json(protocol, CITY)
    record = streamed(caller, protocol, body) if streaming else ask(caller, PATHS[protocol], body)
    text = said(protocol, record)
    if protocol == "native" and streaming:
        text = "".join(part["text"] for part in record["candidates"][0]["content"]["parts"])
    assert json.loads(text) == ARGUMENTS


def test_json_without_a_schema_is_an_object(caller: Caller) -> None:
    """A request for any JSON is answered by an object with the usual text."""
    config = {"response_mime_type": "application/json"}
    told = json.loads(text_of(ask(caller, PLAIN, native(generation_config=config))))
    assert "no model has answered" in told["answer"]
    record = ask(caller, CHAT, chat(response_format={"type": "json_object"}))
    assert json.loads(said("chat", record)) == told
    record = ask(caller, CHAT, chat(response_format={"type": "text"}))
    assert said("chat", record) == told["answer"]


def test_candidates_are_as_many_as_asked_for(caller: Caller) -> None:
    """Several candidates differ by their number, and the tokens of all are counted."""
    record = ask(caller, PLAIN, native(generationConfig={"candidateCount": 3}))
    alone = ask(caller, PLAIN, native())
    texts = [one["content"]["parts"][0]["text"] for one in record["candidates"]]
    assert texts == [f"{text_of(alone)}\nCandidate: {n} of 3." for n in (1, 2, 3)]
    assert [one["index"] for one in record["candidates"]] == [0, 1, 2]
    single = alone["usageMetadata"]["candidatesTokenCount"]
    assert record["usageMetadata"]["candidatesTokenCount"] > 3 * single
    choices = ask(caller, CHAT, chat(n=3))["choices"]
    assert [one["message"]["content"] for one in choices] == texts
    assert [one["index"] for one in choices] == [0, 1, 2]


def test_candidates_are_streamed_together(caller: Caller) -> None:
    """Each candidate of a stream has all its pieces in order, and ends once."""
    config = {"candidateCount": 2}
    whole = ask(caller, PLAIN, native(generationConfig=config))
    texts = [one["content"]["parts"][0]["text"] for one in whole["candidates"]]
    records = events(caller.post(SSE, native(generationConfig=config)))
    assert read_array(caller, native(generationConfig=config)) == [
        {**record, "responseId": "3"} for record in records
    ]
    pieces = [one for record in records for one in record["candidates"]]
    chunks = events(caller.post(CHAT, chat(n=2, stream=True)))
    choices = [one for chunk in chunks for one in chunk["choices"]]
    for number in (0, 1):
        mine = [one for one in pieces if one["index"] == number]
        assert "".join(one["content"]["parts"][0]["text"] for one in mine) == texts[number]
        assert ["finishReason" in one for one in mine] == [False] * (len(mine) - 1) + [True]
        deltas = [one for one in choices if one["index"] == number]
        assert "".join(one["delta"].get("content", "") for one in deltas) == texts[number]
        assert deltas[0]["delta"]["role"] == "assistant"
        assert [one["finish_reason"] for one in deltas] == [None] * (len(deltas) - 1) + ["stop"]
    assert records[-1]["usageMetadata"] == whole["usageMetadata"]


def read_array(caller: Caller, body: Body) -> Any:
    return read(caller.post(ARRAY, body))


DECLARED = "tools[0].functionDeclarations[0]"
TEXT_FUNCTION = {"name": "f", "parameters": {"type": "STRING"}}

BAD: list[tuple[Protocol, Body, str]] = [
    ("native", {"generationConfig": {"candidateCount": 0}}, "generationConfig.candidateCount"),
    ("native", {"generationConfig": {"candidateCount": 9}}, "generationConfig.candidateCount"),
    ("native", {"generationConfig": {"responseMimeType": 1}}, "generationConfig.responseMimeType"),
    ("native", {"tools": {}}, "tools"),
    ("native", {"tools": [{"functionDeclarations": [{}]}]}, f"{DECLARED}.name"),
    ("native", {"tools": [{"functionDeclarations": [TEXT_FUNCTION]}]}, f"{DECLARED}.parameters"),
    ("chat", {"n": 9}, "n"),
    ("chat", {"n": True}, "n"),
    ("chat", {"tools": [{"type": "function"}]}, "tools[0].function"),
    ("chat", {"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ("messages", {"tools": [{}]}, "tools[0].name"),
    ("messages", {"output_config": {"format": {}}}, "output_config.format.schema"),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "change", "field"), BAD)
def test_bad_wishes_are_refused(
    caller: Caller, protocol: Protocol, change: Body, field: str
) -> None:
    """What is missing or of a wrong type gets 400 with its place."""
    plain = {"native": native, "chat": chat, "messages": messages}[protocol]()
    reply = caller.post(PATHS[protocol], plain | change)
    assert reply.status == 400
    assert read(reply)["error"]["message"].startswith(f"{field} ")
