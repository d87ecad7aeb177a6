"""A store in PostgreSQL whose server restarts, hangs, fails over, or is behind a pooler.

Nothing is sent that is not armed, nothing that was refused stays reserved, and every message says
so and what to do, within 30 seconds.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

import pytest

import moments
from muybridge.purchases import CannotDecide, Database, Store, StoreUnusable, open_store
from muybridge.testing.store_conformance import StoreCapabilities
from muybridge_protocol.purchases import Budget, Choice, Measure, Outcome, State
from muybridge_protocol.records.tasks import Task

from .kits import OnPostgres
from .racer import order_of
from .refusals import refused
from .suspended import suspended

servers = pytest.importorskip("purchases.servers")
if TYPE_CHECKING:
    from batch.postgres_server import Postgres

    from .servers import Pair

NOON = 1_772_366_400.0
HOUR = 3600.0
ACCEPTED = Outcome(state=State.ACCEPTED, task=Task(id="T"))


def spent(store: Store) -> int:
    """Return how many creates count as spent."""
    return int(store.spent()[Measure.CREATES] or 0)


@pytest.fixture
def store(postgres: Postgres) -> Iterator[Store]:
    with open_store(postgres.fresh()) as opened:
        yield opened


def test_a_server_that_restarts(store: Store, postgres: Postgres) -> None:
    """What was on its way is recorded once it runs again."""
    bought = store.arm(order_of("once x"))
    servers.kill(postgres.server)
    try:
        refused(
            lambda: store.arm(order_of()),
            lambda: store.conclude(bought.key, ACCEPTED),
            lambda: store.decide(bought.key, Choice.ABANDON),
            store.spent,
        )
    finally:
        postgres.server.ensure_postgres_running()
    store.arm(order_of())
    found = store.named("a", "once x")
    assert found is not None
    assert found.task == "T"
    assert spent(store) == 2


@pytest.mark.parametrize(
    "limit", [1.0, pytest.param(None, marks=pytest.mark.nightly)], ids=["short", "real"]
)
def test_a_server_that_hangs(
    store: Store, postgres: Postgres, limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay open, and nothing answers: neither the old ones nor new ones."""
    if limit is not None:
        for name in ("patience with a database", "patience with BEGIN"):
            monkeypatch.setattr(*moments.constant(name), limit)
    bought = store.arm(order_of())
    with suspended(postgres.server.get_postmaster_info().pid):
        refused(
            *[lambda: store.arm(order_of())] * 6,
            lambda: store.conclude(bought.key, Outcome(state=State.RELEASED)),
            store.spent,
        )
    store.arm(order_of())
    assert store.find(bought.key).state is State.RELEASED
    assert spent(store) == 1


@pytest.fixture
def pair() -> Iterator[Pair]:
    with servers.a_pair() as running:
        yield running


@pytest.mark.nightly
def test_a_failover_that_loses_nothing(pair: Pair) -> None:
    """The same store goes on with the copy that has followed."""
    with open_store(pair.url) as store:
        store.limit("", Budget(creates=2))
        bought = store.arm(order_of("once x"))
        pair.copy(follows=True)
        store.arm(order_of())
        pair.wait_until_it_has(2)
        servers.kill(pair.first)
        refused(lambda: store.arm(order_of()))  # the copy takes no writes yet
        pair.promote()
        store.conclude(bought.key, ACCEPTED)
        with open_store(pair.url) as other:
            found = other.named("a", "once x")
            assert found is not None
            assert found.task == "T"
            assert spent(other) == 2


def test_a_failover_to_a_copy_that_lacks_the_last_purchase(pair: Pair) -> None:
    """It is refused by whoever knows better, until the first server is back."""
    with open_store(pair.url) as store:
        store.arm(order_of())
        pair.copy(follows=False)
        store.arm(order_of("once x"))
        servers.kill(pair.first)
        pair.start_copy()
        for use in (lambda: store.arm(order_of("once x")), store.spent):
            with pytest.raises(
                StoreUnusable, match=r"older copy\. Nothing is sent\. Put the latest"
            ):
                use()
        servers.kill(pair.second)
        pair.first.ensure_postgres_running()
        store.arm(order_of())
        assert spent(store) == 3


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off(postgres: Postgres, hours: int) -> None:
    """That of the database counts; a person who may send again has to wait for both."""
    kit = OnPostgres()
    kit.setup_method()
    url = postgres.fresh()
    database = NOON + hours * HOUR

    def at(wall: float) -> Store:
        return Store(kit.at(url, f"{wall}"))

    try:
        bought = at(database).arm(order_of("once x"), lasts=100)
        assert at(database + 100).sweep() == 0
        later = at(database + 106)
        assert later.sweep() == 1
        here = NOON + 106
        if hours > 0:  # the database is ahead: it may have jumped
            with pytest.raises(CannotDecide, match="Decide later"):
                later.decide(bought.key, Choice.RESUBMIT, wall=here)
            here += HOUR
        assert later.decide(bought.key, Choice.RESUBMIT, wall=here).state is State.RESUBMITTED
    finally:
        kit.teardown_method()


@pytest.fixture(scope="module")
def pooler(postgres: Postgres) -> Iterator[str]:
    with servers.pooled(postgres) as address:
        yield cast("str", address)


class TestPooled(OnPostgres):
    """Behind PgBouncer in transaction mode, the kit is passed too."""

    pytestmark = pytest.mark.nightly
    capabilities = StoreCapabilities(shows_syncs=False, notices_copies_later=False)

    @pytest.fixture(autouse=True)
    def _pooler(self, pooler: str) -> None:
        self.address = pooler

    def make_database(self) -> Database:
        name = f"pooled_{secrets.token_hex(6)}"
        self.postgres.execute(f"CREATE DATABASE {name}")
        return self.at(self.address.format(database=name))


def test_behind_a_pooler(pooler: str, postgres: Postgres) -> None:
    """Each transaction may get another connection, with settings that others have changed."""
    name = f"pooled_{secrets.token_hex(6)}"
    postgres.execute(f"CREATE DATABASE {name}")
    released = Outcome(state=State.RELEASED)
    kit = TestPooled()
    kit.postgres, kit.address = postgres, pooler
    kit.setup_method()
    kit.test_it_is_created_once()
    kit.teardown_method()
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(pooler.format(database=name))) for _ in range(6)]
        for n, store in enumerate(stores):
            bought = store.arm(order_of(f"once {n}"))
            with store.database.transaction() as rows:
                rows.run("SET synchronous_commit = off")
            stores[n - 1].conclude(bought.key, ACCEPTED if n == 0 else released)
        assert [spent(store) for store in stores] == [1] * 6
        with stores[0].database.transaction() as rows:
            assert rows.run("SELECT current_setting('synchronous_commit')") == [("on",)]
