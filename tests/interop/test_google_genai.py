"""google-genai, blocking and async, talks to the local service in the native protocol."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from google import genai
from google.genai import errors, types

from muybridge.local import LocalService

from .emulated import DESCRIBED, HONESTY, MODEL, PICTURE, WRONG_KEY, answer, one_turn

T = TypeVar("T")

Response = types.GenerateContentResponse


class Software(ABC):
    """One half of google-genai.

    Args:
        service: Where it is pointed at.
        key: The key that it has, or None for one that the service accepts.
    """

    def __init__(self, service: LocalService, key: str | None = None) -> None:
        self._service = service
        self._key = key or service.api_key

    def client(self) -> genai.Client:
        """Return a new client. It would send its key in a header that the service has not."""
        return genai.Client(
            api_key=self._key,
            http_options=types.HttpOptions(
                base_url=self._service.base_url,
                api_version="v1",
                headers={"Authorization": f"Bearer {self._key}"},
            ),
        )

    def ask(self, contents: Any, model: str = MODEL, **config: Any) -> Response:
        """Return the reply to *contents*."""
        return self._ask(model=model, contents=contents, config=_config(config))

    def stream(self, contents: Any, chunks: list[Response], **config: Any) -> None:
        """Put the chunks of the streamed reply to *contents* into *chunks* as they come."""
        self._stream(chunks, model=MODEL, contents=contents, config=_config(config))

    @abstractmethod
    def converse(self, *turns: str) -> list[str | None]:
        """Return the answers to *turns*, one after the other."""

    @abstractmethod
    def _ask(self, **request: Any) -> Response: ...

    @abstractmethod
    def _stream(self, chunks: list[Response], **request: Any) -> None: ...


class Blocking(Software):
    def converse(self, *turns: str) -> list[str | None]:
        with self.client() as client:
            chat: Any = client.chats.create(model=MODEL)
            return [chat.send_message(turn).text for turn in turns]

    def _ask(self, **request: Any) -> Response:
        with self.client() as client:
            return client.models.generate_content(**request)

    def _stream(self, chunks: list[Response], **request: Any) -> None:
        with self.client() as client:
            for chunk in client.models.generate_content_stream(**request):
                chunks.append(chunk)  # noqa: PERF402  what came before an error is to be seen


class Async(Software):
    def converse(self, *turns: str) -> list[str | None]:
        async def converse(client: genai.client.AsyncClient) -> list[str | None]:
            chat: Any = client.chats.create(model=MODEL)
            return [(await chat.send_message(turn)).text for turn in turns]

        return self._run(converse)

    def _ask(self, **request: Any) -> Response:
        async def ask(client: genai.client.AsyncClient) -> Response:
            return await client.models.generate_content(**request)

        return self._run(ask)

    def _stream(self, chunks: list[Response], **request: Any) -> None:
        async def stream(client: genai.client.AsyncClient) -> None:
            async for chunk in await client.models.generate_content_stream(**request):
                chunks.append(chunk)  # noqa: PERF401  what came before an error is to be seen

        self._run(stream)

    def _run(self, function: Callable[[genai.client.AsyncClient], Coroutine[Any, Any, T]]) -> T:
        async def run() -> T:
            async with self.client().aio as client:
                return await function(client)

        return asyncio.run(run())


@pytest.fixture(params=[Blocking, Async])
def software(request: pytest.FixtureRequest) -> type[Software]:
    kind: type[Software] = request.param
    return kind


@pytest.fixture
def google(software: type[Software], service: LocalService) -> Software:
    return software(service)


def _config(config: dict[str, Any]) -> types.GenerateContentConfig | None:
    return types.GenerateContentConfig(**config) if config else None


def _streamed(google: Software, contents: Any, **config: Any) -> list[Response]:
    chunks: list[Response] = []
    google.stream(contents, chunks, **config)
    return chunks


def _text(chunks: list[Response]) -> str:
    return "".join(chunk.text or "" for chunk in chunks)


def _reason(response: Response) -> types.FinishReason | None:
    (candidate,) = response.candidates or []
    return candidate.finish_reason


def _tokens(response: Response) -> tuple[int | None, int | None, int | None]:
    usage = response.usage_metadata
    assert usage is not None
    return usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count


def test_a_plain_request(google: Software) -> None:
    """It reads the text, the finish reason, the tokens and the model of a whole reply."""
    response = google.ask("Tell me of horses.", temperature=0.2, top_p=0.5)
    settings = "Settings: temperature 0.2, topP 0.5."
    assert response.text == one_turn("Tell me of horses.", settings)
    assert _reason(response) is types.FinishReason.STOP
    assert _tokens(response) == (5, 69, 74)
    assert response.model_version == MODEL
    assert response.response_id


def test_a_system_instruction(google: Software) -> None:
    """Its system instruction, which has a role, reaches the service as one."""
    response = google.ask("hi", system_instruction="be terse")
    told = 'System instruction: "be terse".'
    assert response.text == answer("Turns: 1 (user).", told, 'Last user text: "hi".')


def test_a_stream(google: Software) -> None:
    """It reads the stream chunk by chunk; the last alone has the finish reason."""
    chunks = _streamed(google, "Tell me of horses.")
    assert _text(chunks) == one_turn("Tell me of horses.")
    assert len(chunks) > 5
    assert all(chunk.text for chunk in chunks)
    assert [_reason(chunk) for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert _reason(chunks[-1]) is types.FinishReason.STOP
    whole = google.ask("Tell me of horses.")
    assert _tokens(chunks[-1]) == _tokens(whole)


def test_several_turns(google: Software) -> None:
    """Its chats send all turns so far."""
    assert google.converse("one", "two", "three") == [
        one_turn("one"),
        answer("Turns: 3 (user, model, user).", 'Last user text: "two".'),
        answer("Turns: 5 (user, model, user, model, user).", 'Last user text: "three".'),
    ]


@pytest.mark.parametrize("streaming", [False, True])
def test_an_inline_picture(google: Software, streaming: object) -> None:
    """Its pictures, in URL-safe base64 with mixed names of fields, are decoded."""
    contents = ["look", types.Part.from_bytes(data=PICTURE, mime_type="image/png")]
    text = _text(_streamed(google, contents)) if streaming else google.ask(contents).text
    assert text == one_turn("look", "Files: 1.", DESCRIBED)


def test_a_limit_of_tokens(google: Software) -> None:
    """It is told that an answer was cut off at its limit, in a whole reply and in a stream."""
    response = google.ask("hi", max_output_tokens=5)
    assert response.text == "This is Muybridge'"
    assert _reason(response) is types.FinishReason.MAX_TOKENS
    assert _tokens(response) == (1, 5, 6)
    chunks = _streamed(google, "hi", max_output_tokens=12)
    assert _text(chunks) == HONESTY[: HONESTY.index("e: no model")]
    assert _reason(chunks[-1]) is types.FinishReason.MAX_TOKENS


def test_a_wrong_key(software: type[Software], service: LocalService) -> None:
    """A wrong key is its client error 401, with the service's words."""
    google = software(service, "wrong")
    with pytest.raises(errors.ClientError) as caught:
        google.ask("hi")
    assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")
    assert caught.value.message == WRONG_KEY
    with pytest.raises(errors.ClientError) as caught:
        _streamed(google, "hi")
    assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")


def test_bad_requests(google: Software) -> None:
    """A request that cannot be answered is its client error, with the service's words."""
    turn = types.Content(role="martian", parts=[types.Part(text="hi")])
    with pytest.raises(errors.ClientError) as caught:
        google.ask([turn])
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert caught.value.message == "contents[0].role must be user or model"
    with pytest.raises(errors.ClientError) as caught:
        google.ask("hi", model="horse-1")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    assert (caught.value.message or "").startswith("'horse-1' is not a text model; use textg-")


@pytest.mark.parametrize(
    ("marker", "kind", "code", "status"),
    [
        ("[text:error]", errors.ServerError, 500, "INTERNAL"),
        ("[text:throttled]", errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
    ],
)
def test_failures(
    google: Software, marker: str, kind: type[errors.APIError], code: int, status: str
) -> None:
    """A failure of the service is its error of that status."""
    with pytest.raises(kind) as caught:
        google.ask(marker)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert f"the marker {marker} asks for this" in str(caught.value)


def test_an_error_in_a_stream(google: Software) -> None:
    """An error halfway through a stream is its server error, after the chunks before it."""
    chunks: list[Response] = []
    with pytest.raises(errors.ServerError) as caught:
        google.stream("[text:stream-error]", chunks)
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
    assert caught.value.message == "the marker [text:stream-error] asks for this error"
    assert _text(chunks) == f"{HONESTY}\nModel: {MODEL}.\n"


def test_a_stream_that_just_stops(google: Software) -> None:
    """A stream that is cut off reads to it as one that ends without a finish reason."""
    chunks = _streamed(google, "[text:cut]")
    assert _text(chunks) == f"{HONESTY}\nModel: {MODEL}.\n"
    assert _reason(chunks[-1]) is None


def test_answers_that_are_withheld(google: Software) -> None:
    """It tells a blocked prompt from an answer that was held back."""
    blocked = google.ask("[text:blocked]")
    assert blocked.prompt_feedback is not None
    assert blocked.prompt_feedback.block_reason is types.BlockedReason.SAFETY
    assert (blocked.text, blocked.candidates) == (None, None)
    held_back = google.ask("[text:safety]")
    assert held_back.text is None
    assert _reason(held_back) is types.FinishReason.SAFETY
