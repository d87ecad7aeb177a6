"""Values as SQLite takes them.

The core makes what comes from the service safe where it reads it. This is the last line of defence:
whatever else reaches the journal is stored too, or refused as one item's error.
"""

from __future__ import annotations

from typing import Final

from muybridge.batch.journal_errors import Unstorable
from muybridge_protocol.codec import readable

LONGEST_REASON: Final = 2000
"""Most characters of a reason that are recorded and shown."""
_LARGEST: Final = 2**63 - 1


def storable(value: object) -> str | int | float | bytes | None:
    """Return *value* as SQLite takes it.

    Text that cannot be encoded is repaired, and an integer beyond 64 bits becomes None.

    Raises:
        Unstorable: SQLite has no type for it.
    """
    match value:
        case str():
            return encodable(value)
        case int():
            return int(value) if -_LARGEST - 1 <= value <= _LARGEST else None
        case None | float() | bytes():
            return value
        case _:
            raise Unstorable(f"a {type(value).__name__} cannot be recorded")


def encodable(text: str) -> str:
    """Return *text* with U+FFFD in place of each character that UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(text)


def one_line(text: str) -> str:
    """Return *text* as it is recorded and shown: on one line, encodable, not too long."""
    return readable(text, LONGEST_REASON)
