"""The tasks whose calls were interrupted are found, also where the exception's notes are lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import anyio
import pytest

import moments
from muybridge import AsyncClient, WaitTimeout
from muybridge.drivers import notes
from muybridge_protocol.events import Submitted
from muybridge_protocol.records.tasks import Task

from .alarms import notes as notes_of
from .drivers import MakeClient
from .in_process import World
from .requests_made import image
from .virtual_loops import VirtualLoop, in_virtual_loop

Use = Callable[[AsyncClient], Awaitable[object]]


async def together(client: AsyncClient) -> None:
    """Run three requests in a task group, within a timeout that strikes while they wait."""
    with anyio.fail_after(2.5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(client.run, image())


def ids(tasks: tuple[Task, ...]) -> set[str]:
    return {task.id for task in tasks}


def used(loop: VirtualLoop, use: Use, **settings: object) -> tuple[AsyncClient, BaseException]:
    """Use a client until an exception leaves its context, and return both."""
    seen: list[AsyncClient] = []

    async def main() -> None:
        client = loop.client(loop.world(), latency=1.0, **settings)
        seen.append(client)
        async with client:
            await use(client)

    with pytest.raises(TimeoutError) as caught:
        loop.run(main)
    return seen[0], caught.value


def test_a_timeout_around_a_task_group(loop: VirtualLoop) -> None:
    """The exception that leaves the client's context names every task that was accepted."""
    client, error = used(loop, together)
    assert len(ids(client.interrupted_tasks)) == 3
    for task in client.interrupted_tasks:
        assert notes.accepted(task) in notes_of(error)


def test_somebody_who_is_told_ids_is_not_told_twice(loop: VirtualLoop) -> None:
    """With `on_submitted`, the exception names none; the list has them all the same."""
    told: list[Task] = []
    client, error = used(loop, together, on_submitted=told.append)
    assert ids(client.interrupted_tasks) == ids(tuple(told))
    assert not notes_of(error)


def test_many_tasks(loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes name some of many tasks, and say where the others are; the oldest are forgotten."""
    monkeypatch.setattr(*moments.constant("interrupted tasks kept"), 2)
    monkeypatch.setattr(*moments.constant("interrupted tasks named"), 1)
    client, error = used(loop, together)
    first, second = client.interrupted_tasks
    assert notes.accepted(first) in notes_of(error)
    assert notes.accepted(second) not in notes_of(error)
    assert "1 more tasks are in interrupted_tasks." in notes_of(error)


@in_virtual_loop
async def test_a_scope_that_swallows_its_cancellation(loop: VirtualLoop) -> None:
    """A task whose wait a scope has cancelled is in the list until its result has arrived."""
    client = loop.client(loop.world(), latency=1.0)
    with anyio.move_on_after(2.5):
        await client.run(image())
    [left] = client.interrupted_tasks
    await client.wait(left)
    assert client.interrupted_tasks == ()


@in_virtual_loop
async def test_a_download(loop: VirtualLoop, tmp_path: Path) -> None:
    """A download that is interrupted is in the list, too, until it has succeeded."""
    client = loop.client(loop.world(), latency=1.0)
    result = await client.run(image())
    assert client.interrupted_tasks == ()
    for name in ("horse", "horse.png"):
        with anyio.move_on_after(0.5):
            await client.save(result, tmp_path / name)
        assert ids(client.interrupted_tasks) == {result.id}
    await client.save(result, tmp_path / "horse")
    assert client.interrupted_tasks == ()


def test_a_timeout_around_a_download(loop: VirtualLoop, tmp_path: Path) -> None:
    """The exception that leaves the client's context names what could not be saved in time."""

    async def use(client: AsyncClient) -> None:
        result = await client.run(image())
        with anyio.fail_after(0.5):
            await client.download(result, tmp_path / "horse.png")

    client, error = used(loop, use)
    [left] = client.interrupted_tasks
    assert f"to resume: download({left.id!r}, ...)" in notes_of(error)


def test_a_listener_that_raises(make_client: MakeClient, world: World) -> None:
    """Under every driver, a call that a user's own exception ends leaves its task in the list."""

    def fail(_: object) -> None:
        raise LookupError("mine")

    client = make_client(world)
    with pytest.raises(LookupError):
        client.run(image(), on_update=fail)
    assert len(client.interrupted_tasks) == 1


def test_an_error_of_the_service(make_client: MakeClient, world: World) -> None:
    """An error that carries its task leaves nothing in the list."""
    client = make_client(world)
    with pytest.raises(WaitTimeout) as caught:
        client.run(image("[slow:9999]"), timeout=1)
    assert caught.value.task is not None
    assert client.interrupted_tasks == ()


@pytest.mark.parametrize("strikes_at", [1, 2])
def test_a_ctrl_c_while_notes_are_left(
    strikes_at: int, make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it strikes, one of the two exceptions names the task."""
    leave_note, calls = notes.PaidNotes.leave_note, count(1)

    def strike(paid: notes.PaidNotes, error: BaseException) -> None:
        if next(calls) == strikes_at:
            raise KeyboardInterrupt
        leave_note(paid, error)

    def fail(event: object) -> None:
        match event:
            case Submitted():
                raise LookupError
            case _:
                pass

    monkeypatch.setattr(notes.PaidNotes, "leave_note", strike)
    client = make_client(world, on_event=fail)
    with pytest.raises(KeyboardInterrupt) as caught:
        client.run(image())
    error: BaseException | None = caught.value
    said = ""
    while error is not None:
        said += notes_of(error)
        error = error.__context__
    assert "was accepted" in said
