"""Statements are prepared only where the server that keeps them is the one that answers."""

from __future__ import annotations

from typing import Any

import pytest

from .postgres_server import Postgres
from .relay import Relay, as_a_pooler

connecting = pytest.importorskip("muybridge.purchases.postgres_connections")

_PREPARED = "SELECT count(*) FROM pg_prepared_statements"


def how_many_are_kept(db: Any) -> int:
    """Return how many statements the server has prepared after one was executed ten times."""
    for _ in range(10):
        db.execute("SELECT 1")
    ((count,),) = db.execute(_PREPARED, prepare=False).fetchall()
    return int(count)


def test_a_statement_that_returns_is_prepared(postgres: Postgres) -> None:
    """The server parses and plans a statement once, although it is executed ten times."""
    with connecting.connect(postgres.url) as db:
        assert how_many_are_kept(db) == 1


def test_nothing_is_prepared_behind_a_pooler(postgres: Postgres) -> None:
    """A pooler gives its own process id, and may give the next statement to another server."""
    with Relay(postgres.url) as relay:
        relay.rewrite = as_a_pooler
        with connecting.connect(relay.address) as db:
            assert db.info.backend_pid == 1
            assert how_many_are_kept(db) == 0
