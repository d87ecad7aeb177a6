"""The text endpoints for ordinary, blocking code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never, TypeVar

from muybridge.drivers.blocking import BlockingIterator, run
from muybridge.misplaced import refuse_misplaced
from muybridge_protocol.families import Unlisted
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.defaults import (
    MESSAGES_PATH,
    NO_BODY,
    REPLY_LIMIT,
    SILENCE_LIMIT,
    TEXT_TIMEOUT,
)

if TYPE_CHECKING:
    from muybridge.base_client import BaseClient
    from muybridge.drivers.text_calls import AsyncContentStream, AsyncTextStream
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import (
        GenerateContentChunk,  # noqa: F401  as a text, in a base class
        GenerateContentResponse,
    )

T = TypeVar("T")


class TextStream(BlockingIterator[T]):
    """A streamed response: entering the context sends the request, iterating yields the chunks.

    Leaving the context closes the connection, even in the middle of the answer.

    Args:
        stream: The asynchronous stream to run.
    """

    def __init__(self, stream: AsyncTextStream[T]) -> None:
        super().__init__(stream)
        self._stream = stream

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, including those already iterated over."""
        return self._stream.received()


class ContentStream(TextStream["GenerateContentChunk"]):
    """A streamed response in the native protocol."""

    def __init__(self, stream: AsyncContentStream) -> None:
        super().__init__(stream)
        self._content = stream

    def collect(self) -> GenerateContentResponse:
        """Read the rest of the stream, and combine all its chunks into one response.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        return run(self._content.collect)


class TextClient:
    """The text endpoints of a `Client` (spec, "Text endpoints").

    A text request costs money, so it is resent only if it certainly did not reach the service or
    was answered with 429. Ctrl-C aborts it at once.
    """

    _client: BaseClient

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
        **_misplaced: Never,
    ) -> GenerateContentResponse:
        """Generate text, and return it whole.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer: a string, a part, a turn, several of them, or a
                `Conversation`.
            system_instruction: Instructions for the model, or None. A mapping is a turn in wire
                format.
            generation_config: Settings for the answer, or None. A mapping may use wire names or
                those of `GenerationConfig`.
            extra: Other fields of the request, by their wire names.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused it (`Unauthorized`, `Forbidden`, `RateLimited`, ...).
            TextAmbiguous: The request may have been answered and charged; it was not retried.
        """
        refuse_misplaced(self, "generate_content", _misplaced)
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
        **_misplaced: Never,
    ) -> ContentStream:
        """Return a context manager that generates text and yields it in chunks as they arrive.

            with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                for chunk in chunks:
                    print(chunk.text, end="")

        Nothing is sent before the context is entered. Leaving it closes the connection.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer, as for `generate_content`.
            system_instruction: Instructions for the model, or None. A mapping is a turn in wire
                format.
            generation_config: Settings for the answer, or None. A mapping may use wire names or
                those of `GenerationConfig`.
            extra: Other fields of the request, by their wire names.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            ServiceError: On entering, as for `generate_content`.
            StreamInterrupted: On iterating, if the response ends before the answer is complete. The
                error has the chunks that arrived.
        """
        refuse_misplaced(self, "stream_generate_content", _misplaced)
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
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        **_misplaced: Never,
    ) -> JsonObject:
        """Send a request to the chat completions endpoint, and return the response.

        The specification does not describe its format, so *body* is sent as given.

        Args:
            body: The JSON body.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.

        Raises:
            MuybridgeError: As for `generate_content`.
        """
        refuse_misplaced(self, "chat_completions", _misplaced)
        return run(self._client.chat_completions, body, timeout=timeout, size_limit=size_limit)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        **_misplaced: Never,
    ) -> TextStream[JsonObject]:
        """Return a context manager that sends a chat completions request and yields the chunks.

        Args:
            body: The JSON body; `stream` is set in it.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.

        Raises:
            MuybridgeError: As for `stream_generate_content`.
        """
        refuse_misplaced(self, "stream_chat_completions", _misplaced)
        return TextStream(
            self._client.stream_chat_completions(
                body, timeout=timeout, size_limit=size_limit, silence=silence
            )
        )

    def messages(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        **_misplaced: Never,
    ) -> JsonObject:
        """Send a request to the messages endpoint, and return the response.

        The specification describes neither its format nor its path, so *body* is sent as given.

        Args:
            body: The JSON body.
            path: The endpoint's path below the text base URL.
            timeout: Maximum seconds, including retries.
            size_limit: Maximum size of the response, in bytes.

        Raises:
            InvalidAddress: The path is outside the text base URL's origin.
            MuybridgeError: As for `generate_content`.
        """
        refuse_misplaced(self, "messages", _misplaced)
        return run(self._client.messages, body, path=path, timeout=timeout, size_limit=size_limit)

    def stream_messages(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        **_misplaced: Never,
    ) -> TextStream[JsonObject]:
        """Return a context manager that sends a messages request and yields the events.

        Args:
            body: The JSON body; `stream` is set in it.
            path: The endpoint's path below the text base URL.
            timeout: Maximum seconds until the end of the response, including retries.
            size_limit: Maximum size of the response, in bytes.
            silence: Maximum seconds without a byte of the response, or None for no limit.

        Raises:
            MuybridgeError: As for `stream_generate_content`.
        """
        refuse_misplaced(self, "stream_messages", _misplaced)
        return TextStream(
            self._client.stream_messages(
                body, path=path, timeout=timeout, size_limit=size_limit, silence=silence
            )
        )
