"""`run_all`: a team over a fleet, whose outcomes a loop reads.

- The reader of the loop is none of the team, so outcomes settle while nobody reads. An outcome
  stays in place until the next one is requested: an interruption between the two loses nothing.
- Leaving the context stops the fleet first. Unpaid exchanges are then dropped, and paid ones are
  waited for, because only their responses have the ids.
- An exception of a listener, a signal handler or a defect is kept, and raised where the loop reads:
  a worker has no caller who could see it.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

import attrs

from muybridge.drivers.calls import check_entered
from muybridge.drivers.driver import Driver
from muybridge.drivers.fleet_run import FleetRun, Outcome
from muybridge.drivers.fleet_team import End, FleetTeam, Stopped
from muybridge.drivers.notes import TWIN_UNDER_WAY, BrokenOff, note_request
from muybridge.signals import ignoring_errors
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet import Dispatch
from muybridge_protocol.records.tasks import Task

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking, Books
    from muybridge_protocol.purchases.names import Dedupe


class AsyncOutcomes(FleetTeam):
    """The outcomes of a run as they settle; it lasts as long as the context.

        async with client.run_all(requests) as outcomes:
            async for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    Several tasks may read it; each outcome goes to one of them. A failed task is an outcome like
    any other. If the context is left early or cancelled, nothing more is sent. Paid requests in
    flight run to their response, so that their ids are known, and an exception that passes through
    lists in its notes what is still outstanding. An exception from a listener of the client ends
    the run and is raised by the loop.
    """

    def __init__(
        self,
        run: FleetRun,
        driver: Driver,
        workers: int,
        books: Books | None = None,
        *,
        dedupe: Dedupe = False,
    ) -> None:
        driver = driver if books is None else attrs.evolve(driver, books=books)
        super().__init__(driver, run.fleet, min(workers, len(run.fleet)))
        self._run = run
        self._dedupe: Dedupe = dedupe
        """Whether identical requests join one task."""
        self._handed_out = False
        self._entered = False
        self._over = False
        self._broken: BaseException | None = None

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have been accepted and have not ended."""
        with self._team.lock:
            return self._run.outstanding

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that have not been sent."""
        with self._team.lock:
            return self._run.unsent

    @property
    def unread(self) -> list[Outcome]:
        """The outcomes that the loop has not received."""
        with self._team.lock:
            return list(self._run.settled)[self._handed_out :]

    async def __aenter__(self) -> Self:
        self._entered = True
        try:
            await self._team.open()
            self._team.start(self._schedule)
        except BaseException as error:  # no thread can be started, or Ctrl-C was pressed
            await self._end(error)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            try:
                self._runtime.now()
            except RuntimeError:  # the event loop is gone, and with it the team
                return
        await self._end(error)

    def __aiter__(self) -> Self:
        check_entered("async with", entered=self._entered)
        return self

    async def __anext__(self) -> Outcome:
        check_entered("async with", entered=self._entered)
        with self._team.lock:
            self._put_by()
            await self._runtime.checkpoint()
            # Several tasks may read one run: another has perhaps received the first one meanwhile.
            self._put_by()
            while not (self._run.settled or self._over or self._broken):
                await self._team.wait()
                self._put_by()
            if self._broken is not None:
                raise self._broken
            if not self._run.settled:
                raise StopAsyncIteration
            # It stays in place until the next one is requested, so that no interruption
            # can come between it and the loop.
            self._handed_out = True
            return self._run.settled[0]

    async def _end(self, error: BaseException | None) -> None:
        """Send nothing more, wait for paid responses, and note with *error* what is outstanding."""
        with self._team.lock:
            if error is None:
                self._put_by()
        try:
            await self._close(error)
        except BaseException as late:
            error = late
            raise
        finally:
            with self._team.lock:
                self._settle_rest()
                self._run.leave()
            if error is not None:
                self._leave_note(error)

    def _settle(self, end: Outcome) -> None:
        self._run.settle(end)
        self._team.notify()

    def _settle_rest(self) -> None:
        """Settle what has ended since the scheduler stopped."""
        while (end := self._fleet.take_outcome()) is not None:
            with ignoring_errors():  # of a listener: the other outcomes matter more
                self._settle(end)

    def _put_by(self) -> None:
        """Drop the outcome that was handed out last: the loop is done with it."""
        if self._handed_out:
            self._handed_out = False
            self._run.settled.popleft()

    def _leave_note(self, error: BaseException) -> None:
        with self._team.lock:
            note = self._run.note()
        if note is not None:
            error.add_note(note)

    async def _schedule(self) -> None:
        with self._team.lock:
            try:
                while await self._advance():
                    pass
            except Exception as error:  # noqa: BLE001  the loop raises it
                self._broken = error
            self._over = True
            self._team.notify()

    async def _before(self, dispatch: Dispatch[int]) -> Booking | None:
        joins = self._dedupe and dispatch.request.paid
        booking = await self._join(dispatch) if joins else None
        with self._team.lock:
            try:
                if booking is None:
                    create = self._fleet.operation_of(dispatch.ticket)
                    booking = self._driver.booking(create, self._run.tags_of(dispatch.key))
                self._run.sending(dispatch, self._runtime.now(), booking)
            except BaseException as error:
                self._break_off(error)  # a listener's; the loop raises it
                raise Stopped from error
        return booking

    async def _after(self, dispatch: Dispatch[int], booking: Booking | None, end: End) -> None:
        # The store hears of it last, so that nothing that goes wrong there keeps a paid id from its
        # owner. It hears of it even if a listener raises.
        try:
            self._take_end(dispatch, end)
        finally:
            if booking is not None:
                booking.judge(end, self._runtime.now())
                await booking.record()
        if isinstance(end, BrokenOff) and not isinstance(end.error, Exception):
            raise end.error

    async def _join(self, dispatch: Dispatch[int]) -> Booking:
        """Return what books a create.

        Raises:
            Stopped: It is not sent now: an identical one was.
        """
        from muybridge.purchases.booking import Booking
        from muybridge.purchases.joining import join

        with self._team.lock:
            create = self._fleet.operation_of(dispatch.ticket)
        try:
            end = await join(
                self._driver, create, self._run.tags_of(dispatch.key), dedupe=self._dedupe
            )
        except BaseException as error:
            with self._team.lock:
                self._fleet.fail(dispatch.ticket, TWIN_UNDER_WAY, self._runtime.now())
                if not isinstance(error, self._runtime.cancelled):
                    self._break_off(error)
                self._team.notify()
            if isinstance(error, Exception):
                raise Stopped from error
            raise
        if isinstance(end, Booking):
            return end
        with self._team.lock:
            try:
                self._run.join(dispatch, end, self._runtime.now())
            except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
                self._break_off(error)
            self._team.notify()
        raise Stopped

    def _take_end(self, dispatch: Dispatch[int], end: End) -> None:
        cancelled = isinstance(end, BrokenOff) and isinstance(end.error, self._runtime.cancelled)
        with self._team.lock:
            # What is paid counts to the end, although a second Ctrl-C has left the run.
            if dispatch.request.paid or not (self._left or cancelled):
                self._take(dispatch, end)

    def _take(self, dispatch: Dispatch[int], end: End) -> None:
        if isinstance(end, BrokenOff):
            note_request(end, dispatch.request)
            if not isinstance(end.error, self._runtime.cancelled):
                self._break_off(end.error)  # from a defect or a signal handler; the loop raises it
        now = self._runtime.now()
        try:
            if end is TWIN_UNDER_WAY:
                self._run.join(dispatch, TWIN_UNDER_WAY, now)
            else:
                self._run.take(dispatch, end, now)
        except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
            self._break_off(error)
        self._team.notify()

    def _break_off(self, error: BaseException) -> None:
        self._broken = self._broken or error
        self._fleet.stop()
        self._team.notify()
