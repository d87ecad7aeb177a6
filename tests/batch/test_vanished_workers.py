"""A worker's machine vanishes, or is paused, within a transaction: the others soon go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge import batch
from muybridge.batch import SharedBatch, Stage, StoreUnusable
from muybridge_protocol.purchases import Budget
from muybridge_protocol.service import Service

from .billing import BillingServer
from .conftest import Work
from .postgres_server import Postgres
from .relay import Relay
from .runner_process import horses

connecting = pytest.importorskip("muybridge.purchases.postgres_connections")

ITEMS = 4
LOCKS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "budget": (b"muybridge_spent", {"budget": Budget(creates=ITEMS)}),
    "rate": (b"muybridge_rates", {"rate": 100.0}),
}
_IN_A_TRANSACTION = """
SELECT count(*) FROM pg_stat_activity, pg_sleep(0.05)
WHERE state = 'idle in transaction' AND query LIKE %s
"""


@pytest.fixture(params=LOCKS)
def locked(request: pytest.FixtureRequest, shared: SharedBatch, server: BillingServer) -> bytes:
    """The table whose row a worker locks in a transaction, in a batch that has begun."""
    table, options = LOCKS[request.param]
    batch.submit(shared, horses(ITEMS), Service(base_url=server.url), **options)
    return table


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server end a transaction after half a second, in place of ten."""
    limits = {"idle_in_transaction_session_timeout": "500ms", "lock_timeout": "10s"}
    known = getattr(connecting, "LIMITS", {})
    monkeypatch.setattr(*moments.constant("settings of a connection"), {**known, **limits})
    begin = moments.constant("what begins a transaction")
    quick = getattr(*begin).replace(b"'10s'", b"'500ms'").replace(b"'20s'", b"'10s'")
    monkeypatch.setattr(*begin, quick)


def once_it_locks(table: bytes, act: Callable[[], object]) -> Callable[[bytes], bytes]:
    """Return what relays, and calls *act* when a statement first locks a row of *table*."""
    first = [act]

    def relay(data: bytes) -> bytes:
        if first and table in data and b"FOR UPDATE" in data:
            first.pop()()
        return data

    return relay


def test_a_machine_that_vanishes_holds_nobody_up(
    locked: bytes,
    work: Work,
    server: BillingServer,
    shared: SharedBatch,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Its locks end with its transaction: those of the budget, of the rate and of its own row."""
    with Relay(str(shared.store)) as relay:
        relay.rewrite = once_it_locks(locked, relay.swallow)
        behind = SharedBatch(relay.address, shared.name)
        with monkeypatch.context() as gone:
            gone.setattr(*moments.constant("silence of a database"), 0.3)
            gone.setattr(*moments.constant("patience with a database"), 2.0)
            with pytest.raises(StoreUnusable):
                work(server, behind, out=tmp_path / "gone", lease=2, patience=0)
        assert server.posts == 0
        monkeypatch.setattr(*moments.constant("silence of a database"), 5.0)
        report = work(server, shared, lease=2, patience=5)
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: ITEMS}, ())
    assert (server.posts, server.doubles) == (ITEMS, [])


def test_a_worker_whose_transaction_was_ended_goes_on(
    locked: bytes, work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A worker that was paused within a transaction has sent nothing for it, and takes it again."""
    waited: list[int] = []

    def pause() -> None:
        # The statement itself has not arrived yet; the one before it has begun the transaction.
        for _ in range(200):
            ((idle,),) = postgres.execute(_IN_A_TRANSACTION, "%")
            waited.append(idle)
            if waited[-2:] != [0, 0] and idle == 0:
                return

    with Relay(str(shared.store)) as relay:
        relay.rewrite = once_it_locks(locked, pause)
        report = work(server, SharedBatch(relay.address, shared.name), lease=5)
    assert waited[0] == 1
    assert waited[-1] == 0, "the server ended it"
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: ITEMS}, ())
    assert (server.posts, server.doubles) == (ITEMS, [])


def test_no_lock_outlives_a_guess(postgres: Postgres) -> None:
    """What is set when we are connected is what the pages say."""
    names = (*connecting.LIMITS, "tcp_keepalives_idle", "tcp_user_timeout")
    with connecting.connect(postgres.url) as db:
        (sources,) = zip(
            *db.execute(
                "SELECT source FROM pg_settings WHERE name = ANY (%s)", ([*names],)
            ).fetchall(),
            strict=True,
        )
        assert sources == ("session",) * len(names)
        show = "SELECT current_setting('lock_timeout')"
        assert db.execute(show).fetchone() == ("10s",)
