"""What is given in place of a request or a task: the error says how to build one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge import AsyncClient, ImgaRequest, TrioClient
from muybridge.batch import run_trio

from .drivers import MakeClient
from .event_loops import ClockEventLoop
from .fleets import run_all
from .in_process import AsyncFace, InProcessTransport, World

WRONG: dict[str, tuple[object, str]] = {
    "a mapping": (
        {"prompt": "a horse", "model": "imgb-2"},
        r"a dict is not a request: build one with ImgbRequest\(\*\*fields\), or with Imgb.*body",
    ),
    "a mapping with a family": ({"family": "vidc", "prompt": "x"}, r"VidcRequest\(\*\*fields\)"),
    "an empty mapping": ({}, r"ImgaRequest\(\*\*fields\)"),
    "a mapping of anything": ({7: [], "model": {}, "family": 3}, r"ImgaRequest\(\*\*fields\)"),
    "a class": (ImgaRequest, r"ImgaRequest is a class, not a request: call it with the fields"),
    "another class": (dict, r"is not a request: build one with the class of its family"),
    "nothing": (None, r"None is not a request: build one .* such as ImgaRequest\("),
    "a number": (7, r"7 is not a request"),
}


@pytest.mark.parametrize("call", ["create", "run"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_a_request(make_client: MakeClient, world: World, name: str, call: str) -> None:
    """Anything but a request is rejected, with the way to build one, and nothing is sent."""
    value, told = WRONG[name]
    with pytest.raises(TypeError, match=told) as caught:
        getattr(make_client(world), call)(value)
    assert str(caught.value).endswith("Nothing was sent.")
    assert world.seen == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_work(make_client: MakeClient, world: World, name: str) -> None:
    """Among many requests, too, what is not one is refused before anything is sent."""
    value, told = WRONG[name]
    work: Any = [ImgaRequest(model="imga", prompt="a horse"), value]
    with pytest.raises(TypeError, match=told):
        run_all(make_client(world), work)
    assert world.seen == []


@pytest.mark.parametrize(
    "work",
    [
        {"model": "imga", "prompt": "x"},
        "task-1",
        ImgaRequest(model="imga", prompt="x"),
        muybridge.Task(id="task-1"),
    ],
    ids=["a mapping", "an id", "a request", "a task"],
)
def test_one_piece_of_work_is_not_many(make_client: MakeClient, world: World, work: Any) -> None:
    """What is not a list of work is not taken for one: no key and no letter is an id."""
    with pytest.raises(TypeError, match="put it into a list"):
        run_all(make_client(world), work)
    assert world.seen == []


@pytest.mark.parametrize("call", ["get", "wait", "watch", "download"])
@pytest.mark.parametrize("value", [None, {"id": "task-1"}, 7], ids=str)
def test_what_is_not_a_task(
    make_client: MakeClient, world: World, tmp_path: Path, call: str, value: Any
) -> None:
    """Anything but a task is rejected by its type, and nothing is sent."""
    more = (tmp_path,) if call == "download" else ()
    wanted = "the task must be a Task, a Result, a token or an id"
    if call == "download":
        wanted = "a download needs a result, a task, an id, a token or a URL"
    with pytest.raises(TypeError, match=f"{wanted}, not"):
        list(getattr(make_client(world), call)(value, *more))
    assert world.seen == []


@pytest.mark.parametrize("call", ["run", "run_all", "wait"])
@pytest.mark.parametrize("timeout", ["600", float("nan"), [600]], ids=["text", "nan", "list"])
def test_a_timeout_that_is_no_number(
    make_client: MakeClient, world: World, call: str, timeout: Any
) -> None:
    """A timeout that is not a number is rejected before a task is created and paid for."""
    client = make_client(world)
    made: dict[str, Callable[[], object]] = {
        "run": lambda: client.run(image(), timeout=timeout),
        "run_all": lambda: run_all(client, [image()], timeout=timeout),
        "wait": lambda: client.wait("task-1", timeout=timeout),
    }
    with pytest.raises(ValueError, match="timeout must be a number of seconds, or None for no"):
        made[call]()
    assert world.seen == []


def test_a_negative_timeout(make_client: MakeClient, world: World) -> None:
    """A negative timeout is rejected before a task is created and paid for."""
    with pytest.raises(ValueError, match=r"timeout must not be negative \(got -1\). Nothing was"):
        make_client(world).run(image(), timeout=-1)
    assert world.seen == []


async def _watch(client: TrioClient) -> None:
    async with client.watch("task-1"):
        pass


async def _run_all(client: TrioClient) -> None:
    async with client.run_all([image()]):
        pass


async def _stream(client: TrioClient) -> None:
    async with client.stream_generate_content("textg-2.5-pro", "x"):
        pass


async def _context(client: TrioClient) -> None:
    async with client:
        pass


def image() -> ImgaRequest:
    return ImgaRequest(model="imga", prompt="a horse")


CALLS: dict[str, Callable[[TrioClient], Awaitable[Any]]] = {
    "context": _context,
    "create": lambda client: client.create(image()),
    "run": lambda client: client.run(image()),
    "get": lambda client: client.get("task-1"),
    "wait": lambda client: client.wait("task-1"),
    "watch": _watch,
    "run_all": _run_all,
    "download": lambda client: client.download("task-1", "folder/"),
    "delete_asset": lambda client: client.delete_asset("asset-1"),
    "call": lambda client: client.call("POST", "/v1/x"),
    "generate_content": lambda client: client.generate_content("textg-2.5-pro", "x"),
    "stream_generate_content": _stream,
    "chat_completions": lambda client: client.chat_completions({}),
    "messages": lambda client: client.messages({}),
    "batch": lambda client: run_trio(client, [image()], "folder"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("where", ["asyncio", "nowhere"])
def test_outside_of_trio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, where: str
) -> None:
    """Outside of trio each call says that it needs trio, what to do, and that nothing was sent."""
    monkeypatch.chdir(tmp_path)
    client = TrioClient("key", "https://service.test", text_base_url="http://localhost:1")

    async def made() -> None:
        await CALLS[call](client)

    def begin() -> None:
        asyncio.run(made()) if where == "asyncio" else made().send(None)

    with pytest.raises(RuntimeError, match="TrioClient needs trio") as caught:
        begin()
    assert "Under asyncio, use AsyncClient." in str(caught.value)
    assert str(caught.value).endswith("Nothing was sent.")
    assert list(tmp_path.iterdir()) == []


def test_the_async_client_under_asyncio(world: World) -> None:
    """The advice works: `AsyncClient` runs under asyncio."""

    async def main() -> muybridge.Result:
        transport = AsyncFace(InProcessTransport(world))
        async with AsyncClient(
            world.key, world.url, transport=transport, wall=world.clock.wall
        ) as client:
            return await client.run(image())

    with asyncio.Runner(loop_factory=lambda: ClockEventLoop(world.clock)) as runner:
        assert runner.run(main()).status == "completed"


def test_the_blocking_client_in_a_coroutine(world: World) -> None:
    """`Client` works inside of a running event loop, and in a thread beside one."""

    async def main() -> tuple[muybridge.Result, muybridge.Result]:
        with muybridge.Client(
            world.key, world.url, transport=InProcessTransport(world), clock=world.clock
        ) as client:
            return client.run(image()), await asyncio.to_thread(client.run, image())

    assert [result.status for result in asyncio.run(main())] == ["completed", "completed"]
