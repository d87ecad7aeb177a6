"""A program that shuts down the event loop's threads while a paid request is on its way."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from batch.billing import BillingServer
from muybridge import AsyncClient, ImgbRequest, Task
from muybridge.purchases import State
from stores import purchases_at

KEY = "sk-canary-4b1d97e2"
HORSE = ImgbRequest(model="imgb-2", prompt="horse")


def test_the_outcome_is_recorded(tmp_path: Path) -> None:
    """The task is returned, and the store has it, although no thread is left to write it there."""
    store, may_respond = tmp_path / "store.sqlite3", threading.Event()

    async def create(server: BillingServer) -> Task:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def hold(_: str) -> None:
            loop.call_soon_threadsafe(arrived.set)
            assert may_respond.wait(60)

        server.on_create = hold
        async with AsyncClient(KEY, server.url, store=store) as client:
            creating = asyncio.create_task(client.create_once("order 1", HORSE))
            await arrived.wait()
            await loop.shutdown_default_executor()
            may_respond.set()
            return await creating

    with BillingServer() as server:
        task = asyncio.run(create(server))
        assert server.accepted["horse"] == [task.id]
    [bought] = purchases_at(store)
    assert (bought.state, bought.task) == (State.ACCEPTED, task.id)
