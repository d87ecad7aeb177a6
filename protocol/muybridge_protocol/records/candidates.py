"""Finding a task in a response that is not the expected task record.

A paid request is never resent if its response contains a task, at any depth and in any spelling.
The rule is as follows, and the names below are its data:

- An object with an `id` (a text or an integer) and a `status` or `object` is a task. But a status
  that is a number, begins with a digit or is the name of a refusal is an HTTP status, and some
  texts denote errors.
- An object with a `task_id` is a task, whatever else it has. Integers below 1 are not ids.
- An `id` alone is not a task: it may be that of the request.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final, cast

from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.records.json import RAW_LIMIT, InvalidJson, JsonObject, read_json
from muybridge_protocol.service import is_printable_id

_STATES: Final = frozenset({"status", "object"})
_SAID_BY_ERRORS: Final = frozenset(
    {
        *("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
        *("ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED"),
        *("FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL"),
        *("UNAVAILABLE", "DATA_LOSS"),  # so far the names of google.rpc.Code
        *("error", "fail", "failure"),
    }
)
"""Values of `status` or `object` in errors."""
_HTTP_STATUSES: Final = frozenset(
    {
        *("badrequest", "unauthorized", "paymentrequired", "forbidden", "notfound"),
        *("methodnotallowed", "payloadtoolarge", "contenttoolarge", "requestentitytoolarge"),
        *("unsupportedmediatype", "unprocessableentity", "unprocessablecontent"),
        *("tooearly", "toomanyrequests"),
    }
)
"""Names of the HTTP statuses that refuse a request, as `_plain` returns them."""

# For bodies that are truncated or malformed.
_STRING = rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")'
_ANY_ID = rb'"(?i:((?:task[_-]?)?id))"\s*:\s*(?:' + _STRING + rb"|(-?[0-9]{1,4000})(?=[\s,}\]]))"
_ANY_STATE = rb'"(?i:status|object)"\s*:\s*(?:' + _STRING + rb"|null|[{\[])"
_MOST_PIECES = 10_000
"""Ids and states that are examined in such a body at most."""


def holds_task(body: bytes) -> bool:
    """Whether *body*, which need not be valid JSON, contains a task."""
    return _find_task(body) is not None


def find_id(body: bytes) -> str | None:
    """Return the id of the task in *body*, or else any id in it, or None.

    The body may be truncated, but the id must be complete. An id that cannot be shown and stored
    unchanged, or is longer than 64 KiB, is not returned.
    """
    found = find_any_id(body)
    return None if found is None or len(found) > RAW_LIMIT or not is_printable_id(found) else found


def find_any_id(body: bytes) -> str | None:
    """Return the same as `find_id`, but also ids that cannot be shown or stored unchanged."""
    task_id = _find_task(body)
    return next(_ids(body), None) if task_id is None else task_id


def _find_task(body: bytes) -> str | None:
    is_json, value = _read(body)
    if not is_json:
        ids = _ids_in_pieces(body)
        states = any(map(_is_state, _states_in_pieces(body)))
        return next((found for name, found in ids if states or _names_task(name, found)), None)
    tasks = (_task_id(record) for record in _records(value))
    return next((found for found in tasks if found is not None), None)


def _ids(body: bytes) -> Iterator[str]:
    is_json, value = _read(body)
    if not is_json:
        yield from (found for _, found in _ids_in_pieces(body))
        return
    for record in _records(value):
        yield from (found for _, found in _ids_of(record))


def _read(body: bytes) -> tuple[bool, Any]:
    """Return whether *body* is JSON, and the value that it is."""
    try:
        return True, read_json(body)
    except InvalidJson:  # which holds a copy of the body: free it before others are made
        return False, None


def _task_id(record: JsonObject) -> str | None:
    """Return the id of the task that *record* is, or None."""
    is_stateful = any(_is_state(value) for name, value in record.items() if name.lower() in _STATES)
    for name, found in _ids_of(record):
        if is_stateful or _names_task(name, found):
            return found
    return None


def _ids_of(record: JsonObject) -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if len(name) <= len("task_id") and (plain := _plain(name)) in ("id", "taskid"):
            if isinstance(value, str) and value:
                yield plain, value
            elif type(value) is int:
                yield plain, str(value)


_SEPARATORS: Final = str.maketrans("", "", " _-")


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def _names_task(name: str, found: str) -> bool:
    return name == "taskid" and found != "0" and not found.startswith("-")


def _is_state(value: object) -> bool:
    if not isinstance(value, str):
        return not isinstance(value, int | float)
    is_errors = {value, value.lower()} & _SAID_BY_ERRORS or _plain(value) in _HTTP_STATUSES
    return not is_errors and not value[:1].isdigit()


def _records(value: Any) -> Iterator[JsonObject]:
    """Yield every object in *value*, outer ones first."""
    level = deque([value])
    while level:
        outer = level.popleft()
        if isinstance(outer, dict):
            record = cast("JsonObject", outer)
            yield record
            level.extend(record.values())
        elif isinstance(outer, list):
            level.extend(outer)  # pyright: ignore[reportUnknownArgumentType]  of anything


def _ids_in_pieces(body: bytes) -> list[tuple[str, str]]:
    """Return the ids in *body*, which need not be JSON, those of outer objects first."""
    found: list[tuple[int, str, str]] = []
    depth = end = 0
    # With very long or many texts, finding them takes too much: brackets inside them count, too.
    is_small = len(body) <= MEBIBYTE and body.count(b'"') <= 4 * _MOST_PIECES
    marks = re.sub(_STRING, _blank, body, flags=re.DOTALL) if is_small else body
    for match in islice(re.finditer(_ANY_ID, body, re.DOTALL), _MOST_PIECES):
        begin = match.start()
        depth += sum(marks.count(mark, end, begin) for mark in (b"{", b"["))
        depth -= sum(marks.count(mark, end, begin) for mark in (b"}", b"]"))
        end = match.end()
        value = match[3].decode() if match[2] is None else _unquoted(match[2])
        if value:
            found.append((depth, _plain(match[1].decode()), value))
    found.sort(key=itemgetter(0))
    return [(name, value) for _, name, value in found]


def _blank(text: re.Match[bytes]) -> bytes:
    return b" " * len(text[0])


def _states_in_pieces(body: bytes) -> Iterator[str | None]:
    for match in islice(re.finditer(_ANY_STATE, body, re.DOTALL), _MOST_PIECES):
        yield None if match[1] is None else _unquoted(match[1])


def _unquoted(string: bytes) -> str | None:
    try:
        found: str = json.loads(string.decode(), strict=False)
    except ValueError:  # an invalid escape, or not UTF-8
        return None
    return found
