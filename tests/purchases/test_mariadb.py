"""A database that was made from the page alone passes the kit."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, ClassVar, cast

import pytest

from muybridge.purchases import Database, Store, StoreUnusable
from muybridge.testing.store_conformance import StoreCapabilities, StoreConformance
from muybridge_protocol.purchases import Measure, Outcome, State

from .mariadb_server import Mariadb, running
from .on_mariadb import WORDS, MariaDatabase
from .racer import order_of
from .refusals import refused


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    """A server."""
    with running() as serving:
        yield serving


class TestMariadb(StoreConformance):
    """It commits before each change of its tables, and that is declared."""

    capabilities: ClassVar[StoreCapabilities] = StoreCapabilities(
        shows_syncs=False, notices_copies_later=False, undoes_tables=False
    )

    @pytest.fixture(autouse=True)
    def _server(self, mariadb: Mariadb) -> None:
        self.mariadb = mariadb

    def make_database(self) -> Database:
        return self._at(self.mariadb.fresh())

    def reopen(self, database: Database, now: str | None = None) -> Database:
        return self._at(cast("MariaDatabase", database).options, now)

    def _at(self, options: dict[str, Any], now: str | None = None) -> Database:
        stands = {} if now is None else {"now": f"CAST({now} AS DOUBLE)"}
        database = MariaDatabase(words={**WORDS, **stands}, **options)
        self._open.callback(database.close)
        return database


def test_a_server_that_could_forget_is_refused(mariadb: Mariadb) -> None:
    """Nothing is sent."""
    mariadb.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    try:
        with pytest.raises(StoreUnusable, match="power cut"):
            Store(MariaDatabase(**mariadb.fresh())).arm(order_of())
    finally:
        mariadb.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


# PyMySQL leaves the socket of a connection that fails to the collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("how", ["crashes", pytest.param("hangs", marks=pytest.mark.nightly)])
def test_a_server_that_fails(mariadb: Mariadb, how: str) -> None:
    """Everybody is refused, and what was on its way is recorded once it answers again."""
    with Store(MariaDatabase(**mariadb.fresh())) as store:
        bought = store.arm(order_of("once x"))
        with ExitStack() as stack:
            if how == "hangs":
                stack.enter_context(mariadb.hanging())
            else:
                mariadb.end()
                stack.callback(mariadb.start)
            refused(
                *[lambda: store.arm(order_of())] * 6,
                lambda: store.conclude(bought.key, Outcome(state=State.AMBIGUOUS)),
                store.spent,
            )
        store.arm(order_of())
        assert store.find(bought.key).state is State.AMBIGUOUS
        assert store.spent()[Measure.CREATES] == 2
    gc.collect()
