"""What asyncio's runtime alone does: its tasks can be cancelled by anybody."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from client.runtimes import Asyncio, Cancel
from muybridge.wire.transport import TransportError


def test_worker_that_is_cancelled_before_it_begins() -> None:
    """A worker that somebody else cancels before its first step ends the team, too."""
    runtime = Asyncio.runtime

    async def call(_: Cancel) -> None:
        team = runtime.team(1)
        await team.open()
        others = asyncio.all_tasks()
        team.start(team.wait)
        (worker,) = asyncio.all_tasks() - others
        worker.cancel()
        with pytest.raises(asyncio.CancelledError) as ended:
            await team.wait()
        with pytest.raises(asyncio.CancelledError):
            await team.close(ended.value)

    async def main() -> None:
        assert not await Asyncio().is_cancelled(call)

    Asyncio().run(main)


@pytest.mark.parametrize("withdrawn", ["before", "afterwards"])
def test_cancellation_beside_an_interrupted_worker(withdrawn: str) -> None:
    """A cancellation that was over before the team opened, or is withdrawn, is not raised again."""
    error = ValueError("from the worker")

    async def main() -> None:
        opener = asyncio.current_task()
        assert opener is not None

        async def interrupted() -> None:
            if withdrawn == "afterwards":
                opener.cancel()
            raise error

        if withdrawn == "before":
            opener.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
        team = Asyncio.runtime.team(1)
        await team.open()
        team.start(interrupted)
        with pytest.raises(asyncio.CancelledError) as ended:
            await team.wait()
        with pytest.raises(ValueError, match="from the worker"):
            await team.close(ended.value)
        if withdrawn == "afterwards":
            opener.uncancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    Asyncio().run(main)


def test_outside_of_a_task() -> None:
    """In a callback of the event loop nobody could be cancelled: the error says what is missing."""
    refused: list[str] = []

    def callback() -> None:
        with pytest.raises(RuntimeError, match="call this from a task of asyncio") as caught:
            Asyncio.runtime.team(1).open().send(None)
        refused.append(str(caught.value))

    async def main() -> None:
        asyncio.get_running_loop().call_soon(callback)
        await asyncio.sleep(0)

    Asyncio().run(main)
    assert refused


def test_ended_tasks_are_forgotten() -> None:
    """Nothing is kept of workers and paid exchanges that have ended, however many there are."""
    runtime = Asyncio.runtime
    tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    async def main() -> None:
        async def work() -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)

        team = runtime.team(1)
        await team.open()
        for _ in range(10):
            await team.run(work)
            await runtime.unbroken(work(), lambda: True)
        gc.collect()
        assert not tasks
        await team.close(None)

    Asyncio().run(main)


def test_exchange_of_a_task_that_nobody_keeps() -> None:
    """A paid exchange goes on though asyncio has only weak references to its tasks."""
    awaited: list[weakref.ref[asyncio.Future[None]]] = []
    ended: list[str] = []

    async def exchange() -> None:
        response = asyncio.get_running_loop().create_future()
        awaited.append(weakref.ref(response))
        await response
        ended.append("exchange")

    async def main() -> None:
        asyncio.create_task(Asyncio.runtime.unbroken(exchange(), lambda: True))  # noqa: RUF006  as said
        for _ in range(3):
            await asyncio.sleep(0)
        gc.collect()
        response = awaited[0]()
        assert response is not None
        response.set_result(None)
        for _ in range(3):
            await asyncio.sleep(0)

    Asyncio().run(main)
    assert ended == ["exchange"]


@pytest.mark.parametrize("is_sent", [False, True])
def test_exchange_that_somebody_else_cancels(*, is_sent: bool) -> None:
    """An exchange that others cancel was not sent, or its caller learns that it may have been."""
    runtime, begun = Asyncio.runtime, list[str]()

    async def exchange() -> None:
        begun.append("exchange")
        await asyncio.Event().wait()

    async def main() -> None:
        paid, before = exchange(), asyncio.all_tasks()
        calling = asyncio.create_task(runtime.unbroken(paid, lambda: is_sent))
        await asyncio.sleep(0)
        (running,) = asyncio.all_tasks() - before - {calling}
        if is_sent:
            await asyncio.sleep(0)  # it begins
        running.cancel()
        with pytest.raises(TransportError if is_sent else asyncio.CancelledError) as caught:
            await calling
        assert begun == (["exchange"] if is_sent else [])
        assert inspect.getcoroutinestate(paid) == inspect.CORO_CLOSED
        assert not isinstance(caught.value, TransportError) or caught.value.failure.sent

    Asyncio().run(main)


def test_exchange_that_ends_the_program() -> None:
    """What would stop the event loop comes out of the call instead, which can still note ids."""
    ends = SystemExit()

    async def exchange() -> None:
        raise ends

    async def main() -> None:
        with pytest.raises(SystemExit) as caught:
            await Asyncio.runtime.unbroken(exchange(), lambda: True)
        assert caught.value is ends

    Asyncio().run(main)


def test_cancellation_that_an_exchange_has_held_back() -> None:
    """It is raised after that exchange, once, and never after a later one."""
    runtime = Asyncio.runtime
    raised: list[str] = []

    async def call(cancel: Cancel, *, again: bool) -> None:
        async def exchange(*, cancelled: bool) -> None:
            if cancelled:
                cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        await runtime.unbroken(exchange(cancelled=True), lambda: True)
        if again:
            await runtime.unbroken(exchange(cancelled=False), lambda: True)
        try:
            await runtime.raise_cancellation()
        except asyncio.CancelledError:
            raised.append("after the later one" if again else "at once")
        await runtime.raise_cancellation()

    async def main() -> None:
        for again in (False, True):
            await Asyncio().is_cancelled(partial(call, again=again))

    Asyncio().run(main)
    assert raised == ["at once"]


def test_cancelled_while_a_thread_works() -> None:
    """Work that has begun in a thread is waited for, and its error is the cancellation's cause."""
    begun, release = threading.Event(), threading.Event()
    error = ValueError("from the thread")

    def work() -> None:
        begun.set()
        release.wait(5)
        raise error

    async def call(cancel: Cancel) -> None:
        def strike() -> None:
            begun.wait(5)
            cancel()
            asyncio.get_running_loop().call_soon(release.set)

        asyncio.get_running_loop().call_soon(strike)
        with pytest.raises(asyncio.CancelledError) as caught:
            await Asyncio.runtime.in_thread(work)
        assert release.is_set()
        assert caught.value.__cause__ is error
        raise caught.value

    async def main() -> None:
        assert await Asyncio().is_cancelled(call)

    Asyncio().run(main)


class LateExecutor(ThreadPoolExecutor):
    """Threads that take work, and begin it only when they are told to."""

    taken, may_begin = threading.Event(), threading.Event()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        def late() -> Any:
            self.taken.set()
            assert self.may_begin.wait(10)
            return function(*arguments, **named)

        return super().submit(late)


def test_thread_that_begins_after_the_cancellation() -> None:
    """A thread that has taken work but not begun it ends without doing it, if it is cancelled."""
    executor, done = LateExecutor(1), list[str]()

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(executor)
        working = asyncio.create_task(Asyncio.runtime.in_thread(lambda: done.append("work")))
        await asyncio.sleep(0)
        assert executor.taken.wait(10)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        executor.may_begin.set()
        executor.shutdown()

    Asyncio().run(main)
    assert done == []
