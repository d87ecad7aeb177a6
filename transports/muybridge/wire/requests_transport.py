"""The transport on requests, used as documented: a session sends prepared requests.

Each request goes through `Session.send`, a mounted adapter and a urllib3 pool, so whatever replaces
one of these works: mocks, cassettes, instrumentation. Which of them are there is asked when a
request is sent, because they come and go. Nobody can know what a replacement does with a request.
So a request counts as sent until one of our connections takes it.

A connection does no more than start the conversation of `http1`. The prepared request carries it
there, and the response's body does not come back the same way.

The session decides nothing: it follows no redirect, keeps no cookie, and reads neither netrc nor
the environment. Proxies and CA certificates are looked up here, once for each host.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NoReturn, cast

import attrs
import requests
import urllib3.connection
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from muybridge.credentials import AuthorizationHeader
from muybridge.wire._addressing import check_fields, fields_to_send
from muybridge.wire.building import Body, Opened
from muybridge.wire.exchange import PIECE, Exchange, Fault
from muybridge.wire.http1.blocking import BlockingLoop, BlockingResponse
from muybridge.wire.http1.byte_streams import ByteStream
from muybridge.wire.http1.connections import Connection
from muybridge.wire.network import Network
from muybridge.wire.responses import run
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason, TransportFailure

_LOOP: Final = BlockingLoop()
_WRAPPERS: Final = (requests.RequestException, urllib3.exceptions.HTTPError)
_REFUSALS_OF_MOCKS: Final = frozenset(
    {
        "requests_mock.exceptions.NoMockAddress",
        "vcr.errors.CannotOverwriteExistingCassetteException",
    }
)


class _Record(Exchange):
    """The record of an exchange through requests."""

    intercepted = False
    """Whether something that replaces a part of requests or urllib3, such as a mock, has the
    request. It does not say what it sends."""

    def hand_over(self) -> None:
        """Record that requests has the request, which may be sent from now on."""
        self.intercepted = self.any_library = self.sent = True
        self.phase = Phase.HEAD

    def take_over(self) -> None:
        """Record that a connection of ours takes the request, and that nothing was sent yet.

        Raises:
            Fault: One took it before, so something in between is about to resend it.
        """
        if not self.intercepted:
            raise Fault(Reason.CLOSED, "the request was about to be sent again")
        self.intercepted = self.any_library = self.sent = False
        self.phase = Phase.RESOLVE

    def _described(self, error: Exception) -> TransportFailure:
        """Describe how *error* ended the exchange; of an interceptor's, show only the class."""
        if isinstance(error, TransportError):  # a connection of ours has described it
            return error.failure
        if not self.intercepted or isinstance(error, Fault):
            return super()._described(error)
        kind = type(error).__name__
        if _is_refusal_of_mock(error):
            self.phase, self.sent = Phase.RESOLVE, False
            return super()._described(
                Fault(Reason.REFUSED_HERE, f"a mock has no response for it ({kind})")
            )
        return attrs.evolve(super()._described(error), reason=Reason.OTHER, detail=kind)


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


class _Response(BlockingResponse):
    """An exchange that requests sends, on a connection of ours unless something replaces it."""

    session: requests.Session
    """What sends it."""
    _record: _Record
    _target: str
    _own: Sequence[tuple[str, str]]
    _given: Mapping[str, str]
    _mocked: Body | None = None
    """The body of the response, if it did not arrive on a connection of ours."""

    def pool(self) -> urllib3.HTTPConnectionPool:
        """Return what requests sends on: a pool whose only connection is this exchange."""
        origin = self._route.origin
        pool = urllib3.HTTPConnectionPool(origin.host, origin.port, response=self)
        # urllib3's own class for https would warn about a certificate that it did not check itself.
        pool.scheme = origin.scheme
        pool.ConnectionCls = _Connection  # type: ignore[assignment]  # it is called, and no more
        return pool

    def converse(self, fields: Mapping[str, str]) -> urllib3.HTTPResponse:
        """Send the request on a connection of ours, and return its response without the body.

        Args:
            fields: The header fields: ours, and those of instrumentation.

        Raises:
            TransportError: The head did not arrive whole. requests and urllib3 pass this on.
        """
        handled, record, self._given = sys.exception(), self._record, fields
        try:
            record.take_over()
            run(super()._send_to(self._target, record))
        except BaseException as error:  # noqa: BLE001  # whatever is not a network error is raised again
            failure = self._failure(record, error, handled)
        else:
            head = self.head
            fields = urllib3.HTTPHeaderDict(head.headers)
            return urllib3.HTTPResponse(headers=fields, status=head.status, preload_content=False)
        raise TransportError(failure)

    def _new_record(self) -> Exchange:
        record = self._record = _Record(self._request, self._timeout, _WRAPPERS, any_library=False)
        return record

    async def _send_to(self, target: str, exchange: Exchange) -> None:
        """Let requests send the request, and take the response of a mock if there is one."""
        prepared, seconds, self._target = self._prepared(target), exchange.remaining(), target
        self._record.hand_over()
        response = self.session.send(
            prepared,
            allow_redirects=False,
            stream=True,
            timeout=seconds,
            verify=True,
            cert=None,
            proxies={},
        )
        if self._record.intercepted:
            # It is no byte stream, but is closed like one, and nothing else is done with it.
            self._connection = Connection(False, cast("ByteStream", response.raw))  # noqa: FBT003
            opened = _opened(exchange, response.status_code, response.raw)
            self._mocked = Body(exchange, opened)
            self._reader.head = opened.head

    async def _read(self, exchange: Exchange) -> bytes:
        """Return the next piece of the decoded body, or none at its end."""
        body = self._mocked
        if body is None:
            return await super()._read(exchange)
        pieces = cast("Iterator[bytes]", body.opened.pieces)

        async def take() -> bytes | None:
            return next(pieces, None)

        return await body.read(take)

    def _prepared(self, target: str) -> _Prepared:
        prepared, request = _Prepared(self, target), self._request
        authorization, self._authorization = self._authorization, None
        self._own = fields_to_send(request, self._route.origin)
        fields = CaseInsensitiveDict(self._own)
        if authorization is not None:
            # Encoding is the only way to read a hidden key.
            fields["Authorization"] = _Recorded(authorization.encode("latin-1").decode("latin-1"))
        prepared.method, prepared.headers, prepared.body = request.method, fields, request.body
        prepared.url = request.url
        return prepared

    def _fields(self) -> Iterable[tuple[str, str]]:
        """Return the header fields to send."""
        given, self._given = self._given.items(), {}  # nothing keeps the key
        own = {*self._own}
        added = [field for field in given if field not in own and field[0] != "Authorization"]
        if added:
            check_fields(tuple(added), None)
        return given


def _opened(exchange: Exchange, status: int, raw: Any) -> Opened:
    """Return a response that did not arrive on a connection of ours."""

    def pieces() -> Iterator[bytes]:
        while piece := raw.read(PIECE, decode_content=False):
            exchange.remaining()
            yield piece

    return Opened(HttpHead(status, tuple(raw.headers.items())), pieces(), raw.close)


class _Recorded(AuthorizationHeader):
    """The `Authorization` header. Whatever records requests gets a copy without the key."""

    __slots__ = ()

    def __deepcopy__(self, _: object) -> str:
        return self._shown


class _Prepared(requests.PreparedRequest):
    """A prepared request that carries its exchange. Copies that others keep do not."""

    def __init__(self, response: _Response, target: str) -> None:
        super().__init__()
        self.response: _Response = response
        self.target: str = target
        """The request target, for whatever sends the request."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "response"}


class _Adapter(HTTPAdapter):
    """Hands requests to connections of ours, unless a cassette has put its own there."""

    def __init__(self) -> None:
        # requests takes a plain False for its default, which reports too many retries instead.
        super().__init__(max_retries=urllib3.Retry(total=False))

    def get_connection_with_tls_context(self, request: Any, *_: object, **__: object) -> Any:
        """Return the pool that sends *request*."""
        if _has_cassette():
            return urllib3.connection_from_url(request.url)
        # Our connections know it. So this one is only for a log, which must not show a signature.
        request.target = request.target.partition("?")[0]
        return request.response.pool()

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """Do nothing: the shared context checks certificates."""

    def request_url(self, request: Any, proxies: object) -> str:  # noqa: ARG002  # the route has them
        """Return the request target."""
        target: str = request.target
        return target


def _has_cassette() -> bool:
    """Whether a cassette has put its own classes of connections into urllib3's pools."""
    plain, secured = (
        urllib3.HTTPConnectionPool.ConnectionCls,
        urllib3.HTTPSConnectionPool.ConnectionCls,
    )
    return not plain.__module__ == secured.__module__ == "urllib3.connection"


class _Connection:
    """What urllib3 asks for as a connection: it starts the conversation.

    Args:
        response: The exchange.
    """

    is_closed = True
    proxy = None
    timeout: object = None
    getresponse: Callable[[], urllib3.HTTPResponse]

    def __init__(self, response: _Response, **_: object) -> None:
        self._response = response

    def request(self, *_: object, headers: Mapping[str, str], **__: object) -> None:
        """Take the header fields. The exchange has everything else."""
        self.getresponse = partial(self._response.converse, headers)

    def close(self) -> None:
        """Do nothing: the exchange closes what it has opened."""


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
        self._network: Network[Connection] = Network(
            type(self).__name__,
            ssl_context=ssl_context,
            pool_size=pool_size,
            allow_plain_http_proxy=allow_plain_http_proxy,
        )
        self._session = requests.Session()
        self._session.resolve_redirects = _no_redirect  # type: ignore[method-assign]  # it follows none
        adapter = _Adapter()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapter)

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> BlockingResponse:
        """Send *request* on entering the context, and return its response.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds for the whole exchange.
            authorization: The value of the `Authorization` header, or None to send none.

        Raises:
            TransportError: On entering, if the head did not arrive whole.
        """
        response = _Response(
            _LOOP, self._network, self._connect_timeout, request, timeout, authorization
        )
        response.session = self._session
        return response

    def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        self._network.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")


def _intruder() -> str | None:
    """Return what replaces a class that this module builds on, or None.

    urllib3-future, which niquests installs, takes urllib3's name, and its connections return
    encrypted bytes as the response. requests-cache may replace the session with one that saves
    polls and signed links.
    """
    bases = {kind.__module__ for kind in urllib3.connection.HTTPConnection.__mro__}
    if "http.client" not in bases:
        return "another library has taken urllib3's name (urllib3-future, which niquests installs)"
    session = requests.Session.__module__
    return None if session == "requests.sessions" else f"{session} has replaced requests.Session"


def _no_redirect(*_: object, **__: object) -> Iterator[NoReturn]:
    """Return nothing. requests looks at redirects even if it is told not to follow them."""
    return iter(())
