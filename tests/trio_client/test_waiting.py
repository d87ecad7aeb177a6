"""The clock of the event loop is the client's: hours of polling take milliseconds."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
import trio

import muybridge
from client.heard import tasks_alone
from client.in_process import VirtualClock, World
from client.requests_made import FAMILIES, PACE, image, small
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Task

from .in_trio import client_of, mock_world, on_virtual_time


@pytest.mark.parametrize("family", FAMILIES)
@on_virtual_time
async def test_pace(family: str) -> None:
    """Each family is polled at the specification's pace, for hours if need be, in no time."""
    world = mock_world(image_processing=20_000, video_processing=20_000)
    began = time.perf_counter()
    result = await client_of(world).run(small()[family], timeout=None)
    assert result.url is not None
    assert trio.current_time() >= 20_000
    assert time.perf_counter() - began < 30
    shortest, longest = PACE[family]
    times = [seen.at for seen in world.queries]
    gaps = [after - before for before, after in pairwise([0.0, *times])]
    assert gaps[0] == pytest.approx(shortest)
    assert all(shortest - 1e-6 <= gap <= longest + 1e-6 for gap in gaps)
    assert gaps[-1] == pytest.approx(longest)


@on_virtual_time
async def test_wait_timeout() -> None:
    """`wait` ends at its own limit with the task, whatever the scopes around it say."""
    world = mock_world(video_processing=3000)
    client = client_of(world)
    task = await client.create(small()["vidd"])
    with trio.fail_after(1000), pytest.raises(muybridge.WaitTimeout) as caught:
        await client.wait(task, timeout=100)
    assert trio.current_time() == pytest.approx(100)
    assert caught.value.task == task


@on_virtual_time
async def test_move_on_after() -> None:
    """`trio.move_on_after` ends a wait at its moment, and the task can be waited for again."""
    world = mock_world(video_processing=3000)
    client = client_of(world)
    task = await client.create(small()["vidd"])
    with trio.move_on_after(100) as scope:
        await client.wait(task)
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(100)
    assert (await client.wait(task)).url is not None
    assert len(world.posts) == 1


@on_virtual_time
async def test_fail_after() -> None:
    """`trio.fail_after` around `run` ends with its own error, the id having been told."""
    told: list[Task] = []
    world = mock_world(video_processing=3000)
    client = client_of(world, on_submitted=told.append)
    with pytest.raises(trio.TooSlowError):
        with trio.fail_after(100):
            await client.run(small()["vidd"])
    assert [task.id for task in told] == ["task-1"]


@on_virtual_time
async def test_on_update(world: World) -> None:
    """`on_update` hears each reply, and what it raises has the id in its notes."""
    updates: list[Result] = []
    client = client_of(world)
    result = await client.run(image(), on_update=updates.append)
    assert updates[-1] == result
    assert len(updates) == len(world.queries)

    def odd(_: Result) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await client.run(image(), on_update=odd)
    assert world.posts[-1] == world.seen[-2]
    assert any("was accepted" in note for note in caught.value.__notes__)


@on_virtual_time
async def test_hook_that_raises(world: World) -> None:
    """What `on_submitted` raises comes out of `create` with the id in its notes."""

    def odd(_: Task) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await client_of(world, on_submitted=odd).create(image())
    assert "task-1" in caught.value.__notes__[0]


@on_virtual_time
async def test_watch() -> None:
    """A watch gives a result for each change of status, the completed one last."""
    world = mock_world(video_queued=50, video_processing=50)
    client = client_of(world)
    task = await client.create(small()["vidsa"])
    async with client.watch(task) as results:
        seen = [result.status async for result in results]
    assert seen == ["queued", "processing", "completed"]


@on_virtual_time
async def test_watch_left_early() -> None:
    """A watch that is left asks no more, neither by itself nor when it is iterated again."""
    world = mock_world(video_queued=50, video_processing=50)
    client = client_of(world)
    task = await client.create(small()["vidsa"])
    async with client.watch(task) as results:
        async for _ in results:
            break
    await trio.sleep(1000)
    assert [result async for result in results] == []
    assert len(world.queries) == 1


@on_virtual_time
async def test_watch_gone_on_with() -> None:
    """A loop over a watch that was broken off can be gone on with inside the context."""
    world = mock_world(video_queued=50, video_processing=50)
    client = client_of(world)
    task = await client.create(small()["vidsa"])
    seen: list[str] = []
    async with client.watch(task) as results:
        for _ in range(2):
            async for result in results:
                seen.append(result.status)
                if result.status == "queued":
                    break
    assert seen == ["queued", "processing", "completed"]


@on_virtual_time
async def test_watch_ends_with_what_failed(world: World) -> None:
    """A task that fails is watched to its end, and one that had failed before is given at once."""
    client = client_of(world)
    task = await client.create(small("[fail:content-policy]")["vidsa"])
    async with client.watch(task) as results:
        assert [result.status async for result in results][-1] == "failed"
    gone = Task(id="task-9", status="failed", error="no such ratio")
    async with client.watch(gone) as results:
        assert [result.error async for result in results] == ["no such ratio"]


@on_virtual_time
async def test_single_errors(world: World) -> None:
    """A call ends with its one error, never with a group, and with no other error behind it."""
    client = client_of(world)
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


@on_virtual_time
async def test_resume_from_a_token() -> None:
    """Another client goes on with a task from its token."""
    world = mock_world(video_processing=600)
    token = (await client_of(world).create(small()["vidsb"])).to_token()
    await trio.sleep(50)
    assert (await client_of(world).wait(token)).family == "vidsb"
    assert [seen.at for seen in world.queries][:2] == [pytest.approx(50), pytest.approx(70)]


def test_outside_of_trio() -> None:
    """A client can be made before its event loop is running, and never shows its key."""
    world = World(clock=VirtualClock())
    client = client_of(world)
    assert world.key not in repr(client)
    with pytest.raises(TypeError):
        client.__reduce_ex__(2)


@on_virtual_time
async def test_events(world: World) -> None:
    """`on_event` hears of each step, the submission first."""
    events: list[Event] = []
    await client_of(world, on_event=tasks_alone(events.append)).run(image())
    assert [type(event).__name__ for event in events[:2]] == ["Submitted", "Polled"]
