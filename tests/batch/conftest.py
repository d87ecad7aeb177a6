from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from muybridge import AsyncClient, Client, batch
from muybridge.batch import Report, SharedBatch, SharedReport
from processes import Nursery

from .billing import BillingServer
from .fixtures import postgres, server, shared
from .runner_process import KEY

__all__ = ["postgres", "server", "shared"]

Run = Callable[..., Report]
Work = Callable[..., SharedReport]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What forks runners."""
    with Nursery("batch.runner_process") as forking:
        yield forking


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The place of the store of every client of the test: a file, or a schema of a database."""
    found = str(tmp_path / "store.sqlite3")
    if request.param == "postgres":
        found = request.getfixturevalue("postgres").fresh()
    monkeypatch.setenv("MUYBRIDGE_STORE", found)
    return found


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the store of every client of the test."""
    found = tmp_path / "store.sqlite3"
    monkeypatch.setenv("MUYBRIDGE_STORE", str(found))
    return found


@pytest.fixture(params=["requests", "trio", "asyncio"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a batch in the folder `out`, under the driver under test."""

    def go(server: BillingServer, source: Any, **options: Any) -> Report:
        with Client(KEY, server.url, poll_interval=0.005) as client:
            return batch.run(client, source, tmp_path / "out", **options)

    async def go_async(server: BillingServer, source: Any, options: dict[str, Any]) -> Report:
        async with AsyncClient(KEY, server.url, poll_interval=0.005) as client:
            return await batch.run_async(client, source, tmp_path / "out", **options)

    def under_trio(server: BillingServer, source: Any, **options: Any) -> Report:
        return trio.run(go_async, server, source, options)

    def under_asyncio(server: BillingServer, source: Any, **options: Any) -> Report:
        return asyncio.run(go_async(server, source, options))

    runs: dict[str, Run] = {"requests": go, "trio": under_trio, "asyncio": under_asyncio}
    return runs[request.param]


@pytest.fixture(params=["requests", "trio", "asyncio"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Work:
    """Let a worker work, under the driver under test."""

    def go(server: BillingServer, shared: SharedBatch, **options: Any) -> SharedReport:
        options.setdefault("out", tmp_path / "out")
        with Client(KEY, server.url, poll_interval=0.005) as client:
            return batch.work(client, shared, **options)

    async def go_async(
        server: BillingServer, shared: SharedBatch, options: dict[str, Any]
    ) -> SharedReport:
        options.setdefault("out", tmp_path / "out")
        async with AsyncClient(KEY, server.url, poll_interval=0.005) as client:
            return await batch.work_async(client, shared, **options)

    def under_trio(server: BillingServer, shared: SharedBatch, **options: Any) -> SharedReport:
        return trio.run(go_async, server, shared, options)

    def under_asyncio(server: BillingServer, shared: SharedBatch, **options: Any) -> SharedReport:
        return asyncio.run(go_async(server, shared, options))

    return {"requests": go, "trio": under_trio, "asyncio": under_asyncio}[request.param]
