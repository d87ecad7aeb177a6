"""The clients under test, behind the one face that the tests know.

A driver whose methods do not block is wrapped so that they do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import muybridge
from muybridge.clock import Clock
from muybridge.wire.transport import Transport
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.tasks import Result, Task

from .in_process import KEY, InProcessTransport, SkippingClock, World
from .on_trio import AsyncFace, BlockingTrioClient


class AnyClient(Protocol):
    """What every client does."""

    def close(self) -> None: ...

    def create(self, request: muybridge.MediaRequest) -> Task: ...

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
        request: muybridge.MediaRequest,
        *,
        timeout: float | None = ...,
        on_update: Callable[[Result], None] | None = ...,
    ) -> Result: ...

    def download(
        self,
        source: Result | Task | str,
        path: str | os.PathLike[str],
        *,
        timeout: float = ...,
        size_limit: int | None = ...,
    ) -> Path: ...

    def delete_asset(self, asset_id: str) -> None: ...

    def call(self, method: str, path: str, json: object = None) -> HttpResponse: ...


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
            settings = {"api_key": where.key, "base_url": where.url, **inside, **options}
        else:
            outside = {"api_key": KEY, "base_url": where, "clock": SkippingClock()}
            settings = {**outside, **options}
        client = muybridge.Client(**settings)
        closing.callback(client.close)
        return client

    return make


def trio_client(closing: ExitStack) -> MakeClient:
    """Return what makes clients for trio, as `requests_client` does."""

    def make(where: str | World, **options: Any) -> AnyClient:
        clock: Clock = options.pop("clock", None) or (
            where.clock if isinstance(where, World) else SkippingClock()
        )
        transport: Transport | None = options.pop("transport", None)
        settings: dict[str, Any] = {"api_key": KEY, "base_url": where, "wall": clock.wall}
        if isinstance(where, World):
            transport = transport or InProcessTransport(where)
            settings |= {"api_key": where.key, "base_url": where.url}
        if transport is not None:
            settings["transport"] = AsyncFace(transport)
        client = BlockingTrioClient(muybridge.TrioClient(**{**settings, **options}), clock)
        closing.callback(client.close)
        return client

    return make


DRIVERS: dict[str, Callable[[ExitStack], MakeClient]] = {
    "requests": requests_client,
    "trio": trio_client,
}
