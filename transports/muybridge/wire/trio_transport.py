"""The async transport on trio: binds the port of `http1.byte_streams` to trio."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from muybridge.wire.http1.byte_streams import Address
from muybridge.wire.http1.transport import Http1Transport

T = TypeVar("T")


class TrioStream:
    """A TCP connection under trio.

    trio's own `SocketStream` does not report how much of a request was sent before it failed.

    Args:
        sock: The connected socket, which does not block.
    """

    __slots__ = ("sock",)

    def __init__(self, sock: socket.socket) -> None:
        self.sock: socket.socket = sock

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, and return how many bytes the operating system took."""
        while True:
            try:
                return self.sock.send(data)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.sock)

    async def receive(self, size: int) -> bytes:
        """Wait for bytes, and return up to *size* of them, or none once the peer has closed."""
        # With many exchanges, the response has often arrived once the others have had their turn.
        await trio.lowlevel.checkpoint()
        while True:
            try:
                return self.sock.recv(size)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self.sock)

    def receive_nowait(self, size: int) -> bytes:
        """Return what has already arrived, up to *size* bytes."""
        return self.sock.recv(size)

    def close(self) -> None:
        """Close it at once."""
        trio.lowlevel.notify_closing(self.sock)
        self.sock.close()


class TrioLoop:
    """trio's event loop."""

    def now(self) -> float:
        """Return trio's time."""
        return trio.current_time()

    async def checkpoint(self) -> None:
        """Raise the caller's cancellation, if there is one."""
        await trio.lowlevel.checkpoint_if_cancelled()

    async def run(
        self,
        work: Callable[[], Awaitable[T]],
        seconds: float,
        late: str,
        *,
        shielded: bool = False,
    ) -> T:
        """Return what *work* returns, within so many *seconds*."""
        with trio.CancelScope(deadline=trio.current_time() + seconds, shield=shielded):
            return await work()
        raise TimeoutError(late)

    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        """Return the addresses of *host*."""
        return await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Address) -> TrioStream:
        """Connect to *address*."""
        family, kind, protocol, _, place = address
        sock = socket.socket(family, kind, protocol)
        try:
            await trio.socket.from_stdlib_socket(sock).connect(place)
            # Sends a request at once, however small its last part is.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            sock.close()
            raise
        return TrioStream(sock)


class TrioTransport(Http1Transport):
    """An `AsyncTransport` on trio, for any number of tasks of one event loop.

    Every timeout bounds the whole exchange, including name resolution. If the host must be public
    (`HttpRequest.public_host_only`), this is checked on the very addresses that are connected to,
    except where a proxy makes the connection.

    The head of a response is read more strictly than by `RequestsTransport`: it is malformed if its
    lines end without a carriage return, or if it states its length twice.

    A shielded exchange (`HttpRequest.shielded`) cannot be cancelled, within its timeout, from the
    first byte of the request to the last byte of the response. It can be cancelled before that,
    and the last checkpoint is right before the first byte.

    Proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are read from the environment
    once for each host; https goes through them in a tunnel. The CA certificates are those of
    `REQUESTS_CA_BUNDLE` or `CURL_CA_BUNDLE`, else certifi's.

    Args:
        ssl_context: The context for TLS connections, used unchanged. By default, one is made from
            the CA certificates above.
        connect_timeout: Seconds to try each address of a host.
        pool_size: The most idle connections to keep for one host. It does not limit how many may
            be in use.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    _loop = TrioLoop()
