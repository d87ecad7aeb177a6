"""How a paid exchange withstands cancellation under asyncio, which has no shield that holds.

`Task.cancel` cancels the future that the task waits for, and then raises `CancelledError` there.
`asyncio.timeout`, `wait_for`, `TaskGroup` and Ctrl-C use it, and anyio's scopes call it at each
turn of the event loop. `asyncio.shield` only leaves the work behind: nobody gets the response.
There are two ways to hold out, and a paid exchange needs both:

1. *A task of its own* (`outlast`). Nobody else knows that task, so nobody cancels it. The caller
   waits for its end, however often it is cancelled. This works for every library's code. But
   `asyncio.run` cancels **every** task at its end, this one, too.
2. *Absorbing a cancellation where the task waits* (`Shield`, `shielded`). The wait ends early and
   begins again. No byte is lost or sent twice, because a wait neither reads nor sends. This
   withstands `asyncio.run`, but only in code that has its waits in its own hands.

The driver puts every paid exchange into a task of its own. Within it, our connection absorbs what
the end of `asyncio.run` does. Without the second, a program that ends by an exception loses the ids
of its creates: nineteen tests failed when it was removed. Without the first, a cancellation would
strike the driver's own code, between the response and the place where its id is kept. A library's
code has the first alone: at the end of `asyncio.run`, its create ends as ambiguous. anyio is no way
out, because its shields do not hold against `Task.cancel` either.

In either case the cancellation is delivered afterwards (`cancel_again`), from a callback of the
event loop. `current_task().cancel()` right after the exchange would be wrong: it strikes at the
next suspension, which may be the next read of the same response. The callback finds the task
suspended for something else, or in its next shielded wait, which then keeps the cancellation.
Nothing is ever uncounted (`Task.uncancel`) that others have counted: who asked for a cancellation
recognizes it by that count, as `asyncio.timeout` does. Only what is delivered again is not counted
again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import attrs

from muybridge.signals import stops_at_once

T = TypeVar("T")


@attrs.define(eq=False)
class Shield:
    """What keeps a task from being cancelled.

    Args:
        task: The task.
        limit: The timeout within which it does so.
        outer: The shield around this one.

    Attributes:
        absorbed: The arguments of the last `CancelledError` that it absorbed, or None.
    """

    task: asyncio.Task[Any]
    limit: asyncio.Timeout
    outer: Shield | None
    absorbed: tuple[Any, ...] | None = attrs.field(default=None, init=False)

    @classmethod
    def put_up(cls, limit: asyncio.Timeout) -> Shield | None:
        """Shield the current task within *limit*."""
        task = asyncio.current_task()
        if task is None:
            return None
        shield = SHIELDS[task] = cls(task, limit, SHIELDS.get(task))
        return shield

    @property
    def expired(self) -> bool:
        """Whether a timeout has expired, whose cancellation is not absorbed."""
        return self.limit.expired() or (self.outer is not None and self.outer.expired)


SHIELDS: dict[asyncio.Task[Any], Shield] = {}
"""The innermost shield of each task that has one."""


def shielded(waiting: Awaitable[object]) -> Awaitable[object]:
    """Return what to await instead of *waiting* in a task that may have a shield."""
    task = asyncio.current_task()
    shield = None if task is None else SHIELDS.get(task)
    return waiting if shield is None else _absorb(waiting, shield)


async def _absorb(waiting: Awaitable[object], shield: Shield) -> None:
    """Await *waiting*, and return early if the task is cancelled."""
    try:
        await waiting
    except asyncio.CancelledError as error:
        if shield.expired or stops_at_once(asyncio.get_running_loop()):
            raise
        shield.absorbed = error.args


async def outlast(
    running: AbstractSet[asyncio.Future[Any]], cancelled: Callable[[], None]
) -> asyncio.CancelledError | None:
    """Wait until all of *running* are done. Return the first cancellation that came meanwhile.

    Args:
        running: Tasks or other futures.
        cancelled: Called for each cancellation.
    """
    held: asyncio.CancelledError | None = None
    while pending := {one for one in running if not one.done()}:
        try:
            with nullcontext() if held is None else _shielded_from_anyio():
                await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            # Without the frames of the exchange.
            held = held or error.with_traceback(None)
            cancelled()
    return held


async def unbroken(work: Coroutine[Any, Any, T], sent: Callable[[], bool]) -> T:
    """Await *work*, a library's code, in a task of its own, which is only cancelled until *sent*.

    A cancellation that comes later is delivered once the caller is suspended after *work*.

    Raises:
        ConnectionError: Somebody else has cancelled the task: the event loop is shut down.
    """
    running = asyncio.create_task(whole(work))

    def cancel() -> None:
        if not sent():
            running.cancel()

    try:
        held = await outlast({running}, cancel)
    except GeneratorExit:  # the caller can wait for nothing
        if not running.get_loop().is_closed():
            running.cancel()
        raise
    if running.cancelled():
        work.close()  # in case that the task was cancelled before its first step
    if held is not None and not sent():
        raise held from (None if running.cancelled() else running.exception())
    caller = asyncio.current_task()
    if held is not None and caller is not None:
        caller.get_loop().call_soon(cancel_again, caller, held.args)
    if running.cancelled():
        raise ConnectionError("the event loop was shut down")
    result, error = running.result()
    if error is not None:
        raise error
    return result


async def whole(work: Coroutine[Any, Any, T]) -> tuple[T, BaseException | None]:
    """Return the result of *work*, or what a task must not raise: it would end the event loop."""
    try:
        return await work, None
    except (KeyboardInterrupt, SystemExit) as error:
        nothing: Any = None
        return nothing, error


def cancel_again(task: asyncio.Task[Any], arguments: tuple[Any, ...] = (), before: int = 0) -> None:
    """Cancel *task* as it has been, without counting that, unless it was withdrawn since.

    Args:
        task: The task.
        arguments: Those of the `CancelledError`.
        before: How many cancellations of it have nothing to do with this one.
    """
    if task.cancelling() <= before:  # `Task.uncancel`
        return
    if task in SHIELDS:  # the same exchange, at its next wait
        SHIELDS[task].absorbed = arguments
    elif task.cancel(*arguments):
        task.uncancel()  # it was counted when it was requested


def _shielded_from_anyio() -> AbstractContextManager[object]:
    """Return a scope in which anyio's other scopes do not cancel, if anyio is used at all.

    They would do so at each turn of the event loop, and keep it busy until the response arrives.
    """
    anyio: Any = sys.modules.get("anyio")
    if anyio is None:
        return nullcontext()
    scope: AbstractContextManager[object] = anyio.CancelScope(shield=True)
    return scope
