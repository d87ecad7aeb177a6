"""What every check needs: a database to check, and processes that use it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

import pytest

from muybridge.purchases import Database, Rows, Store
from muybridge.purchases.schema import COLUMNS
from muybridge.testing.conformance.lessons import Lesson, require_smoke
from muybridge.testing.store_conformance.lessons import AT_ONCE, SMOKE, StoreCapabilities
from muybridge_protocol.purchases import Amounts, Measure, Order, Outcome, State
from muybridge_protocol.records.tasks import Task

PROCESSES: Final = 4
THREADS: Final = 4
ONE: Final[Amounts] = {it: Decimal(1 if it is Measure.CREATES else 0) for it in Measure}
THROTTLED: Final = Outcome(state=State.RELEASED, reason="429")
_COPIED: Final = {
    "muybridge_purchases": COLUMNS,
    "muybridge_spent": ("tag", "day", "part", "sums"),
}


def order(name: str | None = None, *tags: str) -> Order:
    """Return an order of one create, whose name, if it has one, is its digest as well."""
    return Order(account="a", amounts=ONE, name=name, digest=name, tags=tags)


def accepted(task: str) -> Outcome:
    """Return the outcome of a POST that has created *task*."""
    return Outcome(state=State.ACCEPTED, task=Task(id=task))


class StoreChecks:
    """What every group of checks inherits."""

    capabilities: ClassVar[StoreCapabilities] = StoreCapabilities()
    """What the database declares. Override it to declare what it does not do or show."""

    def make_database(self) -> Database:
        """Return a new database, in which nothing was created yet."""
        raise NotImplementedError(f"{type(self).__name__} must say how its database is made")

    def reopen(self, database: Database, now: str | None = None) -> Database:
        """Return the same database, opened as by another process.

        Args:
            database: The database.
            now: What its word `now` is to stand for, or None for the usual one.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how its database is opened")

    def files(self, database: Database) -> Sequence[Path]:
        """Return the files that have what *database* has committed, if processes write them.

        Override it to let the kit show that they are synced.
        """
        del database
        return ()

    def backup(self, database: Database) -> Callable[[], object]:
        """Make a copy of *database*, and return what puts that copy in its place.

        Override it to copy files. This one copies rows, as a dump does.
        """

        def read(rows: Rows, table: str) -> list[tuple[Any, ...]]:
            return rows.run(f"SELECT {', '.join(_COPIED[table])} FROM {table}")  # noqa: S608  our own names

        def restore() -> None:
            with self.reopen(database).transaction() as rows:
                for table, columns in _COPIED.items():
                    rows.run(f"DELETE FROM {table}")  # noqa: S608  the same
                    rows.run_each(
                        f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608  the same
                        f"VALUES (:{', :'.join(columns)})",
                        [dict(zip(columns, row, strict=True)) for row in copied[table]],
                    )

        with self.reopen(database).reading() as rows:
            copied = {table: read(rows, table) for table in _COPIED}
        return restore

    def setup_method(self) -> None:
        """Prepare to close every store."""
        self._open: ExitStack = ExitStack()

    def teardown_method(self) -> None:
        """Close every store."""
        self._open.close()

    @pytest.fixture(autouse=True)
    def _smoking(self, request: pytest.FixtureRequest) -> None:
        """Check nothing else if the smoke check fails."""
        if getattr(request.function, "__name__", "") != "test_smoke":
            require_smoke(self, request)

    def test_smoke(self) -> None:
        """One purchase is armed, concluded, and found by another process; else nothing matters."""
        self.smoke()

    def smoke(self) -> None:
        """Buy once, and let every exception propagate."""
        database, store = self._made()
        SMOKE.require(not database.exists(), "no tables before the first purchase", "tables")
        bought = store.arm(order("once smoke"))
        SMOKE.require(database.exists(), "tables", "none after the first purchase")
        store.conclude(bought.key, accepted("T"))
        found = self._reopened(database).named("a", "once smoke")
        SMOKE.require(found and found.task == "T", "the name leads to task T", found)

    # Stores

    def _made(self) -> tuple[Database, Store]:
        """Return a new database, and a store in it."""
        database = self.make_database()
        return database, self._open.enter_context(Store(database))

    def _reopened(self, database: Database, now: float | None = None) -> Store:
        """Return a store in the same database, as in another process, at *now*."""
        clock = None if now is None else f"{now:.3f}"
        return self._open.enter_context(Store(self.reopen(database, clock)))

    # Processes

    @contextmanager
    def _living(self, act: Callable[[], object]) -> Generator[int]:
        """Fork a process that calls *act*, and then lives until the context ends."""
        done_reading, done_writing = os.pipe()
        child = _fork()
        if child == 0:
            try:
                act()
                os.write(done_writing, b".")
                signal.pause()
            except BaseException:  # noqa: BLE001  pytest shows it where the check fails
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(1)
        os.close(done_writing)
        try:
            if not os.read(done_reading, 1):
                raise AssertionError("a forked process has failed: see what it has printed")
            yield child
        finally:
            os.close(done_reading)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _killed_after(self, act: Callable[[], object]) -> None:
        """Let a process call *act*, and kill it."""
        with self._living(act):
            pass

    def _race(
        self,
        database: Database,
        act: Callable[[Store, Random], Any],
        *,
        clocks: Sequence[float | None] = (None,) * PROCESSES,
        lesson: Lesson = AT_ONCE,
        is_created: bool = True,
    ) -> list[Any]:
        """Let threads of several processes act at once, and return what each returned.

        Args:
            database: What they use.
            act: What each thread does, with its process's store.
            clocks: The time in each process, or None for the usual clock.
            lesson: What it teaches if a thread raises.
            is_created: Whether they find the tables.
        """
        if is_created:
            self._reopened(database).account(str)
        children = [
            _Child(self._racing(database, act, number, now, warm=is_created))
            for number, now in enumerate(clocks)
        ]
        for child in children:
            child.wait()
        for child in children:
            child.go()
        outcomes = [child.result() for child in children]
        for one in outcomes:
            if isinstance(one, str):
                lesson.refuse("no step fails", one)
        return [one for results in outcomes for one in results]

    def _racing(
        self,
        database: Database,
        act: Callable[[Store, Random], Any],
        number: int,
        now: float | None,
        *,
        warm: bool,
    ) -> Callable[[Callable[[], None]], list[Any]]:
        """Return what a process does: it prepares, says so and waits, and then races."""

        def racing(wait: Callable[[], None]) -> list[Any]:
            with (
                Store(self.reopen(database, None if now is None else f"{now:.3f}")) as store,
                ThreadPoolExecutor(THREADS) as pool,
            ):
                if warm:  # connections
                    store.spent()
                    store.sweep()
                wait()
                acting = [
                    pool.submit(act, store, Random(f"{number} {thread}"))  # noqa: S311  order, not secrets
                    for thread in range(THREADS)
                ]
                return [one.result() for one in acting]

        return racing


class _Child:
    """A forked process that prepares, waits for its siblings, and then returns something.

    Args:
        act: What it does. It calls its argument to wait.
    """

    def __init__(self, act: Callable[[Callable[[], None]], Any]) -> None:
        go_reading, self._go = os.pipe()
        self._reading, writing = os.pipe()
        self._process = _fork()
        if self._process == 0:

            def wait() -> None:
                os.write(writing, b".")
                os.read(go_reading, 1)

            result: Any = "it was killed"
            try:
                result = act(wait)
            except BaseException:  # noqa: BLE001  the parent reports it
                result = traceback.format_exc()
            finally:
                with os.fdopen(writing, "wb") as file:
                    pickle.dump(result, file)
                os._exit(0)
        os.close(writing)
        os.close(go_reading)

    def wait(self) -> None:
        """Wait until it has prepared."""
        self._begun = os.read(self._reading, 1).strip(b".")  # if it fails at once: what it tells

    def go(self) -> None:
        """Let it go on, and do not wait for it."""
        os.write(self._go, b".")
        os.close(self._go)

    def result(self) -> Any:
        """Return what it has returned, or a text that says what it has raised."""
        with os.fdopen(self._reading, "rb") as file:
            result = pickle.loads(self._begun + file.read())  # noqa: S301  from our own process
        os.waitpid(self._process, 0)
        return result


def _fork() -> int:
    with warnings.catch_warnings():
        # Of threads that a fork does not have: ours use nothing that others may have locked.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
