"""anyio's scopes around paid calls, under each event loop, on a clock that jumps."""

from __future__ import annotations

import anyio
import attrs
import pytest

from muybridge_protocol.records.tasks import Task

from .in_process import VirtualClock
from .requests_made import image
from .virtual_loops import VirtualLoop

MOST = 500
"""More often than an event loop looks at its clock in a few calls, unless it never rests."""


class CountedClock(VirtualClock):
    """A clock that fails if it is read too often."""

    readings = 0

    def monotonic(self) -> float:
        self.readings += 1
        assert self.readings < MOST
        return super().monotonic()


@pytest.mark.parametrize("call", ["create", "run_all"])
def test_the_event_loop_rests_while_a_paid_response_is_awaited(
    loop: VirtualLoop, call: str
) -> None:
    """A scope that is cancelled during a paid exchange does not keep the event loop busy."""
    told: list[Task] = []
    loop = attrs.evolve(loop, clock=CountedClock())

    async def main() -> None:
        client = loop.client(loop.world(), latency=1.0, on_submitted=told.append)
        with anyio.move_on_after(1.5) as scope:
            if call == "create":
                await client.create(image())
                await anyio.lowlevel.checkpoint()
            else:
                async with client.run_all([image()] * 5, concurrency=2) as outcomes:
                    _ = [outcome async for outcome in outcomes]
        assert scope.cancelled_caught
        assert loop.now() == 2.0
        with anyio.fail_after(5):  # nobody is cancelled afterwards
            await anyio.sleep(1)

    loop.run(main)
    assert len(told) == (1 if call == "create" else 2)
