"""The database goes away while responses are in hand: none is lost, and nothing is sent twice."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import moments
from muybridge.batch import Report, SharedBatch, Stage
from muybridge.cli.commands import muybridge
from muybridge.purchases import EVERYTHING, Budget, Measure, State, StoreUnusable, open_store

from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .postgres_server import Postgres
from .relay import Relay
from .runner_process import KEY, horses

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


def crash(postgres: Postgres) -> None:
    """Stop a server as if it had crashed."""
    process = postgres.server.get_postmaster_info().process
    os.kill(process.pid, signal.SIGQUIT)
    process.wait(30)


def test_the_server_is_restarted(
    work: Work, server: BillingServer, shared: SharedBatch, postgres: Postgres
) -> None:
    """A worker waits for a server that has stopped at once, and records the responses then."""
    submit(server, shared, 6)
    server.on_create = at_create(3, partial(crash, postgres))
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


def settled(server: BillingServer, place: str, report: Report) -> None:
    """Check that a run of six has ended well, and that the store has what the service accepted."""
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 6}, ())
    assert (server.posts, server.doubles) == (6, [])
    with open_store(place) as store:
        assert store.spent()[Measure.CREATES] == 6
        assert {one.state for one in store.purchases()} == {State.ACCEPTED}


def test_a_run_whose_database_is_back_at_once(
    run: Run, server: BillingServer, postgres: Postgres
) -> None:
    """A restart while responses are on their way goes unnoticed."""
    place = postgres.fresh()

    def restart() -> None:
        crash(postgres)
        postgres.server.ensure_postgres_running()

    server.on_create = at_create(3, restart)
    settled(server, place, run(server, horses(6), store=place, concurrency=3))


def test_a_run_whose_database_is_away(run: Run, server: BillingServer, postgres: Postgres) -> None:
    """It stops and says why, and the next one records the responses that had arrived."""
    place = postgres.fresh()
    server.on_create = at_create(3, partial(crash, postgres))
    said = r"Nothing more is sent\. Make the database reachable and writable"
    try:
        with pytest.raises(StoreUnusable, match=said) as caught:
            run(server, horses(6), store=place, concurrency=3)
    finally:
        postgres.server.ensure_postgres_running()
    assert "the next run reads them" in " ".join(caught.value.__notes__)
    assert server.posts == 3
    settled(server, place, run(server, None, store=place))


def test_the_command_says_how_to_resume(
    server: BillingServer, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last line is the command that does, without the password of the database."""
    place = postgres.fresh()
    monkeypatch.setenv("MUYBRIDGE_API_KEY", KEY)
    monkeypatch.setenv("MUYBRIDGE_BASE_URL", server.url)
    file, out = tmp_path / "horses.jsonl", tmp_path / "out"
    file.write_text("\n".join(map(json.dumps, horses(6))), "utf-8")
    server.on_create = at_create(3, partial(crash, postgres))
    words = ["batch", "run", str(file), "--out", str(out), "--concurrency", "3", "--store", place]
    try:
        done = CliRunner().invoke(muybridge, words)
    finally:
        postgres.server.ensure_postgres_running()
    assert done.exit_code == 6
    assert "Nothing more is sent. Make the database reachable" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"to resume: muybridge batch run --out {out}")
    assert "--store URL" in last
    again = shlex.split(last.removeprefix("to resume: muybridge "))
    done = CliRunner().invoke(muybridge, [place if one == "URL" else one for one in again])
    assert done.exit_code == 0, done.stderr
    assert (server.posts, server.doubles) == (6, [])


@pytest.mark.nightly
@pytest.mark.parametrize("promoted", ["before the response", "after the run"])
def test_a_run_whose_database_fails_over(run: Run, server: BillingServer, promoted: str) -> None:
    """The copy has what the first server had, and nothing is sent before it takes its place."""
    from purchases.servers import a_pair, kill

    with a_pair() as pair:
        with open_store(pair.url) as store:
            store.limit(EVERYTHING, Budget(creates=6))  # so that there are tables
        pair.copy(follows=True)

        def fail_over() -> None:
            pair.wait_until_it_has(3)
            kill(pair.first)
            if promoted == "before the response":
                pair.promote()

        server.on_create = at_create(3, fail_over)
        if promoted == "after the run":
            with pytest.raises(StoreUnusable, match="Nothing more is sent"):
                run(server, horses(6), store=pair.url, concurrency=3)
            assert server.posts == 3
            pair.promote()
            settled(server, pair.url, run(server, None, store=pair.url))
        else:
            settled(server, pair.url, run(server, horses(6), store=pair.url, concurrency=3))
