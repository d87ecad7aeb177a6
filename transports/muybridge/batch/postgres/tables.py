"""The tables of shared batches: which version a database has, and how it gets the latest one.

Workers of two versions may use the same database. Tables of an earlier version are read and written
as they are; only who submits a batch upgrades them. Tables of a later version are refused, because
they may hold what this version does not respect.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from muybridge.batch.journal_errors import JournalUnusable
from muybridge.batch.postgres import schema
from muybridge.batch.postgres.connecting import Connection

WITH_OUT: Final = 2
"""The first version that has a place for results."""
WITH_OWN_TASKS: Final = 3
"""The first version in which a task belongs to one item."""
_LOCK: Final = 0x6D757962


@contextmanager
def beginning(db: Connection) -> Generator[None, None, None]:
    """Make the block a transaction in which nobody else creates tables or begins a batch."""
    with db.waiting(), db.changing():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


def make(db: Connection, place: str) -> None:
    """Create the tables in the database *place*, or upgrade those of an earlier version.

    Raises:
        JournalUnusable: They are of a version that we do not know.
    """
    if not are_there(db):
        db.execute(schema.TABLES.encode())
    for version in range(version_of(db, place), schema.VERSION):
        db.execute(schema.UPGRADES[version].encode())


def are_there(db: Connection) -> bool:
    """Whether there are tables."""
    found = db.execute("SELECT to_regclass('muybridge_schema')").fetchone()
    return found is not None and found[0] is not None


def version_of(db: Connection, place: str) -> int:
    """Return the version of the tables in the database *place*.

    Raises:
        JournalUnusable: We do not know it.
    """
    found = db.execute("SELECT version FROM muybridge_schema").fetchall()
    versions = [int(version) for (version,) in found]
    if len(versions) != 1 or versions[0] not in (*schema.UPGRADES, schema.VERSION):
        named = ", ".join(map(str, versions)) or "none"
        raise JournalUnusable(
            f"{place}: its tables are of version {named}, and this muybridge knows version "
            f"{schema.VERSION}: upgrade muybridge on every machine. Nothing was sent."
        )
    return versions[0]
