"""Runners of batches in processes of their own, to be killed.

What makes a runner kill itself, retry like others do, or meet a full disk is done to it here: the
library knows nothing of tests.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import moments
from processes import limit_files, serve

KEY = "sk-canary-77aa10c4"


def die() -> None:
    """End this process as a power cut would, as far as one process can."""
    os.kill(os.getpid(), signal.SIGKILL)


def run(
    url: str,
    folder: str,
    items: int | None = None,
    *,
    concurrency: int = 4,
    kill_after: float | None = None,
    kill_at: str | None = None,
    naive: bool = False,
    driver: str = "requests",
    patience: float = 10.0,
    file_limit: int = 0,
    store: str | None = None,
    copies: int = 1,
    dedupe: bool = False,
) -> int:
    """Run a batch of *items* horses, or resume the one in *folder*; return its exit code.

    Args:
        url: Where the service is.
        folder: The batch's folder.
        items: How many horses, or None for what the store has.
        concurrency: Tasks at once.
        kill_after: Seconds after which the process kills itself.
        kill_at: The step at which it does.
        naive: Whether what may have been accepted is sent again.
        driver: `requests`, `trio` or `asyncio`.
        patience: Seconds to wait for the store.
        file_limit: Most bytes that it may write to one file, or 0 for no limit.
        store: The place of the store, or None for no store.
        copies: How many items there are of each horse.
        dedupe: Whether identical requests share one task.
    """
    import asyncio

    import trio

    from muybridge import AsyncClient, Client, batch

    if store is not None:
        os.environ["MUYBRIDGE_STORE"] = store
    if kill_at is not None:
        moments.strike_at(kill_at, driver, die)
    if naive:
        retry_like_others_do()
    if file_limit:
        limit_files(file_limit)
    if kill_after is not None:
        timer = threading.Timer(kill_after, die)
        timer.daemon = True
        timer.start()
    source = None if items is None else horses(items) * copies
    options: dict[str, Any] = {
        "concurrency": concurrency, "patience": patience, "dedupe": dedupe,
    }  # fmt: skip

    async def run_async() -> batch.Report:
        async with AsyncClient(KEY, url, poll_interval=0.005) as client:
            return await batch.run_async(client, source, folder, **options)

    def run_blocking() -> batch.Report:
        with Client(KEY, url, poll_interval=0.005) as client:
            return batch.run(client, source, folder, **options)

    try:
        match driver:
            case "trio":
                report = trio.run(run_async)
            case "asyncio":
                report = asyncio.run(run_async())
            case _:
                report = run_blocking()
    except batch.StoreUnusable:
        return 6
    return 5 if report.stopped else 0


def horses(count: int, first: int = 1) -> list[dict[str, Any]]:
    """Return a batch of horses, each with a prompt of its own."""
    return [
        {"family": "imgb", "model": "imgb-2", "prompt": f"horse {number}", "name": f"h{number}"}
        for number in range(first, first + count)
    ]


def retry_like_others_do() -> None:
    """Release what may have been accepted, as a general retry does."""
    from muybridge.purchases.store import Store
    from muybridge_protocol.purchases import Outcome, Stage, State

    conclude = Store.conclude

    def retrying(self: Any, key: str, outcome: Outcome) -> Any:
        if outcome.state is State.AMBIGUOUS:
            outcome = Outcome(state=State.RELEASED, leads_to=Stage.QUEUED)
        return conclude(self, key, outcome)

    Store.conclude = retrying  # type: ignore[method-assign]  # that is the fault


STEPS = moments.steps(
    "store linked",
    "runner begun",
    "side file made",
    "items taken",
    "purchase armed",
    "sending",
    "response kept",
    "verdict recorded",
    "side file emptied",
    "piece saved",
    "file finished",
    "file linked",
    "file named",
    "download recorded",
    "items released",
    "runner ended",
    "sheet written",
)
"""The steps at which a runner dies."""


if __name__ == "__main__":
    serve(
        run,
        "muybridge.batch",
        "muybridge.batch.running.runs",
        "muybridge.drivers.fleet_run",
        "muybridge.drivers.on_trio",
        "muybridge.trio_client",
        "muybridge.wire.requests_transport",
        "muybridge.wire.trio_transport",
        "muybridge_protocol.families.imgb",
    )
