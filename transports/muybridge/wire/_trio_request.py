"""How a request begins on the wire."""

from __future__ import annotations

import re
from functools import lru_cache

from muybridge.wire._addressing import METHODS_WITH_BODY, check_fields
from muybridge.wire._trio_connections import Route
from muybridge.wire.exchange import Fault
from muybridge_protocol.http import Headers, HttpRequest, Reason

_METHOD = re.compile(r"[A-Z]+")

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


@lru_cache(maxsize=1024)
def _bodiless(method: str, target: str, headers: Headers, authority: bytes) -> bytes:
    """Return how a request without a body begins. A task is asked for many times over."""
    return _written(method, target, [(b"Host", authority), *sent_fields(headers)])


def _written(method: str, target: str, fields: Fields) -> bytes:
    if not _METHOD.fullmatch(method):
        raise Fault(Reason.OTHER, "the request's method is none")
    lines = b"".join(b"%s: %s\r\n" % field for field in fields)
    return f"{method} {target} HTTP/1.1\r\n".encode() + lines


def begin_request(request: HttpRequest, route: Route, target: str) -> bytes:
    """Return how *request* begins on the wire: its first line and its headers, but for secrets.

    Args:
        request: What to send.
        route: The way to go.
        target: What to ask for at its end, checked.

    Raises:
        Fault: It cannot be sent as described.
    """
    if request.body is None and request.method not in METHODS_WITH_BODY:
        # Others lead to files: each is asked for once, and its link may hold a signature.
        write = _bodiless if request.authorized else _bodiless.__wrapped__
        return write(request.method, target, request.headers, route.authority)
    length = (b"Content-Length", b"%d" % len(request.body or b""))
    fields = [(b"Host", route.authority), *sent_fields(request.headers), length]
    return _written(request.method, target, fields)


def with_secrets(begin: bytes, route: Route, authorization: str | None) -> bytes:
    """Return a request's whole head, at whose end are the headers that nothing may keep.

    Args:
        begin: What `begin_request` has returned.
        route: The way to go.
        authorization: The value of the `Authorization` header, checked, or None.
    """
    secrets = b""
    if route.forwards and route.proxy is not None and route.proxy.authorization is not None:
        secrets += b"Proxy-Authorization: %s\r\n" % route.proxy.authorization.encode("latin-1")
    if authorization is not None:
        secrets += b"Authorization: %s\r\n" % authorization.encode("latin-1")
    return begin + secrets + b"\r\n"
