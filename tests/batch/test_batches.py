"""What is read of a batch in its store, and what is taken of it first."""

from __future__ import annotations

from pathlib import Path

import pytest

from muybridge.batch import Stage
from muybridge.batch.items.batch import Batch

from .begun import accepted, begun


def taken(batch: Batch, most: int, creates: int = 0) -> list[int]:
    return [item.number for item, _ in batch.take(most, creates=creates)]


def completed(batch: Batch, number: int, expires: float | None) -> None:
    """Let the result of an item be known, and give it back."""
    accepted(batch, number, f"task-{number}")
    batch.release([(batch.item(number), Stage.COMPLETED, {"expires": expires})])


def test_items_are_read_a_page_at_a_time(tmp_path: Path) -> None:
    """Whoever goes through more items than a page has meets each of them once, in order."""
    batch = begun(tmp_path, 1_002)
    assert [item.number for item in batch.items()] == [*range(1, 1_003)]
    assert [entry.number for entry in batch.entries()] == [*range(1, 1_003)]
    assert [outline.number for outline in batch.outlines()] == [*range(1, 1_003)]


@pytest.mark.parametrize("number", [0, 3])
def test_an_item_that_there_is_not(number: int, tmp_path: Path) -> None:
    """Nobody is given another item than the one that was asked for."""
    batch = begun(tmp_path, 2)
    with pytest.raises(LookupError, match=f"there is no item {number}"):
        batch.item(number)
    with pytest.raises(LookupError, match=f"there is no item {number}"):
        batch.entry(number)
    assert (batch.item(2).number, batch.entry(2).number) == (2, 2)


def test_the_most_urgent_items_are_taken_first(tmp_path: Path) -> None:
    """Results come first, soonest expiry first, then tasks, then what is to be created."""
    batch = begun(tmp_path, 7)
    completed(batch, 2, None)
    completed(batch, 3, 90.0)
    completed(batch, 4, 70.0)
    completed(batch, 5, 80.0)
    accepted(batch, 6, "task-6")
    assert [taken(batch, 1, 1) for _ in range(5)] == [[4], [5], [3], [2], [6]]
    assert taken(batch, 1, 1) == [1]
    assert taken(batch, 1, 0) == []


def test_what_is_not_to_be_taken(tmp_path: Path) -> None:
    """Items that are skipped do not take the place of those after them."""
    batch = begun(tmp_path, 4)
    items = [item.number for item, _ in batch.take(2, creates=2, besides=[1, 3])]
    assert items == [2, 4]
    later = [item.number for item, _ in batch.take(2, creates=2, after=2)]
    assert later == [3, 4]
