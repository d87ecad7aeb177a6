"""What is read of a batch in its store, and what is taken of it first."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from muybridge import Status, StoreUnusable, Task, batch
from muybridge.batch import Entry, Stage
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.folder import FOLDER, begin_in_folder, find_batch, own_store
from muybridge.purchases import open_store

from .begun import SERVICE, accepted, begun, new_items

TOKEN = Task(id="task-1", family="imgb", submitted_at=5.0).to_token()


def taken(batch: Batch, most: int, creates: int = 0) -> list[int]:
    return [item.number for item, _ in batch.take(most, creates=creates)]


def completed(batch: Batch, number: int, expires: float | None) -> None:
    """Let the result of an item be known, and give it back."""
    accepted(batch, number, f"task-{number}")
    batch.release([(batch.item(number), Stage.COMPLETED, {"expires": expires})])


def test_items_are_read_a_page_at_a_time(tmp_path: Path) -> None:
    """More items than fit in a page are yielded once each, in order."""
    batch = begun(tmp_path, 1_002)
    assert [item.number for item in batch.items()] == [*range(1, 1_003)]
    assert [entry.number for entry in batch.entries()] == [*range(1, 1_003)]
    assert [outline.number for outline in batch.outlines()] == [*range(1, 1_003)]


@pytest.mark.parametrize("number", [0, 3])
def test_a_missing_item(number: int, tmp_path: Path) -> None:
    """It is an error; the next item does not take its place."""
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


def test_skipped_items(tmp_path: Path) -> None:
    """Skipped items do not reduce the number of items that are taken."""
    batch = begun(tmp_path, 4)
    items = [item.number for item, _ in batch.take(2, creates=2, besides=[1, 3])]
    assert items == [2, 4]
    later = [item.number for item, _ in batch.take(2, creates=2, after=2)]
    assert later == [3, 4]


@pytest.mark.parametrize(
    "record", ["", "[]", "{}", '{"store": null, "batch": "one", "name": ""}', '{"batch": [1]}']
)
def test_a_record_that_is_damaged(record: str, tmp_path: Path) -> None:
    """A folder with a damaged record does not count as empty; its store still has the batch."""
    begun(tmp_path)
    path = tmp_path / FOLDER / "batch.json"
    assert path.read_text("utf-8")
    path.write_text(record, "utf-8")
    with pytest.raises(
        StoreUnusable, match=rf"{re.escape(str(path))} is damaged\. Nothing was sent"
    ):
        batch.status(tmp_path)
    path.unlink()
    assert batch.status(tmp_path).counts == {Stage.QUEUED: 1}


@pytest.mark.parametrize("other", [False, True])
def test_a_store_that_lacks_the_batch(*, other: bool, tmp_path: Path) -> None:
    """A new store is not taken for the one that is gone: it does not know what was paid."""
    folder = tmp_path / "out"
    begun(folder).store.close()
    own = own_store(folder)
    own.unlink()
    if other:
        begun(tmp_path / "other").store.close()
        own_store(tmp_path / "other").replace(own)
    with pytest.raises(StoreUnusable, match=r"lacks the batch in .* you could pay twice"):
        batch.status(folder)
    assert own.exists() is other


def test_a_given_store_that_lacks_the_batch(tmp_path: Path) -> None:
    """The store of the caller stays open, and usable."""
    place = tmp_path / "shared.sqlite3"
    with open_store(place) as store:
        begin_in_folder(tmp_path / "out", store, new_items(1), service=SERVICE)
    place.unlink()
    with open_store(place) as store:
        with pytest.raises(StoreUnusable, match=r"lacks the batch in .* you could pay twice"):
            find_batch(tmp_path / "out", store)
        assert begin_in_folder(tmp_path / "new", store, new_items(1), service=SERVICE).is_new


@pytest.mark.parametrize(
    ("folder", "name"),
    [("horses", "horses"), ("a" * 190, "a" * 190), ("a" * 191, "batch"), ("a\u2028b", "batch")],
)
def test_its_name(folder: str, name: str, tmp_path: Path) -> None:
    """It is the folder's, if that is printable and short; a number makes it unique in the store."""
    with open_store(tmp_path / "shared.sqlite3") as store:
        names = [
            begin_in_folder(above / folder, store, new_items(1), service=SERVICE).name
            for above in (tmp_path / "first", tmp_path / "second")
        ]
    assert names == [name, f"{name}-2"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_only_the_user_may_read_it(tmp_path: Path) -> None:
    """Only the user may read what was bought, whatever the umask allows."""
    before = os.umask(0)
    try:
        begun(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700


def entry(state: Stage, **facts: Any) -> Entry:
    return Entry(number=1, name="", stem="0001", family="imgb", body="{}", state=state, **facts)


@pytest.mark.parametrize(
    ("state", "facts", "possible"),
    [
        (Stage.AMBIGUOUS, {"response": b'{"id": "task-1", "sta'}, "task-1"),
        (Stage.AMBIGUOUS, {"response": b"bad gateway"}, None),
        (Stage.AMBIGUOUS, {}, None),
        (Stage.AMBIGUOUS, {"response": b'{"id": "task-1"}', "candidate": "task-2"}, "task-2"),
        (Stage.SUBMITTED, {"candidate": "task-2"}, "task-2"),
        (Stage.REFUSED, {"response": b'{"id": "task-1"}'}, None),
    ],
)
def test_what_may_be_its_id(state: Stage, facts: dict[str, Any], possible: str | None) -> None:
    """An ambiguous item names the id that its response has, if nobody has given one."""
    assert entry(state, **facts).possible_id == possible


@pytest.mark.parametrize(
    ("token", "result", "status"),
    [
        (TOKEN, '{"status": "completed"}', Status.COMPLETED),
        (TOKEN, '{"status": "COMPLE', None),  # a store that somebody has damaged
        (TOKEN, None, None),
        (None, '{"status": "completed"}', None),
    ],
)
def test_its_result(token: str | None, result: str | None, status: Status | None) -> None:
    """The result that is kept can be read while its task is known."""
    kept = entry(Stage.DOWNLOADED, token=token, result=result).task_result
    if status is None:
        assert kept is None
    else:
        assert kept is not None
        assert (kept.id, kept.status, kept.family) == ("task-1", status, "imgb")


def test_its_response_is_not_shown() -> None:
    """The body of a response can be long, and may hold a link."""
    shown = repr(entry(Stage.AMBIGUOUS, response_status=502, response=b"<html>"))
    assert "response_status=502" in shown
    assert "<html>" not in shown
