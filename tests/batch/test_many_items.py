"""A batch may have more items than fit into memory: they are read a page at a time."""

from __future__ import annotations

import gc
import json
import re
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from muybridge import batch
from muybridge.batch import Stage
from muybridge.batch.items.folder import own_store
from muybridge.batch.items.reading import checked_items
from muybridge.cli.commands import muybridge
from muybridge.purchases.store import NewItem
from processes import environment

from .begun import begun as begin

SERVICE = "https://api.example.com"


def items(count: int) -> Iterator[NewItem]:
    body = json.dumps({"model": "imgb-2", "prompt": "p"})
    for n in range(1, count + 1):
        yield NewItem(name=f"h{n}", stem=f"{n:04}", family="imgb", body=body)


def begun(folder: Path, count: int) -> Path:
    """Return the folder of a batch of *count* items, next to the file that they came from."""
    out = folder / str(count)
    begin(out, items(count), SERVICE)
    lines = (
        json.dumps({"family": "imgb", "name": item.name, **json.loads(item.body)})
        for item in items(count)
    )
    out.with_suffix(".jsonl").write_text("\n".join(lines), encoding="utf-8")
    return out


def checked(out: Path) -> None:
    with checked_items(out.with_suffix(".jsonl")) as found:
        assert len(found) == int(out.name)
        assert sum(1 for _ in found) == len(found)


def peak(work: Callable[[Path], object], out: Path) -> int:
    """Return the most bytes that *work* holds at once."""
    gc.collect()
    tracemalloc.start()
    try:
        work(out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def few_and_many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A batch of 1,000 items and one of 8,000."""
    folder = tmp_path_factory.mktemp("batches")
    return begun(folder, 1_000), begun(folder, 8_000)


def resumed(out: Path) -> None:
    """Do what a resume does before it sends: check the file against the store."""
    preview = batch.preview(out.with_suffix(".jsonl"), out)
    assert preview.sends == int(out.name)


def found(out: Path) -> None:
    """Look for files, all of which are gone."""
    with sqlite3.connect(own_store(out)) as db:
        db.execute("UPDATE muybridge_item SET stage = 'downloaded', path = stem")
    db.close()
    assert batch.status(out).missing == int(out.name)
    with sqlite3.connect(own_store(out)) as db:
        db.execute("UPDATE muybridge_item SET stage = 'queued', path = NULL")
    db.close()


@pytest.mark.parametrize(
    "work", [batch.status, batch.write_sheet, batch.write_manifest, checked, resumed, found]
)
def test_memory_does_not_grow_with_the_batch(
    work: Callable[[Path], object], few_and_many: tuple[Path, Path]
) -> None:
    """Showing a batch and checking its file hold few items at a time, however many there are."""
    few, many = few_and_many
    work(few)  # what is loaded once
    each = (peak(work, many) - peak(work, few)) / 7_000
    assert each < 250  # the file name of each is known, and the first MiB of what was checked


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that read items, of all stores that are opened."""
    seen: list[str] = []
    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> sqlite3.Connection:
        db = connect(*arguments, **options)
        db.set_trace_callback(
            lambda text: seen.append(text) if "FROM muybridge_item" in text else None
        )
        return db

    monkeypatch.setattr(sqlite3, "connect", watched)
    return seen


def test_what_is_read_of_many_items(few_and_many: tuple[Path, Path], statements: list[str]) -> None:
    """The status reads no item of a batch that waits; a sheet that is up to date reads outlines."""
    reads: list[int] = []
    for out in few_and_many:
        statements.clear()
        batch.status(out)
        reads.append(len(statements))
    assert reads[0] == reads[1] <= 4
    out = few_and_many[1]
    batch.write_sheet(out)
    statements.clear()
    batch.write_sheet(out)
    outlines = [one for one in statements if "body" not in one]
    assert outlines == statements
    assert len(statements) <= 8_000 / 500 + 5


def test_the_command_reads_what_it_shows(
    few_and_many: tuple[Path, Path], statements: list[str]
) -> None:
    """`batch status` reads the items that need somebody, and none of the others."""
    reads: list[int] = []
    for out in few_and_many:
        with sqlite3.connect(own_store(out)) as db:
            db.execute("UPDATE muybridge_item SET stage = 'ambiguous', reason = 'cut off' "
                       "WHERE number % 300 = 1 AND number < 1000")  # fmt: skip
        db.close()
        statements.clear()
        done = CliRunner().invoke(muybridge, ["batch", "status", str(out)])
        assert done.stdout.splitlines()[0] == f"{int(out.name) - 4} queued, 4 ambiguous"
        assert done.stderr.count("is ambiguous: cut off") == 4
        assert [one.number for one in batch.status(out).ambiguous] == [1, 301, 601, 901]
        with sqlite3.connect(own_store(out)) as db:
            db.execute("UPDATE muybridge_item SET stage = 'queued', reason = NULL")
        db.close()
        reads.append(len(statements))
    assert reads[0] == reads[1]


def test_a_sheet_reads_what_has_changed(
    few_and_many: tuple[Path, Path], statements: list[str]
) -> None:
    """Of a sheet that was up to date, the items of one page are read if one of them changes."""
    out = few_and_many[1]
    batch.write_sheet(out)
    with sqlite3.connect(own_store(out)) as db:
        db.execute(
            "UPDATE muybridge_item SET reason = coalesce(reason, '') || '!' WHERE number = 4000"
        )
    db.close()
    statements.clear()
    batch.write_sheet(out)
    assert sum("body" in one for one in statements) == 1


COMMAND = """
import re, resource, sys
from pathlib import Path
from muybridge.cli.commands import muybridge
try:
    muybridge(sys.argv[1:])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # Not `ru_maxrss`, which begins with what the parent had.
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    print(f"took {used.ru_utime + used.ru_stime:.1f} s, {peak:.0f} MB", file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of a process")
@pytest.mark.parametrize("count", [3_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_the_commands_take_little_memory(count: int, tmp_path: Path) -> None:
    """However many items there are, looking at a batch takes less than 100 MB."""
    out = begun(tmp_path, count)
    with sqlite3.connect(own_store(out)) as db:
        for columns, which in (
            ("stage = 'downloaded', path = 'h.png'", "number % 2 = 1"),
            ("stage = 'failed', reason = 'a policy'", "number % 1000 = 0"),
        ):
            db.execute(f"UPDATE muybridge_item SET {columns} WHERE {which}")  # noqa: S608  ours
    db.close()
    (out / "h.png").touch()
    for words in (
        ("validate", "--quiet", f"{out}.jsonl"),
        ("batch", "run", f"{out}.jsonl", "--out", str(out), "--dry-run"),
        ("batch", "status", str(out)),
        ("batch", "sheet", str(out)),
        ("batch", "sheet", str(out)),
        ("batch", "manifest", str(out)),
    ):
        done = subprocess.run(  # noqa: S603  our own command
            [sys.executable, "-c", COMMAND, *words],
            env=environment(MUYBRIDGE_BASE_URL=SERVICE),
            capture_output=True,
            text=True,
            check=False,
        )
        took = re.search(r"took .* s, (\d+) MB", done.stderr)
        assert took is not None
        sys.stdout.write(f"{' '.join(words[:2])}: {took[0]}\n")
        assert int(took[1]) < 100
    assert len([*(out / "sheet").glob("[0-9]*.html")]) == count // 500
    assert all(page.stat().st_size < 1_000_000 for page in (out / "sheet").glob("*.html"))
    assert (out / "index.html").stat().st_size < 1_000_000


def test_entries_are_a_sequence(tmp_path: Path) -> None:
    """The items of a report can be counted, indexed, sliced and gone through, in their order."""
    entries = batch.status(begun(tmp_path, 1_200)).entries
    assert len(entries) == 1_200
    assert [entry.number for entry in entries] == list(range(1, 1_201))
    assert (entries[0].number, entries[-1].number) == (1, 1_200)
    assert [entry.number for entry in entries[1:4]] == [2, 3, 4]
    assert [entry.number for entry in entries[::-600]] == [1_200, 600]
    with pytest.raises(IndexError):
        entries[1_200]


def test_entries_are_as_the_store_is_then(tmp_path: Path) -> None:
    """A report's items are read anew each time; its counts stay those of its own time."""
    report = batch.status(begun(tmp_path, 2))
    before = tuple(report.entries)
    batch.abandon(report.folder, 1)
    assert [entry.state for entry in before] == [Stage.QUEUED, Stage.QUEUED]
    assert [entry.state for entry in report.entries] == [Stage.ABANDONED, Stage.QUEUED]
    assert report.counts == {Stage.QUEUED: 2}
