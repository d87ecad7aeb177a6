"""The runtimes under test, each with what runs it and what cancels a call."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

import trio

from muybridge.drivers.on_asyncio import AsyncioRuntime
from muybridge.drivers.on_trio import TrioRuntime
from muybridge.drivers.runtime import Runtime

Main = Callable[[], Coroutine[Any, Any, None]]
Cancel = Callable[[], object]


class EventLoop(ABC):
    """An event loop, and the runtime under test that is bound to it."""

    runtime: Runtime

    @abstractmethod
    def run(self, main: Main) -> None:
        """Run *main* in a new event loop."""

    @abstractmethod
    async def is_cancelled(self, call: Callable[[Cancel], Coroutine[Any, Any, None]]) -> bool:
        """Await *call*, which is given what cancels it, and return whether that ended it."""


class Trio(EventLoop):
    runtime = TrioRuntime(time.time)

    def run(self, main: Main) -> None:
        trio.run(main)

    async def is_cancelled(self, call: Callable[[Cancel], Coroutine[Any, Any, None]]) -> bool:
        with trio.CancelScope() as scope:
            await call(scope.cancel)
        return scope.cancelled_caught


class Asyncio(EventLoop):
    runtime = AsyncioRuntime(time.time)

    def run(self, main: Main) -> None:
        loop = asyncio.new_event_loop()  # `asyncio.run` would handle Ctrl-C itself
        with closing(loop):
            loop.run_until_complete(main())

    async def is_cancelled(self, call: Callable[[Cancel], Coroutine[Any, Any, None]]) -> bool:
        requests = 0

        def cancel() -> None:
            nonlocal requests
            requests += task.cancel()

        task = asyncio.create_task(call(cancel))
        await asyncio.wait([task])
        if not task.cancelled():
            await task
        assert task.cancelling() == requests  # `asyncio.timeout` and others go by this number
        return task.cancelled()
