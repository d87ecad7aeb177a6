"""A process whose clients spend from one store in threads, trio tasks and asyncio tasks at once.

Its disk and its network fail at times, and it may be killed at any step.
"""

from __future__ import annotations

import random
import resource
import threading
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import moments
from batch.runner_process import die
from processes import serve

KEY = "sk-canary-4b1d97e2"


def spend(
    url: str,
    store: str,
    *,
    orders: list[tuple[str | None, str]],
    workers: dict[str, int],
    cap: int,
    seed: int = 0,
    unsent: float = 0.0,
    fails: float = 0.0,
    kill_at: str | None = None,
    nth: int = 1,
) -> dict[str, Any]:
    """Create pictures, and return how the calls ended, and the tasks' ids.

    Args:
        url: Where the service is.
        store: The place of the store.
        orders: The name and the prompt of each picture; None is no name.
        workers: How many threads or tasks share the orders, by driver: `requests`, `trio` and
            `asyncio`.
        cap: Most creates of all processes together.
        seed: Chooses what is not sent, and when the disk fails.
        unsent: How often the network refuses, from 0 to 1.
        fails: How often the disk refuses to be written, from 0 to 1.
        kill_at: The step at which the process kills itself, or None.
        nth: At which time of that step.
    """
    import asyncio

    import trio

    import muybridge

    if kill_at is not None:
        moments.strike_at(kill_at, "", die, nth=nth)
    source = random.Random(seed)  # noqa: S311  faults, not secrets
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    left = iter(orders)
    ended: Counter[str] = Counter()
    ids: list[str] = []

    def options(transport: Any) -> dict[str, Any]:
        return {
            "transport": _Unreliable(transport, source, unsent),
            "store": store,
            "budget": muybridge.Budget(creates=cap),
        }

    def requests() -> Generator[tuple[str | None, Any]]:
        for name, prompt in left:
            # Any thread's writes fail until some thread begins its next order.
            limit = 0 if source.random() < fails else most
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
            yield name, muybridge.ImgbRequest(model="imgb-2", prompt=prompt)

    def tell(outcome: object) -> None:
        ended[type(outcome).__name__] += 1
        if isinstance(outcome, muybridge.Task):
            ids.append(outcome.id)

    def work(client: Any) -> None:
        for name, request in requests():
            try:
                tell(client.create_once(name, request) if name else client.create(request))
            except muybridge.MuybridgeError as error:
                tell(error)

    async def work_async(client: Any) -> None:
        for name, request in requests():
            try:
                tell(await (client.create_once(name, request) if name else client.create(request)))
            except muybridge.MuybridgeError as error:
                tell(error)

    def in_threads(count: int) -> None:
        with muybridge.Client(KEY, url, **options(muybridge.RequestsTransport())) as client:
            _run_threads([partial(work, client)] * count)

    async def on_trio(count: int) -> None:
        async with (
            muybridge.AsyncClient(KEY, url, **options(muybridge.TrioTransport())) as client,
            trio.open_nursery() as nursery,
        ):
            for _ in range(count):
                nursery.start_soon(work_async, client)

    async def on_asyncio(count: int) -> None:
        transport = muybridge.AsyncioTransport()
        async with muybridge.AsyncClient(KEY, url, **options(transport)) as client:
            await asyncio.gather(*(work_async(client) for _ in range(count)))

    drivers: dict[str, Callable[[int], object]] = {
        "requests": in_threads,
        "trio": partial(trio.run, on_trio),
        "asyncio": lambda count: asyncio.run(on_asyncio(count)),
    }
    _run_threads([partial(drivers[driver], count) for driver, count in workers.items()])
    return {"ended": ended, "ids": ids}


def _run_threads(jobs: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Unreliable:
    """A transport that does not get some requests to the service.

    Args:
        inner: Sends the others.
        source: Decides.
        unsent: How often, from 0 to 1.
    """

    def __init__(self, inner: Any, source: random.Random, unsent: float) -> None:
        self._inner = inner
        self._source = source
        self._unsent = unsent

    def stream(self, request: Any, **options: Any) -> Any:
        from muybridge.wire.transport import TransportError
        from muybridge_protocol.http import Phase, Reason, TransportFailure

        if self._source.random() < self._unsent:
            raise TransportError(
                TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
            )
        return self._inner.stream(request, **options)


STEPS = moments.steps(
    "file of SQLite created",
    "enlisted",
    "summed up",
    "row written",
    "purchase armed",
    "exchange",
    "response taken",
    "verdict recorded",
)
"""The steps at which a process dies."""


if __name__ == "__main__":
    serve(
        spend,
        "muybridge.purchases.once",
        "muybridge.purchases.postgres",
        "muybridge.purchases.sqlite",
        "muybridge.drivers.on_trio",
        "muybridge.drivers.on_asyncio",
        "muybridge.wire.requests_transport",
        "muybridge.wire.trio_transport",
        "muybridge.wire.asyncio_transport",
        "muybridge_protocol.families.imgb",
    )
