"""Chat completions: expectations from what OpenAI's own software reads."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from emulator.caller import MIDNIGHT, Caller, new_emulator, read
from emulator.text import CHAT, MODEL, PLAIN, Body, ask, chat, events, native, text_of
from muybridge_protocol.emulator import Access, StreamedResponse

GIF = base64.b64encode(b"GIF89a\x05\x00\x02\x00\xff\xff\xfe").decode()


def streamed(caller: Caller, body: Body) -> list[Body]:
    return events(caller.post(CHAT, {**body, "stream": True}))


def content(record: Body) -> str:
    return record["choices"][0]["message"]["content"]


def test_a_completion_has_the_known_shape(caller: Caller) -> None:
    """A reply is a `chat.completion` with one choice, whose tokens add up."""
    record = ask(caller, CHAT, chat())
    assert record["id"] == "chatcmpl-1"
    assert record["object"] == "chat.completion"
    assert record["created"] == int(MIDNIGHT)
    assert record["model"] == MODEL
    (choice,) = record["choices"]
    assert choice["index"] == 0
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] == text_of(ask(caller, PLAIN, native()))
    usage = record["usage"]
    assert usage["prompt_tokens"] == 1
    assert usage["total_tokens"] == 1 + usage["completion_tokens"]


def test_a_conversation_is_restated(caller: Caller) -> None:
    """System and developer turns are the system instruction; all other roles are turns."""
    body = chat(
        messages=[
            {"role": "system", "content": "be brief"},
            {"role": "developer", "content": [{"type": "text", "text": "and kind"}]},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": "42", "tool_call_id": "x"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": [{"type": "text", "text": "three"}]},
        ],
        temperature=0.5,
        top_p=1,
        max_tokens=500,
        seed=3,
    )
    text = content(ask(caller, CHAT, body))
    assert "Turns: 5 (user, assistant, tool, assistant, user)." in text
    assert 'System instruction: "be brief and kind".' in text
    assert 'Last user text: "three".' in text
    assert "Settings: temperature 0.5, top_p 1, max_tokens 500." in text


@pytest.mark.parametrize("nested", [True, False])
def test_pictures_are_described(caller: Caller, nested: object) -> None:
    """A picture in a data: URL is described, one elsewhere is told as not fetched."""
    urls = [
        f"data:image/gif;base64,{GIF}",
        f"DATA:;x=y;base64,{GIF}",
        "https://example.com/a.png?b",
    ]
    pictures = [{"url": url} if nested else url for url in urls]
    parts: list[Body] = [{"type": "image_url", "image_url": picture} for picture in pictures]
    parts.append({"type": "input_audio", "input_audio": {}})
    record = ask(caller, CHAT, chat(messages=[{"role": "user", "content": parts}]))
    text = content(record)
    assert "- image/gif: a GIF picture of 5x2 pixels, 13 bytes." in text
    assert "- : a GIF picture of 5x2 pixels, 13 bytes." in text
    assert "- https://example.com/a.png?..., which was not fetched." in text
    assert "Other parts: input_audio." in text
    assert record["usage"]["prompt_tokens"] == 3 * 258


@pytest.mark.parametrize("limits", [{"max_tokens": 9}, {"max_completion_tokens": 9},
                                    {"max_tokens": 9, "max_completion_tokens": 500},
                                    {"max_tokens": 500, "max_completion_tokens": 9}])  # fmt: skip
def test_a_completion_has_no_more_tokens_than_it_may(caller: Caller, limits: Body) -> None:
    """Either limit cuts the text, the lower one of two, and `length` says so."""
    record = ask(caller, CHAT, chat(**limits))
    assert record["choices"][0]["finish_reason"] == "length"
    assert record["usage"]["completion_tokens"] == 9
    chunks = streamed(caller, chat(**limits))
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_a_stream_tells_what_a_reply_tells(caller: Caller) -> None:
    """A stream is chunks: the role, the text in deltas, the finish reason, and `[DONE]`."""
    reply = caller.post(CHAT, chat(stream=True))
    assert isinstance(reply, StreamedResponse)
    assert reply.body == b"".join(reply.pieces)
    assert reply.pieces[-1] == b"data: [DONE]\n\n"
    assert all(piece.endswith(b"}\n\n") for piece in reply.pieces[:-1])
    chunks = events(reply)
    assert len(chunks) > 4
    assert {(chunk["object"], chunk["id"]) for chunk in chunks} == {
        ("chat.completion.chunk", "chatcmpl-1")
    }
    assert all("usage" not in chunk for chunk in chunks)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert choices[-1]["delta"] == {}
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
    text = "".join(choice["delta"].get("content", "") for choice in choices)
    assert text == content(ask(caller, CHAT, chat()))


def test_usage_is_streamed_on_request(caller: Caller) -> None:
    """With `include_usage` one more chunk without choices has the usage, the others null."""
    chunks = streamed(caller, chat(stream_options={"include_usage": True}))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == ask(caller, CHAT, chat())["usage"]
    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    for options in ({}, None, {"include_usage": False}):
        assert "usage" not in streamed(caller, chat(stream_options=options))[-1]


def user(content: Any) -> Any:
    return [{"role": "user", "content": content}]


def picture(url: object) -> Any:
    return user([{"type": "image_url", "image_url": {"url": url}}])


BAD: list[tuple[Body, str]] = [
    ({"model": None}, "model"),
    ({"model": 1}, "model"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": {}}, "messages"),
    ({"messages": ["x"]}, "messages[0]"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "model", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0]"),
    ({"messages": user(1)}, "messages[0].content"),
    ({"messages": user([])}, "messages[0].content"),
    ({"messages": user([{}])}, "messages[0].content[0].type"),
    ({"messages": user([{"type": "text"}])}, "messages[0].content[0].text"),
    ({"messages": user([{"type": "image_url"}])}, "messages[0].content[0].image_url"),
    ({"messages": picture(None)}, "messages[0].content[0].image_url.url"),
    ({"messages": picture("data:image/png;base64,!")}, "messages[0].content[0].image_url.url"),
    ({"messages": picture("data:image/png,AA==")}, "messages[0].content[0].image_url.url"),
    ({"messages": picture("data:image/png;base64")}, "messages[0].content[0].image_url.url"),
    ({"stream": 1}, "stream"),
    ({"stream_options": []}, "stream_options"),
    ({"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
    ({"temperature": "1"}, "temperature"),
    ({"top_p": True}, "top_p"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_completion_tokens": 1.0}, "max_completion_tokens"),
]


@pytest.mark.parametrize(("change", "field"), BAD)
def test_bad_bodies_are_refused(caller: Caller, change: Body, field: str) -> None:
    """What is missing or of a wrong type gets 400 with its place."""
    reply = caller.post(CHAT, {**chat(), **change})
    assert reply.status == 400
    error = read(reply)["error"]
    assert error["message"].startswith(f"{field} ")
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", field, None)


def test_errors_have_the_known_shape(caller: Caller) -> None:
    """Each error has a message, a type, a parameter and a code."""
    unauthorized = caller.send("POST", CHAT, b"{}", ())
    unknown = Caller(new_emulator(strict=True)).post(CHAT, chat(model="gpt"))
    forbidden = Caller(new_emulator(access=Access(text=False))).post(CHAT, chat())
    plan = Caller(new_emulator(access=Access(models=frozenset()))).post(CHAT, chat())
    method = caller.send("GET", CHAT)
    for reply, status, kind, param, code in (
        (unauthorized, 401, "authentication_error", None, "invalid_api_key"),
        (unknown, 404, "invalid_request_error", "model", "model_not_found"),
        (forbidden, 403, "permission_error", None, "forbidden"),
        (plan, 403, "permission_error", "model", "forbidden"),
        (method, 405, "invalid_request_error", None, None),
    ):
        assert reply.status == status
        error = read(reply)["error"]
        assert error.pop("message")
        assert error == {"type": kind, "param": param, "code": code}
