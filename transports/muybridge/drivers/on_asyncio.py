"""The runtime of asyncio: workers are tasks, and paid exchanges have a task of their own.

asyncio has no shield that holds (`wire.asyncio_shields` says why, and what holds instead). So
whatever must not be cut short runs in a task or a thread of its own, which nobody else cancels, and
the caller waits for its end, however often it is cancelled meanwhile (`outlast`). The first
cancellation is kept and raised afterwards, unchanged. It is never uncounted (`Task.uncancel`):
whoever asked for it recognizes it by that count.

The transport needs a shield as well, although a paid exchange has a task of its own: `asyncio.run`
cancels *every* task at its end, ours included. So the connection absorbs cancellations from the
first byte on. Neither of the two shields replaces the other: the transport's protects the response,
and this one protects what the driver does with it.

What can happen to a paid exchange, and what `unbroken` does:

- The caller is cancelled before the first byte: the exchange is cancelled, and nothing was sent.
- The caller is cancelled later: the cancellation waits for `raise_cancellation`, which comes after
  the id has its place.
- The exchange's own task is cancelled, by the end of `asyncio.run`: our transport reads on.
  Another library's stops, and the create is ambiguous.
- The caller's coroutine is closed, because its event loop is: nobody can wait. If the loop still
  runs, a task without a caller takes the outcome (`conclude`). Otherwise, nothing can read the
  response, and all that is left is to say so at the end of the program (`tell_abandoned`).

A task that is cancelled before its first step never runs, and asyncio stops the whole event loop if
a task ends with `KeyboardInterrupt` or `SystemExit`. Both would lose what a worker knows about
money. So a team cancels only workers that have begun, and passes on what ends one itself.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import attrs

from muybridge.drivers.notes import interruption_of
from muybridge.signals import hold_interrupts, left_unread, tell
from muybridge.wire.asyncio_shields import cancel_again, outlast, whole
from muybridge.wire.transport import TransportError

from .runtime import FOREVER, Conclude, Work

T = TypeVar("T")
_Tasks = set["asyncio.Task[Any]"]


_SENT: WeakKeyDictionary[asyncio.Task[Any], Callable[[], bool]] = WeakKeyDictionary()
"""The paid exchanges, and whether each may have been sent."""


@atexit.register
def tell_abandoned() -> None:
    """Tell how many paid exchanges the program ends without knowing the outcome of."""
    abandoned = sum(not exchange.done() and sent() for exchange, sent in tuple(_SENT.items()))
    if abandoned:
        tell(left_unread(abandoned))


@attrs.frozen(eq=False, repr=False)
class AsyncioRuntime:
    """Waits in the caller's task.

    Args:
        wall: Returns Unix seconds. The other clock is the event loop's own.
    """

    wall: Callable[[], float]
    cancelled: type[BaseException] = asyncio.CancelledError
    # The event loop itself keeps only weak references to tasks.
    _exchanges: _Tasks = attrs.field(factory=_Tasks, init=False, repr=False)
    _held_back: WeakKeyDictionary[asyncio.Task[Any], asyncio.CancelledError] = attrs.field(
        factory=WeakKeyDictionary[Any, asyncio.CancelledError], init=False, repr=False
    )

    def now(self) -> float:
        """Return the event loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*, which may be in the past."""
        await asyncio.sleep(moment - self.now())

    async def checkpoint(self) -> None:
        """Let other tasks run, and be cancelled if the caller has been."""
        await asyncio.sleep(0)

    async def unbroken(
        self,
        exchange: Coroutine[Any, Any, T],
        sent: Callable[[], bool],
        conclude: Conclude[T] | None = None,
    ) -> T:
        """Await *exchange* in a task of its own, which is only cancelled before it is *sent*."""
        caller = _current_task()
        self._held_back.pop(caller, None)
        running = asyncio.create_task(whole(exchange))
        self._keep(running)
        _SENT[running] = sent

        def cancel() -> None:
            if not sent():
                running.cancel()

        try:
            held = await outlast({running}, cancel)
        except GeneratorExit:
            # The caller can wait for nothing. If its event loop is closed, nobody can.
            if not running.get_loop().is_closed():
                cancel()
                if conclude is not None:
                    # It may be stopped for now, so the task cannot be made for the running one.
                    self._keep(running.get_loop().create_task(_concluded(running, conclude)))
            raise
        if running.cancelled():
            exchange.close()  # in case that the task was cancelled before its first step
            if not sent():
                # If nobody has cancelled the caller, its event loop has cancelled the exchange at
                # its end.
                raise held or asyncio.CancelledError
        if held is not None:
            self._held_back[caller] = held
        if running.cancelled():
            # By somebody else: an event loop cancels every task when it shuts down.
            raise TransportError(interruption_of(asyncio.CancelledError(), sent=True))
        result, error = running.result()
        if error is not None:
            raise error
        return result

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)

    async def raise_cancellation(self) -> None:
        """Raise the cancellation that `unbroken` has held back in this task."""
        held = self._held_back.pop(_current_task(), None)
        if held is not None:
            raise held

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread. Once it has begun, wait for its end even if cancelled."""
        # All threads may be busy for as long as the program likes. So whoever is first decides.
        turn = threading.Lock()

        def begin() -> T:
            if not turn.acquire(blocking=False):
                raise asyncio.CancelledError
            return work()

        def cancel() -> None:
            if turn.acquire(blocking=False):
                running.cancel()

        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(None, copy_context().run, begin)
        held = await outlast({running}, cancel)
        if held is not None:
            raise held from (None if running.cancelled() else running.exception())
        return running.result()

    async def finish_in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread, and keep a cancellation for `raise_cancellation`."""
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(None, copy_context().run, work)
        except RuntimeError:  # the program is ending, and has shut down the loop's threads
            return work()
        held = await outlast({running}, lambda: None)
        if held is not None:
            self._held_back.setdefault(_current_task(), held)
        return running.result()

    def team(self, size: int) -> AsyncioTeam:  # noqa: ARG002  tasks cost next to nothing
        """Return tasks, as many as are started."""
        return AsyncioTeam()


class AsyncioTeam:
    """Tasks beside the one that opened the team. Shared state needs no lock."""

    def __init__(self) -> None:
        self.lock: AbstractContextManager[Any] = nullcontext()
        self._changed = asyncio.Event()
        self._opener: asyncio.Task[Any]
        self._cancelling: int
        self._workers: _Tasks = set()
        self._begun: _Tasks = set()
        self._closing = False
        self._has_interrupted = False
        self._broken: BaseException | None = None

    async def open(self) -> None:
        """Remember the task to cancel if a worker breaks the team."""
        self._opener = _current_task()
        self._cancelling = self._opener.cancelling()

    def start(self, work: Work, *, paid: bool = False) -> None:
        """Start a task that does *work*."""
        self._start(work, paid=paid)

    async def run(self, work: Work) -> None:
        """Start a task that does *work*, and wait for it to end."""
        await asyncio.wait([self._start(work, paid=False)])

    def notify(self) -> None:
        """Wake every task that waits."""
        # Whoever waits from now on waits for the next change, and needs an event that is not set.
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, until: float = FOREVER) -> None:
        """Wait for `notify`, or *until* a moment."""
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout_at(None if until == FOREVER else until):
                await changed.wait()

    async def close(self, error: BaseException | None) -> None:
        """Cancel the workers, and wait for all of them. A sent paid exchange is not cancelled."""
        self._closing = True
        for worker in self._begun:
            worker.cancel()
        late = await outlast(self._workers, lambda: None)
        if self._has_interrupted:
            # That cancellation was the team's own. Counted as somebody else's, it would end a
            # timeout or a task group around the team.
            self._opener.uncancel()
        if self._broken is not None:
            # A cancellation that came as well is raised next, unless it is withdrawn by then.
            asyncio.get_running_loop().call_soon(cancel_again, self._opener, (), self._cancelling)
            raise self._broken from None
        if late is not None and not isinstance(error, asyncio.CancelledError):
            raise late

    def _start(self, work: Work, *, paid: bool) -> asyncio.Task[None]:
        worker = asyncio.create_task(self._work(work, paid=paid))
        self._workers.add(worker)
        worker.add_done_callback(self._ended)
        return worker

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if worker.cancelled():  # before its first step: `_work` raises nothing
            self._break(asyncio.CancelledError())

    async def _work(self, work: Work, *, paid: bool) -> None:
        worker = _current_task()
        if self._closing:
            worker.cancel()
        self._begun.add(worker)
        try:
            # Ctrl-C must not come between a response and its place in the shared state.
            with hold_interrupts(when=paid) as held:
                await work()
            if held.seen:
                raise held.interrupt()  # noqa: TRY301  ends the team like any other
        except GeneratorExit:  # the event loop is gone, and with it the team
            raise
        except BaseException as error:  # noqa: BLE001  `close` raises it
            self._break(error)
        finally:
            self._begun.discard(worker)

    def _break(self, error: BaseException) -> None:
        """End the team because of *error*, unless the team has cancelled the worker itself."""
        if self._closing and isinstance(error, asyncio.CancelledError):
            return
        if self._broken is None:
            self._broken = error
            if not self._closing:
                # Otherwise the opener learns of it only once it leaves the context, which may never
                # happen.
                self._has_interrupted = self._opener.cancel()


async def _concluded(
    running: asyncio.Task[tuple[T, BaseException | None]], conclude: Conclude[T]
) -> None:
    """Wait for the end of an exchange whose caller is gone, and *conclude* it."""
    await outlast({running}, lambda: None)
    if running.cancelled():  # before anything was sent
        return
    try:
        end, error = running.result()
    except TransportError as failed:
        await conclude(failed.failure)
    else:
        if error is None:
            await conclude(end)


def _current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("call this from a task of asyncio. Nothing was sent.")
    return task
