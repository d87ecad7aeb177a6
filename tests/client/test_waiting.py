"""The clock of the event loop is the client's: hours of polling take milliseconds."""

from __future__ import annotations

import time
from itertools import pairwise

import anyio
import pytest

import muybridge
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Task

from .heard import tasks_alone
from .in_process import sleep
from .requests_made import FAMILIES, PACE, image, small
from .virtual_loops import VirtualLoop, in_virtual_loop


@pytest.mark.parametrize("family", FAMILIES)
@in_virtual_loop
async def test_pace(loop: VirtualLoop, family: str) -> None:
    """Each family is polled at the specification's pace, for hours if need be, in no time."""
    world = loop.world(image_processing=20_000, video_processing=20_000)
    began = time.perf_counter()
    result = await loop.client(world).run(small()[family], timeout=None)
    assert result.url is not None
    assert loop.now() >= 20_000
    assert time.perf_counter() - began < 30
    shortest, longest = PACE[family]
    times = [seen.at for seen in world.queries]
    gaps = [after - before for before, after in pairwise([0.0, *times])]
    assert gaps[0] == pytest.approx(shortest)
    assert all(shortest - 1e-6 <= gap <= longest + 1e-6 for gap in gaps)
    assert gaps[-1] == pytest.approx(longest)


@in_virtual_loop
async def test_wait_timeout(loop: VirtualLoop) -> None:
    """`wait` ends at its own limit with the task, whatever the scopes around it say."""
    world = loop.world(video_processing=3000)
    client = loop.client(world)
    task = await client.create(small()["vidd"])
    with anyio.fail_after(1000), pytest.raises(muybridge.WaitTimeout) as caught:
        await client.wait(task, timeout=100)
    assert loop.now() == pytest.approx(100)
    assert caught.value.task == task


@in_virtual_loop
async def test_on_update(loop: VirtualLoop) -> None:
    """`on_update` hears each reply, and what it raises has the id in its notes."""
    world = loop.world()
    updates: list[Result] = []
    client = loop.client(world)
    result = await client.run(image(), on_update=updates.append)
    assert updates[-1] == result
    assert len(updates) == len(world.queries)

    def odd(_: Result) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await client.run(image(), on_update=odd)
    assert world.posts[-1] == world.seen[-2]
    assert any("was accepted" in note for note in caught.value.__notes__)


@in_virtual_loop
async def test_hook_that_raises(loop: VirtualLoop) -> None:
    """What `on_submitted` raises comes out of `create` with the id in its notes."""
    world = loop.world()

    def odd(_: Task) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await loop.client(world, on_submitted=odd).create(image())
    assert "task-1" in caught.value.__notes__[0]


@in_virtual_loop
async def test_watch(loop: VirtualLoop) -> None:
    """A watch gives a result for each change of status, the completed one last."""
    world = loop.world(video_queued=50, video_processing=50)
    client = loop.client(world)
    task = await client.create(small()["vidsa"])
    async with client.watch(task) as results:
        seen = [result.status async for result in results]
    assert seen == ["queued", "processing", "completed"]


@in_virtual_loop
async def test_watch_left_early(loop: VirtualLoop) -> None:
    """A watch that is left asks no more, neither by itself nor when it is iterated again."""
    world = loop.world(video_queued=50, video_processing=50)
    client = loop.client(world)
    task = await client.create(small()["vidsa"])
    async with client.watch(task) as results:
        async for _ in results:
            break
    await sleep(1000)
    assert [result async for result in results] == []
    assert len(world.queries) == 1


@in_virtual_loop
async def test_watch_gone_on_with(loop: VirtualLoop) -> None:
    """A loop over a watch that was broken off can be gone on with inside the context."""
    world = loop.world(video_queued=50, video_processing=50)
    client = loop.client(world)
    task = await client.create(small()["vidsa"])
    seen: list[str] = []
    async with client.watch(task) as results:
        for _ in range(2):
            async for result in results:
                seen.append(result.status)
                if result.status == "queued":
                    break
    assert seen == ["queued", "processing", "completed"]


@in_virtual_loop
async def test_watch_ends_with_what_failed(loop: VirtualLoop) -> None:
    """A task that fails is watched to its end, and one that had failed before is given at once."""
    world = loop.world()
    client = loop.client(world)
    task = await client.create(small("[fail:content-policy]")["vidsa"])
    async with client.watch(task) as results:
        assert [result.status async for result in results][-1] == "failed"
    gone = Task(id="task-9", status="failed", error="no such ratio")
    async with client.watch(gone) as results:
        assert [result.error async for result in results] == ["no such ratio"]


@in_virtual_loop
async def test_single_errors(loop: VirtualLoop) -> None:
    """A call ends with its one error, never with a group, and with no other error behind it."""
    world = loop.world()
    client = loop.client(world)
    lost = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)
    unsent = TransportFailure(phase=Phase.TLS, sent=False, reason=Reason.CERTIFICATE)
    for told, kind in (
        (lost, muybridge.CreateAmbiguous),
        (unsent, muybridge.NotSent),
        (HttpResponse(401), muybridge.Unauthorized),
    ):
        world.instead.append(told)
        with pytest.raises(kind) as caught:
            await client.create(image())
        assert caught.value.__cause__ is caught.value.__context__ is None
    with pytest.raises(muybridge.AssetDeleteFailed):
        await client.delete_asset("asset-none")
    await client.delete_asset("asset-1")


@in_virtual_loop
async def test_resume_from_a_token(loop: VirtualLoop) -> None:
    """Another client goes on with a task from its token."""
    world = loop.world(video_processing=600)
    token = (await loop.client(world).create(small()["vidsb"])).to_token()
    await sleep(50)
    assert (await loop.client(world).wait(token)).family == "vidsb"
    assert [seen.at for seen in world.queries][:2] == [pytest.approx(50), pytest.approx(70)]


@in_virtual_loop
async def test_events(loop: VirtualLoop) -> None:
    """`on_event` hears of each step, the submission first."""
    world = loop.world()
    events: list[Event] = []
    await loop.client(world, on_event=tasks_alone(events.append)).run(image())
    assert [type(event).__name__ for event in events[:2]] == ["Submitted", "Polled"]


def test_outside_of_its_event_loop(loop: VirtualLoop) -> None:
    """A client can be made before its event loop is running, and never shows its key."""
    world = loop.world()
    client = loop.client(world)
    assert world.key not in repr(client)
    with pytest.raises(TypeError):
        client.__reduce_ex__(2)
