"""Many tasks at once under trio: from a create to a result, and what one query costs.

The floor is a loop on h11 and trio's streams, written by hand: it opens a connection for each
create and keeps one for polls, as `TrioClient` does, and knows of no timeouts, faults or
cancellations. Peers that are not installed are left out: `pip install httpx2 requests`.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit

import h11
import trio

from benchmarks.loopback import QUERIES, serving
from benchmarks.measuring import Benchmark, Target, on_one_cpu
from muybridge import ImgbRequest, TrioClient

LIFECYCLES = {1: 200, 50: 500, 500: 1_000, 2_000: 2_000}
"""How many make one round, by how many are under way at once."""
WAITS = 6_000
"""How many make one round: three for each task, where there are 2,000 at once."""
OK = 200
KEY = "the-key-of-a-benchmark"
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": "benchmark",
    "Authorization": f"Bearer {KEY}",
}
POST_HEADERS = {**HEADERS, "Content-Type": "application/json"}


class Client(Protocol):
    """What takes part, as `TrioClient` has it."""

    def get(self, task: str) -> Awaitable[Any]:
        """Ask for a task once."""
        ...

    def wait(self, task: str) -> Awaitable[Any]:
        """Ask for a task until it ends."""
        ...

    def run(self, request: ImgbRequest) -> Awaitable[Any]:
        """Create a task and wait until it ends."""
        ...


class ByHand:
    """The loop that a user writes.

    Args:
        call: Sends a request, given a method, a path and a body, and returns the response's JSON.
    """

    def __init__(self, call: Callable[[str, str, bytes | None], Awaitable[Any]]) -> None:
        self._call = call

    async def get(self, task: str) -> Any:
        """Ask for a task once."""
        return await self._call("GET", f"/v1/result/{task}", None)

    async def wait(self, task: str) -> Any:
        """Ask for a task until it ends."""
        while True:
            result = await self.get(task)
            if result["status"] in ("completed", "failed"):
                return result

    async def run(self, request: ImgbRequest) -> Any:
        """Create a task and wait until it ends."""
        body = {"model": request.model, "prompt": request.prompt}
        task = await self._call("POST", "/v1/image2/images", json.dumps(body).encode())
        return await self.wait(task["id"])


Opened = AbstractAsyncContextManager[Client]
Contestant = Callable[[str, int], Opened]
"""Opens a client, given the base URL, for so many tasks at once."""


@asynccontextmanager
async def _h11(base_url: str, _: int) -> AsyncIterator[Client]:
    parts = urlsplit(base_url)
    host, port = str(parts.hostname), int(parts.port or 80)
    idle: list[tuple[trio.SocketStream, h11.Connection]] = []

    async def call(method: str, path: str, body: bytes | None) -> Any:
        is_create = body is not None
        if idle and not is_create:
            stream, http = idle.pop()
        else:
            stream, http = await trio.open_tcp_stream(host, port), h11.Connection(h11.CLIENT)
        headers = {"Host": f"{host}:{port}", **(HEADERS if body is None else POST_HEADERS)}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        wire = http.send(h11.Request(method=method, target=path, headers=list(headers.items())))
        if body is not None:
            wire += http.send(h11.Data(body))
        await stream.send_all(wire + http.send(h11.EndOfMessage()))
        received = b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Data):
                received += event.data
            else:
                assert event.status_code == OK
        if is_create and idle:  # one is enough for the polls between creates
            await stream.aclose()
        else:
            http.start_next_cycle()
            idle.append((stream, http))
        return json.loads(received)

    try:
        yield ByHand(call)
    finally:
        for stream, _http in idle:
            await stream.aclose()


def ours(base_url: str, _: int) -> TrioClient:
    """Return the contestant that this package is."""
    return TrioClient(KEY, base_url, poll_interval=0)


@asynccontextmanager
async def httpx2(base_url: str, _: int) -> AsyncIterator[Client]:
    """Give the loop that a user writes on httpx2, under any event loop."""
    library = importlib.import_module("httpx2")
    async with library.AsyncClient(base_url=base_url, timeout=60) as client:

        async def call(method: str, path: str, body: bytes | None) -> Any:
            headers = HEADERS if body is None else POST_HEADERS
            response = await client.request(method, path, content=body, headers=headers)
            assert response.status_code == OK
            return response.json()

        yield ByHand(call)


@asynccontextmanager
async def _requests(base_url: str, at_once: int) -> AsyncIterator[Client]:
    requests = importlib.import_module("requests")
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=at_once))

        def send(method: str, path: str, body: bytes | None) -> Any:
            headers = HEADERS if body is None else POST_HEADERS
            url = f"{base_url}{path}"
            response = session.request(method, url, data=body, headers=headers, timeout=60)
            assert response.status_code == OK
            return response.json()

        limiter = trio.CapacityLimiter(at_once)
        yield ByHand(partial(trio.to_thread.run_sync, send, limiter=limiter))


_FLOOR, _OURS = "a loop on h11 and trio", "muybridge.TrioClient"
_FLOOR_AND_OURS: dict[str, Contestant] = {_FLOOR: _h11, _OURS: ours}
_TARGETS = {1: 1.5, 500: 1.5}
"""Most that a lifecycle may take of the floor, by how many are under way at once."""
_PEERS: dict[str, Contestant] = {"httpx2": httpx2, "requests": _requests}
_PEERS_NAMES = {"httpx2": "a loop on httpx2", "requests": "a loop on requests in threads"}


def _contestants() -> dict[str, Contestant]:
    """Return all but the peers that are not installed, and tell which are not."""
    found = dict(_FLOOR_AND_OURS)
    for module, peer in _PEERS.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"left out: {module} ({error})", file=sys.stderr)
        else:
            found[_PEERS_NAMES[module]] = peer
    return found


async def _all(tasks: Sequence[Callable[[], Awaitable[object]]]) -> None:
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


def one_round(
    contestant: Contestant,
    base_url: str,
    at_once: int,
    work: Callable[[Client, int], Awaitable[object]],
    *,
    run: Callable[[Callable[[], Coroutine[Any, Any, float]]], float] = trio.run,
    together: Callable[[Sequence[Callable[[], Awaitable[object]]]], Awaitable[None]] = _all,
) -> Callable[[], float]:
    """Return what does *work* in so many tasks at once, and returns the CPU seconds it took.

    Args:
        contestant: Who works.
        base_url: Where the service is.
        at_once: How many tasks.
        work: What each of them does, given its number.
        run: Runs an async function in an event loop.
        together: Runs async functions at the same time there.
    """

    async def spent() -> float:
        async with contestant(base_url, at_once) as client:
            await together([partial(client.get, "any")] * at_once)
            began = time.process_time()
            await together([partial(work, client, number) for number in range(at_once)])
            return time.process_time() - began

    return partial(run, spent)


ToRound = Callable[
    [Contestant, str, int, Callable[[Client, int], Awaitable[object]]], Callable[[], float]
]
"""Returns a round, given who works, where, how many tasks at once, and what each of them does."""


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
        contestants = {
            name: one_round(contestant, base_url, at_once, run)
            for name, contestant in _contestants().items()
        }
        unit = f"create, {QUERIES} polls and result; {at_once:,} at once"
        targets = [Target(_OURS, at_most=0.5, of="a loop on httpx2")]
        if at_once in _TARGETS:
            targets.append(Target(_OURS, at_most=_TARGETS[at_once], of=_FLOOR))
        yield Benchmark(unit, count, contestants, targets)


def polls() -> AbstractContextManager[Benchmark]:
    """Return the benchmark of queries, while 50 and 2,000 tasks are waited for at once."""
    return polls_of(_OURS, _FLOOR, _FLOOR_AND_OURS, one_round)


@contextmanager
def polls_of(
    client: str, floor: str, who: Mapping[str, Contestant], to_round: ToRound
) -> Generator[Benchmark]:
    """Give the benchmark of a *client*'s queries, which are to grow as those of the *floor* do.

    Args:
        client: The client's name.
        floor: The name of the loop that it is compared with.
        who: Both contestants.
        to_round: Returns a round, as `one_round` does.
    """

    def waiting(times: int) -> Callable[[Client, int], Awaitable[object]]:
        async def wait(client: Client, number: int) -> None:
            for _ in range(times):
                await client.wait(f"task-{number}")

        return wait

    with on_one_cpu(), serving() as base_url:
        contestants = {
            f"{name}, {at_once:,} at once": to_round(
                who[name], base_url, at_once, waiting(WAITS // at_once)
            )
            for name in (client, floor)
            for at_once in (50, 2_000)
        }
        few, many = (f"{client}, {at_once:,} at once" for at_once in (50, 2_000))
        floor_few, floor_many = (f"{floor}, {at_once:,} at once" for at_once in (50, 2_000))
        targets = [Target(many, at_most=1.1, of=few, beside=(floor_many, floor_few))]
        yield Benchmark("poll", WAITS * QUERIES, contestants, targets)
