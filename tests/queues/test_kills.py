"""The recipes of the page, in processes that are killed, against a service with books."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from batch.billing import BillingServer
from processes import Nursery

from . import celery_runs, dbos_runs
from .audit import Audit
from .strikes import Strikes

Run = Callable[..., tuple[Audit, Strikes]]
RUNS: dict[str, Run] = {
    "Celery, prefork": partial(celery_runs.run, pool="prefork"),
    "Celery, solo": partial(celery_runs.run, pool="solo"),
    "DBOS": dbos_runs.run,
}
KILLS = {"Celery, prefork": 15, "Celery, solo": 8, "DBOS": 7}
"""The fewest kills that hit every moment."""
NAIVE_KILLS = {"Celery, solo": 5, "DBOS": 4}
"""The same for the naive tasks."""


class Killing:
    """Runs the recipes, and kills their processes.

    Args:
        nurseries: What forks the processes of each engine.
        folder: The folder of the run.
        server: The service.
    """

    def __init__(self, nurseries: dict[str, Nursery], folder: Path, server: BillingServer) -> None:
        self._nurseries = nurseries
        self._folder = folder
        self._server = server

    def __call__(self, engine: str, kills: int, *, naive: bool = False) -> Audit:
        """Kill *kills* processes, print what became of the orders, and return it."""
        nursery = self._nurseries[engine.partition(",")[0]]
        found, struck = RUNS[engine](nursery, self._folder, self._server, kills=kills, naive=naive)
        hits = struck.hits
        cells = [
            engine, "create" if naive else "create_once", hits.total(), found.orders, found.posts,
            len(found.doubles), len(found.lost), len(found.ambiguous),
        ]  # fmt: skip
        print("|", " | ".join(map(str, cells)), "|")  # noqa: T201  the figures of the page
        assert {*struck.turns} <= {*hits}, hits
        return found


@pytest.fixture
def kill(celery: Nursery, dbos: Nursery, folder: Path, server: BillingServer) -> Killing:
    """Return what kills."""
    return Killing({"Celery": celery, "DBOS": dbos}, folder, server)


@pytest.mark.parametrize("engine", RUNS)
def test_no_order_is_paid_twice_or_lost(engine: str, kill: Killing) -> None:
    """Killed at every moment, each order is sent once at most, and has its task or is listed."""
    found = kill(engine, KILLS[engine])
    assert found.is_clean, found


@pytest.mark.nightly
@pytest.mark.parametrize("engine", RUNS)
def test_a_thousand_kills(engine: str, kill: Killing) -> None:
    """The same holds for a thousand kills."""
    found = kill(engine, 1000)
    assert found.is_clean, found


@pytest.mark.parametrize("engine", NAIVE_KILLS)
def test_a_naive_task_pays_twice(engine: str, kill: Killing) -> None:
    """The same task with `create` pays for some orders twice: the kills have teeth."""
    assert kill(engine, NAIVE_KILLS[engine], naive=True).doubles


@pytest.mark.nightly
@pytest.mark.parametrize("engine", RUNS)
def test_naive_tasks_pay_for_many_orders_twice(engine: str, kill: Killing) -> None:
    """The figures of naive tasks, beside those of a thousand kills."""
    assert kill(engine, 200, naive=True).doubles
