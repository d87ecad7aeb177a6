"""What every runtime does: it waits, and its teams end their workers and say what ended them."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest
import trio

from muybridge.clock import SystemClock
from muybridge.drivers import blocking
from muybridge.drivers.on_asyncio import AsyncioRuntime
from muybridge.drivers.on_trio import TrioRuntime
from muybridge.drivers.runtime import Runtime
from muybridge.testing import VirtualClock
from muybridge.wire.transport import TransportError

from .event_loops import asyncio_runs, trio_runs

Main = Callable[[], Coroutine[Any, Any, None]]
Cancel = Callable[[], object]

ENOUGH = 100
"""More checkpoints than a worker passes before it is cancelled."""


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


@pytest.fixture(params=[Trio(), Asyncio()], ids=["trio", "asyncio"])
def event_loop(request: pytest.FixtureRequest) -> EventLoop:
    loop: EventLoop = request.param
    return loop


RUNS: dict[str, tuple[Runtime, Callable[[Main], None]]] = {
    "requests": (blocking.BlockingRuntime(SystemClock()), blocking.run),
    "trio": (Trio.runtime, Trio().run),
    "asyncio": (Asyncio.runtime, Asyncio().run),
}


@pytest.mark.parametrize("driver", RUNS)
def test_waiting(driver: str) -> None:
    """A checkpoint takes no time, and sleeping lasts until a moment that is still to come."""
    runtime, clock = RUNS[driver][0], VirtualClock()

    async def main() -> None:
        began = runtime.now()
        for moment in (began + 5, began):
            before = runtime.now()
            await runtime.checkpoint()
            assert runtime.now() == before
            await runtime.sleep_until(moment)
            assert runtime.now() == pytest.approx(began + 5)

    with ExitStack() as ending:
        match driver:
            case "trio":
                trio_runs(clock)(main)
            case "asyncio":
                asyncio_runs(clock, ending)(main)
            case _:
                runtime = blocking.BlockingRuntime(clock)
                blocking.run(main)


@pytest.mark.parametrize("driver", RUNS)
def test_run_waits_for_its_work(driver: str) -> None:
    """`run` returns once its work has ended, and whatever else was started has gone on."""
    runtime, run = RUNS[driver]
    done: list[str] = []

    async def main() -> None:
        async def work() -> None:
            await runtime.checkpoint()
            done.append("work")

        team = runtime.team(1)
        await team.open()
        await team.run(work)
        assert done == ["work"]
        await team.close(None)

    run(main)
    assert done == ["work"]


def test_workers_are_cancelled(event_loop: EventLoop) -> None:
    """Closing a team cancels its workers at once; one that has just been started begins first."""
    runtime, log = event_loop.runtime, list[str]()

    def work(name: str) -> Main:
        async def work() -> None:
            log.append(f"{name} begins")
            try:
                for _ in range(ENOUGH):
                    await runtime.checkpoint()
            except runtime.cancelled:
                log.append(f"{name} is cancelled")
                raise
            log.append(f"{name} ends")

        return work

    async def main() -> None:
        team = runtime.team(2)
        await team.open()
        team.start(work("first"))
        await runtime.checkpoint()
        await runtime.checkpoint()
        assert log == ["first begins"]
        team.start(work("second"))
        await team.close(None)
        await runtime.checkpoint()  # nobody is cancelled but the workers

    event_loop.run(main)
    assert sorted(log) == [
        "first begins",
        "first is cancelled",
        "second begins",
        "second is cancelled",
    ]


def test_notify_wakes_those_who_wait(event_loop: EventLoop) -> None:
    """`notify` wakes every worker that waits, and none that begins to wait afterwards."""
    runtime, log = event_loop.runtime, list[str]()

    async def main() -> None:
        async def work() -> None:
            await team.wait()
            log.append("woken")

        async def turns() -> None:
            for _ in range(5):
                await runtime.checkpoint()

        team = runtime.team(2)
        await team.open()
        team.notify()
        team.start(work)
        team.start(work)
        await turns()
        assert log == []
        team.notify()
        await turns()
        assert log == ["woken", "woken"]
        await team.wait(until=runtime.now() - 1)  # does not wait
        await team.close(None)

    event_loop.run(main)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_interrupted_worker(event_loop: EventLoop, *, is_cancelled: bool) -> None:
    """What ends one worker ends the team, and is raised alone, before any cancellation."""
    runtime = event_loop.runtime

    async def call(cancel: Cancel) -> None:
        async def interrupted() -> None:
            raise interrupt

        async def others() -> None:
            try:
                await team.wait()
            finally:
                if is_cancelled:
                    cancel()

        team = runtime.team(2)
        await team.open()
        team.start(others)
        await runtime.checkpoint()
        team.start(interrupted)
        with pytest.raises(runtime.cancelled) as ended:
            await team.wait()
        with pytest.raises(KeyboardInterrupt) as caught:
            await team.close(ended.value)
        assert caught.value is interrupt
        assert interrupt.__cause__ is None
        assert interrupt.__suppress_context__
        if not is_cancelled:
            await runtime.checkpoint()  # the team has cancelled nobody but its workers

    async def main() -> None:
        await event_loop.is_cancelled(call)

    interrupt = KeyboardInterrupt()
    event_loop.run(main)


@pytest.mark.parametrize("error", [None, ValueError("from the loop's body")])
def test_cancelled_while_closing(event_loop: EventLoop, error: Exception | None) -> None:
    """A cancellation while the workers end waits for them, and is raised in no group."""
    runtime, log = event_loop.runtime, list[str]()

    async def call(cancel: Cancel) -> None:
        async def work() -> None:
            try:
                await team.wait()
            finally:
                cancel()
                log.append("worker")

        team = runtime.team(1)
        await team.open()
        team.start(work)
        await runtime.checkpoint()
        await runtime.checkpoint()
        try:
            await team.close(error)
            assert error is not None, "without another exception it is raised at once"
            await runtime.checkpoint()
        except runtime.cancelled:
            log.append("caller")
            raise

    async def main() -> None:
        assert await event_loop.is_cancelled(call)

    event_loop.run(main)
    assert log == ["worker", "caller"]


def test_closing_after_a_cancellation(event_loop: EventLoop) -> None:
    """The cancellation that ends the use of a team stays the one that comes out."""
    runtime = event_loop.runtime

    async def call(cancel: Cancel) -> None:
        async def work() -> None:
            try:
                await team.wait()
            finally:
                cancel()

        team = runtime.team(1)
        await team.open()
        team.start(work)
        cancel()
        with pytest.raises(runtime.cancelled) as ended:
            await team.wait()
        await team.close(ended.value)
        raise ended.value

    async def main() -> None:
        assert await event_loop.is_cancelled(call)

    event_loop.run(main)


def test_no_work_is_left(event_loop: EventLoop) -> None:
    """Closing a team whose work has ended is no place to be cancelled: its result would be lost."""
    runtime, log = event_loop.runtime, list[str]()

    async def call(cancel: Cancel) -> None:
        team = runtime.team(1)
        await team.open()
        await team.run(runtime.checkpoint)
        cancel()
        await team.close(None)
        log.append("closed")
        await runtime.checkpoint()

    async def main() -> None:
        assert await event_loop.is_cancelled(call)

    event_loop.run(main)
    assert log == ["closed"]


@pytest.mark.parametrize("how", ["start", "run", "start paid"])
def test_ctrl_c_in_a_worker(event_loop: EventLoop, how: str) -> None:
    """Ctrl-C in a worker ends the team; a paid response comes to its place before that."""
    runtime, log = event_loop.runtime, list[str]()

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        log.append("response")

    async def main() -> None:
        team = runtime.team(1)
        await team.open()
        error: BaseException | None = None
        try:
            match how:
                case "start":
                    team.start(work)
                case "start paid":
                    team.start(work, paid=True)
                case _:
                    await team.run(work)
            await team.wait()
        except BaseException as ended:
            error = ended
            raise
        finally:
            await team.close(error)

    with pytest.raises(KeyboardInterrupt):
        event_loop.run(main)
    # trio delivers it to the main task only.
    assert log == (["response"] if how == "start paid" or isinstance(event_loop, Trio) else [])


# What asyncio alone does.


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
