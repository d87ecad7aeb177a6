"""Copies of a store that is in use: each is whole, and knows what was bought before it was made."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from muybridge.purchases import Measure, Store, open_store

from .bought import buy

if TYPE_CHECKING:
    from batch.postgres_server import Postgres


@contextmanager
def buying(store: Store) -> Generator[None]:
    """Buy from several threads, as long as the context lasts."""
    ended = threading.Event()
    count = iter(range(10**6))

    def work() -> None:
        while not ended.is_set():
            buy(store, task=f"T{next(count)}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def check(copy: Store, before: list[str]) -> None:
    """Check that *copy* is whole: its purchases are those that it counts, and it can go on."""
    known = [one.key for one in copy.purchases()]
    assert {*before} <= {*known}
    assert copy.spent()[Measure.CREATES] == len(known)
    buy(copy, task="after the copy")


@pytest.mark.parametrize("how", ["command", "Python"])
def test_a_file(tmp_path: Path, how: str) -> None:
    """`.backup` copies it while others write."""
    path, target = tmp_path / "store.sqlite3", tmp_path / "copy.sqlite3"
    with open_store(path) as store:
        before = [buy(store, task=f"B{n}").key for n in range(3)]
        with buying(store):
            if how == "Python":
                with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(target)) as copy:
                    db.backup(copy)
            elif (sqlite := shutil.which("sqlite3")) is None:
                pytest.skip("the command sqlite3 is not installed")
            else:
                words = [sqlite, "-cmd", ".timeout 30000", str(path), f".backup {target}"]
                subprocess.run(words, check=True)  # noqa: S603  the command of the page
    with open_store(target) as copied:
        check(copied, before)


def test_a_database(postgres: Postgres, tmp_path: Path) -> None:
    """`pg_dump` copies it while others write, and `pg_restore` makes a store of it."""
    [(folder,)] = postgres.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    programs = Path(folder)
    url = postgres.fresh()
    schema = url.rpartition("%3D")[2]
    dump = tmp_path / "store.dump"
    with open_store(url) as store:
        before = [buy(store, task=f"B{n}").key for n in range(3)]
        with buying(store):
            _run(
                programs,
                "pg_dump",
                "-Fc",
                "-t",
                f"{schema}.muybridge_*",
                "-f",
                str(dump),
                postgres.url,
            )
        postgres.execute(f"DROP SCHEMA {schema} CASCADE")
        postgres.execute(f"CREATE SCHEMA {schema}")
        _run(programs, "pg_restore", "-d", postgres.url, str(dump))
    with open_store(url) as copied:
        check(copied, before)


def _run(programs: Path, name: str, *words: str) -> None:
    subprocess.run([programs / name, *words], check=True)  # noqa: S603  the wheel's
