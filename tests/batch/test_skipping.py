"""Batches that are sent without their invalid items, because the user asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from muybridge import batch
from muybridge.batch import Stage, ValidItems
from muybridge.cli.commands import muybridge
from muybridge_protocol.errors import InputProblem, InvalidInput

from .billing import BillingServer
from .conftest import Run
from .runner_process import KEY, horses

WRONG = {"family": "imgb", "model": "imgb-22"}
TOLD = (
    "line 2: model: 'imgb-22' is not accepted; did you mean imgb-2? use imgb-2 or imgb-2-r",
    "line 2: prompt: is required; use a text that is not blank",
)

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the command in a folder with a batch whose second line is wrong."""
    monkeypatch.chdir(tmp_path)
    first, second = horses(2)
    Path("b.jsonl").write_text("\n".join(map(json.dumps, (first, WRONG, second))))

    def run(server: BillingServer, *words: str) -> Result:
        settings = {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}
        return CliRunner().invoke(muybridge, ["batch", "run", "b.jsonl", *words], env=settings)

    return run


RUN = ("--out", "out", "--skip-invalid", "--poll-interval", "0.005")


def test_the_others_are_sent(invoke: Invoke) -> None:
    """The valid items are sent; each problem of the others is told, and the exit code is 1."""
    with BillingServer() as server:
        done = invoke(server, *RUN)
        assert server.posts == 2
        assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "2 downloaded")
        assert done.stderr.splitlines()[:2] == [f"skipped: {one}" for one in TOLD]
        again = invoke(server, *RUN)
        assert server.posts == 2
    assert (again.exit_code, again.stderr.splitlines()[:2]) == (1, done.stderr.splitlines()[:2])


def test_a_corrected_item_goes_to_the_end(invoke: Invoke) -> None:
    """What was skipped is sent when it stands, corrected, at the end of the file."""
    with BillingServer() as server:
        invoke(server, *RUN)
        with Path("b.jsonl").open("a") as file:
            file.write("\n" + json.dumps({**horses(1)[0], "name": "corrected"}))
        assert invoke(server, *RUN).stdout.splitlines()[0] == "3 downloaded"
        assert server.posts == 3
    assert Path("out/corrected.png").exists()


def test_programs_read_it(invoke: Invoke) -> None:
    """With --json each problem is an object on a line of stdout."""
    with BillingServer() as server:
        done = invoke(server, *RUN, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["where"], one["field"]) for one in lines if one["event"] == "skipped"] == [
        ("line 2", "model"),
        ("line 2", "prompt"),
    ]
    assert (lines[-1]["event"], lines[-1]["exit_code"]) == ("summary", 1)


def test_a_preview_skips_them_too(invoke: Invoke) -> None:
    """`--dry-run` counts the valid items alone, and tells the problems of the others."""
    with BillingServer() as server:
        done = invoke(server, *RUN, "--dry-run")
        assert server.requests == 0
    assert done.stderr.splitlines()[:2] == [f"skipped: {one}" for one in TOLD]
    assert done.stdout.splitlines()[-1].split()[:2] == ["total", "2"]


def test_the_command_that_resumes_skips_them_too(invoke: Invoke) -> None:
    """If the batch could not be begun, the command that resumes reads the file in the same way."""
    Path("out").mkdir()
    Path("out/state").write_text("in the way")
    with BillingServer() as server:
        done = invoke(server, *RUN)
        assert server.requests == 0
    told = next(line for line in done.stderr.splitlines() if line.startswith("to resume: "))
    assert told.startswith("to resume: muybridge batch run b.jsonl --skip-invalid --out out")


def test_programs_skip_them(run: Run, tmp_path: Path) -> None:
    """`ValidItems` is a source of items for `run`, `preview` and `read_items` alike."""
    told: list[InputProblem] = []
    first, second = horses(2)
    items = ValidItems([first, WRONG, second, {}], told.append)
    assert batch.preview(items, tmp_path / "out").sends == 2
    assert [(one.where, one.field) for one in told] == [
        ("item 2", "model"),
        ("item 2", "prompt"),
        ("item 4", "family"),
    ]
    assert [one.name for one in batch.read_items(items)] == [first["name"], second["name"]]
    with BillingServer() as server:
        report = run(server, items)
        assert (server.posts, dict(report.counts)) == (2, {Stage.DOWNLOADED: 2})


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("b.jsonl", b"{}\n{}", "family: is required"),
        ("b.csv", b'family,model,prompt\nimga,imga,a\nimga,imga,"b', "it is not CSV"),
        ("b.json", b"{}", "it is not an array"),
        ("b.jsonl", "\ufeff{}\n".encode("utf-16-le") + b"\x00\xd8\x0a", "it is not UTF-16"),
        ("b.txt", b"{}", "its name does not end with"),
    ],
    ids=["none-valid", "broken-csv", "no-array", "broken-text", "name"],
)
def test_what_cannot_be_read_is_not_skipped(
    name: str, data: bytes, said: str, tmp_path: Path
) -> None:
    """A file without a valid item, or with a rest that cannot be read, is refused as before."""
    path = tmp_path / name
    path.write_bytes(data)
    told: list[InputProblem] = []
    with pytest.raises(InvalidInput, match=said):
        batch.read_items(ValidItems(path, told.append))
    assert told == []
