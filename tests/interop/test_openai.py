"""openai talks to the local service's chat completions."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, cast

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from muybridge.local import LocalService

from .emulated import DESCRIBED, HONESTY, MODEL, PICTURE, WRONG_KEY, answer, one_turn


def _client(service: LocalService, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.base_url}/v1", api_key=key, max_retries=0)


@pytest.fixture
def client(service: LocalService) -> Iterator[openai.OpenAI]:
    with _client(service, service.api_key) as client:
        yield client


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _ask(client: openai.OpenAI, content: Any, **options: Any) -> ChatCompletion:
    request: dict[str, Any] = {"model": MODEL, "messages": [_user(content)], **options}
    return cast("ChatCompletion", client.chat.completions.create(**request))


def _stream(client: openai.OpenAI, content: Any, **options: Any) -> Iterator[ChatCompletionChunk]:
    request: dict[str, Any] = {"model": MODEL, "messages": [_user(content)], **options}
    with client.chat.completions.create(**request, stream=True) as stream:
        yield from stream


def _text(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def test_a_plain_request(client: openai.OpenAI) -> None:
    """It reads the text, the finish reason, the tokens and the model of a whole reply."""
    completion = _ask(client, "Tell me of horses.", temperature=0.2, top_p=0.5)
    (choice,) = completion.choices
    settings = "Settings: temperature 0.2, top_p 0.5."
    assert choice.message.content == one_turn("Tell me of horses.", settings)
    assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
    assert completion.model == MODEL
    assert completion.id.startswith("chatcmpl-")
    usage = completion.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 69, 74)


def test_the_list_of_models(client: openai.OpenAI) -> None:
    """It lists the models of the local service."""
    models = {model.id: model for model in client.models.list()}
    assert {MODEL, "imgb-2", "vidrPro"} <= models.keys()
    assert (models[MODEL].object, models[MODEL].owned_by) == ("model", "muybridge-local")


def test_a_conversation(client: openai.OpenAI) -> None:
    """Its system and developer turns are the system instruction, and all others turns."""
    messages = [
        {"role": "system", "content": "be terse"},
        {"role": "developer", "content": "and kind"},
        _user("one"),
        {"role": "assistant", "content": "uno"},
        _user("two"),
    ]
    completion = _ask(client, "", messages=messages)
    assert completion.choices[0].message.content == answer(
        "Turns: 3 (user, assistant, user).",
        'System instruction: "be terse and kind".',
        'Last user text: "two".',
    )


def test_a_stream(client: openai.OpenAI) -> None:
    """It reads the stream chunk by chunk, with the tokens last when it asks for them."""
    chunks = list(_stream(client, "hi", stream_options={"include_usage": True}))
    assert _text(chunks) == one_turn("hi")
    assert chunks[0].choices[0].delta.role == "assistant"
    reasons = [chunk.choices[0].finish_reason for chunk in chunks[:-1]]
    assert reasons == [None] * (len(chunks) - 2) + ["stop"]
    usage = chunks[-1].usage
    assert chunks[-1].choices == []
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (1, 50, 51)


def test_its_own_folding_of_a_stream(client: openai.OpenAI) -> None:
    """Its helper for streams makes one completion of the chunks."""
    messages: list[Any] = [_user("hi")]
    with client.chat.completions.stream(model=MODEL, messages=messages) as stream:
        completion = stream.get_final_completion()
    (choice,) = completion.choices
    assert choice.message.content == one_turn("hi")
    assert choice.finish_reason == "stop"


@pytest.mark.parametrize("streaming", [False, True])
def test_an_inline_picture(client: openai.OpenAI, streaming: object) -> None:
    """A picture in a data: URL is decoded."""
    url = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
    ]
    text = (
        _text(list(_stream(client, content)))
        if streaming
        else _ask(client, content).choices[0].message.content
    )
    assert text == one_turn("look", "Files: 1.", DESCRIBED)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_tokens(client: openai.OpenAI, name: str) -> None:
    """It is told that an answer was cut off at its limit, in a whole reply and in a stream."""
    completion = _ask(client, "hi", **{name: 5})
    assert completion.choices[0].message.content == "This is Muybridge'"
    assert completion.choices[0].finish_reason == "length"
    chunks = list(_stream(client, "hi", **{name: 5}))
    assert _text(chunks) == "This is Muybridge'"
    assert chunks[-1].choices[0].finish_reason == "length"


@pytest.mark.parametrize("options", [{}, {"stream": True}])
def test_a_wrong_key(service: LocalService, options: dict[str, Any]) -> None:
    """A wrong key is its authentication error, with the service's words."""
    with (
        _client(service, "wrong") as client,
        pytest.raises(openai.AuthenticationError) as caught,
    ):
        _ask(client, "hi", **options)
    assert str(caught.value) == f"Error code: 401 - {WRONG_KEY}"
    assert (caught.value.type, caught.value.code) == ("authentication_error", "invalid_api_key")


def test_bad_requests(client: openai.OpenAI) -> None:
    """A request that cannot be answered is its error of that kind, and names the field."""
    with pytest.raises(openai.BadRequestError) as caught:
        _ask(client, "", messages=[])
    complaint = "messages must be an array that is not empty"
    assert str(caught.value) == f"Error code: 400 - {complaint}"
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", "messages")
    with pytest.raises(openai.NotFoundError, match="'horse-1' is not a text model") as missing:
        _ask(client, "hi", model="horse-1")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize(
    ("marker", "kind", "type_"),
    [
        ("[text:error]", openai.InternalServerError, "server_error"),
        ("[text:throttled]", openai.RateLimitError, "rate_limit_error"),
    ],
)
def test_failures(
    client: openai.OpenAI, marker: str, kind: type[openai.APIStatusError], type_: str
) -> None:
    """A failure of the service is its error of that status."""
    with pytest.raises(kind) as caught:
        _ask(client, marker)
    assert caught.value.type == type_
    assert f"the marker {marker} asks for this" in str(caught.value)


def test_an_error_in_a_stream(client: openai.OpenAI) -> None:
    """An error halfway through a stream is its error, after the chunks before it."""
    chunks: list[ChatCompletionChunk] = []
    with pytest.raises(openai.APIError) as caught:
        chunks.extend(_stream(client, "[text:stream-error]"))
    assert caught.value.message == "the marker [text:stream-error] asks for this error"
    assert caught.value.type == "server_error"
    assert _text(chunks) == f"{HONESTY}\nModel: {MODEL}.\n"


def test_a_stream_that_just_stops(client: openai.OpenAI) -> None:
    """A stream that is cut off reads to it as one that ends without a finish reason."""
    chunks = list(_stream(client, "[text:cut]"))
    assert _text(chunks) == f"{HONESTY}\nModel: {MODEL}.\n"
    assert {chunk.choices[0].finish_reason for chunk in chunks} == {None}


@pytest.mark.parametrize("marker", ["[text:safety]", "[text:blocked]"])
def test_answers_that_are_withheld(client: openai.OpenAI, marker: str) -> None:
    """An answer that is held back was stopped by the filter, and has no text."""
    (choice,) = _ask(client, marker).choices
    assert (choice.message.content, choice.finish_reason) == (None, "content_filter")
