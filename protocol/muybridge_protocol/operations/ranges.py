"""The headers of a response that say which part of a file it has."""

from __future__ import annotations

import re


def whole_number(text: str | None) -> int | None:
    """Return the number that a header states, or None."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text.strip(), re.ASCII) else None


def content_range(text: str | None) -> tuple[int | None, int | None, int | None]:
    """Return the first and last byte of a `Content-Range`, and the size of the whole."""
    match = re.fullmatch(
        r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", (text or "").strip(), re.ASCII
    )
    if match is None:
        return None, None, None
    total = None if match[3] == "*" else int(match[3])
    return int(match[1]), int(match[2]), total
