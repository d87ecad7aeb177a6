"""Coroutines of calls that are closed, or left behind by a trio that has broken down."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from processes import environment
from stores import purchases_at
from transport.scripted_server import Peer, ScriptedServer, in_turn, response_bytes

PROGRAM = """
import signal, sys
from contextlib import suppress
import muybridge, trio

IMAGE = muybridge.ImgaRequest(model="imga", prompt="a horse")
url, call, way = sys.argv[1:]
coroutines = []

def fail(*_):
    raise ValueError("handled")

signal.signal(signal.SIGUSR1, fail)

async def go(client):
    coroutines.append(trio.lowlevel.current_task().coro)
    if call == "create":
        await client.create(IMAGE)
    elif call == "create_once":
        await client.create_once("horse", IMAGE)
    elif call == "run_all":
        async with client.run_all([IMAGE]) as outcomes:
            async for _ in outcomes:
                pass

async def main():
    async with muybridge.AsyncClient("sk-canary-5e1fa0b7c2d94", url, store="store") as client:
        if way == "breaks down":
            await go(client)
        with suppress(BaseExceptionGroup):  # trio cannot continue the task
            async with trio.open_nursery() as nursery:
                nursery.start_soon(go, client)
                await trio.to_thread.run_sync(sys.stdin.readline)
                if way == "closed":
                    coroutines[0].close()
                nursery.cancel_scope.cancel()

trio.run(main)
"""


def ended(call: str, way: str, server: ScriptedServer, arrived: threading.Event, at: Path) -> str:
    """Run the program until its create is under way, and then to its end; return what it says."""
    program = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-c", PROGRAM, server.url, call, way],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=at,
        env=environment(),
    )
    try:
        assert arrived.wait(30)
        if way == "breaks down":
            program.send_signal(signal.SIGUSR1)
        return program.communicate("\n", timeout=60)[1]
    finally:
        program.kill()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("call", "way"),
    [
        *(("create", way) for way in ("closed", "breaks down")),
        *(("create_once", way) for way in ("closed", "breaks down")),
        ("run_all", "breaks down"),  # a nursery of its own holds the call
    ],
)
def test_a_create_that_nobody_waits_for(call: str, way: str, tmp_path: Path) -> None:
    """The program is told that it may have been accepted. It stays spent, and is not sent again."""
    arrived = threading.Event()

    def hang(peer: Peer) -> None:
        peer.read_request()
        arrived.set()
        peer.hang()

    with ScriptedServer(hang) as server:
        said = ended(call, way, server, arrived, tmp_path)
        assert server.posts == 1
    # If the handler raises in the call itself, the notes of its exception say so.
    assert "was under way: it may have been accepted" in said
    assert len(purchases_at(tmp_path / "store")) == 1


def test_a_create_that_ends(tmp_path: Path) -> None:
    """Nothing is told of a create whose response was read, even after a cancellation."""
    arrived = threading.Event()

    def refuse(peer: Peer) -> None:
        peer.read_request()
        arrived.set()
        peer.send(response_bytes(400, b"{}"))

    with ScriptedServer(in_turn(refuse)) as server:
        said = ended("create", "cancelled", server, arrived, tmp_path)
        assert server.posts == 1
    assert "under way" not in said
