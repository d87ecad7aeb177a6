"""The async transport, for any event loop that the port is bound to."""

from __future__ import annotations

import ssl
from typing import ClassVar, NoReturn

from muybridge.wire.http1.byte_streams import EventLoop
from muybridge.wire.http1.connections import Connection
from muybridge.wire.http1.response import Response
from muybridge.wire.network import Network
from muybridge_protocol.http import HttpRequest


class Http1Transport:
    """An `AsyncTransport` on the event loop that a subclass binds it to.

    Args:
        ssl_context: The context for TLS connections, used unchanged: ALPN, too, is up to you, and
            must not offer HTTP/2. By default, one that offers http/1.1 is made from the CA
            certificates that the environment names, or certifi's.
        connect_timeout: Seconds for a name lookup, and to try each address of a host.
        pool_size: The most idle connections to keep for one host. It does not limit how many may
            be in use.
        allow_plain_http_proxy: Whether requests with a key may go over plain http through a
            proxy, which can then read the key.
    """

    event_loop: ClassVar[EventLoop]
    """What a subclass overrides: the binding to an event loop."""

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        connect_timeout: float = 10.0,
        pool_size: int = 2_048,
        allow_plain_http_proxy: bool = False,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._network: Network[Connection] = Network(
            type(self).__name__,
            ssl_context=ssl_context,
            pool_size=pool_size,
            allow_plain_http_proxy=allow_plain_http_proxy,
        )

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> Response:
        """Send *request* on entering the context, and return its response.

        Args:
            request: What to send, exactly as described.
            timeout: Seconds for the whole exchange.
            authorization: The value of the `Authorization` header, or None to send none.

        Raises:
            TransportError: On entering, if the head did not arrive whole.
        """
        return Response(
            self.event_loop, self._network, self._connect_timeout, request, timeout, authorization
        )

    async def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        self._network.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")
