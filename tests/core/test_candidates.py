"""Which id a response names, whether it is whole, cut off or malformed."""

from __future__ import annotations

import json

import pytest

from muybridge_protocol.records.candidates import find_any_id, find_id, holds_task
from tables import table


@table(
    ("body", "found"),
    [
        (b'{"id":"a"}', "a"),
        (b'{ "id"\n:\t"a" }', "a"),
        (b'{"x":{"id":"b"}}', "b"),
        (b'{"x":{"id":"b"},"id":"a"}', "a"),
        (b'{"x":{"id":"b"},"id":"a"', "a"),
        (b'{"x":{"id":"b"},"id":"a","id":"c"}', "a"),
        (b'{"x":[{"id":"b"},{"id":"c"', "b"),
        (b'{"id":"b","x":{"id":"a","status":"queued"}}', "a"),
        (b'{"id":"b","x":[{"task_id":"a"}]}', "a"),
        (b'{"id":"a","status', "a"),
        (b'{"id":"a', None),
        (b'{"id":"a\\', None),
        (b'{"id":"', None),
        (b'{"id":""}', None),
        (b'{"id":5}', "5"),
        (b'{"id":5', None),
        (b'{"id":5,', "5"),
        (b'{"id":-5}', "-5"),
        (b'{"id":5.5}', None),
        (b'{"id":true}', None),
        (b'{"id":null}', None),
        (b'{"task_id":"a"}', "a"),
        (b'{"taskId":"a",', "a"),
        (b'{"Task-ID":7,', "7"),
        (b'{"ID":"a"}', "a"),
        (b'{"uid":"a"}', None),
        (b'{"id":"t\\u002d1"}', "t-1"),
        (b'{"id":"t\\u002d1"', "t-1"),
        (b'{"id":"a\\"b"', 'a"b'),
        (b'{"id":"a\\x"', None),
        (b'{"id":"a","id":"b"}', "a"),
        (b'\xff{"id":"a"}', "a"),
        (b'\xff{"id":"\xff","id":"a"}', "a"),
        (b'{"id":"a\x1b[2Jb', None),
        (b'{"id":"a\x1b[2Jb"', "a\x1b[2Jb"),
        (b'{"id":"a\\u001b[2Jb"}', "a\x1b[2Jb"),
        (b'{"id":"\\ud800"}', "\ud800"),
        (b"", None),
        (b'"id"', None),
        (b"[[[]]]", None),
    ],
)
def test_ids_in_what_has_arrived(body: bytes, found: str | None) -> None:
    """An id is found in what has arrived of a response, but only if its value is closed."""
    assert find_any_id(body) == found
    is_usable = found is not None and found not in {"a\x1b[2Jb", "\ud800"}
    assert find_id(body) == (found if is_usable else None)


WHOLE = b'{"a":[{"object":"imga","task":{"id":"t\\u002d1","x":5}}],"status":"queued"}'


@table("length", range(len(WHOLE)))
def test_a_task_cut_at_every_byte(length: int) -> None:
    """What is cut off holds a task once an id and a status or object have arrived."""
    known = length > WHOLE.index(b'","x"')
    assert find_id(WHOLE[:length]) == ("t-1" if known else None)
    assert holds_task(WHOLE[:length]) is known


@pytest.mark.parametrize(
    "text", ["[", "{{", "}", 'a "quoted\\" [', "\\\\", "", pytest.param("[" * 200_000, id="long")]
)
def test_brackets_in_texts(text: str) -> None:
    """Brackets inside texts do not make an object of a cut response an inner one."""
    record = {"status": "queued", "msg": {"id": 5, "said": text}, "note": text, "id": "t1"}
    assert find_id(json.dumps(record).encode()[:-1]) == "t1"


@table("damage", [b"", b",", b"\xff", b'"', b"}", b'{"id":"z","id":"y"}'])
@table(
    ("record", "is_task"),
    [
        (b'{"id":"a","status":"queued"}', True),
        (b'{"id":"a","status" : {"name":"queued"}}', True),
        (b'{"status":null,"id":5}', True),
        (b'{"object":"video","id":"\\n"}', True),
        (b'{"task_id":"a"}', True),
        (b'{"task_id":7}', True),
        (b'{"task_id":"0"}', False),
        (b'{"task_id":-1}', False),
        (b'{"id":"a","status":400}', False),
        (b'{"id":"a","status":"NOT_FOUND"}', False),
        (b'{"id":"a","status":"Error"}', False),
        (b'{"id":"a","object":"error","message":"no"}', False),
        (b'{"ID":"a","Status":"queued"}', True),
        (b'{"Id":"a","OBJECT":"video"}', True),
        (b'{"id":"a","status":"BAD_REQUEST"}', False),
        (b'{"id":"a","status":"Unprocessable Entity"}', False),
        (b'{"id":"a","status":"TooManyRequests"}', False),
    ],
)
def test_damaged_and_whole(record: bytes, is_task: bool, damage: bytes) -> None:  # noqa: FBT001  a case
    """A body that is malformed holds a task exactly where a valid one would."""
    assert holds_task(record + damage) is is_task


def test_a_task_in_megabytes() -> None:
    """A task is found in a body that is too large or too deep to be read as JSON."""
    task = b'{"id":"t9","status":"queued"}'
    for before in (b"[" * 500, b'["' + b"x" * 7_000_000 + b'",', b"[" + b"1," * 200_000):
        assert find_id(before + task) == "t9"
        assert holds_task(before + task)


@table("layers", range(10))
def test_layers_of_json(layers: int) -> None:
    """JSON in the texts of JSON is looked into, in so many layers, whole or cut off."""
    value = '{"jobId":"t1","state":"IN_PROGRESS"}'
    for _ in range(layers):
        value = json.dumps({"said": value})
    assert find_id(value.encode()) == ("t1" if layers < 8 else None)
    assert holds_task(value.encode()[:-1]) is (layers < 8)


def test_a_text_with_many_layers() -> None:
    """However deep the layers are, a body takes little time and no stack."""
    value = '{"id":"t1","status":"queued"}'
    while len(value) < 1_000_000:
        value = value.replace("\\", "\\u005c").replace('"', "\\u0022")
        value = f'{{"said":"{value}"}}'
    assert not holds_task(value.encode())
