"""What the tests of the text endpoints send, and how they read the replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from emulator.caller import Caller, read
from muybridge_protocol.http import HttpResponse

MODEL = "textg-2.5-pro"
PLAIN = f"/v1/models/{MODEL}:generateContent"
ARRAY = f"/v1/models/{MODEL}:streamGenerateContent"
SSE = f"{ARRAY}?alt=sse"
CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"

Body = dict[str, Any]
Protocol = Literal["native", "chat", "messages"]

PATHS: Mapping[Protocol, str] = {"native": PLAIN, "chat": CHAT, "messages": MESSAGES}
PROTOCOLS = tuple(PATHS)


def native(text: str = "hello", **fields: Any) -> Body:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **fields}


def chat(text: str = "hello", **fields: Any) -> Body:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}


def messages(text: str = "hello", **fields: Any) -> Body:
    return {"max_tokens": 1000, **chat(text), **fields}


def saying(protocol: Protocol, text: str) -> Body:
    """Return a request of *protocol* in which the user says *text*."""
    match protocol:
        case "native":
            return native(text)
        case "chat":
            return chat(text)
        case "messages":
            return messages(text)


def ask(caller: Caller, path: str, body: Body) -> Body:
    """Return the reply to a request that is answered."""
    reply = caller.post(path, body)
    assert reply.status == 200, reply.body
    return read(reply)


def events(reply: HttpResponse) -> list[Body]:
    """Return the data of each event in a stream of server-sent events, `[DONE]` left out."""
    assert reply.status == 200, reply.body
    assert reply.header("content-type") == "text/event-stream"
    lines = reply.body.decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(value) for value in data if value != "[DONE]"]


def text_of(record: Body) -> str:
    """Return the text of a native reply or of one of its chunks."""
    return record["candidates"][0]["content"]["parts"][0]["text"]
