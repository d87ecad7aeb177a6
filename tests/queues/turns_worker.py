"""A Celery worker that takes turns at a shared batch, in a process of its own, to be killed."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from processes import serve

from .celery_worker import broker
from .strikes import ALL, SELF, TAKING_TURNS, Moment, Strikes
from .workers import KEY, lead

_IN_PARENT = {
    "before the acknowledgement": Moment("celery.worker.request:Request", "acknowledge"),
}


def strikes(folder: Path, most: int, *, pool: str) -> Strikes:
    """Return the kills of the workers in *folder*.

    Args:
        folder: The folder of the run.
        most: How many kills there are.
        pool: Celery's pool. Only `prefork` has a parent that can be killed as well.
    """
    turns = {(name, SELF): 1 for name in TAKING_TURNS}
    if pool == "prefork":
        turns |= {(name, ALL): 1 for name in TAKING_TURNS}
    turns |= {(name, ALL): 1 for name in _IN_PARENT}
    return Strikes(folder / "kills", TAKING_TURNS | _IN_PARENT, turns, most)


def work(folder: str, url: str, database: str, *, pool: str, most: int = 0) -> int:
    """Work on the queue in *folder* until this process is killed.

    Args:
        folder: The folder of the run.
        url: Where the service is.
        database: Where the batches are.
        pool: Celery's pool.
        most: How many kills there are.
    """
    place = Path(folder)
    lead(place)
    os.environ.update(
        MUYBRIDGE_API_KEY=KEY,
        MUYBRIDGE_BASE_URL=url,
        MUYBRIDGE_JOURNAL=database,
        MUYBRIDGE_OUT=str(place / "pictures"),
        MUYBRIDGE_WORKER_CREATES="2",
        MUYBRIDGE_WORKER_TURN="1",
    )
    app: Any = import_module("muybridge.workers.celery_app").app
    app.conf.update(broker(place))
    strikes(place, most, pool=pool).install()
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"]
    app.worker_main(["worker", "-P", pool, "-c", "2", *quiet])
    return 0


if __name__ == "__main__":
    warnings.resetwarnings()  # other people's libraries may warn
    serve(
        work,
        "celery.bin.celery",
        "celery.concurrency.prefork",
        "celery.concurrency.solo",
        "celery.worker.worker",
        "kombu.transport.filesystem",
        "muybridge.batch.postgres",
        "muybridge.wire.requests_transport",
        "muybridge.workers.celery_app",
        "muybridge_protocol.families.imgb",
    )
