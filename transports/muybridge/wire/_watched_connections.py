"""urllib3 connections that keep an `Exchange` up to date while they work for it.

Before each operation on a socket its time-out is set to what is left of the whole exchange.
Bytes that drip in keep a connection busy, but no longer than that. Only the operating system's
name resolution cannot be interrupted.
"""

from __future__ import annotations

import errno
import http.client
import io
import socket
import ssl
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.connection import allowed_gai_family

from muybridge.interrupts import raised_by_handler
from muybridge.wire._addressing import refuse_metadata
from muybridge.wire._watched_exchange import Exchange, current_exchange
from muybridge.wire.exchange import Fault, refuse_early_bytes, took_nothing
from muybridge.wire.transport import PARTIAL_LIMIT
from muybridge_protocol.hosts import is_public_address
from muybridge_protocol.http import Phase, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SENT_WITH_HEAD = 64 * 1024
"""Most bytes of a body that are sent together with the head; to copy more takes longer."""
_BROKEN = (errno.EPIPE, errno.ECONNRESET, errno.EPROTOTYPE)


class WatchedReader(io.RawIOBase):
    """Reads from a socket for as long as the exchange may take, and not at all once it is over."""

    def __init__(self, sock: socket.socket, exchange: Exchange) -> None:
        super().__init__()
        self._sock = sock
        # A socket closes for good when the last file made from it does.
        self._hold = sock.makefile("rb", buffering=0)
        self._exchange = exchange
        self.over = False

    def readable(self) -> bool:
        """Return True, as every reader does."""
        return True

    def readinto(self, buffer: memoryview[int]) -> int:  # type: ignore[override]  # BufferedReader passes nothing else
        """Read what is there into *buffer*, waiting no longer than the exchange may."""
        if self.over:
            return 0
        exchange = self._exchange
        try:
            wait = exchange.remaining()
            if exchange.idle_timeout is not None:
                wait = min(wait, exchange.idle_timeout)
            self._sock.settimeout(wait)
            count = self._sock.recv_into(buffer)
        except ssl.SSLEOFError:
            if exchange.reply is not None and exchange.reply.ends_with_connection:
                fault = Fault(Reason.TRUNCATED, "TLS ended without saying so")
                exchange.note(fault)
                raise fault from None
            count = 0
        except (OSError, ValueError) as error:
            exchange.note(error)
            raise
        if count == 0:
            exchange.ended = True
        elif exchange.phase is Phase.HEAD and len(exchange.arrived) < PARTIAL_LIMIT:
            exchange.arrived = (exchange.arrived + buffer[:count])[:PARTIAL_LIMIT]
        return count

    def close(self) -> None:
        """Let go of the socket."""
        self._hold.close()
        super().close()


class WatchedReply(http.client.HTTPResponse):
    """A reply that is read under the exchange's deadline, and whose head must be whole."""

    def __init__(
        self,
        sock: socket.socket,
        debuglevel: int = 0,  # noqa: ARG002  # at 1 http.client prints headers
        method: str | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(sock, 0, method, url)
        self.fp.close()
        self.fp = io.BufferedReader(WatchedReader(sock, current_exchange()))

    def begin(self, **options: Any) -> None:  # newer Pythons pass a private one
        """Read the head of the final reply.

        http.client stops at the first reply that is not `100 Continue`, takes a connection's end
        for the end of the head, and drops all that follows a line it cannot read.
        """
        super().begin(**options)
        while self.status < http.client.OK:
            self.headers = None  # type: ignore[assignment]  # what http.client itself starts from
            super().begin(**options)
        exchange = current_exchange()
        if exchange.ended:
            raise Fault(Reason.TRUNCATED, "the connection was closed before the end of the head")
        unread = not self.msg.is_multipart() and self.msg.get_payload()
        if unread or any(type(d).__name__ in _HEAD_DEFECTS for d in self.msg.defects):
            raise Fault(Reason.MALFORMED, "a line of the head is no header field")
        exchange.reply = self

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        return self.length is None and not self.chunked

    def leftover(self) -> bool:
        """Return whether bytes have arrived that no request asked for."""
        reader = self.fp.raw
        if isinstance(reader, WatchedReader):
            reader.over = True
        return bool(self.fp.peek(1))


# The email package also lists defects of bodies, which it has not seen here.
_HEAD_DEFECTS = frozenset(
    {
        "FirstHeaderLineIsContinuationDefect",
        "MissingHeaderBodySeparatorDefect",
        "MalformedHeaderDefect",
        "MisplacedEnvelopeHeaderDefect",
    }
)


class WatchedConnection(HTTPConnection):
    """A connection that keeps its thread's exchange up to date."""

    response_class = WatchedReply
    # Set on the base class, as debugging recipes do, it would print the API key.
    debuglevel = 0

    peer_is_public: bool = False

    def connect(self) -> None:
        """Open the connection, as far as the first byte of a request."""
        exchange = current_exchange()
        try:
            self.sock = self._new_conn()
            if self._tunnel_host is not None:
                exchange.phase = Phase.PROXY
                self._has_connected_to_proxy = True
                self._tunnel()
            self._has_connected_to_proxy = self.proxy is not None
            self.secure(exchange)
        except (OSError, ValueError, Fault) as error:
            exchange.note(error)
            raise

    def secure(self, exchange: Exchange) -> None:
        """Add TLS, where the scheme asks for it."""

    def _new_conn(self) -> socket.socket:
        """Connect to the first address that answers."""
        exchange = current_exchange()
        exchange.phase = Phase.RESOLVE
        exchange.remaining()
        found = socket.getaddrinfo(
            self._dns_host, self.port, allowed_gai_family(), socket.SOCK_STREAM
        )
        addresses = [str(entry[4][0]) for entry in found]
        if self.proxy is None:
            refuse_metadata(addresses)
        self.peer_is_public = self.proxy is None and all(map(is_public_address, addresses))
        if exchange.public_host_only and self.proxy is None and not self.peer_is_public:
            raise Fault(Reason.PRIVATE_ADDRESS, "the host has an address that is not public")
        exchange.phase = Phase.CONNECT
        failed: Exception = Fault(Reason.NAME_RESOLUTION, "the host has no address")
        for family, kind, protocol, _, address in found:
            wait = min(exchange.remaining(), exchange.connect_timeout)
            sock: socket.socket | None = None
            try:
                sock = socket.socket(family, kind, protocol)
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                sock.settimeout(wait)
                sock.connect(address)
            except OSError as error:
                if sock is not None:
                    sock.close()
                if raised_by_handler(error):
                    raise
                failed = error
            except BaseException:
                if sock is not None:
                    sock.close()
                raise
            else:
                return sock
        raise failed

    def _tunnel(self) -> None:
        """Ask the proxy for a tunnel. Nothing of the request itself is in what it is sent."""
        from muybridge.wire._tunnel import TunnelReply, connect_request  # noqa: PLC0415  most have no proxy

        exchange = current_exchange()
        host = self._tunnel_host or ""
        authority = f"{f'[{host}]' if ':' in host else host}:{self._tunnel_port}"
        fields: Mapping[str, str] = vars(self)["_tunnel_headers"]  # no type stub lists it
        # Newer Pythons put the host among the fields.
        own = [(name, value) for name, value in fields.items() if name != "Host"]
        self.sock.settimeout(exchange.remaining())
        self.sock.sendall(connect_request(authority, own))
        reply, is_open = TunnelReply(), False
        while not is_open:
            self.sock.settimeout(exchange.remaining())
            is_open = reply.take(self.sock.recv(4096))

    def ask(
        self, method: str, fields: Iterable[tuple[str, str]], body: bytes | None
    ) -> WatchedReply:
        """Send the exchange's request and read the head of its reply.

        urllib3 looks at each field anew, sends head and body apart and wraps the reply: its
        `request` and `getresponse` take twice the time.

        Args:
            method: The request's method.
            fields: Its header fields, checked already, but for the host.
            body: Its body, or None.
        """
        exchange = current_exchange()
        lines = [
            f"{method} {exchange.target} HTTP/1.1\r\nHost: {exchange.authority}".encode("latin-1")
        ]
        # An API key does not let itself be formatted.
        lines += [b"%s: %s" % (n.encode("latin-1"), v.encode("latin-1")) for n, v in fields]
        head = b"\r\n".join((*lines, b"\r\n"))
        try:
            if body is None or len(body) > _SENT_WITH_HEAD:
                self.send(head)
                self.send(body or b"")
            else:
                self.send(head + body)
        except OSError as error:
            # What has broken is one direction. A reply may have come by the other one, if there
            # was anything to reply to.
            lost = exchange.sent and error.errno in _BROKEN and not self.is_closed
            if not lost or raised_by_handler(error):
                raise
        exchange.phase = Phase.HEAD
        reply = WatchedReply(self.sock, method=method)
        try:
            reply.begin()
        except BaseException:
            reply.close()
            raise
        if reply.will_close:
            self.close()
        return reply

    def send(self, data: object) -> None:
        """Hand *data*, a part of the request, to the socket."""
        if not isinstance(data, bytes):
            raise TypeError("a request is made of bytes")
        exchange = current_exchange()
        if self.is_closed:
            # A connection lost halfway is not opened again: the rest is no request of its own.
            if exchange.sent:
                raise http.client.NotConnected
            self.connect()
        sock: socket.socket = self.sock
        rest = memoryview(data)
        exchange.phase = Phase.SEND
        try:
            if not exchange.sent:
                refuse_early_bytes(sock)
            while rest:
                sock.settimeout(exchange.remaining())
                exchange.sent = True
                count = sock.send(rest)
                exchange.bytes_sent += count
                rest = rest[count:]
        except ssl.SSLEOFError as error:
            exchange.note(error)
            # A reply may have come before the end.
            raise BrokenPipeError(errno.EPIPE, "closed") from None
        except (OSError, ValueError) as error:
            if not exchange.bytes_sent and took_nothing(sock, error):
                exchange.sent = False
            exchange.note(error)
            raise


class WatchedTLSConnection(WatchedConnection, HTTPSConnection):
    """The same over TLS, with the one context that the whole transport shares."""

    ssl_context: ssl.SSLContext | None

    def secure(self, exchange: Exchange) -> None:
        """Make the TLS handshake, with the host itself and not with a proxy."""
        context = self.ssl_context
        if context is None:
            raise RuntimeError("the pool was made without an SSL context")
        exchange.phase = Phase.TLS
        name = (self._tunnel_host or self.host).strip("[]").rstrip(".")
        self.sock.settimeout(exchange.remaining())
        self.sock = tls = context.wrap_socket(
            self.sock,
            server_hostname=name,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=False,
        )
        tls.settimeout(exchange.remaining())
        tls.do_handshake()
        self.is_verified = context.verify_mode is ssl.CERT_REQUIRED

    @property
    def is_connected(self) -> bool:
        """Whether the other side has neither closed it nor sent what nobody asked for."""
        # Bytes that TLS has decrypted already do not make the socket readable.
        unread = isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
        return super().is_connected and not unread
