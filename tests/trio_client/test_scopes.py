"""trio's own scopes around a call, on a clock that jumps."""

from __future__ import annotations

import pytest
import trio

from client.requests_made import small
from muybridge_protocol.records.tasks import Task

from .in_trio import client_of, mock_world, on_virtual_time


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
