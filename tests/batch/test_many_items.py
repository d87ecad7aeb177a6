"""A batch may have more items than fit into memory: they are read a page at a time."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from muybridge import batch
from muybridge.batch import Stage
from muybridge.batch.items.reading import checked_items
from muybridge.purchases.store import NewItem

from .begun import begun as begin

SERVICE = "https://api.example.com"


def items(count: int) -> list[NewItem]:
    return [
        NewItem(
            name=f"h{n}",
            stem=f"{n:04}",
            family="imgb",
            body=json.dumps({"model": "imgb-2", "prompt": "p"}),
        )
        for n in range(1, count + 1)
    ]


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


@pytest.mark.parametrize("work", [batch.status, checked])
def test_memory_does_not_grow_with_the_batch(
    work: Callable[[Path], object], few_and_many: tuple[Path, Path]
) -> None:
    """Showing a batch and checking its file hold few items at a time, however many there are."""
    few, many = few_and_many
    work(few)  # what is loaded once
    each = (peak(work, many) - peak(work, few)) / 7_000
    assert each < 250  # the file name of each is known, and the first MiB of what was checked


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
