"""The runtime of trio: workers are the tasks of a nursery.

Trio does most of what the port asks for, so this module is about what remains:

- A cancel scope with a shield holds, whoever cancels from outside. So the transport shields a paid
  exchange itself, and nothing here has to hold a cancellation back: trio raises it at the caller's
  next checkpoint, when the outcome has its place.
- A nursery raises its exceptions in a group, even a single one. Callers expect the exception
  itself, as from the other bindings, so `TrioTeam.close` takes it out of its group.
- Trio may deliver Ctrl-C to any task, at any instruction. The few lines between a response and the
  shared state, and those that open and close the nursery, are protected from it.
- Trio does not survive a coroutine that is closed in the middle. If that strikes a paid exchange,
  its response is lost, and the end of the program says so (`tell_abandoned`).
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import attrs
import trio

from muybridge.signals import left_unread, tell

from .runtime import FOREVER, Conclude, Work

T = TypeVar("T")

_UNDER_WAY: set[Callable[[], bool]] = set()
"""Whether each paid exchange that has not ended may have been sent."""


@atexit.register
def tell_abandoned() -> None:
    """Tell how many paid exchanges the program ends without knowing the outcome of."""
    abandoned = sum(sent() for sent in tuple(_UNDER_WAY))
    if abandoned:
        tell(left_unread(abandoned))


@attrs.frozen(eq=False, repr=False)
class TrioRuntime:
    """Waits in the caller's task.

    Args:
        wall: Returns Unix seconds. The other clock is trio's own.
    """

    wall: Callable[[], float]
    cancelled: type[BaseException] = trio.Cancelled

    def now(self) -> float:
        """Return trio's time.

        Raises:
            RuntimeError: The call is not made under trio.
        """
        try:
            return trio.current_time()
        except RuntimeError:
            raise RuntimeError(
                "TrioClient needs trio, and was called outside of it. Call it from a function that "
                "trio.run runs. Under asyncio, use AsyncClient. Nothing was sent."
            ) from None

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*, which may be in the past."""
        await trio.sleep_until(moment)

    async def checkpoint(self) -> None:
        """Let other tasks run, and be cancelled if the caller has been."""
        await trio.lowlevel.checkpoint()

    async def unbroken(
        self,
        exchange: Coroutine[Any, Any, T],
        sent: Callable[[], bool],
        conclude: Conclude[T] | None = None,  # noqa: ARG002  an exchange ends with its caller
    ) -> T:
        """Await *exchange*: under trio the transport shields it, from its very first byte on.

        If the caller's coroutine is closed, which trio itself does not survive, nobody can read the
        response. All that is left is to say so at the end of the program (`tell_abandoned`).
        """
        _UNDER_WAY.add(sent)
        try:
            end = await exchange
        except BaseException as error:
            # Trio's scopes raise an error of their own where a coroutine is closed.
            closing = error if isinstance(error, GeneratorExit) else error.__context__
            if isinstance(closing, GeneratorExit):
                raise closing from None
            _UNDER_WAY.discard(sent)
            raise
        _UNDER_WAY.discard(sent)
        return end

    async def raise_cancellation(self) -> None:
        """Do nothing: trio raises it at the caller's next checkpoint, after the outcome."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread. A cancellation waits until it has ended."""
        return await trio.to_thread.run_sync(work)

    async def finish_in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread. Trio raises a cancellation at the caller's next checkpoint."""
        done: list[T] = []
        with trio.CancelScope(shield=True):
            done.append(await trio.to_thread.run_sync(work))
        return done[0]

    def team(self, size: int) -> TrioTeam:  # noqa: ARG002  tasks cost next to nothing
        """Return the tasks of a nursery, as many as are started."""
        return TrioTeam()


class TrioTeam:
    """The tasks of a nursery. Shared state needs no lock: tasks switch at checkpoints only."""

    def __init__(self) -> None:
        self.lock: AbstractContextManager[Any] = nullcontext()
        self._changed = trio.Event()
        self._nursery: trio.Nursery
        self._opened: AbstractAsyncContextManager[trio.Nursery]

    # Ctrl-C must not leave the nursery open: trio could not continue.
    @trio.lowlevel.enable_ki_protection
    async def open(self) -> None:
        """Open the nursery, which only `close` leaves."""
        self._opened = trio.open_nursery()
        self._nursery = await self._opened.__aenter__()

    def start(self, work: Work, *, paid: bool = False) -> None:  # noqa: ARG002  what is paid is shielded
        """Start a task that does *work*."""
        self._nursery.start_soon(_work, work)

    async def run(self, work: Work) -> None:
        """Start a task that does *work*, and wait for it to end."""
        ended = trio.Event()

        async def whole() -> None:
            try:
                await work()
            finally:
                ended.set()

        self.start(whole)
        await ended.wait()

    def notify(self) -> None:
        """Wake every task that waits."""
        # Whoever waits from now on waits for the next change, and needs an event that is not set.
        self._changed.set()
        self._changed = trio.Event()

    async def wait(self, until: float = FOREVER) -> None:
        """Wait for `notify`, or *until* a moment."""
        changed = self._changed
        with trio.move_on_at(until):
            await changed.wait()

    @trio.lowlevel.enable_ki_protection
    async def close(self, error: BaseException | None) -> None:
        """Cancel the tasks. Paid exchanges are shielded; the others end at once.

        However often Ctrl-C is pressed, it waits for the paid ones: trio delivers the interruption
        to the main task only.
        """
        self._nursery.cancel_scope.cancel()
        late: BaseException | None = None
        try:
            # Without the current exception, which would come out in a group.
            await self._opened.__aexit__(None, None, None)
        except BaseException as raised:  # noqa: BLE001  a cancellation from outside, seen below
            late = raised
        odd = _other_than_cancelled(late)
        if odd is not None:
            raise odd from None  # such as Ctrl-C, which trio may deliver to any task
        if late is not None and error is None:
            await trio.lowlevel.checkpoint_if_cancelled()  # the same, but in no group


# Ctrl-C must not come between a response and its place in the shared state.
@trio.lowlevel.enable_ki_protection
async def _work(work: Work) -> None:
    await work()


def _other_than_cancelled(error: BaseException | None) -> BaseException | None:
    """Return the first exception in *error*, a group or not, other than a cancellation."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        others = map(_other_than_cancelled, group.exceptions)
        return next((one for one in others if one is not None), None)
    return None if isinstance(error, trio.Cancelled) else error
