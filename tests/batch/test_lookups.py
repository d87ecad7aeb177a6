"""What is looked up in a batch is found by an index, however many items the batch has."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.folder import find_batch, own_store
from muybridge.batch.results.places.file_names import numbered, stems_of
from muybridge.files import sqlite

from .begun import begun, new_items

_READS_ALL = re.compile(r"SCAN (item|bought|muybridge_(item|purchases))\b|\(batch=\?\)")
LOOKUPS: dict[str, Callable[[Batch], object]] = {
    "item by its name": lambda found: found.called("h2"),
    "item by its number": lambda found: found.called("2"),
    "file": lambda found: found.is_recorded("h2-3.png", besides=1),
    "purchases of an item": lambda found: found.purchases(2),
    "next page of items": lambda found: found.store.items(found.number, after=2),
    "what to work on": lambda found: found.take(2, creates=2),
    "who owns items": lambda found: found.owners(),
}


def _noting(statements: list[str]) -> Callable[..., sqlite3.Connection]:
    """Return what connects, and notes what is executed."""
    connect = sqlite.connect

    def traced(*arguments: Any) -> sqlite3.Connection:
        db = connect(*arguments)
        db.set_trace_callback(statements.append)
        return db

    return traced


@pytest.mark.parametrize("what", LOOKUPS)
def test_a_lookup_reads_no_whole_batch(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its statements searches by more than the batch."""
    found = begun(tmp_path, new_items(3))
    statements: list[str] = []
    monkeypatch.setattr(sqlite, "connect", _noting(statements))
    LOOKUPS[what](found)
    monkeypatch.undo()
    with closing(sqlite3.connect(own_store(tmp_path))) as db:
        plans = [
            str(plan)
            for statement in statements
            if statement.startswith("SELECT") and "WHERE" in statement
            for *_, plan in db.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert plans
    assert [plan for plan in plans if _READS_ALL.search(plan)] == []


@pytest.mark.parametrize("name", ["walk.png", "walk-2.png", "v1.2", "walk", ".hidden.png"])
def test_the_names_of_a_file_lead_back_to_its_stem(name: str) -> None:
    """Whatever number a file has got, the stem that it was made of is among its stems."""
    wanted = Path(name)
    for stem in (wanted.stem, wanted.name):
        for path in itertools.islice(numbered(Path(f"{stem}{wanted.suffix}")), 12):
            assert stem in stems_of(path.name)


def test_items_with_a_reason_are_found_by_it(tmp_path: Path) -> None:
    """There may be a million others, which have none."""
    begun(tmp_path, new_items(3)).store.close()
    with closing(sqlite3.connect(own_store(tmp_path))) as db:
        statements: list[str] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sqlite, "connect", _noting(statements))
            with find_batch(tmp_path) as found:
                assert [*found.reasons()] == []
        [plan] = [
            str(plan)
            for statement in statements
            if "reason IS NOT NULL" in statement
            for *_, plan in db.execute(f"EXPLAIN QUERY PLAN {statement}")
            if " item " in str(plan)
        ]
    assert "muybridge_items_with_reasons" in plan
