"""A relay between a worker and the database, which can swallow whatever it is sent."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

_PROCESS = re.compile(rb"(?<=K\0\0\0\x0c).{4}", re.DOTALL)


def as_a_pooler(data: bytes) -> bytes:
    """Give the process id that a pooler invents, in place of the server's own."""
    return _PROCESS.sub(b"\0\0\0\x01", data)


class Relay:
    """Relays connections to the database at *url*, as long as the context lasts.

    Args:
        url: The database, behind a socket in the file system.
        host: The address to listen on.
    """

    def __init__(self, url: str, host: str = "127.0.0.1") -> None:
        self._host = host
        self._parts = conninfo_to_dict(url)
        self._target = Path(str(self._parts["host"])) / ".s.PGSQL.5432"
        self._lock = threading.Lock()
        self._swallows = False
        self._swallowed: set[socket.socket] = set()
        self._sockets: set[socket.socket] = set()
        self.rewrite: Callable[[bytes], bytes] = bytes
        """What becomes of the bytes that it relays."""

    def __enter__(self) -> Self:
        self._listener = socket.create_server((self._host, 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for each in (self._listener, *self._sockets):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    @property
    def address(self) -> str:
        """The database, through the relay."""
        _, port = self._listener.getsockname()
        parts = {**self._parts, "host": self._host, "port": port}
        return f"postgresql:///?{urlencode(parts, quote_via=quote)}"

    def swallow(self) -> None:
        """From now on, nothing arrives, and nobody is told."""
        with self._lock:
            self._swallows = True
            self._swallowed |= self._sockets

    def heal(self) -> None:
        """Relay new connections again. The others stay as they are."""
        with self._lock:
            self._swallows = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            with self._lock:
                self._sockets |= {client, server}
                if self._swallows:
                    self._swallowed |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if source not in self._swallowed:
                    target.sendall(self.rewrite(data))
            if source not in self._swallowed:
                target.shutdown(socket.SHUT_WR)
