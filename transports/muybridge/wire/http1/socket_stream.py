"""Byte streams over sockets that do not block: all but the waiting, which event loops do."""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Self

from muybridge.wire.http1.byte_streams import Address, EventLoop


class SocketStream(ABC):
    """A TCP connection. The streams that event loops offer do not report how many bytes were sent.

    Args:
        sock: The connected socket, which does not block.
    """

    __slots__ = ("sock",)

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket = sock

    @abstractmethod
    def wait_readable(self) -> Awaitable[object]:
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
        while True:
            # Even if something has arrived: other tasks get their turn, and timeouts can expire.
            await self.wait_readable()
            try:
                return self.sock.recv(size)
            except BlockingIOError:
                continue

    @classmethod
    async def connect(cls, loop: EventLoop, address: Address, seconds: float, late: str) -> Self:
        """Return a connection to *address*.

        Args:
            loop: The event loop.
            address: Where to.
            seconds: Seconds after which the attempt is cancelled.
            late: The message of the `TimeoutError`.

        Raises:
            OSError: The connection could not be opened, or not in time.
        """
        stream = cls(open_socket(address))
        try:
            try:
                stream.sock.connect(address[4])
            except BlockingIOError:
                await loop.within(seconds, late, stream._wait_connected())
        except BaseException:
            stream.close()
            raise
        return stream

    async def _wait_connected(self) -> None:
        while True:
            await self.wait_writable()
            error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            with suppress(OSError):  # the wait may have ended early
                self.sock.getpeername()
                return

    def receive_nowait(self, size: int) -> bytes:
        """Return what has already arrived, up to *size* bytes."""
        return self.sock.recv(size)

    def close(self) -> None:
        """Close it at once."""
        self.sock.close()


def numeric_addresses(host: str, port: int) -> Sequence[Address]:
    """Return the address that *host* is, or nothing if it is a name, whose lookup blocks."""
    with suppress(socket.gaierror):
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    return ()


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
