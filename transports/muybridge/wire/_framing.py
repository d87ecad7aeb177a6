"""Where the body of a response ends, according to its head.

A head that leaves this in doubt is a fault, because a truncated body must never pass for a complete
one. RFC 9112 lets a recipient accept a `Content-Length` that is repeated with the same value. It is
refused here, as llhttp does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import attrs

from muybridge.wire.exchange import Fault
from muybridge_protocol.http import HttpHead, Reason

# So many digits always fit into 64 bits.
_LENGTH = re.compile(r"[0-9]{1,18}")
_BODILESS = (204, 304)
_LISTED = ("connection", "content-encoding", "content-length", "transfer-encoding")

Listed = Mapping[str, list[str]]
"""The items of each header that tells how to read a response, by its name, all in lower case."""


@attrs.frozen(eq=False, repr=False)
class Framing:
    """How the end of a body is found.

    Args:
        bodiless: Whether the response has no body, whatever its headers say.
        chunked: Whether the body is chunked.
        length: The number of its bytes, or None. A body without a length or chunks ends with its
            connection.
    """

    bodiless: bool
    chunked: bool
    length: int | None

    @classmethod
    def of(cls, method: str, status: int, items: Listed) -> Framing:
        """Return the framing of a response.

        Args:
            method: The method of its request.
            status: Its status.
            items: What `listed` found in its head.

        Raises:
            Fault: The headers contradict each other, or are invalid.
        """
        codings, lengths = items["transfer-encoding"], items["content-length"]
        if codings and (codings != ["chunked"] or lengths):
            raise Fault(Reason.MALFORMED, "unknown Transfer-Encoding, or one with Content-Length")
        if lengths and (len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0])):
            raise Fault(Reason.MALFORMED, "Content-Length is not one number")
        bodiless = method == "HEAD" or status in _BODILESS
        chunked = bool(codings) and not bodiless
        return cls(bodiless, chunked, int(lengths[0]) if lengths else None)

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection marks the end of the body."""
        return not self.bodiless and not self.chunked and self.length is None


def listed(head: HttpHead) -> Listed:
    """Return the items of the headers that tell how to read a response, in lower case."""
    items: defaultdict[str, list[str]] = defaultdict(list)
    for field, value in head.headers:
        if (name := field.lower()) in _LISTED:
            items[name] += map(str.strip, value.lower().split(","))
    return items
