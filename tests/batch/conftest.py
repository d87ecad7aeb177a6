from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from muybridge import Client, TrioClient, batch
from muybridge.batch import Report
from processes import Nursery

from .billing import BillingServer
from .runner_process import KEY

Run = Callable[..., Report]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What forks runners."""
    with Nursery("batch.runner_process") as forking:
        yield forking


@pytest.fixture
def server() -> Iterator[BillingServer]:
    with BillingServer() as serving:
        yield serving


@pytest.fixture(params=["requests", "trio"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run a batch in the folder `out`, under the driver under test."""

    def go(server: BillingServer, source: Any, **options: Any) -> Report:
        with Client(KEY, server.url, poll_interval=0.005) as client:
            return batch.run(client, source, tmp_path / "out", **options)

    async def go_trio(server: BillingServer, source: Any, options: dict[str, Any]) -> Report:
        async with TrioClient(KEY, server.url, poll_interval=0.005) as client:
            return await batch.run_trio(client, source, tmp_path / "out", **options)

    def wrapped(server: BillingServer, source: Any, **options: Any) -> Report:
        return trio.run(go_trio, server, source, options)

    return go if request.param == "requests" else wrapped
