"""A model of a database server that many machines share, for the rules of leases and of doubt.

A store in PostgreSQL differs from one in a file in who can tell what. No machine sees another one's
locks: an owner lives on its lease, and a request counts as under way until a time has passed, both
by the server's clock, which no machine's clock needs to agree with. And whoever loses the
connection does not know how a transaction has ended.

The model has what these rules depend on. Its clock is its own. It refuses, answers late, hangs and
loses connections; an answer to COMMIT may be lost on either side of it. Its leader fails now and
then: whatever was not committed is gone, and the next one takes over after a while. It confirms
nothing that the next leader does not know, as PostgreSQL with a synchronous standby. A client that
stands still within a transaction is thrown out after some seconds.

What it does not have is rows that several transactions change at once: they follow each other, as
SQLite does below it. How lists of steps meet in PostgreSQL's own locks is tried on a real server,
by the races and the conformance suite of stores.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs

from muybridge.purchases import StoreUnusable
from muybridge.purchases.port import Conflict, Mark
from muybridge.purchases.words import Texts, has_rows

from .machine import WATCHED
from .world import Process, World

_connect: Final = sqlite3.connect
_WORDS: Final = {
    "now": "server_now()",
    "real": "REAL",
    "bytes": "BLOB",
    "for_update": "",
    "for_share": "",
    "skip_locked": "",
}
_PATIENCE: Final = 24.0
"""Seconds that a client waits for its turn."""
_ANSWERS: Final = 8.0
"""Seconds that a client waits for an answer."""
_IDLE: Final = 10.0
"""Seconds without a statement after which the server ends a transaction."""
_PLACE: Final = "postgresql://server.test/store"


@attrs.define(eq=False)
class Server:
    """The server.

    Args:
        world: The world.
        path: The file that its data is in. No machine of the world can see it.
        faults: How often something goes wrong, from 0 to 1.
    """

    world: World
    path: Path
    faults: Callable[[], float]
    _epoch: float = attrs.field(init=False)
    holder: ModelRows | None = None
    """The transaction that may write."""
    _back: float = 0.0
    """When the next leader has taken over."""

    def __attrs_post_init__(self) -> None:
        self._epoch = self.world.wall + self.world.random.choice((-3600.0, 0.0, 3600.0))

    @property
    def now(self) -> float:
        """Unix seconds by its clock."""
        return self._epoch + self.world.now

    def connect(self) -> sqlite3.Connection:
        """Return a connection to its data."""
        db = _connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        db.create_function("server_now", 0, lambda: self.now)
        # Readers see what was committed when they began, and keep nobody from writing.
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        return db

    def answer(self) -> None:
        """Let the caller wait for an answer, if it is one of the world's actors.

        Raises:
            StoreUnusable: None comes.
        """
        world = self.world
        if world.current is None:
            return
        world.breathe()
        if world.now < self._back:
            self._wait(min(self._back, world.now + _ANSWERS))
            if world.now < self._back:
                raise _unusable("the server is away")
        if not world.chance(self.faults()):
            return
        match world.random.choice(("refuses", "slow", "slow", "hangs", "leader")):
            case "refuses":
                world.count("the server refuses")
                raise _unusable("the connection was refused")
            case "slow":
                world.count("the server is slow")
                self._wait(world.now + world.random.choice((0.5, 3.0, 7.0)))
            case "hangs":
                world.count("the server hangs")
                self._wait(world.now + _ANSWERS)
                raise _unusable("no answer")
            case _:
                self.lose_leader()
                raise _unusable("the server is shutting down")

    def lose_leader(self) -> None:
        """Forget what was not committed, and be away until the next leader has taken over."""
        world = self.world
        world.count("the leader is lost")
        world.tell("the server's leader is lost")
        self._back = world.now + world.random.choice((1.0, 15.0, 60.0))
        if self.holder is not None:
            self.holder.break_off()

    def recover(self) -> None:
        """Be back now, if it is away."""
        self._back = min(self._back, self.world.now)

    def wait_turn(self, patience: float) -> None:
        """Wait until nobody writes.

        Raises:
            StoreUnusable: That takes too long.
        """
        world = self.world
        end = world.now + patience
        while (holder := self.holder) is not None:
            if world.current is None or world.now - holder.spoke >= _IDLE:
                holder.break_off()
            elif world.now >= end:
                raise _unusable("others write all the time")
            else:
                world.count("a transaction waits for another")
                until = min(end, holder.spoke + _IDLE)
                self._wait(until, lambda: self.holder is None)

    def _wait(self, until: float, ready: Callable[[], bool] | None = None) -> None:
        self.world.stall(until, ready)


class ModelDatabase:
    """A store's database on the server, as one process uses it.

    Args:
        server: The server.
        process: The process, or None for whoever judges the world.
    """

    leases = True
    parts = 2
    place = _PLACE

    def __init__(self, server: Server, process: Process | None = None) -> None:
        self._server = server
        self._process = process
        self._owner = secrets.token_hex(8)
        self._texts = Texts(_WORDS)
        self._open: list[ModelRows] = []
        if process is not None:
            process.on_death.append(self._die)

    def another(self) -> ModelDatabase:
        """Return the same database for another owner."""
        return ModelDatabase(self._server, self._process)

    def exists(self) -> bool:
        """Whether there are tables."""
        with self.reading() as rows:
            return bool(rows.run("SELECT 1 FROM sqlite_master WHERE name = 'muybridge_store'"))

    def create(self, statements: Sequence[str], salt: str) -> None:
        """Create the tables, all or none of them, unless they exist."""
        if self.exists():
            return
        with self.transaction() as rows:
            if not rows.run("SELECT 1 FROM sqlite_master WHERE name = 'muybridge_store'"):
                for statement in statements[:-1]:
                    rows.run(statement)
                rows.run(statements[-1], salt=salt)

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[ModelRows]:
        """Begin a transaction, and commit it at the end of the context."""
        server = self._server
        server.answer()
        server.wait_turn(max(2.0, _PATIENCE - waited))
        with self._begun("BEGIN IMMEDIATE", writes=True) as rows:
            yield rows
            rows.commit()

    @contextmanager
    def reading(self) -> Generator[ModelRows]:
        """Begin to read what is committed now."""
        self._server.answer()
        with self._begun("BEGIN", writes=False) as rows:
            yield rows

    @contextmanager
    def _begun(self, begin: str, *, writes: bool) -> Generator[ModelRows]:
        rows = ModelRows(self._server, self._texts, begin, writes=writes)
        self._open.append(rows)
        try:
            yield rows
        finally:
            rows.break_off()
            with suppress(ValueError):
                self._open.remove(rows)

    def _die(self) -> None:
        for rows in self._open:
            rows.break_off()

    def owner(self) -> str:
        """Return the name of the process as an owner."""
        return self._owner

    def lives(self, owner: str) -> bool:
        """Return False: only the clock tells."""
        del owner
        return False

    def seen(self) -> Mark | None:
        """Return None: the database is not this machine's."""

    def note_seen(self, mark: Mark) -> None:
        """Do nothing: the database is not this machine's."""

    def close(self) -> None:
        """Have no connections left."""


class ModelRows:
    """A transaction on the server.

    Args:
        server: The server.
        texts: The texts of statements.
        begin: What begins it.
        writes: Whether it may write.
    """

    def __init__(self, server: Server, texts: Texts, begin: str, *, writes: bool) -> None:
        self.is_ending: bool = False
        self.spoke: float = server.world.now
        """When it was last heard of."""
        self._server = server
        self._texts = texts
        self._is_open = True
        self._steps: list[str] = []
        self._db = server.connect()
        self._db.create_function("note_step", 3, self._note)
        self._db.execute(begin)
        if writes:
            server.holder = self

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        done = self._execute(statement, values)
        if statement.startswith("UPDATE muybridge_owners SET buried_at") and done.rowcount:
            self._steps.append("a worker is declared dead")
        return done.fetchall() if has_rows(statement) else []

    def change(self, statement: str, **values: Any) -> int:
        """Execute a statement, and return how many rows it has changed."""
        return self._execute(statement, values).rowcount

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement with one set of values after the other."""
        for each in values:
            self._execute(statement, each)

    def hold(self, tags: Sequence[str], *, shared: Sequence[str] = ()) -> None:
        """Do nothing: nobody else writes meanwhile."""

    def commit(self) -> None:
        """Commit, unless the server or the connection fails: then on either side of it."""
        server, world = self._server, self._server.world
        self.is_ending = True
        self._ask()
        is_lost = world.current is not None and world.chance(server.faults())
        if is_lost and world.chance(0.5):
            world.count("a COMMIT does not arrive")
            self.break_off()
            raise _unusable("the connection was lost")
        self._db.execute("COMMIT")
        self.break_off()
        for step in self._steps:
            world.count(step)
        if is_lost:
            world.count("the answer to a COMMIT is lost")
            world.tell("the answer to a COMMIT is lost")
            raise _unusable("the connection was lost")

    def break_off(self) -> None:
        """End it, undone unless it is committed."""
        if self._is_open:
            self._is_open = False
            self._db.close()
            if self._server.holder is self:
                self._server.holder = None

    def _ask(self) -> None:
        try:
            self._server.answer()
        except BaseException:
            self.break_off()
            raise
        if not self._is_open:
            raise _unusable("the server has ended the transaction")
        self.spoke = self._server.world.now

    def _execute(self, statement: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        self._ask()
        for table in WATCHED:
            if statement.lstrip().startswith(f"UPDATE {table}"):
                self._watch(table)
        try:
            return self._db.execute(self._texts.of(statement), values)
        except sqlite3.IntegrityError as error:
            self.break_off()
            raise Conflict from error

    def _watch(self, table: str) -> None:
        """Note the steps in a table, once. The trigger is the connection's own."""
        named, column = WATCHED[table]
        self._db.execute(
            f"CREATE TEMP TRIGGER IF NOT EXISTS watch_{table} AFTER UPDATE OF {column} ON "
            f"main.{table} WHEN old.{column} <> new.{column} "
            f"BEGIN SELECT note_step('{named}', old.{column}, new.{column}); END"
        )

    def _note(self, named: str, before: str, after: str) -> None:
        self._steps.append(f"{named}: {before} -> {after}")


def _unusable(said: str) -> StoreUnusable:
    told = f"{_PLACE}: {said}. Nothing is sent. Make the database reachable."
    return StoreUnusable(told, away=True)
