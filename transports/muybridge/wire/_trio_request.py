"""How a request begins on the wire, as h11 writes it."""

from __future__ import annotations

from functools import lru_cache

import h11

from muybridge.wire._addressing import check_fields
from muybridge.wire._trio_connections import Route
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


@lru_cache(maxsize=64)
def _known(headers: Headers, authority: bytes) -> h11.Request:
    """Return a request whose headers h11 has read: it takes 10 us, and most polls have the same."""
    fields = [(b"Host", authority), *sent_fields(headers)]
    return h11.Request(method="GET", target="/", headers=fields)


@lru_cache(maxsize=1024)
def _bodiless(method: str, target: str, headers: Headers, authority: bytes) -> h11.Request:
    """Return how a request without a body begins. A task is asked for many times over."""
    known = _known(headers, authority)
    return h11.Request(method=method, target=target, headers=known.headers)


def begin_request(request: HttpRequest, route: Route, target: str) -> h11.Request:
    """Return how *request* begins on the wire: its first line and its headers, but for secrets.

    Args:
        request: What to send.
        route: The way to go.
        target: What to ask for at its end.

    Raises:
        Fault: It cannot be sent as described.
    """
    try:
        if request.body is None and request.method not in _EMPTY_BODY_METHODS:
            return _bodiless(request.method, target, request.headers, route.authority)
        length = (b"Content-Length", b"%d" % len(request.body or b""))
        fields = [(b"Host", route.authority), *sent_fields(request.headers), length]
        return h11.Request(method=request.method, target=target, headers=fields)
    except h11.LocalProtocolError:
        # What h11 says quotes the value.
        raise Fault(Reason.OTHER, "the request cannot be sent as it is described") from None


def with_secrets(head: bytes, route: Route, authorization: str | None) -> bytes:
    """Return a request's head with the headers at its end that nothing may keep.

    Args:
        head: The head as h11 writes it.
        route: The way to go.
        authorization: The value of the `Authorization` header, checked, or None.
    """
    secrets: list[tuple[bytes, str]] = []
    if route.forwards and route.proxy is not None and route.proxy.authorization is not None:
        secrets.append((b"Proxy-Authorization", route.proxy.authorization))
    if authorization is not None:
        secrets.append((b"Authorization", authorization))
    lines = b"".join(b"%s: %s\r\n" % (name, value.encode("latin-1")) for name, value in secrets)
    return head[:-2] + lines + head[-2:]
