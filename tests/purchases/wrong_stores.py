"""Databases with one mistake each, which the kit must notice."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from muybridge.files import sqlite
from muybridge.purchases import Conflict, Mark, StoreUnusable
from muybridge.purchases.sqlite import WORDS, SqliteDatabase, SqliteRows
from muybridge_protocol.purchases import day_of


class Forgetful(SqliteDatabase):
    """Each process has a database of its own, as in its memory."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path.with_name(f"{path.name.split('-')[0]}-{os.getpid()}"), **options)


class Undone(SqliteDatabase):
    """No transaction is committed."""

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[SqliteRows]:
        with super().transaction(waited=waited) as rows:
            yield rows
            rows.run("ROLLBACK")
            rows.run("BEGIN")


class Piecemeal(SqliteDatabase):
    """Each statement is a transaction of its own."""

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[SqliteRows]:  # noqa: ARG002
        with self._telling(), self._opened(self._patience) as db:
            db.execute("PRAGMA synchronous = OFF")
            yield SqliteRows(db, self._texts)


class Nameless(SqliteDatabase):
    """No index is unique."""

    def create(self, statements: Sequence[str], salt: str) -> None:
        super().create([one.replace("UNIQUE INDEX", "INDEX") for one in statements], salt)


class Shared(Nameless, Piecemeal):
    """No index is unique, and each statement is a transaction of its own."""


class _Rows:
    """A transaction of `Changed`."""

    def __init__(self, rows: SqliteRows) -> None:
        self.whole = rows
        self.hold = rows.hold
        self.is_ending = False

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.whole.run(statement, **values)

    def change(self, statement: str, **values: Any) -> int:
        return self.whole.change(statement, **values)

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        self.whole.run_each(statement, values)


class Changed(SqliteDatabase):
    """Its statements are executed by `rows`."""

    rows: type[_Rows] = _Rows

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[Any]:
        with super().transaction(waited=waited) as rows:
            changed = self.rows(rows)
            yield changed
            rows.is_ending = changed.is_ending = True


class _Truncating(_Rows):
    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return super().run(statement, **_cut(values))

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        super().run_each(statement, map(_cut, values))


def _cut(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value[:1000] if isinstance(value, str | bytes) else value
        for name, value in values.items()
    }


class Truncating(Changed):
    """Columns have room for 1,000 characters, and nobody is told."""

    rows = _Truncating


class _Indexing(_Rows):
    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        if len(str(values.get("task", ""))) > 50:
            raise StoreUnusable("index row size exceeds maximum")
        return super().run(statement, **values)


class Indexing(Changed):
    """An index has no room for an id of more than 50 characters."""

    rows = _Indexing


class Caseless(SqliteDatabase):
    """Names are compared as people do."""

    def create(self, statements: Sequence[str], salt: str) -> None:
        alike = [
            one.replace("    name text,", "    name text COLLATE NOCASE,") for one in statements
        ]
        super().create(alike, salt)


class Padding(SqliteDatabase):
    """Texts are compared without spaces at their ends."""

    def create(self, statements: Sequence[str], salt: str) -> None:
        alike = [
            one.replace("    name text,", "    name text COLLATE RTRIM,") for one in statements
        ]
        super().create(alike, salt)


class Unyielding(SqliteDatabase):
    """What violates an index is a failure."""

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            with super()._telling():
                yield
        except Conflict as error:
            raise StoreUnusable("UNIQUE constraint failed") from error


class Outspoken(SqliteDatabase):
    """The driver's errors reach the caller."""

    @contextmanager
    def _telling(self) -> Generator[None]:
        yield


class _Miscounting(_Rows):
    def change(self, statement: str, **values: Any) -> int:
        super().change(statement, **values)
        return 1


class Miscounting(Changed):
    """Every statement has changed one row."""

    rows = _Miscounting


class Timeless(SqliteDatabase):
    """Its clock stands still, as that of a transaction that began."""

    def __init__(self, path: Path, **_: Any) -> None:
        super().__init__(path, words={**WORDS, "now": "5.5"})


class Overwriting(SqliteDatabase):
    """Whoever begins creates the store."""

    _is_made = False

    def exists(self) -> bool:
        return self._is_made and super().exists()

    def create(self, statements: Sequence[str], salt: str) -> None:
        if not self._is_made:
            new = SqliteDatabase(self.path.with_name(salt))
            new.create(statements, salt)
            new.path.replace(self.path)
            self._is_made = True


class Unforked(SqliteDatabase):
    """A child is its parent."""

    _name: str | None = None

    def owner(self) -> str:
        if self._name is None:
            self._name = super().owner()
        return self._name


class Hogging(SqliteDatabase):
    """Its lock is a file that the process removes, if it lives."""

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[SqliteRows]:
        lock = self.path.with_suffix(".lock")
        try:
            lock.touch(exist_ok=False)
        except FileExistsError as error:
            raise StoreUnusable("the store is locked") from error
        try:
            with super().transaction(waited=waited) as rows:
                yield rows
        finally:
            lock.unlink()


class _Remembering(_Rows):
    database: Any

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        if not statement.startswith("SELECT salt"):
            return super().run(statement, **values)
        if self.database.known is None:
            [(*look, _)] = super().run(statement, **values)
            self.database.known = [(*look, 1)]
        known: list[tuple[Any, ...]] = self.database.known
        return known


class Remembering(SqliteDatabase):
    """It looks at the store once."""

    known: Any = None

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[Any]:
        with super().transaction(waited=waited) as rows:
            remembering = _Remembering(rows)
            remembering.database = self
            yield remembering


class _Deaf(_Rows):
    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        only = " AND state = 'armed'" if statement.startswith("UPDATE muybridge_purchases") else ""
        return super().run(f"{statement}{only}", **values)


class Deaf(Changed):
    """It changes no purchase that is not armed."""

    rows = _Deaf


class Negligent(SqliteDatabase):
    """It remembers nothing for later processes."""

    def seen(self) -> Mark | None:
        return None


class Relaxed(SqliteDatabase):
    """It leaves it to the system when its files are written down."""

    synchronous = "OFF"

    @contextmanager
    def _opened(self, patience: float) -> Generator[sqlite3.Connection]:
        with closing(sqlite.connect(self.path, patience)) as db:
            db.execute(f"PRAGMA synchronous = {self.synchronous}")
            yield db


class Folderless(Relaxed):
    """It does not sync the folder in which a file was removed."""

    synchronous = "FULL"


class Murderous(SqliteDatabase):
    """Everybody is dead."""

    def lives(self, owner: str) -> bool:
        del owner
        return False


class Alone(SqliteDatabase):
    """There is no other owner."""

    def another(self) -> Self:
        return self


class Immortal(SqliteDatabase):
    """Nobody dies."""

    def lives(self, owner: str) -> bool:
        del owner
        return True


# On a database for many machines. Its module needs an extra, so that it is named when it is there.


def postgres_without(what: str) -> Any:
    """Return a kind of database for many machines with one mistake."""
    from muybridge.purchases.postgres import PostgresDatabase, PostgresRows

    def no_hold(self: Any, tags: Any, *, shared: Any = ()) -> None:
        pass

    whole = PostgresRows.hold

    def by_day(self: Any, tags: Any, *, shared: Any = ()) -> None:
        day = day_of(float(self.run("SELECT {now}")[0][0]))
        whole(self, [f"{tag} {day}" for tag in tags], shared=[f"{tag} {day}" for tag in shared])

    class Wrong(PostgresDatabase):
        @contextmanager
        def transaction(self, *, waited: float = 0.0) -> Generator[PostgresRows]:
            with super().transaction(waited=waited) as rows:
                kind = type(
                    "Rows", (PostgresRows,), {"hold": no_hold if what == "holds" else by_day}
                )
                rows.__class__ = kind
                yield rows

    class Eternal(PostgresDatabase):
        def __init__(self, url: str, *, words: Mapping[str, str]) -> None:
            super().__init__(url, words={**words, "now": "CAST(0.5 AS double precision)"})

    return Eternal if what == "a clock" else Wrong
