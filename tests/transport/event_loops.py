"""The event loops that the async transport is bound to, each with what a test needs of it."""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import trio

from muybridge.wire.asyncio_transport import AsyncioStream, AsyncioTransport
from muybridge.wire.http1.socket_stream import SocketStream
from muybridge.wire.http1.transport import Http1Transport
from muybridge.wire.trio_transport import TrioStream, TrioTransport

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


class EventLoop(ABC):
    """An event loop, and what binds the transport to it."""

    transport: type[Http1Transport]
    stream: type[SocketStream]
    busy: type[Exception]
    """What is raised if two tasks wait for one connection."""

    @abstractmethod
    def run(self, work: Work[T]) -> T:
        """Run *work* in a new event loop."""

    @abstractmethod
    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work*, which blocks, in a thread."""

    @abstractmethod
    async def together(self, *work: Work[None]) -> None:
        """Do all of *work* at once."""

    @abstractmethod
    async def cancelled(self, work: Work[object]) -> bool:
        """Do *work* in a task that has been cancelled, and return whether that ended it."""


class Trio(EventLoop):
    transport = TrioTransport
    stream = TrioStream
    busy = trio.BusyResourceError

    def run(self, work: Work[T]) -> T:
        return trio.run(work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work)

    async def together(self, *work: Work[None]) -> None:
        async with trio.open_nursery() as nursery:
            for one in work:
                nursery.start_soon(one)

    async def cancelled(self, work: Work[object]) -> bool:
        with trio.CancelScope() as scope:
            scope.cancel()
            await work()
        return scope.cancelled_caught


class Asyncio(EventLoop):
    transport = AsyncioTransport
    stream = AsyncioStream
    busy = RuntimeError

    def run(self, work: Work[T]) -> T:
        return asyncio.run(work())

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    async def together(self, *work: Work[None]) -> None:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one())

    async def cancelled(self, work: Work[object]) -> bool:
        async def call() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await work()

        task = asyncio.create_task(call())
        await asyncio.wait([task])
        return task.cancelled()


EVENT_LOOPS: dict[str, EventLoop] = {"trio": Trio(), "asyncio": Asyncio()}


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in the event loop that its fixture `event_loop` names."""

    @functools.wraps(test)
    def run(event_loop: EventLoop, **fixtures: Any) -> None:
        event_loop.run(functools.partial(test, event_loop=event_loop, **fixtures))

    return run
