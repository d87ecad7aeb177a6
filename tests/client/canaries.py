"""All that can be seen of a value or an error, to look for a key in it."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Sequence
from typing import cast

from muybridge import MuybridgeError

AWKWARD = 'sk-canary+"5e1f/a0b7\\c2d9%4'
"""A key that JSON and URLs write in other ways."""


def everything(error: BaseException) -> str:
    """Return all that can be seen of an error, the variables of its traceback included."""
    shown = [repr(error), str(error), repr(error.args), repr(getattr(error, "__notes__", ""))]
    shown += [repr(getattr(error, name, None)) for name in dir(error) if name != "__traceback__"]
    # What was caught is looked at in its own frames: the test knows the key.
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown += told.format()
    if isinstance(error, MuybridgeError):
        shown.append(repr(pickle.dumps(error)))
    return "\n".join(shown)


_OURS = ("muybridge", "muybridge_protocol", "requests", "client")
"""The packages whose objects are looked into; `client` is that of the drivers."""


def reachable(value: object, depth: int = 8, seen: set[int] | None = None) -> str:
    """Return all that is shown of a value and of what its attributes lead to."""
    seen = set() if seen is None else seen
    if depth == 0 or id(value) in seen:
        return ""
    seen.add(id(value))
    shown = [repr(value), f"{value!s}"]
    inside: list[object] = []
    if type(value).__module__.split(".")[0] in _OURS:
        names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
        inside = [getattr(value, str(name), None) for name in names]
    elif isinstance(value, dict):
        items = cast("dict[object, object]", value)
        inside = [*items, *items.values()]
    elif isinstance(value, list | tuple):
        inside = list(cast("Sequence[object]", value))
    return "\n".join([*shown, *(reachable(item, depth - 1, seen) for item in inside)])


def echoes(key: str) -> dict[str, bytes]:
    """Return responses that hold the key in every way that a server may write it."""
    escaped = "".join(f"\\u{ord(mark):04x}" for mark in key)
    percent = "".join(f"%{ord(mark):02X}" for mark in key)
    quoted = json.dumps(key)[1:-1]
    slashed = quoted.replace("/", "\\/")
    said = {
        "plain": f"bad key {key}",
        "json": f'{{"error": "bad key {quoted}"}}',
        "slashes": f'{{"error": {{"message": "bad key {slashed}"}}}}',
        "escapes": f'{{"error": "bad key {escaped}"}}',
        "capitals": f'{{"error": "bad key {escaped.upper().replace("U", "u")}"}}',
        "percent": f'{{"error": "bad key {percent}"}}',
        "record": f'{{"id": "task-1", "status": "failed", "error": "bad key {quoted}"}}',
        "asset": f'{{"code": "1", "msg": "bad key {quoted}"}}',
        "id": f'{{"id": "{quoted}", "status": "completed"}}',
        "status": f'{{"id": "task-1", "status": "{quoted}"}}',
        "html": f"<html>{key}</html>",
    }
    return {name: text.encode() for name, text in said.items()}
