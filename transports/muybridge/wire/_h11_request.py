"""How a request begins on the wire, as h11 writes it."""

from __future__ import annotations

from functools import lru_cache

import h11

from muybridge.wire._addressing import check_fields
from muybridge.wire._h11_connections import Route
from muybridge.wire._watched_exchange import Fault
from muybridge_protocol.http import Headers, HttpRequest, Reason

_EMPTY_BODY_METHODS = ("POST", "PUT", "PATCH")
"""Methods whose requests say that they have no body."""

Fields = list[tuple[bytes, bytes]]


@lru_cache(maxsize=64)
def sent_fields(headers: Headers) -> Fields:
    """Return *headers* as they are sent. Many requests have the same; no key is among them.

    Raises:
        Fault: A name or value has characters that cannot be sent.
    """
    check_fields(headers, None)
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    if not any(name.lower() == b"accept-encoding" for name, _ in fields):
        fields.append((b"Accept-Encoding", b"identity"))
    return fields


def begin_request(
    request: HttpRequest, route: Route, target: str, authorization: str | None
) -> h11.Request:
    """Return how *request* begins on the wire: its first line and its headers.

    Args:
        request: What to send.
        route: The way to go.
        target: What to ask for at its end.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        Fault: It cannot be sent as described.
    """
    fields = [(b"Host", route.authority), *sent_fields(request.headers)]
    if request.body is not None:
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    elif request.method in _EMPTY_BODY_METHODS:
        fields.append((b"Content-Length", b"0"))
    if route.forwards and route.proxy is not None and route.proxy.authorization is not None:
        fields.append((b"Proxy-Authorization", route.proxy.authorization.encode("latin-1")))
    if authorization is not None:
        fields.append((b"Authorization", authorization.encode("latin-1")))
    try:
        return h11.Request(method=request.method, target=target, headers=fields)
    except h11.LocalProtocolError:
        # What h11 says quotes the value.
        raise Fault(Reason.OTHER, "the request cannot be sent as it is described") from None
