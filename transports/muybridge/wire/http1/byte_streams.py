"""The port: all that the async transport needs of an event loop.

HTTP, TLS, proxies, connections and their pool are written once, over these two protocols. No module
of this folder imports an event loop's library; `trio_transport` binds the port to trio, and a
binding to another event loop, or to a simulated network, implements the same few methods:

- A `ByteStream` tells how many bytes the operating system took, because whether a paid request may
  be sent again depends on whether its first byte was handed over.
- It can look at what has already arrived without waiting, because what arrives before a request
  is sent cannot be its response.
- It closes at once: there is no farewell to wait for, so that nothing can be cancelled meanwhile.
- `EventLoop.run` alone limits time. It raises `TimeoutError` whatever the event loop's own timeouts
  raise, and can shield a paid exchange from cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Address = tuple[int, int, int, str, Any]
"""Where to connect to, as `socket.getaddrinfo` returns it."""


class ByteStream(Protocol):
    """A connection that carries bytes. One task at a time uses it."""

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, and return how many bytes the operating system took.

        Raises:
            OSError: The connection broke.
        """
        ...

    async def receive(self, size: int) -> bytes:
        """Wait for bytes, and return up to *size* of them; no bytes are the other side's end.

        Raises:
            OSError: The connection broke.
        """
        ...

    def receive_nowait(self, size: int) -> bytes:
        """Return what has already arrived, up to *size* bytes; no bytes are the other side's end.

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

    async def run(
        self,
        work: Callable[[], Awaitable[T]],
        seconds: float,
        late: str,
        *,
        shielded: bool = False,
    ) -> T:
        """Return what *work* returns.

        Args:
            work: What to do.
            seconds: Seconds after which it is cancelled.
            late: What the `TimeoutError` then says.
            shielded: Whether it runs to its end or timeout even if the caller is cancelled.

        Raises:
            TimeoutError: The time is up.
        """
        ...

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*, the preferred one first.

        Raises:
            OSError: The name does not resolve.
        """
        ...

    async def connect(self, address: Address) -> ByteStream:
        """Connect to *address* over TCP.

        Raises:
            OSError: There is no connection.
        """
        ...
