"""The tables of a ledger's SQLite file.

Each entry is a row. Beside them, `sums` has one row for each day of UTC, with the sums of the
entries that count as spent. Summing up the entries themselves would take longer with every request:
55 ms with 100,000 of them. Triggers keep the sums, in the transaction that changes an entry, so
that no kill and no other program can leave them wrong.

A ledger of version 1 has no sums, and gets them when it is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from muybridge.files import sqlite
from muybridge.ledger.entries import NAMED, SPENT, State
from muybridge_protocol.purchases import Measure

VERSION: Final = 2
APPLICATION: Final = 0x6D75796C  # "muyl"
DAY: Final = 86_400
"""Seconds in a day of UTC: Unix time has no leap seconds."""


def listed(states: tuple[State, ...]) -> str:
    """Return *states* as SQL."""
    return ", ".join(f"'{state}'" for state in states)


def _day(row: str) -> str:
    return f"CAST({row}.time AS INTEGER) / {DAY}"


def _triggers() -> Iterator[str]:
    """Yield what keeps the sums when a row of the entries comes, changes or goes."""
    for event, row, sign in (
        ("INSERT", "new", "+"),
        ("UPDATE", "new", "+"),
        ("UPDATE", "old", "-"),
        ("DELETE", "old", "-"),
    ):
        changes = ", ".join(
            f"{one} = {one} {sign} coalesce({row}.{one}, 0), "
            f"{one}_known = {one}_known {sign} ({row}.{one} NOT NULL)"
            for one in Measure
        )
        yield f"""
CREATE TRIGGER sums_{event.lower()}_{row} AFTER {event} ON entries
    WHEN {row}.state IN ({listed(SPENT)})
BEGIN
    INSERT INTO sums (day) SELECT {_day(row)}
        WHERE NOT EXISTS (SELECT * FROM sums WHERE day = {_day(row)});
    UPDATE sums SET entries = entries {sign} 1, {changes} WHERE day = {_day(row)};
END;
"""  # noqa: S608  our own names


# A sum that is too large would become a fraction without the check.
_SUM_COLUMNS: Final = ", ".join(
    f"{one} INTEGER NOT NULL DEFAULT 0 CHECK (typeof({one}) = 'integer'), "
    f"{one}_known INTEGER NOT NULL DEFAULT 0"
    for one in Measure
)
_SUMS: Final = f"""
CREATE TABLE sums (day INTEGER PRIMARY KEY, entries INTEGER NOT NULL DEFAULT 0, {_SUM_COLUMNS});
{"".join(_triggers())}
"""
SCHEMA: Final = f"""
CREATE TABLE ledger (salt BLOB NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    time REAL NOT NULL,
    family TEXT NOT NULL,
    model TEXT NOT NULL,
    tier TEXT,
    creates INTEGER,
    pictures INTEGER,
    seconds INTEGER,
    calls INTEGER,
    cost INTEGER,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    once TEXT,
    digest TEXT,
    token TEXT,
    candidate TEXT,
    reason TEXT
);
CREATE UNIQUE INDEX names ON entries (account, once)
    WHERE once NOT NULL AND state IN ({listed(NAMED)});
CREATE UNIQUE INDEX tasks ON entries (account, json_extract(token, '$.id')) WHERE token NOT NULL;
CREATE INDEX states ON entries (state);
{_SUMS}
"""
_FILL: Final = f"""
INSERT INTO sums
    SELECT {_day("entries")}, count(*),
        {", ".join(f"coalesce(sum({one}), 0), count({one})" for one in Measure)}
    FROM entries WHERE state IN ({listed(SPENT)}) GROUP BY 1
"""  # noqa: S608  our own names


def migrate(db: sqlite3.Connection) -> None:
    """Bring a ledger of version 1 up to date, unless another process has just done so."""
    if sqlite.pragma(db, "user_version") != 1:
        return
    with sqlite.transaction(db):
        if sqlite.pragma(db, "user_version") != 1:
            return
        for statement in (*_statements(_SUMS), _FILL, "DROP INDEX spent_entries"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of *script*. `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
