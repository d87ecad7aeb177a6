"""Turns at a shared batch under Celery: workers that are killed, and messages that nobody sent."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from batch.billing import PNG, BillingServer, Fault
from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from muybridge.workers.messages import TASK
from muybridge_protocol.service import Service
from processes import Nursery

from .audit import Audit, pictures
from .brokers import BROKERS, QUEUE, Broker
from .turns_worker import strikes
from .workers import KEY, kill_all, last_output

_PATIENCE = 5.0
_CRASHES = 20
KILLS = {"prefork": 11, "solo": 6}
"""The fewest kills that hit every moment."""
SAMPLE = {("prefork", "Redis"), ("solo", "files")}
RAW = (b"[]", b"{}", b"null", b"\xff{", b"[" * 100_000, b'{"properties": {"delivery_tag": []}}')
"""What no program of Celery writes into a queue."""
Kill = Callable[[str, int], Audit]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """Forks Celery workers."""
    with Nursery("queues.turns_worker") as forking:
        yield forking


def submit(server: BillingServer, shared: SharedBatch, count: int) -> None:
    orders = [
        {"family": "imgb", "model": "imgb-2", "prompt": f"order-{n}", "name": f"order-{n}"}
        for n in range(count)
    ]
    batch.submit(shared, orders, Service(base_url=server.url))


@pytest.fixture
def broker(request: pytest.FixtureRequest, folder: Path) -> Iterator[Broker]:
    """What a test names."""
    with BROKERS[request.param](folder) as serving:
        yield serving


def sender(broker: Broker) -> Any:
    """Return what sends messages to the queue, as any program can."""
    app = Celery("shop")
    app.conf.update(broker.settings, task_default_queue=QUEUE)
    return app


def audit(folder: Path, server: BillingServer, shared: SharedBatch) -> Audit:
    """Compare the service's books with the store and the pictures."""
    entries = tuple(batch.shared_status(shared).entries)
    found = {
        path.read_bytes().removeprefix(PNG).decode() for path in pictures(folder).glob("*.png")
    }
    ambiguous = [entry.name for entry in entries if entry.state is Stage.AMBIGUOUS]
    return Audit(
        orders=len(entries),
        posts=server.posts,
        doubles=[entry.name for entry in entries if len(server.asked[entry.name]) > 1],
        ambiguous=ambiguous,
        lost=[
            task
            for entry in entries
            if entry.name not in ambiguous
            for task in server.accepted[entry.name]
            if task not in found
        ],
        unfinished=[
            entry.name
            for entry in entries
            if entry.state not in (Stage.DOWNLOADED, Stage.AMBIGUOUS)
        ],
    )


def is_over(shared: SharedBatch) -> bool:
    """Whether workers have nothing left to do."""
    return not {*batch.shared_status(shared).counts} - {Stage.DOWNLOADED, Stage.AMBIGUOUS}


@pytest.fixture
def kill(
    nursery: Nursery, folder: Path, server: BillingServer, shared: SharedBatch, broker: Broker
) -> Kill:
    """Return what kills workers of a pool, as often as it is told, and prints what was found."""

    def go(pool: str, kills: int) -> Audit:
        struck = strikes(folder, kills, pool=pool)
        orders, workers, crashes, over = 0, 0, 0, False
        app = sender(broker)
        with ThreadPoolExecutor(1) as waiting:
            while not over:
                workers += 1
                if workers % 2:  # else the broker repeats what the last worker had taken
                    broker.flush()
                worker = nursery.start(
                    folder=str(folder), url=server.url, database=str(shared.store),
                    broker=broker.settings, pool=pool, most=kills,
                )  # fmt: skip
                ended = waiting.submit(nursery.wait)
                try:
                    sent = 0.0
                    while not wait([ended], timeout=0.05).done and not over:
                        if not struck.are_over and (orders == 0 or is_over(shared)):
                            orders += 8
                            submit(server, shared, orders)
                            sent = 0.0
                        if time.monotonic() > sent + _PATIENCE:
                            sent = time.monotonic()
                            for _ in range(2):
                                app.send_task(TASK, ("horses",))
                        over = struck.are_over and is_over(shared)
                finally:
                    kill_all(worker)
                crashes += ended.result() != -signal.SIGKILL
                assert crashes <= _CRASHES, last_output(folder)
        found = audit(folder, server, shared)
        cells = [
            f"Celery, {pool}, {broker.name}", "take_turn", struck.hits.total(), found.orders,
            found.posts, len(found.doubles), len(found.lost), len(found.ambiguous),
        ]  # fmt: skip
        print("|", " | ".join(map(str, cells)), "|")  # noqa: T201  a row of the table of kills
        assert {*struck.turns} <= {*struck.hits}, struck.hits
        return found

    return go


@pytest.mark.parametrize(
    ("pool", "broker"),
    [
        (pool, broker)
        if (pool, broker) in SAMPLE
        else pytest.param(pool, broker, marks=pytest.mark.nightly)
        for broker in BROKERS
        for pool in KILLS
    ],
    indirect=["broker"],
)
def test_no_item_is_paid_twice_or_lost(pool: str, kill: Kill) -> None:
    """Killed at every moment, with messages lost and repeated, each item is sent once at most."""
    found = kill(pool, KILLS[pool])
    assert found.is_clean, found


@pytest.mark.nightly
@pytest.mark.parametrize("broker", BROKERS, indirect=True)
@pytest.mark.parametrize("pool", KILLS)
def test_many_kills(pool: str, kill: Kill) -> None:
    """The same holds for many kills."""
    found = kill(pool, 150)
    assert found.is_clean, found


@pytest.mark.parametrize("broker", ["Redis"], indirect=True)
def test_a_batch_outlasts_a_failure_of_the_service(
    nursery: Nursery, folder: Path, shared: SharedBatch, broker: Broker
) -> None:
    """One message finishes a batch, although the service refuses every request at first."""
    refused = iter([Fault.UNAUTHORIZED] * 4)
    with BillingServer(lambda _: next(refused, Fault.NONE)) as server:
        submit(server, shared, 3)
        sender(broker).send_task(TASK, ("horses",))
        worker = nursery.start(
            folder=str(folder), url=server.url, database=str(shared.store), broker=broker.settings,
            pool="prefork", pause=1,
        )  # fmt: skip
        try:
            ends = time.monotonic() + 60
            while not is_over(shared):
                assert time.monotonic() < ends, last_output(folder)
                time.sleep(0.05)
        finally:
            kill_all(worker)
            nursery.wait()
    assert batch.shared_status(shared).counts == {Stage.DOWNLOADED: 3}
    log = (folder / "log").read_text("utf-8", "replace")
    assert "Batch 'horses' continues in 1 s: The service refused the request" in log


@pytest.mark.parametrize(
    "broker",
    ["files", "Redis", pytest.param("RabbitMQ", marks=pytest.mark.nightly)],
    indirect=True,
)
def test_messages_of_others(
    nursery: Nursery, folder: Path, server: BillingServer, shared: SharedBatch, broker: Broker
) -> None:
    """Forged messages are refused, the worker goes on, and no key or error is stored."""
    submit(server, shared, 2)
    app = sender(broker)
    app.conf.update(accept_content=["json", "pickle"])
    app.send_task("celery.map", ({"task": TASK}, [["horses"]]))
    app.send_task("os.system", ("true",))
    app.send_task(TASK, ("horses",), serializer="pickle")
    app.send_task(TASK, ("horses" * 5000,))
    app.send_task(TASK, ("horses",), {"out": "/tmp"})  # noqa: S108  it is refused
    app.send_task(TASK, ("horses",), time_limit=0.1)
    app.send_task(TASK, ("horses",), chain=[app.signature(TASK, ("horses",))])
    app.send_task(TASK, ("horses",), task_id="1]\nforged")
    app.send_task(TASK, ("horses",), retries="many")
    app.send_task(TASK, ("horses",), countdown=10**9)
    app.send_task(TASK, ("horses",), headers={"more": "x" * 9000})
    app.send_task(TASK, ("horses" * 10**6,), compression="gzip")
    for raw in RAW:
        broker.put(raw)
    app.send_task(TASK, ("mules",), ignore_result=False)
    app.send_task(TASK, ("horses",))
    results = folder / "results"
    results.mkdir()
    worker = nursery.start(
        folder=str(folder), url=server.url, database=str(shared.store), pool="solo",
        broker={**broker.settings, "result_backend": results.as_uri()},
    )  # fmt: skip
    try:
        ends = time.monotonic() + 60
        while not is_over(shared) or not broker.is_empty():
            assert time.monotonic() < ends, last_output(folder)
            time.sleep(0.05)
    finally:
        kill_all(worker)
        nursery.wait()
    assert batch.shared_status(shared).counts == {Stage.DOWNLOADED: 2}
    assert server.posts == 2
    log = (folder / "log").read_text("utf-8", "replace")
    for said in (
        "it is for another task than muybridge.take_turn",
        "Received unregistered task of type 'os.system'",
        "it is not JSON in UTF-8",
        "the limit is 8192",
        "its arguments are not the name of a batch",
        "its id is not a short text on one line",
        "it is a retry",
        "its eta is more than an hour from now",
        "it is compressed",
        "it has a time limit",
        "" if broker.name == "RabbitMQ" else "it is not one of Celery's",
        "it asks for other tasks afterwards",
        "There is no batch mules in",
    ):
        assert said in log, said
    assert "\nforged" not in log
    stored = "".join(path.read_text("utf-8") for path in results.iterdir())
    assert "muybridge" not in stored
    assert "mules" not in stored
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
