"""The text requests of a client at their beginning: the part that every driver shares."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from muybridge_protocol.codec import JsonObject
from muybridge_protocol.errors import PlainHttpWarning
from muybridge_protocol.families import Unlisted
from muybridge_protocol.hosts import is_loopback
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.service import Service, origin_of
from muybridge_protocol.text.content import Content, GenerationConfig
from muybridge_protocol.text.dialects import NATIVE, Dialect
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import Contents, GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentChunk, GenerateContentResponse
from muybridge_protocol.text.stream_reader import StreamReader

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Bounds:
    """What one text request may take.

    Args:
        timeout: Seconds, with all its tries and until the end of its reply.
        size_limit: Most bytes of a whole reply, or of one event of a streamed one.

    Raises:
        ValueError: One of them is none.
    """

    timeout: float
    size_limit: int

    def __attrs_post_init__(self) -> None:
        if not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout={self.timeout!r} is no time; give seconds above 0")
        if self.size_limit < 1:
            raise ValueError(f"size_limit={self.size_limit!r} is no size; give bytes above 0")


@attrs.frozen(kw_only=True)
class StreamPlan(Generic[T]):
    """A text request whose reply is to be streamed, not yet sent.

    Args:
        service: Where the service is.
        request: The request as it is sent.
        dialect: What the events of its reply are.
        bounds: What it may take.
    """

    service: Service
    request: HttpRequest
    dialect: Dialect[T]
    bounds: Bounds

    def start(self, now: float) -> OpenStream:
        """Return the operation that sends it, at its beginning."""
        return OpenStream.start(
            self.request, self.service, now=now, seed=_seed(), timeout=self.bounds.timeout
        )

    def reader(self) -> StreamReader[T]:
        """Return what makes chunks of its reply."""
        return StreamReader(self.dialect, event_limit=self.bounds.size_limit)


class TextCalls:
    """Begins text requests to one service.

    Args:
        service: Where the service is.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._warned = False

    def generate(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | None,
        generation_config: GenerationConfig | None,
        extra: Mapping[str, Any] | None,
        bounds: Bounds,
        now: float,
    ) -> TextCall[GenerateContentResponse]:
        """Return the operation that generates text and reads it whole."""
        request = GenerateContentRequest.build(
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )
        sent = encode_content(request, self._service, size_limit=bounds.size_limit)
        return self._call(sent, GenerateContentResponse, bounds, now)

    def stream_generate(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | None,
        generation_config: GenerationConfig | None,
        extra: Mapping[str, Any] | None,
        bounds: Bounds,
    ) -> StreamPlan[GenerateContentChunk]:
        """Return the plan to generate text in chunks."""
        request = GenerateContentRequest.build(
            model,
            contents,
            system_instruction=system_instruction,
            generation_config=generation_config,
            extra=extra,
        )
        sent = encode_content(request, self._service, stream=True, size_limit=bounds.size_limit)
        return self._plan(sent, NATIVE, bounds)

    def mapping(
        self, body: Mapping[str, Any], path: str, *, bounds: Bounds, now: float
    ) -> TextCall[JsonObject]:
        """Return the operation that sends *body* as it is and reads the whole reply."""
        sent = encode_mapping(body, self._service, path=path, size_limit=bounds.size_limit)
        return self._call(sent, _as_it_is, bounds, now)

    def stream_mapping(
        self,
        body: Mapping[str, Any],
        path: str,
        dialect: Dialect[JsonObject],
        *,
        bounds: Bounds,
    ) -> StreamPlan[JsonObject]:
        """Return the plan to send *body* as it is and stream the reply."""
        sent = encode_mapping(
            body, self._service, path=path, stream=True, size_limit=bounds.size_limit
        )
        return self._plan(sent, dialect, bounds)

    def _call(
        self, sent: HttpRequest, read: Callable[[JsonObject], T], bounds: Bounds, now: float
    ) -> TextCall[T]:
        self._warn_of_clear_text()
        return TextCall[T].start(
            sent, read, self._service, now=now, seed=_seed(), timeout=bounds.timeout
        )

    def _plan(self, sent: HttpRequest, dialect: Dialect[T], bounds: Bounds) -> StreamPlan[T]:
        self._warn_of_clear_text()
        return StreamPlan(service=self._service, request=sent, dialect=dialect, bounds=bounds)

    def _warn_of_clear_text(self) -> None:
        """Warn once that the key is readable on its way, unless it stays on this machine."""
        url = self._service.text_base_url
        if self._warned or url is None:
            return
        scheme, host, _ = origin_of(url)
        if scheme == "http" and not is_loopback(host):
            self._warned = True
            warnings.warn(
                f"The API key travels in clear text to {url}.", PlainHttpWarning, stacklevel=5
            )


def _as_it_is(record: JsonObject) -> JsonObject:
    return record


def _seed() -> int:
    return random.getrandbits(32)
