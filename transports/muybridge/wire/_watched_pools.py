"""Pools that lend watched connections, and the adapter of requests that takes from them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from requests.adapters import HTTPAdapter
from requests.models import Response
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool, log
from urllib3.util.retry import Retry

from muybridge.wire._watched_connections import (
    WatchedConnection,
    WatchedReply,
    WatchedTLSConnection,
)
from muybridge.wire._watched_exchange import Exchange, current_exchange
from muybridge.wire.exchange import Fault
from muybridge_protocol.http import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from requests.models import PreparedRequest
    from urllib3._base_connection import BaseHTTPConnection
    from urllib3.poolmanager import PoolManager

_ORIGINS_KEPT = 64


@attrs.frozen(eq=False)
class Loan:
    """A connection that is lent to an exchange until its reply has been read.

    Args:
        connection: The connection.
        reply: The reply, whose head has been read.
        release: Gives the connection back, for another exchange.
    """

    connection: WatchedConnection
    reply: WatchedReply
    release: Callable[[], None]

    def close(self) -> None:
        """Close the connection."""
        self.reply.close()
        self.connection.close()


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
            exchange.is_spare = True  # one idle connection is enough for the polls between creates
        exchange.connection = _watched(lent)
        return lent

    def urlopen(self, method: str, url: str, *_: Any, **asked: Any) -> Any:
        """Send the exchange's request, and return a `Loan`, once the head of the reply is there.

        Retries, redirects and time-outs, which urllib3's own looks after, are decided elsewhere.
        """
        lent = self._get_conn()
        if self.proxy is not None and self.scheme == "https" and lent.is_closed:
            self._prepare_proxy(lent)
        self._validate_conn(lent)
        fields: Mapping[str, str] = asked["headers"]
        if self.scheme == "http":
            fields = {**fields, **self.proxy_headers}
        connection = _watched(lent)
        reply = connection.ask(method, fields.items(), asked["body"])
        log.debug('"%s %s" %s', method, url, reply.status)
        return Loan(connection, reply, release=partial(self._put_conn, lent))


class WatchedTLSPool(WatchedPool, HTTPSConnectionPool):
    """The same for https."""

    ConnectionCls = WatchedTLSConnection


def _watched(connection: object) -> WatchedConnection:
    if not isinstance(connection, WatchedConnection):
        raise TypeError("the pool made a connection that is not watched")
    return connection


def _good_for(exchange: Exchange, connection: WatchedConnection) -> bool:
    if exchange.paid:  # a late response to an earlier request could be taken for its own
        return False
    return connection.peer_is_public or not exchange.public_host_only or bool(connection.proxy)


POOL_CLASSES: dict[str, type[HTTPConnectionPool | HTTPSConnectionPool]] = {
    "http": WatchedPool,
    "https": WatchedTLSPool,
}


class WatchedAdapter(HTTPAdapter):
    """Opens watched connections, and takes their pool from the exchange instead of the URL."""

    def __init__(self, pool_size: int) -> None:
        super().__init__(pool_connections=_ORIGINS_KEPT, pool_maxsize=pool_size)
        # requests takes False for its own default, which is no retry as well, but of zero tries.
        self.max_retries = Retry(total=False)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def manager_for(self, proxy: str) -> PoolManager:
        """Return what opens connections through *proxy*."""
        scheme = proxy.partition("://")[0].lower()
        if scheme != "http":
            raise Fault(Reason.REFUSED_HERE, f"{scheme} proxies are not supported")
        try:
            manager: PoolManager = self.proxy_manager_for(proxy)
        except ValueError:
            # What urllib3 says quotes the URL, and with it the proxy's password.
            raise Fault(Reason.REFUSED_HERE, "the proxy's URL cannot be read") from None
        manager.pool_classes_by_scheme = POOL_CLASSES
        return manager

    def get_connection_with_tls_context(self, *_: object, **__: object) -> HTTPConnectionPool:
        """Return the exchange's pool, which was found already."""
        return current_exchange().pool

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """Leave the certificates to the shared context."""

    def loan_for(self, request: PreparedRequest) -> Loan:
        """Send *request* for this thread's exchange, once the head of the reply is there."""
        raw: Any = self.send(request, stream=True).raw
        loan: Loan = raw
        return loan

    def request_url(self, request: PreparedRequest, proxies: object) -> str:  # noqa: ARG002  # found already
        """Return the path that may be written to a log."""
        return request.url or "/"

    def build_response(self, req: object, resp: Any) -> Response:  # noqa: ARG002  # it has the key
        """Return no more than the transport looks at: no cookies, and no request with its key."""
        response = Response()
        response.raw = resp
        return response
