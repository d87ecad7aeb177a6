"""The transport on h11 and trio's own streams.

h11 turns requests into bytes and bytes into replies, and does no I/O. So what was handed to the
socket is known exactly; `trio_exchange` keeps account of it.
"""

from __future__ import annotations

import os
import ssl
from typing import NoReturn

import h11

from muybridge.wire._addressing import Origin, check_fields, split_url
from muybridge.wire._certificates import default_context
from muybridge.wire._trio_connections import Connection, Route, connect
from muybridge.wire._trio_exchange import Exchange
from muybridge.wire._trio_progress import Progress
from muybridge.wire._trio_request import begin_request
from muybridge.wire._watched_exchange import Fault
from muybridge_protocol.http import HttpRequest, HttpResponse, Reason

_ROUTES_KEPT = 256


class TrioTransport:
    """An `AsyncTransport` on h11 and trio, for any number of tasks of one event loop.

    Every time-out bounds the whole exchange, name resolution included. Where the host has to be
    public (`HttpRequest.public_host_only`), that is checked on the very addresses that are
    connected to, except where a proxy does the connecting.

    A shielded exchange (`HttpRequest.shielded`) cannot be cancelled, within its time-out, from its
    first byte until its reply's last one. Until then it can be cancelled, and there is a last
    checkpoint right before the first byte.

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
        pool_size: int = 512,
        allow_plain_http_proxy: bool = False,
    ) -> None:
        self._ssl_context = ssl_context
        self._connect_timeout = connect_timeout
        self._pool_size = pool_size
        self._allow_plain_http_proxy = allow_plain_http_proxy
        self._routes: dict[str, Route] = {}
        self._pid = os.getpid()

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Exchange:
        """Send *request* on entering the context, and hand over its reply.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds that the whole exchange may take.
            authorization: The value of the `Authorization` header, or None to send none.

        Raises:
            TransportError: On entering, when there is no whole head.
        """
        return Exchange(self, request, timeout, authorization)

    async def exchange(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  # of the exchange, which is more than this call's scope
        authorization: str | None = None,
    ) -> HttpResponse:
        """Send *request* and return its whole reply; the arguments are those of `stream`.

        Raises:
            TransportError: There is no whole reply; what had arrived is kept in its failure.
        """
        return await Exchange(self, request, timeout, authorization).whole()

    async def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        routes, self._routes = self._routes, {}
        for route in routes.values():
            route.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")

    def prepare(self, request: HttpRequest, authorization: str | None) -> tuple[Route, h11.Request]:
        """Return the way of *request*, and how it begins, having checked that it can be sent.

        Raises:
            Fault: It cannot be sent as described.
        """
        origin, target = split_url(request.url)
        check_fields((), authorization)
        route = self._route(origin)
        if route.forwards:
            if authorization is not None and not self._allow_plain_http_proxy:
                raise Fault(
                    Reason.REFUSED_HERE,
                    "over plain http the proxy would read the key; name the service's host in "
                    "NO_PROXY, or say TrioTransport(allow_plain_http_proxy=True)",
                )
            target = origin + target
        return route, begin_request(request, route, target)

    async def connect(self, route: Route, request: HttpRequest, progress: Progress) -> Connection:
        """Return a new connection for *request*, and note the progress; see `connect`."""
        return await connect(
            route,
            progress,
            public_host_only=request.public_host_only,
            connect_timeout=self._connect_timeout,
            ssl_context=self._context() if route.origin.scheme == "https" else None,
        )

    def _route(self, origin: str) -> Route:
        if self._pid != os.getpid():
            # A forked child must not write to its parent's connections.
            self._routes, self._pid = {}, os.getpid()
        route = self._routes.get(origin)
        if route is None:
            if len(self._routes) >= _ROUTES_KEPT:
                self._routes.pop(next(iter(self._routes))).close()
            route = self._routes[origin] = Route(Origin.read(origin), self._pool_size)
        return route

    def _context(self) -> ssl.SSLContext:
        """Return the one context of all connections: reading the CA certificates takes long."""
        if self._ssl_context is None:
            self._ssl_context = default_context()
        return self._ssl_context
