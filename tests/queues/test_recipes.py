"""What the recipes of the page do while nobody is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from celery import Celery

from batch.billing import BillingServer, Fault
from muybridge.purchases import Choice, State, open_store
from processes import Nursery

from .audit import ambiguous_orders, saved_orders
from .brokers import files
from .recipes import save_recipe
from .workers import kill_all, last_output

PATIENCE = 60


@pytest.fixture
def faults() -> dict[str, Fault]:
    """Return the fault of each order, for the test to fill in."""
    return {}


@pytest.fixture
def server(faults: dict[str, Fault]) -> Iterator[BillingServer]:
    """The service."""
    with BillingServer(lambda prompt: faults.get(prompt, Fault.NONE)) as running:
        yield running


@attrs.frozen
class Worker:
    """A Celery worker that is running.

    Args:
        folder: Its folder.
        ended: Its end.
        shop: Queues tasks.
    """

    folder: Path
    ended: Future[Any]
    shop: Celery

    def queue(self, *orders: str) -> None:
        """Queue a task for each order, whose prompt is its name."""
        for order in orders:
            self.shop.send_task("orders.create", (order, order))

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until *condition* holds."""
        latest = time.monotonic() + PATIENCE
        while not condition():
            assert not wait([self.ended], timeout=0.02).done, last_output(self.folder)
            assert time.monotonic() < latest, last_output(self.folder)


@contextmanager
def working(
    celery: Nursery, folder: Path, server: BillingServer, *, slots: int = 3
) -> Generator[Worker]:
    """Run a Celery worker."""
    save_recipe("Celery", folder / "orders.py")
    shop = Celery("shop")
    shop.conf.update(files(folder))
    with ThreadPoolExecutor(1) as waiting:
        worker = celery.start(folder=str(folder), url=server.url, pool="prefork", slots=slots)
        ended = waiting.submit(celery.wait)
        try:
            yield Worker(folder, ended, shop)
        finally:
            kill_all(worker)


def test_celery_waits_without_a_worker(
    celery: Nursery, folder: Path, server: BillingServer
) -> None:
    """One slot creates many pictures before the first of them is completed."""
    server.status = "processing"
    orders = {f"order-{number}" for number in range(4)}
    with working(celery, folder, server, slots=1) as worker:
        worker.queue(*orders)
        worker.until(lambda: server.posts == len(orders))
        assert saved_orders(folder) == set()
        server.status = "completed"
        worker.until(lambda: saved_orders(folder) == orders)
    assert server.posts == len(orders)


def test_celery_delivers_a_message_often(
    celery: Nursery, folder: Path, server: BillingServer
) -> None:
    """Messages that are delivered at the same time, and later again, pay once."""
    with working(celery, folder, server) as worker:
        worker.queue(*["order-1"] * 6)
        worker.until(lambda: saved_orders(folder) == {"order-1"})
        worker.queue("order-1", "order-2")
        worker.until(lambda: saved_orders(folder) == {"order-1", "order-2"})
    assert {order: len(asked) for order, asked in server.asked.items()} == {
        "order-1": 1,
        "order-2": 1,
    }


def test_celery_retries_what_was_not_sent(
    celery: Nursery, folder: Path, server: BillingServer
) -> None:
    """While the store cannot be written, nothing is sent; then the order is."""
    (folder / "store.sqlite3").mkdir()
    with working(celery, folder, server) as worker:
        worker.queue("order-1")
        worker.until(lambda: "StoreUnusable" in last_output(folder))
        assert server.posts == 0
        (folder / "store.sqlite3").rmdir()
        worker.until(lambda: saved_orders(folder) == {"order-1"})
    assert server.posts == 1


def test_celery_leaves_an_ambiguous_order_to_a_person(
    celery: Nursery, folder: Path, server: BillingServer, faults: dict[str, Fault]
) -> None:
    """An ambiguous order is not retried. Once a person has named its task, it is fetched."""
    faults["order-1"] = Fault.ACCEPTED_RESET
    with working(celery, folder, server) as worker:
        worker.queue("order-1", "order-1", "order-2")
        worker.until(lambda: saved_orders(folder) == {"order-2"})
        worker.until(lambda: ambiguous_orders(folder) == {"order-1"})
        store = open_store(folder / "store.sqlite3")
        [bought] = store.purchases(State.AMBIGUOUS)
        store.decide(bought.key, Choice.ADOPT, server.accepted["order-1"][0])
        worker.queue("order-1")
        worker.until(lambda: saved_orders(folder) == {"order-1", "order-2"})
    assert len(server.asked["order-1"]) == 1


def test_dbos_recovers_no_ended_workflow(
    dbos: Nursery, folder: Path, server: BillingServer, faults: dict[str, Fault]
) -> None:
    """Starting an order again sends nothing, whether it has its picture or is ambiguous."""
    save_recipe("DBOS", folder / "orders.py")
    faults["order-2"] = Fault.LOST_RESET
    orders = ["order-1", "order-2"]
    for _ in range(2):
        errors = dbos.run(folder=str(folder), url=server.url, orders=orders)
        assert errors == ["CreateAmbiguous"], last_output(folder)
        assert saved_orders(folder) == {"order-1"}
        assert ambiguous_orders(folder) == {"order-2"}
    assert server.posts == 2
