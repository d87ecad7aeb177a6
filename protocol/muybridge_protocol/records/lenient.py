"""How a field of a record is read if nothing may be lost over it.

A value of an unexpected type reads as None, because a paid task must not be lost over it; the raw
record keeps what came. Texts for people are made safe to show and to store; links are not altered.
"""

from __future__ import annotations

from typing import Any, Final

from muybridge_protocol.records.json import is_encodable, one_line

NAME_LIMIT: Final = 200
"""Most characters of a status, a model's name or another short text that are kept."""
ERROR_LIMIT: Final = 2_000
"""Most characters of an error's text that are kept."""
_COUNT_LIMIT: Final = 2**63
"""Databases store integers in 64 bits with a sign."""
_TIME_LIMIT: Final = 32_503_680_000
"""Times from the year 3000 on are no times; most are milliseconds or counters."""

# The second argument is the field's type, which cattrs gives to every hook.


def optional_text(value: Any, _: object = None) -> str | None:
    """Return *value* as it came if it is a string that can be encoded, or None."""
    return value if type(value) is str and is_encodable(value) else None


def optional_name(value: Any, _: object = None) -> str | None:
    """Return *value* fit to show and store if it is a string, or None."""
    return one_line(value, NAME_LIMIT) if type(value) is str else None


def optional_count(value: Any, _: object = None) -> float | None:
    """Return *value* if it is a number from 0 on that any database can store, or None."""
    if type(value) is float:
        return value if value >= 0 else None
    return value if type(value) is int and 0 <= value < _COUNT_LIMIT else None


def optional_time(value: Any, _: object = None) -> float | None:
    """Return *value* if it is a Unix time in seconds before the year 3000, or None."""
    return value if type(value) in (int, float) and 0 <= value < _TIME_LIMIT else None


def optional_whole_time(value: Any, _: object = None) -> int | None:
    """Return *value* if it is a Unix time in whole seconds before the year 3000, or None."""
    return value if type(value) is int and 0 <= value < _TIME_LIMIT else None
