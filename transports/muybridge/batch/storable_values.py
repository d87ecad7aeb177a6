"""Values as every journal can store them.

The core sanitises what comes from the service where it reads it. This is the last line of defence:
anything else that reaches the journal is stored too, or refused as one item's error.
"""

from __future__ import annotations

from typing import Final

from muybridge.batch.journal_errors import Unstorable
from muybridge_protocol.records.json import is_encodable, readable

LONGEST_REASON: Final = 2000
"""Longest reason that is recorded and shown, in characters."""
_LARGEST: Final = 2**63 - 1

Kind = type[str] | type[int] | type[float] | type[bytes]
"""What a column holds."""


def storable(value: object, kind: Kind) -> str | int | float | bytes | None:
    """Return *value* as a column of *kind* stores it.

    Text that cannot be encoded is repaired, and an integer over 64 bits becomes None.

    Raises:
        Unstorable: It is neither None nor of that kind.
    """
    match value:
        case None:
            return None
        case int() if kind in (int, float):
            return int(value) if -_LARGEST - 1 <= value <= _LARGEST else None
        case str() if kind is str:
            return encodable(value)
        case float() | bytes() if isinstance(value, kind):
            return value
        case _:
            raise Unstorable(f"{type(value).__name__} instead of {kind.__name__}")


def encodable(text: str) -> str:
    """Return *text* with U+FFFD in place of each character that UTF-8 cannot encode."""
    if is_encodable(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str) -> str:
    """Return *text* on one line, encodable and truncated, as it is recorded and shown."""
    return readable(text, LONGEST_REASON)
