"""`Runtime`: what the driver needs besides a transport, with one binding for each way to run code.

The driver, the clients' logic, fleets and batches are coroutines that await nothing but a transport
and this port. So they are written once, and a binding decides what waiting means:

- `muybridge.drivers.blocking` runs them with I/O that blocks. They never suspend, so that one
  `send(None)` runs a coroutine to its end, and workers are threads.
- `muybridge.drivers.on_trio` lets trio run them, and workers are tasks of a nursery.
- `muybridge.drivers.on_asyncio` lets asyncio run them, and workers are tasks.

To use it, take a `Runtime` as an argument and never import `trio`, `asyncio` or `threading`:

    team = runtime.team(8)
    await team.open()
    try:
        with team.lock:  # around whatever workers share
            team.start(partial(fetch, item))  # an async function; it runs beside this one
            await team.wait(until=runtime.now() + 5)  # releases the lock until `team.notify()`
    finally:
        await team.close(error=None)

Start a worker whose exchange may be charged with `paid=True`: `close` waits for it, however long it
takes. Between the response to a paid request and the place where its id is kept, await nothing that
may suspend, because a cancellation could arrive there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from muybridge_protocol.http import TransportFailure

T = TypeVar("T")

Work = Callable[[], Coroutine[Any, Any, None]]
"""What a worker does: an async function."""

Conclude = Callable[[T | TransportFailure], Coroutine[Any, Any, None]]
"""An async function that takes the end of an exchange whose caller is gone."""

FOREVER = math.inf
"""A moment that never arrives."""


class Runtime(Protocol):
    """Tells the time, waits, and runs work beside the caller."""

    @property
    def cancelled(self) -> type[BaseException] | tuple[type[BaseException], ...]:
        """What a cancellation raises, for `except`. Empty if nothing is ever cancelled."""
        ...

    def now(self) -> float:
        """Return seconds on a monotonic clock.

        Raises:
            RuntimeError: The caller does not run under this binding. Nothing was sent.
        """
        ...

    def wall(self) -> float:
        """Return Unix seconds."""
        ...

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*, which may be in the past."""
        ...

    async def checkpoint(self) -> None:
        """Let others run, and be cancelled if the caller has been."""
        ...

    def unbroken(
        self,
        exchange: Coroutine[Any, Any, T],
        sent: Callable[[], bool],
        conclude: Conclude[T] | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Await *exchange* to its end, whoever is cancelled, once any of it is *sent*.

        Under trio the transport shields it. An event loop whose shields do not hold runs it in a
        task of its own. What cancels the caller before anything is sent cancels the exchange. What
        comes later waits for `raise_cancellation`, or for the caller's next checkpoint.

        Args:
            exchange: A coroutine: what sends a request and reads its response.
            sent: Tells whether any byte of the request may have been sent.
            conclude: Takes the end of the exchange if the caller's coroutine is closed meanwhile,
                where the exchange goes on without it.
        """
        ...

    async def raise_cancellation(self) -> None:
        """Raise the cancellation that `unbroken` has held back, where no checkpoint would raise it.

        What the exchange led to is known by then: the caller notes it with what comes out.
        """
        ...

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work*, which waits for a disk or a database, without blocking others."""
        ...

    async def finish_in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in a thread to its end, whoever is cancelled.

        What cancels the caller meanwhile waits for `raise_cancellation`, or for the caller's next
        checkpoint, as after `unbroken`.
        """
        ...

    def team(self, size: int) -> Team:
        """Return workers that run up to *size* coroutines at a time beside the caller."""
        ...


class Team(Protocol):
    """Workers beside the one that opened the team, and the state that they share."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Guards shared state. The same worker may acquire it twice."""
        ...

    async def open(self) -> None:
        """Start the workers. If this raises, none of them is left running."""
        ...

    def start(self, work: Work, *, paid: bool = False) -> None:
        """Run *work* beside the caller. It must handle its own errors, except a cancellation.

        Args:
            work: An async function. A `BaseException` such as Ctrl-C may end the team.
            paid: Whether `close` waits for it to end, however long it takes.
        """
        ...

    async def run(self, work: Work) -> None:
        """Run *work* beside the caller and wait for it to end. Do not hold the lock.

        Whatever interrupts the wait is raised unchanged, and *work* continues until `close`.
        """
        ...

    def notify(self) -> None:
        """Wake every waiting worker after a change of shared state. Hold the lock."""
        ...

    async def wait(self, until: float = FOREVER) -> None:
        """Release the lock until `notify` or *until* a moment. It may return early: check again."""
        ...

    async def close(self, error: BaseException | None) -> None:
        """End every worker: paid work finishes, other work is cancelled or abandoned.

        Whatever interrupts the wait is raised unchanged, and not in an exception group.

        Args:
            error: The exception that ends the team's use, or None.
        """
        ...
