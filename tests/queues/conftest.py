"""A service that keeps the books, and a folder for a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from batch.billing import BillingServer
from processes import Nursery


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
def server() -> Iterator[BillingServer]:
    """The service."""
    with BillingServer() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with what a run needs."""
    for name in ("queue", "control", "processed", "pictures"):
        (tmp_path / name).mkdir()
    return tmp_path
