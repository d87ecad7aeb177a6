"""The ledger in an SQLite file, for all threads and processes of one machine.

Each transaction opens the file anew. That takes a fraction of the time of a durable commit, and no
connection is ever shared with another thread or inherited by a forked process.

Amounts are integers, rounded up: seconds in thousandths, cost in billionths. Sums are exact. The
file keeps those of each day (`muybridge.ledger.sqlite_schema`).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from muybridge.files import sqlite
from muybridge.files.durable import make_folders, sync_names
from muybridge.files.state import state_folder
from muybridge.ledger.entries import NAMED, Entry, State
from muybridge.ledger.errors import EntryUnstorable, LedgerUnusable
from muybridge.ledger.sqlite_schema import APPLICATION, DAY, SCHEMA, VERSION, listed, migrate
from muybridge.ledger.store import Rows
from muybridge.purchases.owners import Owners
from muybridge.signals import genuine
from muybridge_protocol.estimates.units import EXACT
from muybridge_protocol.purchases import Amounts, Measure
from muybridge_protocol.records.json import is_encodable

PATIENCE: Final = 30.0
"""Seconds to wait for other processes that are writing."""

_PAGE: Final = 1000
"""Entries read at once."""
_SCALES: Final = {
    Measure.CREATES: 1,
    Measure.PICTURES: 1,
    Measure.SECONDS: 10**3,
    Measure.CALLS: 1,
    Measure.COST: 10**9,
}
_COLUMNS: Final = (
    "key", "account", "time", "family", "model", "tier", *Measure, "state", "owner", "once",
    "digest", "token", "candidate", "reason",
)  # fmt: skip
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM entries"  # noqa: S608  our own names
_PUT: Final = (
    f"INSERT INTO entries ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608  our own names
    f"ON CONFLICT (key) DO UPDATE SET {', '.join(f'{one} = excluded.{one}' for one in _COLUMNS)}"
)
_SHARES: Final = (
    "account = ? AND token NOT NULL AND json_extract(token, '$.id') = json_extract(?, '$.id') "
    "AND key <> ?"
)
_OF_AN_ENTRY: Final = (
    *sqlite.OF_VALUES, sqlite3.ProgrammingError, ArithmeticError, TypeError, ValueError,
)  # fmt: skip
"""Errors about a value of an entry."""
_NEWEST: Final = "SELECT key FROM entries ORDER BY number DESC LIMIT 1"
_SPENT: Final = (
    f"SELECT sum(entries), {', '.join(f'sum({one}), sum({one}_known)' for one in Measure)} "  # noqa: S608  our own names
    "FROM sums WHERE day >= ? HAVING sum(entries) > 0"
)

DAMAGED: Final = (
    "Nothing is sent. Repair this file if you can. A copy does not know what was paid since it was "
    "made, and a new ledger knows nothing: with one, you could pay twice"
)
_GONE: Final = (
    "was removed or replaced while it was in use. Nothing is sent. Put the latest file back. A new "
    "ledger or an older copy does not know what was paid since: with one, a restarted program "
    "could pay twice."
)
_LINKED: Final = (
    "has a second name, a hard link. Nothing is sent, because programs that use different names of "
    "it do not know of each other. Remove the other name, or replace it by a symbolic link."
)
_WRITABLE: Final = (
    "Nothing is sent. Make the file and its folder writable. Another ledger would not know what "
    "was paid."
)
_ROOM: Final = "Nothing is sent. Make room on the disk, then run again."
_ADVICE: Final = {
    "locked": "Nothing is sent. Other processes are writing to it; run again later.",
    "readonly": _WRITABLE,
    "unable to open": _WRITABLE,
    "Permission": _WRITABLE,
    "Read-only": _WRITABLE,
    "not permitted": "Nothing is sent. Use a folder on a disk that supports hard links.",
    "not supported": "Nothing is sent. Use a folder on a disk that supports hard links.",
    "full": _ROOM,
    "space": _ROOM,
    "disk I/O": _ROOM,
    "malformed": f"{DAMAGED}.",
    "not a database": f"{DAMAGED}.",
}


class SqliteStore:
    """A ledger's entries in an SQLite file.

    The file is created with its folder if it is missing. Only its owner can read it.

    Args:
        path: The file, or a symbolic link to it. It must have no second name (hard link).
        patience: Seconds to wait for other processes that are writing.
    """

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        # One file has one name: the owners' folder and SQLite's own files are beside it.
        self.path: Path = Path(os.path.realpath(path))
        self._patience = patience
        self._salt: bytes | None = None
        self._newest: str | None = None
        self._is_intact = False
        self.begin()
        _STORES.add(self)

    def begin(self) -> None:
        """Begin as an owner that nothing waits for: at first, and again in a forked child."""
        self._turn = threading.Lock()
        self._naming = threading.Lock()
        self._owners = Owners(self.path.with_name(f"{self.path.name}.owners"))

    @property
    def place(self) -> str:
        """Where it is, as `open_ledger` takes it."""
        return str(self.path)

    @property
    def salt(self) -> bytes:
        """Random bytes of this ledger, from which accounts are derived."""
        if self._salt is None:
            with self._opened():
                pass  # which reads it
        assert self._salt is not None  # noqa: S101  for type checkers
        return self._salt

    @property
    def owner(self) -> str:
        """The name of this store, which holds an operating system lock while it is in use."""
        with self._telling(), self._naming:
            self._create()
            return self._owners.mine()

    @contextmanager
    def writing(self) -> Generator[Rows, None, None]:
        """Begin a transaction. It is on the disk when the context ends without an error."""
        # Threads take turns here, because those that wait for SQLite's lock are not served in turn.
        with self._turn, self._opened() as db:
            with sqlite.transaction(db):
                self._check_freshness(db)
                yield SqliteRows(db)
                newest = db.execute(_NEWEST).fetchone()
            self._newest = self._newest if newest is None else newest[0]

    def spent(self, since: float) -> Amounts:
        """Return the same as `Rows.spent`, and write nothing: a missing store is empty."""
        if self._is_missing:
            return dict.fromkeys(Measure, Decimal(0))
        with self._opened() as db:
            self._check_freshness(db)
            return SqliteRows(db).spent(since)

    def entries(self, *states: State) -> Iterator[Entry]:
        """Yield the same as `Store.entries`."""
        last = 0
        while not self._is_missing:
            with self._opened() as db:
                self._check_freshness(db)
                found = db.execute(
                    f"SELECT number, {', '.join(_COLUMNS)} FROM entries WHERE number > ? "  # noqa: S608  our own names
                    f"AND state IN ({listed(states or tuple(State))}) ORDER BY number LIMIT ?",
                    (last, _PAGE),
                ).fetchall()
            if not found:
                return
            last = found[-1][0]
            for row in found:
                yield _entry(row[1:])

    def lives(self, owner: str) -> bool:
        """Whether the store *owner* is in use, in any process."""
        with self._telling():
            return self._owners.lives(owner)

    @property
    def _is_missing(self) -> bool:
        """Whether there is no file yet. One that has been in use and is gone is an error."""
        was_in_use = self._salt is not None  # first, as in `_create`
        return not was_in_use and not self.path.exists()

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection, None, None]:
        with self._telling():
            self._create()
            with closing(sqlite.connect(self.path, self._patience)) as db:
                self._check(db)
                yield db

    def _create(self) -> None:
        """Create the file and its folder, unless they exist."""
        was_in_use = self._salt is not None  # first: meanwhile, another thread may create the file
        if self.path.exists():
            return
        if was_in_use:
            raise LedgerUnusable(f"{self.path} {_GONE}")

        def fill(db: sqlite3.Connection) -> None:
            db.executescript(f"PRAGMA application_id = {APPLICATION};{SCHEMA}")
            with sqlite.transaction(db):
                db.execute("INSERT INTO ledger VALUES (?)", (secrets.token_bytes(16),))
                db.execute(f"PRAGMA user_version = {VERSION}")

        folder = self.path.parent
        make_folders(folder, mode=0o700)
        sync_names(folder)
        sqlite.create(self.path, self._patience, fill)

    def _check(self, db: sqlite3.Connection) -> None:
        if self.path.stat().st_nlink > 1:
            sqlite.remove_unfinished(self.path)  # whoever created it may have died in between
            if self.path.stat().st_nlink > 1:
                raise LedgerUnusable(f"{self.path} {_LINKED}")
        if sqlite.pragma(db, "application_id") != APPLICATION:
            raise LedgerUnusable(f"{self.path} is not a ledger, or is damaged. {DAMAGED}.")
        migrate(db)
        version = sqlite.pragma(db, "user_version")
        if version != VERSION:
            raise LedgerUnusable(
                f"{self.path} has version {version}, and this muybridge knows version {VERSION}. "
                "Nothing is sent. Upgrade muybridge: another ledger would not know what was paid."
            )
        salt: bytes = db.execute("SELECT salt FROM ledger").fetchone()[0]
        if self._salt not in (None, salt):
            raise LedgerUnusable(f"{self.path} {_GONE}")
        self._salt = salt
        if not self._is_intact:  # once, because it reads the whole file
            verdict = sqlite.pragma(db, "quick_check")
            if verdict != "ok":
                raise LedgerUnusable(f"{self.path} is malformed ({verdict}). {DAMAGED}.")
            self._is_intact = True

    def _check_freshness(self, db: sqlite3.Connection) -> None:
        """Check that the file has what this process has seen in it: an older copy has not."""
        if self._newest is None:
            return
        if db.execute("SELECT 1 FROM entries WHERE key = ?", (self._newest,)).fetchone() is None:
            raise LedgerUnusable(f"{self.path} {_GONE}")

    @contextmanager
    def _telling(self) -> Generator[None, None, None]:
        try:
            yield
        except (EntryUnstorable, *sqlite.OF_VALUES) as error:
            raise LedgerUnusable(
                f"{self.path} cannot record the request ({error}). Nothing is sent."
            ) from error
        except genuine((sqlite3.Error, OSError)) as error:
            said = sqlite.said_by(error, _ADVICE, "Nothing is sent.")
            raise LedgerUnusable(f"{self.path}: {said}") from error


class SqliteRows:
    """The entries, within a transaction.

    Args:
        db: The connection, which has begun it.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def spent(self, since: float) -> Amounts:
        """Return the sums of what counts as spent, of the entries from *since* on."""
        row = self._db.execute(_SPENT, (since / DAY,)).fetchone()
        if row is None:
            return dict.fromkeys(Measure, Decimal(0))
        entries, sums, known = row[0], row[1::2], row[2::2]
        return {
            measure: None if count < entries else _unscaled(total, measure)
            for measure, total, count in zip(Measure, sums, known, strict=True)
        }

    def find(self, key: str) -> Entry | None:
        """Return the entry *key*, or None."""
        return self._one("key = ?", key) if is_encodable(key) else None

    def named(self, account: str, once: str) -> Entry | None:
        """Return the entry of *account* that has the name *once*, or None."""
        return self._one(f"account = ? AND once = ? AND state IN ({listed(NAMED)})", account, once)

    def sharing(self, entry: Entry) -> Entry | None:
        """Return another entry of the same account that has the task of *entry*, or None."""
        if entry.token is None:
            return None
        return self._one(_SHARES, entry.account, entry.token, entry.key)

    def put(self, entry: Entry) -> None:
        """Insert *entry*, or replace the one with its key.

        Raises:
            EntryUnstorable: It has a value that cannot be stored, or a sum of them is too large.
        """
        # SQLite undoes a statement that fails, and leaves the transaction as it was.
        try:
            amounts = {one: _scaled(amount, one) for one, amount in entry.amounts.items()}
            values = [
                amounts[Measure(name)] if name in amounts else getattr(entry, name)
                for name in _COLUMNS
            ]
            self._db.execute(_PUT, values)
        except _OF_AN_ENTRY as error:
            raise EntryUnstorable(str(error)) from error

    def _one(self, condition: str, *arguments: str) -> Entry | None:
        row = self._db.execute(f"{_SELECT} WHERE {condition}", arguments).fetchone()
        return None if row is None else _entry(row)


_STORES: WeakSet[SqliteStore] = WeakSet()


def _begin_in_child() -> None:
    """Leave the parent's locks to the parent: a thread that does not exist here may hold them."""
    for store in tuple(_STORES):
        store.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


def _entry(row: tuple[Any, ...]) -> Entry:
    columns: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    amounts = {measure: _unscaled(columns.pop(measure), measure) for measure in Measure}
    state = State(columns.pop("state"))
    return Entry(**columns, amounts=amounts, state=state)


def _scaled(amount: Decimal | None, measure: Measure) -> int | None:
    if amount is None:
        return None
    return int(EXACT.multiply(amount, _SCALES[measure]).to_integral_value(ROUND_CEILING))


def _unscaled(amount: int | None, measure: Measure) -> Decimal | None:
    return None if amount is None else EXACT.divide(amount, _SCALES[measure])


def default_path() -> Path:
    """Return where the ledger is: `MUYBRIDGE_LEDGER`, or a file in the user's state folder."""
    named = os.environ.get("MUYBRIDGE_LEDGER")
    return Path(named) if named else state_folder() / "ledger.sqlite3"
