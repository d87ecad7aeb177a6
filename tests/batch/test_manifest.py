"""The manifest of a batch: one row for each item, as its store has it."""

from __future__ import annotations

import csv
import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from muybridge import Client, batch
from muybridge.batch import ManifestRow, SharedBatch, Stage
from muybridge.cli.commands import muybridge
from muybridge.purchases.store import NewItem
from muybridge_protocol.service import Service

from .begun import begun
from .billing import PNG, BillingServer, Fault
from .runner_process import KEY

PROMPT = "=1+1 \u2014 a \U0001f40e,\nat rest"
ITEMS = [
    {"family": "imgb", "model": "imgb-2", "prompt": PROMPT, "name": "rest"},
    {"family": "imgb", "model": "imgb-2", "prompt": "refused"},
]
Make = Callable[[], batch.SharedBatch | Path]


@pytest.fixture(params=["folder", "database"])
def make(
    request: pytest.FixtureRequest, server: BillingServer, tmp_path: Path
) -> Callable[[], Path | SharedBatch]:
    """Run a batch whose second item is refused, and return where it is."""

    def in_folder() -> Path:
        with Client(KEY, server.url, poll_interval=0.005) as client:
            batch.run(client, ITEMS, tmp_path / "out")
        return tmp_path / "out"

    def in_database() -> SharedBatch:
        shared = SharedBatch(request.getfixturevalue("postgres").fresh(), "horses")
        batch.submit(shared, ITEMS, Service(base_url=server.url))
        with Client(KEY, server.url, poll_interval=0.005) as client:
            batch.work(client, shared, tmp_path / "out")
        return shared

    return in_folder if request.param == "folder" else in_database


@pytest.fixture
def server() -> Iterator[BillingServer]:
    with BillingServer(lambda p: Fault.REFUSED if p == "refused" else Fault.NONE) as serving:
        yield serving


def test_rows_and_files(
    make: Make, server: BillingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, JSON lines and CSV say the same of a batch in a folder and of one in a database."""
    monkeypatch.chdir(tmp_path)
    place = make()
    (task,) = server.accepted[PROMPT]
    content = PNG + task.encode()
    first, second = batch.manifest(place)
    for column in attrs.fields_dict(ManifestRow):
        values = (getattr(first, column), getattr(second, column))
        advice = f"fill `{column}` in _row of transports/muybridge/batch/results/manifest.py"
        assert any(value is not None for value in values), advice
    assert first == ManifestRow(
        item=1,
        name="rest",
        family="imgb",
        model="imgb-2",
        prompt=PROMPT,
        state=Stage.DOWNLOADED,
        task=task,
        file="rest.png",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        reason=None,
    )
    assert (second.state, second.task, second.file) == (Stage.REFUSED, None, None)
    assert second.reason

    file = batch.write_manifest(place)
    assert file == (place / "results.jsonl" if isinstance(place, Path) else Path("results.jsonl"))
    told = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert told == [attrs.asdict(row) for row in (first, second)]

    file = batch.write_manifest(place, csv=True)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows[0]["prompt"] == f"'{PROMPT}"
    assert [row["sha256"] for row in rows] == [first.sha256, ""]
    assert batch.write_manifest(place, csv=True) == file


def test_the_command(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`batch manifest` writes a file of the usual name, the named one, or to stdout."""
    monkeypatch.chdir(tmp_path)
    place = make()
    where = [str(place)] if isinstance(place, Path) else ["horses", "--store", str(place.store)]
    folder = place if isinstance(place, Path) else Path()

    def said(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(muybridge, ["batch", "manifest", *where, *words])
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    assert said() == f"{folder / 'results.jsonl'}\n"
    printed = said("-o", "-")
    assert printed == (folder / "results.jsonl").read_text("utf-8")
    assert [json.loads(line)["item"] for line in printed.splitlines()] == [1, 2]
    assert json.loads(said("--csv", "--json")) == {"ok": True, "file": str(folder / "results.csv")}
    (folder / "results.csv").write_text("mine", "utf-8")
    assert "another file has this name" in said("--csv", code=6)
    assert (folder / "results.csv").read_text("utf-8") == "mine"
    said("--csv", "-o", str(folder / "results.csv"))
    assert (folder / "results.csv").read_text("utf-8").startswith("item,name,family,model,prompt,")
    assert not list(tmp_path.rglob("*.new"))


def test_memory(tmp_path: Path) -> None:
    """A long batch takes no more memory than a short one."""
    body = {"model": "imgb-2", "prompt": "a horse " * 200}
    items = (
        NewItem(name="", stem=f"{number}", family="imgb", body=json.dumps(body))
        for number in range(1, 4001)
    )
    begun(tmp_path, items, "http://127.0.0.1:1")
    tracemalloc.start()
    try:
        count = sum(1 for _ in batch.manifest_lines(tmp_path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 4000
    assert most < 3_000_000
