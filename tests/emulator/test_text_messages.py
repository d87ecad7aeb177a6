"""The messages endpoint: expectations from what Anthropic's own software reads."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from emulator.caller import Caller, new_emulator, read
from emulator.text import MESSAGES, MODEL, PLAIN, Body, ask, events, messages, native, text_of
from muybridge_protocol.emulator import REQUEST_BODY_LIMIT, Access, StreamedResponse

GIF = base64.b64encode(b"GIF89a\x05\x00\x02\x00\xff\xff\xfe").decode()


def streamed(caller: Caller, body: Body) -> list[Body]:
    return events(caller.post(MESSAGES, {**body, "stream": True}))


def test_a_message_has_the_known_shape(caller: Caller) -> None:
    """A reply is a `message` of one text block, with its tokens."""
    record = ask(caller, MESSAGES, messages())
    usage = record.pop("usage")
    (block,) = record.pop("content")
    assert record == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "stop_reason": "end_turn",
        "stop_sequence": None,
    }
    plain = text_of(ask(caller, PLAIN, native()))
    assert block == {"type": "text", "text": f"{plain}\nSettings: max_tokens 1000."}
    assert usage["input_tokens"] == 1
    assert usage["output_tokens"] > 10


@pytest.mark.parametrize("system", ["be brief", [{"type": "text", "text": "be brief"}]])
def test_a_conversation_is_restated(caller: Caller, system: object) -> None:
    """Turns, the system prompt in either form, settings and files are restated."""
    gif = {"type": "base64", "media_type": "image/gif", "data": GIF}
    link = {"type": "url", "url": "https://example.com/a.png"}
    body = messages(
        system=system,
        messages=[
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": gif},
                    {"type": "document", "source": link},
                    {"type": "image", "source": {"type": "file", "file_id": "x"}},
                    {"type": "tool_result", "tool_use_id": "x"},
                    {"type": "text", "text": "three"},
                ],
            },
        ],
        temperature=0.5,
        top_p=1,
    )
    record = ask(caller, MESSAGES, body)
    text = record["content"][0]["text"]
    assert "Turns: 3 (user, assistant, user)." in text
    assert 'System instruction: "be brief".' in text
    assert 'Last user text: "three".' in text
    assert "- image/gif: a GIF picture of 5x2 pixels, 13 bytes." in text
    assert "- https://example.com/a.png, which was not fetched." in text
    assert "Other parts: file, tool_result." in text
    assert "Settings: temperature 0.5, top_p 1, max_tokens 1000." in text
    assert record["usage"]["input_tokens"] == 5 + 2 * 258


def test_a_message_has_no_more_tokens_than_it_may(caller: Caller) -> None:
    """max_tokens cuts the text, plain and streamed, and the stop reason says so."""
    record = ask(caller, MESSAGES, messages(max_tokens=9))
    assert record["stop_reason"] == "max_tokens"
    assert record["usage"]["output_tokens"] == 9
    *_, last, _ = streamed(caller, messages(max_tokens=9))
    assert last["delta"]["stop_reason"] == "max_tokens"
    assert last["usage"] == {"output_tokens": 9}


def test_a_stream_tells_what_a_reply_tells(caller: Caller) -> None:
    """A stream is the named events in their order, whose deltas together are the text."""
    reply = caller.post(MESSAGES, messages(stream=True))
    assert isinstance(reply, StreamedResponse)
    assert reply.body == b"".join(reply.pieces)
    records = events(reply)
    for piece, record in zip(reply.pieces, records, strict=True):
        assert piece.startswith(f"event: {record['type']}\ndata: {{".encode())
        assert piece.endswith(b"}\n\n")
        assert piece.count(b"\n") == 3
    kinds = [record["type"] for record in records]
    deltas = len(kinds) - 6
    assert deltas > 2
    assert kinds == [
        "message_start",
        "content_block_start",
        "ping",
        *["content_block_delta"] * deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    whole = ask(caller, MESSAGES, messages())
    usage = whole["usage"]
    assert records[0]["message"] == {
        **whole,
        "id": "msg_1",
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 0},
    }
    assert records[1]["content_block"] == {"type": "text", "text": ""}
    texts = [record["delta"]["text"] for record in records[3:-3]]
    assert "".join(texts) == whole["content"][0]["text"]
    assert records[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert records[-2]["usage"] == {"output_tokens": usage["output_tokens"]}


def user(content: Any) -> Any:
    return [{"role": "user", "content": content}]


def image(**source: object) -> Any:
    return user([{"type": "image", "source": source}])


SOURCE = "messages[0].content[0].source"
BAD: list[tuple[Body, str]] = [
    ({"model": None}, "model"),
    ({"max_tokens": None}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": "1"}, "max_tokens"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": user([])}, "messages[0].content"),
    ({"messages": user([{"text": "x"}])}, "messages[0].content[0].type"),
    ({"messages": user([{"type": "text"}])}, "messages[0].content[0].text"),
    ({"messages": user([{"type": "image"}])}, SOURCE),
    ({"messages": image()}, f"{SOURCE}.type"),
    ({"messages": image(type="url")}, f"{SOURCE}.url"),
    ({"messages": image(type="base64", data="AA==")}, f"{SOURCE}.media_type"),
    ({"messages": image(type="base64", media_type="a/b", data="!")}, f"{SOURCE}.data"),
    ({"system": 1}, "system"),
    ({"system": [{"type": "text"}]}, "system[0].text"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": "1"}, "temperature"),
]


@pytest.mark.parametrize(("change", "field"), BAD)
def test_bad_bodies_are_refused(caller: Caller, change: Body, field: str) -> None:
    """What is missing or of a wrong type gets 400 with its place."""
    reply = caller.post(MESSAGES, {**messages(), **change})
    assert reply.status == 400
    record = read(reply)
    assert record["type"] == "error"
    assert record["error"]["type"] == "invalid_request_error"
    assert record["error"]["message"].startswith(f"{field} ")


def test_errors_have_the_known_shape(caller: Caller) -> None:
    """Each error names its type, which goes with its status."""
    unauthorized = caller.send("POST", MESSAGES, b"{}", ())
    unknown = Caller(new_emulator(strict=True)).post(MESSAGES, messages(model="claude"))
    forbidden = Caller(new_emulator(access=Access(text=False))).post(MESSAGES, messages())
    large = caller.send("POST", MESSAGES, b" " * (REQUEST_BODY_LIMIT + 1))
    for reply, status, kind in (
        (unauthorized, 401, "authentication_error"),
        (unknown, 404, "not_found_error"),
        (forbidden, 403, "permission_error"),
        (large, 413, "request_too_large"),
    ):
        assert reply.status == status
        record = read(reply)
        assert record["error"].pop("message")
        assert record == {"type": "error", "error": {"type": kind}}
