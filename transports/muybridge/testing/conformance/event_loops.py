"""Event loops in threads of their own, for checks that block."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

T = TypeVar("T")


class EventLoopThread(ABC):
    """Runs an event loop in a thread of its own, as long as the context lasts."""

    def __enter__(self) -> Self:
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, daemon=True)
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._thread.join()

    @abstractmethod
    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* there and return what it returns."""

    @abstractmethod
    def _run_loop(self) -> None:
        """Run the event loop until `_end`, and report when it has started."""

    @abstractmethod
    def _end(self) -> None:
        """End the event loop."""


class TrioThread(EventLoopThread):
    """Runs trio."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415  not needed to check a transport on asyncio

        self._trio = trio
        self._ended = trio.Event()
        self._token: trio.lowlevel.TrioToken

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* there and return what it returns."""
        return self._trio.from_thread.run(function, trio_token=self._token)

    def _run_loop(self) -> None:
        async def main() -> None:
            self._token = self._trio.lowlevel.current_trio_token()
            self._started.set()
            await self._ended.wait()

        self._trio.run(main)

    def _end(self) -> None:
        self._trio.from_thread.run_sync(self._ended.set, trio_token=self._token)


class AsyncioThread(EventLoopThread):
    """Runs asyncio.

    Args:
        loop_factory: Makes the event loop, such as `uvloop.new_event_loop`, or None for asyncio's.
    """

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._loop_factory = loop_factory
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* there, in a task of its own, and return what it returns."""

        async def call() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    def _run_loop(self) -> None:
        async def main() -> None:
            self._ended = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            self._started.set()
            await self._ended.wait()

        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            runner.run(main())

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
