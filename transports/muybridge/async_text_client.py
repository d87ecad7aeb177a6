"""The text endpoints for programs that run under trio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
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
    from muybridge.drivers.text_calls import AsyncContentStream, AsyncTextStream, Limits, TextCalls
    from muybridge_protocol.text.content import Content, GenerationConfig
    from muybridge_protocol.text.request import Contents
    from muybridge_protocol.text.responses import GenerateContentResponse


class AsyncTextClient:
    """The text endpoints of a `TrioClient` (spec, "Text endpoints").

    A text request costs money, so that it is sent at most once, unless it certainly did not reach
    the service or was answered 429. It may be cancelled at any time, and is then broken off.
    """

    _driver: Driver
    _calls: Calls
    _closed: bool = False
    _text_calls: TextCalls | None = None

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this client is closed, and nothing was sent: make another one")

    def _now(self) -> float:
        """Return the moment at which a call begins."""
        self._check_open()
        return self._driver.runtime.now()

    @property
    def _text(self) -> TextCalls:
        """What sends text requests, as long as the client is open."""
        self._check_open()
        if self._text_calls is None:
            from muybridge.drivers.text_calls import TextCalls  # noqa: PLC0415  it takes a while

            self._text_calls = TextCalls(self._calls.service, self._driver)
        return self._text_calls

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
        return await self._text.generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit},
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
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
        return self._text.stream_generate(
            model,
            contents,
            {"timeout": timeout, "size_limit": size_limit, "silence": silence},
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )

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
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, CHAT_PATH, limits)

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
        return self._text.stream_chat(
            body, {"timeout": timeout, "size_limit": size_limit, "silence": silence}
        )

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
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, path, limits)

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
        return self._text.stream_messages(
            body, path, {"timeout": timeout, "size_limit": size_limit, "silence": silence}
        )
