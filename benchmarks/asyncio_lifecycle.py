"""The lifecycles and polls of `trio_lifecycle`, under asyncio.

`TrioClient` takes part under trio, and the async clients of other services under asyncio, each of
which is answered in the shapes of its own service. The floor is a loop on h11 and asyncio's
streams, written by hand, as the one under trio is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import h11

from benchmarks import trio_lifecycle
from benchmarks.lifecycle import google_client
from benchmarks.loopback import QUERIES, serving
from benchmarks.measuring import Benchmark, Target, ahead_of, installed, on_one_cpu
from benchmarks.trio_lifecycle import (
    HEADERS,
    KEY,
    LIFECYCLES,
    OK,
    POST_HEADERS,
    ByHand,
    Client,
    Contestant,
    httpx2,
)
from muybridge import AsyncClient, ImgbRequest

AT_ONCE = (1, 50, 500)
"""How many lifecycles are under way at once."""
_OURS, _FLOOR, _HTTPX2 = "muybridge.AsyncClient", "a loop on h11 and asyncio", "a loop on httpx2"
_TRIO = "muybridge.TrioClient"


@asynccontextmanager
async def _h11(base_url: str, _: int) -> AsyncIterator[Client]:
    parts = urlsplit(base_url)
    host, port = str(parts.hostname), int(parts.port or 80)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection]] = []

    async def call(method: str, path: str, body: bytes | None) -> Any:
        is_create = body is not None
        if idle and not is_create:
            reader, writer, http = idle.pop()
        else:
            reader, writer = await asyncio.open_connection(host, port)
            http = h11.Connection(h11.CLIENT)
        headers = {"Host": f"{host}:{port}", **(HEADERS if body is None else POST_HEADERS)}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        wire = http.send(h11.Request(method=method, target=path, headers=list(headers.items())))
        if body is not None:
            wire += http.send(h11.Data(body))
        writer.write(wire + http.send(h11.EndOfMessage()))
        await writer.drain()
        received = b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(65_536))
            elif isinstance(event, h11.Data):
                received += event.data
            else:
                assert event.status_code == OK
        if is_create and idle:  # one is enough for the polls between creates
            writer.close()
        else:
            http.start_next_cycle()
            idle.append((reader, writer, http))
        return json.loads(received)

    try:
        yield ByHand(call)
    finally:
        for _reader, writer, _http in idle:
            writer.close()


@asynccontextmanager
async def _aiohttp(base_url: str, at_once: int, *, fresh: bool = False) -> AsyncIterator[Client]:
    """Give the loop that a user writes on aiohttp.

    Args:
        base_url: Where the service is.
        at_once: How many connections it may have.
        fresh: Whether each create gets a connection of its own, as ours do.
    """
    library = import_module("aiohttp")
    seconds = library.ClientTimeout(total=60)
    async with AsyncExitStack() as opened:

        async def session(**options: Any) -> Any:
            connector = library.TCPConnector(limit=at_once, **options)
            made = library.ClientSession(base_url, connector=connector, timeout=seconds)
            return await opened.enter_async_context(made)

        polls = await session()
        creates = await session(force_close=True) if fresh else polls

        async def call(method: str, path: str, body: bytes | None) -> Any:
            sending, headers = (polls, HEADERS) if body is None else (creates, POST_HEADERS)
            async with sending.request(method, path, data=body, headers=headers) as response:
                assert response.status == OK
                return await response.json()

        yield ByHand(call)


@asynccontextmanager
async def _pyreqwest(base_url: str, _: int) -> AsyncIterator[Client]:
    """Give the loop that a user writes on pyreqwest, which keeps its connections."""
    builder = import_module("pyreqwest.client").ClientBuilder().timeout(timedelta(seconds=60))
    async with builder.build() as client:

        async def call(method: str, path: str, body: bytes | None) -> Any:
            asked = client.request(method, f"{base_url}{path}")
            if body is None:
                asked = asked.headers(HEADERS)
            else:
                asked = asked.headers(POST_HEADERS).body_bytes(body)
            response = await asked.build().send()
            assert response.status == OK
            return await response.json()

        yield ByHand(call)


def _ours(base_url: str, _: int) -> AsyncClient:
    return AsyncClient(KEY, base_url, poll_interval=0)


class _Peer:
    """The client of another service, which makes a task of its own and waits for it.

    Args:
        run: What it does.
    """

    def __init__(self, run: Callable[[], Awaitable[object]]) -> None:
        self._run = run

    async def get(self, task: str) -> None:
        """Do nothing: its connections are opened by the first rounds, which do not count."""

    wait = get

    async def run(self, _: ImgbRequest) -> object:
        """Create a task and wait until it ends."""
        return await self._run()


@asynccontextmanager
async def _fal(base_url: str, _: int) -> AsyncIterator[Client]:
    module = import_module("fal_client.client")
    with patch.object(module, "QUEUE_URL_FORMAT", f"{base_url}/"):
        client = module.AsyncClient(key=KEY)
        yield _Peer(partial(client.subscribe, "fal-ai/horse", {"prompt": "a horse"}, interval=0))


@asynccontextmanager
async def _replicate(base_url: str, _: int) -> AsyncIterator[Client]:
    client = import_module("replicate").Client(KEY, base_url=f"{base_url}/replicate")
    client.poll_interval = 0

    async def run() -> None:
        create = client.predictions.async_create
        made = await create(version="0" * 64, input={"prompt": "a horse"})
        await made.async_wait()
        assert made.output

    yield _Peer(run)


@asynccontextmanager
async def _openai(base_url: str, _: int) -> AsyncIterator[Client]:
    async with import_module("openai").AsyncOpenAI(
        api_key=KEY, base_url=f"{base_url}/openai"
    ) as client:

        async def run() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its videos API is deprecated
                made = await client.videos.create(model="sora-2", prompt="a horse")
                polled = await client.videos.poll(made.id, poll_interval_ms=0)
            assert polled.status == "completed"

        yield _Peer(run)


@asynccontextmanager
async def _google(base_url: str, _: int) -> AsyncIterator[Client]:
    client = google_client(base_url)

    async def run() -> None:
        made = await client.aio.models.generate_videos(model="veo-3.0", prompt="a horse")
        while not made.done:
            made = await client.aio.operations.get(made)

    yield _Peer(run)
    await client.aio.aclose()


_PEERS: Mapping[str, Contestant] = {
    "fal-client": _fal,
    "replicate": _replicate,
    "google-genai": _google,
    "openai": _openai,
}
"""By distribution."""


_LOOPS: Mapping[str, tuple[str, Contestant]] = {
    "a loop on aiohttp": ("aiohttp", _aiohttp),
    "a loop on aiohttp, a fresh connection for each create": (
        "aiohttp",
        partial(_aiohttp, fresh=True),
    ),
    "a loop on pyreqwest": ("pyreqwest", _pyreqwest),
    _HTTPX2: ("httpx2", httpx2),
}
"""The distribution that each loop needs, and the loop."""


async def _all(tasks: Sequence[Callable[[], Awaitable[object]]]) -> None:
    async def do(task: Callable[[], Awaitable[object]]) -> None:
        await task()

    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(do(task))


def _run(work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    return asyncio.run(work())


_round = partial(trio_lifecycle.one_round, run=_run, together=_all)


def _working(base_url: str) -> dict[str, Contestant]:
    """Return the peers that are installed and have shown that they work here."""
    found: dict[str, Contestant] = {}
    request = ImgbRequest(model="imgb-2", prompt="a horse")
    for name in installed(_PEERS):
        try:
            _round(_PEERS[name], base_url, 1, lambda client, _: client.run(request))()
        except Exception as error:  # noqa: BLE001  each library has its own
            print(f"left out: {name} ({error!r})", file=sys.stderr)
        else:
            found[name] = _PEERS[name]
    return found


def lifecycles(at_once: int) -> AbstractContextManager[Benchmark]:
    """Return the benchmark of lifecycles, so many at once."""
    return _lifecycles(at_once)


@contextmanager
def _lifecycles(at_once: int) -> Iterator[Benchmark]:
    count, request = LIFECYCLES[at_once], ImgbRequest(model="imgb-2", prompt="a horse")

    async def run(client: Client, _: int) -> None:
        for _ in range(count // at_once):
            await client.run(request)

    with on_one_cpu(), serving() as base_url:
        peers = _working(base_url)
        under_asyncio = {_FLOOR: _h11, _OURS: _ours, _HTTPX2: httpx2, **peers}
        contestants = {
            name: _round(contestant, base_url, at_once, run)
            for name, contestant in under_asyncio.items()
        }
        contestants[_TRIO] = trio_lifecycle.one_round(trio_lifecycle.ours, base_url, at_once, run)
        targets = [
            Target(_OURS, at_most=1.1, of=_TRIO),
            Target(_OURS, at_most=0.5, of=_HTTPX2),
            *ahead_of(_OURS, peers),
        ]
        unit = f"create, {QUERIES} polls and result; {at_once:,} at once"
        yield Benchmark(unit, count, contestants, targets)


def loops(at_once: int) -> AbstractContextManager[Benchmark]:
    """Return the benchmark of lifecycles beside loops on HTTP libraries, so many at once.

    It is not kept on one CPU, because some of these libraries work in threads of their own.
    """
    return _loops(at_once)


@contextmanager
def _loops(at_once: int) -> Iterator[Benchmark]:
    count, request = LIFECYCLES[at_once], ImgbRequest(model="imgb-2", prompt="a horse")

    async def run(client: Client, _: int) -> None:
        for _ in range(count // at_once):
            await client.run(request)

    there = installed({distribution for distribution, _ in _LOOPS.values()})
    who = {name: loop for name, (needed, loop) in _LOOPS.items() if needed in there}
    with serving() as base_url:
        contestants = {
            name: _round(contestant, base_url, at_once, run)
            for name, contestant in {_OURS: _ours, **who}.items()
        }
        unit = f"create, {QUERIES} polls and result; {at_once:,} at once, on every CPU"
        yield Benchmark(unit, count, contestants)


def polls() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of queries, while 50 and 2,000 tasks are waited for at once."""
    who: Mapping[str, Contestant] = {_OURS: _ours, _FLOOR: _h11}
    return trio_lifecycle.polls_of(_OURS, _FLOOR, who, _round)
