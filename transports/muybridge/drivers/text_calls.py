"""The text requests of a client at their beginning, and streams: what every driver shares.

It brings all of the core's text with it, so that a client loads it with its first text request.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from muybridge.credentials import Credentials
from muybridge.drivers.calls import is_time, warn_caller
from muybridge.drivers.listeners import SilentTracker
from muybridge.wire.transport import TransportError
from muybridge_protocol.errors import PlainHttpWarning, ServiceError
from muybridge_protocol.families import Unlisted
from muybridge_protocol.hosts import is_clear_text
from muybridge_protocol.http import HttpHead, HttpRequest
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
    collect,
)
from muybridge_protocol.text.stream_reader import StreamReader

T = TypeVar("T")


class Bounds(TypedDict):
    """What one text request may take.

    Attributes:
        timeout: Seconds, with all its tries and until the end of its reply.
        size_limit: Most bytes of the reply, whole or streamed.
    """

    timeout: float
    size_limit: int


class StreamBounds(Bounds):
    """What a text request with a streamed reply may take.

    Attributes:
        silence: Seconds that may pass without a byte of the reply, or None for no limit.
    """

    silence: float | None


class Said(TypedDict):
    """What a request in the native protocol says beside its model and its contents."""

    system_instruction: str | Content | Mapping[str, Any] | None
    generation_config: GenerationConfig | Mapping[str, Any] | None
    extra: Mapping[str, Any] | None


class StreamCall(Generic[T]):
    """A text request whose reply is streamed: sent once, and what has come of it so far.

    Args:
        request: The request as it is sent.
        dialect: What the events of its reply are.
        service: Where the service is.
        credentials: What takes the key out of what the service says.
        bounds: What it may take.
    """

    def __init__(
        self,
        request: HttpRequest,
        dialect: Dialect[T],
        service: Service,
        credentials: Credentials,
        bounds: StreamBounds,
    ) -> None:
        self._request = request
        self._service = service
        self._credentials = credentials
        self._timeout = bounds["timeout"]
        self._reader = StreamReader(
            dialect, event_limit=bounds["size_limit"], clean=credentials.redact_partial
        )
        self._chunks: Iterator[T] = iter(())
        self._started = False
        self._ended = False
        self._left = False
        self._tracker: SilentTracker
        self._unread = False

    def start(self, now: float) -> OpenStream:
        """Return the operation that sends it, at its beginning.

        Raises:
            RuntimeError: That has been done before.
        """
        if self._started:
            raise RuntimeError("a stream is opened once; make another to ask, and pay, again")
        self._started = True
        return OpenStream.start(
            self._request, self._service, now=now, seed=_seed(), timeout=self._timeout
        )

    def track(self, tracker: SilentTracker, head: HttpHead) -> None:
        """Tell *tracker* from now on what comes after *head*."""
        self._tracker = tracker
        self._reader.end_is_told = head.tells_end

    def check_opened(self) -> None:
        """Raise `RuntimeError` if the request has not been sent."""
        if not self._started:
            raise RuntimeError("nothing was asked yet: a stream is read inside its `with` block")

    @property
    def ended(self) -> bool:
        """Whether no more of the reply is to be read."""
        return self._ended

    def ready(self) -> T | None:
        """Return the next chunk that has arrived, or None where more has to come first.

        Raises:
            StreamInterrupted: The stream ended, or was left, before the answer was complete.
        """
        chunk = next(self._chunks, None)
        if chunk is None and self._left:
            self._check_complete()
        if chunk is None and self._reader.over and not self._ended:
            self.take(None)  # not to wait for an end that may not come
            chunk = next(self._chunks, None)
        if chunk is not None:
            self._tracker.chunk(chunk)
        return chunk

    def take(self, piece: bytes | None) -> None:
        """Take the next piece of the reply, or None at its end, once no chunk is ready."""
        self._ended = piece is None
        if piece is not None:
            self._tracker.piece(len(piece))
        self._chunks = self._reader.end() if piece is None else self._reader.take(piece)

    def leave(self) -> None:
        """Take note that no more of the reply is to be read."""
        self._unread = not self._ended
        self._ended = self._left = True

    def tell_end_of_reply(self, interruption: ServiceError | None) -> None:
        """Tell that the reply has been received, or that the call ends with an *interruption*."""
        self._tracker.tell_end(())
        if interruption is not None:
            self._tracker.end(interruption)

    def tell_end(self, error: BaseException | None) -> None:
        """Tell that the stream has been left, because of *error* or without one."""
        if error is None:
            try:
                self._tracker.tell_end(())
            except BaseException as raised:  # a listener's
                self._tracker.end(raised)
                raise
        left = GeneratorExit() if self._unread else None
        self._tracker.end(error or left)

    def interruption(self, error: TransportError | ServiceError) -> ServiceError | None:
        """Return what *error* at the reply's end means: nothing, if the answer is complete.

        It has no traceback yet: the frames of the reader have the reply in their variables.
        """
        self._ended = True
        if isinstance(error, TransportError):
            failure = self._credentials.redact_failure(error.failure)
            self._tracker.failed(failure, None)
            return self._reader.fail(failure)
        error.__context__ = None
        return error.with_traceback(None)

    def received(self) -> tuple[T, ...]:
        """Return every chunk that has arrived so far."""
        return tuple(self._reader.received())

    def collect(self: StreamCall[GenerateContentChunk]) -> GenerateContentResponse:
        """Return one response with all that the stream held.

        Raises:
            StreamInterrupted: The answer is not complete.
        """
        self._check_complete()
        return collect(self._reader.received())

    def _check_complete(self) -> None:
        interruption = self._reader.leave()
        if interruption is not None:
            raise interruption


class TextCalls:
    """Begins text requests to one service.

    Args:
        service: Where the service is.
        credentials: What takes the key out of what the service says.
    """

    def __init__(self, service: Service, credentials: Credentials) -> None:
        self._service = service
        self._credentials = credentials
        self._warned = False

    def generate(
        self,
        model: str | Unlisted,
        contents: Contents,
        bounds: Bounds,
        *,
        now: float,
        **said: Unpack[Said],
    ) -> TextCall[GenerateContentResponse]:
        """Return the operation that generates text and reads it whole."""
        request = GenerateContentRequest.build(model, contents, **said)
        sent = encode_content(request, self._service, size_limit=bounds["size_limit"])
        return self._call(sent, GenerateContentResponse, bounds, now)

    def stream_generate(
        self, model: str | Unlisted, contents: Contents, bounds: StreamBounds, **said: Unpack[Said]
    ) -> StreamCall[GenerateContentChunk]:
        """Return the call that generates text in chunks."""
        request = GenerateContentRequest.build(model, contents, **said)
        sent = encode_content(
            request,
            self._service,
            stream=True,
            size_limit=bounds["size_limit"],
            silence=bounds["silence"],
        )
        return self._stream(sent, NATIVE, bounds)

    def mapping(
        self, body: Mapping[str, Any], path: str, bounds: Bounds, *, now: float
    ) -> TextCall[JsonObject]:
        """Return the operation that sends *body* as it is and reads the whole reply."""
        sent = encode_mapping(body, self._service, path=path, size_limit=bounds["size_limit"])
        return self._call(sent, _as_it_is, bounds, now)

    def stream_chat(self, body: Mapping[str, Any], bounds: StreamBounds) -> StreamCall[JsonObject]:
        """Return the call that sends *body* to chat completions and streams the reply."""
        return self._stream(self._streamed(body, CHAT_PATH, bounds), CHAT, bounds)

    def stream_messages(
        self, body: Mapping[str, Any], path: str, bounds: StreamBounds
    ) -> StreamCall[JsonObject]:
        """Return the call that sends *body* to messages at *path* and streams the reply."""
        return self._stream(self._streamed(body, path, bounds), MESSAGES, bounds)

    def _streamed(self, body: Mapping[str, Any], path: str, bounds: StreamBounds) -> HttpRequest:
        return encode_mapping(
            body,
            self._service,
            path=path,
            stream=True,
            size_limit=bounds["size_limit"],
            silence=bounds["silence"],
        )

    def _call(
        self, sent: HttpRequest, read: Callable[[JsonObject], T], bounds: Bounds, now: float
    ) -> TextCall[T]:
        _check(bounds["timeout"], bounds["size_limit"])
        self._warn_of_clear_text()
        return TextCall[T].start(
            sent, read, self._service, now=now, seed=_seed(), timeout=bounds["timeout"]
        )

    def _stream(
        self, sent: HttpRequest, dialect: Dialect[T], bounds: StreamBounds
    ) -> StreamCall[T]:
        _check(bounds["timeout"], bounds["size_limit"])
        silence = bounds["silence"]
        if silence is not None and not is_time(silence):
            raise ValueError(
                f"silence must be a positive number of seconds, or None (got {silence!r})"
            )
        self._warn_of_clear_text()
        return StreamCall(sent, dialect, self._service, self._credentials, bounds)

    def _warn_of_clear_text(self) -> None:
        """Warn once that the key is readable on its way, unless it stays on this machine."""
        url = self._service.text_base_url
        if self._warned or url is None:
            return
        scheme, host, _ = origin_of(url)
        if is_clear_text(scheme, host):
            warn_caller(f"The API key travels in clear text to {url}.", PlainHttpWarning)
        # Not before: who makes an error of the warning wants nothing sent the next time either.
        self._warned = True


def _check(timeout: object, size_limit: object) -> None:
    if not is_time(timeout):
        raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
    if not isinstance(size_limit, int | float) or size_limit < 1:
        raise ValueError(f"size_limit={size_limit!r} is no size; give bytes above 0")


def _as_it_is(record: JsonObject) -> JsonObject:
    return record


def _seed() -> int:
    return random.getrandbits(32)
