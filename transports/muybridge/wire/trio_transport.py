"""The async transport on trio: binds the port of `http1.byte_streams` to trio.

Trio's shields hold, so one scope is both the timeout and the shield. A cancellation that comes
meanwhile is not lost: trio raises it at the task's next checkpoint outside.

A shield must not be up before the first byte, when a cancellation still costs nothing. Our own
exchange therefore enters it after it has connected. A library connects and sends in one call, so
its scope begins without a shield, and `Exchange.begin` raises it.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import trio

from muybridge.wire.exchange import Exchange
from muybridge.wire.http1.byte_streams import Address, EventLoop
from muybridge.wire.http1.socket_stream import SocketStream
from muybridge.wire.http1.transport import Http1Transport

T = TypeVar("T")


class TrioStream(SocketStream):
    """A TCP connection under trio."""

    __slots__ = ()

    async def wait_readable(self) -> None:
        """Wait until something has arrived."""
        await trio.lowlevel.wait_readable(self.sock)

    async def wait_writable(self) -> None:
        """Wait until bytes can be sent."""
        await trio.lowlevel.wait_writable(self.sock)

    def close(self) -> None:
        """Close it at once."""
        # The exception of a signal handler may have struck the current task as it began to wait.
        # Trio then takes it for one that waits, and tells it here that the socket is closed.
        with suppress(trio.ClosedResourceError):
            trio.lowlevel.notify_closing(self.sock)
        super().close()


class TrioLoop:
    """trio's event loop."""

    @staticmethod
    def now() -> float:
        """Return trio's time."""
        return trio.current_time()

    async def checkpoint(self) -> None:
        """Raise the caller's cancellation, if there is one."""
        await trio.lowlevel.checkpoint_if_cancelled()

    async def within(
        self, seconds: float, late: str, work: Awaitable[T], *, shielded: bool = False
    ) -> T:
        """Return what *work* returns, within so many *seconds*."""
        with trio.CancelScope(deadline=trio.current_time() + seconds, shield=shielded):
            return await work
        raise TimeoutError(late)

    async def unbroken(self, work: Coroutine[Any, Any, T], exchange: Exchange) -> T:
        """Return what *work* returns; once the request begins, a cancellation waits."""
        with trio.CancelScope(shield=exchange.begun) as scope:

            def shield() -> None:
                scope.shield = True

            exchange.on_begin = shield
            return await work
        raise AssertionError("nobody cancels this scope")

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*, looked up in a thread of trio."""
        return await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Address, seconds: float, late: str) -> TrioStream:
        """Open a connection to *address*, unless the caller has been cancelled."""
        await self.checkpoint()  # what has been cancelled opens no connection
        return await TrioStream.connect(self, address, seconds, late)


class TrioTransport(Http1Transport):
    """An `AsyncTransport` on trio, for any number of tasks of one event loop.

    Every timeout bounds the whole exchange, including name resolution. If the host must be public
    (`HttpRequest.public_host_only`), this is checked on the very addresses that are connected to,
    except where a proxy makes the connection.

    A shielded exchange (`HttpRequest.shielded`) cannot be cancelled, within its timeout, from the
    first byte of the request to the last byte of the response. It can be cancelled before that,
    and the last checkpoint is right before the first byte.

    Proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are read from the environment
    once for each host; https goes through them in a tunnel. The CA certificates are those of
    `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE` or `SSL_CERT_FILE`, else certifi's.

    Args:
        ssl_context: The context for TLS connections, used unchanged: ALPN, too, is up to you, and
            must not offer HTTP/2. By default, one that offers http/1.1 is made from the CA
            certificates above.
        connect_timeout: Seconds for a name lookup, and to try each address of a host.
        pool_size: The most idle connections to keep for one host. It does not limit how many may
            be in use.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    event_loop: ClassVar[EventLoop] = TrioLoop()
