"""Our databases pass the kit that checks other people's, and the kit notices mistakes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from muybridge.purchases import Database
from muybridge.purchases import sqlite as in_sqlite
from muybridge.purchases.sqlite import SqliteDatabase
from muybridge.testing.conformance import NotConforming
from muybridge.testing.store_conformance import StoreConformance

if TYPE_CHECKING:
    from batch.postgres_server import Postgres


class OnSqlite(StoreConformance):
    """Makes databases in files."""

    kind: type[SqliteDatabase] = SqliteDatabase
    folder: Path
    count: int = 0

    def make_database(self) -> Database:
        self.count += 1
        return self.kind(self.folder / f"{self.count}.sqlite3")

    def reopen(self, database: Database, now: str | None = None) -> Database:
        words = in_sqlite.WORDS if now is None else {**in_sqlite.WORDS, "now": now}
        return self.kind(cast("SqliteDatabase", database).path, words=words)


class TestSqlite(OnSqlite):
    """A file passes all of it."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path


class TestPostgres(StoreConformance):
    """A database of a server passes all of it."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres: Postgres) -> None:
        self.postgres = postgres
        self.urls: dict[int, str] = {}

    def make_database(self) -> Database:
        return self._at(self.postgres.fresh())

    def reopen(self, database: Database, now: str | None = None) -> Database:
        return self._at(self.urls[id(database)], now)

    def _at(self, url: str, now: str | None = None) -> Database:
        from muybridge.purchases import postgres

        stands = {} if now is None else {"now": f"CAST({now} AS double precision)"}
        database = postgres.PostgresDatabase(url, words={**postgres.WORDS, **stands})
        self._open.callback(database.close)
        self.urls[id(database)] = url
        return database


class Forgetful(SqliteDatabase):
    """Each process has a database of its own."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path.with_name(f"{path.name.split('-')[0]}-{os.getpid()}"), **options)


class Nameless(SqliteDatabase):
    """No index is unique."""

    def create(self, statements: Sequence[str], salt: str) -> None:
        super().create([one.replace("UNIQUE INDEX", "INDEX") for one in statements], salt)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Forgetful, StoreConformance.test_a_killed_process_has_recorded_what_it_was_about_to_send),
        (Nameless, StoreConformance.test_a_name_is_paid_for_once),
    ],
    ids=lambda it: it.__name__,
)
def test_a_mistake_is_noticed(kind: type[SqliteDatabase], check: Any, tmp_path: Path) -> None:
    """The check says what it would cost."""
    kit = OnSqlite()
    kit.kind, kit.folder = kind, tmp_path
    kit.setup_method()
    try:
        with pytest.raises(NotConforming):
            check(kit)
    finally:
        kit.teardown_method()
