"""What makes a signal arrive at a point: the server where it knows it, or else a hook."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

import attrs
import pytest
import trio

from batch.billing import BillingServer
from muybridge import TrioTransport
from muybridge.batch.journaled_create import ItemRecord
from muybridge.clock import SystemClock
from muybridge.drivers.blocking import BlockingTeam
from muybridge.drivers.on_asyncio import AsyncioRuntime, AsyncioTeam
from muybridge.drivers.on_trio import TrioTeam
from muybridge.drivers.runtime import FOREVER, Work
from muybridge.files.saving import PartFile
from muybridge.wire import _requests_connections
from muybridge.wire._requests_connections import Incoming, Reply
from muybridge.wire.asyncio_transport import AsyncioStream, AsyncioTransport
from muybridge.wire.http1 import connections
from muybridge.wire.http1.connections import Connection
from muybridge.wire.http1.tls import TLSStream
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.trio_transport import TrioStream

from .terminations import KEYBOARD, TOLD_BY_SERVER

PATIENCE = 10.0


@attrs.frozen
class Place:
    """A function that the client calls at a point.

    Args:
        owner: Where it is.
        name: What it is called.
        skipped: How many calls come before that one.
        when: Whether a call counts, from its arguments.
        other: Another function that a client comes to at the point, or None.
    """

    owner: Any
    name: str
    skipped: int = 0
    when: Callable[..., bool] = lambda *_, **__: True
    other: Place | None = None


def _until_a_moment(_team: object, until: float = FOREVER) -> bool:
    return until < FOREVER


_BOTH = {
    "before the journal entry": Place(ItemRecord, "keep"),
    "download": Place(PartFile, "write"),
}
BLOCKING: Mapping[str, Place] = {
    "lookup": Place(socket, "getaddrinfo"),
    "connect": Place(socket.socket, "connect"),
    "handshake": Place(ssl.SSLSocket, "do_handshake"),
    "before the first byte": Place(_requests_connections, "refuse_early_bytes"),
    "first byte": Place(socket.socket, "send"),
    "held": Place(Reply, "begin"),
    "head": Place(Incoming, "readinto", skipped=1),
    "body": Place(Incoming, "readinto", skipped=1),
    "asleep": Place(SystemClock, "sleep", other=Place(BlockingTeam, "wait", when=_until_a_moment)),
    "poll": Place(RequestsTransport, "stream", skipped=1),
    **_BOTH,
}
TRIO: Mapping[str, Place] = {
    "lookup": Place(connections, "numeric_addresses"),
    "connect": Place(connections, "first_that_answers"),
    "handshake": Place(TLSStream, "handshake"),
    "before the first byte": Place(Connection, "refuse_early_bytes"),
    "first byte": Place(TrioStream, "send"),
    "held": Place(TrioStream, "receive"),
    "head": Place(TrioStream, "receive", skipped=1),
    "body": Place(TrioStream, "receive", skipped=1),
    "asleep": Place(trio, "sleep_until", other=Place(TrioTeam, "wait", when=_until_a_moment)),
    "poll": Place(TrioTransport, "stream", skipped=1),
    **_BOTH,
}
ASYNCIO: Mapping[str, Place] = {
    **TRIO,
    "first byte": Place(AsyncioStream, "send"),
    "held": Place(AsyncioStream, "receive"),
    "head": Place(AsyncioStream, "receive", skipped=1),
    "body": Place(AsyncioStream, "receive", skipped=1),
    "asleep": Place(
        AsyncioRuntime, "sleep_until", other=Place(AsyncioTeam, "wait", when=_until_a_moment)
    ),
    "poll": Place(AsyncioTransport, "stream", skipped=1),
}


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


def hook(patch: pytest.MonkeyPatch, place: Place, strike: Strike) -> None:
    """Let *strike* happen as the client comes to *place*."""
    original = getattr(place.owner, place.name)
    left = place.skipped

    def struck(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if place.when(*arguments, **named):
            if left == 0:
                strike()
            left -= 1
        return original(*arguments, **named)

    patch.setattr(place.owner, place.name, struck)
    if place.other is not None:
        hook(patch, place.other, strike)


class MainThread:
    """Sends signals to the main thread, and lets no other thread go on before it has noticed.

    Args:
        patch: What looks at how a blocking batch waits for its workers.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._waits, self._noticed = threading.Event(), threading.Event()
        self._is_batch = False
        original = BlockingTeam.run

        async def watched(team: BlockingTeam, work: Work) -> None:
            try:
                self._waits.set()
                await original(team, work)
            except BaseException:
                self._noticed.set()
                raise

        patch.setattr(BlockingTeam, "run", watched)

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
            begin = {"held": 0, "head": 20, "body": len(response) - 9}[point]
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


_IN_TIME = {("create", "held"), ("create", "head"), ("create", "body")}
"""What is answered and when, where the response goes on afterwards."""
_LEFT = {("result", "poll"), ("media", "download")}
"""The same, where the client leaves it."""


def told_by_hook(signal_: str, point: str) -> bool:
    """Whether the client comes to the point by a hook. An exception is raised in its own code."""
    return signal_ == KEYBOARD or point not in TOLD_BY_SERVER
