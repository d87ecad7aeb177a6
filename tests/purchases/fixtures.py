"""Fixtures of tests with a store of purchases: `conftest.py` imports them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muybridge.purchases import Store, open_store

__all__ = ["place", "store"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a store: a file, or a schema of a database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite3")
    fresh: str = request.getfixturevalue("postgres").fresh()
    return fresh


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """A store that does not exist yet."""
    opened = open_store(place)
    yield opened
    opened.close()
