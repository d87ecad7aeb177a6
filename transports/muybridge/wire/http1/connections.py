"""Opening a connection, from the name lookup to the moment before the first byte of a request.

The order is a matter of safety. The name is looked up once, and all of its addresses are checked
before any of them is connected to: a second lookup could give another answer (DNS rebinding). The
proxy opens its tunnel before the TLS handshake, so it sees nothing of the request, and the protocol
that the handshake agreed on is checked before the request is sent. Addresses are tried one after
another, and only until one of them accepts the connection: after that, another address would be
another server, and a failed handshake is the answer.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from muybridge.signals import raised_by_handler
from muybridge.wire._addressing import Origin, check_addresses, request_head
from muybridge.wire.exchange import (
    TIME_IS_UP,
    Exchange,
    Fault,
    early_fault,
    refuse_other_protocol,
)
from muybridge.wire.http1.byte_streams import Address, ByteStream, EventLoop
from muybridge.wire.http1.socket_stream import numeric_addresses
from muybridge.wire.http1.tls import TLSStream
from muybridge.wire.network import Reusable, Route
from muybridge_protocol.http import Phase, Reason

if TYPE_CHECKING:
    from muybridge.wire._proxy import Proxy


@attrs.define(eq=False, repr=False)
class Connection(Reusable):
    """A connection to an origin, or through a proxy to it.

    Args:
        stream: What carries its bytes.
    """

    stream: ByteStream

    def refuse_early_bytes(self) -> None:
        """Refuse to send a request if something has already arrived on the connection.

        Raises:
            Fault: Bytes have arrived, or the peer has closed the connection.
            OSError: The connection is broken.
        """
        try:
            early = self.stream.receive_nowait(1)
        except BlockingIOError:
            return
        raise early_fault(early)

    def close(self) -> None:
        """Close it at once."""
        self.stream.close()


async def connect(
    loop: EventLoop,
    route: Route[Connection],
    exchange: Exchange,
    *,
    connect_timeout: float,
    ssl_context: ssl.SSLContext | None,
) -> Connection:
    """Open a connection for *exchange*, and record the progress.

    Args:
        loop: The event loop.
        route: Where it leads.
        exchange: The exchange that it is for.
        connect_timeout: Seconds for the name lookup, and to try each address.
        ssl_context: The context for the TLS handshake, or None for a plain connection.

    Raises:
        Fault: It cannot be opened, for a reason that no library has an exception for.
        OSError: It cannot be opened.
    """
    origin, proxy = route.origin, route.proxy
    host = origin.host.strip("[]")
    nearest = (host, origin.port)
    if proxy is not None:
        nearest, exchange.proxy = (proxy.host, proxy.port), proxy.place
    proxied = proxy is not None
    addresses, public = await checked_addresses(
        loop, exchange, nearest, connect_timeout, proxied=proxied
    )
    stream = await first_that_answers(loop, addresses, connect_timeout, exchange)
    if ssl_context is None:
        return Connection(public, stream)
    try:
        seconds, late = _limit(exchange, exchange.request.idle_timeout, "nothing arrived in time")
        securing = _secure(stream, route, exchange, ssl_context)
        return Connection(public, await loop.within(seconds, late, securing))
    except BaseException:
        stream.close()
        raise


async def checked_addresses(
    loop: EventLoop,
    exchange: Exchange,
    place: tuple[str, int],
    most: float | None,
    *,
    proxied: bool,
) -> tuple[Sequence[Address], bool]:
    """Look up a host, and return its addresses, and whether all of them are known to be public.

    The addresses of a proxy are not checked: it may be anywhere, and connects further by itself.

    Args:
        loop: The event loop.
        exchange: The exchange that it is for.
        place: Its name or address, and the port.
        most: The most seconds that it may take, or None for the deadline alone.
        proxied: Whether it is a proxy.

    Raises:
        Fault: The request must not go to one of them.
        OSError: The name does not resolve, or not in time.
    """
    resolved = numeric_addresses(*place)
    if not resolved:
        seconds, late = _limit(exchange, most, "the name lookup took too long")
        resolved = await loop.within(seconds, late, loop.look_up(*place))
    addresses = [str(address[0]) for *_, address in resolved]
    public = not proxied and check_addresses(exchange.request, addresses)
    exchange.phase = Phase.CONNECT
    return resolved, public


async def first_that_answers(
    loop: EventLoop, addresses: Sequence[Address], connect_timeout: float, exchange: Exchange
) -> ByteStream:
    """Try one address after another, without looking the name up again.

    Raises:
        Fault: There is no address.
        OSError: None of them answers in time. This is the error of the last one.
    """
    failure: OSError | None = None
    for address in addresses:
        seconds, late = _limit(exchange, connect_timeout, "the address did not answer")
        try:
            return await loop.connect(address, seconds, late)
        except OSError as error:
            if raised_by_handler(error):
                raise
            failure = error
    raise failure or Fault(Reason.NAME_RESOLUTION, "the host has no address")


def _limit(exchange: Exchange, most: float | None, late: str) -> tuple[float, str]:
    """Return how many seconds a step may take, and what to say if it takes longer.

    Args:
        exchange: The exchange, whose deadline holds as well.
        most: The most seconds, or None for the deadline alone.
        late: What to say after them.
    """
    seconds = exchange.remaining()
    return (seconds, TIME_IS_UP) if most is None or seconds <= most else (most, late)


async def _secure(
    stream: ByteStream, route: Route[Connection], exchange: Exchange, context: ssl.SSLContext
) -> TLSStream:
    """Make a TLS connection of *stream*, through the proxy's tunnel if there is one."""
    if route.proxy is not None:
        exchange.phase = Phase.PROXY
        await _tunnel(stream, route.origin, route.proxy)
    exchange.phase = Phase.TLS
    # Certificates name a host without the dot that may end its absolute name.
    secured = TLSStream(stream, context, route.origin.host.strip("[]").rstrip("."))
    await secured.handshake()
    refuse_other_protocol(secured.engine)
    return secured


async def _tunnel(stream: ByteStream, origin: Origin, proxy: Proxy) -> None:
    """Ask the proxy for a tunnel. It sees nothing of the request itself."""
    from muybridge.wire._proxy import TunnelResponse

    authority = f"{origin.host}:{origin.port}"
    fields = (("Host", authority), *proxy.fields)
    rest = memoryview(request_head("CONNECT", authority, fields))
    while rest:
        rest = rest[await stream.send(rest) :]
    response, is_open = TunnelResponse(), False
    while not is_open:
        is_open = response.take(await stream.receive(4096))
