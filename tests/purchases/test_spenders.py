"""Clients of many threads and processes at one store, killed at any step: no limit is exceeded."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from batch.billing import BillingServer, Fault, at_random
from muybridge.purchases import State
from processes import Nursery
from sampling import diagonal
from stores import purchases_at

from .spender import STEPS

DRIVERS = ("requests", "trio", "asyncio")
KILLED = -9


@pytest.fixture(scope="module")
def nurseries() -> Iterator[list[Nursery]]:
    """What forks four processes at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(Nursery("purchases.spender")) for _ in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file for a store."""
    return str(tmp_path / "store.sqlite3")


def order_of(
    server: BillingServer,
    place: str,
    cap: int,
    *,
    tries: int,
    driver: str = "requests",
    at_once: int = 4,
    once: str | None = None,
) -> dict[str, Any]:
    """Return the order to create a picture so many times with one driver."""
    return {
        "url": server.url,
        "store": place,
        "cap": cap,
        "orders": [(once, "horse")] * tries,
        "workers": {driver: at_once},
    }


def at_once(nurseries: list[Nursery], orders: list[dict[str, Any]]) -> list[Any]:
    """Run up to four processes at the same time, and return what each returned."""
    with ThreadPoolExecutor(len(nurseries)) as pool:
        running = [
            pool.submit(nursery.run, **order)
            for nursery, order in zip(nurseries, orders, strict=False)
        ]
        return [one.result() for one in running]


def check_books(server: BillingServer, place: str, cap: int) -> Counter[State]:
    """Compare the store with the server's books, and return how many are in each state."""
    bought = purchases_at(place)
    counts = Counter(one.state for one in bought)
    accepted = {task for tasks in server.accepted.values() for task in tasks}
    assert len(accepted) <= counts[State.ACCEPTED] + counts[State.AMBIGUOUS] <= cap
    known = {one.task for one in bought if one.task is not None}
    assert known <= accepted
    assert len(known) == counts[State.ACCEPTED]
    # What the store does not know by its id is one of its ambiguous purchases.
    assert len(accepted - known) <= counts[State.AMBIGUOUS]
    assert counts[State.ARMED] == 0
    return counts


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    "size", [8, pytest.param(500, marks=pytest.mark.nightly)], ids=["few", "many"]
)
def test_threads_and_tasks(nurseries: list[Nursery], place: str, driver: str, size: int) -> None:
    """Many threads or tasks of four processes spend the whole budget, and not a request more."""
    many = 32 if driver == "requests" and size > 32 else size
    with BillingServer() as server:
        order = order_of(server, place, 3 * size, tries=size, driver=driver, at_once=many)
        told = at_once(nurseries, [order] * 4)
        counts = check_books(server, place, 3 * size)
        assert server.posts == 3 * size
    assert counts == {State.ACCEPTED: 3 * size}
    ended: Counter[str] = Counter()
    for one in told:
        ended.update(one["ended"])
    assert ended == {"Task": 3 * size, "OverBudget": size}


def test_different_drivers(nurseries: list[Nursery], place: str) -> None:
    """Threads, trio and asyncio share one store, while the service refuses and loses responses."""
    weights = {
        Fault.NONE: 6, Fault.ACCEPTED_RESET: 1, Fault.ACCEPTED_CUT: 1, Fault.LOST_RESET: 1,
        Fault.REFUSED: 2, Fault.THROTTLED: 1,
    }  # fmt: skip
    with BillingServer(at_random(5, weights)) as server:
        drivers = (*DRIVERS, "requests")
        at_once(
            nurseries,
            [order_of(server, place, 25, tries=12, driver=driver) for driver in drivers],
        )
        counts = check_books(server, place, 25)
    assert counts[State.ACCEPTED] > 0
    assert counts[State.AMBIGUOUS] > 0
    assert counts[State.RELEASED] > 0


@pytest.mark.parametrize(("step", "driver"), diagonal(STEPS, DRIVERS))
def test_killed_at_every_step(nurseries: list[Nursery], path: str, driver: str, step: str) -> None:
    """A process that is killed at any step leaves the budget intact, and the others go on."""
    cap = 6
    with BillingServer() as server:
        order = order_of(server, path, cap, tries=4, driver=driver, at_once=2)
        creates = step.endswith("file of SQLite created")
        first = creates or step.endswith("enlisted")
        dying = {**order, "kill_at": step, "nth": 1 if first else 2}
        # A process that is to die while it creates the store must be the first.
        rounds = [[dying], [order]] if creates else [[dying, order]]
        killed, *others = [one for orders in rounds for one in at_once(nurseries[:2], orders)]
        assert killed == KILLED
        assert all(isinstance(one, dict) for one in others)
        check_books(server, path, cap)
        left = nurseries[2].run(**order_of(server, path, cap, tries=2 * cap, driver=driver))
        counts = check_books(server, path, cap)
    # The last one has spent what was left, to the last create.
    assert left["ended"]["OverBudget"] > 0
    assert counts[State.ACCEPTED] + counts[State.AMBIGUOUS] == cap
    assert counts[State.AMBIGUOUS] <= 2


@pytest.mark.nightly
def test_killed_a_thousand_times(nurseries: list[Nursery], path: str) -> None:
    """Four processes at once, killed a thousand times at every step: the books stay right."""
    source = random.Random(1)  # noqa: S311  steps, not secrets
    steps = [*STEPS]
    cap, kills = 3000, 0
    hit: Counter[str] = Counter()
    with BillingServer() as server:
        while kills < 1000:
            orders: list[dict[str, Any]] = [
                {
                    **order_of(
                        server, path, cap, tries=5,
                        at_once=source.choice([1, 3]), driver=source.choice(DRIVERS),
                    ),
                    "kill_at": source.choice(steps), "nth": source.choice([1, 1, 2, 4]),
                }
                for _ in range(4)
            ]  # fmt: skip
            told = at_once(nurseries, orders)
            struck = [
                order["kill_at"] for order, one in zip(orders, told, strict=True) if one == KILLED
            ]
            hit.update(struck)
            kills += len(struck)
        counts = check_books(server, path, cap)
    assert counts[State.AMBIGUOUS] <= kills * 3
    assert {step for step in steps if not step.endswith("created")} <= set(hit)


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_name_in_four_processes(nurseries: list[Nursery], place: str, driver: str) -> None:
    """Of many callers in four processes with one name, one sends; all of them get its task."""
    with BillingServer() as server:
        order = order_of(server, place, 100, tries=3, driver=driver, at_once=3, once="order 1")
        told = at_once(nurseries, [order] * 4)
        assert server.posts == 1
    assert len({task for one in told for task in one["ids"]}) == 1
    assert sum(len(one["ids"]) for one in told) == 12


@pytest.mark.parametrize("step", STEPS)
def test_a_name_survives_a_kill(nurseries: list[Nursery], path: str, step: str) -> None:
    """After a kill at any step, repeating the call never sends what may have been accepted."""
    with BillingServer() as server:
        order = order_of(server, path, 100, tries=1, at_once=1, once="order 1")
        killed = nurseries[0].run(**order, kill_at=step, nth=1)
        assert killed == KILLED
        sent = server.posts
        again = nurseries[0].run(**order)
        third = nurseries[1].run(**order)
        assert server.posts <= 1
        assert len(server.accepted["horse"]) <= 1
        assert again["ended"] == third["ended"]
        assert [*again["ended"]] in (["Task"], ["CreateAmbiguous"])
        if sent:
            assert server.posts == sent
