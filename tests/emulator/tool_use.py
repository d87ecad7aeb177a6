"""Requests that declare functions, and answers that call them, in every protocol."""

from __future__ import annotations

import json
from typing import Any

from emulator.caller import Caller
from emulator.text import (
    CHAT,
    MESSAGES,
    SSE,
    Body,
    Protocol,
    chat,
    events,
    messages,
    native,
    text_of,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ARGUMENTS = {"city": "city"}


def declaring(protocol: Protocol, *names: str, choice: str | None = None, **fields: Any) -> Body:
    """Return a request that declares functions *names*. Its choice is auto, none, any or a name."""
    match protocol:
        case "native":
            declared = [{"name": name, "parameters": CITY} for name in names]
            named = {"mode": "ANY", "allowedFunctionNames": [choice]}
            mode = {"mode": choice.upper()} if choice in ("auto", "none", "any") else named
            config = {} if choice is None else {"toolConfig": {"functionCallingConfig": mode}}
            return native(tools=[{"functionDeclarations": declared}], **config, **fields)
        case "chat":
            tools = [
                {"type": "function", "function": {"name": name, "parameters": CITY}}
                for name in names
            ]
            chosen: Any = {"auto": "auto", "none": "none", "any": "required"}.get(choice or "")
            chosen = chosen or {"type": "function", "function": {"name": choice}}
            return chat(tools=tools, **({"tool_choice": chosen} if choice else {}), **fields)
        case "messages":
            tools = [{"name": name, "input_schema": CITY} for name in names]
            plain = choice in ("auto", "none", "any")
            chosen = {"type": choice} if plain else {"type": "tool", "name": choice}
            return messages(tools=tools, **({"tool_choice": chosen} if choice else {}), **fields)


def with_result(protocol: Protocol, body: Body, record: Body) -> Body:
    """Return the request that returns a result for each call in the answer *record*."""
    match protocol:
        case "native":
            turn = record["candidates"][0]["content"]
            parts = [
                {"functionResponse": {"name": name, "response": {"degrees": 21}}}
                for name, _ in calls_in(protocol, record)
            ]
            return {**body, "contents": [*body["contents"], turn, {"parts": parts}]}
        case "chat":
            turn = record["choices"][0]["message"]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "21"}
                for call in turn["tool_calls"]
            ]
            return {**body, "messages": [*body["messages"], turn, *results]}
        case "messages":
            blocks = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "21"}
                for block in record["content"]
                if block["type"] == "tool_use"
            ]
            turns = [
                {"role": "assistant", "content": record["content"]},
                {"role": "user", "content": blocks},
            ]
            return {**body, "messages": [*body["messages"], *turns]}


def calls_in(protocol: Protocol, record: Body) -> list[tuple[str, Any]]:
    """Return the names and arguments of the calls in an answer."""
    match protocol:
        case "native":
            parts = record["candidates"][0]["content"]["parts"]
            found = [part["functionCall"] for part in parts if "functionCall" in part]
            return [(call["name"], call["args"]) for call in found]
        case "chat":
            called = record["choices"][0]["message"].get("tool_calls", [])
            functions = [call["function"] for call in called]
            return [(one["name"], json.loads(one["arguments"])) for one in functions]
        case "messages":
            blocks = [block for block in record["content"] if block["type"] == "tool_use"]
            return [(block["name"], block["input"]) for block in blocks]


def reason_of(protocol: Protocol, record: Body) -> str:
    match protocol:
        case "native":
            return record["candidates"][0]["finishReason"]
        case "chat":
            return record["choices"][0]["finish_reason"]
        case "messages":
            return record["stop_reason"]


def said(protocol: Protocol, record: Body) -> str:
    match protocol:
        case "native":
            return text_of(record)
        case "chat":
            return record["choices"][0]["message"]["content"]
        case "messages":
            return record["content"][0]["text"]


def streamed(caller: Caller, protocol: Protocol, body: Body) -> Body:
    """Return what the events of a stream add up to: the answer as if it were whole."""
    match protocol:
        case "native":
            records = events(caller.post(SSE, body))
            parts = [part for one in records for part in one["candidates"][0]["content"]["parts"]]
            candidate = {**records[-1]["candidates"][0], "content": {"parts": parts}}
            return {"candidates": [candidate]}
        case "chat":
            choices: list[Body] = [
                one["choices"][0] for one in events(caller.post(CHAT, {**body, "stream": True}))
            ]
            calls: list[Body] = []
            deltas: list[Body] = [choice["delta"] for choice in choices]
            for delta in deltas:
                pieces: list[Body] = delta.get("tool_calls", [])
                for call in pieces:
                    if "id" in call:
                        assert call["index"] == len(calls)
                        calls.append(call)
                    else:
                        calls[call["index"]]["function"]["arguments"] += call["function"][
                            "arguments"
                        ]
            content = "".join(delta.get("content", "") for delta in deltas)
            message = {"content": content, "tool_calls": calls}
            return {"choices": [{**choices[-1], "message": message}]}
        case "messages":
            blocks: list[Body] = []
            reason = ""
            for event in events(caller.post(MESSAGES, {**body, "stream": True})):
                match event:
                    case {"type": "content_block_start"}:
                        blocks.append({**event["content_block"], "json": ""})
                    case {"delta": {"text": text}}:
                        blocks[-1]["text"] += text
                    case {"delta": {"partial_json": text}}:
                        blocks[-1]["json"] += text
                    case {"type": "content_block_stop"} if blocks[-1]["json"]:
                        blocks[-1]["input"] = json.loads(blocks[-1]["json"])
                    case {"delta": {"stop_reason": reason}}:
                        pass
                    case _:
                        pass
            return {"content": blocks, "stop_reason": reason}
