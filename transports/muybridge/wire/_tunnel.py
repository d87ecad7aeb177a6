"""A proxy's response to a request for a tunnel."""

from __future__ import annotations

import re

from muybridge.wire.exchange import Fault
from muybridge_protocol.http import Reason

_HEAD_LIMIT = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})[ \r]")


class TunnelReply:
    """The proxy's response, piece by piece."""

    def __init__(self) -> None:
        self._head = b""

    def take(self, piece: bytes) -> bool:
        """Take the next piece, b"" for the end, and return whether the tunnel is open.

        Raises:
            Fault: The proxy refused, or its response is invalid.
        """
        if not piece:
            raise Fault(Reason.CLOSED, "the proxy closed the connection")
        self._head += piece
        if len(self._head) > _HEAD_LIMIT:
            raise Fault(Reason.MALFORMED, "the proxy's response is too long")
        _, blank_line, behind = self._head.partition(b"\r\n\r\n")
        if not blank_line:
            return False
        status = _STATUS.match(self._head)
        if status is None or (status[1].startswith(b"2") and behind):
            raise Fault(Reason.MALFORMED, "the proxy's response to CONNECT is invalid")
        if not status[1].startswith(b"2"):
            code = status[1].decode()
            raise Fault(Reason.PROXY_REFUSED, f"the proxy answered CONNECT with status {code}")
        return True
