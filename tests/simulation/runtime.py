"""The runtime port on a simulated event loop, in the two manners that cancellations have.

Under trio a cancellation strikes at every await until the cancelled scope ends; under asyncio it
strikes once, and what comes while a paid exchange is under way is raised after it. The product is
to be right under both, so a world chooses one by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import attrs

from muybridge.drivers import blocking
from muybridge.drivers.runtime import FOREVER, Work

from .world import Actor, Cancelled, Process, World

T = TypeVar("T")


@attrs.frozen(eq=False)
class SimulatedRuntime:
    """Waits in a world.

    Args:
        world: The world.
        process: The process whose event loop it is.
        once: Whether a cancellation strikes once, as under asyncio.
    """

    world: World
    process: Process
    once: bool
    cancelled: type[BaseException] = Cancelled

    def now(self) -> float:
        """Return the world's time."""
        return self.world.now

    def wall(self) -> float:
        """Return Unix seconds."""
        return self.world.wall

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*."""
        self.wait(moment)

    async def checkpoint(self) -> None:
        """Let others run, and be cancelled if the caller has been."""
        self.wait(self.world.now)

    async def unbroken(
        self,
        exchange: Coroutine[Any, Any, T],
        sent: Callable[[], bool],
        conclude: object = None,  # noqa: ARG002  no coroutine is closed here
    ) -> T:
        """Await *exchange*, which nothing cancels once any of it is *sent*."""
        shields = self.current().shields
        shields.append(sent)
        try:
            return await exchange
        except Cancelled:
            self.hear()
            raise
        finally:
            shields.remove(sent)

    async def raise_cancellation(self) -> None:
        """Raise what was held back, where cancellations strike once."""
        actor = self.current()
        if self.once and actor.strikes:
            actor.cancelling = False
            raise Cancelled

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread. Once it has begun, wait for its end."""
        if not self.once:
            await self.checkpoint()
        done = self._done(work)
        if self.once:
            await self.raise_cancellation()
        if done.error is not None:
            raise done.error
        result: T = done.result
        return result

    async def finish_in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread to its end, whoever is cancelled."""
        done = self._done(work)
        if done.error is not None:
            raise done.error
        result: T = done.result
        return result

    def team(self, size: int) -> SimulatedTeam:  # noqa: ARG002  tasks cost next to nothing
        """Return tasks, as many as are started."""
        return SimulatedTeam(self)

    def start(self, work: Work, name: str) -> Actor:
        """Start a task that does *work*."""
        return self.world.start(
            self.process, lambda: blocking.run(work), name, loop=self.process.loop
        )

    def wait(self, until: float, ready: Callable[[], bool] | None = None) -> None:
        """Wait until a moment, or until something is *ready*."""
        try:
            self.world.pause(until, ready)
        except Cancelled:
            self.hear()
            raise

    def hear(self) -> None:
        """Note that a cancellation was raised: where it strikes once, it is over."""
        if self.once:
            self.current().cancelling = False

    def current(self) -> Actor:
        """Return the task that calls."""
        actor = self.world.current
        assert actor is not None
        return actor

    def _done(self, work: Callable[[], object]) -> Actor:
        actor = self.current()
        thread = self.world.start(self.process, work, f"{actor.name}'s thread")
        with shielded(actor):
            self.world.pause(ready=lambda: thread.done)
        return thread


class shielded:  # noqa: N801  a context manager
    """Within this context, no cancellation strikes."""

    def __init__(self, actor: Actor) -> None:
        self._shields = actor.shields

    def __enter__(self) -> None:
        self._shields.append(_holds)

    def __exit__(self, *_: object) -> None:
        self._shields.remove(_holds)


def _holds() -> bool:
    return True


class SimulatedTeam:
    """Tasks beside the one that opened the team. Shared state needs no lock."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self.lock: AbstractContextManager[Any] = nullcontext()
        self._runtime = runtime
        self._changes = 0
        self._workers: list[Actor] = []
        self._opener: Actor
        self._closing = False
        self._broken: BaseException | None = None
        self._has_interrupted = False

    async def open(self) -> None:
        """Remember the task to cancel if a worker breaks the team."""
        self._opener = self._runtime.current()

    def start(self, work: Work, *, paid: bool = False) -> None:  # noqa: ARG002  what is paid is shielded
        """Start a task that does *work*."""
        self._start(work)

    async def run(self, work: Work) -> None:
        """Start a task that does *work*, and wait for it to end."""
        worker = self._start(work)
        self._runtime.wait(FOREVER, lambda: worker.done)

    def notify(self) -> None:
        """Wake every task that waits."""
        self._changes += 1

    async def wait(self, until: float = FOREVER) -> None:
        """Wait for `notify`, or *until* a moment."""
        seen = self._changes
        self._runtime.wait(until, lambda: self._changes > seen)

    async def close(self, error: BaseException | None) -> None:
        """Cancel the workers, and wait for all of them."""
        self._closing = True
        for worker in self._workers:
            worker.cancel()
        with shielded(self._opener):
            self._runtime.world.pause(ready=lambda: all(one.done for one in self._workers))
        if self._broken is not None:
            if self._has_interrupted:
                self._opener.cancelling = False
            raise self._broken from None
        if self._opener.strikes and error is None:
            self._runtime.hear()
            raise Cancelled

    def _start(self, work: Work) -> Actor:
        async def whole() -> None:
            try:
                await work()
            except BaseException as error:  # noqa: BLE001  `close` raises it
                self._break(error)

        worker = self._runtime.start(whole, f"{self._opener.name}.{len(self._workers) + 1}")
        self._workers.append(worker)
        if self._closing:
            worker.cancel()
        return worker

    def _break(self, error: BaseException) -> None:
        if self._closing and isinstance(error, Cancelled):
            return
        if self._broken is None:
            self._broken = error
            if not self._closing:
                self._has_interrupted = not self._opener.cancelling
                self._opener.cancel()
            for worker in self._workers:
                worker.cancel()
