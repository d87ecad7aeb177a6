"""Fixtures of tests with a service that keeps books, and a database: `conftest.py` imports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from muybridge import batch
from muybridge.batch import SharedBatch, SharedReport
from muybridge_protocol.service import Service

from .billing import BillingServer
from .runner_process import horses

if TYPE_CHECKING:
    from .postgres_server import Postgres

__all__ = ["postgres", "server", "shared"]


@pytest.fixture
def server() -> Iterator[BillingServer]:
    """The service."""
    with BillingServer() as serving:
        yield serving


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, where a wheel brings one."""
    from .postgres_server import running

    with running() as serving:
        yield serving


@pytest.fixture
def shared(postgres: Postgres) -> SharedBatch:
    """A batch that is not begun yet, in a schema of its own."""
    return SharedBatch(postgres.fresh(), "horses")


def submit(server: BillingServer, shared: SharedBatch, count: int) -> SharedReport:
    """Begin a batch of horses, or add some to it."""
    return batch.submit(shared, horses(count), Service(base_url=server.url))
