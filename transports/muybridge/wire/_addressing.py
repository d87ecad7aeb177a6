"""Checks of what a request contains and where its URL leads, before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import attrs

from muybridge.wire.exchange import Fault
from muybridge_protocol.hosts import is_metadata_address, is_public_address
from muybridge_protocol.http import Headers, HttpRequest, Reason
from muybridge_protocol.remedies import Remedy, RemedyKind

_URL = re.compile(
    r"(https?)://((\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?)(?=[/?#]|$)",
    re.ASCII | re.IGNORECASE,
)
_TARGET = re.compile(r"[!-~]*")
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_WRITTEN_HERE = frozenset({"host", "content-length", "transfer-encoding"})
"""A second one would make it ambiguous where the request leads, or where it ends."""
_METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
"""Methods whose requests state the length of their body even if it is empty."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


def split_url(url: str) -> tuple[str, str]:
    """Return the origin of *url*, in lower case, and its request target, unchanged.

    Raises:
        Fault: It is not an absolute http or https URL in plain ASCII.
    """
    parts = _URL.match(url)
    target = url[parts.end() :].partition("#")[0] if parts else ""
    if parts is None or not _TARGET.fullmatch(target):
        raise Fault(Reason.OTHER, "not an absolute http or https URL in plain ASCII")
    return parts[0].lower(), target if target.startswith("/") else f"/{target}"


@attrs.frozen
class Origin:
    """A scheme, a host and a port.

    Args:
        scheme: `http` or `https`.
        host: The host's name or address. An IPv6 address is in brackets.
        port: The port.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def read(cls, origin: str) -> Origin:
        """Return the origin that `split_url` found."""
        parts = _URL.fullmatch(origin)
        if parts is None:
            raise ValueError("not an origin")
        scheme, _, host, port = parts.groups()
        return cls(scheme, host, int(port or _DEFAULT_PORTS[scheme]))

    @property
    def authority(self) -> str:
        """Host and port for the `Host` header, without the default port of the scheme."""
        usual = self.port == _DEFAULT_PORTS[self.scheme]
        return self.host if usual else f"{self.host}:{self.port}"


def refuse_to_show_key(origin: Origin, authorization: str | None, *remedies: Remedy) -> None:
    """Refuse a request to *origin* that a proxy would forward in clear text, with the key.

    Args:
        origin: Where the request leads.
        authorization: The value of the `Authorization` header, or None.
        remedies: What the user can do instead, if that is not only to use https.

    Raises:
        Fault: The proxy would read the key.
    """
    if authorization is not None and origin.scheme == "http":
        detail = "over plain http the proxy would read the key"
        usual = (Remedy(kind=RemedyKind.USE_HTTPS),)
        raise Fault(Reason.REFUSED_HERE, detail, remedies or usual)


def check_fields(fields: Headers, authorization: str | None) -> None:
    """Check that no header can split the request.

    Args:
        fields: Header fields to be sent.
        authorization: The value of the `Authorization` header, or None.

    Raises:
        Fault: A name or value has characters that cannot be sent. No value is shown.
    """
    _checked_names(fields)
    if authorization is not None and not _FIELD_VALUE.fullmatch(authorization):
        raise Fault(Reason.OTHER, "the API key has characters that cannot be sent")


@lru_cache(maxsize=16)  # polls all have the same
def _checked_names(fields: Headers) -> frozenset[str]:
    """Return the names of *fields* in lower case, once they are checked."""
    for name, value in fields:
        if name.lower() in _WRITTEN_HERE:
            raise Fault(Reason.OTHER, f"the header {name!r} is the transport's to write")
        if not _TOKEN.fullmatch(name) or not _FIELD_VALUE.fullmatch(value):
            raise Fault(Reason.OTHER, f"the header {name!r} has characters that cannot be sent")
    return frozenset(name.lower() for name, _ in fields)


def fields_to_send(request: HttpRequest, origin: Origin) -> list[tuple[str, str]]:
    """Return the header fields to send for *request*, without the key and a proxy's password."""
    fields = [("Host", origin.authority), *request.headers]
    if "accept-encoding" not in _checked_names(request.headers):
        # Without this field, the server may choose any coding, also one that nobody here can
        # decode.
        fields.append(("Accept-Encoding", "identity"))
    if request.body is not None or request.method in _METHODS_WITH_BODY:
        fields.append(("Content-Length", str(len(request.body or b""))))
    return fields


def request_head(method: str, target: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a request as it is sent. Its fields must have been checked."""
    # An API key refuses to be formatted, but can be joined.
    lines = (f"{method} {target} HTTP/1.1", *map(": ".join, fields), "\r\n")
    return "\r\n".join(lines).encode("latin-1")


def check_addresses(request: HttpRequest, addresses: Iterable[str]) -> bool:
    """Return whether all *addresses* of a host are public.

    The metadata service of a cloud is always refused: neither the service nor its media are there.

    Raises:
        Fault: One of them belongs to a metadata service, or is not public although the request
            is for public hosts only.
    """
    addresses = list(addresses)
    if any(map(is_metadata_address, addresses)):
        raise Fault(Reason.PRIVATE_ADDRESS, "the host has the address of a metadata service")
    is_public = all(map(is_public_address, addresses))
    if request.public_host_only and not is_public:
        raise Fault(Reason.PRIVATE_ADDRESS, "the host has an address that is not public")
    return is_public
