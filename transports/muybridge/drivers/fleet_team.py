"""One team over a fleet, for `run_all`, for batches and for their workers.

One worker schedules: it asks the fleet for its next action, and starts a worker for each request. A
worker does one exchange, lets the fleet take its end, and wakes the scheduler. All of it happens
under the team's lock, except the exchanges themselves and whatever waits for a store.

A subclass says what its work is, in three hooks:

- `_before` a request is sent, a create may join an identical one, is booked, and is announced.
- `_after` the exchange, its end goes to the fleet and to the store. `run_all` tells the fleet
  first: its caller has nothing but the outcome, so no slow disk may come between a paid id and its
  user. A batch tells the store first: whoever resumes it reads the store, so nobody hears of
  anything that is not there.
- `_settle` takes the end of each operation: an outcome for a loop, or a result to download.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from muybridge.drivers.driver import Driver
from muybridge.drivers.listeners import SilentTracker
from muybridge.drivers.notes import BrokenOff, accepted
from muybridge.drivers.runtime import FOREVER, Work
from muybridge_protocol.events import Event
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet, FleetOutcome
from muybridge_protocol.http import HttpResponse, TransportFailure
from muybridge_protocol.operations import Wait
from muybridge_protocol.records.candidates import find_id, holds_task
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking

End = HttpResponse | TransportFailure | BrokenOff
"""How an exchange has ended."""


class Stopped(Exception):
    """A piece of work goes no further now. Whoever stops it sees to what follows."""


class FleetTeam:
    """Workers that do what a fleet asks for.

    Args:
        driver: The client's.
        fleet: What to do.
        workers: Most exchanges at once.
    """

    def __init__(self, driver: Driver, fleet: Fleet[int], workers: int) -> None:
        self._driver = driver
        self._runtime = driver.runtime
        self._fleet = fleet
        self._team = driver.runtime.team(workers + 1)  # one more schedules
        self._left = False
        """Whether it is closed. A second signal may have left a worker behind, which continues."""

    async def _before(self, dispatch: Dispatch[int]) -> Booking | None:
        """Do what comes before a request is sent, and return what books it, if it is paid.

        Raises:
            Stopped: It is not sent now.
        """
        raise NotImplementedError

    async def _after(self, dispatch: Dispatch[int], booking: Booking | None, end: End) -> None:
        """Take the *end* of an exchange. Nothing may be awaited before a paid id is safe."""
        raise NotImplementedError

    def _settle(self, end: FleetOutcome[int]) -> None:
        """Take the end of an operation. The lock is held."""
        raise NotImplementedError

    def _start(self, job: Work, *, paid: bool) -> None:
        """Let a worker do *job*."""
        self._team.start(job, paid=paid)

    async def _wait(self, until: float = FOREVER) -> None:
        """Wait for a worker of the team, or *until* a moment. Hold the lock."""
        await self._team.wait(until)

    async def _advance(self) -> bool:
        """Do what the fleet asks for, and return whether it has anything left. Hold the lock."""
        match self._fleet.next_action(self._runtime.now()):
            case Dispatch() as dispatch:
                self._start(partial(self._exchange, dispatch), paid=dispatch.request.paid)
            case FleetOutcome() as outcome:
                self._settle(outcome)
            case Wait(until):
                await self._wait(until)
            case Busy():
                await self._wait()
            case Done():
                return False
        return True

    async def _exchange(self, dispatch: Dispatch[int]) -> None:
        try:
            booking = await self._before(dispatch)
        except Stopped:
            return
        end = await self._driver.exchange(dispatch.request, dispatch.deadline, booking)
        await self._after(dispatch, booking, end)

    async def _close(self, error: BaseException | None) -> None:
        """Send nothing more, wait for the responses to paid requests, and drop everything else.

        Args:
            error: The exception that ends the team's use, or None.
        """
        with self._team.lock:
            self._fleet.stop()
            self._team.notify()
        try:
            await self._team.close(error)
        finally:
            with self._team.lock:
                self._left = True


def take_end(
    fleet: Fleet[int], tracker: SilentTracker, dispatch: Dispatch[int], end: End, now: float
) -> tuple[Event, ...]:
    """Let *fleet* take the end of an exchange, and return the events, for `SilentTracker.tell_end`.

    So the fleet hears of it before any listener does: one that raises loses no id.

    Args:
        fleet: Where it was dispatched.
        tracker: That of its call.
        dispatch: What was sent.
        end: How it has ended.
        now: Seconds on the driver's clock.

    Raises:
        BaseException: From a signal handler.
    """
    if isinstance(end, HttpResponse):
        tracker.responded(end, now)
        try:
            return fleet.receive(dispatch.ticket, end, now)
        except BaseException as error:  # a signal handler's, which may leave the fleet half-way
            name = find_id(end.body) if holds_task(end.body) else None
            if dispatch.request.paid and name is not None:
                error.add_note(accepted(Task(id=name)))
            raise
    failure = end.failure if isinstance(end, BrokenOff) else end
    tracker.failed(failure, now)
    return fleet.fail(dispatch.ticket, failure, now)
