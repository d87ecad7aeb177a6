"""A store in MariaDB 10.6 or newer, made of the parts in `docs/write-a-store.md`."""

from __future__ import annotations

import os
import re
import secrets
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any, Final, Self
from weakref import WeakSet

import pymysql
from pymysql.constants import CR, ER

from muybridge.purchases import Conflict, Mark, StoreUnusable
from muybridge.purchases.steps import REPLACED
from muybridge.purchases.turns import Turns
from muybridge.purchases.words import Texts, has_rows

WORDS: Final[Mapping[str, str]] = {
    "now": "CAST(UNIX_TIMESTAMP(SYSDATE(6)) AS DOUBLE)",
    "real": "double",
    "bytes": "longblob",
    "for_update": "FOR UPDATE",
    "for_share": "LOCK IN SHARE MODE",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
}
PATIENCE: Final = 15.0
"""Seconds until a transaction begins. What follows ends by the limits of `_OPTIONS`."""
TURNS: Final = 64
"""Rows that are locked in place of tags. Tags that share one only wait for each other."""
_OPTIONS: Final[Mapping[str, Any]] = {
    "charset": "utf8mb4",
    "connect_timeout": 8,
    "read_timeout": 12,  # longer than a statement may wait for a lock
    "write_timeout": 12,
    "autocommit": True,
}
_SETTINGS: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', "
    "innodb_lock_wait_timeout = 10, idle_transaction_timeout = 10"
)
_GONE: Final = (0, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST)
_TABLES: Final = "ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
_IGNORING: Final = re.compile(r"^(INSERT INTO \w+ \((\w+).*)ON CONFLICT DO NOTHING$", re.DOTALL)
_KEY: Final = re.compile(r"(?<![:\w])key\b")
_PARTIAL: Final = re.compile(
    r"\s*CREATE (UNIQUE )?INDEX (\w+) ON (\w+) \((.*)\)\s+WHERE (.*)", re.DOTALL
)
_INDEXED: Final = re.compile(r"(?:PRIMARY KEY|UNIQUE|\sINDEX \w+ ON \w+) \(([^)]+)\)")
_TOKENS: Final = frozenset({"key", "state", "stage", "owner", "purchase", "id", "period"})
_OWN_KEY: Final = re.compile(r"(\w+) text NOT NULL (?:PRIMARY KEY|UNIQUE)")


class MariaTexts(Texts):
    """Translates statements: `key` is a reserved word, and conflicts are ignored in another way."""

    def of(self, statement: str) -> str:
        """Return *statement* as MariaDB takes it."""
        ignoring = _IGNORING.sub(r"\1ON DUPLICATE KEY UPDATE \2 = \2", statement)
        return super().of(_KEY.sub("`key`", ignoring))


class MariaDatabase:
    """A store's database in MariaDB.

    Args:
        words: What differs from other databases in statements.
        **options: How PyMySQL connects to it, with its `database`.
    """

    leases: bool = True
    parts: int = 8

    def __init__(self, *, words: Mapping[str, str] = WORDS, **options: Any) -> None:
        self.options: dict[str, Any] = options
        self._texts = MariaTexts(words, "%({})s")
        self.begin()
        _DATABASES.add(self)

    def begin(self) -> None:
        """Begin without connections, as a new owner: at first, and again in a forked child."""
        self._owner = secrets.token_hex(8)
        self._writing = _Place(self.options, "READ COMMITTED")
        self._reading = _Place(self.options, "REPEATABLE READ")

    def another(self) -> Self:
        """Return the same database for another owner."""
        other = copy(self)
        other.begin()
        _DATABASES.add(other)
        return other

    @property
    def place(self) -> str:
        """Where it is, without a user or a password."""
        where = self.options.get("host") or self.options.get("unix_socket") or "localhost"
        return f"mariadb://{where}/{self.options['database']}"

    def exists(self) -> bool:
        """Whether there are tables, and the row that makes them a store."""
        with self.reading() as rows:
            made = rows.run(
                "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() "
                "AND table_name = 'muybridge_turns'"
            )
            return bool(made) and bool(rows.run("SELECT 1 FROM muybridge_turns LIMIT 1"))

    def create(self, statements: Sequence[str], salt: str) -> None:
        """Create the tables, unless they exist. What a killed process has left is completed."""
        if self.exists():
            return
        with self._telling(), self._writing.connection() as db:
            rows = MariaRows(db, self._texts)
            rows.run("SELECT GET_LOCK('muybridge creating', 20)")
            try:
                if self.exists():
                    return
                for table in tables(statements[:-1]):
                    rows.run(table)
                rows.run("START TRANSACTION")
                if not rows.run("SELECT 1 FROM muybridge_store"):
                    rows.run(statements[-1], salt=salt)
                rows.run_each(
                    "INSERT INTO muybridge_turns (number) VALUES (:number)",
                    [{"number": number} for number in range(TURNS)],
                )
                rows.run("COMMIT")
            finally:
                with suppress(pymysql.Error):
                    rows.run("ROLLBACK")
                    rows.run("SELECT RELEASE_LOCK('muybridge creating')")

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[MariaRows]:
        """Begin a transaction. It is durable when the context ends without an error."""
        with self._telling(), self._writing.begun("START TRANSACTION", waited) as db:
            rows = MariaRows(db, self._texts)
            yield rows
            if rows.has_failed:  # the server may have undone it, and begun another one
                raise StoreUnusable(f"{self.place}: the transaction failed. Nothing is sent.")
            rows.is_ending = True
            db.commit()

    @contextmanager
    def reading(self) -> Generator[MariaRows]:
        """Begin to read."""
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
        with self._telling(), self._reading.begun(begin) as db:
            yield MariaRows(db, self._texts)

    def owner(self) -> str:
        """Return the name of this process as an owner."""
        return self._owner

    def lives(self, owner: str) -> bool:
        """Return False: only the clock tells."""
        del owner
        return False

    def seen(self) -> Mark | None:
        """Return None: the database is not this machine's."""
        return None

    def note_seen(self, mark: Mark) -> None:
        """Do nothing: the database is not this machine's."""

    def close(self) -> None:
        """Close every connection."""
        self._writing.close()
        self._reading.close()

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except TimeoutError as error:
            said = f"{self.place} is busy. Nothing is sent. Run again later."
            raise StoreUnusable(said, away=True) from error
        except pymysql.Error as error:
            code = error.args[0] if error.args else None
            if code in (ER.DUP_ENTRY, ER.LOCK_DEADLOCK):
                raise Conflict from error
            if code == ER.NO_SUCH_TABLE:
                raise StoreUnusable(f"{self.place} {REPLACED}", lacks="past") from error
            raise StoreUnusable(
                f"{self.place}: {error.args[-1] if error.args else error!r}. Nothing is sent. Make "
                "the database reachable and writable."
            ) from error


class MariaRows:
    """A transaction of MariaDB.

    Args:
        db: The connection.
        texts: The texts of statements.
    """

    def __init__(self, db: Any, texts: Texts) -> None:
        self.is_ending: bool = False
        self.has_failed: bool = False
        self._db = db
        self._texts = texts

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        with self._executed(statement, values) as cursor:
            return [*cursor.fetchall()] if has_rows(statement) else []

    def change(self, statement: str, **values: Any) -> int:
        """Execute a statement, and return how many rows it has changed."""
        with self._executed(statement, values) as cursor:
            return int(cursor.rowcount)

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement with one set of values after the other."""
        with self._failing(), self._db.cursor() as cursor:
            cursor.executemany(self._texts.of(statement), [*values])

    def hold(self, tags: Sequence[str], *, shared: Sequence[str] = ()) -> None:
        """Wait until nobody else holds *tags*, and hold them until the transaction ends."""
        ways = {_turn(tag): "{for_share}" for tag in shared}
        ways |= {_turn(tag): "{for_update}" for tag in tags}
        for number in sorted(ways):
            self.run(
                f"SELECT number FROM muybridge_turns WHERE number = :number {ways[number]}",  # noqa: S608  ours
                number=number,
            )

    @contextmanager
    def _executed(self, statement: str, values: Mapping[str, Any]) -> Generator[Any]:
        with self._failing(), self._db.cursor() as cursor:
            cursor.execute(self._texts.of(statement), values)
            yield cursor

    @contextmanager
    def _failing(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            self.has_failed = True
            raise


class _Place:
    """Where one connection is kept, which one thread uses at a time.

    Args:
        options: How to connect.
        level: What its transactions see of others.
    """

    def __init__(self, options: Mapping[str, Any], level: str) -> None:
        self._options = options
        self._level = level
        self._turns = Turns()
        self._db: Any = None

    @contextmanager
    def begun(self, begin: str, waited: float = 0.0) -> Generator[Any]:
        """Begin a transaction, which ends with the context: undone, unless it was committed."""
        with self.connection(waited) as db:
            try:
                db.query(begin)
            except (pymysql.OperationalError, pymysql.InterfaceError) as error:
                if "timed out" in str(error) or error.args[0] not in _GONE:
                    raise
                db.ping()  # it has ended meanwhile: connect again
                self._prepare(db)
                db.query(begin)
            try:
                yield db
            finally:
                if db.open:
                    try:
                        db.rollback()
                    except pymysql.Error:
                        _drop(db)

    @contextmanager
    def connection(self, waited: float = 0.0) -> Generator[Any]:
        """Use the connection."""
        with self._turns.within(max(1.0, PATIENCE - waited)):
            if self._db is None or not self._db.open:
                db = pymysql.connect(**{**_OPTIONS, **self._options})
                try:
                    self._prepare(db)
                except BaseException:
                    _drop(db)
                    raise
                self._db = db
            try:
                yield self._db
            except BaseException as error:
                if not isinstance(error, Exception):  # perhaps amid an answer
                    _drop(self._db)
                raise

    def _prepare(self, db: Any) -> None:
        with db.cursor() as cursor:
            cursor.execute(_SETTINGS)
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {self._level}")
            cursor.execute("SELECT @@innodb_flush_log_at_trx_commit, @@version")
            flushes, version = cursor.fetchone()
        if flushes != 1:
            raise StoreUnusable(
                f"innodb_flush_log_at_trx_commit is {flushes}, so a power cut would lose what was "
                "paid for. Nothing is sent. Set it to 1."
            )
        if "MariaDB" not in version:
            raise StoreUnusable(f"this is not MariaDB (found version {version})")

    def close(self) -> None:
        """Close the connection."""
        with self._turns.within(PATIENCE):
            if self._db is not None and self._db.open:
                _drop(self._db)


def _drop(db: Any) -> None:
    with suppress(pymysql.Error, AttributeError):
        db._force_close()


def _turn(tag: str) -> int:
    return zlib.crc32(tag.encode()) % TURNS


def tables(statements: Iterable[str]) -> Generator[str]:
    """Yield what creates tables and indexes, as MariaDB takes it.

    A text in a key has a limited length, and there are no partial indexes: a column with a digest
    of the indexed ones, or NULL where the index has no row, stands for one that is unique.
    """
    whole = [one for one in statements if (it := _PARTIAL.match(one)) is None or it[1] is None]
    listed = [
        name for one in whole for found in _INDEXED.findall(one) for name in found.split(", ")
    ]
    keys = {*listed, *(name for one in whole for name in _OWN_KEY.findall(one))}

    def typed(found: re.Match[str]) -> str:
        longest = 64 if found[1] in _TOKENS else 700
        return f"{found[1]} varchar({longest})" if found[1] in keys else f"{found[1]} longtext"

    for one in statements:
        partial = _PARTIAL.match(one)
        if partial is None or partial[1] is None:
            changed = re.sub(r"\b(\w+) text\b", typed, one)
            changed = changed.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ")
            changed = changed.replace("INDEX ", "INDEX IF NOT EXISTS ")
            changed = re.sub(r"\s+WHERE .*", "", changed, flags=re.DOTALL)
            yield f"{changed} {_TABLES if 'TABLE' in changed else ''}"
        else:
            _, name, table, columns, where = partial.groups()
            yield (
                f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} binary(32) AS (CASE WHEN "
                f"{where} THEN UNHEX(SHA2(CONCAT_WS(CHAR(0), {columns}), 256)) END) PERSISTENT, "
                f"ADD UNIQUE INDEX IF NOT EXISTS {name} ({name})"
            )
    yield (
        f"CREATE TABLE IF NOT EXISTS muybridge_turns (number bigint NOT NULL PRIMARY KEY) {_TABLES}"
    )


_DATABASES: Final[WeakSet[MariaDatabase]] = WeakSet()


def _begin_in_child() -> None:
    """Leave the parent's connections to the parent."""
    for database in tuple(_DATABASES):
        database.begin()


os.register_at_fork(after_in_child=_begin_in_child)
