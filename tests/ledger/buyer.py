"""A process that buys under names, in threads and tasks at once, on a disk that fails at times."""

from __future__ import annotations

import random
import resource
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from processes import serve

KEY = "sk-canary-4b1d97e2"


def prompt_of(number: int) -> str:
    """Return what the request under the name *number* asks for."""
    return f"horse {number}"


def name_of(number: int) -> str:
    """Return the name *number*."""
    return f"order {number}"


def buy(
    url: str, ledger: str, *, names: int, each: int, cap: int, seed: int, fails: float = 0.0
) -> dict[str, int]:
    """Create pictures under names in eight threads, four trio tasks and four asyncio tasks.

    Args:
        url: Where the service is.
        ledger: The ledger's file, which all of them share.
        names: How many names there are.
        each: How many of them each thread or task uses.
        cap: Most creates of all processes together.
        seed: Chooses the names, what is not sent, and when the disk fails.
        fails: How often the disk refuses to be written, from 0 to 1.

    Returns:
        How many calls ended in which way.
    """
    import asyncio  # noqa: PLC0415  only in the child

    import trio  # noqa: PLC0415  the same

    import muybridge  # noqa: PLC0415  the same
    from muybridge.ledger import open_ledger  # noqa: PLC0415  the same

    source = random.Random(seed)  # noqa: S311  names and faults, not secrets
    ended: Counter[str] = Counter()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    options: dict[str, Any] = {
        "ledger": open_ledger(ledger),
        "budget": muybridge.Budget(creates=cap),
    }

    def orders() -> Generator[tuple[str, Any]]:
        for number in source.sample(range(names), each):
            # Any thread's writes fail until some thread begins its next order.
            limit = 0 if source.random() < fails else most
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
            request = muybridge.ImgbRequest(model="imgb-2", prompt=prompt_of(number))
            yield name_of(number), request

    @contextmanager
    def counted() -> Generator[None]:
        try:
            yield
        except muybridge.MuybridgeError as error:
            ended[type(error).__name__] += 1
        else:
            ended["Task"] += 1

    def work(client: Any) -> None:
        for name, request in orders():
            with counted():
                client.create_once(name, request)

    async def work_async(client: Any) -> None:
        for name, request in orders():
            with counted():
                await client.create_once(name, request)

    async def on_trio() -> None:
        transport: Any = _Unreliable(muybridge.TrioTransport(), source)
        async with (
            muybridge.TrioClient(KEY, url, transport=transport, **options) as client,
            trio.open_nursery() as nursery,
        ):
            for _ in range(4):
                nursery.start_soon(work_async, client)

    async def on_asyncio() -> None:
        transport: Any = _Unreliable(muybridge.AsyncioTransport(), source)
        async with muybridge.AsyncClient(KEY, url, transport=transport, **options) as client:
            await asyncio.gather(*(work_async(client) for _ in range(4)))

    transport: Any = _Unreliable(muybridge.RequestsTransport(), source)
    with muybridge.Client(KEY, url, transport=transport, **options) as client:
        jobs: list[Callable[[], object]] = [
            lambda: trio.run(on_trio),
            lambda: asyncio.run(on_asyncio()),
            *(lambda: work(client) for _ in range(8)),
        ]
        threads = [threading.Thread(target=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return dict(ended)


class _Unreliable:
    """A transport that does not get some requests to the service.

    Args:
        inner: Sends the others.
        source: Decides.
    """

    def __init__(self, inner: Any, source: random.Random) -> None:
        self._inner = inner
        self._source = source

    def stream(self, request: Any, **options: Any) -> Any:
        from muybridge.wire.transport import TransportError  # noqa: PLC0415  only in the child
        from muybridge_protocol.http import Phase, Reason, TransportFailure  # noqa: PLC0415  the same

        if self._source.random() < 0.2:
            raise TransportError(
                TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
            )
        return self._inner.stream(request, **options)


if __name__ == "__main__":
    serve(
        buy,
        "muybridge.ledger.once",
        "muybridge.ledger.sqlite_store",
        "muybridge.drivers.on_trio",
        "muybridge.drivers.on_asyncio",
        "muybridge.wire.requests_transport",
        "muybridge.wire.trio_transport",
        "muybridge.wire.asyncio_transport",
        "muybridge_protocol.families.imgb",
    )
