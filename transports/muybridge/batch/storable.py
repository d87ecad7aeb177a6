"""Values as SQLite takes them.

The core makes what comes from the service safe where it reads it. This is the last line of defence:
whatever else reaches the journal is stored too, or refused as one item's error.
"""

from __future__ import annotations

from typing import Final

from muybridge.batch.journal_errors import Unstorable
from muybridge_protocol.records.json import is_encodable, readable

LONGEST_REASON: Final = 2000
"""Most characters of a reason that are recorded and shown."""
_LARGEST: Final = 2**63 - 1

Kind = type[str] | type[int] | type[float] | type[bytes]
"""What a column holds."""


def storable(value: object, kind: Kind) -> str | int | float | bytes | None:
    """Return *value* as a column of *kind* takes it.

    Text that cannot be encoded is repaired, and an integer beyond 64 bits becomes None.

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
    """Return *text* as it is recorded and shown: on one line, encodable, not too long."""
    return readable(text, LONGEST_REASON)
