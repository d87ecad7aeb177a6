"""A store in an SQLite file, for all threads and processes of one machine.

Each transaction opens the file anew. That takes a fraction of the time of a durable commit, and no
connection is ever shared with another thread or inherited by a forked process. The file has a
rollback journal, and every commit is as durable as SQLite can make it (`muybridge.files.sqlite`).

An owner holds an operating system lock on a file beside the store, as long as its process lives.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self
from weakref import WeakSet

from muybridge.files import sqlite
from muybridge.files.durable import make_folders, sync_names
from muybridge.files.state import state_folder
from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.owners import Owners
from muybridge.purchases.port import Conflict, Mark
from muybridge.purchases.steps import REPAIR, REPLACED
from muybridge.purchases.turns import Turns
from muybridge.purchases.words import Texts, has_rows
from muybridge.signals import genuine, ignoring_errors, raised_by_handler

PATIENCE: Final = 28.0
"""Seconds to wait for other processes that are writing."""
_LEAST: Final = 0.1
"""Seconds that a transaction gets, however long its members have waited."""
APPLICATION: Final = 0x6D757970  # "muyp"
WORDS: Final[Mapping[str, str]] = {
    "now": "((julianday('now') - 2440587.5) * 86400.0)",
    "real": "REAL",
    "bytes": "BLOB",
    # Nobody else writes during a transaction.
    "for_update": "",
    "for_share": "",
    "skip_locked": "",
}

_LINKED: Final = (
    "has a second name, a hard link. Nothing is sent, because programs that use different names of "
    "it do not know of each other. Remove the other name, or replace it by a symbolic link."
)
_WRITABLE: Final = (
    "Nothing is sent. Make the file and its folder writable. Another store would not know what was "
    "paid."
)
_ROOM: Final = "Nothing is sent. Make room on the disk, then run again."
_DISK: Final = "Nothing is sent. Use a folder on a disk that supports locks and hard links."
_ADVICE: Final = {
    "locked": "Nothing is sent. Other processes are writing to it; run again later.",
    "readonly": _WRITABLE,
    "unable to open": _WRITABLE,
    "Permission": _WRITABLE,
    "Read-only": _WRITABLE,
    "No locks available": _DISK,
    "locking protocol": _DISK,
    "not permitted": _DISK,
    "not supported": _DISK,
    "not implemented": _DISK,
    "full": _ROOM,
    "space": _ROOM,
    "disk I/O": _ROOM,
    "malformed": REPAIR,
    "not a database": REPAIR,
}


class SqliteDatabase:
    """A store's database in an SQLite file.

    The file is created with its folder if it is missing. Only its owner can read it.

    Args:
        path: The file, or a symbolic link to it. It must have no second name (hard link).
        patience: Seconds to wait for other processes that are writing.
        words: What differs from other databases in statements.
    """

    leases: bool = False
    parts: int = 1

    def __init__(
        self, path: Path, *, patience: float = PATIENCE, words: Mapping[str, str] = WORDS
    ) -> None:
        # One file has one name: the owners' folder and SQLite's own files are beside it.
        self.path: Path = Path(os.path.realpath(path))
        self._patience = patience
        self._texts = Texts(words)
        self._is_intact = False
        name = sha256(os.fsencode(self.path)).hexdigest()[:32]
        self._note = state_folder() / "stores" / name
        self.begin()
        _DATABASES.add(self)

    def begin(self) -> None:
        """Begin as an owner that nothing waits for: at first, and again in a forked child."""
        self._turns = Turns()
        self._naming = threading.Lock()
        self.resign()

    def resign(self) -> None:
        """Be another owner from now on. The one before is dead, so it must not be sending."""
        self._owners = Owners(self.path.with_name(f"{self.path.name}.owners"))

    def another(self) -> Self:
        """Return the same database for another owner."""
        other = copy(self)
        other.begin()
        _DATABASES.add(other)
        return other

    @property
    def place(self) -> str:
        """Where it is, as `open_store` takes it."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether there is a file."""
        with self._telling():
            return self._is_there()

    def create(self, statements: Sequence[str], salt: str) -> None:
        """Create the file and its folder, whole or not at all, unless they exist."""
        with self._telling():
            if self._is_there():
                return

            def fill(db: sqlite3.Connection) -> None:
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                with sqlite.transaction(db):
                    for statement in statements[:-1]:
                        db.execute(self._texts.of(statement))
                    db.execute(self._texts.of(statements[-1]), {"salt": salt})

            make_folders(self.path.parent, mode=0o700)
            sync_names(self.path.parent)
            sqlite.create(self.path, self._patience, fill)

    @contextmanager
    def transaction(self, *, waited: float = 0.0) -> Generator[SqliteRows]:
        """Begin a transaction. It is on the disk when the context ends without an error."""
        # Threads take turns here, because those that wait for SQLite's lock are not served in turn.
        with (
            self._telling(),
            self._turn(max(_LEAST, self._patience - waited)) as left,
            self._opened(max(_LEAST, left)) as db,
        ):
            self._check_whole(db)
            db.execute("BEGIN IMMEDIATE")
            try:
                rows = SqliteRows(db, self._texts)
                yield rows
                rows.is_ending = True
                db.execute("COMMIT")
            finally:
                # Also after COMMIT: if it fails on a full disk or a lock, the transaction goes on.
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Generator[SqliteRows]:
        """Begin to read. Each statement sees the latest state, and no transaction is begun."""
        with self._telling(), self._opened(self._patience) as db:
            yield SqliteRows(db, self._texts)

    def owner(self) -> str:
        """Return the name of this owner, which holds an operating system lock from now on."""
        with self._telling(), self._naming:
            make_folders(self.path.parent, mode=0o700)
            return self._owners.mine()

    def lives(self, owner: str) -> bool:
        """Whether *owner* holds its lock, in any process."""
        with self._telling():
            return self._owners.lives(owner)

    def seen(self) -> Mark | None:
        """Return the last purchase that the user's programs have seen in this file."""
        try:
            salt, key, armed_at = self._note.read_text("ascii").split()
            return Mark(salt, key, float(armed_at))
        except (OSError, ValueError) as error:
            if raised_by_handler(error):
                raise
            return None

    def note_seen(self, mark: Mark) -> None:
        """Remember a purchase in the user's state folder, if there is one that can be written."""
        with ignoring_errors(OSError):
            if not self._note.parent.is_dir():
                self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Not synced: an earlier one is as true, and one that cannot be read counts as none.
            self._note.write_text(f"{mark.salt} {mark.key} {mark.armed_at!r}\n", "ascii")

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _is_there(self) -> bool:
        if self.path.is_dir():
            raise StoreUnusable(
                f"{self.path} is a folder. Nothing is sent. Give a file in it, such as "
                f"{self.path / 'store.sqlite3'}."
            )
        return self.path.exists()

    @contextmanager
    def _turn(self, seconds: float) -> Generator[float]:
        with ExitStack() as stack:
            try:
                left = stack.enter_context(self._turns.within(seconds))
            except genuine(TimeoutError) as error:
                raise StoreUnusable(f"{self.path} is locked. {_ADVICE['locked']}") from error
            yield left

    @contextmanager
    def _opened(self, patience: float) -> Generator[sqlite3.Connection]:
        # SQLite would create a missing file.
        if not self.path.exists():
            raise StoreUnusable(f"{self.path} {REPLACED}", lacks="past")
        with closing(sqlite.connect(self.path, patience)) as db:
            self._check(db)
            yield db

    def _check(self, db: sqlite3.Connection) -> None:
        if self.path.stat().st_nlink > 1:
            sqlite.remove_unfinished(self.path)  # whoever created it may have died in between
            if self.path.stat().st_nlink > 1:
                raise StoreUnusable(f"{self.path} {_LINKED}")
        if sqlite.pragma(db, "application_id") != APPLICATION:
            raise StoreUnusable(f"{self.path} is not a store of purchases, or is damaged. {REPAIR}")

    def _check_whole(self, db: sqlite3.Connection) -> None:
        """Check the whole file, before the first purchase: what nobody reads may be damaged.

        Who only looks does not wait for that. The file may have many purchases.
        """
        if not self._is_intact:
            verdict = sqlite.pragma(db, "quick_check")
            if verdict != "ok":
                raise StoreUnusable(f"{self.path} is malformed ({verdict}). {REPAIR}")
            self._is_intact = True

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Conflict from error
        except (sqlite3.Error, *sqlite.OF_VALUES, OSError) as error:
            if raised_by_handler(error):
                raise
            known = error if isinstance(error, sqlite3.Error | OSError) else OSError(str(error))
            name = str(getattr(error, "sqlite_errorname", ""))
            if name.startswith("SQLITE_IOERR") and name.endswith("LOCK"):
                known = OSError(f"locking protocol ({name})")
            advice = sqlite.explained(known, _ADVICE, "Nothing is sent.")
            raise StoreUnusable(f"{self.path}: {advice}") from error


class SqliteRows:
    """A transaction of SQLite.

    Args:
        db: The connection.
        texts: The texts of statements.
    """

    def __init__(self, db: sqlite3.Connection, texts: Texts) -> None:
        self.is_ending: bool = False
        self._db = db
        self._texts = texts

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows."""
        done = self._db.execute(self._texts.of(statement), values)
        return done.fetchall() if has_rows(statement) else []

    def change(self, statement: str, **values: Any) -> int:
        """Execute a statement, and return how many rows it has changed."""
        return self._db.execute(self._texts.of(statement), values).rowcount

    def run_each(self, statement: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement with one set of values after the other."""
        self._db.executemany(self._texts.of(statement), values)

    def hold(self, tags: Sequence[str], *, shared: Sequence[str] = ()) -> None:
        """Do nothing: nobody else writes during a transaction."""


_DATABASES: Final[WeakSet[SqliteDatabase]] = WeakSet()


def _begin_in_child() -> None:
    """Leave the parent's locks to the parent: a thread that does not exist here may hold them."""
    for database in tuple(_DATABASES):
        database.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
