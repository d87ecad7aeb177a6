"""The clients under test, behind the one face that the tests know.

A driver whose methods do not block is wrapped so that they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import muybridge
from muybridge.clock import Clock
from muybridge.testing import SkippingClock
from muybridge.wire.transport import Transport
from muybridge_protocol.families import Unlisted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.purchases import Tags
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.text.content import Content, GenerationConfig
from muybridge_protocol.text.request import Contents
from muybridge_protocol.text.responses import GenerateContentChunk, GenerateContentResponse

from .event_loops import BlockingAsyncClient, Run, asyncio_runs, trio_runs
from .in_process import KEY, AsyncFace, InProcessTransport, World

C = TypeVar("C", covariant=True)  # noqa: PLC0105  the name is that of type checkers


class AnyStream(Protocol[C]):
    """What every stream of chunks does."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def __iter__(self) -> Iterator[C]: ...

    def __next__(self) -> C: ...

    def received(self) -> tuple[C, ...]: ...


class AnyContentStream(AnyStream[GenerateContentChunk], Protocol):
    """What a stream in the native protocol does."""

    def collect(self) -> GenerateContentResponse: ...


class AnyClient(Protocol):
    """What every client does."""

    @property
    def interrupted_tasks(self) -> tuple[Task, ...]: ...

    def close(self) -> None: ...

    def create(
        self,
        request: muybridge.MediaRequest | str,
        fields: Mapping[str, object] | None = ...,
        *,
        tags: Tags | None = ...,
    ) -> Task: ...

    def create_once(
        self,
        once: str,
        request: muybridge.MediaRequest | str,
        fields: Mapping[str, object] | None = ...,
        *,
        tags: Tags | None = ...,
    ) -> Task: ...

    def get(self, task: Task | Result | str) -> Result: ...

    def wait(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None = ...,
        on_update: Callable[[Result], None] | None = ...,
    ) -> Result: ...

    def watch(
        self, task: Task | Result | str, *, timeout: float | None = ...
    ) -> Iterator[Result]: ...

    def run(
        self,
        request: muybridge.MediaRequest | str,
        fields: Mapping[str, object] | None = ...,
        *,
        timeout: float | None = ...,
        on_update: Callable[[Result], None] | None = ...,
        tags: Tags | None = ...,
    ) -> Result: ...

    def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
        sidecar: bool | muybridge.Sidecar = ...,
    ) -> Path: ...

    def read(
        self, source: Result | Task | str, *, timeout: float = ..., size_limit: int = ...
    ) -> bytes: ...

    def save(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        sidecar: bool | muybridge.Sidecar = ...,
    ) -> Path: ...

    def check(
        self,
        request: muybridge.MediaRequest | str,
        fields: Mapping[str, object] | None = ...,
        *,
        files: Any = ...,
        timeout: float = ...,
    ) -> muybridge.MediaReport: ...

    def delete_asset(self, asset_id: str) -> None: ...

    def call(
        self, method: str, path: str, json: object = None, *, tags: Tags | None = ...
    ) -> HttpResponse: ...

    def generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = ...,
        generation_config: GenerationConfig | Mapping[str, Any] | None = ...,
        extra: Mapping[str, Any] | None = ...,
        timeout: float = ...,
        size_limit: int = ...,
        tags: Tags | None = ...,
    ) -> GenerateContentResponse: ...

    def stream_generate_content(
        self,
        model: str | Unlisted,
        contents: Contents,
        *,
        system_instruction: str | Content | Mapping[str, Any] | None = ...,
        generation_config: GenerationConfig | Mapping[str, Any] | None = ...,
        extra: Mapping[str, Any] | None = ...,
        timeout: float = ...,
        size_limit: int = ...,
        silence: float | None = ...,
        tags: Tags | None = ...,
    ) -> AnyContentStream: ...

    def chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = ...,
        size_limit: int = ...,
        tags: Tags | None = ...,
    ) -> JsonObject: ...

    def stream_chat_completions(
        self,
        body: Mapping[str, Any],
        *,
        timeout: float = ...,
        size_limit: int = ...,
        silence: float | None = ...,
        tags: Tags | None = ...,
    ) -> AnyStream[JsonObject]: ...

    def messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = ...,
        timeout: float = ...,
        size_limit: int = ...,
        tags: Tags | None = ...,
    ) -> JsonObject: ...

    def stream_messages(
        self,
        body: Mapping[str, Any],
        *,
        path: str = ...,
        timeout: float = ...,
        size_limit: int = ...,
        silence: float | None = ...,
        tags: Tags | None = ...,
    ) -> AnyStream[JsonObject]: ...


class MakeClient(Protocol):
    """Makes a client of the driver under test."""

    def __call__(self, where: str | World, **options: Any) -> AnyClient: ...


def requests_client(closing: ExitStack) -> MakeClient:
    """Return what makes clients on requests, to be closed by *closing*.

    A client of a `World` is driven by its clock, and one of a URL skips every wait, unless it is
    given a clock of its own.
    """

    def make(where: str | World, **options: Any) -> AnyClient:
        settings: dict[str, Any]
        if isinstance(where, World):
            inside = {"transport": InProcessTransport(where), "clock": where.clock}
            addresses = {"base_url": where.url, "text_base_url": where.url}
            settings = {"api_key": where.key, **addresses, **inside, **options}
        else:
            addresses = {"base_url": where or None, "text_base_url": where or None}
            settings = {"api_key": KEY, **addresses, "clock": SkippingClock(), **options}
        client = muybridge.Client(**settings)
        closing.callback(client.close)
        return client

    return make


def async_client(
    closing: ExitStack,
    make_async: Callable[..., muybridge.AsyncClient],
    runs: Callable[[Clock, ExitStack], Run],
) -> MakeClient:
    """Return what makes clients for an event loop, as `requests_client` does.

    Args:
        closing: Closes the clients.
        make_async: Makes the client to be wrapped.
        runs: Returns what runs its calls by a clock.
    """

    def make(where: str | World, **options: Any) -> AnyClient:
        clock: Clock = options.pop("clock", None) or (
            where.clock if isinstance(where, World) else SkippingClock()
        )
        transport: Transport | None = options.pop("transport", None)
        settings: dict[str, Any] = {"api_key": KEY, "wall": clock.wall}
        settings |= {"base_url": where or None, "text_base_url": where or None}
        if isinstance(where, World):
            transport = transport or InProcessTransport(where)
            settings |= {"api_key": where.key}
            settings |= {"base_url": where.url, "text_base_url": where.url}
        if transport is not None:
            settings["transport"] = AsyncFace(transport)
        made = make_async(**{**settings, **options})
        client = BlockingAsyncClient(made, runs(clock, closing))
        closing.callback(client.close)
        return client

    return make


def trio_client(closing: ExitStack) -> MakeClient:
    """Return what makes clients for trio, as `requests_client` does."""
    return async_client(closing, muybridge.TrioClient, lambda clock, _: trio_runs(clock))


def asyncio_client(closing: ExitStack) -> MakeClient:
    """Return what makes clients for asyncio, as `requests_client` does."""
    return async_client(closing, muybridge.AsyncClient, asyncio_runs)


def httpx2_client(closing: ExitStack) -> MakeClient:
    """Return what makes clients on httpx2, as `requests_client` does."""

    def make(where: str | World, **options: Any) -> AnyClient:
        transport = muybridge.Httpx2Transport()
        closing.callback(transport.close)
        return requests_client(closing)(where, transport=transport, **options)

    return make


DRIVERS: dict[str, Callable[[ExitStack], MakeClient]] = {
    "requests": requests_client,
    "trio": trio_client,
    "asyncio": asyncio_client,
}

TRANSPORTS = {**DRIVERS, "httpx2": httpx2_client}
"""The drivers, and the transport that is none's default."""
