"""Whatever a service may answer, as bytes: JSON that is right, nearly right, extreme or broken.

`responses` is for a body of any kind, `records` for one with the right names and odd values.
`values` are Python values, for those who put something else into them first; `written` turns them
into bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import attrs
from hypothesis import strategies as st

from muybridge_protocol.records.convert import wire_names
from muybridge_protocol.records.tasks import Result, Task


@attrs.frozen
class Literal:
    """A number as it stands in JSON, which Python would write differently or not at all."""

    text: str


@attrs.frozen
class Pairs:
    """An object in which a name may stand twice."""

    pairs: tuple[tuple[str, Any], ...]


_OF_TASKS: Final = tuple(dict.fromkeys((*wire_names(Task).values(), *wire_names(Result).values())))
FIELDS: Final = (
    *_OF_TASKS,
    *("code", "msg", "data", "message", "detail", "task_id"),
)
"""The names of the specification's records, and those that errors have."""

ODD_TEXTS: Final = (
    "\ud83d",
    "blocked: \ud83d",
    "\udc00\ud800",
    "a\nb",
    "failed\nto resume: muybridge wait 'x'",
    "a\r\nb\u2028c\u2029d\x85e",
    "\x00",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe",
    "\ufeff",
    "\U0001f40e",
    " ",
    "",
    ".",
    "..",
    "../../etc/passwd",
    "%2e%2e",
    "a/b|c,d!e(f)?g#h%i\\j",
    "'; rm -rf ~",
    "=1+1",
    "<script>alert(1)</script>",
    "https://cdn.example/a.png?Signature=s3cret",
    "http://169.254.169.254/latest",
    "http://\u65e5\u672c.example/\u7d75.png",
)
STATUSES: Final = ("queued", "processing", "completed", "failed", "cancelled", "weird")
ODD_NUMBERS: Final = tuple(
    Literal(text)
    for text in (
        *("0", "-0", "-0.0", "-1", "1e0", "5.0", "1760000000", "1760000000000"),
        *("9223372036854775807", "9223372036854775808", "-9223372036854775809"),
        *("18446744073709551615", "18446744073709551616", "253402300800", "-62135596801"),
        *("1e308", "-1e308", "1e-400", "1e999", "-1e999", "NaN", "Infinity", "9" * 5000),
    )
)

texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(max_size=20),
    st.text(st.characters(categories=["Cs", "Cc", "Zl", "Zp", "Cf", "Lo"]), max_size=20),
    st.builds(
        str.__mul__, st.sampled_from(["x", "\n", "\ud800", "\U0001f40e", "'"]), st.just(9000)
    ),
)
"""Texts: lone surrogates, control characters, line breaks, long ones."""

numbers = st.sampled_from(ODD_NUMBERS) | st.integers() | st.floats()
leaves = st.none() | st.booleans() | numbers | texts
names = st.sampled_from(FIELDS) | st.text(max_size=5)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.lists(st.tuples(names, inner), max_size=5).map(tuple).map(Pairs)
    return st.dictionaries(names, inner, max_size=5) | pairs


values: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | _objects(inner), max_leaves=12
)
"""Any JSON value, as `written` takes it."""


def records(task_id: str | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Return what makes records with the right names and odd values.

    Args:
        task_id: Their id, or None for odd ones.
    """
    of_times = st.integers(1_700_000_000, 1_800_000_000) | leaves
    return st.fixed_dictionaries(
        {
            "id": (texts | leaves) if task_id is None else st.just(task_id),
            "status": st.sampled_from(STATUSES) | texts | values,
        },
        optional={
            **{name: texts | values for name in _OF_TASKS if name not in ("id", "status")},
            "created": of_times,
            "actualDuration": leaves,
            "totalTokens": leaves,
            "code": st.just("0") | texts | values,
            "msg": texts | values,
            "data": values,
        },
    )


def written(value: Any, *, escaped: bool = True) -> bytes:
    """Return *value* as JSON, or as nearly JSON as its literals allow.

    Args:
        value: A JSON value, in which `Literal` and `Pairs` may stand.
        escaped: Whether what is not ASCII is escaped. Lone surrogates always are.
    """
    return "".join(_written(value, escaped=escaped)).encode()


def _written(value: Any, *, escaped: bool) -> Iterable[str]:
    match value:
        case Literal(text):
            yield text
        case Pairs(pairs):
            yield from _written_pairs(pairs, escaped=escaped)
        case dict():
            yield from _written_pairs(cast("Mapping[str, Any]", value).items(), escaped=escaped)
        case list():
            yield "["
            for position, inner in enumerate(cast("list[Any]", value)):
                yield "," if position else ""
                yield from _written(inner, escaped=escaped)
            yield "]"
        case str() if not escaped and value.isprintable():
            yield json.dumps(value, ensure_ascii=False)
        case _:
            yield json.dumps(value)


def _written_pairs(pairs: Iterable[tuple[str, Any]], *, escaped: bool) -> Iterable[str]:
    yield "{"
    for position, (name, inner) in enumerate(pairs):
        yield "," if position else ""
        yield from _written(name, escaped=escaped)
        yield ":"
        yield from _written(inner, escaped=escaped)
    yield "}"


def _wrapped(record: Any, names_of_levels: list[str]) -> Any:
    for name in names_of_levels:
        record = {name: record} if name else [record]
    return record


def _cut(body: bytes, length: int) -> bytes:
    return body[: max(0, len(body) - length)]


def _extended(body: bytes, more: bytes) -> bytes:
    return body + more


EXTREMES: Final = (
    b"",
    b"[" * 3000 + b"]" * 3000,
    b'{"a":' * 101 + b"1" + b"}" * 101,
    b"[" + b"{}," * 60_000 + b"{}]",
    b'{"id":"task-1","status":"failed","error":"' + b"x" * 30_000 + b'"}',
    b'{"error":"' + b"\\ud83d" * 20_000 + b'","id":"task-1","status":"failed"}',
    b'{"id":"task-1","id":"task-2","status":"queued"}',
    b'\xff\xfe{"id":"task-1"}',
    b"<html><body>Bad gateway</body></html>",
)
"""Bodies that are deep, wide, long or no JSON at all."""


def responses(task_id: str | None = None) -> st.SearchStrategy[bytes]:
    """Return what makes bodies of every kind.

    Args:
        task_id: The id of the records that are nearly right, or None for odd ones.
    """
    nearly_right = records(task_id)
    levels = st.lists(st.sampled_from(["data", "error", "result", ""]), max_size=3)
    jsons = st.builds(
        written,
        nearly_right | values | st.builds(_wrapped, nearly_right, levels),
        escaped=st.booleans(),
    )
    return st.one_of(
        nearly_right.map(written),
        jsons,
        st.builds(_cut, jsons, st.integers(0, 60)),
        st.builds(_extended, jsons, st.binary(max_size=3)),
        st.sampled_from(EXTREMES),
        st.binary(max_size=60),
    )
