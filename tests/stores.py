"""Stores of purchases in tests: where they are, what is in them, and what people decide."""

from __future__ import annotations

from pathlib import Path

import attrs

from muybridge.purchases import Choice, Purchase, Store, open_store
from muybridge.purchases import postgres as in_postgres
from muybridge.purchases import sqlite as in_sqlite
from muybridge_protocol.purchases import Order


def purchases_at(place: str | Path) -> list[Purchase]:
    """Return what is in the store at *place*, from the oldest on, as another process finds it."""
    with open_store(place) as store:
        store.sweep()
        return [*store.purchases()]


def decide(place: str | Path, key: str, choice: Choice, task: str | None = None) -> Purchase:
    """Decide about a purchase, as another process does."""
    with open_store(place) as store:
        return store.decide(key, choice, task)


def like(purchase: Purchase) -> Order:
    """Return the order of a purchase, to buy the same under the same name."""
    return Order(**{one.name: getattr(purchase, one.name) for one in attrs.fields(Order)})


def at(place: str | Path, wall: float | str) -> Store:
    """Return a store whose clock is *wall*: a number, or what SQL makes of it."""
    if str(place).startswith("postgresql"):
        words = {**in_postgres.WORDS, "now": f"CAST({wall} AS double precision)"}
        return Store(in_postgres.PostgresDatabase(str(place), words=words))
    words = {**in_sqlite.WORDS, "now": f"{wall}"}
    return Store(in_sqlite.SqliteDatabase(Path(place), words=words))
