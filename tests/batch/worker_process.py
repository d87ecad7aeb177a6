"""Workers on a shared batch in processes of their own, to be killed and paused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from batch.runner_process import KEY, around, die
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
    from muybridge import Client, batch  # noqa: PLC0415  only in the child

    if kill_at is not None:
        STEPS[kill_at]()
    if pause_at is not None:
        _pausing(pause_at)
    if naive:
        _retry_like_others_do()
    if kill_after is not None:
        timer = threading.Timer(kill_after, die)
        timer.daemon = True
        timer.start()
    shared = batch.SharedBatch(database, "horses")
    with Client(KEY, url, poll_interval=0.005) as client:
        report = batch.work(client, shared, folder, creates=creates, concurrency=8, lease=LEASE)
    return 5 if report.stopped else 0


def _retry_like_others_do() -> None:
    """Queue again what may have been accepted, as a general retry does."""
    from muybridge.batch.journal_entries import State  # noqa: PLC0415  only in the child
    from muybridge.batch.postgres import PostgresJournal  # noqa: PLC0415  the same

    move = PostgresJournal.move

    def retrying(self: Any, entry: Any, before: Any, after: Any, **facts: Any) -> None:
        if after is State.AMBIGUOUS:
            after = State.QUEUED
            facts |= {"owner": None, "reply_status": None, "reply": None}
        move(self, entry, before, after, **facts)

    PostgresJournal.move = retrying  # type: ignore[method-assign]  # that is the fault


def _pausing(name: str) -> None:
    from muybridge.batch.postgres import PostgresJournal  # noqa: PLC0415  only in the child

    original = getattr(PostgresJournal, name)
    once = threading.Lock()

    def pausing(*arguments: Any, **more: Any) -> Any:
        told = original(*arguments, **more)
        if once.acquire(blocking=False):
            # Not just any thread of the process: this one must not go on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return told

    setattr(PostgresJournal, name, pausing)


def _moving(after: str) -> Callable[..., bool]:
    def when(_journal: object, _entry: object, _before: str, to: str) -> bool:
        return to == after

    return when


def _steps() -> dict[str, Callable[[], None]]:
    journal = "muybridge.batch.postgres:PostgresJournal"
    record = "muybridge.batch.journaled_create:ItemRecord"
    places: dict[str, Any] = {
        "registering": around(journal, "register"),
        "claiming": around(journal, "take"),
        "arming": around(journal, "arm"),
        "sending": around("muybridge.wire._requests_connections:Connection", "request"),
        "holding the reply": around(record, "hold"),
        "keeping the reply": around(record, "keep"),
        "concluding": around(record, "conclude"),
        "writing completed down": around(journal, "move", when=_moving("completed")),
        "writing downloaded down": around(journal, "move", when=_moving("downloaded")),
        "leaving": around("muybridge.batch.opening", "release"),
    }
    return {
        f"{word} {place}": step
        for place, both in places.items()
        for word, step in zip(("before", "after"), both, strict=True)
    }


STEPS = _steps()
"""What makes a worker die at each named step."""


if __name__ == "__main__":
    serve(
        work,
        "muybridge.batch",
        "muybridge.batch.postgres",
        "muybridge.wire.requests_transport",
        "muybridge_protocol.families.imgb",
    )
