"""Event loops in threads of their own, for checks that block, and what cancels work in them."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, T]]
"""An async function without arguments."""


class EventLoopThread(ABC):
    """Runs an event loop in a thread of its own, as long as the context lasts."""

    has_shields: ClassVar[bool]
    """Whether the event loop itself can shield work from cancellation."""

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
    async def cancelled_after(
        self, moment: Callable[[], object], then: Callable[[], object], work: Work[T]
    ) -> T | None:
        """Do *work* there, cancel it when *moment*, which blocks, has returned, and call *then*.

        Return what *work* returns, or None if the cancellation ended it.
        """

    @abstractmethod
    async def cancelled_at(self, nth: int, work: Work[T]) -> tuple[T | None, bool]:
        """Do *work* there, and cancel it as it suspends for the *nth* time.

        Return what *work* returns, or None if the cancellation ended it; and whether it was
        suspended that often.
        """

    @abstractmethod
    def _run_loop(self) -> None:
        """Run the event loop until `_end`, and report when it has started."""

    @abstractmethod
    def _end(self) -> None:
        """End the event loop."""


class TrioThread(EventLoopThread):
    """Runs trio, which is imported only here: asyncio does without."""

    has_shields = True
    _token: Any
    _ended: Any

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* there and return what it returns."""
        import trio

        return trio.from_thread.run(function, trio_token=self._token)

    async def cancelled_after(
        self, moment: Callable[[], object], then: Callable[[], object], work: Work[T]
    ) -> T | None:
        """Do *work* in a cancel scope, and cancel that."""
        import trio

        results: list[T] = []

        async def call() -> None:
            with scope:
                results.append(await work())

        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.to_thread.run_sync(moment)
            scope.cancel()
            then()
        return results[0] if results else None

    async def cancelled_at(self, nth: int, work: Work[T]) -> tuple[T | None, bool]:
        """Do *work* in a cancel scope, and cancel that."""
        import trio

        result: T | None = None
        scope = trio.CancelScope()
        counting = CancelledAt(nth, work(), scope.cancel)
        with scope:
            result = await counting
        return result, counting.reached

    def _run_loop(self) -> None:
        import trio

        async def main() -> None:
            self._ended = trio.Event()
            self._token = trio.lowlevel.current_trio_token()
            self._started.set()
            await self._ended.wait()

        trio.run(main)

    def _end(self) -> None:
        import trio

        trio.from_thread.run_sync(self._ended.set, trio_token=self._token)


class AsyncioThread(EventLoopThread):
    """Runs asyncio.

    Args:
        loop_factory: Makes the event loop, such as `uvloop.new_event_loop`, or None for asyncio's.
    """

    has_shields = False

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._loop_factory = loop_factory
        self._loop: asyncio.AbstractEventLoop
        self._ended: asyncio.Event

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* there, in a task of its own, and return what it returns."""

        async def call() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    async def cancelled_after(
        self, moment: Callable[[], object], then: Callable[[], object], work: Work[T]
    ) -> T | None:
        """Do *work* in a task, and cancel that."""
        task = asyncio.create_task(work())
        await asyncio.to_thread(moment)
        task.cancel()
        then()
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    async def cancelled_at(self, nth: int, work: Work[T]) -> tuple[T | None, bool]:
        """Do *work* in a task, and cancel that."""
        counting = CancelledAt(nth, work(), _cancel_current_task)

        async def call() -> T:
            return await counting

        task = asyncio.create_task(call())
        await asyncio.wait([task])
        return None if task.cancelled() else task.result(), counting.reached

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


def _cancel_current_task() -> None:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # for type checkers
    task.cancel()


class CancelledAt(Awaitable[T]):
    """Awaits a coroutine in the current task, and cancels it as it suspends.

    Args:
        nth: The suspension at which it is cancelled, counted from 1.
        coroutine: What to await.
        cancel: Cancels the current task.
        again: Whether to cancel it at every suspension from there on.

    Attributes:
        suspensions: How often it was suspended.
        requests: How often it was cancelled.
    """

    def __init__(
        self,
        nth: int,
        coroutine: Coroutine[Any, Any, T],
        cancel: Callable[[], object],
        *,
        again: bool = False,
    ) -> None:
        self._nth = nth
        self._coroutine = coroutine
        self._cancel = cancel
        self._again = again
        self.suspensions: int = 0
        self.requests: int = 0

    @property
    def reached(self) -> bool:
        """Whether it was suspended that often."""
        return self.requests > 0

    def __await__(self) -> Generator[Any, Any, T]:
        # What `await` does, step by step: each object that the coroutine waits for goes to the
        # event loop, and what comes back, a value or an exception, goes into the coroutine.
        resume = partial(self._coroutine.send, None)
        while True:
            try:
                waiting = resume()
            except StopIteration as end:
                result: T = end.value
                return result
            self.suspensions += 1
            if self.suspensions == self._nth or (self._again and self.suspensions > self._nth):
                self._cancel()
                self.requests += 1
            try:
                resume = partial(self._coroutine.send, (yield waiting))
            except BaseException as error:  # noqa: BLE001  # the coroutine's to handle
                resume = partial(self._coroutine.throw, error)
