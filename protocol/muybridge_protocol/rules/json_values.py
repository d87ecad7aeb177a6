"""What can be sent as JSON: text, numbers, booleans, null, and arrays and objects of these.

A user who passes anything else mostly means a file, or the link of a result. The message says how
to send that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from muybridge_protocol.media.inline import AS_TEXT, file_within, link_of
from muybridge_protocol.records.json import is_encodable
from muybridge_protocol.rules.values import Problem, is_array, shown


def unwritable(wire: object, value: object) -> Problem | None:
    """Return why the field *wire* cannot be sent as JSON, or None. Its name may have any type."""
    try:
        writable = is_json(wire) and isinstance(wire, str) and is_json(value)
    except RecursionError:
        writable = False
    if writable:
        return None
    hint = "use plain JSON values, and strings as names"
    items = value if is_array(value) else (value,)
    for link in filter(None, (link_of(item, "url") for item in items)):
        hint = f"use {link} for its link"
    holds_file = file_within(value) is not None
    return Problem(
        wire if isinstance(wire, str) and wire.isprintable() else shown(wire),
        value,
        "json",
        f"{shown(value)} cannot be written as JSON",
        AS_TEXT if holds_file else hint,
    )


def is_json(value: object) -> bool:
    """Whether *value* can be written as JSON. It may raise `RecursionError`."""
    match value:
        case str():
            return value.isascii() or is_encodable(value)
        case bool() | None:
            return True
        case int() | float():
            return abs(value) < 1e300  # noqa: PLR2004  far beyond any setting, and False for NaN
        case list() | tuple():
            return all(map(is_json, cast("Sequence[object]", value)))
        case dict():
            items = cast("Mapping[object, object]", value).items()
            return all(isinstance(k, str) and is_json(k) and is_json(v) for k, v in items)
        case _:
            return False
