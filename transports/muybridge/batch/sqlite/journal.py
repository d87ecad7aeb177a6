"""`SqliteJournal`: the journal of a batch on one machine, in a file of `muybridge.files.sqlite`.

Each step is one conditional update: a runner that is not the first to take it changes nothing. An
item belongs to a runner, which holds an operating system lock as long as it lives
(`muybridge.batch.runner_files`); a process id could have been reused. So a runner is dead as soon
as its lock can be had: nobody has to wait for a lease, and a dead runner sends nothing more.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from muybridge.batch.journal_entries import (
    JUDGED,
    Entry,
    NewItem,
    State,
    check_step,
    late_step,
    names_task,
    storable_facts,
    storable_texts,
    stray_values,
    task_id_in,
)
from muybridge.batch.journal_errors import (
    DAMAGED,
    OUTDATED,
    REPLACED,
    ClaimLost,
    JournalMissing,
    JournalOutdated,
    JournalUnusable,
    TaskTaken,
    Unstorable,
    sentence,
)
from muybridge.batch.limits.rate import Permits
from muybridge.batch.port import Stray
from muybridge.batch.results.items import Outline
from muybridge.batch.sqlite import rates
from muybridge.batch.sqlite.schema import (
    APPLICATION,
    LATER_COLUMNS,
    OWN_TASKS,
    SCHEMA,
    STRAYS,
    VERSION,
)
from muybridge.batch.storable_values import storable
from muybridge.files import sqlite
from muybridge.files.durable import make_folders, sync_names
from muybridge.signals import genuine
from muybridge_protocol.records.convert import structure, wire_names
from muybridge_protocol.records.json import InvalidJson

FOLDER: Final = "journal"
"""The folder of the journal and of its runners' files, within the batch's folder."""
NAME: Final = "journal.sqlite3"
PATIENCE: Final = 10.0
"""Seconds to wait for another process that is writing."""

_PAGE: Final = 500
"""Items read at once."""


_COLUMNS: Final = tuple(wire_names(Entry))
_GIVEN: Final = tuple(wire_names(NewItem))
_COLUMNS_OF_ITEMS: Final = "PRAGMA table_info(items)"
_OF_A_STRAY: Final = tuple(wire_names(Stray))
_HAS_WRITTEN: Final = "SELECT 1 FROM runners WHERE name = ? AND writes >= ?"
_FORGET: Final = (
    "DELETE FROM runners WHERE name = ? "
    "AND NOT EXISTS (SELECT 1 FROM items WHERE items.owner = runners.name)"
)
_WRITE: Final = "UPDATE runners SET writes = writes + 1 WHERE name = ? AND writes >= ?"
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM items"  # noqa: S608  our own names
_FACTS_SHOWN: Final = " || ".join(
    f"quote({fact})"
    for fact in ("reason", "token", "candidate", "length(reply)", "began", "ended", "result")
)
_NO_FACTS: Final = "''"
_AS_JUDGED: Final = "".join(f" AND {name} IS ?" for name in JUDGED)


class SqliteJournal:
    """The journal of one batch. Only one worker may use it at a time.

    `SqliteJournal.create` begins one; it is a context manager.

    Args:
        folder: The batch's folder.
        patience: Seconds to wait for another process that is writing.
        check: Whether to check that the file is intact and writable.
        writes: Whether it will be written. If not, nothing is changed on the disk.

    Raises:
        JournalMissing: There is none.
        JournalUnusable: It is corrupt, read-only, full, in use or of a newer version.
    """

    def __init__(
        self,
        folder: Path,
        *,
        patience: float = PATIENCE,
        check: bool = True,
        writes: bool = True,
    ) -> None:
        self.folder = folder
        self.path: Path = folder / FOLDER / NAME
        self._has_failed = False
        self._runner: str | None = None
        self._writes = 0
        self._note: Callable[[int], object] | None = None
        self.lease: float | None = None
        """Runners hold a lock as long as they live."""
        self.send_within: float = math.inf
        """No other runner can take over before the lock is released."""
        self.is_new: bool = False
        """Whether this process has just begun it."""
        if not self.path.exists():
            raise JournalMissing(f"There is no batch in {folder}: its journal is {self.path}.")
        if writes:
            sqlite.remove_unfinished(self.path)
        self._file = self.path.stat()
        with self._telling():
            self._db = sqlite.connect(self.path, patience)
            try:
                if check:
                    self._check()
                if not writes:
                    self._show_later_columns()
                elif check:
                    self._check_writing()
            except BaseException:
                self._db.close()
                raise

    @classmethod
    def create(
        cls, folder: Path, service: str, items: Iterable[NewItem], *, patience: float = PATIENCE
    ) -> Self:
        """Begin the journal of a new batch, unless another process has just done so, and open it.

        It appears whole or not at all: an empty journal would make the batch resend everything.

        Args:
            folder: The batch's folder, created if missing.
            service: Where its tasks are.
            items: The items of the batch.
            patience: Seconds to wait for another process that is writing.

        Raises:
            JournalUnusable: It cannot be written.
            Unstorable: An item cannot be recorded.
        """
        place = folder / FOLDER
        path = place / NAME

        def fill(db: sqlite3.Connection) -> None:
            db.executescript(f"PRAGMA application_id = {APPLICATION};{SCHEMA}{OWN_TASKS}")
            with sqlite.transaction(db):
                db.execute("INSERT INTO batch VALUES (?)", (service,))
                _insert(db, 1, items)
                db.execute(f"PRAGMA user_version = {VERSION}")

        is_new = False
        try:
            make_folders(place, mode=0o700)
            sync_names(place)
            is_new = sqlite.create(path, patience, fill)
        except genuine((OSError, sqlite3.Error)) as error:
            if not path.exists():
                raise JournalUnusable(sentence(path, error)) from error
        journal = cls(folder, patience=patience)
        journal.is_new = is_new
        return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        return str(self.folder)

    @property
    def service(self) -> str:
        """Where the batch's tasks are."""
        with self._telling():
            told: str = self._db.execute("SELECT service FROM batch").fetchone()[0]
        return told

    @property
    def has_begun(self) -> bool:
        """Whether a request may have been sent for an item, or a runner is at work on one."""
        begun = f"{_SELECT} WHERE state != 'queued' OR owner NOT NULL OR token NOT NULL LIMIT 1"
        return bool(self._select(begun)) or bool(self.strays())

    def change_service(self, service: str) -> None:
        """Record that the batch's tasks will be at *service*. The batch must not have begun."""
        with self._writing() as db:
            db.execute("UPDATE batch SET service = ?", (service,))

    def add(self, items: Iterable[NewItem], *, after: int) -> None:
        """Add items after the last one, which is *after*.

        Raises:
            JournalUnusable: Another process has just added items.
            Unstorable: An item cannot be recorded. None was added.
        """
        with self._writing() as db:
            last: int = db.execute("SELECT coalesce(max(number), 0) FROM items").fetchone()[0]
            if last != after:
                raise JournalUnusable(
                    f"{self.path}: another process has just added items. Run the batch again."
                )
            _insert(db, last + 1, items)

    def entries(self, state: State | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Yield every item, or those in a state, by number, reading a page at a time.

        Args:
            state: The state, or None for all items.
            after: The number above which they begin.
        """
        which, wanted = ("", ()) if state is None else ("AND state = ? ", (state,))
        yield from self._pages(which, after, *wanted)

    def reasons(self) -> Iterator[Entry]:
        """Yield every item that has a reason and is not downloaded, reading a page at a time."""
        yield from self._pages("AND reason NOT NULL AND state != ? ", 0, State.DOWNLOADED)

    def outlines(self, state: State | None = None) -> Iterator[Outline]:
        """Yield the outline of every item, or of those in a state that no runner works on.

        The index of the states has them in order, unlike those that runners work on.
        """
        which = "" if state is None else f" AND state = '{state}' AND owner IS NULL"
        columns = f"number, state, path, size, {_FACTS_SHOWN if state is None else _NO_FACTS}"
        statement = (
            f"SELECT {columns} FROM items WHERE number > ?{which} ORDER BY number LIMIT {_PAGE}"  # noqa: S608  our own names
        )
        last = 0
        while page := self._outlines(statement, last):
            yield from page
            last = page[-1].number

    def called(self, item: str) -> list[Entry]:
        """Return the items with this name, or else the one with this number."""
        wanted = storable(item, str)
        return self._select(
            f"{_SELECT} WHERE name = ? AND name != '' ORDER BY number", wanted
        ) or self._select(f"{_SELECT} WHERE CAST(number AS TEXT) = ?", wanted)

    def label_of_task(self, task_id: str) -> str | None:
        """Return what messages call the item whose task has this id, or None."""
        written = json.dumps(storable(task_id, str))[1:-1]
        found = self._select(
            f"{_SELECT} WHERE instr(token, ?) OR instr(token, ?) ORDER BY number", task_id, written
        )
        return next((entry.label for entry in found if entry.task_id == task_id), None)

    def counts(self) -> dict[State, int]:
        """Return how many items are in each state, without empty states."""
        with self._telling():
            rows = self._db.execute("SELECT state, count(*) FROM items GROUP BY state").fetchall()
        found = {State(state): count for state, count in rows}
        return {state: found[state] for state in State if state in found}

    def entry(self, number: int) -> Entry:
        """Return the item *number*.

        Raises:
            LookupError: There is none.
        """
        found = self._select(f"{_SELECT} WHERE number = ?", storable(number, int))
        if not found:
            raise LookupError(f"there is no item {number}")
        return found[0]

    def register(self, worker: str, note: Callable[[int], object] | None = None) -> None:
        """Count what is written from now on for *worker*, which holds a lock."""
        with self._writing() as db:
            db.execute("INSERT INTO runners VALUES (?, 0)", (worker,))
        self._runner, self._writes, self._note = worker, 0, note
        if note is not None:
            note(0)

    def has_written(self, worker: str, writes: int) -> bool:
        """Whether the journal has so many writes of *worker*; an older copy of it has not."""
        with self._telling():
            return bool(self._db.execute(_HAS_WRITTEN, (worker, writes)).fetchone())

    def forget(self, worker: str) -> None:
        """Forget *worker*, which has ended, unless it owns items."""
        with self._writing() as db:
            db.execute(_FORGET, (worker,))

    def renew(self, worker: str) -> None:
        """Do nothing: *worker* holds a lock."""

    def bury(self, worker: str, *, ended: bool) -> bool:  # noqa: ARG002  its lock is the whole truth
        """Return True: who asks has found the lock of *worker* released or gone."""
        return True

    def owned_by(self, worker: str) -> list[Entry]:
        """Return the items of the runner *worker*."""
        return self._select(f"{_SELECT} WHERE owner = ? ORDER BY number", worker)

    def owners(self) -> list[str]:
        """Return the runners that own items."""
        with self._telling():
            rows = self._db.execute("SELECT DISTINCT owner FROM items WHERE owner NOT NULL")
            return [row[0] for row in rows]

    def is_recorded(self, path: str, *, besides: int) -> bool:
        """Whether a file *path* is recorded for an item other than *besides*."""
        return bool(self._select(f"{_SELECT} WHERE path = ? AND number != ?", path, besides))

    def take(self, owner: str, *, creates: bool, besides: Iterable[int] = ()) -> Entry | None:
        """Give the most urgent free item to *owner*, and return it, or None if there is none.

        Results come first, soonest expiry first, then created tasks, then tasks to create.

        Args:
            owner: The runner.
            creates: Whether it may be a task to create.
            besides: Numbers of items to skip.
        """
        passed = set(besides)
        wanted = [State.COMPLETED, State.SUBMITTED, *([State.QUEUED] if creates else [])]
        with self._writing() as db:
            for state in wanted:
                # The queue can be very long; this is the order of its index.
                order = "number" if state is State.QUEUED else "expires IS NULL, expires, number"
                rows = db.execute(
                    "SELECT number FROM items WHERE state = ? AND owner IS NULL "  # noqa: S608  our own names
                    f"ORDER BY {order} LIMIT ?",
                    (state, len(passed) + 1),
                ).fetchall()  # an open cursor would hold its lock beyond the commit
                number: int | None = next((row[0] for row in rows if row[0] not in passed), None)
                if number is None:
                    continue
                after = State.CLAIMED if state is State.QUEUED else state
                db.execute(
                    "UPDATE items SET state = ?, owner = ? "
                    "WHERE number = ? AND state = ? AND owner IS NULL",
                    (after, owner, number, state),
                )
                row = db.execute(f"{_SELECT} WHERE number = ?", (number,)).fetchone()
                return _entry(row)
        return None

    def transaction(self) -> AbstractContextManager[object]:
        """Return a context whose steps are all recorded at its end, or none of them."""
        return self._writing()

    def arm(self, entry: Entry, attempt: int, *, by: str, lasts: float) -> None:  # noqa: ARG002  a lock tells when it has ended
        """Record that the create number *attempt* of a claimed item is about to be sent.

        Raises:
            ClaimLost: It is not claimed, or not the runner's.
        """
        self.move(entry, State.CLAIMED, State.ARMED, by=by, attempt=attempt)

    def move(
        self,
        entry: Entry,
        before: State,
        after: State,
        *,
        by: str | None,
        judged: bool = False,
        shares: bool = False,
        **facts: Any,
    ) -> None:
        """Move an item durably from the state *before* to *after*.

        Args:
            entry: The item.
            before: Its current state.
            after: Its next state, or the same one to set only columns.
            by: The runner that owns it, or None.
            judged: Whether the step was decided by what *entry* says of its create.
            shares: Whether other items may have its task as well.
            **facts: Columns to set.

        Raises:
            ClaimLost: It is not in the state *before*, not the runner's, or not as it was judged.
            JournalUnusable: The journal cannot be written, or a write failed earlier and the item
                would be armed.
            TaskTaken: Its task belongs to another item.
            Unstorable: A column cannot be stored. The item is unchanged.
            ValueError: There is no such step.
        """
        if after is State.ARMED and before is not after and self._has_failed:
            raise JournalUnusable(f"{self.path} failed before. Nothing more is sent.")
        check_step(before, after)
        named = names_task(before, after, by)
        names, values = _assignments(facts, names_task=named, shares=shares)
        read = [getattr(entry, name) for name in JUDGED] if judged else []
        with self._writing() as db, _one_owner():
            changed = db.execute(
                f"UPDATE items SET state = ?{names} "  # noqa: S608  our own names
                f"WHERE number = ? AND state = ? AND owner IS ?{_AS_JUDGED if judged else ''}",
                (after, *values, entry.number, before, by, *read),
            )
            if changed.rowcount != 1:
                raise ClaimLost(f"{entry.label} is not {before} any more: another one moved it.")

    def check_ended(self, entry: Entry) -> None:
        """Do nothing: only an item whose runner has ended its create is free."""

    def report_late(
        self, number: int, attempt: int, after: State, *, by: str, **facts: Any
    ) -> bool:
        """Record the response to a create whose item was taken away from its runner.

        Returns:
            Whether the item took it; otherwise it is a stray.

        Raises:
            TaskTaken: Its task belongs to another item. Nothing was recorded.
            ValueError: No response leads to *after*.
        """
        after, facts = late_step(after, facts)
        names, values = _assignments(facts, names_task=True)
        with self._writing() as db, _one_owner():
            changed = db.execute(
                f"UPDATE items SET state = ?{names} "  # noqa: S608  our own names
                "WHERE number = ? AND attempt = ? AND state = ?",
                (after, *values, number, attempt, State.AMBIGUOUS),
            )
            if changed.rowcount == 1:
                return True
            db.execute(STRAYS)
            db.execute(
                f"INSERT INTO strays ({', '.join(_OF_A_STRAY)}) VALUES (?, ?, ?, ?, ?, ?, ?) "  # noqa: S608  our own names
                "ON CONFLICT (number, attempt, worker) DO UPDATE SET state = excluded.state, "
                "token = coalesce(excluded.token, token), "
                "reply_status = coalesce(excluded.reply_status, reply_status), "
                "reply = coalesce(excluded.reply, reply)",
                (number, attempt, by, after, *stray_values(facts)),
            )
        return False

    def strays(self) -> list[Stray]:
        """Return the responses that their items could not take."""
        with self._telling():
            known = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'strays'").fetchone()
            if known is None:
                return []
            rows = self._db.execute(f"SELECT {', '.join(_OF_A_STRAY)} FROM strays ORDER BY rowid")  # noqa: S608  our own names
            return [structure(dict(zip(_OF_A_STRAY, row, strict=True)), Stray) for row in rows]

    def limit_rate(self, rate: float) -> None:
        """Limit the requests of all processes that work on this batch, or not, if it is infinite.

        Raises:
            ValueError: It is not above 0.
        """
        with self._writing() as db:
            rates.limit(db, rate)

    @property
    def has_rate(self) -> bool:
        """Whether the requests of all processes are limited."""
        with self._telling():
            return rates.is_limited(self._db)

    def acquire_permits(self, wanted: int) -> Permits:
        """Return permits for requests, which nobody else gets. Most journals have no rate."""
        with self._telling():
            permits = rates.unlimited(self._db, wanted)
        if permits is not None:
            return permits
        with self._writing() as db:
            return rates.acquire(db, wanted)

    def throttle(self, seconds: float) -> None:
        """Give nobody permits for *seconds*, because the service has asked to slow down."""
        with self._writing() as db:
            rates.throttle(db, seconds)

    def start_over(self) -> None:
        """Queue everything unfinished, because the service has forgotten it and charges nothing.

        This is only for embedded services.
        """
        ended = (State.DOWNLOADED, State.FAILED, State.REFUSED, State.ABANDONED)
        with self._writing() as db:
            db.execute(
                "UPDATE items SET state = 'queued', owner = NULL, token = NULL, result = NULL, "  # noqa: S608  our own names
                "reason = NULL, candidate = NULL, reply_status = NULL, reply = NULL, task = NULL, "
                "path = NULL, size = NULL, sha256 = NULL "
                f"WHERE state NOT IN ({', '.join('?' * len(ended))})",
                ended,
            )

    def _select(self, statement: str, *arguments: object) -> list[Entry]:
        with self._telling():
            return [_entry(row) for row in self._db.execute(statement, arguments)]

    def _pages(self, which: str, last: int, *arguments: object) -> Iterator[Entry]:
        rest = f"WHERE number > ? {which}ORDER BY number LIMIT {_PAGE}"
        while page := self._select(f"{_SELECT} {rest}", last, *arguments):
            yield from page
            last = page[-1].number

    def _outlines(self, statement: str, last: int) -> list[Outline]:
        with self._telling():
            return [
                Outline(number, State(state), path, size, facts)
                for number, state, path, size, facts in self._db.execute(statement, (last,))
            ]

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection, None, None]:
        """Begin a change, or go on with one. It is on the disk when the outermost context ends."""
        if self._db.in_transaction:
            yield self._db
            return
        with self._telling(), sqlite.transaction(self._db) as db:
            if not self._has_last_write(db):
                raise JournalOutdated(OUTDATED.format(name=self.path))
            yield db
        if self._runner is not None:
            self._writes += 1
            if self._note is not None:
                self._note(self._writes)

    @contextmanager
    def _telling(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite.OF_VALUES as error:
            raise Unstorable(f"{type(error).__name__}: {error}") from error
        except InvalidJson as error:
            raise JournalUnusable(f"{self.path} is damaged ({error}). {DAMAGED}") from error
        except sqlite3.Error as error:
            self._has_failed = True
            if self._is_replaced():
                raise JournalOutdated(REPLACED.format(name=self.path)) from error
            raise JournalUnusable(sentence(self.path, error)) from error

    def _has_last_write(self, db: sqlite3.Connection) -> bool:
        """Count a write of the runner, if its last one is still there."""
        if self._runner is None:
            return True
        return db.execute(_WRITE, (self._runner, self._writes)).rowcount == 1

    def _is_replaced(self) -> bool:
        """Whether the file at its path is not the one that was opened."""
        try:
            return not os.path.samestat(self.path.stat(), self._file)
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _check(self) -> None:
        """Refuse a file that is not an intact journal."""
        if self.pragma("application_id") != APPLICATION:
            raise JournalUnusable(f"{self.path} is no journal of a batch, or has been damaged.")
        version = self.pragma("user_version")
        if version != VERSION:
            raise JournalUnusable(
                f"{self.path} is of version {version}, and this muybridge knows version {VERSION}: "
                "upgrade muybridge."
            )
        verdict = self.pragma("quick_check")
        if verdict != "ok":
            raise JournalUnusable(f"{self.path} is damaged ({verdict}). {DAMAGED}")

    def _check_writing(self) -> None:
        """Refuse a file that cannot be written, and add the columns that it lacks."""
        with self._writing() as db:  # only a write shows whether it can be written
            # SQLite always writes this when it is set, unlike a row whose values stay the same.
            db.execute(f"PRAGMA user_version = {VERSION}")
            for name in self._missing_columns():
                db.execute(f"ALTER TABLE items ADD COLUMN {name} TEXT")
            db.execute(OWN_TASKS)

    def _show_later_columns(self) -> None:
        """Show the columns that an older file lacks, without writing to it."""
        missing = self._missing_columns()
        if missing:  # the view is in memory, and hides the table
            columns = ", ".join(f"NULL AS {name}" for name in missing)
            self._db.execute(
                f"CREATE TEMP VIEW items AS SELECT *, {columns} FROM main.items"  # noqa: S608  our own names
            )

    def _missing_columns(self) -> set[str]:
        return {*LATER_COLUMNS} - {row[1] for row in self._db.execute(_COLUMNS_OF_ITEMS)}

    def pragma(self, name: str) -> object:
        """Return a setting of the database."""
        return sqlite.pragma(self._db, name)


def _insert(db: sqlite3.Connection, first: int, items: Iterable[NewItem]) -> None:
    db.executemany(
        f"INSERT INTO items (number, {', '.join(_GIVEN)}) VALUES (?{', ?' * len(_GIVEN)})",  # noqa: S608  our own names
        ((number, *storable_texts(item)) for number, item in enumerate(items, start=first)),
    )


def _assignments(
    facts: Mapping[str, Any], *, names_task: bool, shares: bool = False
) -> tuple[str, list[object]]:
    """Return *facts* as the end of a SET clause, and its values."""
    values = storable_facts(facts)
    if names_task and "token" in values:
        values["task"] = None if shares else storable(task_id_in(facts["token"]), str)
    return "".join(f", {name} = ?" for name in values), [*values.values()]


@contextmanager
def _one_owner() -> Generator[None, None, None]:
    """Tell if the block gives an item the task of another one."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "items.task" not in str(error):
            raise
        raise TaskTaken("the task belongs to another item") from error


def _entry(row: tuple[Any, ...]) -> Entry:
    return structure(dict(zip(_COLUMNS, row, strict=True)), Entry)
