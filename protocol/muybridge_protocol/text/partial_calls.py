"""Native function calls whose arguments are streamed in pieces.

The specification does not show them. They are read as Google's own types describe them: a call with
`willContinue` is followed by others that continue it, until one without; they repeat its `id` or
have none, and no name. Each has `partialArgs`: values for places in the arguments, which are named
by a JSON path, and a text with `willContinue` is continued by the next one for its place.

As long as pieces are missing or cannot be joined, they stay as they came, which a call reports as
its problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from muybridge_protocol.records.json import NESTING_LIMIT, JsonObject, as_array, as_object
from muybridge_protocol.text.functions import ARGUMENTS, CALL, CONTINUES, PIECES

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>[0-9]{1,9})\]|\[(?P<mark>['"])(?P<text>.*?)(?P=mark)\]"""
)
_VALUES: Final = ("stringValue", "numberValue", "boolValue")


def with_whole_calls(parts: Iterable[Any]) -> list[Any]:
    """Return *parts* with the pieces of each call joined at the place of the first one."""
    whole: list[Any] = []
    open_calls: list[JsonObject] = []
    for part in parts:
        record = as_object(part) or {}
        call = as_object(record.get(CALL))
        if call is None:
            whole.append(part)
            continue
        start = _continued(open_calls, call)
        if start is None:
            start = {**record, CALL: {**call, PIECES: [*as_array(call.get(PIECES))]}}
            whole.append(start)
            open_calls.append(start)
        else:
            start.update({**record, CALL: _joined(start[CALL], call)})
        if not start[CALL].get(CONTINUES):
            open_calls = [one for one in open_calls if one is not start]
            start[CALL] = _whole(start[CALL])
    # These have no end. The empty list is not the service's.
    for start in open_calls:
        if not start[CALL][PIECES]:
            del start[CALL][PIECES]
    return whole


def _continued(open_calls: list[JsonObject], piece: JsonObject) -> JsonObject | None:
    """Return the part whose call *piece* continues, or None if it begins one."""
    ident = piece.get("id")
    # A piece without an id continues what was begun last.
    for start in reversed(open_calls):
        call: JsonObject = start[CALL]
        if call.get("id") == ident if ident else not piece.get("name"):
            return start
    return None


def _joined(whole: JsonObject, piece: JsonObject) -> JsonObject:
    brought = {name: value for name, value in piece.items() if value is not None}
    arguments = {
        **(as_object(whole.get(ARGUMENTS)) or {}),
        **(as_object(piece.get(ARGUMENTS)) or {}),
    }
    # It continues only if this piece says so as well.
    joined = {**whole, CONTINUES: None, **brought}
    joined[PIECES] = [*whole[PIECES], *as_array(piece.get(PIECES))]
    return {**joined, ARGUMENTS: arguments} if arguments else joined


def _whole(call: JsonObject) -> JsonObject:
    """Return *call* with its pieces put into its arguments, if that is possible."""
    plain = {name: value for name, value in call.items() if name not in (CONTINUES, PIECES)}
    pieces = call[PIECES]
    if not pieces:
        return plain
    arguments: Any = {**(as_object(call.get(ARGUMENTS)) or {})}
    unfinished: set[object] = set()
    try:
        for piece in (as_object(one) or {} for one in pieces):
            path: object = piece.get("jsonPath")
            steps = _steps(path)
            values = [piece[name] for name in _VALUES if piece.get(name) is not None]
            if values or "nullValue" in piece:
                value = values[0] if values else None
                arguments = _put(arguments, steps, value, adds=path in unfinished)
            unfinished.discard(path)
            if piece.get(CONTINUES):  # the next text for this place is added, and replaces nothing
                unfinished.add(path)
    except ValueError:
        return call
    return call if unfinished else {**plain, ARGUMENTS: arguments}


_MISPLACED = "a piece has no place in the arguments"


def _steps(path: object) -> list[str | int]:
    """Return the names and positions in a JSON path that leads to one value.

    Raises:
        ValueError: It is no such path.
    """
    steps: list[str | int] = []
    path = path if isinstance(path, str) else ""
    at = 1
    while path.startswith("$") and at < len(path) and len(steps) < NESTING_LIMIT:
        match = _STEP.match(path, at)
        if match is None:
            break
        index = match["index"]
        steps.append(int(index) if index else match["name"] or match["text"] or "")
        at = match.end()
    if not steps or at < len(path):
        raise ValueError(_MISPLACED)
    return steps


def _put(node: Any, steps: list[str | int], value: Any, *, adds: bool) -> Any:
    """Return *node* with *value* at the place to which *steps* lead, or added to the text there."""
    if not steps:
        both = isinstance(node, str) and isinstance(value, str)
        return node + value if adds and both else value
    step, *rest = steps
    if isinstance(step, str):
        if not (node is None or isinstance(node, dict)):
            raise ValueError(_MISPLACED)
        record: JsonObject = as_object(node) or {}
        return {**record, step: _put(record.get(step), rest, value, adds=adds)}
    items: list[Any] = [*as_array(node)]
    # The position after the last item adds one. No position is skipped.
    if not (node is None or isinstance(node, list)) or step > len(items):
        raise ValueError(_MISPLACED)
    item = items[step] if step < len(items) else None
    items[step : step + 1] = [_put(item, rest, value, adds=adds)]
    return items
