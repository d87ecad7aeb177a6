"""urllib3 connections that tell how far an exchange came, and that end when its time is up.

Which exception a library raises does not tell whether a request was sent: a handshake that hangs
and a reply that never comes are both a read time-out. So the connections here keep an `Exchange`
up to date while they work, at the one place where each thing happens: they note the phase, every
byte of the request handed to the socket, and the first fault met.

Before each operation on a socket its time-out is set to what is left of the whole exchange.
Bytes that drip in keep a connection busy, but no longer than that. Only the operating system's
name resolution cannot be interrupted.
"""

from __future__ import annotations

import errno
import http.client
import io
import re
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Self

import attrs
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.connection import allowed_gai_family

from muybridge.public_address import is_public
from muybridge.transport import PARTIAL_LIMIT
from muybridge_protocol.http import Phase, Reason, TransportFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from urllib3._base_connection import BaseHTTPConnection
    from urllib3.response import HTTPResponse

FRESH = 1.0
"""Seconds for which an idle connection counts as fresh enough for a paid request."""

_LONGEST_WAIT = 86_400.0  # a socket takes no infinite time-out
_DETAIL_LIMIT = 200
_PROXY_REPLY_LIMIT = 64 * 1024
_PROXY_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})[ \r]")
_LOCAL_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
_UNREACHABLE = (
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
)


class Fault(Exception):  # noqa: N818  # it ends one exchange and never reaches a caller
    """A fault that no library has an exception for."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


@attrs.define(eq=False)
class Exchange:
    """One request on its way, and what is known of it so far. It never holds the API key.

    While it is entered, the connections of this thread work for it.

    Args:
        pool: Where its connection comes from.
        target: The request target, put on the wire exactly so.
        deadline: When it must have ended, in seconds of the monotonic clock.
        connect_timeout: Seconds for each try to connect to one address.
        idle_timeout: Seconds that may pass without a byte of the reply, or None.
        paid: Whether an idle connection must be fresh to be used.
        public_host_only: Whether it may connect to public addresses only.
    """

    pool: HTTPConnectionPool
    target: str
    deadline: float
    connect_timeout: float
    idle_timeout: float | None
    paid: bool
    public_host_only: bool
    phase: Phase = Phase.RESOLVE
    sent: bool = False
    bytes_sent: int = 0
    arrived: bytes = b""
    """The beginning of what arrived before the head was complete."""
    ended: bool = False
    """Whether the other side has closed its end."""
    connection: WatchedConnection | None = None
    reply: WatchedReply | None = None
    fault: TransportFailure | None = None

    def __enter__(self) -> Self:
        _current.exchange = self
        return self

    def __exit__(self, *_: object) -> None:
        _current.exchange = None

    def remaining(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: None are left.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for the whole exchange is up")
        return min(left, _LONGEST_WAIT)

    def note(self, error: Exception) -> None:
        """Keep why the exchange fails, unless something earlier explains it."""
        if self.fault is None:
            detail = error.detail if isinstance(error, Fault) else str(error)[:_DETAIL_LIMIT]
            self.fault = self._failure(reason_of(error), detail)

    def failure(self, error: Exception, partial: bytes = b"") -> TransportFailure:
        """Describe the exchange's end by *error*, without keeping anything of *error*.

        What a library says about a reply is left out: it quotes the reply.
        """
        if self.fault is not None:
            return attrs.evolve(self.fault, partial=partial or self.arrived)
        if isinstance(error, Fault):
            reason, detail = error.reason, error.detail
        elif self.phase is Phase.HEAD and self.ended:
            reason = Reason.TRUNCATED if self.arrived else Reason.CLOSED
            detail = "the connection was closed before the end of the reply's head"
        elif self.phase in (Phase.HEAD, Phase.BODY):
            reason, detail = Reason.MALFORMED, type(error).__name__
        else:
            reason, detail = Reason.OTHER, type(error).__name__
        return attrs.evolve(self._failure(reason, detail), partial=partial or self.arrived)

    def _failure(self, reason: Reason, detail: str) -> TransportFailure:
        return TransportFailure(
            phase=self.phase,
            sent=self.sent,
            reason=reason,
            bytes_sent=self.bytes_sent,
            status=self.reply.status if self.reply else None,
            detail=detail,
        )

    def in_order(self) -> bool:
        """Return whether the connection may serve another request, and stamp it as idle."""
        connection, reply = self.connection, self.reply
        if connection is None or reply is None or self.fault is not None:
            return False
        clean = not reply.leftover()
        reply.close()
        connection.idle_since = time.monotonic()
        return clean

    def abandon(self) -> None:
        """Close the connection of an exchange whose reply's head has not arrived."""
        if self.reply is not None:
            self.reply.close()
        if self.connection is not None:
            self.connection.close()


class _Current(threading.local):
    exchange: Exchange | None = None


_current = _Current()


def current_exchange() -> Exchange:
    """Return the exchange that this thread is working for."""
    exchange = _current.exchange
    if exchange is None:
        raise RuntimeError("a watched connection works only for an exchange")
    return exchange


def reason_of(error: Exception) -> Reason:
    """Return what *error*, met at a socket, means."""
    match error:
        case Fault():
            return error.reason
        case ssl.SSLCertVerificationError():
            return Reason.CERTIFICATE
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return Reason.CLOSED
        case TimeoutError():
            return Reason.TIMED_OUT
        case ssl.SSLError():
            return Reason.TLS
        case socket.gaierror(errno=socket.EAI_MEMORY):
            return Reason.LOCAL_LIMIT
        case socket.gaierror() | UnicodeError():
            return Reason.NAME_RESOLUTION
        case ConnectionRefusedError():
            return Reason.REFUSED
        case ConnectionError():
            return Reason.RESET
        case OSError() if error.errno in _LOCAL_LIMITS:
            return Reason.LOCAL_LIMIT
        case OSError() if error.errno in _UNREACHABLE:
            return Reason.UNREACHABLE
        case _:
            return Reason.OTHER


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
        self.exchange = current_exchange()
        self.fp.close()
        self.fp = io.BufferedReader(WatchedReader(sock, self.exchange))

    def begin(self) -> None:
        """Read the head of the final reply.

        http.client stops at the first reply that is not `100 Continue`, takes a connection's end
        for the end of the head, and drops all that follows a line it cannot read.
        """
        super().begin()
        while self.status < http.client.OK:
            self.headers = None  # type: ignore[assignment]  # what http.client itself starts from
            super().begin()
        if self.exchange.ended:
            raise Fault(Reason.TRUNCATED, "the connection was closed before the end of the head")
        unread = not self.msg.is_multipart() and self.msg.get_payload()
        if unread or any(type(d).__name__ in _HEAD_DEFECTS for d in self.msg.defects):
            raise Fault(Reason.MALFORMED, "a line of the head is no header field")
        self.exchange.reply = self

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

    peer_is_public = False
    idle_since = 0.0

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
        self.peer_is_public = self.proxy is None and all(map(is_public, addresses))
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
                failed = error
                if sock is not None:
                    sock.close()
            except BaseException:
                if sock is not None:
                    sock.close()
                raise
            else:
                return sock
        raise failed

    def _tunnel(self) -> None:
        """Ask the proxy for a tunnel. Nothing of the request itself is in what it is sent."""
        exchange = current_exchange()
        host = self._tunnel_host or ""
        authority = f"{f'[{host}]' if ':' in host else host}:{self._tunnel_port}"
        fields: Mapping[str, str] = vars(self)["_tunnel_headers"]  # no type stub lists it
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        self.sock.settimeout(exchange.remaining())
        self.sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        head = b""
        while b"\r\n\r\n" not in head:
            self.sock.settimeout(exchange.remaining())
            piece = self.sock.recv(4096)
            if not piece:
                raise Fault(Reason.CLOSED, "the proxy closed the connection")
            head += piece
            if len(head) > _PROXY_REPLY_LIMIT:
                raise Fault(Reason.MALFORMED, "the proxy's reply is too long")
        status = _PROXY_STATUS.match(head)
        if status is None or (status[1].startswith(b"2") and not head.endswith(b"\r\n\r\n")):
            raise Fault(Reason.MALFORMED, "the proxy's reply is not that of a proxy")
        if not status[1].startswith(b"2"):
            code = status[1].decode()
            raise Fault(Reason.PROXY_REFUSED, f"the proxy answered CONNECT with status {code}")

    def putrequest(
        self,
        method: str,
        url: str,  # noqa: ARG002  # see below
        skip_host: bool = False,  # noqa: FBT001, FBT002  # http.client's signature
        skip_accept_encoding: bool = False,  # noqa: FBT001, FBT002  # the same
    ) -> None:
        """Begin the request with the exchange's own target.

        urllib3 rewrites percent-escapes, which would break a signed URL, and writes what it is
        given as a URL to its log.
        """
        target = current_exchange().target
        super().putrequest(method, target, skip_host, skip_accept_encoding)

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
            while rest:
                sock.settimeout(exchange.remaining())
                exchange.sent = True
                count = sock.send(rest)
                exchange.bytes_sent += count
                rest = rest[count:]
        except ssl.SSLEOFError as error:
            exchange.note(error)
            # urllib3 then looks for a reply that may have come before the end.
            raise BrokenPipeError(errno.EPIPE, "closed") from None
        except (OSError, ValueError) as error:
            exchange.note(error)
            raise

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # urllib3's, not http.client's
        """Read the reply's head."""
        current_exchange().phase = Phase.HEAD
        return super().getresponse()


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
            self.sock, server_hostname=name, do_handshake_on_connect=False
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


class WatchedPool(HTTPConnectionPool):
    """A pool of watched connections that lends each only to an exchange it is good for."""

    # urllib3's own connections do not fit its protocol: there, `host` is no property.
    ConnectionCls = WatchedConnection  # pyright: ignore[reportAssignmentType]

    def _get_conn(self, timeout: float | None = None) -> BaseHTTPConnection:
        exchange = current_exchange()
        lent = super()._get_conn(timeout)
        if not lent.is_closed and not _good_for(exchange, _watched(lent)):
            self._put_conn(lent)
            lent = self._new_conn()
        exchange.connection = _watched(lent)
        return lent


class WatchedTLSPool(WatchedPool, HTTPSConnectionPool):
    """The same for https."""

    ConnectionCls = WatchedTLSConnection


def _watched(connection: object) -> WatchedConnection:
    if not isinstance(connection, WatchedConnection):
        raise TypeError("the pool made a connection that is not watched")
    return connection


def _good_for(exchange: Exchange, connection: WatchedConnection) -> bool:
    if exchange.paid and time.monotonic() - connection.idle_since > FRESH:
        return False
    return connection.peer_is_public or not exchange.public_host_only or bool(connection.proxy)


POOL_CLASSES: dict[str, type[HTTPConnectionPool | HTTPSConnectionPool]] = {
    "http": WatchedPool,
    "https": WatchedTLSPool,
}
