"""The database goes away while responses are in hand: none is lost, and nothing is sent twice."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

import moments
from muybridge.batch import SharedBatch, Stage

from .billing import BillingServer
from .conftest import Work
from .fixtures import submit
from .postgres_server import Postgres
from .relay import Relay

connecting = pytest.importorskip("muybridge.purchases.postgres_connections")


@contextmanager
def once_it_waits(act: Callable[[], None]) -> Generator[list[str], None, None]:
    """Call *act* when a worker says that it waits, and yield what it says."""
    said: list[str] = []

    class Ears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            act()

    ears, logger = Ears(), logging.getLogger("muybridge.batch")
    logger.addHandler(ears)
    try:
        yield said
    finally:
        logger.removeHandler(ears)


def at_create(number: int, act: Callable[[], None]) -> Callable[[str], None]:
    """Return what calls *act* when the create *number* has been accepted, before its response."""
    met = threading.Barrier(number, action=act)
    calls = iter(range(number))

    def meet(_: str) -> None:
        if next(calls, None) is not None:
            met.wait(30)

    return meet


def test_the_server_is_restarted(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A worker waits for a server that has stopped at once, and records the responses then."""
    submit(server, shared, 6)

    def stop() -> None:
        process = postgres.server.get_postmaster_info().process
        os.kill(process.pid, signal.SIGQUIT)  # it stops as if it had crashed
        process.wait(30)

    server.on_create = at_create(3, stop)
    with once_it_waits(postgres.server.ensure_postgres_running) as said:
        report = work(server, shared, creates=3, lease=5)
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 6}, ())
    assert (server.posts, server.doubles) == (6, [])
    assert "waits up to 600 seconds" in said[0]


def test_the_network_swallows_everything(
    work: Work,
    server: BillingServer,
    shared: SharedBatch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker does not wait for ever for a database that has fallen silent."""
    monkeypatch.setattr(*moments.constant("silence of a database"), 0.5)
    monkeypatch.setattr(*moments.constant("patience with a database"), 2.0)
    submit(server, shared, 4)
    with Relay(str(shared.store)) as relay:
        server.on_create = at_create(2, relay.swallow)
        with once_it_waits(relay.heal) as said:
            behind = SharedBatch(relay.address, shared.name)
            report = work(server, behind, creates=2, lease=5)
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 4}, ())
    assert (server.posts, server.doubles) == (4, [])
    assert "127.0.0.1" in said[0]
    assert "no response within 0.5 seconds" in said[0]
    assert "waits up to 600 seconds" in said[0]
