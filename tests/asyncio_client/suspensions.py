"""Strikes at the nth suspension of a program that runs under asyncio, for n = 1 to its end.

A task factory wraps every coroutine that becomes a task, and counts each suspension of each of
them: of the caller, of exchanges in tasks of their own, and of workers. At the nth it strikes. How
a strike reaches the call is a `Way`: by a timeout, a cancelled task, a failing sibling or a signal.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

import anyio

T = TypeVar("T")

LIMIT = 100.0
"""Seconds after which the ways with a timeout cancel a call. Nothing else takes as long."""
_MOST = 2000
_TRIES = 50


class Suspensions:
    """Counts the suspensions of every task, and strikes once.

    Args:
        strike_at: Which one is struck.
    """

    def __init__(self, strike_at: int) -> None:
        self._left = strike_at
        self.counting = False
        self.struck = False
        self.strike: Callable[[], object] = lambda: None

    def count(self) -> None:
        """Count one."""
        if not self.counting or self.struck:
            return
        self._left -= 1
        if self._left == 0:
            self.struck = True
            self.strike()


class _Counted(Coroutine[Any, Any, T]):
    """A coroutine whose suspensions are counted."""

    def __init__(self, inner: Coroutine[Any, Any, T], suspensions: Suspensions) -> None:
        self._inner = inner
        self._suspensions = suspensions

    def send(self, value: Any) -> Any:
        awaited = self._inner.send(value)
        self._suspensions.count()
        return awaited

    def throw(self, *error: Any) -> Any:
        awaited = self._inner.throw(*error)
        self._suspensions.count()
        return awaited

    def close(self) -> None:
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        """Return what anyio and asyncio read of a coroutine, such as `cr_running`."""
        return getattr(self._inner, name)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._inner.__await__()


class JumpingEventLoop(asyncio.SelectorEventLoop):
    """An event loop whose time can jump, so that a timeout is due at once."""

    _ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    def jump(self) -> None:
        """Let `LIMIT` seconds pass."""
        self._ahead += 2 * LIMIT


Call = Callable[[], Coroutine[Any, Any, None]]
Way = Callable[[Call, Suspensions], Coroutine[Any, Any, None]]
"""Awaits a call, and sees to it that a strike cancels it."""


def _loop() -> JumpingEventLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingEventLoop)
    return loop


async def by_timeout(call: Call, suspensions: Suspensions) -> None:
    suspensions.strike = _loop().jump
    async with asyncio.timeout(LIMIT):
        await call()


async def by_wait_for(call: Call, suspensions: Suspensions) -> None:
    suspensions.strike = _loop().jump
    await asyncio.wait_for(call(), LIMIT)


async def by_anyio(call: Call, suspensions: Suspensions) -> None:
    """anyio cancels again at each turn of the event loop."""
    suspensions.strike = _loop().jump
    with anyio.move_on_after(LIMIT):
        await call()


async def by_anyio_group(call: Call, suspensions: Suspensions) -> None:
    async with anyio.create_task_group() as group:
        suspensions.strike = group.cancel_scope.cancel
        group.start_soon(call)


async def by_cancel(call: Call, suspensions: Suspensions) -> None:
    task = asyncio.create_task(call())
    suspensions.strike = task.cancel
    await task


async def by_cancelling_again(call: Call, suspensions: Suspensions) -> None:
    task = asyncio.create_task(call())

    def strike() -> None:
        if task.cancel():
            _loop().call_soon(strike)

    suspensions.strike = strike
    await task


async def by_a_sibling(call: Call, suspensions: Suspensions) -> None:
    struck = asyncio.Event()
    suspensions.strike = struck.set

    async def fail() -> None:
        await struck.wait()
        raise ValueError("a sibling fails")

    async with asyncio.TaskGroup() as group:
        sibling = group.create_task(fail())
        group.create_task(call()).add_done_callback(lambda _: sibling.cancel())


async def by_ctrl_c(call: Call, suspensions: Suspensions) -> None:
    suspensions.strike = _ctrl_c
    await call()


async def by_ctrl_c_twice(call: Call, suspensions: Suspensions) -> None:
    """The second one ends the event loop, which cancels every task and every paid exchange."""
    loop = _loop()

    def strike() -> None:
        _ctrl_c()
        loop.call_soon(_ctrl_c)

    suspensions.strike = strike
    await call()


def _ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


async def by_shutdown(call: Call, suspensions: Suspensions) -> None:
    """The program ends without waiting, and the event loop cancels every task."""
    struck = asyncio.Event()
    suspensions.strike = struck.set
    task = asyncio.create_task(call())
    striking = asyncio.create_task(struck.wait())
    await asyncio.wait([task, striking], return_when=asyncio.FIRST_COMPLETED)
    _KEPT.add(task)


_KEPT: set[asyncio.Task[Any]] = set()


async def by_cancelling_all_others(call: Call, suspensions: Suspensions) -> None:
    """Somebody cancels every task but the caller, those of exchanges and workers among them."""
    caller = asyncio.current_task()

    def strike() -> None:
        for task in asyncio.all_tasks() - {caller}:
            task.cancel()

    suspensions.strike = strike
    await call()


WAYS: dict[str, Way] = {
    "asyncio.timeout": by_timeout,
    "wait_for": by_wait_for,
    "anyio.move_on_after": by_anyio,
    "anyio task group": by_anyio_group,
    "cancel": by_cancel,
    "cancel repeatedly": by_cancelling_again,
    "TaskGroup": by_a_sibling,
    "Ctrl-C": by_ctrl_c,
    "Ctrl-C twice": by_ctrl_c_twice,
    "shutdown": by_shutdown,
    "cancel all others": by_cancelling_all_others,
}


def run_struck(way: Way, call: Call, strike_at: int, *, eager: bool = False) -> bool:
    """Run *call* as `asyncio.run` does, strike once, and return whether it came to that.

    Args:
        way: How the strike cancels the call.
        call: What to run. It handles its own errors, or they are ignored.
        strike_at: At which suspension.
        eager: Whether tasks begin at once (Python 3.12).
    """
    suspensions = Suspensions(strike_at)

    def new_task(
        loop: asyncio.AbstractEventLoop, coroutine: Any, /, **options: Any
    ) -> asyncio.Task[Any]:
        counted = _Counted(coroutine, suspensions)
        if eager:
            options["eager_start"] = True
        return asyncio.Task(counted, loop=loop, **options)

    async def counted() -> None:
        await call()
        suspensions.counting = False

    async def main() -> None:
        suspensions.counting = True
        await way(counted, suspensions)

    def new_loop() -> asyncio.AbstractEventLoop:
        loop = JumpingEventLoop()
        loop.set_task_factory(new_task)
        return loop

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())
    except BaseException:  # the call has recorded it
        if not suspensions.struck:
            raise
    finally:
        _KEPT.clear()
    return suspensions.struck


def at_every_suspension(attempt: Callable[[int], bool], every: int = 1, *, least: int) -> int:
    """Call *attempt* for the first suspension, the second, ... until it says that none was left.

    Args:
        attempt: Strikes at the suspension with that number.
        every: How many to go on each time, for a sample.
        least: How many there are in most attempts. Where the server is the faster one, nobody
            waits for it: such an attempt is made again.

    Returns:
        How many there were, or up to *every* fewer.
    """
    for strike_at in range(1, _MOST, every):
        count = strike_at - every
        if not any(attempt(strike_at) for _ in range(1 if count >= least else _TRIES)):
            return count
    raise AssertionError("it never comes to its end")


CAN_BE_EAGER = sys.version_info >= (3, 12)
