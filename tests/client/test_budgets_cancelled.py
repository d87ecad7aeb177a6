"""A call that is cancelled while the ledger is written: nothing is sent, or nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import in_trio_task

from muybridge import AsyncClient, Task
from muybridge.ledger import Budget, Entry, Ledger, Purchase, State
from muybridge.ledger.sqlite_store import SqliteStore

from .in_process import AsyncFace, InProcessTransport, World
from .requests_made import image
from .runtimes import Asyncio, Cancel, EventLoop, Trio


class SlowLedger(Ledger):
    """A ledger on a disk that is slow enough to be cancelled meanwhile.

    Args:
        path: Where it is.
        place: When to cancel: before or after a method does its work.
    """

    def __init__(self, path: Path, place: str) -> None:
        super().__init__(SqliteStore(path))
        self._place = place
        self.cancel: Callable[[], object] = lambda: None

    def arm(self, purchase: Purchase, budgets: Sequence[Budget], wall: float) -> None:
        self._strike("before arming")
        super().arm(purchase, budgets, wall)
        self._strike("after arming")

    def named(self, account: str, once: str, digest: str) -> Entry | None:
        self._strike("before looking")
        entry = super().named(account, once, digest)
        self._strike("after looking")
        return entry

    def conclude(self, key: str, state: State, **facts: Any) -> None:
        self._strike("before concluding")
        super().conclude(key, state, **facts)
        self._strike("after concluding")

    def _strike(self, place: str) -> None:
        if place == self._place:
            self.cancel()


@pytest.fixture(params=[Trio(), Asyncio()], ids=["trio", "asyncio"])
def event_loop(request: pytest.FixtureRequest) -> EventLoop:
    loop: EventLoop = request.param
    return loop


async def create(client: AsyncClient) -> None:
    await client.create(image())


async def create_once(client: AsyncClient) -> None:
    await client.create_once("order 1", image())


async def run_all(client: AsyncClient) -> None:
    async with client.run_all([image()]) as outcomes:
        async for _ in outcomes:
            pass


async def joining(client: AsyncClient) -> None:
    async with client.run_all([image()], dedupe=True) as outcomes:
        async for _ in outcomes:
            pass


async def stream(client: AsyncClient) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    async with client.stream_chat_completions(asked) as chunks:
        async for _ in chunks:
            pass


CALLS = {
    "create": create,
    "create_once": create_once,
    "run_all": run_all,
    "joining": joining,
    "stream": stream,
}
Call = Callable[[AsyncClient], Coroutine[Any, Any, None]]


def cancelled_call(
    event_loop: EventLoop, call: Call, ledger: SlowLedger, tasks: list[Task]
) -> World:
    """Cancel *call* where the ledger says so, and return the service."""
    world = World()

    async def calling(cancel: Cancel) -> None:
        if in_trio_task():
            ledger.cancel = lambda: trio.from_thread.run_sync(cancel)
        else:
            loop = asyncio.get_running_loop()
            ledger.cancel = lambda: loop.call_soon_threadsafe(cancel)
        transport = AsyncFace(InProcessTransport(world))
        async with AsyncClient(
            world.key,
            world.url,
            world.url,
            ledger=ledger,
            transport=transport,
            on_submitted=tasks.append,
            poll_interval=0.01,
        ) as client:
            await call(client)
            await trio.lowlevel.checkpoint() if in_trio_task() else await asyncio.sleep(0)

    async def main() -> None:
        assert await event_loop.is_cancelled(calling)

    event_loop.run(main)
    return world


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", ["before arming", "after arming"])
def test_while_arming(event_loop: EventLoop, tmp_path: Path, call: str, place: str) -> None:
    """If the call is cancelled while it is armed, nothing is sent, and the amount is released."""
    ledger = SlowLedger(tmp_path / "ledger.sqlite3", place)
    world = cancelled_call(event_loop, CALLS[call], ledger, [])
    assert world.posts == []
    assert [entry.state for entry in ledger.entries()] == [State.RELEASED]


@pytest.mark.parametrize("call", ["create_once", "joining"])
@pytest.mark.parametrize("place", ["before looking", "after looking"])
def test_while_looking(event_loop: EventLoop, tmp_path: Path, call: str, place: str) -> None:
    """If the call is cancelled while it looks for a name, nothing is sent or recorded."""
    ledger = SlowLedger(tmp_path / "ledger.sqlite3", place)
    world = cancelled_call(event_loop, CALLS[call], ledger, [])
    assert world.posts == []
    assert [*ledger.entries()] == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", ["before concluding", "after concluding"])
def test_while_concluding(event_loop: EventLoop, tmp_path: Path, call: str, place: str) -> None:
    """If it is cancelled after the response, the outcome is recorded, and the id was reported."""
    ledger = SlowLedger(tmp_path / "ledger.sqlite3", place)
    tasks: list[Task] = []
    world = cancelled_call(event_loop, CALLS[call], ledger, tasks)
    assert len(world.posts) == 1
    [entry] = ledger.entries()
    assert entry.state is State.ACCEPTED
    assert [task.id for task in tasks] == ([] if entry.task is None else [entry.task.id])
    assert (call == "stream") == (tasks == [])
