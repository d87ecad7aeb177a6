"""What every runtime does: it waits, and its teams end their workers and say what ended them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from muybridge.clock import SystemClock
from muybridge.drivers import blocking
from muybridge.drivers.runtime import Runtime
from muybridge.testing import VirtualClock

from .event_loops import asyncio_runs, trio_runs
from .runtimes import Asyncio, Cancel, EventLoop, Main, Trio

ENOUGH = 100
"""More checkpoints than a worker passes before it is cancelled."""


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


@pytest.mark.parametrize("moment", ["never", "at the same time", "while the others end"])
def test_interrupted_worker(event_loop: EventLoop, moment: str) -> None:
    """What ends one worker ends the team, and is raised alone; a cancellation comes after it."""
    runtime = event_loop.runtime

    async def call(cancel: Cancel) -> None:
        async def interrupted() -> None:
            if moment == "at the same time":
                cancel()
            raise interrupt

        async def others() -> None:
            try:
                await team.wait()
            finally:
                if moment == "while the others end":
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
        await runtime.checkpoint()  # the team itself has cancelled nobody but its workers

    async def main() -> None:
        assert await event_loop.is_cancelled(call) is (moment != "never")

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
