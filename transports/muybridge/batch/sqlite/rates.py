"""The request rate of a batch on one machine, in the SQLite file of its journal.

Hardly any journal has its table. Earlier versions ignore it.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Final

import attrs

from muybridge.batch.limits.rate import Permits, RequestRate, check_rate, stored_rate

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS rate (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    rate REAL,
    next_at REAL NOT NULL,
    paused_until REAL NOT NULL,
    written_at REAL NOT NULL
)
"""
_COLUMNS: Final = tuple(field.name for field in attrs.fields(RequestRate))


def limit(db: sqlite3.Connection, rate: float) -> None:
    """Set the rate, or none if it is infinite.

    Raises:
        ValueError: It is not above 0.
    """
    check_rate(rate)
    _write(db, _read(db).limited(stored_rate(rate)))


def is_limited(db: sqlite3.Connection) -> bool:
    """Whether there is a rate."""
    return _read(db).rate is not None


def unlimited(db: sqlite3.Connection, wanted: int) -> Permits | None:
    """Return permits if there is no rate, and otherwise None. Nothing is written."""
    rate = _read(db)
    return rate.acquire(wanted, sharers=1, now=time.time())[1] if rate.rate is None else None


def acquire(db: sqlite3.Connection, wanted: int) -> Permits:
    """Acquire permits, within a transaction."""
    sharers: int = db.execute("SELECT count(DISTINCT owner) FROM items").fetchone()[0]
    after, permits = _read(db).acquire(wanted, sharers=sharers, now=time.time())
    _write(db, after)
    return permits


def throttle(db: sqlite3.Connection, seconds: float) -> None:
    """Give no permits for so many seconds."""
    _write(db, _read(db).throttled(seconds, now=time.time()))


def _read(db: sqlite3.Connection) -> RequestRate:
    row = None
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'rate'").fetchone():
        row = db.execute(f"SELECT {', '.join(_COLUMNS)} FROM rate").fetchone()  # noqa: S608  our own names
    return RequestRate() if row is None else RequestRate(**dict(zip(_COLUMNS, row, strict=True)))


def _write(db: sqlite3.Connection, rate: RequestRate) -> None:
    db.execute(_TABLE)
    db.execute("INSERT OR REPLACE INTO rate VALUES (1, ?, ?, ?, ?)", attrs.astuple(rate))
