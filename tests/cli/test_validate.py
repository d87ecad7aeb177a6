"""`validate`: one verdict a line, whatever the lines are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muybridge_protocol.families import FAMILIES

from .conftest import Invoke

GOOD = b'{"family": "imga", "body": {"model": "imga", "prompt": "A horse"}}\n'

LINES = [
    GOOD.strip(),
    b'{"family":"imga","body":{"model":"imga","prompt":"A horse","resolution":"4k"}}',
    b"",
    b"no JSON",
    b"[1, 2]",
    b'"\xff"',
    b'{"family":"imga","family":"imgb","body":{}}',
    b"[" * 100_000,
    b'{"family":"imgz","body":{}}',
    b'{"family":"vidm","body":[]}',
    b'{"body":{}}',
    b'{"family":7,"body":{},"boddy":1}',
    b'{"family":"imga"}',
    (
        b'{"family":"imgb","body":{"model":"imgb-2","prompt":"A horse","size":"1024x1024",'
        b'"ratio":"1:1"}}'
    ),
    (
        b'{"family":"vidsb","body":{"model":"vidsb_2_0_pro","prompt":"A horse","duration":"5",'
        b'"referenceImage":["https://example.com/a.png"]}}'
    ),
    b'{"family":"vidm","body":{"anything":[1,{"at":"all"}]}}',
    b'{"family":"imga","body":{"model":"imga","prompt":"A horse"},"extra":{"seed":7}}',
    b'{"family":"imga","body":{"model":"imga","prompt":"A horse"},"extra":{"size":"1:1"}}',
    b'\xef\xbb\xbf{"family":"vidm","body":{"n":1e999}}\r',
]


def error(line: int, family: str | None, *errors: tuple[str, str]) -> dict[str, object]:
    told = [{"field": field, "message": message} for field, message in errors]
    return {"line": line, "family": family, "ok": False, "errors": told}


def fine(line: int, family: str, **more: object) -> dict[str, object]:
    return {"line": line, "family": family, "ok": True, "errors": [], **more}


EXPECTED = [
    fine(1, "imga"),
    error(2, "imga", ("resolution", "'4k' is not accepted; use 1k")),
    error(4, None, ("", "it is not JSON: Expecting value")),
    error(5, None, ("", "it is not a JSON object")),
    error(6, None, ("", "it is not UTF-8")),
    error(7, None, ("", "a name stands twice in an object")),
    error(8, None, ("", "it is nested too deeply")),
    error(
        9,
        "imgz",
        (
            "family",
            f"there is no family 'imgz'; did you mean imgb? Known are {', '.join(FAMILIES)}",
        ),
    ),
    error(10, "vidm", ("body", "[] is not a JSON object")),
    error(11, None, ("family", "is required")),
    error(
        12,
        None,
        ("family", "7 is not a string"),
        ("boddy", "is not known here; use family, body, extra"),
    ),
    error(13, "imga", ("body", "is required")),
    fine(
        14,
        "imgb",
        warnings=[
            {"field": "ratio", "message": "is ignored with size: the exact size overrides it"}
        ],
    ),
    error(
        15,
        "vidsb",
        ("duration", "'5' is not an integer; use an integer"),
        ("referenceImage", "family vidsb has no such field; did you mean referenceImages?"),
    ),
    fine(16, "vidm"),
    fine(17, "imga"),
    error(
        18,
        "imga",
        ("size", "is a known field and does not belong in extra; set size instead"),
    ),
    error(19, None, ("", "a number is out of range")),
]


def test_every_line_has_its_verdict(invoke: Invoke, tmp_path: Path) -> None:
    """Each line but a blank one is judged for itself, in order, and the rest goes on."""
    (tmp_path / "requests.jsonl").write_bytes(b"\n".join(LINES))
    ended = invoke("validate", "requests.jsonl")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == EXPECTED
    assert (ended.exit_code, ended.stderr) == (1, "")


def test_a_verdict_is_written_exactly_so(invoke: Invoke) -> None:
    """A verdict's names stand in the order that the documentation gives."""
    ended = invoke("validate", input=LINES[1])
    assert ended.stdout == (
        '{"line": 1, "family": "imga", "ok": false, "errors": [{"field": "resolution", '
        '"message": "\'4k\' is not accepted; use 1k"}]}\n'
    )


@pytest.mark.parametrize("words", [("validate",), ("validate", "-")])
def test_stdin_is_read(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Without a file, or with -, the lines come from stdin; all valid exits with 0."""
    ended = invoke(*words, input=GOOD * 2)
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (0, 2)


def test_nothing_is_valid(invoke: Invoke) -> None:
    """No line at all is no line that is wrong."""
    ended = invoke("validate", input=b"\n\n")
    assert (ended.exit_code, ended.stdout) == (0, "")


def test_a_folder_is_no_file(invoke: Invoke, tmp_path: Path) -> None:
    """What cannot be read exits with 2."""
    assert invoke("validate", str(tmp_path)).exit_code == 2


def test_ten_thousand_lines(invoke: Invoke, tmp_path: Path) -> None:
    """Each of ten thousand lines is judged."""
    (tmp_path / "many.jsonl").write_bytes(b"\n".join([GOOD.strip(), LINES[14]] * 5000))
    ended = invoke("validate", "many.jsonl")
    assert len(ended.stdout.splitlines()) == 10_000
