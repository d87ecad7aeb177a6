from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from batch.fixtures import postgres

from .drivers import DRIVERS, TRANSPORTS, MakeClient
from .in_process import World
from .virtual_loops import LOOPS, VirtualLoop

__all__ = ["postgres"]


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """The name of the driver under test."""
    name: str = request.param
    return name


@pytest.fixture
def make_client(driver: str) -> Iterator[MakeClient]:
    """What makes clients of the driver under test; they are closed at the end."""
    with ExitStack() as closing:
        yield TRANSPORTS[driver](closing)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> VirtualLoop:
    """The event loop under test, whose clock jumps."""
    return VirtualLoop(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a store: a file, or a schema of a database."""
    if request.param == "sqlite":
        return str(tmp_path / "state" / "store.sqlite3")
    fresh: str = request.getfixturevalue("postgres").fresh()
    return fresh


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file for a store."""
    return tmp_path / "store.sqlite3"
