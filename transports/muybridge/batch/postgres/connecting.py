"""Connections to PostgreSQL that lose nothing they have confirmed, and what to do about errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from muybridge.batch.journal_errors import JournalAway, JournalUnusable, Unstorable
from muybridge_protocol.records.json import readable

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as _missing:
    raise ModuleNotFoundError(
        'muybridge.batch.postgres needs psycopg: pip install "muybridge[postgres]"',
        name="psycopg",
    ) from _missing

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

OLDEST: Final = 14
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "muybridge",
    "connect_timeout": 10,
    # A server that has vanished is noticed within a minute, not after two hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    # Of several hosts, the one that takes writes.
    "target_session_attrs": "read-write",
}
_DURABLE: Final = {
    "fsync": "a power cut would lose what was paid for",
    "synchronous_commit": "a crash would lose what was paid for",
    "full_page_writes": "a power cut would corrupt what was paid for",
}


def named(url: str) -> str:
    """Return what to call the database at *url* in messages, without a user or a password.

    Raises:
        JournalUnusable: It is not the address of a database.
    """
    parts = _parts(url)
    host = readable(str(parts.get("host") or parts.get("hostaddr") or "this machine"), 200)
    return f"postgresql://{host}/{readable(str(parts.get('dbname', '')), 200)}"


def connect(url: str) -> Connection:
    """Return a connection to the database at *url*, whose commits are durable.

    Raises:
        JournalUnusable: It cannot be reached, is too old, or could lose what it has confirmed.
    """
    with telling(named(url)):
        db: Connection = psycopg.connect(
            make_conninfo(**{**_DEFAULTS, **_parts(url)}),
            autocommit=True,
            prepare_threshold=None,  # statements are not kept: a pooler may be in between
        )
    try:
        with telling(named(url)):
            _check(db, named(url))
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def telling(name: str) -> Generator[None, None, None]:
    """Turn an error of the database *name* into one that says what to do."""
    try:
        yield
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise Unstorable(f"{type(error).__name__}: {_said(error)}") from error
    except psycopg.Error as error:
        away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        kind = JournalAway if away else JournalUnusable
        raise kind(
            f"{name}: {_said(error)}. Nothing more is sent. Make the database reachable and "
            "writable, then run again."
        ) from error


def _check(db: Connection, name: str) -> None:
    """Refuse a server that could lose what it has confirmed."""
    if db.info.server_version < OLDEST * 10_000:
        raise JournalUnusable(
            f"{name}: PostgreSQL {OLDEST} or newer is required (found version "
            f"{db.info.server_version // 10_000})."
        )
    for setting, cost in _DURABLE.items():
        if _setting(db, setting) == "off":
            raise JournalUnusable(
                f"{name}: {setting} is off, so {cost}. Nothing was sent. Set it to on."
            )
    encoding = _setting(db, "server_encoding")
    if encoding != "UTF8":
        raise JournalUnusable(
            f"{name}: the database's encoding is {encoding}. Use a database with UTF8."
        )


def _setting(db: Connection, name: str) -> str:
    found = db.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return "" if found is None else str(found[0])


def _parts(url: str) -> dict[str, Any]:
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.Error:
        # The message of the library may repeat the password.
        raise JournalUnusable(
            "This is not the address of a database: use postgresql://USER@HOST/DATABASE."
        ) from None
    return parts


def _said(error: psycopg.Error) -> str:
    return readable(str(error).strip(), 500).rstrip(".")
