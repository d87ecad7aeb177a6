"""Three Celery workers on one batch, killed and paused, and naive tasks beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from celery import Celery

from batch.billing import PNG, BillingServer, Fault, at_random
from batch.runner_process import horses
from batch.shared_audit import Audit
from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from muybridge.workers.messages import TASK
from muybridge_protocol.service import Service
from processes import Nursery

from .audit import pictures, saved_orders
from .brokers import BROKERS, QUEUE, Broker
from .celery_worker import rampage as naive_rampage
from .rampage import Rampage, Row
from .recipes import save_recipe
from .turns_worker import rampage as rampage_of_turns

MACHINES: Final = 3
CREATES: Final = 2
SLOTS: Final = 2
WEIGHTS: Final = {
    Fault.NONE: 970,
    Fault.ACCEPTED_RESET: 10,
    Fault.LOST_RESET: 10,
    Fault.ACCEPTED_GATEWAY: 5,
    Fault.THROTTLED: 5,
}
_PATIENCE: Final = 3.0
_STUCK: Final = 120.0
"""Seconds without a picture after which a naive run is over: its message is lost."""


@pytest.fixture
def broker(folder: Path) -> Iterator[Broker]:
    with BROKERS["Redis"](folder) as serving:
        yield serving


def on_turns(
    folder: Path, shared: SharedBatch, broker: Broker, *, items: int, strikes: int, pace: float
) -> tuple[Row, Audit]:
    """Let workers take turns at a batch until nothing is left to do."""
    with ExitStack() as stack:
        server = stack.enter_context(BillingServer(at_random(17, WEIGHTS), shaky=True))
        machines = [stack.enter_context(Nursery("queues.turns_worker")) for _ in range(MACHINES)]
        batch.submit(shared, horses(items), Service(base_url=server.url))
        order = {
            "folder": str(folder), "url": server.url, "database": str(shared.store),
            "broker": broker.settings, "pool": "prefork", "slots": SLOTS, "most": strikes,
            "pace": pace,
        }  # fmt: skip
        rampage = Rampage(machines, folder, order, rampage_of_turns(folder, strikes, pace))
        app = Celery("shop")
        app.conf.update(broker.settings, task_default_queue=QUEUE)
        sent, rounds = 0.0, 0

        def tend() -> bool:
            nonlocal sent, rounds
            if time.monotonic() > sent + _PATIENCE:
                sent, rounds = time.monotonic(), rounds + 1
                if rounds % 5 == 0:
                    broker.flush()
                for _ in range(2 * MACHINES * SLOTS):
                    app.send_task(TASK, (shared.name,))
            left = {*batch.shared_status(shared).counts} - {Stage.DOWNLOADED, Stage.AMBIGUOUS}
            return not left

        rampage.run(tend)
        audit = Audit.of(server, shared)
        return Row(
            run="Celery, `take_turn`",
            items=items,
            kills=rampage.kills,
            pauses=rampage.pauses,
            charged=sum(map(len, server.accepted.values())),
            doubles=len(audit.doubles),
            lost=len(audit.wrong),
            ambiguous=audit.states[Stage.AMBIGUOUS],
            interrupted=audit.interrupted,
            in_flight=rampage.processes * CREATES,
        ), audit


def naively(folder: Path, broker: Broker, *, items: int, strikes: int, pace: float) -> Row:
    """Let workers do one naive task for each item, until no more pictures appear."""
    save_recipe("Celery", folder / "orders.py")
    options = {**broker.settings["broker_transport_options"], "visibility_timeout": 30}
    settings = {**broker.settings, "broker_transport_options": options}
    with ExitStack() as stack:
        server = stack.enter_context(BillingServer(at_random(17, WEIGHTS), shaky=True))
        machines = [stack.enter_context(Nursery("queues.celery_worker")) for _ in range(MACHINES)]
        order = {
            "folder": str(folder), "url": server.url, "broker": settings, "pool": "prefork",
            "most": strikes, "naive": True, "slots": SLOTS, "pace": pace,
        }  # fmt: skip
        rampage = Rampage(machines, folder, order, naive_rampage(folder, strikes, pace))
        app = Celery("shop")
        app.conf.update(settings)
        for number in range(items):
            app.send_task("orders.create_naively", (f"order-{number}", f"order-{number}"))
        found, moved = 0, time.monotonic()

        def tend() -> bool:
            nonlocal found, moved
            now_found = len(saved_orders(folder))
            if now_found > found:
                found, moved = now_found, time.monotonic()
            return found == items or time.monotonic() > moved + _STUCK

        rampage.run(tend)
        saved = {
            path.read_bytes().removeprefix(PNG).decode() for path in pictures(folder).glob("*.png")
        }
        charged = [task for tasks in server.accepted.values() for task in tasks]
        return Row(
            run="Celery, naive",
            items=items,
            kills=rampage.kills,
            pauses=rampage.pauses,
            charged=len(charged),
            doubles=len(server.doubles),
            lost=len({*charged} - saved),
            ambiguous=0,
            interrupted=0,
            in_flight=0,
        )


@pytest.mark.nightly
def test_a_hundred_kills_of_three_workers(
    folder: Path, shared: SharedBatch, broker: Broker
) -> None:
    """Of 5,000 items none is paid twice or lost, and each kill leaves few of them ambiguous."""
    row, audit = on_turns(folder, shared, broker, items=5_000, strikes=120, pace=1.5)
    print(row)  # noqa: T201  a row of the page's table
    assert (audit.doubles, audit.wrong) == ([], [])
    assert row.interrupted <= row.in_flight


@pytest.mark.nightly
def test_naive_tasks_of_three_workers(folder: Path, broker: Broker) -> None:
    """The same kills make naive tasks pay twice."""
    row = naively(folder, broker, items=600, strikes=40, pace=2.0)
    print(row)  # noqa: T201  a row of the page's table
    assert row.doubles
