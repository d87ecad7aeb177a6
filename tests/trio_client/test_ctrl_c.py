"""Ctrl-C under trio is held back for the replies to requests that cost money."""

from __future__ import annotations

import os
import signal
import threading
from itertools import count
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import trio_test

import moments
import muybridge
from client.alarms import ctrl_c
from client.requests_made import image
from muybridge.drivers.on_trio import TrioTeam
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import Peer, ScriptedServer, created, hang

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a thread are posix")

MANY = 10


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
            muybridge.TrioClient("key", server.url, on_submitted=told.append) as client,
            trio.open_nursery() as nursery,
        ):
            for _ in range(MANY):
                nursery.start_soon(client.create, image())

    usual = signal.getsignal(signal.SIGINT)
    with ScriptedServer(script) as server, pytest.raises(BaseExceptionGroup) as caught:
        trio.run(create_all)
    assert {task.id for task in told} == {f"task-{n + 1}" for n in range(MANY)}
    (interrupt,) = caught.value.exceptions
    assert isinstance(interrupt, KeyboardInterrupt)
    assert "task-" in interrupt.__notes__[0]
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.parametrize("times", [1, 2])
def test_many_creates_of_a_run(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """However often Ctrl-C is pressed, a run ends once its paid responses are in, and tells them.

    trio delivers it to the main task alone, and nothing can break the shields of the others.
    """
    numbers = count(1)
    together = threading.Barrier(MANY)

    def script(peer: Peer) -> None:
        peer.read_request()
        together.wait(5)
        number = next(numbers)
        if number == 1:
            ctrl_c()
        assert over.wait(5)
        peer.send(created(number))
        peer.hang()

    over = threading.Event()
    told: list[Task] = []

    @trio.lowlevel.enable_ki_protection
    async def close(team: TrioTeam, error: BaseException | None) -> None:
        for _ in range(times - 1):
            ctrl_c()
        over.set()
        await as_ever(team, error)

    as_ever = moments.at("team of trio tasks closed").value
    monkeypatch.setattr(*moments.at("team of trio tasks closed").place, close)

    async def run_all() -> None:
        async with (
            muybridge.TrioClient("key", server.url, on_submitted=told.append) as client,
            client.run_all([image()] * MANY * 2, concurrency=MANY) as outcomes,
        ):
            async for _ in outcomes:
                pass

    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        trio.run(run_all)
    ids = {f"task-{n + 1}" for n in range(MANY)}
    assert {task.id for task in told} == ids
    interruptions = (caught.value, caught.value.__context__)
    notes = "\n".join(n for one in interruptions for n in getattr(one, "__notes__", ()))
    assert ids <= set(notes.replace(",", " ").split())
    assert f"{MANY} not sent" in notes
    assert server.posts == MANY


@pytest.mark.parametrize("moment", ["opens", "closes"])
def test_while_a_team_opens_or_closes(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Ctrl-C while a team opens or closes comes out alone, once every worker has ended."""
    owner, name = (trio, "open_nursery") if moment == "opens" else (trio.CancelScope, "cancel")
    as_ever: Any = getattr(owner, name)
    log: list[str] = []

    def struck(*arguments: Any) -> Any:
        monkeypatch.setattr(owner, name, as_ever)
        signal.raise_signal(signal.SIGINT)
        log.append(f"{name} is called")
        return as_ever(*arguments)

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("the worker ends")

    async def main() -> None:
        team = TrioTeam()
        if moment == "opens":
            monkeypatch.setattr(owner, name, struck)
        await team.open()
        team.start(work)
        error: BaseException | None = None
        try:
            await trio.lowlevel.checkpoint()
        except BaseException as ended:
            error = ended
            raise
        finally:
            if moment == "closes":
                monkeypatch.setattr(owner, name, struck)
            await team.close(error)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert log == [f"{name} is called", "the worker ends"]


def test_cancelled_before_the_first_byte() -> None:
    """Ctrl-C that was held back for a create which is then cancelled unsent is not lost."""
    scope = trio.CancelScope()
    token: trio.lowlevel.TrioToken

    def script(peer: Peer) -> None:
        ctrl_c()
        token.run_sync_soon(scope.cancel)  # the signal comes first
        peer.hang()

    async def create() -> None:
        nonlocal token
        token = trio.lowlevel.current_trio_token()
        async with muybridge.TrioClient(
            "key", server.url, transport=muybridge.TrioTransport()
        ) as client:
            with scope:
                await client.create(image())

    with ScriptedServer(script, scheme="https") as server, pytest.raises(KeyboardInterrupt):
        trio.run(create)
    assert server.posts == 0


@trio_test
async def test_not_held_for_queries() -> None:
    """After a create Ctrl-C is handled as ever."""
    usual = signal.getsignal(signal.SIGINT)

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(created(1))
        peer.read_request()
        hang(peer)

    with ScriptedServer(script) as server:
        async with muybridge.TrioClient("key", server.url) as client:
            task = await client.create(image())
            with trio.move_on_after(0.1):
                await client.get(task)
            assert signal.getsignal(signal.SIGINT) is usual
