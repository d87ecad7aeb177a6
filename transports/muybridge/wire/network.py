"""The route to each origin, and the idle connections that are kept for the next request.

The same rules decide in every transport which connection a request may use:

- A paid request gets a connection that is opened for it. On a connection that was used before, a
  late response to an earlier request could be mistaken for its own.
- An idle connection that a paid request may not use stays open for polls. One is enough: the
  connections of further creates are closed after their responses.
- A request for public hosts only never uses a connection whose host has a private address.
- A connection on which something arrived while it was idle is closed.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from muybridge.wire._addressing import Origin, check_fields, refuse_to_show_key, split_url
from muybridge.wire._certificates import default_context
from muybridge.wire._environment import proxy_for
from muybridge.wire.exchange import Fault
from muybridge_protocol.http import HttpRequest, Reason
from muybridge_protocol.operations.defaults import LONGEST_IDLE
from muybridge_protocol.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from muybridge.wire._proxy import Proxy

_ROUTES_KEPT: Final = 256
"""Origins whose connections are kept."""
_METHOD: Final = re.compile(r"[A-Z]+")


@attrs.define(eq=False, repr=False)
class Reusable(ABC):
    """A connection that can serve one request after another.

    Args:
        peer_is_public: Whether every address of its host is a public one.

    Attributes:
        idle_since: When its last exchange ended, by the monotonic clock; 0 if it was never used.
    """

    peer_is_public: bool
    idle_since: float = attrs.field(default=0.0, init=False)

    @abstractmethod
    def refuse_early_bytes(self) -> None:
        """Refuse to send a request if something has already arrived on the connection.

        Raises:
            Fault: Bytes have arrived, or the peer has closed the connection.
            OSError: The connection is broken.
        """

    @abstractmethod
    def close(self) -> None:
        """Close it at once, without waiting for the peer."""

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed it nor sent anything unasked."""
        try:
            self.refuse_early_bytes()
        except (OSError, Fault):
            return False
        return True


C = TypeVar("C", bound=Reusable)


class Route(Generic[C]):
    """The route to one origin, and the idle connections that lead there.

    Args:
        origin: Where it leads.
        pool_size: The most idle connections to keep.

    Raises:
        Fault: The environment names a proxy that cannot be used.
    """

    def __init__(self, origin: Origin, pool_size: int) -> None:
        proxy = proxy_for(origin.scheme, origin.host, origin.port)
        self.origin: Origin = origin
        self.proxy: Proxy | None = None if proxy is None else _read_proxy(proxy)
        self._pool_size = pool_size
        self._idle: deque[C] = deque()
        self._closed = False

    @property
    def forwards(self) -> bool:
        """Whether a proxy forwards the request in clear text, and so can read all of it."""
        return self.proxy is not None and self.origin.scheme == "http"

    @property
    def proxy_fields(self) -> tuple[tuple[str, str], ...]:
        """The header fields that a forwarding proxy needs in each request."""
        return self.proxy.fields if self.proxy is not None and self.forwards else ()

    @property
    def has_idle(self) -> bool:
        """Whether an idle connection is kept."""
        return bool(self._idle)

    def take(self, request: HttpRequest) -> C | None:
        """Return an idle connection that *request* may use, or None."""
        while (connection := self._newest()) is not None:
            private = request.public_host_only and not (connection.peer_is_public or self.proxy)
            if not connection.is_quiet():
                connection.close()
            elif request.paid or private:
                self._idle.append(connection)
                return None
            else:
                return connection
        return None

    def keep(self, connection: C) -> None:
        """Keep *connection*, which has served its request, for another one."""
        now = connection.idle_since = time.monotonic()
        self._idle.append(connection)
        with suppress(IndexError):  # another thread was faster
            stale = now - self._idle[0].idle_since > LONGEST_IDLE
            if self._closed or stale or len(self._idle) > self._pool_size:
                # One at a time is enough: each exchange keeps one, and may close an old one.
                self._idle.popleft().close()

    def close(self) -> None:
        """Close the idle connections, and those in use as soon as their exchange ends."""
        self._closed = True
        while (connection := self._newest()) is not None:
            connection.close()

    def _newest(self) -> C | None:
        try:
            return self._idle.pop()
        except IndexError:  # other threads take connections, too
            return None


class Network(Generic[C]):
    """The routes of one transport, and what its connections are opened with.

    Args:
        transport: The name of the transport, for messages.
        ssl_context: What to make TLS connections with, or None for the default.
        pool_size: The most idle connections to keep for one origin.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    def __init__(
        self,
        transport: str,
        *,
        ssl_context: ssl.SSLContext | None,
        pool_size: int,
        allow_plain_http_proxy: bool,
    ) -> None:
        self._transport = transport
        self._ssl_context = ssl_context
        self._pool_size = pool_size
        self._allow_plain_http_proxy = allow_plain_http_proxy
        self._routes: dict[str, Route[C]] = {}
        self._pid = os.getpid()

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """The context that all connections share, because reading the CA certificates is slow."""
        if self._ssl_context is None:
            self._ssl_context = default_context()
        return self._ssl_context

    def find(self, request: HttpRequest, authorization: str | None) -> tuple[Route[C], str]:
        """Check that *request* is safe to send, and return its route and its target.

        Raises:
            Fault: It cannot be sent as described.
        """
        if not _METHOD.fullmatch(request.method):
            raise Fault(Reason.OTHER, "the method of the request is invalid")
        place, target = split_url(request.url)
        route = self._route(place)
        check_fields(request.headers, authorization)
        if not route.forwards:
            return route, target
        if not self._allow_plain_http_proxy:
            refuse_to_show_key(
                route.origin,
                authorization,
                Remedy(kind=RemedyKind.BYPASS_PROXY, variable="NO_PROXY"),
                Remedy(
                    kind=RemedyKind.ALLOW,
                    option="allow_plain_http_proxy",
                    owner=self._transport,
                ),
            )
        return route, f"http://{route.origin.authority}{target}"

    def close(self) -> None:
        """Close every idle connection, and those in use as soon as their exchange ends."""
        routes, self._routes = self._routes, {}
        for route in routes.values():
            route.close()

    def _route(self, place: str) -> Route[C]:
        if self._pid != os.getpid():
            # A forked child must not use its parent's connections.
            self._routes, self._pid = {}, os.getpid()
        route = self._routes.get(place)
        if route is None:
            # Links may lead to any number of hosts. Beyond the limit, all routes are dropped and
            # found anew.
            if len(self._routes) >= _ROUTES_KEPT:
                self.close()
            made: Route[C] = Route(Origin.read(place), self._pool_size)
            route = self._routes.setdefault(place, made)  # unless another thread was faster
        return route


def _read_proxy(url: str) -> Proxy:
    from muybridge.wire._proxy import Proxy

    return Proxy.read(url)
