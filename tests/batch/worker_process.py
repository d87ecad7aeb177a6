"""Workers on a shared batch in processes of their own, to be killed and paused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import moments
from batch.runner_process import KEY, die, retry_like_others_do
from processes import serve

LEASE = 1.0


def work(
    url: str,
    database: str,
    folder: str,
    *,
    creates: int = 2,
    kill_after: float | None = None,
    kill_at: str | None = None,
    pause_at: str | None = None,
    naive: bool = False,
) -> int:
    """Work on the shared batch `horses`, and return its exit code.

    Args:
        url: Where the service is.
        database: Where the batch is.
        folder: The worker's folder.
        creates: Most creates under way at once.
        kill_after: Seconds after which the process kills itself.
        kill_at: The step at which it does.
        pause_at: The step at which it stops itself, once.
        naive: Whether what may have been accepted is sent again.
    """
    from muybridge import Client, batch

    if kill_at is not None:
        moments.strike_at(kill_at, "requests", die)
    if pause_at is not None:
        moments.strike_at(pause_at, "requests", _pausing())
    if naive:
        retry_like_others_do()
    if kill_after is not None:
        timer = threading.Timer(kill_after, die)
        timer.daemon = True
        timer.start()
    shared = batch.SharedBatch(database, "horses")
    with Client(KEY, url, poll_interval=0.005) as client:
        report = batch.work(client, shared, folder, creates=creates, concurrency=8, lease=LEASE)
    return 5 if report.stopped else 0


def _pausing() -> Callable[[], None]:
    once = threading.Lock()

    def pause() -> None:
        if once.acquire(blocking=False):
            # Not just any thread of the process: this one must not go on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    return pause


STEPS = moments.steps(
    "worker registered",
    "items taken",
    "purchase armed",
    "sending",
    "response kept",
    "verdict recorded",
    "side file emptied",
    "piece saved",
    "download recorded",
    "items released",
)
"""The steps at which a worker dies."""


if __name__ == "__main__":
    serve(
        work,
        "muybridge.batch",
        "muybridge.purchases.postgres",
        "muybridge.wire.requests_transport",
        "muybridge_protocol.families.imgb",
    )
