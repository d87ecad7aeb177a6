"""A Celery worker with the page's tasks, in a process of its own, to be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moments import Moment

from .brokers import files
from .strikes import ALL, CREATING, CREATING_NAIVELY, SELF, Kill, Strikes, on_a_rampage
from .workers import load_recipe, run_celery, serve_celery

_QUEUES_NEXT = Moment(
    "celery.app.task:Task.apply_async",
    when=lambda task, *_, **__: task.name == "orders.fetch",
)
_IN_CHILD = {
    "before the next task": Kill(_QUEUES_NEXT),
    "after the next task": Kill(_QUEUES_NEXT, after=True),
}
_IN_PARENT = {
    "before the acknowledgement": Kill(
        Moment(
            "celery.worker.request:Request.acknowledge",
            when=lambda request, *_, **__: request.name.startswith("orders.create"),
        )
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


def rampage(folder: Path, most: int, pace: float) -> Strikes:
    """Return the kills and pauses of many workers on naive tasks in *folder*."""
    return on_a_rampage(folder / "kills", CREATING_NAIVELY, most, pace)


def work(
    folder: str,
    url: str,
    broker: dict[str, Any] | None = None,
    *,
    pool: str,
    most: int = 0,
    naive: bool = False,
    slots: int = 3,
    pace: float = 0.0,
) -> int:
    """Work on the queue in *folder* until this process is killed.

    Args:
        folder: The folder of the run.
        url: Where the service is.
        broker: Celery's settings for the broker, or None for one in the folder.
        pool: Celery's pool.
        most: How many kills there are.
        naive: Whether the task is the naive one.
        slots: How many tasks it works on at once.
        pace: The fewest seconds between kills on a rampage, which has pauses as well, or 0.
    """
    orders = load_recipe(Path(folder), url)
    orders.app.conf.update(broker or files(Path(folder)))
    if pace:
        rampage(Path(folder), most, pace).install()
    else:
        strikes(Path(folder), most, pool=pool, naive=naive).install()
    run_celery(orders.app, pool=pool, slots=slots)
    return 0


if __name__ == "__main__":
    serve_celery(work, "muybridge.purchases.once", "muybridge.purchases.sqlite")
