"""The request rate of an account in PostgreSQL, shared by all batches of its service."""

from __future__ import annotations

from typing import Final

from muybridge.batch.limits.rate import Permits, RequestRate
from muybridge.batch.postgres.connecting import Connection

BEGIN: Final = "INSERT INTO muybridge_rates (service) VALUES (%s) ON CONFLICT DO NOTHING"

_LIMIT: Final = """
UPDATE muybridge_rates SET rate = %(rate)s, next_at = 0
WHERE service = %(service)s AND rate IS DISTINCT FROM %(rate)s
"""

_READ: Final = """
SELECT rate, next_at, paused_until, written_at, extract(epoch FROM clock_timestamp())::float8,
    (SELECT count(*) FROM muybridge_workers AS workers
     JOIN muybridge_batches AS batches ON batches.id = workers.batch
     WHERE batches.service = %(service)s AND workers.buried_at IS NULL
        AND workers.lease_until > clock_timestamp())
FROM muybridge_rates WHERE service = %(service)s
"""
_WRITE: Final = """
UPDATE muybridge_rates SET next_at = %s, paused_until = %s, written_at = %s WHERE service = %s
"""


def limit(db: Connection, service: str, rate: float | None) -> None:
    """Set the rate of an account, or none. Another one does not wait for the seats of the last."""
    with db.change():
        db.execute(_LIMIT, {"rate": rate, "service": service})


def acquire(db: Connection, service: str, wanted: int) -> Permits:
    """Acquire permits. Without a rate, nothing is written."""
    rate, sharers, now = _read(db, _READ, service)
    if rate.rate is None:
        return rate.acquire(wanted, sharers=sharers, now=now)[1]
    with db.changing():
        _hasten(db)
        rate, sharers, now = _read(db, f"{_READ} FOR UPDATE", service)
        after, permits = rate.acquire(wanted, sharers=sharers, now=now)
        _write(db, service, after)
    return permits


def throttle(db: Connection, service: str, seconds: float) -> None:
    """Give no permits for so many seconds."""
    with db.changing():
        _hasten(db)
        rate, _, now = _read(db, f"{_READ} FOR UPDATE", service)
        _write(db, service, rate.throttled(seconds, now=now))


def _hasten(db: Connection) -> None:
    """Do not wait for the disk: permits that a crash forgets are asked for again."""
    db.execute("SET LOCAL synchronous_commit = off")


def _read(db: Connection, statement: str, service: str) -> tuple[RequestRate, int, float]:
    """Return the rate, how many workers share it, and the time."""
    row = db.execute(statement.encode(), {"service": service}).fetchone()
    assert row is not None  # noqa: S101  the batch was begun with it
    rate, next_at, paused_until, written_at, now, sharers = row
    return (
        RequestRate(rate=rate, next_at=next_at, paused_until=paused_until, written_at=written_at),
        sharers,
        now,
    )


def _write(db: Connection, service: str, rate: RequestRate) -> None:
    db.execute(_WRITE, (rate.next_at, rate.paused_until, rate.written_at, service))
