"""`TrioClient` behind the blocking face that the tests know, on the tests' own clocks."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar

import trio

import muybridge
from muybridge.clock import Clock
from muybridge.drivers.fleet_run import Outcome, Work
from muybridge_protocol.families import Unlisted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.text.request import Contents
from muybridge_protocol.text.responses import GenerateContentChunk, GenerateContentResponse

P = ParamSpec("P")
T = TypeVar("T")


class TrioClock(trio.abc.Clock):
    """One of the tests' clocks for trio: waiting goes by that clock, unless it is for a socket."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self._clock.monotonic()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        left = deadline - self._clock.monotonic()
        sockets: Any = trio.lowlevel.current_statistics().io_statistics
        # One task of trio's own always waits for a socket.
        if deadline < math.inf and sockets.tasks_waiting_read + sockets.tasks_waiting_write <= 1:
            self._clock.sleep(max(0.0, left))
            return 0
        return left


class _Run(Protocol):
    """Runs an asynchronous function in an event loop of its own."""

    def __call__(
        self, function: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs
    ) -> T: ...


class BlockingTrioStream(Generic[T]):
    """Runs each step of a stream in an event loop of its own."""

    def __init__(self, stream: muybridge.AsyncTextStream[T], run: _Run) -> None:
        self._stream = stream
        self._run = run

    def __enter__(self) -> Self:
        self._run(self._stream.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run(self._stream.__aexit__, kind, error, traceback)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        async def step() -> T | None:
            return await anext(self._stream, None)

        chunk = self._run(step)
        if chunk is None:
            raise StopIteration
        return chunk

    def received(self) -> tuple[T, ...]:
        return self._stream.received()


class BlockingTrioContentStream(BlockingTrioStream[GenerateContentChunk]):
    """The same in the native protocol."""

    def __init__(self, stream: muybridge.AsyncContentStream, run: _Run) -> None:
        super().__init__(stream, run)
        self._content = stream

    def collect(self) -> GenerateContentResponse:
        return self._run(self._content.collect)


class BlockingTrioClient:
    """Runs each call of a `TrioClient` in an event loop of its own."""

    def __init__(self, client: muybridge.TrioClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def __repr__(self) -> str:
        return repr(self._client)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._client.__reduce_ex__(protocol)

    def _run(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs) -> T:
        bound = partial(function, *arguments, **named)
        return trio.run(bound, clock=TrioClock(self._clock))

    def close(self) -> None:
        self._run(self._client.close)

    def create(self, request: muybridge.MediaRequest) -> Task:
        return self._run(self._client.create, request)

    def get(self, task: Task | Result | str) -> Result:
        return self._run(self._client.get, task)

    def wait(self, task: Task | Result | str, **options: Any) -> Result:
        return self._run(self._client.wait, task, **options)

    def watch(self, task: Task | Result | str, **options: Any) -> Iterator[Result]:
        context = self._client.watch(task, **options)
        results = self._run(context.__aenter__)

        async def step() -> Result | None:
            return await anext(results, None)

        try:
            while (result := self._run(step)) is not None:
                yield result
        finally:
            self._run(context.__aexit__, None, None, None)

    def run(self, request: muybridge.MediaRequest, **options: Any) -> Result:
        return self._run(self._client.run, request, **options)

    def download(
        self, source: Result | Task | str, path: str | os.PathLike[str], **options: Any
    ) -> Path:
        return self._run(self._client.download, source, path, **options)

    def run_all(
        self, work: Iterable[Work], *, most: int | None = None, **options: Any
    ) -> list[Outcome]:
        async def collect() -> list[Outcome]:
            found: list[Outcome] = []
            async with self._client.run_all(work, **options) as outcomes:
                async for outcome in outcomes:
                    found.append(outcome)
                    if len(found) == most:
                        break
            return found

        return self._run(collect)

    def delete_asset(self, asset_id: str) -> None:
        self._run(self._client.delete_asset, asset_id)

    def call(self, method: str, path: str, json: object = None) -> HttpResponse:
        return self._run(self._client.call, method, path, json)

    def generate_content(
        self, model: str | Unlisted, contents: Contents, **options: Any
    ) -> GenerateContentResponse:
        return self._run(self._client.generate_content, model, contents, **options)

    def stream_generate_content(
        self, model: str | Unlisted, contents: Contents, **options: Any
    ) -> BlockingTrioContentStream:
        stream = self._client.stream_generate_content(model, contents, **options)
        return BlockingTrioContentStream(stream, self._run)

    def chat_completions(self, body: Mapping[str, Any], **options: Any) -> JsonObject:
        return self._run(self._client.chat_completions, body, **options)

    def stream_chat_completions(
        self, body: Mapping[str, Any], **options: Any
    ) -> BlockingTrioStream[JsonObject]:
        stream = self._client.stream_chat_completions(body, **options)
        return BlockingTrioStream(stream, self._run)

    def messages(self, body: Mapping[str, Any], **options: Any) -> JsonObject:
        return self._run(self._client.messages, body, **options)

    def stream_messages(
        self, body: Mapping[str, Any], **options: Any
    ) -> BlockingTrioStream[JsonObject]:
        stream = self._client.stream_messages(body, **options)
        return BlockingTrioStream(stream, self._run)
