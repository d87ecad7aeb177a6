"""A Celery worker with the page's tasks, in a process of its own, to be killed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from processes import serve

from .strikes import ALL, CREATING, CREATING_NAIVELY, SELF, Moment, Strikes
from .workers import load_recipe

_PATIENCE = 0.05
"""Seconds until a lost process is believed to be lost."""
_QUEUES_NEXT: dict[str, Any] = {
    "target": "celery.app.task:Task",
    "name": "apply_async",
    "when": lambda task, *_, **__: task.name == "orders.fetch",
}
_IN_CHILD = {
    "before the next task": Moment(**_QUEUES_NEXT),
    "after the next task": Moment(**_QUEUES_NEXT, after=True),
}
_IN_PARENT = {
    "before the acknowledgement": Moment(
        "celery.worker.request:Request",
        "acknowledge",
        when=lambda request, *_, **__: request.name.startswith("orders.create"),
    ),
}


def strikes(folder: Path, most: int, *, pool: str, naive: bool) -> Strikes:
    """Return the kills of the workers in *folder*.

    Args:
        folder: The folder of the run.
        most: How many kills there are.
        pool: Celery's pool. Only `prefork` has a parent that can be killed as well.
        naive: Whether the task is the naive one.
    """
    in_child = (CREATING_NAIVELY if naive else CREATING) | _IN_CHILD
    turns = {(name, SELF): 5 if most > 100 else 1 for name in in_child}
    if pool == "prefork":
        turns |= {(name, ALL): 1 for name in in_child}
    turns |= {(name, ALL): 1 for name in _IN_PARENT}
    return Strikes(folder / "kills", in_child | _IN_PARENT, turns, most)


def broker(folder: Path) -> dict[str, Any]:
    """Return the settings of a broker in *folder*, which consists of files."""
    options: dict[str, Any] = {
        "data_folder_in": str(folder / "queue"),
        "data_folder_out": str(folder / "queue"),
        "control_folder": str(folder / "control"),
        "processed_folder": str(folder / "processed"),
        "store_processed": True,
        "polling_interval": 0.01,
    }
    return {
        "broker_url": "filesystem://",
        "broker_transport_options": options,
        "worker_lost_wait": _PATIENCE,
    }


def work(
    folder: str, url: str, *, pool: str, most: int = 0, naive: bool = False, slots: int = 3
) -> int:
    """Work on the queue in *folder* until this process is killed.

    Args:
        folder: The folder of the run.
        url: Where the service is.
        pool: Celery's pool.
        most: How many kills there are.
        naive: Whether the task is the naive one.
        slots: How many tasks it works on at once.
    """
    orders = load_recipe(Path(folder), url)
    orders.app.conf.update(broker(Path(folder)))
    strikes(Path(folder), most, pool=pool, naive=naive).install()
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"]
    orders.app.worker_main(["worker", "-P", pool, "-c", str(slots), *quiet])
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
        "muybridge.ledger.once",
        "muybridge.ledger.sqlite_store",
        "muybridge.wire.requests_transport",
        "muybridge_protocol.families.imgb",
    )
