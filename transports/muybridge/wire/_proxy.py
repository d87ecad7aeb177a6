"""HTTP proxies: where one is, and its response to a request for a tunnel."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote, urlsplit

import attrs

from muybridge.wire.exchange import Fault
from muybridge_protocol.http import Reason

_DEFAULT_PORT = 80
_HEAD_LIMIT = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})[ \r]")


@attrs.frozen
class Proxy:
    """An HTTP proxy.

    Args:
        host: Its name or address, without brackets.
        port: Its port.
        authorization: The value of the `Proxy-Authorization` header, or None.
    """

    host: str
    port: int
    authorization: str | None = attrs.field(repr=False)

    @classmethod
    def read(cls, url: str) -> Proxy:
        """Return the proxy at *url*.

        Raises:
            Fault: It cannot be used. Nothing of the URL is shown, because it may hold a password.
        """
        scheme = url.partition("://")[0].lower()
        if scheme != "http":
            raise Fault(Reason.REFUSED_HERE, f"{scheme} proxies are not supported")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise Fault(Reason.REFUSED_HERE, "the proxy's URL cannot be read") from None
        if not host:
            raise Fault(Reason.REFUSED_HERE, "the proxy's URL names no host")
        authorization = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(login.encode()).decode()
        return cls(host, port or _DEFAULT_PORT, authorization)

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The header fields for the proxy itself."""
        return () if self.authorization is None else (("Proxy-Authorization", self.authorization),)


class TunnelResponse:
    """The proxy's response, piece by piece."""

    def __init__(self) -> None:
        self._head = b""

    def take(self, piece: bytes) -> bool:
        """Take the next piece, b"" for the end, and return whether the tunnel is open.

        Raises:
            Fault: The proxy refused, or its response is invalid.
        """
        if not piece:
            raise _fault(Reason.CLOSED, "closed the connection")
        self._head += piece
        if len(self._head) > _HEAD_LIMIT:
            raise _fault(Reason.MALFORMED, "answered CONNECT with too long a head")
        _, blank_line, behind = self._head.partition(b"\r\n\r\n")
        if not blank_line:
            return False
        status = _STATUS.match(self._head)
        # In a tunnel the client speaks first (TLS), so nothing can follow the head that opens it.
        if status is None or (status[1].startswith(b"2") and behind):
            raise _fault(Reason.MALFORMED, "answered CONNECT with an invalid head")
        if not status[1].startswith(b"2"):
            code = status[1].decode()
            raise _fault(Reason.PROXY_REFUSED, f"answered CONNECT with status {code}")
        return True


def _fault(reason: Reason, detail: str) -> Fault:
    return Fault(reason, detail, by_proxy=True)
