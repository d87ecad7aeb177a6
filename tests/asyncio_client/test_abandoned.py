"""What asyncio takes away from a call: its event loop, or the threads that it needs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from muybridge.drivers.on_asyncio import AsyncioRuntime, tell_abandoned
from processes import environment
from transport.scripted_server import Peer, ScriptedServer

EXITS = """
import asyncio, sys
import muybridge

async def main():
    async with muybridge.AsyncClient("sk-canary-5e1fa0b7c2d94", sys.argv[1]) as client:
        image = muybridge.ImgaRequest(model="imga", prompt="a horse")
        creates = [client.create(image) for _ in range(int(sys.argv[2]))]
        async def leave():
            await asyncio.to_thread(sys.stdin.readline)
            sys.exit(3)
        await asyncio.gather(leave(), *creates)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("creates", "told"),
    [
        (0, ""),
        (1, "a paid request was under way: it may have been accepted"),
        (2, "2 paid requests were under way: they may have been accepted"),
    ],
)
def test_a_program_that_abandons_creates_says_so(creates: int, told: str) -> None:
    """If a program ends while creates are under way in a closed event loop, it says how many."""
    sent, over = threading.Semaphore(0), threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        sent.release()
        over.wait(30)

    with ScriptedServer(script) as server:
        program = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-c", EXITS, server.url, str(creates)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        try:
            assert all(sent.acquire(timeout=30) for _ in range(creates))
            said = program.communicate("\n", timeout=30)[1]
        finally:
            over.set()
            program.kill()
    assert program.returncode == 3
    assert told in said
    assert ("muybridge:" in said) == bool(creates)


def test_only_what_was_sent_and_has_not_ended_is_abandoned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An exchange that was not sent, or that has ended, is not reported."""

    async def main() -> None:
        async def exchange(*, ends: bool) -> None:
            if not ends:
                await asyncio.Event().wait()

        runtime = AsyncioRuntime(time.time)

        def call(*, ends: bool, sent: bool) -> asyncio.Task[None]:
            return asyncio.create_task(runtime.unbroken(exchange(ends=ends), lambda: sent))

        calls = [call(ends=False, sent=False), call(ends=True, sent=True)]
        await calls[1]
        await asyncio.sleep(0)
        tell_abandoned()
        assert capsys.readouterr().err == ""
        over = [False]
        calls.append(
            asyncio.create_task(runtime.unbroken(exchange(ends=False), lambda: not over[0]))
        )
        await asyncio.sleep(0)
        tell_abandoned()
        assert capsys.readouterr().err == (
            "muybridge: the program ended while a paid request was under way: it may have been "
            "accepted. Before you send anything again, check your account for new tasks.\n"
        )
        over[0] = True
        for one in calls:
            one.cancel()
        await asyncio.wait(calls)

    asyncio.run(main())


def test_work_that_waits_for_a_thread_can_be_cancelled() -> None:
    """Work for a thread is cancelled at once, and is never done, if every thread is busy."""
    busy, done = threading.Event(), list[int]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        others = loop.run_in_executor(None, busy.wait, 30)
        runtime = AsyncioRuntime(time.time)
        waiting = asyncio.create_task(runtime.in_thread(lambda: done.append(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 10)
        assert not others.done()
        busy.set()
        await runtime.in_thread(lambda: done.append(2))

    try:
        asyncio.run(main())
    finally:
        busy.set()
    assert done == [2]


def test_work_that_must_end_is_done_although_it_is_cancelled() -> None:
    """Work that must end is done even if it is cancelled before a thread has begun it."""
    busy, done = threading.Event(), list[int]()

    async def finish(runtime: AsyncioRuntime) -> None:
        await runtime.finish_in_thread(lambda: done.append(1))
        assert done == [1]
        await runtime.raise_cancellation()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        loop.run_in_executor(None, busy.wait, 30)
        finishing = asyncio.create_task(finish(AsyncioRuntime(time.time)))
        for _ in range(3):
            await asyncio.sleep(0)
            finishing.cancel()
        await asyncio.sleep(0)
        assert not finishing.done()
        busy.set()
        with pytest.raises(asyncio.CancelledError):
            await finishing

    try:
        asyncio.run(main())
    finally:
        busy.set()
    assert done == [1]


def test_work_that_a_thread_has_begun_ends_before_it_is_cancelled() -> None:
    """Work that a thread has begun is waited for, however often it is cancelled."""
    begun, may_end, done = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        begun.set()
        assert may_end.wait(30)
        done.append(1)

    async def main() -> None:
        runtime = AsyncioRuntime(time.time)
        working = asyncio.create_task(runtime.in_thread(work))
        assert await asyncio.to_thread(begun.wait, 30)
        for _ in range(3):
            working.cancel()
            await asyncio.sleep(0)
        assert not working.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert done == [1]

    try:
        asyncio.run(main())
    finally:
        may_end.set()
