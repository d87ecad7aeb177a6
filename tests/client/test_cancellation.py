"""What costs nothing is cancelled at any suspension, and can be called again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

import muybridge
from muybridge.testing.conformance.event_loops import AsyncioThread, TrioThread
from muybridge_protocol.records.tasks import Task

from .in_process import World
from .requests_made import image
from .virtual_loops import VirtualLoop, in_virtual_loop

Call = Callable[[muybridge.AsyncClient, Task], Awaitable[object]]
Check = Callable[[World, muybridge.AsyncClient, Task], Awaitable[None]]
CANCELLERS = {"asyncio": AsyncioThread(), "trio": TrioThread()}


async def cancelled_everywhere(loop: VirtualLoop, call: Call, check: Check) -> int:
    """Cancel *call* at its first suspension, at its second, until it comes to its end.

    Args:
        loop: The event loop.
        call: What is cancelled, each time with a service and a task of its own.
        check: Called after each.

    Returns:
        How many suspensions there were.
    """

    async def is_reached(nth: int) -> bool:
        world = loop.world()
        client = loop.client(world, latency=0.1)
        task = await client.create(image())

        async def work() -> bool:
            await call(client, task)
            return True

        ended, is_reached = await CANCELLERS[loop.name].cancelled_at(nth, work)
        assert ended is (None if is_reached else True)
        await check(world, client, task)
        assert len(world.posts) == 1
        return is_reached

    nth = 1
    while await is_reached(nth):
        nth += 1
    return nth - 1


async def ends(_: World, client: muybridge.AsyncClient, task: Task) -> None:
    assert (await client.wait(task)).url is not None
    async with client.watch(task) as results:
        assert [result.status async for result in results][-1] == "completed"


@in_virtual_loop
async def test_wait(loop: VirtualLoop) -> None:
    """`wait` is cancelled at once, and can be called again."""
    assert await cancelled_everywhere(loop, lambda client, task: client.wait(task), ends) >= 4


@in_virtual_loop
async def test_watch(loop: VirtualLoop) -> None:
    """A watch is cancelled at once, and can be begun again."""

    async def watch(client: muybridge.AsyncClient, task: Task) -> None:
        async with client.watch(task) as results:
            async for _ in results:
                pass

    assert await cancelled_everywhere(loop, watch, ends) >= 4


@in_virtual_loop
async def test_delete_asset(loop: VirtualLoop) -> None:
    """`delete_asset` is cancelled at once, and has sent one request at most."""

    async def check(world: World, client: muybridge.AsyncClient, _: Task) -> None:
        sent = [seen.path for seen in world.seen if seen.method == "DELETE"]
        assert len(sent) <= 1
        if sent:
            with pytest.raises(muybridge.AssetDeleteFailed):
                await client.delete_asset("asset-1")
        else:
            await client.delete_asset("asset-1")

    count = await cancelled_everywhere(
        loop, lambda client, _: client.delete_asset("asset-1"), check
    )
    assert count >= 3


@in_virtual_loop
async def test_check(loop: VirtualLoop) -> None:
    """A check of media is cancelled at once, and can be repeated."""

    async def check(client: muybridge.AsyncClient) -> muybridge.MediaReport:
        url = f"{client.service}/horse.mp4"
        return await client.check(
            muybridge.VidcRequest(model="vidc_o3", prompt="a horse", reference_videos=[url])
        )

    async def ends(_: World, client: muybridge.AsyncClient, __: Task) -> None:
        report = await check(client)
        assert report.undecided[0].why == "the server responded with status 401"  # without the key

    assert await cancelled_everywhere(loop, lambda client, _: check(client), ends) >= 1
