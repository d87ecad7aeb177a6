"""The transport on httpx2, for HTTP/2 and SOCKS proxies.

It uses the lower half of httpx2, httpcore2, which accepts a network backend and reports its steps
to a `trace` extension. httpcore2 passes a request's timeouts to the backend without looking at
them. Ours are the record of the exchange, so that each step on the network knows what it is for.
"""

from __future__ import annotations

import logging
import os
from ssl import SSLContext
from typing import Any, cast

import httpcore2

from muybridge.wire import building
from muybridge.wire._certificates import default_context
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason
from muybridge_protocol.operations.defaults import LONGEST_IDLE

_WRAPPERS = (httpcore2.NetworkError, httpcore2.TimeoutException)


class Httpx2Transport:
    """A `Transport` on httpx2's httpcore2, safe to use from many threads.

    Every timeout bounds the whole exchange, except for the operating system's name resolution.
    Paid requests use HTTP/1.1, each on its own connection: on a shared HTTP/2 connection, the
    timeout of another request could abort them. `HttpRequest.public_host_only` is checked on the
    very addresses that are connected to, except where a proxy makes the connection. The proxy is
    the one given here. The CA certificates are those that the environment names, or certifi's.

    `RequestsTransport` does two things better: it notices that a body which ends with its TLS
    connection was truncated, and it discards what a server sends unasked on a connection that
    polls share. At DEBUG, `httpcore2` and `hpack` log headers, so they are set to INFO here unless
    you have given them a level.

    Args:
        ssl_context: The context for TLS connections, instead of one with the CA certificates above.
        http2: Whether to use HTTP/2 for requests that cost nothing, if the server supports it.
        proxy: The URL of an HTTP or SOCKS5 proxy. The key never goes through it over plain http.
    """

    def __init__(
        self,
        *,
        ssl_context: SSLContext | None = None,
        http2: bool = False,
        proxy: str | None = None,
    ) -> None:
        self._ssl_context, self._http2 = ssl_context, http2
        self._proxy = None if proxy is None else httpcore2.Proxy(building.checked_proxy(proxy))
        self._backend = _Backend(proxied=proxy is not None)
        self._pools: dict[tuple[int, bool, bool], httpcore2.ConnectionPool] = {}
        for logger in map(logging.getLogger, ("httpcore2", "hpack")):
            logger.setLevel(logger.level or logging.INFO)

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> building.Response:
        """Send *request* on entering the context, and return its response; see `Transport`."""
        exchange = building.Exchange(request, timeout, _WRAPPERS)
        return building.Response(self._send, exchange, authorization)

    def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        for connection in [c for pool in list(self._pools.values()) for c in pool.connections]:
            if connection.is_idle():
                connection.close()

    def _pool(self, request: HttpRequest) -> httpcore2.ConnectionPool:
        # Keyed by process, too: a forked child must not use its parent's connections.
        kind = (os.getpid(), request.paid, request.public_host_only)
        if kind not in self._pools:
            pool = httpcore2.ConnectionPool(
                ssl_context=self._ssl_context or default_context(),
                proxy=self._proxy,
                max_connections=None,
                max_keepalive_connections=0 if request.paid else None,
                keepalive_expiry=LONGEST_IDLE,
                http2=self._http2 and not request.paid,
                network_backend=self._backend,
            )
            self._pools.setdefault(kind, pool)  # unless another thread was faster
        return self._pools[kind]

    def _send(self, exchange: building.Exchange, authorization: str | None) -> building.Opened:
        def trace(name: str, info: dict[str, Any]) -> None:
            if name.endswith("send_request_headers.started"):
                exchange.begin(tunnel=info["request"].method == b"CONNECT")

        request = exchange.request
        origin, target = building.locate(request)
        if self._proxy is not None:
            building.refuse_to_show_key(origin, authorization)
        host = origin.host.strip("[]")
        timeouts = dict.fromkeys(("connect", "read", "write"), exchange)
        described = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=origin.scheme, host=host, port=origin.port, target=target),
            headers=building.fields_of(request, origin, authorization),
            content=request.body,
            extensions={"timeout": timeouts, "trace": trace},
        )
        answer = self._pool(request).handle_request(described)
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in answer.headers)
        return building.Opened(HttpHead(answer.status, headers), answer.iter_stream(), answer.close)


class _Stream(httpcore2.NetworkStream):
    """A connection that is read and written within an exchange's deadline, and on its record."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self.close = inner.close  # type: ignore[method-assign]  # nothing to add
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]  # the same
        self._inner = inner

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        exchange = cast("building.Exchange", timeout)
        return exchange.receive(self._inner.read(max_bytes, exchange.awaiting()))

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        # Under TLS inside the TLS of a proxy, the socket cannot show what arrives.
        sock = None if hasattr(self._inner, "ssl_obj") else self.get_extra_info("socket")
        cast("building.Exchange", timeout).send(buffer, self._inner.write, sock)

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> _Stream:
        timeout.phase = Phase.TLS
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout.remaining()))


class _Backend(httpcore2.SyncBackend):
    """Connects to the very addresses that it has checked."""

    def __init__(self, *, proxied: bool) -> None:
        self._proxied = proxied

    def connect_tcp(
        self, host: str, port: int, timeout: Any = None, *options: Any, **named: Any
    ) -> _Stream:
        exchange = cast("building.Exchange", timeout)
        refused: Exception = building.Fault(Reason.NAME_RESOLUTION, "the host has no address")
        for address in building.addresses_of(exchange, host, port, proxy=self._proxied):
            within = exchange.remaining(10.0)  # seconds to try each address
            try:
                return _Stream(super().connect_tcp(address, port, within, *options, **named))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused
