"""A store in PostgreSQL: what a server, a pooler and an administrator may do to it."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from muybridge.purchases import Store, StoreUnusable, open_store
from muybridge_protocol.purchases import Measure, Outcome, State

from .racer import order_of

if TYPE_CHECKING:
    from batch.postgres_server import Postgres


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.fresh()


@pytest.fixture
def store(url: str) -> Generator[Store]:
    with open_store(url) as opened:
        yield opened


def end_connections(postgres: Postgres) -> None:
    """End every connection of the store, as a restart and a failover do."""
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'muybridge' AND pid <> pg_backend_pid()"
    )


def test_a_connection_that_has_ended_between_two_transactions(
    store: Store, postgres: Postgres
) -> None:
    """Nobody notices: the next transaction has another one."""
    bought = store.arm(order_of())
    assert store.find(bought.key) == bought
    end_connections(postgres)
    store.conclude(bought.key, Outcome(state=State.RELEASED))
    assert store.find(bought.key).state is State.RELEASED


@pytest.mark.parametrize("moment", ["within", "at the end"])
@pytest.mark.parametrize("arms", [False, True], ids=["conclude", "arm"])
def test_a_connection_that_ends_in_a_transaction(
    store: Store, postgres: Postgres, moment: str, *, arms: bool
) -> None:
    """Nobody sends, nothing stays reserved, and an outcome is recorded later."""
    bought = store.arm(order_of())
    database: Any = store.database
    whole, end = database.transaction, database.end

    @contextmanager
    def broken(**options: Any) -> Generator[Any]:
        with whole(**options) as rows:
            end_connections(postgres)
            yield rows

    def ending(db: Any) -> None:
        end_connections(postgres)
        end(db)

    if moment == "within":
        database.transaction = broken
    else:
        database.end = ending

    def use() -> None:
        if arms:
            store.arm(order_of("once x"))
        else:
            store.conclude(bought.key, Outcome(state=State.RELEASED))

    with pytest.raises(StoreUnusable, match="Make the database reachable"):
        use()
    database.transaction, database.end = whole, end
    store.arm(order_of("once x"))
    assert store.spent()[Measure.CREATES] == (2 if arms else 1)


def test_each_transaction_has_its_own_limits(store: Store) -> None:
    """Another client of a pooler may have changed those of the session."""
    store.arm(order_of())
    database: Any = store.database
    with database.transaction() as rows:
        rows.run("SET synchronous_commit = off")
        rows.run("SET lock_timeout = 0")
        rows.run("SET default_transaction_isolation = 'serializable'")
    with database.transaction() as rows:
        for name, expected in {
            "synchronous_commit": "on",
            "lock_timeout": "20s",
            "idle_in_transaction_session_timeout": "10s",
            "transaction_isolation": "read committed",
        }.items():
            assert rows.run(f"SELECT current_setting('{name}')") == [(expected,)]


def test_tables_that_are_dropped_while_they_are_in_use(store: Store, url: str) -> None:
    """Nobody creates new ones, which would know nothing."""
    store.arm(order_of())
    database: Any = store.database
    with database.transaction() as rows:
        rows.run("DROP TABLE muybridge_store")
        rows.run("DROP TABLE muybridge_purchases")
    for use in (lambda: store.arm(order_of()), store.spent):
        with pytest.raises(StoreUnusable, match="removed"):
            use()
    with open_store(url) as other:
        assert other.spent()[Measure.CREATES] == 0


def test_a_server_that_is_away(tmp_path: str) -> None:
    """Nothing is sent, and the message names the place without a password."""
    place = f"postgresql://me:secret@/horses?host={tmp_path}"
    with open_store(place) as store, pytest.raises(StoreUnusable) as told:
        store.arm(order_of())
    assert "secret" not in str(told.value)
    assert "postgresql://" in str(told.value)


def test_a_fork_has_connections_of_its_own(store: Store) -> None:
    """And it is another owner."""
    mine = store.arm(order_of())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if store.arm(order_of()).owner != mine.owner else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    store.conclude(mine.key, Outcome(state=State.RELEASED))
    assert store.spent()[Measure.CREATES] == 1
