from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from .drivers import DRIVERS, TRANSPORTS, MakeClient
from .in_process import World
from .virtual_loops import LOOPS, VirtualLoop


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
