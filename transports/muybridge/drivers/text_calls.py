"""The text requests of a client, whole and streamed, written once for every runtime.

This module imports all of the core's text code, so clients load it with their first text request.

A stream combines two state machines: `StreamOpening` drives the request up to the head of the
response, and a `StreamReader` of the core turns the body into chunks and decides what its end
means. All that is left to do here is to request the next piece when no chunk is ready, and to tell
the listeners. Whatever a step raises, the stream stays consistent: after Ctrl-C in the middle of a
stream, what has arrived can still be read.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NotRequired, Self, TypedDict, TypeVar, Unpack

from muybridge.drivers.calls import is_time, warn_caller
from muybridge.drivers.driver import Drive, Driver, Stream
from muybridge.drivers.listeners import SilentTracker
from muybridge.drivers.notes import TEXT_UNDER_WAY
from muybridge.signals import hide_frames
from muybridge.wire.async_transport import AsyncStreamedResponse, beginning
from muybridge.wire.transport import TransportError
from muybridge_protocol.errors import PlainHttpWarning, ServiceError
from muybridge_protocol.families import Unlisted
from muybridge_protocol.hosts import is_clear_text
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.service import Service, origin_of
from muybridge_protocol.text.content import Content, GenerationConfig
from muybridge_protocol.text.defaults import CHAT_PATH
from muybridge_protocol.text.dialects import CHAT, MESSAGES, NATIVE, Dialect
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import Contents, GenerateContentRequest
from muybridge_protocol.text.responses import (
    GenerateContentChunk,
    GenerateContentResponse,
    UsageMetadata,
    collect,
)
from muybridge_protocol.text.stream_reader import StreamReader

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking
    from muybridge_protocol.purchases import Tags

T = TypeVar("T")

Book = Callable[[Operation[Any]], "Booking | None"]
"""Returns what books an operation, or None for the driver's choice."""


class StreamOpening(Drive[OpenStream]):
    """A text request whose response is streamed, up to its head.

    Args:
        driver: The driver of its client.
        operation: The operation at its beginning.
        opened: Closes the response.
        booking: Books it in the store, or None for the driver's choice.
    """

    def __init__(
        self,
        driver: Driver,
        operation: OpenStream,
        opened: AsyncExitStack,
        booking: Booking | None,
    ) -> None:
        super().__init__(driver, operation, booking=booking)
        self._opened = opened
        self._response: AsyncStreamedResponse | None = None

    async def open(self) -> tuple[AsyncStreamedResponse, SilentTracker, Booking | None]:
        """Return the response whose body is the stream, the tracker of the call, and its booking.

        Raises:
            ServiceError: The operation failed.
        """
        while self._response is None:
            if not await self.step():
                self.outcome()
        return self._response, self._tracker, self._booking

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        is_closed = False
        try:
            self._operation = await self._exchange(request, deadline, self._open)
        except GeneratorExit:
            is_closed = True  # nothing can be awaited
            raise
        finally:
            if self._booking is not None and not is_closed:
                await self._booking.record()
        await self._driver.runtime.raise_cancellation()
        if self._response is None:
            self._tracker.tell_end(self._operation.events)

    async def _open(self, stream: Stream) -> HttpResponse | None:
        async with AsyncExitStack() as opening:
            response = await opening.enter_async_context(stream)
            now = self._driver.runtime.now()
            operation = self._operation.accept(response.head, now)
            if operation.settled is not None:
                self._tracker.head(response.head.status, now)
                self._opened.push_async_exit(opening.pop_all())
                self._operation, self._response = operation, response
                return None
            body = await beginning(response)
        return HttpResponse(response.head.status, response.head.headers, body)


class AsyncTextStream(Generic[T]):
    """A streamed response: entering the context sends the request, iterating yields the chunks.

    Leaving the context closes the connection, even in the middle of the answer.

    Args:
        driver: What it is driven with.
        operation: Makes the operation that sends the request, given the current time.
        reader: What reads the response.
        book: Returns what books an operation, or None for the driver's choice.
    """

    def __init__(
        self,
        driver: Driver,
        operation: Callable[[float], OpenStream],
        reader: StreamReader[T],
        book: Book,
    ) -> None:
        self._driver = driver
        self._operation = operation
        self._reader = reader
        self._book = book
        self._opened = AsyncExitStack()
        self._pieces: AsyncIterator[bytes]
        self._tracker: SilentTracker
        self._booking: Booking | None = None
        self._usage: UsageMetadata | None = None
        self._chunks: Iterator[T] = iter(())
        self._entered = False
        self._reading = False
        self._ended = False  # no more of the response is read
        self._left = False

    async def __aenter__(self) -> Self:
        if self._entered:
            raise RuntimeError(
                "a stream opens only once; make another to send, and pay for, a new request"
            )
        self._entered = True
        # Made only here: its deadline counts from now on, and not from when the stream was made.
        operation = self._operation(self._driver.runtime.now())
        async with AsyncExitStack() as opening:
            booking = self._book(operation)
            opened = StreamOpening(self._driver, operation, opening, booking)
            response, self._tracker, self._booking = await opened.open()
            self._reader.end_is_announced = response.head.announces_end
            self._pieces = response.pieces()
            self._opened = opening.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Listeners tell a stream that was left early from one that was read to its end.
        outcome = error if self._ended else error or GeneratorExit()
        self._ended = self._left = True
        try:
            await self._opened.aclose()
        finally:
            try:
                if error is None:
                    self._tracker.tell_end(())
            except BaseException as raised:  # a listener's
                outcome = raised
                raise
            finally:
                self._tracker.end(outcome)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if not self._entered:
            raise RuntimeError("nothing has been sent yet: read a stream inside its `with` block")
        if self._reading:
            raise RuntimeError("another task or thread is already reading this stream")
        try:
            self._reading = True
            return await self._next()
        finally:
            self._reading = False

    async def _next(self) -> T:
        interruption = None
        try:
            while (chunk := self._next_chunk()) is None and not self._ended:
                # No variable refers to the piece, because a traceback might show it.
                self._take(await anext(self._pieces, None))
            if chunk is not None:
                return chunk
        except (TransportError, ServiceError) as error:
            interruption = self._interruption(error)
        except BaseException as error:
            error.add_note(TEXT_UNDER_WAY)
            hide_frames(error)
            raise
        self._tracker.tell_end(())
        # Outside of the handler, so that the error refers to no frame of another library.
        if interruption is not None:
            self._tracker.end(interruption)
            raise interruption
        await self._record_usage()
        raise StopAsyncIteration

    async def _record_usage(self) -> None:
        """Record in the store, once, what the response reports about its tokens."""
        booking, self._booking = self._booking, None
        if booking is not None and self._usage is not None:
            await booking.record_usage(self._usage)
            await self._driver.runtime.raise_cancellation()

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far, including those already iterated over."""
        return tuple(self._reader.received())

    def _next_chunk(self) -> T | None:
        """Return the next chunk that has arrived, or None if more pieces are needed.

        Raises:
            StreamInterrupted: The stream ended, or was closed, before the answer was complete.
        """
        chunk = next(self._chunks, None)
        if chunk is None and self._left:
            self._check_complete()
        if chunk is None and self._reader.over and not self._ended:
            self._take(None)  # instead of waiting for an end that may not come
            chunk = next(self._chunks, None)
        if chunk is not None:
            self._tracker.chunk(chunk)
        return chunk

    def _take(self, piece: bytes | None) -> None:
        """Read the next piece of the response, or None at its end, once no chunk is left."""
        self._ended = piece is None
        if piece is not None:
            self._tracker.piece(len(piece))
        self._chunks = self._reader.end() if piece is None else self._reader.take(piece)

    def _interruption(self, error: TransportError | ServiceError) -> ServiceError | None:
        """Return the error to raise for *error*, or None if the answer is complete.

        It has no traceback yet, because the reader's variables refer to the response.
        """
        self._ended = True
        if isinstance(error, TransportError):
            failure = self._driver.credentials.redact_failure(error.failure)
            self._tracker.failed(failure, None)
            return self._reader.fail(failure)
        error.__context__ = None
        return error.with_traceback(None)

    def _check_complete(self) -> None:
        interruption = self._reader.leave()
        if interruption is not None:
            raise interruption


class AsyncContentStream(AsyncTextStream[GenerateContentChunk]):
    """A streamed response in the native protocol."""

    def _next_chunk(self) -> GenerateContentChunk | None:
        chunk = super()._next_chunk()
        if chunk is not None and self._booking is not None:
            self._usage = chunk.usage_metadata or self._usage
        return chunk

    async def collect(self) -> GenerateContentResponse:
        """Read the rest of the stream, and combine all its chunks into one response.

        Raises:
            StreamInterrupted: The stream ended before the answer was complete.
        """
        async for _ in self:
            pass
        self._check_complete()
        return collect(self._reader.received())


class NativeOptions(TypedDict):
    """The optional arguments of a request in the native protocol."""

    system_instruction: str | Content | Mapping[str, Any] | None
    generation_config: GenerationConfig | Mapping[str, Any] | None
    extra: Mapping[str, Any] | None


class Limits(TypedDict):
    """The limits of a text request.

    Attributes:
        timeout: Maximum seconds until the end of the response, including retries.
        size_limit: Maximum size of the response, in bytes.
        silence: Seconds that may pass without a byte of a streamed response, or None for no
            limit.
    """

    timeout: float
    size_limit: int
    silence: NotRequired[float | None]


class TextCalls:
    """Sends text requests to one service.

    Args:
        service: Where the service is.
        driver: What they are driven with.
        booker: Returns how requests with certain tags are booked.
    """

    def __init__(
        self, service: Service, driver: Driver, booker: Callable[[Tags | None], Book]
    ) -> None:
        self._service = service
        self._driver = driver
        self._booker = booker
        self._warned = False

    async def generate(
        self,
        model: str | Unlisted,
        contents: Contents,
        limits: Limits,
        tags: Tags | None,
        **options: Unpack[NativeOptions],
    ) -> GenerateContentResponse:
        """Generate text, and return it whole."""
        now = self._driver.runtime.now()  # outside of trio this fails, however bad the request is
        request = GenerateContentRequest.build(model, contents, **options)
        sent = encode_content(request, self._service, size_limit=limits["size_limit"])
        return await self._finish(sent, GenerateContentResponse, limits, now, tags)

    def stream_generate(
        self,
        model: str | Unlisted,
        contents: Contents,
        limits: Limits,
        tags: Tags | None,
        **options: Unpack[NativeOptions],
    ) -> AsyncContentStream:
        """Return the stream that generates text in chunks."""
        request = GenerateContentRequest.build(model, contents, **options)
        sent = encode_content(
            request,
            self._service,
            stream=True,
            size_limit=limits["size_limit"],
            silence=limits.get("silence"),
        )
        return AsyncContentStream(self._driver, *self._opening(sent, NATIVE, limits, tags))

    async def mapping(
        self, body: Mapping[str, Any], path: str, limits: Limits, tags: Tags | None
    ) -> JsonObject:
        """Send *body* as given, and return the whole response."""
        now = self._driver.runtime.now()  # the same
        sent = encode_mapping(body, self._service, path=path, size_limit=limits["size_limit"])
        return await self._finish(sent, _as_it_is, limits, now, tags)

    def stream_chat(
        self, body: Mapping[str, Any], limits: Limits, tags: Tags | None
    ) -> AsyncTextStream[JsonObject]:
        """Return the stream that sends *body* to chat completions."""
        return self._stream_mapping(body, CHAT_PATH, CHAT, limits, tags)

    def stream_messages(
        self, body: Mapping[str, Any], path: str, limits: Limits, tags: Tags | None
    ) -> AsyncTextStream[JsonObject]:
        """Return the stream that sends *body* to messages at *path*."""
        return self._stream_mapping(body, path, MESSAGES, limits, tags)

    def _stream_mapping(
        self,
        body: Mapping[str, Any],
        path: str,
        dialect: Dialect[JsonObject],
        limits: Limits,
        tags: Tags | None,
    ) -> AsyncTextStream[JsonObject]:
        sent = encode_mapping(
            body,
            self._service,
            path=path,
            stream=True,
            size_limit=limits["size_limit"],
            silence=limits.get("silence"),
        )
        return AsyncTextStream(self._driver, *self._opening(sent, dialect, limits, tags))

    async def _finish(
        self,
        sent: HttpRequest,
        read: Callable[[JsonObject], T],
        limits: Limits,
        now: float,
        tags: Tags | None,
    ) -> T:
        self._check(**limits)
        book = self._booker(tags)
        call = TextCall[T].start(
            sent,
            read,
            self._service,
            now=now,
            wall=self._driver.runtime.wall(),
            seed=_seed(),
            timeout=limits["timeout"],
        )
        return await self._driver.finish(call, booking=book(call))

    def _opening(
        self, sent: HttpRequest, dialect: Dialect[T], limits: Limits, tags: Tags | None
    ) -> tuple[Callable[[float], OpenStream], StreamReader[T], Book]:
        """Return the operation of a stream, what reads the response, and what books it."""
        timeout = limits["timeout"]
        self._check(**limits)
        reader = StreamReader(
            dialect,
            event_limit=limits["size_limit"],
            clean=self._driver.credentials.redact_partial,
        )
        return (
            lambda now: OpenStream.start(
                sent,
                self._service,
                now=now,
                wall=self._driver.runtime.wall(),
                seed=_seed(),
                timeout=timeout,
            ),
            reader,
            self._booker(tags),
        )

    def _check(self, timeout: object, size_limit: object, silence: object = None) -> None:
        """Check the limits, and warn once if the key is sent in clear text."""
        if not is_time(timeout):
            raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
        if not isinstance(size_limit, int | float) or size_limit < 1:
            raise ValueError(f"size_limit must be a positive number of bytes (got {size_limit!r})")
        if silence is not None and not is_time(silence):
            raise ValueError(
                f"silence must be a positive number of seconds, or None (got {silence!r})"
            )
        url = self._service.text_base_url
        if self._warned or url is None:
            return
        scheme, host, _ = origin_of(url)
        if is_clear_text(scheme, host):
            warn_caller(f"The API key travels in clear text to {url}.", PlainHttpWarning)
        # Set last: if warnings are errors, the next request must not be sent either.
        self._warned = True


def _as_it_is(record: JsonObject) -> JsonObject:
    return record


def _seed() -> int:
    return random.getrandbits(32)
