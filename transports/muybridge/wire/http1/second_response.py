"""A refusal of a paid request counts only if nothing follows it.

A paid request has its connection for itself. So if two responses arrive, nobody knows which is the
true one. HTTP libraries drop what follows a response; what has arrived is therefore read again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from muybridge.wire.exchange import Exchange, Fault
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge_protocol.http import Reason


def refuse_second_response(exchange: Exchange, unread: Callable[[], bytes]) -> None:
    """Refuse a refusal of a paid request if more has arrived behind it, such as another response.

    What follows the response that accepts a request does not undo it.

    Args:
        exchange: The exchange, whose response has been read to its end.
        unread: Returns what has arrived on the connection, but was not read. It does not wait.

    Raises:
        Fault: More has arrived, or what has arrived violates HTTP/1.
    """
    status = exchange.status
    if not exchange.request.paid or status is None or 200 <= status <= 299:  # noqa: PLR2004  the class of success
        return
    behind, size = unread(), len(exchange.raw)
    if _read(exchange, size).is_followed:
        # The shortest beginning that is complete ends where the first response does.
        end = bisect_left(range(size), x=True, key=lambda some: _read(exchange, some).complete)
        behind = bytes(exchange.raw[end:]) + behind
    if behind:
        exchange.keep(behind)
        raise Fault(Reason.MALFORMED, "more bytes follow the response")


def _read(exchange: Exchange, size: int) -> ResponseReader:
    """Return a reader of the first bytes of the response, which may be incomplete."""
    reader = ResponseReader(exchange.request.method)
    if size:  # nothing stands for the end of the connection
        reader.feed(bytes(exchange.raw[:size]))
    while reader.head is not None and reader.read():
        pass
    return reader
