"""Finding a task in a response that is not the expected task record.

A paid request is never resent if its response contains a task, at any depth and in any spelling.
The rule is as follows, and the names below are its data:

- An object with an `id` (a text or an integer) and a `status` or `object` is a task. But a status
  that is a number, begins with a digit or is the name of a refusal is an HTTP status, and some
  texts denote errors.
- An object with a `task_id` is a task, whatever else it has. Integers below 1 are not ids.
- An object with an id under any other name, such as `jobId`, `uuid` or `request_id`, is a task if
  it has the state of one that waits, runs or is done, such as `IN_QUEUE`. Unknown states do not
  count here. Beside such a state, the `id` of an object directly within counts, too.
- Otherwise an id is not that of a task: it may be that of the request.

Objects count in UTF-8, UTF-16 and UTF-32, and also in JSON that is the text of other JSON.

The two possible mistakes differ in cost. If a task is seen where there is none, a person searches
an account in vain. If a task is overlooked, a create is sent and paid for twice. So doubt counts as
a task. But nearly every error has the id of its request, and if that counted, no 429 could be
retried. Therefore an id under any other name counts only beside a state that no error has.

Outer objects go before inner ones, because an inner id may be that of an asset or of another task.
A truncated or malformed body has no objects. There, ids and states are found by their names, and
their depth by counting brackets. Brackets within texts must not count: they would make the id of
the task itself seem to be an inner one.
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
        *("error", "fail", "failure", "throttled", "limited", "rate_limited"),
        *("rate_limit_exceeded", "rejected", "blocked"),
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

_TASK_IDS: Final = frozenset({"id", "taskid"})
"""Names of a task's id, as `_plain` returns them."""
_ANY_IDS: Final = ("id", "identifier")
"""How the names of other ids end: `jobId`, `uuid`, `request_id`."""
_NO_IDS: Final = ("valid", "paid", "void", "pid", "grid")
"""How names end that are no ids."""
_REQUEST_IDS: Final = ("request", "trace", "correlation")
"""How the names of ids begin that count only if the task has no other one."""
_ANY_STATES: Final = ("status", "state", "phase", "stage")
"""How the names of states end: `state`, `task_status`."""
_PROGRESS: Final = re.compile(
    "(?:task|job|state|status)*"  # as in TASK_STATUS_QUEUED
    "(?:queued|inqueue|enqueued|queueing|queuing|pending|waiting|scheduled|created|submitted|"
    "accepted|received|notstarted|starting|started|initializing|preparing|processing|inprogress|"
    "running|generating|rendering|executing|working|dreaming|completed|complete|succeeded|succeed|"
    "success|successful|finished|done|ready)"
)
"""States of tasks that wait, run or are done, as `_plain` returns them."""
_MOST_LAYERS: Final = 8
"""Layers of JSON that are looked into: JSON, JSON in its texts, and so on. Beyond the first, a text
may have 1 MiB."""

# For bodies that are truncated or malformed.
_STRING = rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")'
_ANY_ID = (
    rb'"(?i:([\w -]{0,60}?(?:id|identifier)))"\s*:\s*'
    rb"(?:" + _STRING + rb"|(-?[0-9]{1,4000})(?=[\s,}\]]))"
)
_ANY_STATE = (
    rb'"(?i:([\w -]{0,60}?(?:object|status|state|phase|stage)))"\s*:\s*'
    rb"(?:" + _STRING + rb"|null|[{\[])"
)
_MOST_PIECES = 10_000
"""Ids and states that are examined in such a body at most."""


def holds_task(body: bytes) -> bool:
    """Whether *body*, which need not be valid JSON, contains a task."""
    return _find_task(_in_utf8(body)) is not None


def find_id(body: bytes) -> str | None:
    """Return the id of the task in *body*, or else any id in it, or None.

    The body may be truncated, but the id must be complete. An id that cannot be shown and stored
    unchanged, or is longer than 64 KiB, is not returned.
    """
    candidate = find_any_id(body)
    return (
        None
        if candidate is None or len(candidate) > RAW_LIMIT or not is_printable_id(candidate)
        else candidate
    )


def find_any_id(body: bytes) -> str | None:
    """Return the same as `find_id`, but also ids that cannot be shown or stored unchanged."""
    body = _in_utf8(body)
    task_id = _find_task(body)
    return next(_ids(body), None) if task_id is None else task_id


def _find_task(body: bytes, layers: int = _MOST_LAYERS) -> str | None:
    is_json, value = _read(body)
    tasks = map(_task_id, _records(value)) if is_json else iter([_task_in_pieces(body)])
    task_id = next(filter(None, tasks), None)
    if task_id is not None or layers == 1:
        return task_id
    texts = _texts_of(value) if is_json else _unescaped(body)
    return next(filter(None, (_find_task(text, layers - 1) for text in texts)), None)


def _task_in_pieces(body: bytes) -> str | None:
    ids, states = _ids_in_pieces(body), list(_states_in_pieces(body))
    is_stateful = any(_is_state(value) for name, value in states if name in _STATES)
    progresses = any(_tells_progress(value) for _, value in states)
    return _id_of_task(ids, is_stateful=is_stateful, progresses=progresses)


def _ids(body: bytes) -> Iterator[str]:
    is_json, value = _read(body)
    records = [_ids_of(record) for record in _records(value)] if is_json else [_ids_in_pieces(body)]
    yield from (task_id for ids in records for name, task_id in ids if name in _TASK_IDS)


def _read(body: bytes) -> tuple[bool, Any]:
    """Return whether *body* is JSON, and the value that it is."""
    try:
        return True, read_json(body)
    except InvalidJson:  # which holds a copy of the body: free it before others are made
        return False, None


def _in_utf8(body: bytes) -> bytes:
    """Return *body* in the encoding of JSON, if it is in UTF-16 or UTF-32."""
    encoding = json.detect_encoding(body)
    return body if encoding.startswith("utf-8") else body.decode(encoding, "replace").encode()


def _texts_of(value: Any) -> Iterator[bytes]:
    """Yield the texts in the JSON *value* that may hold JSON themselves."""
    level = deque([value])
    while level:
        outer = level.popleft()
        if isinstance(outer, str):
            if '"' in outer and len(outer) <= MEBIBYTE:
                yield outer.encode(errors="replace")
        elif isinstance(outer, dict | list):
            level.extend(outer.values() if isinstance(outer, dict) else outer)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]  of anything


def _unescaped(body: bytes) -> Iterator[bytes]:
    """Yield what the texts in *body*, which is not JSON, hold, if they may hold JSON."""
    if rb"\"" in body and len(body) <= MEBIBYTE:
        yield body.replace(rb"\"", b'"').replace(rb"\\", b"\\")


def _task_id(record: JsonObject) -> str | None:
    """Return the id of the task that *record* is, or None."""
    ids = _ids_of(record)
    is_stateful = any(_is_state(value) for name, value in record.items() if name.lower() in _STATES)
    progresses = any(
        _tells_progress(value) for name, value in record.items() if _is_for_state(name)
    )
    candidate = _id_of_task(ids, is_stateful=is_stateful, progresses=progresses)
    if candidate is not None or not progresses:
        return candidate
    inner = (
        cast("JsonObject", value)
        for name, value in record.items()
        if isinstance(value, dict) and not name.lower().startswith("error")
    )
    named = (each for wrapped in inner for each in _ids_of(wrapped))
    return next((value for name, value in named if name in _TASK_IDS), None)


def _id_of_task(ids: list[tuple[str, str]], *, is_stateful: bool, progresses: bool) -> str | None:
    """Return which of *ids* is that of a task, or None.

    Args:
        ids: Names and values, those of outer objects first.
        is_stateful: Whether there is a status that may be that of a task.
        progresses: Whether there is the state of a task that waits, runs or is done.
    """
    for name, value in ids:
        if _names_task(name, value) or (name in _TASK_IDS and (is_stateful or progresses)):
            return value
    if not progresses or not ids:
        return None
    # A service may number its requests, too. Such an id counts only if there is no other.
    return min(ids, key=lambda each: each[0].startswith(_REQUEST_IDS))[1]


def _ids_of(record: JsonObject) -> list[tuple[str, str]]:
    ids: list[tuple[str, str]] = []
    for name, value in record.items():
        if _is_for_id(name) and ((isinstance(value, str) and value) or type(value) is int):
            ids.append((_plain(name), str(value)))
    return ids


_SEPARATORS: Final = str.maketrans("", "", " _-")


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def _is_for_id(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_ANY_IDS) and not lower.endswith(_NO_IDS)


def _is_for_state(name: str) -> bool:
    return name.lower().endswith(_ANY_STATES)


def _names_task(name: str, value: str) -> bool:
    return name == "taskid" and value != "0" and not value.startswith("-")


def _is_state(value: object) -> bool:
    if not isinstance(value, str):
        return not isinstance(value, int | float)
    is_errors = {value, value.lower()} & _SAID_BY_ERRORS or _plain(value) in _HTTP_STATUSES
    return not is_errors and not value[:1].isdigit()


def _tells_progress(value: object) -> bool:
    """Whether *value* is the state of a task that waits, runs or is done."""
    if isinstance(value, dict):
        return any(map(_tells_progress, cast("JsonObject", value).values()))
    return isinstance(value, str) and _PROGRESS.fullmatch(_plain(value)) is not None


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
    ids: list[tuple[int, str, str]] = []
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
        name = match[1].decode()
        if value and _is_for_id(name):
            ids.append((depth, _plain(name), value))
    ids.sort(key=itemgetter(0))
    return [(name, value) for _, name, value in ids]


def _blank(text: re.Match[bytes]) -> bytes:
    return b" " * len(text[0])


def _states_in_pieces(body: bytes) -> Iterator[tuple[str, str | None]]:
    for match in islice(re.finditer(_ANY_STATE, body, re.DOTALL), _MOST_PIECES):
        yield match[1].decode().lower(), None if match[2] is None else _unquoted(match[2])


def _unquoted(string: bytes) -> str | None:
    try:
        text: str = json.loads(string.decode(), strict=False)
    except ValueError:  # an invalid escape, or not UTF-8
        return None
    return text
