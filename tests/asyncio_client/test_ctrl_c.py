"""Ctrl-C under `asyncio.run` while many paid requests are under way."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest

import moments
import muybridge
from client.alarms import ctrl_c
from client.requests_made import image
from muybridge.drivers.on_asyncio import AsyncioTeam
from muybridge.signals import stops_at_once
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    created,
    in_turn,
    read_request,
    send,
)

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


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Ctrl-C is handled as in a fresh interpreter, and after the test as before it."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    gc.collect()  # asyncio logs what a task has raised when nobody can ask for it any more: now
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def create(url: str, **options: Any) -> Task:
    async with muybridge.AsyncClient("key", url, timeout=20, **options) as client:
        return await client.create(image())


def test_ctrl_c_waits_for_a_create(capsys: pytest.CaptureFixture[str]) -> None:
    """The first Ctrl-C says what it waits for, and cancels the program once the id is known."""
    told: list[Task] = []
    script = [read_request, ctrl_c, send(created(1))]
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(create(server.url, on_submitted=told.append))
    assert [task.id for task in told] == ["task-1"]
    assert "task-1" in said(caught.value)
    assert capsys.readouterr().err == (
        "muybridge: waiting for the response to a paid request, so that its id is not lost; press "
        "Ctrl-C again to stop at once\n"
    )


class Impatient(io.StringIO):
    """A screen whose reader presses Ctrl-C again.

    Args:
        at_once: Whether already while the first one is handled.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        super().__init__()
        self._at_once = at_once

    def write(self, text: str, /) -> int:
        if "Ctrl-C again" in text:
            if self._at_once:
                signal.raise_signal(signal.SIGINT)
            else:
                asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        return super().write(text)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("creates", [1, 2])
def test_ctrl_c_twice(monkeypatch: pytest.MonkeyPatch, creates: int, *, at_once: bool) -> None:
    """The second Ctrl-C stops at once, and says how many creates may have been accepted."""
    arrived = threading.Barrier(creates, action=ctrl_c)
    inside: list[str] = []

    def script(peer: Peer) -> None:
        peer.read_request()
        arrived.wait(5)
        peer.hang()

    async def call() -> None:
        try:
            await create(server.url)
        except BaseException as error:
            inside.append(said(error))
            raise

    async def create_all() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(creates):
                group.create_task(call())

    screen = Impatient(at_once=at_once)
    monkeypatch.setattr(sys, "stderr", screen)
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt):
        asyncio.run(create_all())
    assert server.posts == creates
    assert screen.getvalue().count("press Ctrl-C again to stop at once") == 1
    under_way = "a paid request was" if creates == 1 else f"{creates} paid requests were"
    assert f"the program ended while {under_way} under way" in screen.getvalue()
    assert len(inside) == creates
    for notes in inside:
        assert "may have been accepted" in notes
        assert "timed out" not in notes


def test_after_a_second_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program pays for after the second Ctrl-C is shielded again from cancellation."""
    told: list[Task] = []

    def hang_after_ctrl_c(peer: Peer) -> None:
        peer.read_request()
        ctrl_c()
        peer.hang()

    def answer_after_cancelling(peer: Peer) -> None:
        peer.read_request()
        loop.call_soon_threadsafe(creating.cancel)
        loop.call_soon_threadsafe(cancelled.set)
        assert cancelled.wait(5)
        peer.send(created(1))

    async def main() -> None:
        nonlocal loop, creating
        loop = asyncio.get_running_loop()
        creating = asyncio.create_task(create(server.url, on_submitted=told.append))
        await asyncio.wait([creating])
        assert creating.cancelled()

    loop: asyncio.AbstractEventLoop
    creating: asyncio.Task[Task]
    cancelled = threading.Event()
    monkeypatch.setattr(sys, "stderr", Impatient())
    with ScriptedServer(in_turn(hang_after_ctrl_c, answer_after_cancelling)) as server:
        with asyncio.Runner() as runner:
            stopped = runner.get_loop()
            with pytest.raises(KeyboardInterrupt):
                runner.run(create(server.url))
        assert stops_at_once(stopped)
        with closing(asyncio.new_event_loop()) as another:
            assert not stops_at_once(another)
        asyncio.run(main())
    assert [task.id for task in told] == ["task-1"]


def test_ctrl_c_while_creates_end_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response that comes between the two does not make the second Ctrl-C another first one."""
    numbers, told = count(1), list[Task]()
    together = threading.Barrier(2, action=ctrl_c)

    def script(peer: Peer) -> None:
        peer.read_request()
        together.wait(5)
        if next(numbers) == 1:
            peer.send(created(1))
        peer.hang()

    def hear(task: Task) -> None:
        told.append(task)
        asyncio.get_running_loop().call_soon(ctrl_c)

    async def create_both() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(create(server.url, on_submitted=hear))

    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt):
        asyncio.run(create_both())
    assert [task.id for task in told] == ["task-1"]
    assert screen.getvalue().count("press Ctrl-C again to stop at once") == 1
    assert screen.getvalue().count("a paid request was under way") == 1


def test_a_program_that_ends_while_a_create_is_under_way() -> None:
    """Ctrl-C is handled as before, though the handler of `asyncio.run` was replaced at its end."""
    arrived, told = threading.Event(), list[Task]()

    def script(peer: Peer) -> None:
        peer.read_request()
        arrived.set()
        assert ended.wait(5)
        peer.send(created(1))

    async def main() -> None:
        creating.append(asyncio.create_task(create(server.url, on_submitted=told.append)))
        await asyncio.to_thread(arrived.wait, 5)
        asyncio.get_running_loop().call_soon(ended.set)

    ended, creating = threading.Event(), list[asyncio.Task[Task]]()
    with ScriptedServer(script) as server:
        asyncio.run(main())
    assert [task.id for task in told] == ["task-1"]


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
    """A run that Ctrl-C ends waits for its paid responses. The second one stops at once."""
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
        if times == 2:
            peer.hang()
            return
        assert over.wait(5)
        peer.send(created(number))
        peer.hang()

    close = moments.at("team of asyncio tasks closed").value

    async def press(team: AsyncioTeam, error: BaseException | None) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(ctrl_c if times == 2 else over.set)
        await close(team, error)

    monkeypatch.setattr(*moments.at("team of asyncio tasks closed").place, press)

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
    notes = said(inside[0])
    assert f"{MANY} not sent" in notes
    if times == 1:
        assert {task.id for task in told} == IDS
        assert set(notes.replace(",", " ").split()) >= IDS
        assert notes in said(caught.value)
    else:
        assert not told
        assert notes.count("may have been accepted") == MANY
    assert server.posts == MANY
