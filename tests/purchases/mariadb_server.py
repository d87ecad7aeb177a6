"""A MariaDB server for tests, where Debian's package `mariadb-server` is installed."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from .suspended import suspended

pymysql = pytest.importorskip("pymysql", reason="PyMySQL is not installed")
SERVER = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
INSTALL = shutil.which("mariadb-install-db")
if SERVER is None or INSTALL is None:
    pytest.skip("mariadb-server is not installed", allow_module_level=True)

_STARTS_WITHIN = 60.0


class Mariadb:
    """A running server, which listens on a socket in the file system.

    Args:
        folder: Where its data are.
    """

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "socket")
        self._data = folder / "data"
        self._log = folder / "log"
        user = f"--user={getpass.getuser()}"
        _run(str(INSTALL), "--no-defaults", f"--datadir={self._data}", user,
             "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start it, and wait until it can be reached."""
        user = f"--user={getpass.getuser()}"
        self._process = subprocess.Popen(  # noqa: S603  what is installed
            [str(SERVER), "--no-defaults", f"--datadir={self._data}", user,
             f"--socket={self._socket}", "--skip-networking", "--innodb-buffer-pool-size=64M",
             f"--log-error={self._log}", f"--pid-file={self._data}.pid"],
        )  # fmt: skip
        ends = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as looking:
                    looking.connect(self._socket)
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < ends, self._log.read_text()
            else:
                return

    def hanging(self) -> AbstractContextManager[None]:
        """Let it stand still as long as the context lasts."""
        return suspended(self._process.pid)

    def options(self, name: str = "") -> dict[str, Any]:
        """Return what connects to the database *name*, or to none."""
        return {"unix_socket": self._socket, "user": "root", "database": name or None}

    def execute(self, statement: str) -> Any:
        """Execute a statement behind the back of everybody else, and return the rows."""
        with pymysql.connect(**self.options(), autocommit=True) as db, db.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def fresh(self) -> dict[str, Any]:
        """Return what connects to a database of its own."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.options(name)

    def end(self) -> None:
        """End at once. Nobody reads the data again."""
        self._process.kill()
        self._process.wait()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  what is installed
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running() -> Generator[Mariadb]:
    """Run a server as long as the context lasts."""
    # Not in pytest's folder: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="muybridge-mariadb-") as folder:
        serving = Mariadb(Path(folder))
        try:
            yield serving
        finally:
            serving.end()
