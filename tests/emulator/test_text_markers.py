"""Markers in a text request that decide how it ends, in each protocol."""

from __future__ import annotations

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
    Protocol,
    ask,
    chat,
    events,
    messages,
    native,
    saying,
    text_of,
)
from muybridge_protocol.emulator import TextMarker


def test_the_markers_are_these() -> None:
    """The markers are the documented ones."""
    assert set(TextMarker) == {
        "[text:blocked]",
        "[text:safety]",
        "[text:error]",
        "[text:throttled]",
        "[text:cut]",
        "[text:stream-error]",
    }


def test_a_blocked_prompt_has_no_candidate(caller: Caller) -> None:
    """A blocked prompt gets 200 with a reason and no candidate, and costs no answer's tokens."""
    body = native("tell me [text:blocked]")
    plain = ask(caller, PLAIN, body)
    (chunk,) = events(caller.post(SSE, body))
    (element,) = read(caller.post(ARRAY, body))
    for record in (plain, chunk, element):
        assert record["promptFeedback"] == {"blockReason": "SAFETY"}  # type: ignore[index]
        assert "candidates" not in record
        usage: Any = record["usageMetadata"]  # type: ignore[index]
        assert usage["candidatesTokenCount"] == 0
        assert usage["totalTokenCount"] == usage["promptTokenCount"] > 0


def test_an_answer_held_back_has_no_text(caller: Caller) -> None:
    """An answer held back for safety is a candidate that says so and has no content."""
    body = native("[text:safety]")
    plain = ask(caller, PLAIN, body)
    (chunk,) = events(caller.post(SSE, body))
    for record in (plain, chunk):
        assert record["candidates"] == [{"finishReason": "SAFETY", "index": 0}]
        assert "promptFeedback" not in record
        assert record["usageMetadata"]["candidatesTokenCount"] == 0


@pytest.mark.parametrize("marker", [TextMarker.BLOCKED, TextMarker.SAFETY])
def test_the_other_protocols_hold_an_answer_back_in_their_way(
    caller: Caller, marker: TextMarker
) -> None:
    """Without text, chat completions end with content_filter and messages with refusal."""
    (choice,) = ask(caller, CHAT, chat(marker))["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("content_filter", None)
    chunks = events(caller.post(CHAT, chat(marker, stream=True)))
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, "content_filter"]
    message = ask(caller, MESSAGES, messages(marker))
    assert (message["stop_reason"], message["content"]) == ("refusal", [])
    records = events(caller.post(MESSAGES, messages(marker, stream=True)))
    assert [record["type"] for record in records] == [
        "message_start", "ping", "message_delta", "message_stop",
    ]  # fmt: skip
    assert records[2]["delta"]["stop_reason"] == "refusal"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("marker", "status", "name"),
    [(TextMarker.ERROR, 500, ("INTERNAL", "server_error", "api_error")),
     (TextMarker.THROTTLED, 429, ("RESOURCE_EXHAUSTED", "rate_limit_error", "rate_limit_error"))],
)  # fmt: skip
def test_a_request_fails_on_request(
    caller: Caller, protocol: Protocol, marker: TextMarker, status: int, name: tuple[str, ...]
) -> None:
    """An error and a throttling have their status and shape; only the latter says when to try."""
    reply = caller.post(PATHS[protocol], saying(protocol, marker))
    assert reply.status == status
    error = read(reply)["error"]
    assert error["status" if protocol == "native" else "type"] == name[PROTOCOLS.index(protocol)]
    assert marker in error["message"]
    assert reply.header("retry-after") == ("1" if status == 429 else None)


def test_a_stream_is_cut_halfway(caller: Caller) -> None:
    """A stream that is cut has half of its text, no finish reason, and no end of its frame."""
    body = native("[text:cut]")
    whole = text_of(ask(caller, PLAIN, body))
    chunks = events(caller.post(SSE, body))
    text = "".join(map(text_of, chunks))
    assert 0 < len(text) < len(whole)
    assert whole.startswith(text)
    assert all("finishReason" not in chunk["candidates"][0] for chunk in chunks)
    array = caller.post(ARRAY, body).body
    assert array.startswith(b"[{")
    assert array.endswith(b"}")
    records = events(caller.post(CHAT, chat("[text:cut]", stream=True)))
    assert all(record["choices"][0]["finish_reason"] is None for record in records)
    assert b"[DONE]" not in caller.post(CHAT, chat("[text:cut]", stream=True)).body
    kinds = [
        event["type"]
        for event in events(caller.post(MESSAGES, messages("[text:cut]", stream=True)))
    ]
    assert kinds[-1] == "content_block_delta"


def test_a_cut_stream_that_may_have_few_tokens_still_has_one_chunk(caller: Caller) -> None:
    """A stream of a single chunk that is cut has the chunk, without a finish reason."""
    body = native("[text:cut]", generationConfig={"maxOutputTokens": 1})
    (chunk,) = events(caller.post(SSE, body))
    assert text_of(chunk)
    assert "finishReason" not in chunk["candidates"][0]


def test_a_stream_has_an_error_halfway(caller: Caller) -> None:
    """A stream with an error has half of its text and then the error, in the protocol's shape."""
    *chunks, error = events(caller.post(SSE, native("[text:stream-error]")))
    assert len(chunks) > 1
    assert all("finishReason" not in chunk["candidates"][0] for chunk in chunks)
    assert (error["error"]["code"], error["error"]["status"]) == (503, "UNAVAILABLE")
    array: Any = read(caller.post(ARRAY, native("[text:stream-error]")))
    assert array[-1] == error
    *_, delta, error = events(caller.post(CHAT, chat("[text:stream-error]", stream=True)))
    assert delta["choices"][0]["delta"]["content"]
    assert error["error"]["type"] == "server_error"
    reply = caller.post(MESSAGES, messages("[text:stream-error]", stream=True))
    *_, delta, error = events(reply)
    assert delta["type"] == "content_block_delta"
    assert error["error"]["type"] == "overloaded_error"
    assert b"event: error\ndata: " in reply.body


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("marker", [TextMarker.CUT, TextMarker.STREAM_ERROR])
def test_a_plain_reply_is_not_interrupted(
    caller: Caller, protocol: Protocol, marker: TextMarker
) -> None:
    """The markers for streams do nothing to a reply that is none."""
    reply = caller.post(PATHS[protocol], saying(protocol, marker)).body
    assert b'"STOP"' in reply or b'"stop"' in reply or b'"end_turn"' in reply


def test_only_the_last_turn_of_the_user_counts(caller: Caller) -> None:
    """A marker in an earlier turn, in the model's or in the system instruction does nothing."""
    turns = [("user", "[text:error]"), ("model", "a"), ("user", "b"), ("model", "[text:error]")]
    contents = [{"role": role, "parts": [{"text": text}]} for role, text in turns]
    body = {"contents": contents, "systemInstruction": "[text:error]"}
    assert caller.post(PLAIN, body).status == 200
    contents[2]["parts"] = [{"text": "b"}, {"text": "[text:error]"}]
    assert caller.post(PLAIN, body).status == 500


def test_of_several_markers_the_first_counts(caller: Caller) -> None:
    """Of several markers in a turn, the one that stands first decides."""
    assert caller.post(PLAIN, native("[text:throttled][text:error]")).status == 429
    assert caller.post(PLAIN, native("[text:error][text:throttled]")).status == 500
