from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.hosts import MODES
from agents.relay import Relay
from batch.fixtures import postgres
from purchases.fixtures import place

__all__ = ["place", "postgres"]


@pytest.fixture
def relay() -> Iterator[Relay]:
    """The service, and a relay that counts."""
    with Relay() as relay:
        yield relay


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """How a host is asked."""
    return str(request.param)


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of the official client."""
    return "asyncio"
