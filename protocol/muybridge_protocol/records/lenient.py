"""Lenient readers for the fields of a record.

A paid task must not be lost over a field, so a value of an unexpected type is read as None. The raw
record keeps the original. Texts for people are made safe to show and to store; links are not
altered.
"""

from __future__ import annotations

from typing import Any, Final

from muybridge_protocol.records.json import is_encodable, one_line

NAME_LIMIT: Final = 200
"""Longest status, model name or other short text, in characters."""
ERROR_LIMIT: Final = 2_000
"""Longest error text, in characters."""
_COUNT_LIMIT: Final = 2**63
"""Databases store integers as 64 bits with a sign."""
_TIME_LIMIT: Final = 32_503_680_000
"""The year 3000. Larger numbers are not times in seconds, but mostly milliseconds or counters."""

# cattrs passes the type of the field to every hook as the second argument.


def optional_text(value: Any, _: object = None) -> str | None:
    """Return *value* unchanged if it is a string that can be encoded, or None."""
    return value if type(value) is str and is_encodable(value) else None


def optional_name(value: Any, _: object = None) -> str | None:
    """Return *value*, made safe to show and store, if it is a string, or None."""
    return one_line(value, NAME_LIMIT) if type(value) is str else None


def optional_count(value: Any, _: object = None) -> float | None:
    """Return *value* if it is a non-negative number that any database can store, or None."""
    if type(value) is float:
        return value if value >= 0 else None
    return value if type(value) is int and 0 <= value < _COUNT_LIMIT else None


def optional_time(value: Any, _: object = None) -> float | None:
    """Return *value* if it is a Unix time in seconds before the year 3000, or None."""
    return value if type(value) in (int, float) and 0 <= value < _TIME_LIMIT else None


def optional_whole_time(value: Any, _: object = None) -> int | None:
    """Return *value* if it is a Unix time in whole seconds before the year 3000, or None."""
    return value if type(value) is int and 0 <= value < _TIME_LIMIT else None
