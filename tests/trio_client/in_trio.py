"""The service inside the test's own event loop, and what cancels a task at each checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from types import TracebackType
from typing import Any, ParamSpec

import trio
from trio.testing import MockClock

import muybridge
from client.in_process import AsyncFace, InProcessTransport, VirtualClock, World
from muybridge_protocol.emulator import Timing

P = ParamSpec("P")

_MOST_CHECKPOINTS = 1000


def on_virtual_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run *test* by a clock that jumps to the next moment whenever nobody has anything to do."""

    @wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        bound = partial(test, *arguments, **named)
        trio.run(bound, clock=MockClock(autojump_threshold=0))

    return run


class TrioTime(VirtualClock):
    """The time of the event loop, as the world's clock."""

    @property
    def elapsed(self) -> float:  # type: ignore[override]  # the other one is a variable
        return trio.current_time()

    @elapsed.setter
    def elapsed(self, _: float) -> None:
        """Only trio moves this clock."""


def mock_world(**timing: float) -> World:
    """Return a service whose time is that of the event loop."""
    return World(timing=Timing(**timing), clock=TrioTime())


def client_of(world: World, latency: float = 0.0, **options: Any) -> muybridge.TrioClient:
    """Return a client of *world* that takes *latency* seconds for each step of an exchange."""
    transport = AsyncFace(InProcessTransport(world), connecting=latency, replying=latency)
    settings: dict[str, Any] = {"transport": transport, "wall": world.clock.wall, **options}
    return muybridge.TrioClient(world.key, world.url, world.url, **settings)


class _Canceller(trio.abc.Instrument):
    """Cancels the task that enters it as it arrives at its *count*-th checkpoint."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.scope = trio.CancelScope()

    def __enter__(self) -> trio.CancelScope:
        self._task = trio.lowlevel.current_task()
        trio.lowlevel.add_instrument(self)
        scope = self.scope.__enter__()
        if self._left == 0:
            scope.cancel()
        return scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        trio.lowlevel.remove_instrument(self)
        return self.scope.__exit__(kind, error, traceback)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self.scope.cancel()


async def at_every_checkpoint(
    call: Callable[[], Awaitable[None]],
    check: Callable[[trio.CancelScope], Awaitable[None]],
) -> int:
    """Cancel *call* at its first checkpoint, then at its second, until it comes to its end.

    Args:
        call: What is cancelled. It is called anew each time.
        check: Called after each, with the scope that it was cancelled by.

    Returns:
        How many checkpoints there were.
    """
    for count in range(_MOST_CHECKPOINTS):
        with _Canceller(count) as scope:
            await call()
        await check(scope)
        if not scope.cancel_called:
            return count - 1
    raise AssertionError("it never comes to its end")
