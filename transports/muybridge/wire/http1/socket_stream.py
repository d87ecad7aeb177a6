"""Byte streams over sockets that do not block: all but the waiting, which event loops do."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod

from muybridge.wire.http1.byte_streams import Address


class SocketStream(ABC):
    """A TCP connection. The streams that event loops offer do not report how many bytes were sent.

    Args:
        sock: The connected socket, which does not block.
    """

    __slots__ = ("sock",)

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket = sock

    @abstractmethod
    async def let_others_run(self) -> None:
        """Give other tasks their turn, and the timeouts their chance to expire."""

    @abstractmethod
    async def wait_readable(self) -> None:
        """Wait until something has arrived. It may return early."""

    @abstractmethod
    async def wait_writable(self) -> None:
        """Wait until bytes can be sent. It may return early."""

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, and return how many bytes the operating system took."""
        while True:
            try:
                return self.sock.send(data)
            except BlockingIOError:
                await self.wait_writable()

    async def receive(self, size: int) -> bytes:
        """Wait for bytes, and return up to *size* of them, or none once the peer has closed."""
        # With many exchanges, the response has often arrived once the others have had their turn.
        await self.let_others_run()
        while True:
            try:
                return self.sock.recv(size)
            except BlockingIOError:
                await self.wait_readable()

    def receive_nowait(self, size: int) -> bytes:
        """Return what has already arrived, up to *size* bytes."""
        return self.sock.recv(size)

    def close(self) -> None:
        """Close it at once."""
        self.sock.close()


def open_socket(address: Address) -> socket.socket:
    """Return a socket that does not block, to connect to *address*."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.settimeout(0)
        # Sends a request at once, however small its last part is.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock
