"""The transport on trio's own streams.

httptools turns bytes into replies, and does no I/O. So what was handed to the
socket is known exactly; `_trio_exchange` keeps account of it.
"""

from __future__ import annotations

import ssl
from typing import NoReturn

from muybridge.wire._trio_exchange import Exchange
from muybridge.wire._trio_network import Network
from muybridge_protocol.http import HttpRequest


class TrioTransport:
    """An `AsyncTransport` on trio, for any number of tasks of one event loop.

    Every time-out bounds the whole exchange, name resolution included. Where the host has to be
    public (`HttpRequest.public_host_only`), that is checked on the very addresses that are
    connected to, except where a proxy does the connecting.

    A reply's head is read more strictly than by `RequestsTransport`: one whose lines end without a
    carriage return, or which tells its length twice, is malformed.

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
        self._network = Network(
            ssl_context=ssl_context,
            connect_timeout=connect_timeout,
            pool_size=pool_size,
            allow_plain_http_proxy=allow_plain_http_proxy,
        )

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
        return Exchange(self._network, request, timeout, authorization)

    async def close(self) -> None:
        """Close every idle connection. One in use is closed when its exchange ends."""
        self._network.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds connections and cannot be pickled")
