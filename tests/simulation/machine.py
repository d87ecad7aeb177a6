"""The machine that a world's processes run on: its clocks, threads, locks, files and databases.

Within `running`, the parts of Python's standard library that wait, or that tell the time, or that
draw random numbers, are those of the world. The product is not changed, and no private name of it
is used.

SQLite's files are real. A world never lets SQLite wait: where it would, the actor stalls until
somebody has ended a transaction. Before each statement another actor may go on, and so between
BEGIN and COMMIT, too. The disk may be full, the file locked or read-only, and a COMMIT may report
an error, although everything is on the disk.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import random
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from functools import partial
from typing import Any, Final
from unittest.mock import patch
from weakref import WeakSet

import attrs

from .disk import Disk
from .threads import Threads
from .world import World

WATCHED: Final = {
    "muybridge_item": ("item", "stage"),
    "muybridge_purchases": ("store", "state"),
}
"""Tables, what to call them, and the column that tells how far something is."""

_connect: Final = sqlite3.connect
_flock: Final = fcntl.flock


@attrs.define(eq=False)
class Machine:
    """What the world puts in place of the standard library's parts.

    Args:
        world: The world.
        disk: Where its files are.
        faults: How often a statement fails, or the disk has no room, from 0 to 1.
    """

    world: World
    disk: Disk
    faults: float = 0.0
    threads: Threads = attrs.field(init=False)
    errors: io.StringIO = attrs.field(factory=io.StringIO)
    """What programs print for people."""
    transactions: int = 0
    """How many have ended: those that wait for a lock try again."""
    strike: Callable[[str], None] = lambda _: None
    """Called before each statement, with its first word."""

    def __attrs_post_init__(self) -> None:
        self.disk.faults = lambda: self.faults
        self.threads = Threads(self.world)

    @contextmanager
    def running(self) -> Generator[None]:
        """Run the product on this machine until the context ends."""
        chances = random.Random(self.world.random.getrandbits(64))  # noqa: S311  of a world
        before = random.getstate()
        gc.disable()
        with ExitStack() as stack:
            stack.enter_context(redirect_stderr(self.errors))
            for owner, name, part in (
                (time, "monotonic", lambda: self.world.now),
                (time, "time", lambda: self.world.wall),
                (time, "sleep", self._sleep),
                (secrets, "token_bytes", lambda size=32: chances.randbytes(size)),
                (secrets, "token_hex", lambda size=32: chances.randbytes(size).hex()),
                (secrets, "randbelow", chances.randrange),
                (secrets, "randbits", chances.getrandbits),
                (sqlite3, "connect", self._connect),
                (fcntl, "flock", self._flock),
                (os, "urandom", chances.randbytes),
                (time, "clock_gettime", self._boot_time),
                *self.threads.parts,
                *self.disk.parts,
            ):
                stack.enter_context(patch.object(owner, name, part))
            random.seed(chances.getrandbits(64))
            try:
                yield
            finally:
                random.setstate(before)
                gc.enable()

    def jump(self) -> None:
        """Set the wall clock, or let the machine sleep for a while."""
        world = self.world
        if world.chance(0.3):
            world.count("the machine sleeps")
            world.tell("the machine sleeps")
            world.now += world.random.choice((600.0, 7200.0))
            return
        seconds = world.random.choice((-3 * 86_400.0, -3600.0, -1.0, 1.0, 3600.0, 3 * 86_400.0))
        world.count("the wall clock is set")
        world.tell(f"the wall clock is set by {seconds:+g} s")
        world.skew += seconds

    def be_busy(self) -> None:
        """Let a step take long."""
        self.world.count("the machine is busy")
        self.world.now += self.world.random.choice((0.1, 1.0, 5.0, 40.0))

    def has_moved(self, seen: int) -> bool:
        """Whether a transaction has ended since so many had been *seen*."""
        return self.transactions > seen

    def _julian_day(self, _: str) -> float:
        return 2440587.5 + self.world.wall / 86_400

    def _boot_time(self, _: int) -> float:
        return self.world.now

    def _sleep(self, seconds: float) -> None:
        self.world.stall(self.world.now + seconds)

    def _flock(self, file: Any, operation: int) -> None:
        self.world.breathe()
        _flock(file, operation)
        actor = self.world.current
        if actor is not None and operation & (fcntl.LOCK_EX | fcntl.LOCK_SH):
            actor.process.on_death.append(lambda: file.closed or _flock(file, fcntl.LOCK_UN))

    def _connect(self, path: Any, timeout: float = 5.0, **settings: Any) -> sqlite3.Connection:
        self.world.breathe()
        self.disk.leave_to_sqlite(path)
        db = _connect(path, timeout=0, factory=Connection, **settings)
        assert isinstance(db, Connection)
        db.machine, db.patience, db.cursors = self, timeout, WeakSet()
        db.create_function("julianday", 1, self._julian_day)
        actor = self.world.current
        if actor is not None:
            actor.process.on_death.append(db.die)
        return db


class Connection(sqlite3.Connection):
    """A connection whose statements are steps of the world."""

    machine: Machine
    patience: float
    cursors: WeakSet[sqlite3.Cursor]
    """Those that may hold a lock, as long as rows are left."""
    _watches: bool = False
    _seen: Counter[str]
    """The steps of the transaction, from one state to another."""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement, once the lock that it needs is free."""
        machine, world = self.machine, self.machine.world
        world.breathe()
        word = sql.split(maxsplit=1)[0].upper()
        machine.strike(word)
        if word == "BEGIN":
            self._watch()
        end = world.now + self.patience
        fault = self._fault(word)
        while True:
            try:
                cursor = super().execute(sql, *arguments)
                break
            except sqlite3.OperationalError as error:
                seen = machine.transactions
                if "locked" not in str(error) or world.now >= end or world.current is None:
                    raise
                world.count("a transaction waits for another")
                world.stall(min(end, world.now + 0.1), partial(machine.has_moved, seen))
        self.cursors.add(cursor)
        if word in ("COMMIT", "ROLLBACK"):
            machine.transactions += 1
            if word == "COMMIT":
                world.counts.update(self._seen)
        try:
            world.breathe()
        except BaseException:
            cursor.close()  # nobody has it, and it may hold a lock
            raise
        if fault is not None:
            cursor.close()
            raise fault
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Any]) -> sqlite3.Cursor:
        """Execute a statement with one set of values after the other."""
        cursor = self.cursor()
        for values in parameters:
            cursor = self.execute(sql, values)
        return cursor

    def close(self) -> None:
        """Close it."""
        super().close()
        self.machine.transactions += 1

    def die(self) -> None:
        """Release its locks, as the system does when its process dies."""
        with suppress(sqlite3.ProgrammingError):  # it is closed already
            for cursor in self.cursors:
                cursor.close()
        self.close()

    def _watch(self) -> None:
        """Note the steps of the transaction that begins.

        The trigger is the connection's own, and not in the file.
        """
        self._seen = Counter()
        if self._watches:
            return
        self.create_function("note_step", 3, self._note)
        for table, (named, column) in WATCHED.items():
            # There is no such table in other files, and others may have locked this one.
            with suppress(sqlite3.OperationalError):
                super().execute(
                    f"CREATE TEMP TRIGGER watch_{table} AFTER UPDATE OF {column} ON main.{table} "
                    f"WHEN old.{column} <> new.{column} "
                    f"BEGIN SELECT note_step('{named}', old.{column}, new.{column}); END"
                )
                self._watches = True

    def _note(self, named: str, before: str, after: str) -> None:
        self._seen[f"{named}: {before} -> {after}"] += 1

    def _fault(self, word: str) -> sqlite3.OperationalError | None:
        """Raise an error, or return one that is to be raised after the statement."""
        machine, world = self.machine, self.machine.world
        if word not in _WRITING or world.current is None or not world.chance(machine.faults):
            return None
        said = world.random.choice(
            ("database or disk is full", "disk I/O error", "database is locked")
        )
        late = word == "COMMIT" and world.chance(0.5)
        what = "a commit reports an error, and is on the disk" if late else f"{word} fails"
        world.count(what)
        world.tell(f"{what}: {said}")
        error = sqlite3.OperationalError(said)
        if late:
            return error
        raise error


_WRITING: Final = frozenset({"BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT"})
