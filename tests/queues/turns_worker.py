"""A Celery worker that takes turns at a shared batch, in a process of its own, to be killed."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from moments import Moment

from .strikes import (
    ALL,
    CREATING,
    SELF,
    TAKING_TURNS_PAUSED,
    Kill,
    Strikes,
    on_a_rampage,
)
from .workers import KEY, lead, run_celery, serve_celery

LEASE = 2.0
"""Seconds for which a worker on a rampage is believed to be alive."""
_IN_PARENT = {
    "before the acknowledgement": Kill(Moment("celery.worker.request:Request.acknowledge")),
}


def strikes(folder: Path, most: int, *, pool: str) -> Strikes:
    """Return the kills of the workers in *folder*.

    Args:
        folder: The folder of the run.
        most: How many kills there are.
        pool: Celery's pool. Only `prefork` has a parent that can be killed as well.
    """
    turns = {(name, SELF): 1 for name in CREATING}
    if pool == "prefork":
        turns |= {(name, ALL): 1 for name in CREATING}
    turns |= {(name, ALL): 1 for name in _IN_PARENT}
    return Strikes(folder / "kills", CREATING | _IN_PARENT, turns, most)


def rampage(folder: Path, most: int, pace: float) -> Strikes:
    """Return the kills and pauses of many workers in *folder*."""
    return on_a_rampage(folder / "kills", TAKING_TURNS_PAUSED, most, pace)


def work(
    folder: str,
    url: str,
    database: str,
    broker: dict[str, Any],
    *,
    pool: str,
    most: int = 0,
    pace: float = 0.0,
    slots: int = 2,
    pause: int | None = None,
) -> int:
    """Work on the queue of *broker* until this process is killed.

    Args:
        folder: The folder of the run.
        url: Where the service is.
        database: Where the batches are.
        broker: Celery's settings for the broker.
        pool: Celery's pool.
        most: How many kills there are.
        pace: The fewest seconds between kills on a rampage, which has pauses as well, or 0.
        slots: How many turns it takes at once.
        pause: Seconds until the next turn if one could do nothing more, or None for the default.
    """
    place = Path(folder)
    lead(place)
    os.environ.update(
        MUYBRIDGE_API_KEY=KEY,
        MUYBRIDGE_BASE_URL=url,
        MUYBRIDGE_STORE=database,
        MUYBRIDGE_OUT=str(place / "pictures"),
        MUYBRIDGE_WORKER_CREATES="2",
        MUYBRIDGE_WORKER_TURN="10" if pace else "1",
    )
    app: Any = import_module("muybridge.workers.celery_app").app
    app.conf.update(broker)
    if pause is not None:
        turns: Any = import_module("muybridge.workers.turns")
        turns.PAUSE = pause
    if pace:
        tasks: Any = import_module("muybridge.workers.celery_app")
        tasks.work = partial(tasks.work, lease=LEASE)
        rampage(place, most, pace).install()
    else:
        strikes(place, most, pool=pool).install()
    run_celery(app, pool=pool, slots=slots)
    return 0


if __name__ == "__main__":
    serve_celery(work, "muybridge.purchases.postgres", "muybridge.workers.celery_app")
