"""Orders that pass through Celery while its workers are killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from celery import Celery

from batch.billing import BillingServer
from processes import Nursery

from .audit import Audit, ambiguous_orders, audit, saved_orders
from .brokers import files
from .celery_worker import strikes
from .recipes import save_recipe
from .strikes import Strikes
from .workers import kill_all, last_output

_AT_ONCE = 12
_TICK = 0.02
_PATIENCE = 5.0
"""Seconds without progress after which a message must have been lost."""
_CRASHES = 20
"""How many workers may end by themselves: kombu's broker of files reads messages half written."""


class Shop:
    """Takes orders until there were enough kills.

    The broker of files forgets a message that a killed worker had taken, so the shop queues it
    again. A real broker does that itself.

    Args:
        folder: The folder of the run.
        task: The name of the task that creates pictures.
        struck: The kills.
    """

    def __init__(self, folder: Path, task: str, struck: Strikes) -> None:
        self.orders: list[str] = []
        self._folder = folder
        self._task = task
        self._struck = struck
        self._celery = Celery("shop")
        self._celery.conf.update(files(folder))
        self._open: set[str] = set()

    def serve(self, worker: Future[Any]) -> bool:
        """Serve until the *worker* has ended, and return whether all orders have ended."""
        self._queue_lost()
        moved = time.monotonic()
        while not wait([worker], timeout=_TICK).done:
            left = self._open - saved_orders(self._folder) - ambiguous_orders(self._folder)
            if left != self._open:
                self._open, moved = left, time.monotonic()
            elif time.monotonic() > moved + _PATIENCE:
                self._queue_lost()
                moved = time.monotonic()
            if not self._struck.are_over:
                self._take_orders()
            elif not self._open:
                return True
        return False

    def take(self, *orders: str) -> None:
        """Queue these *orders*."""
        self.orders += orders
        self._open |= {*orders}
        self._queue(orders)

    def _take_orders(self) -> None:
        if len(self._open) < _AT_ONCE // 2:
            first = len(self.orders)
            self.take(*(f"order-{first + n}" for n in range(_AT_ONCE - len(self._open))))

    def _queue_lost(self) -> None:
        """Queue each open order of which the broker has no message."""
        queued = "".join(path.read_text("utf-8") for path in (self._folder / "queue").iterdir())
        self._queue(order for order in self._open if f"'{order}'" not in queued)

    def _queue(self, orders: Iterable[str]) -> None:
        for order in orders:
            self._celery.send_task(self._task, (order, order))


def run(
    nursery: Nursery, folder: Path, server: BillingServer, *, kills: int, pool: str, naive: bool
) -> tuple[Audit, Strikes]:
    """Kill workers while they work on orders, and return what became of the orders.

    Args:
        nursery: Forks `celery_worker`.
        folder: The folder of the run.
        server: The service.
        kills: How many workers to kill.
        pool: Celery's pool.
        naive: Whether the task is the naive one.
    """
    save_recipe("Celery", folder / "orders.py")
    struck = strikes(folder, kills, pool=pool, naive=naive)
    shop = Shop(folder, "orders.create_naively" if naive else "orders.create", struck)
    all_ended, crashes = False, 0
    with ThreadPoolExecutor(1) as waiting:
        while not all_ended:
            worker = nursery.start(
                folder=str(folder), url=server.url, pool=pool, most=kills, naive=naive
            )
            ended = waiting.submit(nursery.wait)
            try:
                all_ended = shop.serve(ended)
            finally:
                kill_all(worker)
            crashes += ended.result() != -signal.SIGKILL
            assert crashes <= _CRASHES, last_output(folder)
    return audit(folder, server, shop.orders), struck
