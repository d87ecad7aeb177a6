"""A store in PostgreSQL, for all threads and processes of many machines.

A process has two connections: one for its transactions, one for what only reads. Each transaction
sets its own limits, in the round trip of its BEGIN, because a pooler may give it to a server
process whose settings others have changed: how long it may wait, how long the server waits for us,
and that its commit is durable. An owner lives on the database's clock alone.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice
from typing import Any, Final, Self
from weakref import WeakSet

from muybridge.extras import missing_extra

try:
    import psycopg
except ImportError as _missing:
    raise missing_extra("muybridge.purchases", "psycopg", "postgres") from _missing

from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.port import Conflict, Mark
from muybridge.purchases.postgres_connections import (
    LIMITS,
    Connection,
    Silent,
    connect,
    is_away,
    message_of,
    named,
)
from muybridge.purchases.steps import REPLACED
from muybridge.purchases.turns import Turns
from muybridge.purchases.words import Texts, has_rows
from muybridge.signals import genuine

WORDS: Final[Mapping[str, str]] = {
    "now": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
    "real": "double precision",
    "bytes": "bytea",
    "for_update": "FOR UPDATE",
    "for_share": "FOR SHARE",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
}
PARTS: Final = 8
PATIENCE: Final = 24.0
"""Seconds for a transaction, from the wait for its turn to its COMMIT."""
_LEAST: Final = 2.0
"""Seconds that a transaction gets, however long its members have waited."""
_ANSWERS: Final = 8.0
"""Seconds in which a server must answer to BEGIN, which waits for no lock."""
_ENDS: Final = 4.0
"""Seconds in which it must answer to COMMIT or ROLLBACK, at least."""
_CREATING: Final = 0x6D757970
"""The lock of whoever creates the tables: a number ("muyp") that no other program has."""
_AT_ONCE: Final = 1000
"""Most sets of values that are sent without waiting."""
# Not by to_regclass: behind a pooler, the same server process may remember that there was none.
_TABLE: Final = (
    "SELECT 1 FROM pg_class WHERE relname = 'muybridge_store' AND pg_table_is_visible(oid)"
)
_SETTINGS: Final = "".join(f"; SET LOCAL {name} = '{value}'" for name, value in LIMITS.items())
_BEGIN: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED{_SETTINGS}".encode()
_BEGIN_READING: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{_SETTINGS}".encode()
_HOLD: Final = "pg_advisory_xact_lock{how}(hashtextextended(%(tag{n})s, 1836413296))"
_CONFLICTS: Final = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


class PostgresDatabase:
    """A store's database in PostgreSQL.

    Args:
        url: The database, as libpq has it: `postgresql://USER@HOST/DATABASE`.
        words: What differs from other databases in statements.
    """

    leases: bool = True
    parts: int = PARTS

    def __init__(self, url: str, *, words: Mapping[str, str] = WORDS) -> None:
        self._url = url
        self._texts = Texts(words, "%({})s")
        self._place = named(url)
        self.begin()
        _DATABASES.add(self)

    def begin(self) -> None:
        """Begin without connections, as a new owner: at first, and again in a forked child."""
        self._owner = secrets.token_hex(8)
        self._writing = _Place(self._url)
        self._reading = _Place(self._url)

    def another(self) -> Self:
        """Return the same database for another owner."""
        other = copy(self)
        other.begin()
        _DATABASES.add(other)
        return other

    @property
    def place(self) -> str:
        """Where it is, without a user or a password."""
        return self._place

    def exists(self) -> bool:
        """Whether there are tables."""
        with self.reading() as rows:
            return bool(rows.run(_TABLE))

    def create(self, statements: Sequence[str], salt: str) -> None:
        """Create the tables, all or none of them, unless they exist."""
        if self.exists():
            return
        with self.transaction() as rows:
            rows.run(f"SELECT pg_advisory_xact_lock({_CREATING})")
            if not rows.run(_TABLE):
                for statement in statements[:-1]:
                    rows.run(statement)
                rows.run(statements[-1], salt=salt)

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[PostgresRows]:
        """Begin a transaction. It is durable when the context ends without an error."""
        patience = max(_LEAST, PATIENCE - waited)
        with self._telling(), self._writing.begun(_BEGIN, patience) as db:
            rows = PostgresRows(db, self._texts)
            yield rows
            rows.is_ending = True
            # A COMMIT without an answer leaves everybody in doubt, so it gets its time in any case.
            db.ends = max(db.ends, time.monotonic() + _ENDS)
            self.end(db)

    def end(self, db: Connection) -> None:
        """Commit the transaction of a connection."""
        # A transaction that has failed answers with ROLLBACK, which is not an error.
        if db.execute("COMMIT", prepare=False).statusmessage != "COMMIT":
            raise StoreUnusable(f"{self._place}: the transaction failed. Nothing is sent.")

    @contextmanager
    def reading(self) -> Generator[PostgresRows]:
        """Begin to read: several statements see the same state."""
        with self._telling(), self._reading.begun(_BEGIN_READING, PATIENCE) as db:
            yield PostgresRows(db, self._texts)

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
        except _CONFLICTS as error:
            raise Conflict from error
        except genuine(TimeoutError) as error:
            said = f"{self._place} is busy. Nothing is sent. Run again later."
            raise StoreUnusable(said, away=True) from error
        except psycopg.errors.UndefinedTable as error:
            raise StoreUnusable(f"{self._place} {REPLACED}", lacks="past") from error
        except psycopg.Error as error:
            raise StoreUnusable(
                f"{self._place}: {message_of(error)}. Nothing is sent. Make the database reachable "
                "and writable.",
                away=is_away(error),
            ) from error


class PostgresRows:
    """A transaction of PostgreSQL.

    Args:
        db: The connection.
        texts: The texts of statements.
    """

    def __init__(self, db: Connection, texts: Texts) -> None:
        self.is_ending: bool = False
        self._db = db
        self._texts = texts

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        done = self._db.execute(self._texts.of(statement).encode(), values)
        return done.fetchall() if has_rows(statement) else []

    def change(self, statement: str, **values: Any) -> int:
        """Execute a statement, and return how many rows it has changed."""
        return self._db.execute(self._texts.of(statement).encode(), values).rowcount

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement with one set of values after the other."""
        text = self._texts.of(statement).encode()
        with self._db.cursor() as cursor:
            left = iter(values)
            while some := list(islice(left, _AT_ONCE)):  # there may be millions
                if len(some) == 1:
                    cursor.execute(text, some[0])  # which costs less
                else:
                    cursor.executemany(text, some)

    def hold(self, tags: Sequence[str], *, shared: Sequence[str] = ()) -> None:
        """Wait until nobody else holds *tags*, and hold them until the transaction ends.

        The server serves those that wait in turn, unlike those that wait for rows.
        """
        ways = {**dict.fromkeys(shared, "_shared"), **dict.fromkeys(tags, "")}
        if ways:
            in_order = sorted(ways)
            locks = (_HOLD.format(how=ways[tag], n=n) for n, tag in enumerate(in_order))
            values = {f"tag{n}": tag for n, tag in enumerate(in_order)}
            self._db.execute(f"SELECT {', '.join(locks)}".encode(), values)


class _Place:
    """Where one connection is kept, which one thread uses at a time.

    Args:
        url: The database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._turns = Turns()
        self._db: Connection | None = None

    @contextmanager
    def begun(self, begin: bytes, patience: float) -> Generator[Connection]:
        """Begin a transaction, which ends with the context: undone, unless it was committed.

        Args:
            begin: What begins it.
            patience: Seconds that it may take.

        Raises:
            TimeoutError: Other threads have used the connection all the time.
        """
        with self._turns.within(patience) as left:
            ends = time.monotonic() + max(_LEAST, left)
            db = self._begin(begin, ends)
            db.ends = ends
            try:
                yield db
            finally:
                _undo(db)

    def _begin(self, begin: bytes, ends: float) -> Connection:
        silent: Silent | None = None
        if self._db is not None and not self._db.closed:
            # A kept connection may have died unnoticed. A hang must leave time for a new one.
            self._db.ends = min(ends, time.monotonic() + _ANSWERS)
            try:
                self._db.execute(begin, prepare=False)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self._db.close()  # it has ended meanwhile, and nothing was done in it
                silent = error if isinstance(error, Silent) else None
            else:
                return self._db
        # Here only: a connection is never replaced within a transaction, which would repeat half of
        # it.
        self._db = connect(self._url, ends, after=silent)
        self._db.execute(begin, prepare=False)
        return self._db

    def close(self) -> None:
        """Close the connection, once no thread is using it."""
        with self._turns.within(PATIENCE):
            if self._db is not None:
                self._db.close()


def _undo(db: Connection) -> None:
    """End a transaction without a change, if it goes on. If that fails, close the connection."""
    if db.closed or db.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
        return
    db.ends = time.monotonic() + _ENDS
    try:
        db.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        db.close()


_DATABASES: Final[WeakSet[PostgresDatabase]] = WeakSet()


def _begin_in_child() -> None:
    """Leave the parent's connections to the parent."""
    for database in tuple(_DATABASES):
        database.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
