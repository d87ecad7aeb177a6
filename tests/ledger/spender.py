"""Programs that spend from one ledger, in processes of their own, to be killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from batch.runner_process import around
from processes import serve

KEY = "sk-canary-4b1d97e2"


def spend(
    url: str,
    ledger: str,
    *,
    cap: int,
    tries: int,
    at_once: int = 4,
    driver: str = "requests",
    once: str | None = None,
    kill_at: str | None = None,
    nth: int = 1,
) -> dict[str, Any]:
    """Create pictures until that is over budget, and return how the calls ended.

    Args:
        url: Where the service is.
        ledger: The ledger's file.
        cap: Most creates of all processes together.
        tries: How many creates to try.
        at_once: How many of them at once: threads or tasks.
        driver: `requests`, `trio` or `asyncio`.
        once: The name under which all of them are created, or None.
        kill_at: The step at which the process kills itself, or None.
        nth: At which time of that step.
    """
    import asyncio  # noqa: PLC0415  only in the child

    import trio  # noqa: PLC0415  the same

    from muybridge import (  # noqa: PLC0415  the same
        AsyncClient,
        Client,
        ImgbRequest,
        MuybridgeError,
        Task,
    )  # fmt: skip
    from muybridge.ledger import Budget  # noqa: PLC0415  the same

    if kill_at is not None:
        STEPS[kill_at](nth)
    ended: dict[str, int] = {}
    ids: list[str] = []
    budget = Budget(creates=cap)
    request = ImgbRequest(model="imgb-2", prompt="horse")

    def tell(outcome: object) -> None:
        name = type(outcome).__name__
        ended[name] = ended.get(name, 0) + 1
        if isinstance(outcome, Task):
            ids.append(outcome.id)

    async def work_async() -> None:
        async with AsyncClient(KEY, url, budget=budget, ledger=Path(ledger)) as client:
            left = iter(range(tries))

            async def work() -> None:
                for _ in left:
                    try:
                        create = client.create(request)
                        if once is not None:
                            create.close()
                            create = client.create_once(once, request)
                        tell(await create)
                    except MuybridgeError as error:
                        tell(error)

            if driver == "trio":
                async with trio.open_nursery() as nursery:
                    for _ in range(at_once):
                        nursery.start_soon(work)
            else:
                await asyncio.gather(*(work() for _ in range(at_once)))

    def work_blocking() -> None:
        with Client(KEY, url, budget=budget, ledger=Path(ledger)) as client:
            left = iter(range(tries))

            def work() -> None:
                for _ in left:
                    try:
                        if once is None:
                            tell(client.create(request))
                        else:
                            tell(client.create_once(once, request))
                    except MuybridgeError as error:
                        tell(error)

            threads = [threading.Thread(target=work) for _ in range(at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    match driver:
        case "trio":
            trio.run(work_async)
        case "asyncio":
            asyncio.run(work_async())
        case _:
            work_blocking()
    return {"ended": ended, "ids": ids}


def _around(target: str, name: str, index: int, when: Callable[..., bool]) -> Any:
    return around(target, name, when=when)[index]


def _nth(place: Any) -> Callable[[int], None]:
    """Return what makes the process die at the nth time that it comes by *place*."""

    def install(nth: int) -> None:
        left = [nth]

        def now(*_: object) -> bool:
            left[0] -= 1
            return left[0] == 0

        place(now)()

    return install


def _steps() -> dict[str, Callable[[int], None]]:
    rows = "muybridge.ledger.sqlite_store:SqliteRows"
    ledger = "muybridge.ledger.ledger:Ledger"
    places: dict[str, tuple[str, str]] = {
        "creating the ledger": ("muybridge.files.sqlite", "create"),
        "enlisting": ("muybridge.ledger.owners:Owners", "_enlist"),
        "summing up": (rows, "spent"),
        "writing a row": (rows, "put"),
        "arming": (ledger, "arm"),
        "sending": ("muybridge.wire.exchange:Exchange", "begin"),
        "taking the response": ("muybridge_protocol.operations.create:Create", "receive"),
        "concluding": (ledger, "conclude"),
    }
    steps: dict[str, Callable[[int], None]] = {}
    for place, (target, name) in places.items():
        for index, word in enumerate(("before", "after")):
            steps[f"{word} {place}"] = _nth(partial(_around, target, name, index))
    return steps


STEPS = _steps()
"""What makes a process die at each named step, given at which time."""


if __name__ == "__main__":
    serve(
        spend,
        "muybridge.ledger.once",
        "muybridge.ledger.sqlite_store",
        "muybridge.drivers.on_trio",
        "muybridge.drivers.on_asyncio",
        "muybridge.wire.requests_transport",
        "muybridge.wire.trio_transport",
        "muybridge.wire.asyncio_transport",
        "muybridge_protocol.families.imgb",
    )
