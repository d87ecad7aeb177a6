"""Which bytes of a file a download asks for (RFC 9110, "Range Requests")."""

from __future__ import annotations

import re

import attrs

from muybridge_protocol.emulator.refused import Refused

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


@attrs.frozen
class Span:
    """A stretch of bytes, from *first* to *last*, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """How many bytes it has."""
        return self.last - self.first + 1


def requested_span(range_header: str | None, size: int) -> Span | None:
    """Return the bytes that are asked for, or None for the whole file.

    A range that cannot be read, and one of several parts, may be answered with the whole file.

    Args:
        range_header: The request's `Range`, or None.
        size: The file's bytes.

    Raises:
        Refused: The range holds no byte of the file.
    """
    match = _RANGE.fullmatch(range_header or "")
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        wanted = min(int(last), size)
        span = Span(size - wanted, size - 1)
    else:
        span = Span(int(first), min(int(last), size - 1) if last else size - 1)
        if last and int(last) < span.first:
            return None
    if span.length <= 0:
        headers = (("Content-Range", f"bytes */{size}"),)
        raise Refused(416, f"the file has {size} bytes", "unsatisfiable_range", headers=headers)
    return span
