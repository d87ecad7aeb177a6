"""SQLite files that lose nothing they have confirmed, as a store of purchases needs them.

They have a rollback journal: WAL is no faster when every commit must be durable, and it corrupts
files in the SQLite releases that come with Python 3.11. A new file appears whole or not at all, so
an empty one is always damaged, and never mistaken for a new one.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from glob import escape
from pathlib import Path
from typing import Final

from muybridge.files.durable import sync_folders
from muybridge.signals import genuine, ignoring_errors

OF_VALUES: Final = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    OverflowError,
    UnicodeError,
)
"""Errors about a value that SQLite does not accept. Any other error concerns the file."""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Return a connection to the file at *path*, whose commits are durable.

    Args:
        path: The file. SQLite creates a missing one; call `create` for that.
        patience: Seconds to wait for another process that is writing.
    """
    db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
    # Otherwise, one byte that is not UTF-8 would make a whole row unreadable.
    db.text_factory = _decode
    try:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = EXTRA")
        if sys.platform == "darwin":  # fsync alone does not flush the disk's own cache there
            db.execute("PRAGMA fullfsync = ON")
    except BaseException:
        db.close()
        raise
    return db


def create(path: Path, patience: float, fill: Callable[[sqlite3.Connection], None]) -> bool:
    """Create the file at *path*, readable by its owner alone, unless another process just did.

    Args:
        path: The file. Its folder exists.
        patience: Seconds to wait for another process that is writing.
        fill: Writes the schema and the first rows.

    Returns:
        Whether this process created it.

    Raises:
        OSError: It cannot be created.
        sqlite3.Error: It cannot be written.
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    is_new = False
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(connect(new, patience)) as db:
            fill(db)
        # Unlike a renamed file, a linked one never replaces another process's.
        os.link(new, path)
        is_new = True
        sync_folders(path.parent)
    except genuine((OSError, sqlite3.Error)):
        if not path.exists():
            raise
    finally:
        with ignoring_errors(OSError):
            new.unlink(missing_ok=True)
    if is_new:
        remove_unfinished(path)  # whoever is still creating one finds that there is a file
    return is_new


def remove_unfinished(path: Path) -> None:
    """Remove what processes have left that were killed while they created the file at *path*."""
    for unfinished in path.parent.glob(f"{escape(path.name)}.[0-9a-f]*.new*"):
        with ignoring_errors(OSError):
            unfinished.unlink()


@contextmanager
def transaction(db: sqlite3.Connection) -> Generator[sqlite3.Connection, None, None]:
    """Begin a change. It is on the disk when the context ends without an error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def pragma(db: sqlite3.Connection, name: str) -> object:
    """Return a setting of the database."""
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def explained(error: OSError | sqlite3.Error, advice: Mapping[str, str], otherwise: str) -> str:
    """Return what is wrong with a file, and what to do.

    Args:
        error: What the system or SQLite reported.
        advice: What to do, by a part of the report.
        otherwise: What to do about any other report.
    """
    text = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return f"{text}. {next((then for part, then in advice.items() if part in text), otherwise)}"


def _decode(text: bytes) -> str:
    """Decode a text from the file, which another program may have written."""
    return text.decode("utf-8", "replace")
