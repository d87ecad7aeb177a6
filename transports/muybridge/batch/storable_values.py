"""Texts as every database and every file can keep them.

The core sanitises what comes from the service where it reads it. This is the last line of defence.
"""

from __future__ import annotations

from typing import Final

from muybridge_protocol.records.json import is_encodable, readable

LONGEST_REASON: Final = 2000
"""Longest reason that is recorded and shown, in characters."""


def encodable(text: str) -> str:
    """Return *text* with U+FFFD in place of each character that UTF-8 cannot encode."""
    if is_encodable(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str) -> str:
    """Return *text* on one line, encodable and truncated, as it is recorded and shown."""
    return readable(text, LONGEST_REASON)
