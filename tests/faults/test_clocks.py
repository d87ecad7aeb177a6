"""Case 60: a wall clock that is set while something waits."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from client.drivers import DRIVERS
from client.in_process import VirtualClock, World
from client.requests_made import small
from muybridge_protocol.records.tasks import Status

DAY = 86_400.0


class JumpingClock:
    """A client's clock whose wall time jumps by a day, to and fro, with each wait.

    Args:
        inner: The clock that is right.
        jump: Seconds.
    """

    def __init__(self, inner: VirtualClock, jump: float) -> None:
        self._inner = inner
        self._jump = jump
        self._jumped = 0.0

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def wall(self) -> float:
        return self._inner.wall() + self._jumped

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
        self._jumped = self._jump - self._jumped


def waited(driver: str, jump: float) -> list[float]:
    """Return when a task was asked for, while the wall clock jumps."""
    world = World()
    with ExitStack() as closing:
        client = DRIVERS[driver](closing)(world, clock=JumpingClock(world.clock, jump))
        result = client.run(small()["vidsb"])
    assert result.status is Status.COMPLETED
    return [query.at for query in world.queries]


@pytest.mark.parametrize("jump", [DAY, -DAY])
@pytest.mark.parametrize("driver", DRIVERS)
def test_wall_clock_jumps(driver: str, jump: float) -> None:
    """A wall clock that is set to another day changes no wait."""
    assert waited(driver, jump) == waited(driver, 0.0)
