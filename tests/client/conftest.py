from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .drivers import DRIVERS, MakeClient
from .in_process import World


@pytest.fixture(params=DRIVERS)
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """What makes clients of the driver under test; they are closed at the end."""
    with ExitStack() as closing:
        yield DRIVERS[request.param](closing)


@pytest.fixture
def world() -> World:
    return World()
