"""The port: everything that the async transport needs from an event loop.

HTTP, TLS, proxies, connections and their pool are written once, on these two protocols. No module
in this folder imports an event loop's library; `trio_transport` and `asyncio_transport` bind the
port to one. A binding to another event loop, or to a simulated network, implements the same few
methods:

- A `ByteStream` reports how many bytes the operating system took, because whether a paid request
  may be sent again depends on whether its first byte was handed over.
- It can return what has already arrived without waiting, because what arrives before a request is
  sent cannot be its response.
- It closes at once and waits for nothing, so closing cannot be cancelled.
- Only `EventLoop.within` limits time, and is only called where something may take time, because
  under trio each limit takes a sixtieth of a lifecycle. It raises `TimeoutError`, whatever the
  event loop's own timeouts raise, and can shield a paid exchange from cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from muybridge.wire.exchange import Exchange

T = TypeVar("T")

Address = tuple[int, int, int, str, Any]
"""Where to connect to, as `socket.getaddrinfo` returns it."""


class ByteStream(Protocol):
    """A connection that carries bytes. Only one task at a time uses it."""

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, and return how many bytes the operating system took.

        Raises:
            OSError: The connection broke.
        """
        ...

    async def receive(self, size: int) -> bytes:
        """Wait for bytes, and return up to *size* of them, or none once the peer has closed.

        Raises:
            OSError: The connection broke.
        """
        ...

    def receive_nowait(self, size: int) -> bytes:
        """Return up to *size* bytes that have already arrived, or none once the peer has closed.

        Raises:
            BlockingIOError: Nothing has arrived.
            OSError: The connection broke.
        """
        ...

    def close(self) -> None:
        """Close it at once."""
        ...


class EventLoop(Protocol):
    """Time, names and connections."""

    def now(self) -> float:
        """Return the time in seconds, by the event loop's clock."""
        ...

    async def checkpoint(self) -> None:
        """Raise the caller's cancellation, if there is one."""
        ...

    async def within(
        self, seconds: float, late: str, work: Awaitable[T], *, shielded: bool = False
    ) -> T:
        """Return what *work* returns.

        Args:
            seconds: Seconds after which it is cancelled.
            late: The message of the `TimeoutError`.
            work: What to await.
            shielded: Whether it runs to its end or its timeout even if the caller is cancelled.

        Raises:
            TimeoutError: It took longer.
        """
        ...

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*, the preferred one first.

        Raises:
            OSError: The name does not resolve.
        """
        ...

    async def connect(self, address: Address, seconds: float, late: str) -> ByteStream:
        """Connect to *address* over TCP.

        Args:
            address: Where to.
            seconds: Seconds after which the attempt is cancelled.
            late: The message of the `TimeoutError`.

        Raises:
            OSError: The connection could not be opened, or not in time.
        """
        ...


class LibraryLoop(EventLoop, Protocol):
    """An event loop on which an HTTP library does what `ByteStream` and `connect` do for ours."""

    async def unbroken(self, work: Coroutine[Any, Any, T], exchange: Exchange) -> T:
        """Return what *work* returns: a step of *exchange*, whose waits are the library's own.

        A cancellation ends it as long as nothing is sent. Later, it waits for the end of *work*.
        """
        ...
