"""The kit for databases, on each of ours: how they are made, opened and copied."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from muybridge.purchases import Database
from muybridge.purchases import sqlite as in_sqlite
from muybridge.purchases.sqlite import SqliteDatabase
from muybridge.testing.store_conformance import StoreCapabilities, StoreConformance

if TYPE_CHECKING:
    from batch.postgres_server import Postgres


class OnSqlite(StoreConformance):
    """Databases in files."""

    kind: type[SqliteDatabase] = SqliteDatabase
    folder: Path
    count: int = 0

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_database(self) -> Database:
        self.count += 1
        return self.kind(self.folder / f"{self.count}.sqlite3")

    def reopen(self, database: Database, now: str | None = None) -> Database:
        words = in_sqlite.WORDS if now is None else {**in_sqlite.WORDS, "now": now}
        return type(cast("SqliteDatabase", database))(self.path(database), words=words)

    def files(self, database: Database) -> Sequence[Path]:
        path = self.path(database)
        return [path, path.with_name(f"{path.name}-journal")]

    def backup(self, database: Database) -> Callable[[], object]:
        path = self.path(database)
        copy = path.with_suffix(".backup")
        shutil.copy(path, copy)
        return lambda: shutil.copy(copy, path)

    def path(self, database: Database) -> Path:
        """Return the file of *database*."""
        return cast("SqliteDatabase", database).path


class OnPostgres(StoreConformance):
    """Databases of a server."""

    capabilities: ClassVar[StoreCapabilities] = StoreCapabilities(
        shows_syncs=False, notices_copies_later=False
    )
    kind: Any = None
    postgres: Postgres

    @pytest.fixture(autouse=True)
    def _server(self, postgres: Postgres) -> None:
        self.postgres = postgres

    def make_database(self) -> Database:
        return self.at(self.postgres.fresh())

    def reopen(self, database: Database, now: str | None = None) -> Database:
        return self.at(cast("Any", database).url, now)

    def at(self, url: str, now: str | None = None) -> Database:
        """Return the database at *url*."""
        from muybridge.purchases import postgres

        stands = {} if now is None else {"now": f"CAST({now} AS double precision)"}
        kind = self.kind or postgres.PostgresDatabase
        database: Any = kind(url, words={**postgres.WORDS, **stands})
        database.url = url
        self._open.callback(database.close)
        return cast("Database", database)
