"""Connections opened on trio's streams and kept while they are idle."""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import trio

from muybridge.interrupts import raised_by_handler
from muybridge.wire._addressing import Origin, Proxy, refuse_metadata
from muybridge.wire._environment import proxy_for
from muybridge.wire._trio_progress import Progress
from muybridge.wire._tunnel import TunnelReply, connect_request
from muybridge.wire.exchange import PIECE, Fault, early_fault, took_nothing
from muybridge_protocol.hosts import is_public_address
from muybridge_protocol.http import Phase, Reason

LONGEST_IDLE: Final = 300.0
"""Seconds for which an idle connection is kept. Result queries come up to a minute apart."""
MANY: Final = 64
"""Exchanges at once from which on a near service has answered one when the others have had their
turns: 500 of them then take a fifth less time."""


class Connection:
    """A connection to an origin, or through a proxy to it.

    Args:
        tls: The stream that encrypts, or None for a plain connection.
        raw: The socket below.
        shared: The same socket, as trio has it.
        peer_is_public: Whether every address of the host is a public one.
    """

    __slots__ = ("_shared", "_socket", "_tls", "idle_since", "peer_is_public")

    def __init__(
        self,
        tls: trio.SSLStream[trio.SocketStream] | None,
        raw: socket.socket,
        shared: trio.socket.SocketType,
        *,
        peer_is_public: bool,
    ) -> None:
        self._tls = tls
        self._socket = raw
        self._shared = shared
        self.peer_is_public: bool = peer_is_public
        self.idle_since: float = 0.0

    def is_quiet(self) -> bool:
        """Whether the other side has neither closed it nor sent what nobody asked for."""
        try:
            self.refuse_early_bytes()
        except (OSError, Fault):
            return False
        return True

    def refuse_early_bytes(self) -> None:
        """Refuse to send a request after something has arrived on the connection.

        What arrives before the first byte of a request cannot be its response.

        Raises:
            Fault: Bytes have arrived, or the other side has closed the connection.
            OSError: The connection is broken.
        """
        try:
            early = self._decrypted() if self._tls else self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return
        raise early_fault(early)

    def _decrypted(self) -> bytes:
        """Return a byte that has arrived over TLS, or nothing at its end.

        It may have left the socket, but not yet the TLS engine; and what is at the socket may be
        session tickets and the like. trio's stream can only wait for more.

        Raises:
            BlockingIOError: There is neither.
        """
        stream: Any = self._tls
        incoming, engine = stream._incoming, stream._ssl_object  # noqa: SLF001  # no public names
        while True:
            with suppress(ssl.SSLWantReadError):
                return bytes(engine.read(1))
            data = self._socket.recv(PIECE)
            if data:
                incoming.write(data)
            else:
                incoming.write_eof()

    async def send(self, data: memoryview) -> int:
        """Send some of *data*, a part of a request, and return how many bytes of it.

        Raises:
            OSError: The connection broke.
            trio.BrokenResourceError: TLS on it broke.
        """
        if self._tls is not None:
            await self._tls.send_all(data)
            return len(data)
        # The socket itself tells whether it took anything, and trio's stream does not. trio's
        # socket does, but has other tasks run first: a fifth of what a whole exchange takes.
        while True:
            try:
                return self._socket.send(data)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)

    async def receive(self, size: int, *, one_of_many: bool = False) -> bytes:
        """Return what comes next, up to *size* bytes, or nothing at the other side's end.

        Args:
            size: How many at most.
            one_of_many: Whether many others are under way, so that it pays to let them go first,
                and then to look before waiting.

        Raises:
            OSError: The connection broke.
            trio.BrokenResourceError: TLS on it broke.
        """
        if self._tls is not None:
            return bytes(await self._tls.receive_some(size))
        if one_of_many:
            await trio.lowlevel.checkpoint()
            with suppress(BlockingIOError):
                return self._socket.recv(size)
        # Among few, a reply is hardly ever there yet: to look first, as trio does, takes longer.
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            with suppress(BlockingIOError):
                return self._socket.recv(size)

    def took_nothing(self, error: Exception) -> bool:
        """Whether *error*, raised by `send`, says that nothing was handed to the network."""
        return self._tls is None and took_nothing(self._socket, error)

    def close(self) -> None:
        """Close it at once: there is no farewell to wait for, and no checkpoint."""
        self._shared.close()


class Route:
    """The way to one origin, and the idle connections that lead there.

    Args:
        origin: Where it leads.
        pool_size: Most idle connections to keep.

    Raises:
        Fault: The environment names a proxy that cannot be used.
    """

    def __init__(self, origin: Origin, pool_size: int) -> None:
        proxy = proxy_for(origin.scheme, origin.host, origin.port)
        self.origin: Origin = origin
        self.authority: bytes = origin.authority.encode()
        self.proxy: Proxy | None = None if proxy is None else Proxy.read(proxy)
        self._pool_size = pool_size
        self._idle: deque[Connection] = deque()
        self._in_use = 0
        self._closed = False

    @property
    def is_busy(self) -> bool:
        """Whether many exchanges are under way."""
        return self._in_use >= MANY

    @property
    def forwards(self) -> bool:
        """Whether a proxy passes clear text on, so that it reads all of it."""
        return self.proxy is not None and self.origin.scheme == "http"

    @property
    def has_idle(self) -> bool:
        """Whether an idle connection is kept."""
        return bool(self._idle)

    def take(self, *, paid: bool, public_host_only: bool) -> Connection | None:
        """Return an idle connection that is alive and good for such a request, or None.

        A paid request always gets a new one: on one that was used before, a late response to an
        earlier request could be taken for its own.
        """
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_quiet():
                connection.close()
                continue
            private = public_host_only and not (connection.peer_is_public or self.proxy)
            if paid or private:
                self._idle.append(connection)
                return None
            return self.lend(connection)
        return None

    def lend(self, connection: Connection) -> Connection:
        """Return *connection* for an exchange, at whose end it is kept or dropped."""
        self._in_use += 1
        return connection

    def drop(self, connection: Connection) -> None:
        """Close *connection*, which no other request may follow on."""
        self._in_use -= 1
        connection.close()

    def keep(self, connection: Connection) -> None:
        """Keep *connection*, which has served its request, for the next one."""
        self._in_use -= 1
        now = connection.idle_since = time.monotonic()
        self._idle.append(connection)
        if (
            self._closed
            or len(self._idle) > self._pool_size
            or now - self._idle[0].idle_since > LONGEST_IDLE
        ):
            # One at a time: each exchange keeps one, so that the old ones go soon enough.
            self._idle.popleft().close()

    def close(self) -> None:
        """Close the idle connections, and those in use when their exchange ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


async def connect(
    route: Route,
    progress: Progress,
    *,
    public_host_only: bool,
    connect_timeout: float,
    ssl_context: ssl.SSLContext | None,
) -> Connection:
    """Open a connection, as far as the first byte of a request, and note the progress.

    Args:
        route: Where it leads.
        progress: Where to note it.
        public_host_only: Whether it may lead to public addresses only.
        connect_timeout: Seconds that trying one address may take.
        ssl_context: What to make the TLS handshake with, or None for a plain connection.

    Raises:
        Fault: It cannot be opened, for a reason that no library has an exception for.
        OSError: It cannot be opened.
        trio.BrokenResourceError: It broke; its cause tells why.
    """
    origin, proxy = route.origin, route.proxy
    host, port = origin.host.strip("[]"), origin.port
    progress.phase = Phase.RESOLVE
    asked = (host, port) if proxy is None else (proxy.host, proxy.port)
    found = await trio.socket.getaddrinfo(*asked, type=trio.socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    if proxy is None:
        refuse_metadata(addresses)
    public = proxy is None and all(map(is_public_address, addresses))
    if public_host_only and proxy is None and not public:
        raise Fault(Reason.PRIVATE_ADDRESS, "the host has an address that is not public")
    progress.phase = Phase.CONNECT
    raw = await _first_that_answers(found, connect_timeout)
    shared = trio.socket.from_stdlib_socket(raw)
    tls = None
    try:
        plain = trio.SocketStream(shared)
        if hasattr(trio.socket, "TCP_NOTSENT_LOWAT"):
            # trio holds bytes back that the network is not ready for. A request goes out whole,
            # so that a reply that comes early is not missed.
            plain.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NOTSENT_LOWAT, 0)
        if ssl_context is not None:
            if proxy is not None:
                progress.phase = Phase.PROXY
                await _tunnel(plain, origin, proxy)
            progress.phase = Phase.TLS
            tls = trio.SSLStream(plain, ssl_context, server_hostname=host.rstrip("."))
            await tls.do_handshake()
    except BaseException:
        shared.close()
        raise
    return route.lend(Connection(tls, raw, shared, peer_is_public=public))


Address = tuple[int, int, int, str, tuple[object, ...]]


async def _first_that_answers(
    addresses: Iterable[Address], connect_timeout: float
) -> socket.socket:
    """Connect to one address after the other, never looking the name up again."""
    failed: Exception = Fault(Reason.NAME_RESOLUTION, "the host has no address")
    for family, kind, protocol, _, address in addresses:
        try:
            raw = socket.socket(family, kind, protocol)
        except OSError as error:
            failed = error
            continue
        try:
            with trio.CancelScope(deadline=trio.current_time() + connect_timeout):
                await trio.socket.from_stdlib_socket(raw).connect(address)
                return raw
            failed = TimeoutError("the address did not answer")
            raw.close()
        except OSError as error:
            raw.close()
            if raised_by_handler(error):
                raise
            failed = error
        except BaseException:
            raw.close()
            raise
    raise failed


async def _tunnel(stream: trio.SocketStream, origin: Origin, proxy: Proxy) -> None:
    """Ask the proxy for a tunnel. Nothing of the request itself is in what it is sent."""
    authority = f"{origin.host}:{origin.port}"
    fields = [] if proxy.authorization is None else [("Proxy-Authorization", proxy.authorization)]
    await stream.send_all(connect_request(authority, fields))
    reply, is_open = TunnelReply(), False
    while not is_open:
        is_open = reply.take(await stream.receive_some(4096))
