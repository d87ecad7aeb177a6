from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from muybridge import AsyncClient, Client, batch
from muybridge.batch import Report
from processes import Nursery

from .billing import BillingServer
from .runner_process import KEY

if TYPE_CHECKING:
    from .postgres_server import Postgres

Run = Callable[..., Report]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What forks runners."""
    with Nursery("batch.runner_process") as forking:
        yield forking


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, where a wheel brings one."""
    from .postgres_server import running  # noqa: PLC0415  it skips where there is none

    with running() as serving:
        yield serving


@pytest.fixture
def server() -> Iterator[BillingServer]:
    with BillingServer() as serving:
        yield serving


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
