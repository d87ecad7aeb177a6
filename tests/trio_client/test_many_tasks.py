"""One client serves any number of tasks at once, in process and over real connections."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import trio_test

import muybridge
from client.in_process import World
from client.requests_made import FAMILIES, image, small
from muybridge.local import LocalService
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.records.tasks import Result, Task
from transport.scripted_server import ScriptedServer, serve

from .in_trio import client_of, mock_world, on_virtual_time

MANY = 2000


@on_virtual_time
async def test_one_nursery(world: World) -> None:
    """Many runs of all families in one nursery each come to a result of their own."""
    client = client_of(world, 0.1)
    results: list[Result] = []

    async def run(family: str) -> None:
        results.append(await client.run(small()[family]))

    async with trio.open_nursery() as nursery:
        for n in range(330):
            nursery.start_soon(run, FAMILIES[n % len(FAMILIES)])
    assert len({result.id for result in results}) == len(world.posts) == 330


@on_virtual_time
async def test_one_failure_in_a_nursery() -> None:
    """An error in one task cancels the others as trio does, and no id among them is lost."""
    world = mock_world(video_processing=3000)
    told: list[Task] = []
    client = client_of(world, 0.1, on_submitted=told.append)

    async def run_all() -> None:
        async with trio.open_nursery() as nursery:
            for n in range(50):
                prompt = "[fail:content-policy]" if n == 25 else "-"
                nursery.start_soon(client.run, small(prompt)["vidsa"])

    with pytest.raises(ExceptionGroup) as caught:
        await run_all()
    assert caught.group_contains(muybridge.TaskFailed, depth=1)
    assert len(caught.value.exceptions) == 1
    assert len(told) == len(world.posts) == 50


@on_virtual_time
async def test_many_polls() -> None:
    """Two thousand tasks that poll at once over one client all end, as late as they should."""
    world = mock_world(image_processing=12)
    client = client_of(world)
    task = await client.create(image())
    results: list[Result] = []

    async def wait() -> None:
        results.append(await client.wait(task))

    async with trio.open_nursery() as nursery:
        for _ in range(MANY):
            nursery.start_soon(wait)
    assert len(results) == MANY
    assert trio.current_time() == pytest.approx(15, abs=3)
    assert len(world.posts) == 1


@trio_test
async def test_many_at_once_over_sockets() -> None:
    """Hundreds of runs at once over real connections to the local service all succeed."""
    with LocalService(speed=100) as service:
        async with muybridge.TrioClient(
            service.api_key, service.base_url, poll_interval=0.2
        ) as client:
            ended = 0

            async def run() -> None:
                nonlocal ended
                assert (await client.run(image())).url is not None
                ended += 1

            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    for _ in range(200):
                        nursery.start_soon(run)
            assert ended == 200


@trio_test
async def test_pool_is_bounded() -> None:
    """More exchanges at once than connections kept wait for none, and the rest are closed."""
    transport = muybridge.TrioTransport(pool_size=3)
    with ScriptedServer(serve()) as server:

        async def fetch() -> None:
            async with transport.stream(
                HttpRequest(method="GET", url=server.url), timeout=5
            ) as reply:
                assert b"".join([piece async for piece in reply.pieces()]) == b"{}"

        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(fetch)
        assert len(server.peers) == 20 + 17
        await transport.close()


@trio_test
async def test_waiting_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a download waits for the disk, other tasks go on, and a cancellation waits for it."""
    synced = threading.Event()

    def slow(_: int) -> None:
        assert synced.wait(5)

    monkeypatch.setattr(os, "fsync", slow)
    body = b"\x89PNG" + bytes(300_000)
    with ScriptedServer(serve(200, body, content_type="image/png")) as server:
        async with (
            muybridge.TrioClient("key", server.url) as client,
            trio.open_nursery() as nursery,
        ):
            path = tmp_path / "a.png"
            nursery.start_soon(client.download, f"{server.url}/a.png", path)
            with trio.fail_after(5):
                while not trio.to_thread.current_default_thread_limiter().borrowed_tokens:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
            synced.set()
    assert path.read_bytes() == body


CHEAP = """
import sys, muybridge
assert not {"trio", "httptools", "requests"} & set(sys.modules)
muybridge.TrioClient
assert "trio" in sys.modules
muybridge.TrioTransport
assert not {"requests", "urllib3"} & set(sys.modules)
"""


def test_import() -> None:
    """The client for trio is imported when it is asked for, and without requests."""
    subprocess.run([sys.executable, "-c", CHEAP], check=True)  # noqa: S603  # this very interpreter


MISSING = """
import sys
sys.modules["{missing}"] = None
import muybridge
try:
    muybridge.{name}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("TrioClient", "trio", "trio"),
        ("TrioTransport", "httptools", "trio"),
        ("TrioTransport", "certifi", "trio"),
        ("RequestsTransport", "certifi", "requests"),
        ("RequestsTransport", "urllib3", "requests"),
    ],
)
def test_missing_extra(name: str, missing: str, extra: str) -> None:
    """Where an extra is missing, the error says which one, and how to install it."""
    program = MISSING.format(name=name, missing=missing)
    shown = subprocess.run(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert shown == f'{name} needs {missing}: pip install "muybridge[{extra}]"\n'
