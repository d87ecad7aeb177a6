"""Connections to PostgreSQL that lose nothing they have confirmed, and what to do about errors."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from muybridge.extras import missing_extra
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.records.json import readable

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as _missing:
    raise missing_extra("muybridge.purchases.postgres", "psycopg", "postgres") from _missing

OLDEST: Final = 14
"""The oldest PostgreSQL that is supported."""
SILENCE: Final = 30.0
"""Seconds without a response after which the database is away."""
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
LIMITS: Final = {
    "idle_in_transaction_session_timeout": "10s",
    # Longer than a vanished machine can hold a lock, and shorter than `SILENCE`: a statement that
    # waits must not take effect after its worker has given up.
    "lock_timeout": "20s",
    "synchronous_commit": "on",
}
"""How long the server lets a transaction hold up the others, and that its commit is durable.

They are set once we are connected, because poolers refuse them as options of the connection. A
pooler may give each transaction to another server process, whose settings other clients have
changed, so behind one they are set in each transaction.
"""
_KEEPALIVES: Final = {
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""How the server notices a machine that has vanished, even while it waits for its data."""
_PREPARED_AFTER: Final = 5
"""How often a statement is executed before it is prepared."""
_DURABLE: Final = {
    "fsync": "a power cut would lose what was paid for",
    "synchronous_commit": "a crash would lose what was paid for",
    "full_page_writes": "a power cut would corrupt what was paid for",
}


_PAUSED: Final = frozenset({"25P03", "25P04"})
"""The server has ended a transaction in which we were paused for too long, and undone it."""


def named(url: str) -> str:
    """Return what to call the database at *url* in messages, without a user or a password.

    Raises:
        StoreUnusable: It is not the address of a database.
    """
    parts = _parts(url)
    host = readable(str(parts.get("host") or parts.get("hostaddr") or "this machine"), 200)
    return f"postgresql://{host}/{readable(str(parts.get('dbname', '')), 200)}"


class Silent(psycopg.OperationalError):
    """The server has not answered in time."""


def connect(url: str, ends: float = math.inf, *, after: Silent | None = None) -> Connection:
    """Return a connection to the database at *url*, whose commits are durable.

    Args:
        url: The database.
        ends: When to give up, by the monotonic clock.
        after: Why the connection is needed, if another one has fallen silent.

    Raises:
        StoreUnusable: It cannot be reached, is too old, or could lose what it has confirmed.
    """
    with telling(named(url), after):
        parts = {**_DEFAULTS, **_parts(url)}
        if math.isfinite(ends):
            # Each host has as long; libpq gives none less than 2 seconds, and 0 means for ever.
            hosts = str(parts.get("host", "")).count(",") + 1
            left = max(2, int((ends - time.monotonic()) / hosts))
            seconds = str(parts["connect_timeout"])
            parts["connect_timeout"] = (
                min(left, int(seconds) or left) if seconds.isdigit() else left
            )
        db = Connection.connect(make_conninfo(**parts), autocommit=True, prepare_threshold=None)
    db.ends = ends
    try:
        with telling(named(url), after):
            db.is_direct = _is_direct(db)
            _check(db, named(url))
            if db.is_direct:
                db.prepare_threshold = _PREPARED_AFTER
                db.execute(_settings("SET", {**LIMITS, **_KEEPALIVES}))
    except BaseException:
        db.close()
        raise
    return db


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that does not wait for ever for a server that has fallen silent.

    A network that swallows everything, or a proxy that hangs, is no error to a socket. The worker
    would hold the response to a paid request in memory, where a kill loses its id.
    """

    ends: float = math.inf
    """When it waits no more, by the monotonic clock."""
    is_direct: bool = False
    """Whether the server itself is at the other end, and no pooler."""

    def wait(self, gen: Any, *rest: Any, **more: Any) -> Any:
        """Wait as psycopg does, but not for ever; then close the connection and raise."""
        seconds = min(SILENCE, self.ends - time.monotonic())
        try:
            return super().wait(_within(gen, seconds), *rest, **more)
        except Silent:
            self.close()
            raise


def _within(steps: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Yield what *steps* yield, and raise `Silent` if they take longer than *seconds*."""
    ends = time.monotonic() + seconds
    try:
        waits_for = next(steps)
        while True:
            # Several times a second, psycopg says that nothing has happened.
            happened = yield waits_for
            if not happened and time.monotonic() > ends:
                raise Silent(f"no response within {max(seconds, 0):.2g} seconds")
            waits_for = steps.send(happened)
    except StopIteration as ended:
        return ended.value


def is_away(error: psycopg.Error) -> bool:
    """Whether *error* says that the database cannot be reached at the moment."""
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        or error.sqlstate in _PAUSED
    )


@contextmanager
def telling(name: str, after: Silent | None = None) -> Generator[None, None, None]:
    """Turn an error of the database *name* into one that says what to do.

    If a new connection fails *after* another one fell silent, the silence is half the story: a
    network that swallows everything looks different from a server that was never there.
    """
    try:
        yield
    except psycopg.Error as error:
        away = is_away(error)
        then = "" if away else ", then run again"  # a worker waits for one that is away
        before = "" if after is None else f"{after}, and a new connection failed: "
        raise StoreUnusable(
            f"{name}: {before}{message_of(error)}. Nothing more is sent. Make the database "
            f"reachable and writable{then}.",
            away=away,
        ) from error


def _check(db: Connection, name: str) -> None:
    """Refuse a server that could lose what it has confirmed."""
    if db.info.server_version < OLDEST * 10_000:
        raise StoreUnusable(
            f"{name}: PostgreSQL {OLDEST} or newer is required (found version "
            f"{db.info.server_version // 10_000})."
        )
    for setting, cost in _DURABLE.items():
        if setting in LIMITS and not db.is_direct:
            continue  # another client may have changed it; each of our transactions sets it
        if _setting(db, setting) == "off":
            raise StoreUnusable(
                f"{name}: {setting} is off, so {cost}. Nothing was sent. Set it to on."
            )
    encoding = _setting(db, "server_encoding")
    if encoding != "UTF8":
        raise StoreUnusable(
            f"{name}: the database's encoding is {encoding}. Use a database with UTF8."
        )


def _is_direct(db: Connection) -> bool:
    """Whether the server itself answers, so that it may keep prepared statements.

    Behind a pooler, they could be those of another client, which uses the same names. A pooler
    invents the process id that it gives to clients.
    """
    return db.execute("SELECT pg_backend_pid()").fetchone() == (db.info.backend_pid,)


def _settings(how: str, values: Mapping[str, str]) -> bytes:
    return "; ".join(f"{how} {name} = '{value}'" for name, value in values.items()).encode()


def _setting(db: Connection, name: str) -> str:
    row = db.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])


def _parts(url: str) -> dict[str, Any]:
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.Error:
        # The message of the library may repeat the password.
        raise StoreUnusable(
            "This is not the address of a database: use postgresql://USER@HOST/DATABASE."
        ) from None
    return parts


def message_of(error: psycopg.Error) -> str:
    """Return what the database says, in one line of bounded length."""
    lines = (" ".join(line.split()) for line in str(error).strip().splitlines())
    return readable("; ".join(lines), 500).rstrip(".?!")
