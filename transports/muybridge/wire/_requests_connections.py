"""urllib3 connections that keep the record of the exchange that they serve.

urllib3 makes a connection for each exchange. Only the socket below it, a `Link`, is kept between
exchanges, and `Route` decides which request may use it. Before each step on a socket, its timeout
is set to the time that the exchange has left. Only the operating system's name resolution cannot be
interrupted.

`request` and `getresponse` replace urllib3's own, which check each header again, send head and body
separately and take twice as long.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from urllib3 import HTTPConnectionPool, HTTPHeaderDict, HTTPResponse, connection

from muybridge.signals import raised_by_handler
from muybridge.wire._addressing import Origin, check_addresses, request_head
from muybridge.wire._response_body import Framing, listed
from muybridge.wire.exchange import (
    PIECE,
    Exchange,
    Fault,
    refuse_early_bytes,
    refuse_other_protocol,
)
from muybridge.wire.network import Reusable, Route
from muybridge_protocol.http import HttpHead, Phase, Reason, TransportFailure

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection

    from muybridge.wire._proxy import Proxy


def original(kind: Any, module: str) -> Any:
    """Return the class of *module* that *kind* is, or that has been replaced with *kind*.

    This module may be imported first while a cassette or the like has put a class of its own there,
    derived from the original.
    """
    return next((base for base in kind.__mro__ if base.__module__ == module), kind)


if not TYPE_CHECKING:
    HTTPConnection = original(connection.HTTPConnection, "urllib3.connection")

# The email package also reports defects of the body, which it does not see here.
_HEAD_DEFECTS = frozenset(
    {
        "FirstHeaderLineIsContinuationDefect",
        "MissingHeaderBodySeparatorDefect",
        "MalformedHeaderDefect",
        "MisplacedEnvelopeHeaderDefect",
    }
)
_REFUSALS_OF_MOCKS = frozenset(
    {
        "requests_mock.exceptions.NoMockAddress",
        "vcr.errors.CannotOverwriteExistingCassetteException",
    }
)


@attrs.define(eq=False, repr=False)
class Link(Reusable):
    """A connected socket, with TLS if the route has it.

    Args:
        sock: The socket.
    """

    sock: socket.socket

    def refuse_early_bytes(self) -> None:
        """Refuse to send a request if something has already arrived on the socket.

        Raises:
            Fault: Bytes have arrived, or the peer has closed the connection.
            OSError: The connection is broken.
        """
        refuse_early_bytes(self.sock)

    def close(self) -> None:
        """Close it at once."""
        self.sock.close()


@attrs.define(eq=False, repr=False)
class RequestsExchange(Exchange):
    """The record of an exchange through requests.

    Attributes:
        route: Where its connection leads.
        target: The request target, sent unchanged.
        ssl_context: The context for the TLS handshake, or None for a plain connection.
        connect_timeout: Seconds to try each address.
        intercepted: Whether something that replaces a part of requests or urllib3, such as a mock,
            has the request. It does not say what it sends.
        link: The connection in use, or None.
        is_spare: Whether the route already has an idle connection that the request could not use.
            One is enough for the polls between creates.
        error: What a connection of ours raised, or None.
        reply: The response, once its head has arrived on a connection of ours.
    """

    route: Route[Link] = attrs.field(init=False)
    target: str = attrs.field(init=False)
    ssl_context: ssl.SSLContext | None = attrs.field(init=False)
    connect_timeout: float = attrs.field(init=False)
    intercepted: bool = attrs.field(default=False, init=False)
    link: Link | None = attrs.field(default=None, init=False)
    is_spare: bool = attrs.field(default=False, init=False)
    error: Exception | None = attrs.field(default=None, init=False)
    reply: Reply | None = attrs.field(default=None, init=False)

    @property
    def any_library(self) -> bool:
        """Whether exceptions of unknown libraries count as network errors."""
        return self.intercepted

    def hand_over(
        self,
        route: Route[Link],
        target: str,
        ssl_context: ssl.SSLContext | None,
        connect_timeout: float,
    ) -> None:
        """Let this thread's connections serve the exchange, unless something intercepts it.

        Until a connection of ours takes the request, all of it may have been sent.
        """
        self.route, self.target = route, target
        self.ssl_context, self.connect_timeout = ssl_context, connect_timeout
        self.intercepted, self.phase, self.sent = True, Phase.HEAD, True
        _current.exchange = self

    def take_over(self) -> None:
        """Record that a connection of ours takes the request, and that nothing was sent yet.

        Raises:
            Fault: One took it before, so something in between is about to resend it.
        """
        if self.link is not None:
            raise Fault(Reason.CLOSED, "the request was about to be sent again")
        if self.intercepted:
            self.intercepted, self.phase, self.sent = False, Phase.RESOLVE, False

    def failure(self, error: Exception) -> TransportFailure:
        """Describe how *error* ended the exchange; of an interceptor's, show only the class."""
        if not self.intercepted or isinstance(error, Fault):
            return super().failure(error)
        kind = type(error).__name__
        if _is_refusal_of_mock(error):
            self.phase, self.sent = Phase.RESOLVE, False
            return super().failure(
                Fault(Reason.REFUSED_HERE, f"a mock has no response for it ({kind})")
            )
        return attrs.evolve(super().failure(error), reason=Reason.OTHER, detail=kind)

    def end(self, *, is_whole: bool) -> None:
        """Keep the connection if the whole response was read and nothing failed, or close it."""
        link, reply = self.link, self.reply
        self.link = self.reply = None
        if link is None:
            return
        is_clean = is_whole and not (self.send_error or self.followed)
        if is_clean and reply and reply.keeps_alive() and not self.is_spare:
            self.route.keep(link)
        else:
            link.close()


def _is_refusal_of_mock(error: Exception) -> bool:
    """Whether a mock reports that it has no response for a request, which was therefore not sent.

    Otherwise, an unexpected poll would be retried until the deadline of the wait.
    """
    kind = type(error)
    name = f"{kind.__module__}.{kind.__name__}"
    return name in _REFUSALS_OF_MOCKS or (
        name == "requests.exceptions.ConnectionError"
        and str(error).startswith("Connection refused by Responses")
    )


class _Current(threading.local):
    exchange: RequestsExchange | None = None


_current = _Current()


def current_exchange() -> RequestsExchange:
    """Return this thread's exchange."""
    exchange = _current.exchange
    if exchange is None:
        raise RuntimeError("the session of a RequestsTransport sends nothing but its requests")
    return exchange


def let_go() -> None:
    """End this thread's work on its exchange."""
    _current.exchange = None


class Incoming(io.RawIOBase):
    """What arrives on a socket during an exchange; nothing once `over` is set."""

    def __init__(self, sock: socket.socket, exchange: Exchange) -> None:
        super().__init__()
        self._sock = sock
        self._exchange = exchange
        self.over = False
        self.marks_end = True
        """Whether the response marks its own end, so that truncation is noticed without TLS."""

    def readable(self) -> bool:
        """Return True, as every reader does."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived into *buffer*, and wait no longer than the exchange may take."""
        if self.over:
            return 0
        self._sock.settimeout(self._exchange.awaiting())
        try:
            count = self._sock.recv_into(buffer)
        except ssl.SSLEOFError:
            if not self.marks_end:
                raise Fault(Reason.TRUNCATED, "TLS ended without a closing alert") from None
            count = 0
        exchange = self._exchange
        if not count or exchange.phase is Phase.HEAD or exchange.request.paid:
            exchange.receive(bytes(buffer[:count]))
        return count

    def makefile(self, *_: object) -> io.BufferedReader:
        """Return what http.client reads a response from."""
        return io.BufferedReader(self)


class Reply(http.client.HTTPResponse):
    """A response, read strictly: its head must be complete and well-formed."""

    def __init__(self, incoming: Incoming, exchange: Exchange) -> None:
        super().__init__(incoming, method=exchange.request.method)  # type: ignore[arg-type]  # it only asks for a file
        self._incoming = incoming
        self._exchange = exchange

    def begin(self, **options: Any) -> None:  # newer Pythons pass a private one
        """Read the head of the final response.

        http.client stops at the first response that is not `100 Continue`, accepts the end of the
        connection as the end of the head, and drops everything after a line that it cannot read.
        """
        super().begin(**options)
        while self.status < http.client.OK:
            self.headers = None  # type: ignore[assignment]  # what http.client itself starts from
            super().begin(**options)
        if self._exchange.ended:
            raise EOFError  # `Exchange` describes it
        unread = not self.msg.is_multipart() and self.msg.get_payload()
        if unread or any(type(d).__name__ in _HEAD_DEFECTS for d in self.msg.defects):
            raise Fault(Reason.MALFORMED, "a line of the head is not a header field")
        self.head: HttpHead = HttpHead(self.status, tuple(self.msg.items()))
        if any("\n" in value for _, value in self.head.headers):
            raise Fault(Reason.MALFORMED, "a header goes over several lines")
        framing = Framing.of(self._exchange.request.method, self.status, listed(self.head))
        self._incoming.marks_end = not framing.ends_with_connection
        self.pieces: Iterator[bytes] = framing.pieces(self.fp)

    def keeps_alive(self) -> bool:
        """Whether another request may follow, because nothing arrived that no request asked for."""
        self._incoming.over = True
        return not self.will_close and not self.fp.peek(1)


class Connection(HTTPConnection):
    """A connection for one exchange, that of its thread."""

    def connect(self) -> None:
        """Take an idle link that the request may use, or open one."""
        exchange = current_exchange()
        try:
            exchange.link = exchange.route.take(exchange.request)
            if exchange.link is None:
                exchange.is_spare = exchange.route.has_idle
                exchange.link = _open(exchange)
        except Exception as error:
            exchange.error = error
            raise
        self.sock = exchange.sock = exchange.link.sock

    def request(
        self,
        method: str,
        url: str,  # noqa: ARG002  # the part that may be logged; the exchange has the rest
        body: Any = None,
        headers: Any = None,
        **_: Any,
    ) -> None:
        """Send the request of the exchange."""
        exchange = current_exchange()
        if self.is_closed:
            self.connect()
        try:
            exchange.begin()
            self._send(exchange, method, headers, body or b"")
        except Exception as error:
            exchange.error = error
            raise

    def getresponse(self, **_: object) -> HTTPResponse:  # type: ignore[override]  # the same
        """Read the head of the response."""
        exchange = current_exchange()
        if exchange.error is not None:  # urllib3 ignores some errors that `request` raises
            raise exchange.error
        try:
            reply = Reply(Incoming(self.sock, exchange), exchange)
            reply.begin()
        except Exception as error:
            exchange.error = error
            raise
        exchange.reply = reply
        return HTTPResponse(
            body=reply,
            headers=HTTPHeaderDict(reply.head.headers),
            status=reply.status,
            version=reply.version,
            reason=reply.reason,
            preload_content=False,
            decode_content=False,
        )

    def close(self) -> None:
        """Let go of the link, which the exchange closes at its end."""
        self.sock = None

    def _send(
        self, exchange: RequestsExchange, method: str, fields: Mapping[str, str], body: bytes
    ) -> None:
        head = request_head(
            method, exchange.target, (*fields.items(), *exchange.route.proxy_fields)
        )
        link = exchange.link
        if link is None:
            raise RuntimeError("urllib3 sends a request before it connects")
        if not link.idle_since:  # `Route.take` has just checked an idle one
            link.refuse_early_bytes()
        exchange.sent = True
        try:
            # Copying a large body takes longer than sending it separately.
            for part in (head + body,) if len(body) <= PIECE else (head, body):
                rest = memoryview(part)
                while rest:
                    self.sock.settimeout(exchange.remaining())
                    count = self.sock.send(rest)
                    exchange.bytes_sent += count
                    rest = rest[count:]
        except OSError as error:
            exchange.send_failed(error, self.sock)


class Pool(HTTPConnectionPool):
    """Makes connections for exchanges. TLS, if there is any, belongs to the link below them.

    urllib3's own class for https would warn about a certificate that it did not check itself.
    """

    # urllib3's own connections do not fit its protocol: there, `host` is no property.
    ConnectionCls = Connection  # pyright: ignore[reportAssignmentType]

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin.host, origin.port)
        self.scheme = origin.scheme


def _open(exchange: RequestsExchange) -> Link:
    """Open a connection, up to the first byte of a request."""
    origin, proxy = exchange.route.origin, exchange.route.proxy
    host = origin.host.strip("[]")
    context = exchange.ssl_context
    sock, is_public = _dial(exchange, host)
    try:
        if context is not None:
            if proxy is not None:
                exchange.phase = Phase.PROXY
                _tunnel(exchange, sock, f"{origin.host}:{origin.port}", proxy)
            exchange.phase = Phase.TLS
            sock = context.wrap_socket(
                sock,
                server_hostname=host.rstrip("."),
                do_handshake_on_connect=False,  # if interrupted there, it would not be closed
                suppress_ragged_eofs=False,
            )
            sock.settimeout(exchange.remaining(exchange.request.idle_timeout))
            sock.do_handshake()
            refuse_other_protocol(sock)
    except BaseException:
        sock.close()
        raise
    return Link(is_public, sock)


def _dial(exchange: RequestsExchange, host: str) -> tuple[socket.socket, bool]:
    """Connect to the first address that answers, without looking the name up again.

    Return the socket, and whether all addresses of the host are public.
    """
    proxy, port = exchange.route.proxy, exchange.route.origin.port
    exchange.phase = Phase.RESOLVE
    exchange.remaining()
    place = (host, port)
    if proxy is not None:
        place, exchange.proxy = (proxy.host, proxy.port), proxy.place
    found = socket.getaddrinfo(*place, 0, socket.SOCK_STREAM)
    is_public = proxy is None and check_addresses(
        exchange.request, [str(entry[4][0]) for entry in found]
    )
    exchange.phase = Phase.CONNECT
    failed: Exception = Fault(Reason.NAME_RESOLUTION, "the host has no address")
    for family, kind, protocol, _, address in found:
        sock: socket.socket | None = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(exchange.remaining(exchange.connect_timeout))
            sock.connect(address)
        except BaseException as error:
            if sock is not None:
                sock.close()
            if not isinstance(error, OSError) or raised_by_handler(error):
                raise
            failed = error
        else:
            return sock, is_public
    raise failed


def _tunnel(exchange: Exchange, sock: socket.socket, authority: str, proxy: Proxy) -> None:
    """Ask the proxy for a tunnel. It sees nothing of the request itself."""
    from muybridge.wire._proxy import TunnelReply  # noqa: PLC0415  most have no proxy

    fields = (("Host", authority), *proxy.fields)
    sock.settimeout(exchange.remaining(exchange.request.idle_timeout))
    sock.sendall(request_head("CONNECT", authority, fields))
    reply, is_open = TunnelReply(), False
    while not is_open:
        sock.settimeout(exchange.remaining(exchange.request.idle_timeout))
        is_open = reply.take(sock.recv(4096))
