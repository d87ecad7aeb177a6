"""The transport on requests: one prepared request, handed straight to its adapter.

There is no session, so that no redirect, no netrc file and no cookie can come into it. Proxies
and CA certificates are looked up here, once for each host.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn, Self

import attrs
from requests.models import PreparedRequest
from requests.structures import CaseInsensitiveDict

from muybridge.wire._addressing import METHODS_WITH_BODY, Origin, check_fields, split_url
from muybridge.wire._certificates import default_context
from muybridge.wire._environment import proxy_for
from muybridge.wire._network_errors import network_error
from muybridge.wire._reply_body import decoded, framed
from muybridge.wire._watched_exchange import Exchange
from muybridge.wire._watched_pools import Loan, WatchedAdapter
from muybridge.wire.exchange import Fault
from muybridge.wire.transport import PARTIAL_LIMIT, TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason, TransportFailure

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from urllib3.connectionpool import HTTPConnectionPool

_ROUTES_KEPT = 256


@attrs.frozen(repr=False)
class _Route:
    """The way to one origin."""

    pool: HTTPConnectionPool
    authority: str
    prefix: str = ""
    """What stands before a path in the request line, where a proxy passes on clear text."""


class RequestsTransport:
    """A `Transport` on requests and urllib3, safe to use from many threads.

    Every time-out bounds the whole exchange; only the operating system's name resolution, which
    cannot be interrupted, may outlast it. `HttpRequest.public_host_only` is checked on the very
    addresses that are connected to, except where a proxy does the connecting.

    Proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are read from the environment
    once for each host; https goes through them in a tunnel. The CA certificates are those of
    `REQUESTS_CA_BUNDLE` or `CURL_CA_BUNDLE`, else certifi's.

    Args:
        ssl_context: What to make TLS connections with instead; its settings are kept as they are.
        connect_timeout: Seconds that trying one address may take. A host may have several.
        pool_size: Most idle connections kept for one host. It bounds no work: one more exchange
            opens one more connection.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout: float = 10.0,
        pool_size: int = 64,
        allow_plain_http_proxy: bool = False,
    ) -> None:
        self._ssl_context = ssl_context
        self._connect_timeout = connect_timeout
        self._pool_size = pool_size
        self._allow_plain_http_proxy = allow_plain_http_proxy
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._routes: dict[str, _Route] = {}
        self._adapter = WatchedAdapter(self._pool_size)
        self._pid = os.getpid()

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> _Reply:
        """Send *request* on entering the context, and hand over its reply.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds that the whole exchange may take.
            authorization: The value of the `Authorization` header, or None to send none.

        Raises:
            TransportError: On entering, when there is no whole head.
        """
        return _Reply(self._send, request, timeout, authorization)

    def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        with self._lock:
            routes, self._routes = self._routes, {}
            self._adapter.close()
        for route in routes.values():
            route.pool.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")

    def _send(
        self,
        request: HttpRequest,
        timeout: float,
        authorization: str | None,
        begin: Callable[[Exchange], None],
    ) -> tuple[Exchange, Loan] | TransportFailure:
        """Send *request* and return its exchange, once the head of the reply has arrived.

        A failure is returned and not raised, so that no frame with the key in its variables
        stays in a traceback. *begin* is handed the exchange before anything is sent.
        """
        handled = sys.exception()
        deadline = time.monotonic() + timeout
        try:
            route, target = self._locate(request.url)
            self._guard(route, authorization)
            prepared = _prepared(request, authorization)
        except Fault as fault:
            refused = fault.reason is Reason.REFUSED_HERE
            phase = Phase.PROXY if refused else Phase.RESOLVE
            return TransportFailure(
                phase=phase, sent=False, reason=fault.reason, detail=fault.detail
            )
        # This is written to a log. The target itself is the exchange's.
        prepared.url = route.prefix + target.partition("?")[0]
        exchange = Exchange(
            pool=route.pool,
            authority=route.authority,
            target=route.prefix + target,
            deadline=deadline,
            connect_timeout=self._connect_timeout,
            idle_timeout=request.idle_timeout,
            paid=request.paid,
            public_host_only=request.public_host_only,
        )
        begin(exchange)
        try:
            with exchange:
                return exchange, self._adapter.loan_for(prepared)
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            exchange.abandon()
            return exchange.failure(network_error(error, handled))

    def _locate(self, url: str) -> tuple[_Route, str]:
        """Return the way to *url*, and its request target."""
        if self._pid != os.getpid():
            self._start()  # a forked child must not write to its parent's connections
        origin, target = split_url(url)
        route = self._routes.get(origin)
        if route is None:
            with self._lock:
                if len(self._routes) >= _ROUTES_KEPT:
                    self._routes.clear()
                route = self._routes[origin] = self._route(Origin.read(origin))
        return route, target

    def _route(self, origin: Origin) -> _Route:
        manager = self._adapter.poolmanager
        proxy = proxy_for(origin.scheme, origin.host, origin.port)
        if proxy is not None:
            manager = self._adapter.manager_for(proxy)
        context = {"ssl_context": self._context()} if origin.scheme == "https" else None
        pool = manager.connection_from_host(
            origin.host, origin.port, origin.scheme, pool_kwargs=context
        )
        forwarded = proxy is not None and origin.scheme == "http"
        authority = origin.authority
        return _Route(pool, authority, f"http://{authority}" if forwarded else "")

    def _guard(self, route: _Route, authorization: str | None) -> None:
        if authorization is not None and route.prefix and not self._allow_plain_http_proxy:
            raise Fault(
                Reason.REFUSED_HERE,
                "over plain http the proxy would read the key; name the service's host in "
                "NO_PROXY, or say RequestsTransport(allow_plain_http_proxy=True)",
            )

    def _context(self) -> ssl.SSLContext:
        """Return the one context of all connections: reading the CA certificates takes long."""
        if self._ssl_context is None:
            self._ssl_context = default_context()
        return self._ssl_context


class _Reply:
    """One exchange: sent on entering, ended on leaving."""

    def __init__(
        self,
        send: Callable[
            [HttpRequest, float, str | None, Callable[[Exchange], None]],
            tuple[Exchange, Loan] | TransportFailure,
        ],
        request: HttpRequest,
        timeout: float,
        authorization: str | None,
    ) -> None:
        self._send = send
        self._request = request
        self._timeout = timeout
        self._authorization = authorization
        self._exchange: Exchange | None = None
        self._raw: Loan | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._size = 0
        self._partial = b""
        self._complete = False
        self._aborted = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._request!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a connection and cannot be pickled")

    def __enter__(self) -> Self:
        authorization, self._authorization = self._authorization, None
        sent = self._send(self._request, self._timeout, authorization, self._begin)
        del authorization  # the traceback of what is raised below shows this frame
        try:
            failure = sent if isinstance(sent, TransportFailure) else self._receive(*sent)
        except BaseException:
            self._close()
            raise
        if failure is not None:
            raise TransportError(failure)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def sent(self) -> bool:
        """Whether any byte of the request may have been handed to the network."""
        return self._exchange is not None and self._exchange.sent

    @property
    def head(self) -> HttpHead:
        """The status line and headers."""
        return self._head

    def pieces(self) -> Iterator[bytes]:
        """Yield the decoded body, at most 256 KiB at a time, as it comes in.

        Raises:
            TransportError: The body ended early, was malformed, stalled, took longer than the
                exchange may, or grew over the request's limit.
        """
        while True:
            piece = self._next(sys.exception())
            if isinstance(piece, TransportFailure):
                raise TransportError(piece)
            if not piece:
                return
            yield piece

    def abort(self) -> None:
        """Let whatever the exchange waits for fail at once. Another thread may call it."""
        self._aborted = True
        if self._exchange is not None:
            self._exchange.abort()

    def _begin(self, exchange: Exchange) -> None:
        self._exchange = exchange
        if self._aborted:
            exchange.abort()

    def _receive(self, exchange: Exchange, raw: Loan) -> TransportFailure | None:
        self._raw = raw
        reply = exchange.reply
        if reply is None:
            raise RuntimeError("the connection was not a watched one")
        self._head = HttpHead(reply.status, tuple(reply.msg.items()))
        try:
            body = framed(reply.fp, self._request.method, reply.status, reply.msg)
            self._pieces = decoded(body, reply.msg)
        except Fault as fault:
            self._close()
            return exchange.failure(fault)
        exchange.phase = Phase.BODY
        exchange.arrived = b""
        return None

    def _next(self, handled: BaseException | None) -> bytes | TransportFailure:
        """Return the next piece, nothing at the body's end, or what went wrong."""
        exchange, limit = self._entered, self._request.body_limit
        try:
            if self._raw is None and not self._complete:
                raise Fault(Reason.CLOSED, "the exchange was left before its end")  # noqa: TRY301  # one way out for all
            piece = next(self._pieces, b"")
            self._size += len(piece)
            if len(self._partial) < PARTIAL_LIMIT:
                self._partial += piece[: PARTIAL_LIMIT - len(self._partial)]
            if not piece:
                self._finish()
        except BaseException as error:  # noqa: BLE001  # what is not the network's is raised again
            self._close()
            return exchange.failure(network_error(error, handled), self._partial)
        if limit is not None and self._size > limit:
            self._close()
            fault = Fault(Reason.TOO_LARGE, f"the body is larger than {limit} bytes")
            return exchange.failure(fault, self._partial)
        return piece

    def _finish(self) -> None:
        """Give the connection back, if it is in order."""
        raw, exchange = self._raw, self._entered
        self._complete = True
        if raw is None:
            return
        if exchange.settle():
            self._raw = None
            raw.release()
        else:
            self._close()

    @property
    def _entered(self) -> Exchange:
        if self._exchange is None:
            raise RuntimeError("the exchange has not been entered")
        return self._exchange

    def _close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()


def _prepared(request: HttpRequest, authorization: str | None) -> PreparedRequest:
    check_fields(request.headers, authorization)
    fields = CaseInsensitiveDict(request.headers)
    if "Accept-Encoding" not in fields:
        fields["Accept-Encoding"] = "identity"
    if request.body is not None or request.method in METHODS_WITH_BODY:
        fields["Content-Length"] = str(len(request.body or b""))
    if authorization is not None:
        fields["Authorization"] = authorization
    prepared = PreparedRequest()
    prepared.method = request.method
    prepared.headers = fields
    prepared.body = request.body
    return prepared
