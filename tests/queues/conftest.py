"""A service that keeps the books, and a folder for a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from batch.fixtures import postgres, server, shared
from processes import Nursery

__all__ = ["postgres", "server", "shared"]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MUYBRIDGE_") or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def celery() -> Iterator[Nursery]:
    """Forks Celery workers."""
    with Nursery("queues.celery_worker") as nursery:
        yield nursery


@pytest.fixture(scope="session")
def dbos() -> Iterator[Nursery]:
    """Forks applications with DBOS."""
    with Nursery("queues.dbos_worker") as nursery:
        yield nursery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what a run needs."""
    for name in ("queue", "control", "processed", "pictures"):
        (tmp_path / name).mkdir()
    return tmp_path
