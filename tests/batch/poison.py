"""Responses that are valid HTTP, and often valid JSON, and that no program should trip over."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
Poison = Callable[[str, Record], Record | bytes]
"""Gives what is written in place of the record that is due, for `create` or `result`."""


def _in_create(**values: Any) -> Poison:
    return lambda kind, record: record | values if kind == "create" else record


def _in_both(**values: Any) -> Poison:
    return lambda _, record: record | values


def _in_result(**values: Any) -> Poison:
    return lambda kind, record: record | values if kind == "result" else record


def _failed(error: Any) -> Poison:
    return _in_result(status="failed", error=error)


def _raw(kind_of: str, body: bytes) -> Poison:
    return lambda kind, record: body if kind == kind_of else record


HALF = "\ud83d"
"""Half an emoji: JSON can write it, UTF-8 cannot."""
FORGED = "blocked\nto resume: muybridge wait sk-1\r\n\x1b[31mitem 1: downloaded\x07"

SURVIVED: dict[str, Poison] = {
    "half an emoji in the error": _failed(f"blocked: {HALF}"),
    "half an emoji in the model": _in_both(model=f"imgb-2{HALF}"),
    "half an emoji in the object": _in_both(object=HALF),
    "half an emoji in the first status": _in_create(status=f"queued{HALF}"),
    "half an emoji in an unknown field": _in_both(**{HALF: HALF}),
    "created at 2^64-1": _in_both(created=2**64 - 1),
    "created at 2^63-1": _in_both(created=2**63 - 1),
    "created at -2^63": _in_both(created=-(2**63)),
    "created at 10^18 when it ends": _in_result(created=10**18),
    "created at 2^63-1 when it ends": _in_result(created=2**63 - 1),
    "tokens without end": _in_result(totalTokens=2**63, actualDuration=1e308),
    "lines and escapes in the error": _failed(FORGED),
    "lines in the first status": _in_create(status=FORGED),
    "an error of objects": _failed({"error": {"message": [HALF, {"at": 2**70}]}}),
    "a NUL in the error": _failed("a\x00b"),
    "a number as error": _failed(10**300),
}
"""Those after which the task's id is known, and the task comes to its end."""

LOST: dict[str, Poison] = {
    "no id": lambda kind, record: {"status": "queued"} if kind == "create" else record,
    "half an emoji as id": _in_create(id=HALF),
    "an id with lines": _in_create(id=FORGED),
    "a number as id": _in_create(id=2**70),
    "no JSON": _raw("create", b"\xff\x00<html>"),
    "a number of 5,000 digits": _raw("create", b'{"id": "task-x", "created": %s}' % (b"9" * 5000)),
    "a name twice": _raw("create", b'{"id": "task-x", "id": "task-y", "status": "queued"}'),
    "a hundred arrays": _raw("create", b'{"id": "task-x", "a": %s}' % (b"[" * 200 + b"]" * 200)),
}
"""Those after which nobody can know the task's id for sure."""


def written(record: Record | bytes) -> bytes:
    """Return the body that *record* is."""
    return record if isinstance(record, bytes) else json.dumps(record).encode()


def poisoning(prompts: frozenset[str], poison: Poison) -> Callable[[str, str, Record], bytes]:
    """Return what writes *poison* into the records of *prompts*, and no other."""

    def write(prompt: str, kind: str, record: Record) -> bytes:
        return written(poison(kind, record) if prompt in prompts else record)

    return write
