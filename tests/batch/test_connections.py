"""Connections to PostgreSQL: how long they wait, and what they are called."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import moments
from muybridge import Client, batch
from muybridge.batch import SharedBatch, Stage
from muybridge.purchases.errors import StoreUnusable

from .billing import BillingServer
from .fixtures import submit
from .postgres_server import Postgres
from .relay import Relay, as_a_pooler
from .runner_process import KEY

psycopg = pytest.importorskip("psycopg")
conninfo_to_dict, make_conninfo = psycopg.conninfo.conninfo_to_dict, psycopg.conninfo.make_conninfo
connecting = pytest.importorskip("muybridge.purchases.postgres_connections")

_LONGER = "SELECT pg_sleep(0.6)"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a third of a second too long."""
    monkeypatch.setattr(*moments.constant("silence of a database"), 0.3)


def test_a_server_that_vanishes_is_noticed_within_a_minute(postgres: Postgres) -> None:
    """The system's own settings would wait for two hours."""
    with connecting.connect(postgres.url) as db:
        settings = db.info.get_parameters()
    wanted = {
        "connect_timeout": "10",
        "keepalives_idle": "15",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
        "target_session_attrs": "read-write",
        "application_name": "muybridge",
    }
    assert {name: settings.get(name) for name in wanted} == wanted
    assert connecting.SILENCE == 30, "as the page on many machines says"


def test_the_address_can_change_a_setting(postgres: Postgres) -> None:
    """What a user gives comes before our own settings."""
    with connecting.connect(f"{postgres.url}&connect_timeout=7") as db:
        assert db.info.get_parameters()["connect_timeout"] == "7"


@pytest.mark.usefixtures("impatient")
def test_a_silent_server_is_given_up(postgres: Postgres) -> None:
    """The connection is closed, because the response could still arrive instead of another one."""
    with Relay(postgres.url) as relay:
        db = connecting.connect(relay.address)
        relay.swallow()
        with pytest.raises(psycopg.OperationalError, match=r"^no response within 0\.3 seconds$"):
            db.execute("SELECT 1")
        assert db.closed


def test_a_slow_server_is_waited_for(postgres: Postgres) -> None:
    """A statement may take a while, as long as that is less than half a minute."""
    with connecting.connect(postgres.url) as db:
        assert db.execute(_LONGER).fetchone() is not None


def test_a_statement_is_prepared_when_it_comes_back(postgres: Postgres) -> None:
    """The server keeps it from the sixth time on: what is executed once is not worth it."""
    kept: list[Any] = []
    with connecting.connect(postgres.url) as db:
        for _ in range(6):
            db.execute("SELECT 1")
            kept += db.execute("SELECT count(*) FROM pg_prepared_statements", prepare=False)
    assert [count for (count,) in kept] == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://rider:secret@db.example/horses", "postgresql://db.example/horses"),
        ("hostaddr=127.0.0.1 dbname=horses", "postgresql://127.0.0.1/horses"),
        ("dbname=horses", "postgresql://this machine/horses"),
        ("postgresql://db.example", "postgresql://db.example/"),
        (f"host={'h' * 300} dbname=horses", f"postgresql://{'h' * 200}.../horses"),
        (f"host=db dbname={'d' * 300}", f"postgresql://db/{'d' * 200}..."),
    ],
)
def test_a_database_has_a_short_name(address: str, name: str) -> None:
    """Messages name it without a user or a password, and never at length."""
    assert connecting.named(address) == name


def test_an_address_that_is_none_is_not_repeated() -> None:
    """It may hold a password."""
    with pytest.raises(StoreUnusable, match=r"^This is not the address") as failed:
        connecting.named("postgresql//rider:secret@db.example")
    assert "secret" not in str(failed.value)


def test_a_database_of_another_encoding_is_refused(postgres: Postgres) -> None:
    """It could not keep the texts of every request."""
    with suppress(psycopg.errors.DuplicateDatabase):
        postgres.execute("CREATE DATABASE plain TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    url = urlsplit(postgres.url)._replace(path="/plain").geturl()
    with pytest.raises(StoreUnusable, match=r"encoding is LATIN1\. Use a database with UTF8"):
        connecting.connect(url)


@pytest.mark.parametrize(
    ("error", "away", "end"),
    [
        (psycopg.OperationalError("gone"), True, "."),
        (psycopg.InterfaceError("gone"), True, "."),
        (psycopg.ProgrammingError("no"), False, ", then run again."),
    ],
)
def test_an_error_says_what_to_do(error: Exception, *, away: bool, end: str) -> None:
    """A worker waits for a database that is away; with another error, a person has to act."""
    with pytest.raises(StoreUnusable) as failed, connecting.telling("the database"):
        raise error
    assert failed.value.away == away
    wanted = "Nothing more is sent. Make the database reachable and writable"
    assert str(failed.value) == f"the database: {error}. {wanted}{end}"


def test_an_error_is_told_as_a_sentence() -> None:
    """The library's line breaks, indentation and question marks do not disturb what follows."""
    said = r"^db: FATAL: refused; Is it up\. Nothing more is sent\."
    with pytest.raises(StoreUnusable, match=said), connecting.telling("db"):
        raise psycopg.OperationalError("FATAL:  refused\n\tIs it up?\n")


def test_an_error_is_told_shortly() -> None:
    """A server may repeat a whole statement in its message."""
    with pytest.raises(StoreUnusable) as failed, connecting.telling("the database"):
        raise psycopg.ProgrammingError("x" * 600)
    assert str(failed.value).count("x") == 500


_WATCH = """
CREATE TABLE watched (commits text);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO watched VALUES (current_setting('synchronous_commit'));
    RETURN NULL;
END $$;
CREATE TRIGGER watching AFTER UPDATE OF stage ON muybridge_item
    FOR EACH ROW EXECUTE FUNCTION watch();
CREATE FUNCTION leave_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', false);
    RETURN NULL;
END $$;
CREATE TRIGGER leaving AFTER INSERT ON muybridge_owners EXECUTE FUNCTION leave_off();
"""
"""What notes how durable each step is, and leaves a setting behind that another client made."""


def test_each_step_is_durable_behind_a_pooler(
    postgres: Postgres, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """A pooler gives a step to a server process on which another client has turned that off."""
    submit(server, shared, 2)
    postgres.execute(_WATCH, url=str(shared.store))
    with Relay(str(shared.store)) as relay, Client(KEY, server.url, poll_interval=0.005) as client:
        relay.rewrite = as_a_pooler
        report = batch.work(client, SharedBatch(relay.address, shared.name), tmp_path)
    assert (report.counts, server.posts) == ({Stage.DOWNLOADED: 2}, 2)
    watched = postgres.execute("SELECT DISTINCT commits FROM watched", url=str(shared.store))
    assert watched == [("on",)]


def test_what_another_client_left_behind_refuses_no_pooler(
    server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """The setting that we find behind a pooler is another client's, and each step has its own."""
    submit(server, shared, 1)
    options = f"{conninfo_to_dict(str(shared.store))['options']} -c synchronous_commit=off"
    off = make_conninfo(str(shared.store), options=options)
    with Relay(off) as relay, Client(KEY, server.url, poll_interval=0.005) as client:
        relay.rewrite = as_a_pooler
        assert batch.work(client, SharedBatch(relay.address, shared.name), tmp_path).done
