"""Event loops whose clock jumps to the next moment whenever nobody has anything to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec

import attrs
import trio

import muybridge
from muybridge_protocol.emulator import Timing

from .event_loops import ClockEventLoop, TrioClock
from .in_process import AsyncFace, InProcessTransport, VirtualClock, World

P = ParamSpec("P")
Main = Callable[[], Coroutine[Any, Any, None]]


def under_asyncio(clock: VirtualClock, main: Main) -> None:
    """Run *main* under asyncio, by *clock*."""
    with asyncio.Runner(loop_factory=lambda: ClockEventLoop(clock)) as runner:
        runner.run(main())


def under_trio(clock: VirtualClock, main: Main) -> None:
    """Run *main* under trio, by *clock*."""
    trio.run(main, clock=TrioClock(clock))


LOOPS: dict[str, Callable[[VirtualClock, Main], None]] = {
    "asyncio": under_asyncio,
    "trio": under_trio,
}
CLIENTS: dict[str, type[muybridge.AsyncClient]] = {
    "asyncio": muybridge.AsyncClient,
    "trio": muybridge.TrioClient,
}


@attrs.frozen
class VirtualLoop:
    """An event loop, and what runs in it.

    Args:
        name: The event loop's name.
        clock: Its time.
    """

    name: str
    clock: VirtualClock = attrs.field(factory=VirtualClock)

    def now(self) -> float:
        """Return the time."""
        return self.clock.monotonic()

    def world(self, **timing: float) -> World:
        """Return a service whose time is that of the event loop."""
        return World(timing=Timing(**timing), clock=self.clock)

    def client(self, world: World, latency: float = 0.0, **options: Any) -> muybridge.AsyncClient:
        """Return a client of *world* that takes *latency* seconds for each step of an exchange."""
        transport = AsyncFace(InProcessTransport(world), connecting=latency, replying=latency)
        settings: dict[str, Any] = {"transport": transport, "wall": self.clock.wall, **options}
        return CLIENTS[self.name](world.key, world.url, world.url, **settings)

    def run(self, main: Main) -> None:
        """Run *main* to its end."""
        LOOPS[self.name](self.clock, main)


def in_virtual_loop(
    test: Callable[Concatenate[VirtualLoop, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[VirtualLoop, P], None]:
    """Run *test* in the event loop that it is given, by the fixture `loop`."""

    @wraps(test)
    def run(loop: VirtualLoop, *arguments: P.args, **named: P.kwargs) -> None:
        loop.run(partial(test, loop, *arguments, **named))

    return run
