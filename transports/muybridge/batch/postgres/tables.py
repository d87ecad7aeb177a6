"""The tables of shared batches: how they are created, and which ones are refused.

Tables of any other version are refused: statements about columns that they do not have would fail
in the middle of a batch, and they may hold what this version does not respect.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from muybridge.batch.journal_errors import JournalUnusable
from muybridge.batch.postgres import schema
from muybridge.batch.postgres.connecting import Connection

_LOCK: Final = 0x6D757962


@contextmanager
def beginning(db: Connection) -> Generator[None, None, None]:
    """Make the block a transaction in which nobody else creates tables or begins a batch."""
    with db.waiting(), db.changing():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


def make(db: Connection, place: str) -> None:
    """Create the tables in the database *place*, unless they exist.

    Raises:
        JournalUnusable: They are of another version.
    """
    if not are_there(db, place):
        db.execute(schema.TABLES.encode())


def are_there(db: Connection, place: str) -> bool:
    """Whether there are tables in the database *place*.

    Raises:
        JournalUnusable: They are of another version.
    """
    found = db.execute("SELECT to_regclass('muybridge_schema')").fetchone()
    if found is None or found[0] is None:
        return False
    rows = db.execute("SELECT version FROM muybridge_schema").fetchall()
    versions = [int(version) for (version,) in rows]
    if versions != [schema.VERSION]:
        named = ", ".join(map(str, versions)) or "none"
        is_newer = versions > [schema.VERSION]
        advice = (
            "Upgrade muybridge on every machine."
            if is_newer
            else "Let its batches end with the muybridge that began them, and begin new ones in "
            "another database."
        )
        raise JournalUnusable(
            f"{place}: its tables are of version {named}, and this muybridge knows version "
            f"{schema.VERSION}. Nothing was sent. {advice}"
        )
    return True
