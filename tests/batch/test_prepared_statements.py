"""Statements are prepared only where the server that keeps them is the one that answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from muybridge.testing.journal_conformance import SERVICE
from muybridge.testing.journal_conformance.any_journal import new_items

from .postgres_server import Postgres
from .relay import Relay, as_a_pooler

journal = pytest.importorskip("muybridge.batch.postgres.journal")
connecting = pytest.importorskip("muybridge.purchases.connecting")
schema = pytest.importorskip("muybridge.batch.postgres.schema")

_PREPARED = "SELECT count(*) FROM pg_prepared_statements"
_PARAMETER = re.compile(r"%\((\w+)\)s")


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


@pytest.mark.parametrize(
    "statement",
    [schema.ARM, schema.MOVE.format(facts="")],
    ids=["arm", "move"],
)
def test_a_step_finds_its_item_by_number(statement: str, postgres: Postgres) -> None:
    """A prepared step does not read all that its worker owns, which may be thousands of items."""
    url = postgres.fresh()
    journal.PostgresJournal.create(url, "horses", SERVICE, new_items(1_000)).close()
    names = list(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement)
    values = ", ".join("NULL" for _ in names)
    with connecting.connect(url) as db:
        db.execute("SET plan_cache_mode = force_generic_plan")
        db.execute(f"PREPARE step AS {numbered}".encode())
        plan = db.execute(f"EXPLAIN EXECUTE step ({values})".encode()).fetchall()
    indexes = re.findall(r"using (\w+) on muybridge_items", str(plan))
    assert indexes == ["muybridge_items_pkey"]
