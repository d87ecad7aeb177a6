"""PostgreSQL servers that a test may stop, copy and promote, and a pooler before one."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from batch.postgres_server import Postgres, psycopg, server_in

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
_PORT = 6432
_WITHIN = 30.0


def kill(server: Any) -> None:
    """End a server as a crash does."""
    process = server.get_postmaster_info().process
    os.kill(process.pid, 3)  # SIGQUIT: at once, and without a checkpoint
    process.wait(_WITHIN)


class Pair:
    """A server, and a copy of it that can take its place.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.chmod(0o777)
        self.first: Any = server_in(folder / "first", cleanup_mode="stop")
        self.second: Any = None

    def copy(self, *, follows: bool) -> None:
        """Copy the first server as it is now.

        Args:
            follows: Whether the copy runs, and follows what the first one commits.
        """
        self._run("pg_basebackup", "-D", str(self._folder / "second"), "-h", self._host(self.first),
                  "-U", "postgres", "-c", "fast", *(["-R"] if follows else []))  # fmt: skip
        (self._folder / "second" / ".s.PGSQL.5432.lock").unlink()  # of the first one's socket
        if follows:
            self.start_copy()

    def start_copy(self) -> None:
        """Start the copy."""
        try:
            self.second = server_in(self._folder / "second", cleanup_mode="stop")
        except subprocess.SubprocessError as error:
            raise AssertionError((self._folder / "second" / "log").read_text()) from error

    def promote(self) -> None:
        """Let the copy take the place of the first server."""
        self.ask("SELECT pg_promote()")

    def ask(self, statement: str) -> Any:
        """Ask the copy."""
        with psycopg.connect(self.second.get_uri(), autocommit=True) as db:
            return db.execute(statement).fetchall()

    def wait_until_it_has(self, count: int) -> None:
        """Wait until the copy has so many purchases."""
        ends = time.monotonic() + _WITHIN
        while time.monotonic() < ends:
            with suppress(psycopg.Error):  # the tables follow, too
                if self.ask("SELECT count(*) FROM muybridge_purchases") == [(count,)]:
                    return
        raise AssertionError("the copy does not follow")

    @property
    def url(self) -> str:
        """The address of whichever of them takes writes."""
        second = self._folder / "second"
        return f"postgresql://postgres@/postgres?host={self._host(self.first)},{second}"

    def end(self) -> None:
        """End both."""
        for server in filter(None, (self.first, self.second)):
            with suppress(Exception):
                server.cleanup()

    def _host(self, server: Any) -> str:
        return str(server.get_postmaster_info().socket_dir)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.first.bin_path / program), *arguments]
        done = subprocess.run(  # noqa: S603  the wheel's
            command, user=self.first.system_user, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def a_pair() -> Generator[Pair]:
    """Run two servers as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="muybridge-pair-") as folder:
        pair = Pair(Path(folder))
        try:
            yield pair
        finally:
            pair.end()


@contextmanager
def pooled(postgres: Postgres) -> Generator[str]:
    """Run a PgBouncer before a server, in transaction mode. Yield the address of its databases.

    It has fewer connections than clients, so that each transaction gets any of them.
    """
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    user = postgres.server.system_user
    with tempfile.TemporaryDirectory(prefix="muybridge-pool-") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        host = postgres.server.get_postmaster_info().socket_dir
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={host} port=5432 user=postgres\n[pgbouncer]\n"
            f"listen_port = {_PORT}\nunix_socket_dir = {folder}\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = 3\nlogfile = {folder}/log\n"
        )
        settings.chmod(0o644)
        process = subprocess.Popen(  # noqa: S603  what is installed
            [PGBOUNCER, "-q", str(settings)], user=user, stderr=subprocess.DEVNULL
        )
        try:
            _wait_for(folder / f".s.PGSQL.{_PORT}", process)
            yield f"postgresql://postgres@/{{database}}?host={folder}&port={_PORT}"
        finally:
            process.kill()
            process.wait()


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _WITHIN
    while time.monotonic() < ends:
        assert process.poll() is None, "the pooler has ended"
        with suppress(OSError), socket.socket(socket.AF_UNIX) as looking:
            looking.connect(str(path))
            return
    raise AssertionError("the pooler does not start")
