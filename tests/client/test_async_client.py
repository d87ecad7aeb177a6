"""`AsyncClient` finds out which event loop it runs under, and stays there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import moments
from muybridge import AsyncClient, ImgaRequest, TrioClient, TrioOutcomes
from muybridge.drivers.fleet_run import Outcome
from test_purity import imported_by

from .in_process import AsyncFace, InProcessTransport, World
from .virtual_loops import LOOPS

IMAGE = ImgaRequest(model="imga", prompt="a horse")
TEXT = "textg-2.5-pro"


def client_of(world: World) -> AsyncClient:
    transport = AsyncFace(InProcessTransport(world))
    wall = world.clock.wall
    return AsyncClient(world.key, world.url, world.url, transport=transport, wall=wall)


@pytest.mark.parametrize("loop", LOOPS)
def test_each_call(world: World, loop: str) -> None:
    """A client that is made outside of any event loop serves every call under either."""
    client = client_of(world)
    outcomes: list[Outcome] = []

    async def main() -> None:
        async with client:
            result = await client.run(IMAGE)
            assert (await client.get(result)).status == "completed"
            async with client.watch(await client.create(IMAGE)) as results:
                assert [seen.status async for seen in results][-1] == "completed"
            async with client.run_all([IMAGE, IMAGE]) as run:
                assert isinstance(run, TrioOutcomes) is (loop == "trio")
                outcomes.extend([outcome async for outcome in run])
            await client.delete_asset("asset-1")
            assert (await client.call("GET", "/v1/result/none")).status == 404
            text = (await client.generate_content(TEXT, "x")).text
            async with client.stream_generate_content(TEXT, "x") as chunks:
                assert (await chunks.collect()).text == text

    LOOPS[loop](world.clock, main)
    assert [outcome.error for outcome in outcomes] == [None, None]


def test_threads_that_begin_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that use a client at the same moment for the first time share its connections."""
    client = TrioClient("key", "https://service.test")
    binding = moments.at("client bound to a loop")
    bind = binding.value
    drivers: list[object] = []

    def late(client: Any, library: str) -> object:
        if not drivers:
            other = threading.Thread(target=lambda: drivers.append(moments.driver_of(client)))
            drivers.append(None)
            other.start()
            other.join()
        return bind(client, library)

    monkeypatch.setattr(*binding.place, late)
    assert moments.driver_of(client) is drivers[-1]


@pytest.mark.parametrize("loop", LOOPS)
def test_each_outcome_is_given_to_one_reader(world: World, loop: str) -> None:
    """If several tasks read the outcomes of one run, each outcome goes to one of them."""
    client = client_of(world)
    keys: list[int] = []

    async def main() -> None:
        async with client, client.run_all([IMAGE] * 6) as run, anyio.create_task_group() as readers:

            async def read() -> None:
                async for outcome in run:
                    keys.append(outcome.key)
                    await anyio.lowlevel.checkpoint()

            for _ in range(4):
                readers.start_soon(read)

    LOOPS[loop](world.clock, main)
    assert sorted(keys) == list(range(6))


CALLS: dict[str, Callable[[AsyncClient], Awaitable[object] | object]] = {
    "create": lambda client: client.create(IMAGE),
    "get": lambda client: client.get("task-1"),
    "watch": lambda client: client.watch("task-1"),
    "run_all": lambda client: client.run_all([IMAGE]),
    "download": lambda client: client.download("task-1", "folder/"),
    "delete_asset": lambda client: client.delete_asset("asset-1"),
    "call": lambda client: client.call("POST", "/v1/x"),
    "generate_content": lambda client: client.generate_content(TEXT, "x"),
    "stream_generate_content": lambda client: client.stream_generate_content(TEXT, "x"),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("call", CALLS)
def test_another_event_loop(world: World, call: str, loop: str) -> None:
    """Under another event loop than its first one, a client sends nothing and says why."""
    client = client_of(world)

    async def first() -> None:
        await client.generate_content(TEXT, "x")

    async def second() -> None:
        made = CALLS[call](client)
        if isinstance(made, Awaitable):
            await made

    asyncio.run(first())
    seen = len(world.seen)
    with pytest.raises(RuntimeError, match=r"belongs to the event loop .* Nothing was sent\."):
        LOOPS[loop](world.clock, second)
    assert len(world.seen) == seen


@pytest.mark.parametrize("call", CALLS)
def test_no_event_loop(world: World, call: str) -> None:
    """Outside of an event loop, each call says what it needs, and that nothing was sent."""
    client = client_of(world)

    async def made() -> None:
        found = CALLS[call](client)
        if isinstance(found, Awaitable):
            await found

    with pytest.raises(RuntimeError, match=r"needs asyncio or trio, .* Nothing was sent\."):
        made().send(None)
    assert world.seen == []


BINDING = """
import muybridge, {library}
async def main():
    async with muybridge.AsyncClient("key", "https://service.test"):
        pass
{library}.run(main{call})
"""


@pytest.mark.parametrize(
    ("library", "call", "other"), [("asyncio", "()", "trio"), ("trio", "", "asyncio")]
)
def test_one_event_loop_is_imported(library: str, call: str, other: str) -> None:
    """Under asyncio no trio is imported, and under trio no asyncio."""
    found = imported_by(BINDING.format(library=library, call=call))
    assert found & {"trio", "asyncio", "anyio", "requests"} == {library}
    assert other not in found
