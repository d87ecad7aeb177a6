"""Async clients behind the blocking face that the tests know, on the tests' own clocks."""

from __future__ import annotations

import asyncio
import math
import os
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar

import trio

import muybridge
from muybridge import MediaRequest, batch
from muybridge.batch import Report
from muybridge.clock import Clock
from muybridge.drivers.fleet_run import Outcome, Work
from muybridge.media.by_name import Fields
from muybridge_protocol.families import Unlisted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.text.request import Contents
from muybridge_protocol.text.responses import GenerateContentChunk, GenerateContentResponse

P = ParamSpec("P")
T = TypeVar("T")


class TrioClock(trio.abc.Clock):
    """One of the tests' clocks for trio: waiting goes by that clock.

    Unless it is for a socket, or for a thread.
    """

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
        is_quiet = sockets.tasks_waiting_read + sockets.tasks_waiting_write <= 1
        threads = trio.to_thread.current_default_thread_limiter().borrowed_tokens
        if deadline < math.inf and is_quiet and not threads:
            self._clock.sleep(max(0.0, left))
            return 0
        return left


class _ClockSelector(selectors.DefaultSelector):
    """Waits by one of the tests' clocks, unless it waits for a socket or a thread."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # One socket is asyncio's own.
        is_quiet = len(self.get_map()) <= 1 and not self.threads
        if timeout is not None and timeout > 0 and is_quiet:
            self._clock.sleep(timeout)
            timeout = 0
        return super().select(timeout)


class ClockEventLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio that goes by one of the tests' clocks, as `TrioClock` lets trio."""

    def __init__(self, clock: Clock) -> None:
        self._tests_clock = clock
        self._waiting = _ClockSelector(clock)
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._tests_clock.monotonic()

    def run_in_executor(self, *arguments: Any) -> Any:
        def ended(_: object) -> None:
            self._waiting.threads -= 1

        running = super().run_in_executor(*arguments)
        self._waiting.threads += 1
        running.add_done_callback(ended)
        return running

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  asyncio says so
        """Wait for the threads to end, without the timeout: this clock would jump past it."""
        del timeout
        self._waiting.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._waiting.threads -= 1


class Run(Protocol):
    """Runs an asynchronous function in an event loop."""

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T: ...


class BlockingAsyncStream(Generic[T]):
    """Runs each step of a stream in an event loop."""

    def __init__(self, stream: muybridge.AsyncTextStream[T], run: Run) -> None:
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


class BlockingAsyncContentStream(BlockingAsyncStream[GenerateContentChunk]):
    """The same in the native protocol."""

    def __init__(self, stream: muybridge.AsyncContentStream, run: Run) -> None:
        super().__init__(stream, run)
        self._content = stream

    def collect(self) -> GenerateContentResponse:
        return self._run(self._content.collect)


class BlockingAsyncClient:
    """Runs each call of an async client in an event loop.

    Args:
        client: The client.
        run: Runs its calls.
    """

    def __init__(self, client: muybridge.AsyncClient, run: Run) -> None:
        self.client = client
        self.in_loop = run

    def __repr__(self) -> str:
        return repr(self.client)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.client.__reduce_ex__(protocol)

    @property
    def interrupted_tasks(self) -> tuple[Task, ...]:
        return self.client.interrupted_tasks

    def close(self) -> None:
        self.in_loop(self.client.close)

    def create(
        self, request: muybridge.MediaRequest | str, fields: Fields | None = None, **options: Any
    ) -> Task:
        return self.in_loop(self.client.create, request, fields, **options)

    def create_once(
        self,
        once: str,
        request: muybridge.MediaRequest | str,
        fields: Fields | None = None,
        **options: Any,
    ) -> Task:
        return self.in_loop(self.client.create_once, once, request, fields, **options)

    def get(self, task: Task | Result | str) -> Result:
        return self.in_loop(self.client.get, task)

    def wait(self, task: Task | Result | str, **options: Any) -> Result:
        return self.in_loop(self.client.wait, task, **options)

    def watch(self, task: Task | Result | str, **options: Any) -> Iterator[Result]:
        async def enter() -> tuple[Any, AsyncIterator[Result]]:
            context = self.client.watch(task, **options)
            return context, await context.__aenter__()

        context, results = self.in_loop(enter)

        async def step() -> Result | None:
            return await anext(results, None)

        try:
            while (result := self.in_loop(step)) is not None:
                yield result
        finally:
            self.in_loop(context.__aexit__, None, None, None)

    def run(
        self, request: muybridge.MediaRequest | str, fields: Fields | None = None, **options: Any
    ) -> Result:
        return self.in_loop(self.client.run, request, fields, **options)

    def save(
        self, source: Result | Task | str, path: str | os.PathLike[str], **options: Any
    ) -> Path:
        return self.in_loop(self.client.save, source, path, **options)

    def download(
        self, source: Result | Task | str, path: str | os.PathLike[str], **options: Any
    ) -> Path:
        return self.in_loop(self.client.download, source, path, **options)

    def read(self, source: Result | Task | str, **options: Any) -> bytes:
        return self.in_loop(self.client.read, source, **options)

    def check(
        self, request: muybridge.MediaRequest | str, fields: Fields | None = None, **options: Any
    ) -> muybridge.MediaReport:
        return self.in_loop(self.client.check, request, fields, **options)

    def run_all(
        self, work: Iterable[Work], *, most: int | None = None, **options: Any
    ) -> list[Outcome]:
        async def collect() -> list[Outcome]:
            found: list[Outcome] = []
            async with self.client.run_all(work, **options) as outcomes:
                async for outcome in outcomes:
                    found.append(outcome)
                    if len(found) == most:
                        break
            return found

        return self.in_loop(collect)

    def run_batch(
        self, source: Iterable[MediaRequest], out: str | os.PathLike[str], **options: Any
    ) -> Report:
        return self.in_loop(batch.run_async, self.client, source, out, **options)

    def delete_asset(self, asset_id: str) -> None:
        self.in_loop(self.client.delete_asset, asset_id)

    def call(self, method: str, path: str, json: object = None, **options: Any) -> HttpResponse:
        return self.in_loop(self.client.call, method, path, json, **options)

    def generate_content(
        self, model: str | Unlisted, contents: Contents, **options: Any
    ) -> GenerateContentResponse:
        return self.in_loop(self.client.generate_content, model, contents, **options)

    def stream_generate_content(
        self, model: str | Unlisted, contents: Contents, **options: Any
    ) -> BlockingAsyncContentStream:
        stream = self._made(self.client.stream_generate_content, model, contents, **options)
        return BlockingAsyncContentStream(stream, self.in_loop)

    def chat_completions(self, body: Mapping[str, Any], **options: Any) -> JsonObject:
        return self.in_loop(self.client.chat_completions, body, **options)

    def stream_chat_completions(
        self, body: Mapping[str, Any], **options: Any
    ) -> BlockingAsyncStream[JsonObject]:
        stream = self._made(self.client.stream_chat_completions, body, **options)
        return BlockingAsyncStream(stream, self.in_loop)

    def messages(self, body: Mapping[str, Any], **options: Any) -> JsonObject:
        return self.in_loop(self.client.messages, body, **options)

    def stream_messages(
        self, body: Mapping[str, Any], **options: Any
    ) -> BlockingAsyncStream[JsonObject]:
        stream = self._made(self.client.stream_messages, body, **options)
        return BlockingAsyncStream(stream, self.in_loop)

    def _made(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        async def made() -> T:
            return function(*arguments, **named)

        return self.in_loop(made)


def trio_runs(clock: Clock) -> Run:
    """Return what runs each call in an event loop of its own, by *clock*."""

    def run(
        function: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        return trio.run(partial(function, *arguments, **named), clock=TrioClock(clock))

    return run


def asyncio_runs(clock: Clock, closing: ExitStack) -> Run:
    """Return what runs each call in one event loop, by *clock*, until *closing*.

    `asyncio.run` turns Ctrl-C into a cancellation. Here it is raised where it arrives. If that is
    in the event loop itself, the call is cancelled afterwards, and its notes are handed on.
    """
    loop = ClockEventLoop(clock)
    closing.callback(loop.close)

    def run(
        function: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        call = loop.create_task(function(*arguments, **named))
        try:
            return loop.run_until_complete(call)
        except BaseException as error:
            if not call.done():
                call.cancel()
                try:
                    loop.run_until_complete(call)
                except asyncio.CancelledError as cancelled:
                    for note in getattr(cancelled, "__notes__", ()):
                        error.add_note(note)
            raise

    return run
