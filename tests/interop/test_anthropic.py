"""anthropic talks to the local service's messages."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, cast

import anthropic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

from muybridge.local import LocalService

from .emulated import DESCRIBED, HONESTY, MODEL, PICTURE, WRONG_KEY, answer, one_turn

LIMIT = "Settings: max_tokens 500."


def _client(service: LocalService, key: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=service.base_url, auth_token=key, max_retries=0)


@pytest.fixture
def client(service: LocalService) -> Iterator[anthropic.Anthropic]:
    with _client(service, service.api_key) as client:
        yield client


def _request(content: Any, options: dict[str, Any]) -> dict[str, Any]:
    turn = {"role": "user", "content": content}
    return {"model": MODEL, "max_tokens": 500, "messages": [turn], **options}


def _ask(client: anthropic.Anthropic, content: Any, **options: Any) -> Message:
    return cast("Message", client.messages.create(**_request(content, options)))


def _stream(
    client: anthropic.Anthropic, content: Any, **options: Any
) -> Iterator[RawMessageStreamEvent]:
    with client.messages.create(**_request(content, options), stream=True) as stream:
        yield from stream


def _said(message: Message) -> str:
    (block,) = message.content
    assert block.type == "text"
    return block.text


def _text(events: list[RawMessageStreamEvent]) -> str:
    return "".join(
        event.delta.text
        for event in events
        if event.type == "content_block_delta" and event.delta.type == "text_delta"
    )


def test_a_plain_request(client: anthropic.Anthropic) -> None:
    """It reads the text, the stop reason, the tokens and the model of a whole reply."""
    # Its newest versions have no argument for settings that older models had.
    settings = {"temperature": 0.2, "top_p": 0.5}
    message = _ask(client, "Tell me of horses.", extra_body=settings)
    shown = "Settings: temperature 0.2, top_p 0.5, max_tokens 500."
    assert _said(message) == one_turn("Tell me of horses.", shown)
    assert (message.role, message.stop_reason, message.model) == ("assistant", "end_turn", MODEL)
    assert message.id.startswith("msg_")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 73)


@pytest.mark.parametrize("system", ["be terse", [{"type": "text", "text": "be terse"}]])
def test_a_conversation(client: anthropic.Anthropic, system: Any) -> None:
    """It sends all turns, and a system instruction beside them, as a string or as blocks."""
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "uno"},
        {"role": "user", "content": "two"},
    ]
    message = _ask(client, "", messages=messages, system=system)
    assert _said(message) == answer(
        "Turns: 3 (user, assistant, user).",
        'System instruction: "be terse".',
        'Last user text: "two".',
        LIMIT,
    )


def test_a_stream(client: anthropic.Anthropic) -> None:
    """It reads the stream event by event, from the message's start to its stop."""
    events = list(_stream(client, "hi"))
    assert _text(events) == one_turn("hi", LIMIT)
    kinds = [event.type for event in events if event.type != "content_block_delta"]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    end = events[-2]
    assert end.type == "message_delta"
    assert (end.delta.stop_reason, end.usage.output_tokens) == ("end_turn", 58)


def test_its_own_folding_of_a_stream(client: anthropic.Anthropic) -> None:
    """Its helper for streams gives the text, and makes one message of the events."""
    with client.messages.stream(**_request("hi", {})) as stream:
        texts = list(stream.text_stream)
        message = stream.get_final_message()
    assert len(texts) > 5
    assert "".join(texts) == _said(message) == one_turn("hi", LIMIT)
    assert message.stop_reason == "end_turn"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (1, 58)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_inline_picture(client: anthropic.Anthropic, streaming: object) -> None:
    """A picture in base64 is decoded."""
    data = base64.b64encode(PICTURE).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": source}]
    text = _text(list(_stream(client, content))) if streaming else _said(_ask(client, content))
    assert text == one_turn("look", "Files: 1.", DESCRIBED, LIMIT)


def test_a_limit_of_tokens(client: anthropic.Anthropic) -> None:
    """It is told that an answer was cut off at its limit, in a whole reply and in a stream."""
    message = _ask(client, "hi", max_tokens=5)
    assert _said(message) == "This is Muybridge'"
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 5)
    with client.messages.stream(**_request("hi", {"max_tokens": 5})) as stream:
        streamed = stream.get_final_message()
    assert _said(streamed) == "This is Muybridge'"
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("max_tokens", 5)


@pytest.mark.parametrize("options", [{}, {"stream": True}])
def test_a_wrong_key(service: LocalService, options: dict[str, Any]) -> None:
    """A wrong key is its authentication error, with the service's words."""
    with (
        _client(service, "wrong") as client,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        _ask(client, "hi", **options)
    assert _error(caught.value) == {"type": "authentication_error", "message": WRONG_KEY}


def _error(error: anthropic.APIStatusError) -> object:
    body: Any = error.body
    assert body["type"] == "error"
    return body["error"]


def test_bad_requests(client: anthropic.Anthropic) -> None:
    """A request that cannot be answered is its error of that kind, with the service's words."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        _ask(client, "", messages=[])
    complaint = "messages must be an array that is not empty"
    assert _error(caught.value) == {"type": "invalid_request_error", "message": complaint}
    with pytest.raises(anthropic.NotFoundError, match="'horse-1' is not a text model") as missing:
        _ask(client, "hi", model="horse-1")
    assert missing.value.status_code == 404


@pytest.mark.parametrize(
    ("marker", "kind", "type_"),
    [
        ("[text:error]", anthropic.InternalServerError, "api_error"),
        ("[text:throttled]", anthropic.RateLimitError, "rate_limit_error"),
    ],
)
def test_failures(
    client: anthropic.Anthropic, marker: str, kind: type[anthropic.APIStatusError], type_: str
) -> None:
    """A failure of the service is its error of that status."""
    with pytest.raises(kind) as caught:
        _ask(client, marker)
    assert f"'type': '{type_}'" in str(caught.value)
    assert f"the marker {marker} asks for this" in str(caught.value)


def test_an_error_in_a_stream(client: anthropic.Anthropic) -> None:
    """An error halfway through a stream is its error, after the events before it."""
    events: list[RawMessageStreamEvent] = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        events.extend(_stream(client, "[text:stream-error]"))
    complaint = "the marker [text:stream-error] asks for this error"
    assert _error(caught.value) == {"type": "overloaded_error", "message": complaint}
    assert _text(events) == f"{HONESTY}\nModel: {MODEL}.\n"


def test_a_stream_that_just_stops(client: anthropic.Anthropic) -> None:
    """A stream that is cut off reads to it as a message without a stop reason."""
    with client.messages.stream(**_request("[text:cut]", {})) as stream:
        message = stream.get_final_message()
    assert _said(message) == f"{HONESTY}\nModel: {MODEL}.\n"
    assert message.stop_reason is None


@pytest.mark.parametrize("marker", ["[text:safety]", "[text:blocked]"])
def test_answers_that_are_withheld(client: anthropic.Anthropic, marker: str) -> None:
    """An answer that is held back is a refusal without content, also in a stream."""
    message = _ask(client, marker)
    assert (message.content, message.stop_reason) == ([], "refusal")
    with client.messages.stream(**_request(marker, {})) as stream:
        streamed = stream.get_final_message()
    assert (streamed.content, streamed.stop_reason) == ([], "refusal")
