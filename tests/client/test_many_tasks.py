"""One client serves any number of tasks at once, in process and over real connections."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import muybridge
from muybridge.local import LocalService
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.records.tasks import Result, Task
from sampling import examples
from transport.scripted_server import Peer, ScriptedServer, serve

from .answers import EVENTS, HEAD, LAST, MODEL, PROMPT, WHOLE, part
from .requests_made import FAMILIES, image, small
from .virtual_loops import CLIENTS, VirtualLoop, in_virtual_loop

MANY = examples(500, nightly=2000)


@in_virtual_loop
async def test_one_group(loop: VirtualLoop) -> None:
    """Many runs of all families in one task group each come to a result of their own."""
    world = loop.world()
    client = loop.client(world, 0.1)
    results: list[Result] = []

    async def run(family: str) -> None:
        results.append(await client.run(small()[family]))

    async with anyio.create_task_group() as group:
        for n in range(330):
            group.start_soon(run, FAMILIES[n % len(FAMILIES)])
    assert len({result.id for result in results}) == len(world.posts) == 330


@in_virtual_loop
async def test_one_failure_in_a_group(loop: VirtualLoop) -> None:
    """An error in one task cancels the others, and no id among them is lost."""
    world = loop.world(video_processing=3000)
    told: list[Task] = []
    client = loop.client(world, 0.1, on_submitted=told.append)

    async def run_all() -> None:
        async with anyio.create_task_group() as group:
            for n in range(50):
                prompt = "[fail:content-policy]" if n == 25 else "-"
                group.start_soon(client.run, small(prompt)["vidsa"])

    with pytest.raises(ExceptionGroup) as caught:
        await run_all()
    assert caught.group_contains(muybridge.TaskFailed, depth=1)
    assert len(caught.value.exceptions) == 1
    assert len(told) == len(world.posts) == 50


@in_virtual_loop
async def test_many_polls(loop: VirtualLoop) -> None:
    """Thousands of tasks that poll at once over one client all end, as late as they should."""
    world = loop.world(image_processing=12)
    client = loop.client(world)
    task = await client.create(image())
    results: list[Result] = []

    async def wait() -> None:
        results.append(await client.wait(task))

    async with anyio.create_task_group() as group:
        for _ in range(MANY):
            group.start_soon(wait)
    assert len(results) == MANY
    assert loop.now() == pytest.approx(15, abs=3)
    assert len(world.posts) == 1


@pytest.mark.parametrize("event_loop", ["asyncio", "trio"])
def test_many_at_once_over_sockets(event_loop: str) -> None:
    """Hundreds of runs at once over real connections to the local service all succeed."""
    ended = 0

    async def run(client: muybridge.AsyncClient) -> None:
        nonlocal ended
        assert (await client.run(image())).url is not None
        ended += 1

    async def main() -> None:
        async with CLIENTS[event_loop](
            service.api_key, service.base_url, poll_interval=0.2
        ) as client:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for _ in range(200):
                        group.start_soon(run, client)

    with LocalService(speed=100) as service:
        anyio.run(main, backend=event_loop)
    assert ended == 200


def answer_with_a_stream(peer: Peer) -> None:
    peer.read_request()
    peer.send(HEAD)
    for event in EVENTS:
        peer.send(part(event))
    peer.send(LAST)


@pytest.mark.parametrize("event_loop", ["asyncio", "trio"])
def test_many_texts(event_loop: str) -> None:
    """Many tasks ask one client for text at once, and each is paid for once."""
    texts: list[str] = []

    async def ask(client: muybridge.AsyncClient) -> None:
        async with client.stream_generate_content(MODEL, PROMPT) as chunks:
            texts.append((await chunks.collect()).text)

    async def main() -> None:
        async with (
            CLIENTS[event_loop]("key", server.url, server.url) as client,
            anyio.create_task_group() as group,
        ):
            for _ in range(20):
                group.start_soon(ask, client)

    with ScriptedServer(answer_with_a_stream) as server:
        anyio.run(main, backend=event_loop)
        assert server.posts == 20
    assert texts == [muybridge.GenerateContentResponse(WHOLE).text] * 20


TRANSPORTS = {"asyncio": muybridge.AsyncioTransport, "trio": muybridge.TrioTransport}


@pytest.mark.parametrize("event_loop", TRANSPORTS)
def test_pool_is_bounded(event_loop: str) -> None:
    """More exchanges at once than connections kept wait for none, and the rest are closed."""
    transport = TRANSPORTS[event_loop](pool_size=3)

    async def fetch() -> None:
        request = HttpRequest(method="GET", url=server.url)
        async with transport.stream(request, timeout=5) as reply:
            assert b"".join([piece async for piece in reply.pieces()]) == b"{}"

    async def main() -> None:
        for _ in range(2):
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(fetch)
        assert len(server.peers) == 20 + 17
        await transport.close()

    with ScriptedServer(serve()) as server:
        anyio.run(main, backend=event_loop)


@pytest.mark.parametrize("event_loop", CLIENTS)
def test_waiting_for_the_disk(
    event_loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a download waits for the disk, other tasks go on, and a cancellation waits for it."""
    began, synced = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        began.set()
        assert synced.wait(5)

    async def main() -> None:
        async with (
            CLIENTS[event_loop]("key", server.url) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.download, f"{server.url}/a.png", path)
            with anyio.fail_after(5):
                while not began.is_set():
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
            synced.set()

    monkeypatch.setattr(os, "fsync", slow)
    path = tmp_path / "a.png"
    body = b"\x89PNG" + bytes(300_000)
    with ScriptedServer(serve(200, body, content_type="image/png")) as server:
        anyio.run(main, backend=event_loop)
    assert path.read_bytes() == body
