"""The text endpoints as coroutines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Never

from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.misplaced import refuse_misplaced
from muybridge_protocol.families import Unlisted
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.defaults import (
    CHAT_PATH,
    MESSAGES_PATH,
    NO_BODY,
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
    """The text endpoints of a `BaseClient` (spec, "Text endpoints").

    A text request costs money, so it is resent only if it certainly did not reach the service or
    was answered with 429. A cancellation aborts it at once.
    """

    _calls: Calls
    _closed: bool = False
    _text_calls: TextCalls | None = None

    @property
    def _driver(self) -> Driver:
        """Drives operations on the caller's event loop, or in blocking code.

        Raises:
            RuntimeError: The client cannot be used here. Nothing was sent.
        """
        raise NotImplementedError

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this client is closed, and nothing was sent: make another one")

    def _now(self) -> float:
        """Return the time at which a call begins."""
        self._check_open()
        return self._driver.runtime.now()

    @property
    def _text(self) -> TextCalls:
        """What sends text requests, as long as the client is open."""
        self._check_open()
        driver = self._driver  # raises if the client cannot be used here
        if self._text_calls is None:
            from muybridge.drivers.text_calls import TextCalls  # noqa: PLC0415  it takes a while

            self._text_calls = TextCalls(self._calls.service, driver)
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
        **_misplaced: Never,
    ) -> AsyncContentStream:
        """Return a context manager that generates text and yields it in chunks as they arrive.

            async with client.stream_generate_content("textg-2.5-pro", "Of horses.") as chunks:
                async for chunk in chunks:
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
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, CHAT_PATH, limits)

    def stream_chat_completions(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        **_misplaced: Never,
    ) -> AsyncTextStream[JsonObject]:
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
        return self._text.stream_chat(
            body, {"timeout": timeout, "size_limit": size_limit, "silence": silence}
        )

    async def messages(
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
        limits: Limits = {"timeout": timeout, "size_limit": size_limit}
        return await self._text.mapping(body, path, limits)

    def stream_messages(
        self,
        body: Mapping[str, Any] = NO_BODY,
        *,
        path: str = MESSAGES_PATH,
        timeout: float = TEXT_TIMEOUT,
        size_limit: int = REPLY_LIMIT,
        silence: float | None = SILENCE_LIMIT,
        **_misplaced: Never,
    ) -> AsyncTextStream[JsonObject]:
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
        return self._text.stream_messages(
            body, path, {"timeout": timeout, "size_limit": size_limit, "silence": silence}
        )
