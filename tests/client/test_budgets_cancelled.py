"""A call that is cancelled while the store is written: nothing is sent, or nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import in_trio_task

from muybridge import AsyncClient, Task
from muybridge.purchases import Purchase, State, Store
from muybridge.purchases.sqlite import SqliteDatabase
from muybridge_protocol.purchases import Order, Outcome
from stores import purchases_at

from .in_process import AsyncFace, InProcessTransport, World
from .requests_made import image
from .runtimes import Asyncio, Cancel, EventLoop, Trio


class SlowStore(Store):
    """A store on a disk that is slow enough to be cancelled meanwhile.

    Args:
        path: Where it is.
        place: When to cancel: before or after a method does its work.
    """

    def __init__(self, path: Path, place: str) -> None:
        super().__init__(SqliteDatabase(path))
        self._place = place
        self.cancel: Callable[[], object] = lambda: None

    def arm(self, order: Order, **more: Any) -> Purchase:
        self._strike("before arming")
        bought = super().arm(order, **more)
        self._strike("after arming")
        return bought

    def named(self, account: str, name: str) -> Purchase | None:
        self._strike("before looking")
        found = super().named(account, name)
        self._strike("after looking")
        return found

    def conclude(self, key: str, outcome: Outcome) -> Purchase:
        self._strike("before concluding")
        bought = super().conclude(key, outcome)
        self._strike("after concluding")
        return bought

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


def cancelled_call(event_loop: EventLoop, call: Call, store: SlowStore, tasks: list[Task]) -> World:
    """Cancel *call* where the store says so, and return the service."""
    world = World()

    async def calling(cancel: Cancel) -> None:
        if in_trio_task():
            store.cancel = lambda: trio.from_thread.run_sync(cancel)
        else:
            loop = asyncio.get_running_loop()
            store.cancel = lambda: loop.call_soon_threadsafe(cancel)
        transport = AsyncFace(InProcessTransport(world))
        async with AsyncClient(
            world.key,
            world.url,
            world.url,
            store=store,
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
    store = SlowStore(tmp_path / "store.sqlite3", place)
    world = cancelled_call(event_loop, CALLS[call], store, [])
    assert world.posts == []
    assert [one.state for one in purchases_at(store.place)] == [State.RELEASED]


@pytest.mark.parametrize("call", ["create_once", "joining"])
@pytest.mark.parametrize("place", ["before looking", "after looking"])
def test_while_looking(event_loop: EventLoop, tmp_path: Path, call: str, place: str) -> None:
    """If the call is cancelled while it looks for a name, nothing is sent or recorded."""
    store = SlowStore(tmp_path / "store.sqlite3", place)
    world = cancelled_call(event_loop, CALLS[call], store, [])
    assert world.posts == []
    assert purchases_at(store.place) == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("place", ["before concluding", "after concluding"])
def test_while_concluding(event_loop: EventLoop, tmp_path: Path, call: str, place: str) -> None:
    """If it is cancelled after the response, the outcome is recorded, and the id was reported."""
    store = SlowStore(tmp_path / "store.sqlite3", place)
    tasks: list[Task] = []
    world = cancelled_call(event_loop, CALLS[call], store, tasks)
    assert len(world.posts) == 1
    [bought] = purchases_at(store.place)
    assert bought.state is State.ACCEPTED
    assert [task.id for task in tasks] == ([] if bought.task is None else [bought.task])
    assert (call == "stream") == (tasks == [])
