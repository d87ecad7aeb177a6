"""The transport on requests, used as documented: its own session sends prepared requests.

Each request goes through `Session.send`, an adapter and a urllib3 pool, so whatever replaces one of
these works: mocks, cassettes, instrumentation. Nobody can know what a replacement does with a
request. So a request counts as sent until one of our connections takes it.

The session decides nothing: it follows no redirect, keeps no cookie, and reads neither netrc nor
the environment. Proxies and CA certificates are looked up here, once for each host.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakKeyDictionary

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import (
    HTTPConnectionPool,
    HTTPResponse,
    HTTPSConnectionPool,
    Retry,
    connection_from_url,
)
from urllib3.exceptions import HTTPError

from muybridge.credentials import AuthorizationHeader
from muybridge.wire._addressing import Origin, fields_to_send
from muybridge.wire._requests_connections import (
    Connection,
    Link,
    Pool,
    RequestsExchange,
    current_exchange,
    let_go,
    original,
)
from muybridge.wire.building import Opened, Reply
from muybridge.wire.exchange import PIECE
from muybridge.wire.network import Network, Route
from muybridge_protocol.http import HttpHead, HttpRequest

_WRAPPERS: Final = (requests.RequestException, HTTPError)


def _intruder() -> str | None:
    """Return what replaces a class that this module builds on, or None.

    urllib3-future, which niquests installs, takes urllib3's name, and its connections return
    encrypted bytes as the response. requests-cache may replace the session with one that saves
    polls and signed links.
    """
    bases = {kind.__module__ for kind in Connection.__mro__}
    if "http.client" not in bases:
        return "another library has taken urllib3's name (urllib3-future, which niquests installs)"
    session = requests.Session.__module__
    return None if session == "requests.sessions" else f"{session} has replaced requests.Session"


if TYPE_CHECKING:
    from requests import Session
else:
    Session = original(requests.Session, "requests.sessions")


class _Recorded(AuthorizationHeader):
    """The `Authorization` header. Whatever records requests gets a copy without the key."""

    __slots__ = ()

    def __deepcopy__(self, _: object) -> str:
        return self._shown


class _Session(Session):
    """A session that follows no redirect."""

    def resolve_redirects(self, *_: object, **__: object) -> Iterator[NoReturn]:
        """Return nothing. requests looks at redirects even if it is told not to follow them."""
        return iter(())


class _Adapter(HTTPAdapter):
    """Sends its thread's exchange on connections that keep the exchange's record."""

    def __init__(self) -> None:
        # requests takes a plain False for its default, which reports too many retries instead.
        super().__init__(max_retries=Retry(total=False))
        self._pools: WeakKeyDictionary[Route[Link], HTTPConnectionPool] = WeakKeyDictionary()

    def get_connection_with_tls_context(self, request: Any, *_: object, **__: object) -> Any:
        """Return the pool that sends *request*."""
        # Asked now, because a cassette may begin and end at any time, even around our import.
        for pool_of in (HTTPConnectionPool, HTTPSConnectionPool):
            if pool_of.ConnectionCls.__module__ != "urllib3.connection":
                # A cassette has put its own classes there.
                return connection_from_url(request.url)
        exchange = current_exchange()
        exchange.take_over()
        pool = self._pools.get(exchange.route)
        if pool is None:
            pool = self._pools[exchange.route] = Pool(exchange.route.origin)
        return pool

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """Do nothing: the shared context checks certificates."""

    def request_url(self, request: object, proxies: object) -> str:  # noqa: ARG002  # the exchange has both
        """Return the path, which may be logged, without the query."""
        return current_exchange().target.partition("?")[0]


class RequestsTransport:
    """A `Transport` on requests and urllib3, safe to use from many threads.

    Every timeout bounds the whole exchange. Only the operating system's name resolution, which
    cannot be interrupted, may outlast it. `HttpRequest.public_host_only` is checked on the very
    addresses that are connected to, except where a proxy makes the connection.

    Proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are read from the environment
    once for each host; https goes through them in a tunnel. The CA certificates are those of
    `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE` or `SSL_CERT_FILE`, else certifi's.

    Args:
        ssl_context: The context for TLS connections, used unchanged: ALPN, too, is up to you, and
            must not offer HTTP/2. By default, one that offers http/1.1 is made from the CA
            certificates above.
        connect_timeout: Seconds to try each address of a host. A name lookup cannot be limited.
        pool_size: The most idle connections to keep for one host. It does not limit how many may
            be in use.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.

    Raises:
        ImportError: Another library has replaced parts of requests or urllib3.
    """

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout: float = 10.0,
        pool_size: int = 64,
        allow_plain_http_proxy: bool = False,
    ) -> None:
        if (intruder := _intruder()) is not None:
            raise ImportError(f"RequestsTransport cannot be used: {intruder}")
        self._connect_timeout = connect_timeout
        self._network: Network[Link] = Network(
            type(self).__name__,
            ssl_context=ssl_context,
            pool_size=pool_size,
            allow_plain_http_proxy=allow_plain_http_proxy,
        )
        self._session = _Session()
        adapter = _Adapter()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapter)

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Reply:
        """Send *request* on entering the context, and return its response.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds for the whole exchange.
            authorization: The value of the `Authorization` header, or None to send none.

        Raises:
            TransportError: On entering, if the head did not arrive whole.
        """
        exchange = RequestsExchange(request, timeout, _WRAPPERS)
        return Reply(lambda _, key: self._send(exchange, key), exchange, authorization)

    def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        self._network.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")

    def _send(self, exchange: RequestsExchange, authorization: str | None) -> Opened:
        """Send the request, and return its response once the head has arrived."""
        route, target = self._network.find(exchange.request, authorization)
        prepared = _prepared(exchange.request, route.origin, authorization)
        context = self._network.ssl_context if route.origin.scheme == "https" else None
        exchange.hand_over(route, target, context, self._connect_timeout)
        try:
            response = self._session.send(
                prepared,
                allow_redirects=False,
                stream=True,
                timeout=exchange.remaining(),
                verify=True,
                cert=None,
                proxies={},
            )
            return _opened(exchange, response)
        except BaseException as error:
            exchange.end(is_whole=False)
            met, exchange.error = exchange.error, None  # its traceback holds the key
            if met is not None and isinstance(error, _WRAPPERS):
                raise met from None
            raise
        finally:
            let_go()


def _prepared(
    request: HttpRequest, origin: Origin, authorization: str | None
) -> requests.PreparedRequest:
    fields = CaseInsensitiveDict(fields_to_send(request, origin))
    if authorization is not None:
        # Encoding is the only way to read a hidden key.
        fields["Authorization"] = _Recorded(authorization.encode("latin-1").decode("latin-1"))
    prepared = requests.PreparedRequest()
    prepared.method, prepared.headers, prepared.body = request.method, fields, request.body
    prepared.url = request.url
    return prepared


def _opened(exchange: RequestsExchange, response: requests.Response) -> Opened:
    """Return the response, once the session has returned."""
    raw: HTTPResponse = response.raw
    reply = exchange.reply
    if reply is None:
        return _from_elsewhere(exchange, response.status_code, raw)
    is_whole = False

    def pieces() -> Iterator[bytes]:
        nonlocal is_whole
        yield from reply.pieces
        is_whole = True

    def close() -> None:
        exchange.end(is_whole=is_whole)
        raw.close()

    return Opened(reply.head, pieces(), close, delimited=True)


def _from_elsewhere(exchange: RequestsExchange, status: int, raw: HTTPResponse) -> Opened:
    """Return a response that did not arrive on a connection of ours, but came from a mock, say."""

    def pieces() -> Iterator[bytes]:
        while piece := raw.read(PIECE, decode_content=False):
            exchange.remaining()
            yield piece

    return Opened(HttpHead(status, tuple(raw.headers.items())), pieces(), raw.close)
