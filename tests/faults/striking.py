"""What makes a signal arrive at a point: the server where it knows it, or else a hook."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Self

import pytest

import moments
from batch.billing import BillingServer

from .terminations import KEYBOARD, TOLD_BY_SERVER

PATIENCE = 10.0


class Strike:
    """Strikes once.

    Args:
        act: What strikes. It is called in the thread that comes to the point.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._began = False
        self._struck = threading.Event()

    def __call__(self) -> None:
        with self._lock:
            if self._began:
                return
            self._began = True
        try:
            self._act()
        finally:
            self._struck.set()

    def wait(self) -> None:
        """Wait until it has struck."""
        assert self._struck.wait(PATIENCE)


class MainThread:
    """Sends signals to the main thread, and lets no other thread go on before it has noticed.

    Args:
        patch: What looks at how a blocking batch waits for its workers.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._waits, self._noticed = threading.Event(), threading.Event()
        self._is_batch = False
        run = moments.at("team of threads run")
        original = run.value

        async def watched(team: object, work: object) -> None:
            try:
                self._waits.set()
                await original(team, work)
            except BaseException:
                self._noticed.set()
                raise

        patch.setattr(*run.place, watched)

    def send(self, number: int, *, to_batch: bool) -> None:
        """Send a signal. *to_batch* says that the main thread waits for a batch's workers."""
        main = threading.main_thread()
        assert main.ident is not None
        if to_batch:
            assert self._waits.wait(PATIENCE)
        signal.pthread_kill(main.ident, number)
        if to_batch:
            assert self._noticed.wait(PATIENCE)


class HoldingServer(BillingServer):
    """Keeps the books, and strikes at the points that a server knows.

    Until the download a task does not end, so that no run does.

    Args:
        point: The point.
        strike: Called there.
        tls: Makes the handshake, or None for plain connections.
    """

    def __init__(
        self, point: str, strike: Callable[[], object], tls: ssl.SSLContext | None
    ) -> None:
        super().__init__()
        self._point = point
        self._strike = strike
        self._tls = tls
        self.deliver = self._deliver
        self.status = "completed" if point == "download" else "processing"

    def __enter__(self) -> Self:
        super().__enter__()
        if self._tls is not None:
            self.url = self.url.replace("http:", "https:")
        return self

    def release(self) -> None:
        """Strike no more, and let every task be completed."""
        self._point, self.status = "", "completed"

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection.recv(1, socket.MSG_PEEK)
                if self._point == "handshake":
                    self._strike()
                connection = self._tls.wrap_socket(connection, server_side=True)
                with self._lock:
                    self._connections.add(connection)
            super()._serve(connection)

    def _deliver(self, connection: socket.socket, kind: str, response: bytes) -> None:
        point = self._point
        if (kind, point) in _IN_TIME:
            begin = {"no response yet": 0, "head": 20, "body": len(response) - 9}[point]
            connection.sendall(response[:begin])
            self._strike()
            connection.sendall(response[begin:])
        elif (kind, point) in _LEFT:
            begin = 0 if point == "poll" else len(response) - 9
            connection.sendall(response[:begin])
            self._strike()
            # The byte wakes the client, should the signal have come just before it began to wait.
            connection.sendall(response[begin : begin + 1])
            while connection.recv(1024):
                pass
            raise ConnectionResetError
        else:
            connection.sendall(response)


_IN_TIME = {("create", "no response yet"), ("create", "head"), ("create", "body")}
"""What is answered and when, where the response goes on afterwards."""
_LEFT = {("result", "poll"), ("media", "download")}
"""The same, where the client leaves it."""


def told_by_hook(signal_: str, point: str) -> bool:
    """Whether the client comes to the point by a hook. An exception is raised in its own code."""
    return signal_ == KEYBOARD or point not in TOLD_BY_SERVER
