"""HTTP as values: the request that a driver is to send, and the response or failure.

Nothing here opens a connection. A driver sends an `HttpRequest`, and returns an `HttpResponse` or a
`TransportFailure`. All decisions are made from these values, so they hold everything that matters:
a failure says whether any byte of the request was handed to the socket, and keeps what had arrived
of the response. They hold no key; the driver adds it last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import NoneType
from typing import Any

import attrs

from muybridge_protocol.remedies import Remedy

MEBIBYTE = 1024 * 1024

API_BODY_LIMIT = 8 * MEBIBYTE
"""Largest response of the service, in bytes after decoding."""

Headers = tuple[tuple[str, str], ...]
"""Header fields, in the order in which they are sent or received."""


def _sized(body: bytes | None) -> str:
    return "None" if body is None else f"<{len(body)} bytes>"


def _instance_of(*kinds: type) -> Callable[[object, attrs.Attribute[Any], object], None]:
    """Return the validator of a field, for drivers and transports that are not type-checked.

    Unlike the validator of attrs, it does not show the value, which may contain a signed link.
    """

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kinds):
            wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
            name = f"{type(instance).__name__}.{attribute.name}"
            raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")

    return check


def _check_headers(_: object, __: attrs.Attribute[Any], headers: Any) -> None:
    """Check that a field holds headers."""
    try:
        is_sound = type(headers) is tuple
        for pair in headers:
            name, value = pair
            is_sound = (
                is_sound
                and isinstance(pair, tuple)
                and isinstance(name, str)
                and isinstance(value, str)
            )
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound:  # without showing them, because a value may be a secret
        raise TypeError(
            "headers must be a tuple of (name, value) pairs of str, such as "
            'tuple(response.headers.items()); {"name": "value"} is not one'
        )


def without_query(url: str) -> str:
    """Return *url* for people to read: without query and fragment, which may hold a signature."""
    bare = url.partition("#")[0]
    path, mark, _ = bare.partition("?")
    return f"{path}?..." if mark else path


def shown_url(url: str | None) -> str:
    """Return the repr of *url* without its query and fragment."""
    return repr(None if url is None else without_query(url))


@attrs.frozen(kw_only=True)
class HttpRequest:
    """A request for a driver to send, complete except for the API key.

    Args:
        method: `GET`, `POST` or `DELETE`.
        url: Absolute URL.
        headers: Header fields to send. Never `Authorization`: the driver adds it last.
        body: Bytes to send, or None for a request without a body.
        authorized: Whether the request needs the API key. The driver adds the key only if the URL
            has the service's own origin.
        paid: Whether the service may charge for this request. It then gets a connection of its
            own. On a connection that was used before, a late response to an earlier request could
            be taken for its response, and if the server has just closed the connection, the
            request may or may not have been accepted. Nothing that arrives before its first byte
            is sent is its response.
        interruptible: Whether the exchange may be cancelled at any time although it is paid,
            because no task id can be lost with the response.
        public_host_only: Whether the host name must resolve to a public address.
        body_limit: Largest decoded body that a driver may read, in bytes, or None for no limit.
        idle_timeout: Seconds without a byte of the response, or of the TLS handshake before it,
            after which the exchange fails, or None if only the deadline matters.
    """

    method: str
    url: str = attrs.field(repr=shown_url)
    headers: Headers = attrs.field(default=(), validator=_check_headers)
    body: bytes | None = attrs.field(
        default=None, repr=_sized, validator=_instance_of(bytes, NoneType)
    )
    authorized: bool = False
    paid: bool = False
    interruptible: bool = False
    public_host_only: bool = False
    body_limit: int | None = API_BODY_LIMIT
    idle_timeout: float | None = None

    @property
    def shielded(self) -> bool:
        """Whether nothing, not even Ctrl-C, may interrupt the exchange once it has started."""
        return self.paid and not self.interruptible


_CODINGS = frozenset(
    {
        *("aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip"),
        *("pack200-gzip", "x-compress", "x-gzip", "zstd"),
    }
)
"""The registered content codings (RFC 9110, section 8.4.1) except identity. Stores also keep other
labels in `Content-Encoding`, such as aws-chunked, none or an empty one, which say nothing about the
body. Browsers ignore those."""


def content_codings(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the registered codings among the *labels* of a `Content-Encoding`, in lower case."""
    return tuple([coding for label in labels if (coding := label.strip().lower()) in _CODINGS])


@attrs.frozen
class HttpHead:
    """The status line and headers of a response."""

    status: int = attrs.field(validator=_instance_of(int))
    headers: Headers = attrs.field(default=(), validator=_check_headers)

    def header(self, name: str) -> str | None:
        """Return the first value of the header *name*, whatever its case, or None."""
        return find_header(self.headers, name)

    def values(self, name: str) -> tuple[str, ...]:
        """Return the value of each header *name*, whatever its case, without white space."""
        wanted = name.lower()
        return tuple([value.strip() for field, value in self.headers if field.lower() == wanted])

    @property
    def codings(self) -> tuple[str, ...]:
        """The content codings of the body, in the order in which they were applied."""
        return content_codings(",".join(self.values("Content-Encoding")).split(","))

    @property
    def announces_end(self) -> bool:
        """Whether it says where the body ends, rather than leaving that to the connection's end."""
        return any(self.header(name) for name in ("Content-Length", "Transfer-Encoding"))


@attrs.frozen
class HttpResponse:
    """A whole response: status, headers and the decoded body."""

    status: int = attrs.field(validator=_instance_of(int))
    headers: Headers = attrs.field(default=(), validator=_check_headers)
    body: bytes = attrs.field(default=b"", repr=_sized, validator=_instance_of(bytes))

    def header(self, name: str) -> str | None:
        """Return the first value of the header *name*, whatever its case, or None."""
        return find_header(self.headers, name)


class Phase(StrEnum):
    """How far an exchange got before it failed."""

    RESOLVE = "resolve"
    """Looking up the host's address."""
    CONNECT = "connect"
    """Opening the connection."""
    PROXY = "proxy"
    """Requesting a tunnel from a proxy."""
    TLS = "tls"
    """The TLS handshake."""
    SEND = "send"
    """Sending the request: some of it may have arrived."""
    HEAD = "head"
    """Waiting for or reading the status line and headers."""
    BODY = "body"
    """Reading the response's body."""


class Reason(StrEnum):
    """Why an exchange failed."""

    NAME_RESOLUTION = "name resolution"
    REFUSED = "connection refused"
    UNREACHABLE = "unreachable"
    PROXY_REFUSED = "proxy refused"
    REFUSED_HERE = "refused here"
    """This machine refuses to send it in this way, and says why."""
    OVER_BUDGET = "over budget"
    """It would exceed a limit that the user has set."""
    CERTIFICATE = "certificate"
    TLS = "tls"
    RESET = "connection reset"
    CLOSED = "connection closed"
    TIMED_OUT = "timed out"
    TRUNCATED = "truncated"
    TOO_LARGE = "too large"
    MALFORMED = "malformed response"
    PRIVATE_ADDRESS = "private address"
    LOCAL_LIMIT = "local limit"
    """Out of file descriptors, or another limit of this machine."""
    INTERRUPTED = "interrupted"
    OTHER = "other"


@attrs.frozen(kw_only=True)
class TransportFailure:
    """An exchange without a whole response.

    Args:
        phase: How far it got.
        sent: Whether any byte of the request itself was handed to the socket. This alone
            decides whether a create may have been accepted.
        reason: Why it failed.
        bytes_sent: Bytes handed to the socket, for people to read.
        partial: The part of the response that arrived: everything read of the body if the
            request was paid, otherwise at most 64 KiB.
        status: The response's status, if its head arrived.
        detail: The message of the operating system or library, without the key or a URL's query.
        remedies: What the user can do about it.
    """

    phase: Phase = attrs.field(validator=_instance_of(Phase))
    sent: bool = attrs.field(validator=_instance_of(bool))
    reason: Reason = attrs.field(validator=_instance_of(Reason))
    bytes_sent: int = 0
    partial: bytes = attrs.field(default=b"", repr=_sized, validator=_instance_of(bytes))
    status: int | None = None
    detail: str = ""
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{describe_failure(self.reason, self.phase)}{detail}"


def describe_failure(reason: Reason, phase: Phase) -> str:
    """Return why and when an exchange failed, in words."""
    if reason in _REASONS:
        return _REASONS[reason]
    return f"{'failed' if reason is Reason.OTHER else reason} {_PHASES[phase]}"


_REASONS: Mapping[Reason, str] = {
    Reason.NAME_RESOLUTION: "the host name cannot be resolved",
    Reason.REFUSED: "connection refused",
    Reason.UNREACHABLE: "the host is unreachable",
    Reason.PROXY_REFUSED: "the proxy refused the connection",
    Reason.REFUSED_HERE: "refused on this machine",
    Reason.OVER_BUDGET: "over budget",
    Reason.CERTIFICATE: "the server's certificate cannot be verified",
    Reason.TLS: "the TLS connection failed",
    Reason.TRUNCATED: "the response is truncated",
    Reason.TOO_LARGE: "the response is too large",
    Reason.MALFORMED: "the response is malformed",
    Reason.PRIVATE_ADDRESS: "the host has a private address",
    Reason.LOCAL_LIMIT: "a limit of this machine was reached",
}
"""The reasons that say enough by themselves. The others are followed by the phase."""

_PHASES: Mapping[Phase, str] = {
    Phase.RESOLVE: "while looking up the host",
    Phase.CONNECT: "while connecting",
    Phase.PROXY: "while connecting through the proxy",
    Phase.TLS: "in the TLS handshake",
    Phase.SEND: "while sending the request",
    Phase.HEAD: "while waiting for the response",
    Phase.BODY: "while reading the response",
}


def find_header(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return the first value of the header *name*, whatever its case, or None."""
    wanted = name.lower()
    for field, value in headers:
        if field.lower() == wanted:
            return value
    return None
