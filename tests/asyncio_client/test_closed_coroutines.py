"""Coroutines of calls that are closed, by whoever drives them or with their event loop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge_protocol.events import Ambiguous
from processes import environment
from transport.scripted_server import Peer, ScriptedServer, response_bytes

KEY = "sk-canary-5e1fa0b7c2d94"
IMAGE = muybridge.ImgaRequest(model="imga", prompt="a horse")
CREATED = json.dumps({"id": "task-1", "object": "imga", "created": 1, "status": "queued"}).encode()

Call = Callable[[muybridge.AsyncClient], Coroutine[Any, Any, object]]

CALLS: dict[str, Call] = {
    "create": lambda client: client.create(IMAGE),
    "create_once": lambda client: client.create_once("horse", IMAGE),
    "run": lambda client: client.run(IMAGE),
}


class Held:
    """Answers a create only when it may.

    Args:
        answer: Sends the answer.
        requests: How many requests have to be there before they have `arrived`.
    """

    def __init__(self, answer: Callable[[Peer], object], requests: int = 1) -> None:
        self.arrived = threading.Event()
        self.may_answer = threading.Event()
        self._answer = answer
        self._requests = requests
        self._numbers = count(1)

    def __call__(self, peer: Peer) -> None:
        """Play the script to a connection."""
        peer.read_request()
        if next(self._numbers) == self._requests:
            self.arrived.set()
        self.may_answer.wait(10)
        self._answer(peer)


def accept(peer: Peer) -> None:
    peer.send(response_bytes(200, CREATED))


async def close_under_way(client: muybridge.AsyncClient, call: Call, held: Held) -> None:
    """Close the coroutine of a *call* while its create is under way, and let it end."""
    task = asyncio.create_task(call(client))
    await asyncio.to_thread(held.arrived.wait, 10)
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    task.cancel()
    await asyncio.wait([task])
    held.may_answer.set()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("store", [None, "store"])
def test_closed_while_its_create_is_under_way(
    call: Call, store: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is read to its end, the id is told and recorded, and nothing is sent again."""
    if call is CALLS["create_once"]:
        monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "default"))
    held = Held(accept)
    told: list[str] = []

    async def main(url: str) -> None:
        client = muybridge.AsyncClient(
            KEY,
            url,
            on_submitted=lambda task: told.append(task.id),
            store=None if store is None else tmp_path / store,
        )
        async with client:
            await close_under_way(client, call, held)
            assert told == ["task-1"]
            assert [task.id for task in client.interrupted_tasks] == ["task-1"]
            if call is CALLS["create_once"]:
                assert getattr(await call(client), "id", None) == "task-1"

    with ScriptedServer(held) as server:
        asyncio.run(main(server.url))
        assert server.posts == 1


def test_closed_while_its_loop_is_stopped() -> None:
    """The id is told as soon as the event loop runs again."""
    held = Held(accept)
    told: list[str] = []

    async def begin(url: str) -> tuple[muybridge.AsyncClient, asyncio.Task[object]]:
        client = muybridge.AsyncClient(KEY, url, on_submitted=lambda task: told.append(task.id))
        task = asyncio.create_task(CALLS["create"](client))
        await asyncio.to_thread(held.arrived.wait, 10)
        return client, task

    async def end(client: muybridge.AsyncClient, task: asyncio.Task[object]) -> None:
        task.cancel()
        held.may_answer.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        await client.close()

    with ScriptedServer(held) as server, asyncio.Runner() as runner:
        client, task = runner.run(begin(server.url))
        coroutine = task.get_coro()
        assert coroutine is not None
        coroutine.close()
        runner.run(end(client, task))
        assert server.posts == 1
    assert told == ["task-1"]


def test_closed_and_then_lost() -> None:
    """If the response is lost after that, the create is reported as ambiguous."""
    held = Held(Peer.reset)
    events: list[object] = []

    async def main(url: str) -> None:
        async with muybridge.AsyncClient(KEY, url, on_event=events.append) as client:
            await close_under_way(client, CALLS["create"], held)

    with ScriptedServer(held) as server:
        asyncio.run(main(server.url))
        assert server.posts == 1
    assert [type(event) for event in events].count(Ambiguous) == 1


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("status", [200, 400, 500])
def test_closed_and_then_echoed(status: int, is_cut: bool, tmp_path: Path) -> None:  # noqa: FBT001  a parameter
    """If a response repeats the key, events and the store redact it."""
    echo = response_bytes(status, f"no model can draw {KEY} for you".encode())
    held = Held(lambda peer: peer.send(echo[: -len("for you")] if is_cut else echo))
    events: list[object] = []

    async def main(url: str) -> None:
        store = tmp_path / "store"
        async with muybridge.AsyncClient(KEY, url, on_event=events.append, store=store) as client:
            await close_under_way(client, CALLS["create"], held)

    with ScriptedServer(held) as server:
        asyncio.run(main(server.url))
        assert server.posts == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    told = repr(events) + kept.decode(errors="replace")
    assert "no model can draw" in told
    assert KEY not in told


STOPS = """
import asyncio, gc, os, sys
import muybridge

IMAGE = muybridge.ImgaRequest(model="imga", prompt="a horse")
url, call = sys.argv[1:]
os.environ["MUYBRIDGE_STORE"] = "store"

async def main():
    async with muybridge.AsyncClient("sk-canary-5e1fa0b7c2d94", url, text_base_url=url) as client:
        if call == "create":
            await client.create(IMAGE)
        elif call == "create_once":
            await client.create_once("horse", IMAGE)
        elif call == "run_all":
            async with client.run_all([IMAGE]) as outcomes:
                async for _ in outcomes:
                    pass
        elif call == "text":
            await client.generate_content("textg-2.5-pro", "a horse")
        elif call == "stream":
            async with client.stream_generate_content("textg-2.5-pro", "a horse"):
                pass
        elif call == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(client.create(IMAGE))
                group.create_task(client.create_once("horse", IMAGE))

async def stop():
    await asyncio.to_thread(sys.stdin.readline)
    loop.stop()

loop = asyncio.new_event_loop()
tasks = [loop.create_task(main()), loop.create_task(stop())]
loop.run_forever()
loop.close()
del tasks, loop
gc.collect()
"""


ONE = "a paid request was under way: it may have been accepted"
TWO = "2 paid requests were under way: they may have been accepted"


@pytest.mark.parametrize(
    ("call", "requests", "told"),
    [
        ("create", 1, ONE),
        ("create_once", 1, ONE),
        ("run_all", 1, ONE),
        ("text", 1, None),
        ("stream", 1, None),
        ("group", 2, TWO),
    ],
)
def test_a_loop_that_is_stopped_and_closed(
    call: str, requests: int, told: str | None, tmp_path: Path
) -> None:
    """A program that closes its event loop under a call is told about money, and nothing else."""
    held = Held(Peer.hang, requests)
    with ScriptedServer(held) as server:
        program = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-W", "ignore::ResourceWarning", "-c", STOPS, server.url, call],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        try:
            assert held.arrived.wait(30)
            said = program.communicate("\n", timeout=30)[1]
        finally:
            held.may_answer.set()
            program.kill()
    assert program.returncode == 0
    assert "RuntimeError" not in said
    assert "Traceback" not in said
    assert said.count("may have been accepted") == (told is not None)
    assert told is None or told in said
