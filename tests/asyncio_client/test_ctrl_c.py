"""Ctrl-C under `asyncio.run` while many paid requests are under way."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from itertools import count

import pytest

import muybridge
from client.alarms import ctrl_c
from client.requests_made import image
from muybridge.drivers.on_asyncio import AsyncioTeam
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import Peer, ScriptedServer, created

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a thread are posix")

MANY = 10
IDS = {f"task-{number + 1}" for number in range(MANY)}


def said(error: BaseException | None) -> str:
    """Return all notes that a traceback of *error* shows."""
    notes: list[str] = []
    while error is not None:
        notes += getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__
    return "\n".join(notes)


def test_many_creates_at_once() -> None:
    """Ctrl-C while many creates are out: every id is told, and one interruption comes out."""
    numbers = count(1)
    together = threading.Barrier(MANY, action=ctrl_c)

    def script(peer: Peer) -> None:
        peer.read_request()
        together.wait(5)
        peer.send(created(next(numbers)))
        peer.hang()

    told: list[Task] = []

    async def create_all() -> None:
        async with (
            muybridge.AsyncClient("key", server.url, on_submitted=told.append) as client,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(MANY):
                group.create_task(client.create(image()))

    usual = signal.getsignal(signal.SIGINT)
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt):
        asyncio.run(create_all())
    assert {task.id for task in told} == IDS
    assert signal.getsignal(signal.SIGINT) is usual
    assert server.posts == MANY


@pytest.mark.parametrize("times", [1, 2])
def test_many_creates_of_a_run(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """However often Ctrl-C is pressed, a run ends once its paid responses are in, and tells them.

    The second one ends the event loop. `asyncio.run` then waits for the tasks.
    """
    numbers = count(1)
    together = threading.Barrier(MANY)
    over = threading.Event()
    told: list[Task] = []
    inside: list[BaseException] = []

    def script(peer: Peer) -> None:
        peer.read_request()
        together.wait(5)
        number = next(numbers)
        if number == 1:
            ctrl_c()
        assert over.wait(5)
        peer.send(created(number))
        peer.hang()

    close = AsyncioTeam.close

    async def press(team: AsyncioTeam, error: BaseException | None) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(times - 1):
            loop.call_soon(ctrl_c)
        loop.call_later(0, over.set)
        await close(team, error)

    monkeypatch.setattr(AsyncioTeam, "close", press)

    async def run_all() -> None:
        try:
            async with (
                muybridge.AsyncClient("key", server.url, on_submitted=told.append) as client,
                client.run_all([image()] * MANY * 2, concurrency=MANY) as outcomes,
            ):
                async for _ in outcomes:
                    pass
        except BaseException as error:
            inside.append(error)
            raise

    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(run_all())
    assert {task.id for task in told} == IDS
    notes = said(inside[0])
    assert set(notes.replace(",", " ").split()) >= IDS
    assert f"{MANY} not sent" in notes
    if times == 1:
        assert notes in said(caught.value)
    assert server.posts == MANY
