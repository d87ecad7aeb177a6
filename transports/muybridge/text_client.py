"""The text endpoints for ordinary, blocking code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from muybridge.drivers.blocking import BlockingIterator, run
from muybridge_protocol.families import Unlisted
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.defaults import (
    MESSAGES_PATH,
    REPLY_LIMIT,
    SILENCE_LIMIT,
    TEXT_TIMEOUT,
)

if TYPE_CHECKING:
    from muybridge.async_client import AsyncClient
    from muybridge.drivers.text_calls import AsyncContentStream, AsyncTextStream
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import (
        GenerateContentChunk,  # noqa: F401  as a text, in a base class
        GenerateContentResponse,
    )

T = TypeVar("T")


class TextStream(BlockingIterator[T]):
    """A streamed reply: a context that sends the request, and an iterator over its chunks.

    Leaving the context closes the connection, also in the middle of the answer.

    Args:
        stream: The same as coroutines.
    """

    def __init__(self, stream: AsyncTextStream[T]) -> None:
        super().__init__(stream)
        self._stream = stream

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, those already iterated over among them."""
        return self._stream.received()


class ContentStream(TextStream["GenerateContentChunk"]):
    """A streamed reply in the native protocol."""

    def __init__(self, stream: AsyncContentStream) -> None:
        super().__init__(stream)
        self._content = stream

    def collect(self) -> GenerateContentResponse:
        """Read what is still to come, and return one response with all that the stream held.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        return run(self._content.collect)


class TextClient:
    """The text endpoints of a `Client` (spec, "Text endpoints").

    A text request costs money, so that it is sent at most once, unless it certainly did not reach
    the service or was answered 429. Ctrl-C breaks it off at any time.
    """

    _client: AsyncClient

    def generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> GenerateContentResponse:
        """Generate text, and return it whole.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer: a string, a part, a turn, several of them, or a
                `Conversation`.
            system_instruction: What the model is told about its task, or None. A mapping is a turn
                in its form on the wire.
            generation_config: Settings for the answer, or None. A mapping has them by their names
                on the wire or in `GenerationConfig`.
            extra: Other fields of the request by their names on the wire.
            timeout: Seconds that it may take, with all its tries.
            size_limit: Most bytes of the reply.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused: `Unauthorized`, `Forbidden`, `RateLimited` or other.
            TextAmbiguous: It may have been answered; it was not sent again.
        """
        return run(
            self._client.generate_content,
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
            timeout=timeout,
            size_limit=size_limit,
        )

    def stream_generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = None,
        generation_config: GenerationConfig | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
    ) -> ContentStream:
        """Return a context that generates text and gives it in chunks as they come.

            with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                for chunk in chunks:
                    print(chunk.text, end="")

        Nothing is sent before the context is entered. Leaving it closes the connection.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer, as for `generate_content`.
            system_instruction: What the model is told about its task, or None. A mapping is a turn
                in its form on the wire.
            generation_config: Settings for the answer, or None. A mapping has them by their names
                on the wire or in `GenerationConfig`.
            extra: Other fields of the request by their names on the wire.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of the reply in all.
            silence: Seconds that may pass without a byte of the reply, or None for no limit.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            ServiceError: On entering: as `generate_content`.
            StreamInterrupted: On iterating: the reply ended before the answer was complete. What
                had arrived is in the error.
        """
        return ContentStream(
            self._client.stream_generate_content(
                model,
                contents,
                system_instruction=system_instruction,
                generation_config=generation_config,
                extra=extra,
                timeout=timeout,
                size_limit=size_limit,
                silence=silence,
            )
        )

    def chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> JsonObject:
        """Send a request to the chat completions endpoint, and return its reply.

        The specification does not show its shapes: what you give travels as it is.

        Args:
            body: The JSON body.
            timeout: Seconds that it may take, with all its tries.
            size_limit: Most bytes of the reply.

        Raises:
            MuybridgeError: As `generate_content`.
        """
        return run(self._client.chat_completions, body, timeout=timeout, size_limit=size_limit)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
    ) -> TextStream[JsonObject]:
        """Return a context that sends a chat completions request and gives the reply's chunks.

        Args:
            body: The JSON body; `stream` is set in it.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of the reply in all.
            silence: Seconds that may pass without a byte of the reply, or None for no limit.

        Raises:
            MuybridgeError: As `stream_generate_content`.
        """
        return TextStream(
            self._client.stream_chat_completions(
                body, timeout=timeout, size_limit=size_limit, silence=silence
            )
        )

    def messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> JsonObject:
        """Send a request to the messages endpoint, and return its reply.

        The specification shows neither its shapes nor its path: what you give travels as it is.

        Args:
            body: The JSON body.
            path: The endpoint's path below the text base URL.
            timeout: Seconds that it may take, with all its tries.
            size_limit: Most bytes of the reply.

        Raises:
            InvalidAddress: The path leaves the text base URL's origin.
            MuybridgeError: As `generate_content`.
        """
        return run(self._client.messages, body, path=path, timeout=timeout, size_limit=size_limit)

    def stream_messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
    ) -> TextStream[JsonObject]:
        """Return a context that sends a messages request and gives the reply's events.

        Args:
            body: The JSON body; `stream` is set in it.
            path: The endpoint's path below the text base URL.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of the reply in all.
            silence: Seconds that may pass without a byte of the reply, or None for no limit.

        Raises:
            MuybridgeError: As `stream_generate_content`.
        """
        return TextStream(
            self._client.stream_messages(
                body, path=path, timeout=timeout, size_limit=size_limit, silence=silence
            )
        )
