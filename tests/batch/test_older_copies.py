"""An older copy of the store takes its place: nothing is paid for again."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from muybridge import batch
from muybridge.batch import SharedBatch, Stage, StoreUnusable
from muybridge.purchases import open_store

from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .postgres_server import Postgres
from .runner_process import horses

ITEMS = 8
COPIED, RESTORED = 2, 5
"""The creates at which the copy is made, and takes the store's place."""

Act = Callable[[], object]


def at_creates(server: BillingServer, acts: Mapping[int, Act]) -> None:
    """Call *acts* at the creates with these numbers, before their responses."""
    lock, left = threading.Lock(), dict(acts)

    def act(_: str) -> None:
        with lock:
            left.pop(server.posts, lambda: None)()

    server.on_create = act


# In a folder


def overwrite(copy: Path, path: Path) -> None:
    """Write the copy over the store."""
    shutil.copyfile(copy, path)


def replace(copy: Path, path: Path) -> None:
    """Move the copy to the store's place."""
    shutil.copyfile(copy, copy.with_suffix(".new")).replace(path)


def remove(_: Path, path: Path) -> None:
    """Remove the store."""
    path.unlink()


WAYS: list[Callable[[Path, Path], None]] = [overwrite, replace, remove]


def copied(path: Path, copy: Path) -> None:
    """Copy a store as SQLite does it."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


@pytest.mark.parametrize("put_back", WAYS)
def test_a_run_of_a_folder(
    put_back: Callable[[Path, Path], None], run: Run, server: BillingServer, tmp_path: Path
) -> None:
    """The run notices at its next step, and the next run by what the first one has left."""
    path, copy = tmp_path / "out" / "state" / "store.sqlite3", tmp_path / "copy.sqlite3"
    acts = {
        COPIED: lambda: copied(path, copy),
        RESTORED: lambda: put_back(copy, path),
    }
    at_creates(server, acts)
    with pytest.raises(StoreUnusable, match="you could pay twice") as noticed:
        run(server, horses(ITEMS), concurrency=1)
    assert server.posts == RESTORED
    assert "run again" not in str(noticed.value)
    for source in (None, horses(ITEMS)):
        with pytest.raises(StoreUnusable) as refused:
            run(server, source, concurrency=1)
        assert (server.posts, server.doubles) == (RESTORED, [])
        assert refused.value.lacks == "past"
        assert "older copy" in str(refused.value)


def test_the_run_after_one_that_has_ended(run: Run, server: BillingServer, tmp_path: Path) -> None:
    """It knows from this machine, and from the last runner's file, what the store has had."""
    path, copy = tmp_path / "out" / "state" / "store.sqlite3", tmp_path / "copy.sqlite3"
    at_creates(server, {COPIED: lambda: copied(path, copy)})
    assert run(server, horses(ITEMS), concurrency=1).done
    replace(copy, path)
    with pytest.raises(StoreUnusable, match="or an older copy"):
        run(server, None, concurrency=1)
    with open_store(path) as store:
        store.accept()
    with pytest.raises(StoreUnusable, match="it is an older copy, or a new store") as refused:
        run(server, None, concurrency=1)
    assert (server.posts, server.doubles) == (ITEMS, [])
    runners = path.parent.glob("runner-*")
    (file,) = (one for one in runners if str(one) in str(refused.value))
    file.unlink()
    run(server, None, concurrency=1)
    assert server.doubles, "whoever removes the file has been told"


def test_what_lies_in_the_latest_store_is_resumed(run: Run, server: BillingServer) -> None:
    """Runs that end and begin again find each other's writes, and pay for nothing twice."""
    for count in (1, 3, ITEMS):
        assert run(server, horses(count)).done
    assert run(server, None).counts == {Stage.DOWNLOADED: ITEMS}
    assert (server.posts, server.doubles) == (ITEMS, [])


# In a database

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema AND tablename LIKE %s"


def copy_of(postgres: Postgres, url: str) -> None:
    """Copy the tables of a schema."""
    for (table,) in postgres.execute(_TABLES, "muybridge%", url=url):
        postgres.execute(f"CREATE TABLE copy_{table} AS TABLE {table}", url=url)


def restore(postgres: Postgres, url: str) -> None:
    """Put the copy of the tables in their place, as a restored backup does."""
    tables = [table for (table,) in postgres.execute(_TABLES, "muybridge%", url=url)]
    columns = (
        "SELECT string_agg(column_name, ', ') FROM information_schema.columns "
        "WHERE table_schema = current_schema AND table_name = %s"
    )
    steps = ["SET session_replication_role = replica", f"TRUNCATE {', '.join(tables)}"]
    for table in tables:
        ((names,),) = postgres.execute(columns, table, url=url)
        into = f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE"
        steps.append(f"{into} SELECT {names} FROM copy_{table}")  # noqa: S608  its own names
    postgres.execute("; ".join(steps), url=url)


def test_a_worker_of_a_database(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """The worker notices at its next step, and the next one by what the first one has left."""
    submit(server, shared, ITEMS)
    acts = {
        COPIED: lambda: copy_of(postgres, str(shared.store)),
        RESTORED: lambda: restore(postgres, str(shared.store)),
    }
    at_creates(server, acts)
    with pytest.raises(StoreUnusable, match="you could pay twice"):
        work(server, shared, creates=1, concurrency=1)
    assert server.posts == RESTORED
    with pytest.raises(StoreUnusable, match="it is an older copy, or a new store"):
        work(server, shared, creates=1, concurrency=1)
    assert (server.posts, server.doubles) == (RESTORED, [])


def test_a_worker_that_has_ended(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """The next worker on its machine knows what it has written, whatever ended it."""
    submit(server, shared, ITEMS)
    at_creates(server, {COPIED: lambda: copy_of(postgres, str(shared.store))})
    assert work(server, shared, creates=1, concurrency=1).done
    restore(postgres, str(shared.store))
    with pytest.raises(StoreUnusable, match="it is an older copy, or a new store"):
        work(server, shared, creates=1, concurrency=1)
    assert (server.posts, server.doubles) == (ITEMS, [])


def test_workers_that_end_are_forgotten(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """The turns of a worker leave no rows."""
    for count in (1, 2, 3):
        submit(server, shared, count)
        assert work(server, shared).done
    assert batch.shared_status(shared).done
    assert postgres.execute("SELECT count(*) FROM muybridge_owners", url=str(shared.store)) == [
        (0,)
    ]
