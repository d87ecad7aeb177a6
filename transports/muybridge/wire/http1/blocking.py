"""HTTP/1.1 in blocking code: the conversation of the async transports, bound to sockets.

The coroutines are the same, but their waits block the thread instead of suspending. So each runs
from its start to its end in one step (`responses.run`).
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Self, TypeVar

from muybridge.signals import raised_by_handler
from muybridge.wire.http1.byte_streams import Address
from muybridge.wire.http1.response import Response
from muybridge.wire.http1.socket_stream import open_socket
from muybridge.wire.responses import BlockingFace

T = TypeVar("T")


class _Limit(threading.local):
    """When the innermost `within` of this thread ends, and the message of its `TimeoutError`."""

    ends_at: float = 0.0
    late: str = ""


_limit = _Limit()


class BlockingStream:
    """A TCP connection whose waits block the thread, until the innermost `within` ends.

    Args:
        sock: The connected socket.
    """

    __slots__ = ("sock",)

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket = sock

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, and return how many bytes the operating system took."""
        # A wait comes first only if none of it fits: it lasts until much more does.
        self.sock.settimeout(0)
        with suppress(BlockingIOError):
            return self.sock.send(data)
        self._bound()
        try:
            return self.sock.send(data)
        except TimeoutError as error:
            raise _named(error, _limit.late) from error.__cause__

    async def receive(self, size: int) -> bytes:
        """Wait for bytes, and return up to *size* of them, or none once the peer has closed."""
        self._bound()
        try:
            return self.sock.recv(size)
        except TimeoutError as error:
            raise _named(error, _limit.late) from error.__cause__

    def receive_nowait(self, size: int) -> bytes:
        """Return what has already arrived, up to *size* bytes."""
        self.sock.settimeout(0)
        return self.sock.recv(size)

    def close(self) -> None:
        """Close it at once."""
        self.sock.close()

    def _bound(self) -> None:
        seconds = _limit.ends_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError(_limit.late)
        self.sock.settimeout(seconds)


class BlockingLoop:
    """What the conversation needs from an event loop, without one."""

    @staticmethod
    def now() -> float:
        """Return seconds on a monotonic clock."""
        return time.monotonic()

    async def checkpoint(self) -> None:
        """Do nothing: threads are not cancelled."""

    async def within(
        self,
        seconds: float,
        late: str,
        work: Awaitable[T],
        *,
        shielded: bool = False,  # noqa: ARG002  threads are not cancelled
    ) -> T:
        """Return what *work* returns. Each of its waits ends in time, or raises."""
        before = _limit.ends_at, _limit.late
        try:
            _limit.ends_at, _limit.late = time.monotonic() + seconds, late
            return await work
        finally:
            _limit.ends_at, _limit.late = before

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*. How long that takes is up to the operating system."""
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Address, seconds: float, late: str) -> BlockingStream:
        """Open a connection to *address*. The socket's own timeout bounds the attempt."""
        sock = open_socket(address)
        try:
            sock.settimeout(seconds)
            sock.connect(address[4])
        except BaseException as error:
            sock.close()
            if isinstance(error, TimeoutError):
                raise _named(error, late) from error.__cause__
            raise
        return BlockingStream(sock)


class BlockingResponse(BlockingFace, Response):
    """What a blocking `stream` returns. Coroutines that are run in one step may await it, too."""

    __slots__ = ()

    def pieces(self) -> Self:
        """Return an iterator over the decoded body as it arrives; see `Response.pieces`."""
        return self


def _named(error: TimeoutError, late: str) -> TimeoutError:
    """Return a `TimeoutError` with the message *late* if *error* is that of a socket's timeout.

    TCP has one of its own, with a number, and a signal handler may raise one.
    """
    is_of_socket = error.errno is None and not raised_by_handler(error)
    return TimeoutError(late) if is_of_socket else error
