"""`validate`: one verdict a line, whatever the lines are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muybridge.batch import read_items
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.families import FAMILIES

from .conftest import ROOT, Invoke

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
    error(4, None, ("", "it is not JSON: Expecting value (column 1)")),
    error(5, None, ("", "[1, 2] is not a JSON object")),
    error(6, None, ("", "it is not UTF-8")),
    error(7, None, ("", "an object has the same name twice")),
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
        ("boddy", "stands beside body; put it inside"),
    ),
    error(
        13,
        "imga",
        (
            "model",
            "is required; use imga, imga-2, imga-pro, imga-2-stable or imga-pro-stable",
        ),
        ("prompt", "is required; use a text that is not blank"),
    ),
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
    """Each line that is not blank is judged by itself, in order; an invalid one stops nothing."""
    (tmp_path / "requests.jsonl").write_bytes(b"\n".join(LINES))
    ended = invoke("validate", "requests.jsonl")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == EXPECTED
    wrong = sum(not one["ok"] for one in EXPECTED)
    told = f"not valid: {wrong} of {len(EXPECTED)} items; --quiet prints only those\n"
    assert (ended.exit_code, ended.stderr) == (1, told)
    ended = invoke("validate", "--quiet", "requests.jsonl")
    assert ended.stderr == f"not valid: {wrong} of {len(EXPECTED)} items\n"


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
    """An empty input contains no invalid line."""
    ended = invoke("validate", input=b"\n\n")
    assert (ended.exit_code, ended.stdout) == (0, "")


def test_a_folder_is_no_file(invoke: Invoke, tmp_path: Path) -> None:
    """What cannot be read exits with 2."""
    assert invoke("validate", str(tmp_path)).exit_code == 2


BATCH: list[dict[str, Any]] = [
    {"family": "imgb", "model": "imgb-2", "prompt": "A horse", "name": "horse"},
    {"family": "imgb", "model": "imgb-22", "prompt": ""},
    {"family": "vidr", "unlisted_model": "vidr-next", "prompt": "A horse", "extra": {"seed": 7}},
    {"family": "vidr", "unlisted_model": "x", "model": "vidrPlus", "prompt": "A horse"},
    {"family": "imgb", "body": {"model": "imgb-2", "prompt": "A horse"}, "name": "\n"},
    {"family": "imgb", "body": {"model": "imgb-2"}, "prompt": "A horse"},
    {"family": "vidm", "extra": [], "n": 1},
    {"prompt": "A horse"},
]


def _problems(invoke: Invoke, name: str) -> list[tuple[str, str, str]]:
    told = [json.loads(line) for line in invoke("validate", name).stdout.splitlines()]
    return [
        (f"line {one['line']}" if "line" in one else f"item {one['item']}", *found.values())
        for one in told
        for found in one["errors"]
    ]


def _csv(path: Path) -> None:
    path.write_text(
        "family,model,prompt,name\nimgb,imgb-2,A horse,h\n\nimgb,imgb-22,,i\nx,,,,\n",
        encoding="utf-8",
    )


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_a_batch_is_judged_as_it_will_be_run(invoke: Invoke, tmp_path: Path, suffix: str) -> None:
    """The file of a batch is accepted, and its problems are those that `batch run` reports."""
    path = tmp_path / f"requests.{suffix}"
    if suffix == "csv":
        _csv(path)
    else:
        text = json.dumps(BATCH) if suffix == "json" else "\n".join(map(json.dumps, BATCH))
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        read_items(path)
    expected = [(found.where, found.field, found.message) for found in refused.value.problems]
    assert len(expected) > 2
    assert _problems(invoke, path.name) == expected


ITEM = '{"family": "imgb", "model": "imgb-2", "prompt": "A horse"}'
NESTED = '{"family": "imgb", "body": {"model": "imgb-2", "prompt": "A horse"}}'
CELL = '"{""model"": ""imgb-2"", ""prompt"": ""A horse""}"'


@pytest.mark.parametrize(
    ("name", "text", "accepted"),
    [
        ("flat.jsonl", ITEM, True),
        ("nested.jsonl", f"{NESTED}\n\n{ITEM}\n", True),
        ("lines.NDJSON", ITEM, True),
        ("flat.json", f"[{ITEM}, {NESTED}]", True),
        ("flat.csv", "family,model,prompt\nimgb,imgb-2,A horse\n", True),
        ("nested.csv", f"family,body\nimgb,{CELL}\n", True),
        ("mixed.csv", f"family,body,prompt\nimgb,{CELL},A horse\n", False),
        ("nested.csv", "family,body\nimgb,{model: imgb-2}\n", False),
        ("array.jsonl", f"[{ITEM}]", False),
        ("single.json", ITEM, False),
        ("lines.json", f"{ITEM}\n{ITEM}", False),
        ("lines.txt", ITEM, False),
        ("lines", ITEM, False),
        ("empty.jsonl", "\n\n", False),
        ("empty.json", "[]", False),
        ("empty.csv", "family,model,prompt\n", False),
    ],
)
def test_the_files_that_are_valid_are_those_that_run(
    invoke: Invoke, tmp_path: Path, name: str, text: str, *, accepted: bool
) -> None:
    """`validate` accepts a file if and only if `batch run` does, whatever its form."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    validated = invoke("validate", name)
    run = invoke("batch", "run", name, "--out", "out", "--dry-run")
    assert (validated.exit_code, run.exit_code) == ((0, 0) if accepted else (1, 2))
    told = [json.loads(line) for line in validated.stdout.splitlines()]
    assert told
    assert all(one["ok"] for one in told) == accepted


def test_the_documentations_batch_is_valid(invoke: Invoke, tmp_path: Path) -> None:
    """Every line of the documentation's batch is accepted."""
    text = (ROOT / "docs" / "batches.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith('{"family":')]
    assert lines
    (tmp_path / "requests.jsonl").write_text("\n".join(lines), encoding="utf-8")
    ended = invoke("validate", "requests.jsonl")
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (0, len(lines))


def test_a_file_that_is_no_array_has_its_verdict(invoke: Invoke, tmp_path: Path) -> None:
    """Where a file as a whole is wrong, that is the one verdict."""
    (tmp_path / "requests.json").write_text("{}", encoding="utf-8")
    ended = invoke("validate", "requests.json")
    told = json.loads(ended.stdout)
    assert (ended.exit_code, "line" in told) == (1, False)
    assert told["errors"] == [{"field": "", "message": "it is not an array of objects"}]


def test_ten_thousand_lines(invoke: Invoke, tmp_path: Path) -> None:
    """Each of ten thousand lines is judged."""
    (tmp_path / "many.jsonl").write_bytes(b"\n".join([GOOD.strip(), LINES[14]] * 5000))
    ended = invoke("validate", "many.jsonl")
    assert len(ended.stdout.splitlines()) == 10_000


def test_where_json_breaks_off(invoke: Invoke) -> None:
    """The column is that of the line, whose end does not count."""
    ended = invoke("validate", input=b'{"family": "imga"\n{}\n')
    (wrong,) = json.loads(ended.stdout.splitlines()[0])["errors"]
    assert wrong["message"] == "it is not JSON: Expecting ',' delimiter (column 18)"


@pytest.mark.parametrize("option", ["--quiet", "-q"])
def test_quietly(invoke: Invoke, option: str) -> None:
    """Quietly, only the lines of invalid items are printed; the exit codes are the same."""
    loud = invoke("validate", input=b"\n".join(LINES))
    quiet = invoke("validate", option, input=b"\n".join(LINES))
    wrong = [line for line in loud.stdout.splitlines() if not json.loads(line)["ok"]]
    assert (quiet.exit_code, quiet.stdout.splitlines()) == (loud.exit_code, wrong)
    assert 0 < len(wrong) < len(loud.stdout.splitlines())
    good = invoke("validate", option, input=GOOD * 3)
    assert (good.exit_code, good.output) == (0, "")


def test_an_empty_file_quietly(invoke: Invoke, tmp_path: Path) -> None:
    """A file without an item is invalid, and said to be so quietly, too."""
    (tmp_path / "a.jsonl").touch()
    ended = invoke("validate", "--quiet", "a.jsonl")
    assert (ended.exit_code, json.loads(ended.stdout)["ok"]) == (1, False)
