"""The ways to all origins of one transport, and what connections are opened with."""

from __future__ import annotations

import os
import ssl

from muybridge.wire._addressing import Origin, check_fields, split_url
from muybridge.wire._certificates import default_context
from muybridge.wire._trio_connections import Connection, Route, connect
from muybridge.wire._trio_progress import Progress
from muybridge.wire._trio_request import begin_request
from muybridge.wire.exchange import Fault
from muybridge_protocol.http import HttpRequest, Reason

_ROUTES_KEPT = 256


class Network:
    """Finds the way of each request; the arguments are those of `TrioTransport`."""

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None,
        connect_timeout: float,
        pool_size: int,
        allow_plain_http_proxy: bool,
    ) -> None:
        self._ssl_context = ssl_context
        self._connect_timeout = connect_timeout
        self._pool_size = pool_size
        self._allow_plain_http_proxy = allow_plain_http_proxy
        self._routes: dict[str, Route] = {}
        self._pid = os.getpid()

    def close(self) -> None:
        """Close every idle connection, and those in use when their exchange ends."""
        routes, self._routes = self._routes, {}
        for route in routes.values():
            route.close()

    def prepare(self, request: HttpRequest, authorization: str | None) -> tuple[Route, bytes]:
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
