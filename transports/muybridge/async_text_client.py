"""The text endpoints for programs that run under trio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver, StreamOpening
from muybridge.drivers.interrupts import hide_frames
from muybridge.drivers.notes import TEXT_UNDER_WAY
from muybridge.wire.transport import TransportError
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.families import Unlisted
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.defaults import (
    CHAT_PATH,
    MESSAGES_PATH,
    REPLY_LIMIT,
    SILENCE_LIMIT,
    TEXT_TIMEOUT,
)

if TYPE_CHECKING:
    from muybridge.drivers.text_calls import Bounds, StreamBounds, StreamCall, TextCalls
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import (
        GenerateContentChunk,  # noqa: F401  as a text, in a base class
        GenerateContentResponse,
    )

T = TypeVar("T")


class AsyncTextStream(Generic[T]):
    """A streamed reply: a context that sends the request, and an iterator over its chunks.

    Leaving the context closes the connection, also in the middle of the answer.

    Args:
        driver: What it is driven with.
        call: What to send.
    """

    def __init__(self, driver: Driver, call: StreamCall[T]) -> None:
        self._driver = driver
        self._call = call
        self._pieces: AsyncIterator[bytes]
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        operation = self._call.start(self._driver.runtime.now())
        async with AsyncExitStack() as opening:
            reply, tracker = await StreamOpening(self._driver, operation, opening).open()
            self._call.track(tracker, reply.head)
            self._pieces = reply.pieces()
            self._opened = opening.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._call.leave()
        try:
            await self._opened.aclose()
        finally:
            self._call.tell_end(error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self._call.check_opened()
        interruption = None
        try:
            while (chunk := self._call.ready()) is None and not self._call.ended:
                # The piece itself is in no variable, which a traceback might show.
                self._call.take(await anext(self._pieces, None))
            if chunk is not None:
                return chunk
        except (TransportError, ServiceError) as error:
            interruption = self._call.interruption(error)
        except self._driver.runtime.cancelled:
            raise
        except BaseException as error:
            error.add_note(TEXT_UNDER_WAY)
            hide_frames(error)
            raise
        self._call.tell_end_of_reply(interruption)
        # Outside of the handler, so that no frame of a foreign library hangs on the error.
        if interruption is not None:
            raise interruption
        raise StopAsyncIteration

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, those already iterated over among them."""
        return self._call.received()


class AsyncContentStream(AsyncTextStream["GenerateContentChunk"]):
    """A streamed reply in the native protocol."""

    async def collect(self) -> GenerateContentResponse:
        """Read what is still to come, and return one response with all that the stream held.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        async for _ in self:
            pass
        return self._call.collect()


class AsyncTextClient:
    """The text endpoints of a `TrioClient` (spec, "Text endpoints").

    A text request costs money, so that it is sent at most once, unless it certainly did not reach
    the service or was answered 429. It may be cancelled at any time, and is then broken off.
    """

    _driver: Driver
    _calls: Calls
    _closed: bool = False

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this client is closed, and nothing was sent: make another one")

    def _now(self) -> float:
        """Return the moment at which a call begins."""
        self._check_open()
        return self._driver.runtime.now()

    @cached_property
    def _text(self) -> TextCalls:
        from muybridge.drivers.text_calls import TextCalls  # noqa: PLC0415  loading it takes a while

        return TextCalls(self._calls.service, self._driver.credentials)

    async def generate_content(
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
        call = self._text.generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit},
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
            now=self._now(),
        )
        return await self._driver.finish(call)

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
    ) -> AsyncContentStream:
        """Return a context that generates text and gives it in chunks as they come.

            async with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                async for chunk in chunks:
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
        self._check_open()
        call = self._text.stream_generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit, "silence": silence},
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )
        return AsyncContentStream(self._driver, call)

    async def chat_completions(
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
        bounds: Bounds = {"timeout": timeout, "size_limit": size_limit}
        call = self._text.mapping(body, CHAT_PATH, bounds, now=self._now())
        return await self._driver.finish(call)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
    ) -> AsyncTextStream[JsonObject]:
        """Return a context that sends a chat completions request and gives the reply's chunks.

        Args:
            body: The JSON body; `stream` is set in it.
            timeout: Seconds until the end of the reply, with all tries.
            size_limit: Most bytes of the reply in all.
            silence: Seconds that may pass without a byte of the reply, or None for no limit.

        Raises:
            MuybridgeError: As `stream_generate_content`.
        """
        self._check_open()
        bounds: StreamBounds = {
            "timeout": timeout,
            "size_limit": size_limit,
            "silence": silence,
        }
        call = self._text.stream_chat(body, bounds)
        return AsyncTextStream(self._driver, call)

    async def messages(
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
        bounds: Bounds = {"timeout": timeout, "size_limit": size_limit}
        call = self._text.mapping(body, path, bounds, now=self._now())
        return await self._driver.finish(call)

    def stream_messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
    ) -> AsyncTextStream[JsonObject]:
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
        self._check_open()
        bounds: StreamBounds = {
            "timeout": timeout,
            "size_limit": size_limit,
            "silence": silence,
        }
        call = self._text.stream_messages(body, path, bounds)
        return AsyncTextStream(self._driver, call)
