"""The text endpoints for ordinary, blocking code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from muybridge.sync_driver import Driver
from muybridge.text_calls import Bounds, StreamPlan, TextCalls
from muybridge.wire.transport import TransportError
from muybridge_protocol.codec import JsonObject
from muybridge_protocol.families import Unlisted
from muybridge_protocol.operations.text import TEXT_TIMEOUT
from muybridge_protocol.text.content import Content, GenerationConfig
from muybridge_protocol.text.dialects import CHAT, MESSAGES
from muybridge_protocol.text.encoding import CHAT_PATH, MESSAGES_PATH, REPLY_LIMIT
from muybridge_protocol.text.request import Contents
from muybridge_protocol.text.responses import (
    GenerateContentChunk,
    GenerateContentResponse,
    collect,
)
from muybridge_protocol.text.stream_reader import StreamInterrupted

T = TypeVar("T")


class TextStream(Generic[T]):
    """A streamed reply: a context that sends the request, and an iterator over its chunks.

    Leaving the context closes the connection, also in the middle of the answer.

    Args:
        driver: What it is driven with.
        plan: What to send.
    """

    def __init__(self, driver: Driver, plan: StreamPlan[T]) -> None:
        self._driver = driver
        self._plan: StreamPlan[T] | None = plan
        self._reader = plan.reader()
        self._opened = ExitStack()
        self._chunks: Iterator[T] = iter(())

    def __enter__(self) -> Self:
        plan, self._plan = self._plan, None
        if plan is None:
            raise RuntimeError("a stream is opened once; make another to ask, and pay, again")
        operation = plan.start(self._driver.clock.monotonic())
        reply = self._driver.open_stream(operation, self._opened)
        self._chunks = self._read(reply.pieces())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._chunks = iter(())
        self._opened.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        return next(self._chunks)

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, those already iterated over among them."""
        return tuple(self._reader.received())

    def _read(self, pieces: Iterator[bytes]) -> Iterator[T]:
        try:
            for piece in pieces:
                yield from self._reader.take(piece)
            yield from self._reader.end()
        except TransportError as error:
            interruption = self._reader.fail(error.failure)
        except StreamInterrupted as error:
            interruption = error
        else:
            return
        # Outside of the handler, so that no frame of a foreign library hangs on the error.
        if interruption is not None:
            raise self._driver.credentials.redact_interruption(interruption)


class ContentStream(TextStream[GenerateContentChunk]):
    """A streamed reply in the native protocol."""

    def collect(self) -> GenerateContentResponse:
        """Read what is still to come, and return one response with all that the stream held.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        for _ in self:
            pass
        return collect(self._reader.received())


class TextClient:
    """The text endpoints of a `Client` (spec, "Text endpoints").

    A text request costs money, so that it is sent at most once, unless it certainly did not reach
    the service or was answered 429. Ctrl-C breaks it off at any time.
    """

    _driver: Driver
    _text: TextCalls

    def generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | None = None,
        generation_config: GenerationConfig | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> GenerateContentResponse:
        """Generate text, and return it whole.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer: a string, a part, a turn, several of them, or a
                `Conversation`.
            system_instruction: What the model is told about its task, or None.
            generation_config: Settings for the answer, or None.
            extra: Other fields of the request by their names on the wire.
            timeout: Seconds that it may take, with all its tries.
            size_limit: Most bytes of the reply.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            NotSent: The service was not reached; nothing was charged.
            Refused: The service refused: `Unauthorized`, `Forbidden`, `RateLimited` or other.
            TextAmbiguous: It may have been answered; it was not sent again.
        """
        call = self._text.generate(
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
            bounds=Bounds(timeout=timeout, size_limit=size_limit),
            now=self._driver.clock.monotonic(),
        )
        return self._driver.finish(call)

    def stream_generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | None = None,
        generation_config: GenerationConfig | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> ContentStream:
        """Return a context that generates text and gives it in chunks as they come.

            with client.stream_generate_content("textg-2.5-pro", "Tell me of horses.") as chunks:
                for chunk in chunks:
                    print(chunk.text, end="")

        Nothing is sent before the context is entered. Leaving it closes the connection.

        Args:
            model: A model of `TEXT_MODELS`, or `Unlisted(name)` for another.
            contents: What to answer, as for `generate_content`.
            system_instruction: What the model is told about its task, or None.
            generation_config: Settings for the answer, or None.
            extra: Other fields of the request by their names on the wire.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of one chunk. Twice as many may come in all.

        Raises:
            InvalidRequest: The service would not accept it; nothing was sent.
            ServiceError: On entering: as `generate_content`.
            StreamInterrupted: On iterating: the reply ended before the answer was complete. What
                had arrived is in the error.
        """
        plan = self._text.stream_generate(
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
            bounds=Bounds(timeout=timeout, size_limit=size_limit),
        )
        return ContentStream(self._driver, plan)

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
        bounds = Bounds(timeout=timeout, size_limit=size_limit)
        return self._call(body, CHAT_PATH, bounds)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> TextStream[JsonObject]:
        """Return a context that sends a chat completions request and gives the reply's chunks.

        Args:
            body: The JSON body; `stream` is set in it.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of one chunk. Twice as many may come in all.

        Raises:
            MuybridgeError: As `stream_generate_content`.
        """
        bounds = Bounds(timeout=timeout, size_limit=size_limit)
        plan = self._text.stream_mapping(body, CHAT_PATH, CHAT, bounds=bounds)
        return TextStream(self._driver, plan)

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
        bounds = Bounds(timeout=timeout, size_limit=size_limit)
        return self._call(body, path, bounds)

    def stream_messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
    ) -> TextStream[JsonObject]:
        """Return a context that sends a messages request and gives the reply's events.

        Args:
            body: The JSON body; `stream` is set in it.
            path: The endpoint's path below the text base URL.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of one event. Twice as many may come in all.

        Raises:
            MuybridgeError: As `stream_generate_content`.
        """
        bounds = Bounds(timeout=timeout, size_limit=size_limit)
        plan = self._text.stream_mapping(body, path, MESSAGES, bounds=bounds)
        return TextStream(self._driver, plan)

    def _call(self, body: Mapping[str, Any], path: str, bounds: Bounds) -> JsonObject:
        now = self._driver.clock.monotonic()
        return self._driver.finish(self._text.mapping(body, path, bounds=bounds, now=now))
