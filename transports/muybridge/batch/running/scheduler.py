"""A batch at work: a team over a fleet, with the store kept around all that it does.

The worker that schedules also takes items from the batch, and starts a worker for each download. An
item that waits, for its turn or for its next poll, holds nothing but its place in the fleet.

Downloads run beside the fleet, not on it: they go to another host, without the key, in pieces that
are written as they arrive, and the service's rate limits do not apply to them. They share the
workers with the exchanges, so the bound on both together is one number.

A paid request is armed in the store before it goes to the transport. Its response is in a side file
on the disk before anything reads it, and its outcome is in the store before the fleet takes it and
before anyone is told. Nothing is awaited between the response and the side file, so no cancellation
can come between the two.

The team's lock is never held while the store is used. So what many workers record at the same
moment is one transaction (`muybridge.purchases.lists`).

There are two kinds of failure. A defect that interrupts an exchange, an unusable store, or an
exception from a signal handler or a listener ends the run, because the next item would meet it
too; `Run.error` keeps the first one. Everything else concerns one item, which is set aside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import attrs

from muybridge.base_client import DrivenClient
from muybridge.batch.events import What
from muybridge.batch.items.entry import label_of_item
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.batch.results.sheet.thumbnails import FOLDER as THUMBNAILS
from muybridge.batch.results.sheet.thumbnails import make_thumbnail, thumbnail_name
from muybridge.batch.results.sidecars import report_missing, write_sidecar_of
from muybridge.batch.running.creates import ItemBooking, response_of
from muybridge.batch.running.item_work import ItemWork, Step
from muybridge.batch.running.notes import HOW_TO_GO_ON
from muybridge.batch.running.recovery import recover
from muybridge.batch.running.run_state import Run
from muybridge.batch.storable_values import one_line
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.fleet_team import End, FleetTeam, Stopped, take_end
from muybridge.drivers.notes import TWIN_UNDER_WAY, BrokenOff, note_request
from muybridge.drivers.runtime import FOREVER, Work
from muybridge.files.durable import make_folders
from muybridge.purchases.booking import Booking
from muybridge.purchases.errors import Lost, StoreUnusable
from muybridge.purchases.items import armed_item
from muybridge.signals import HeldInterrupt, genuine, hold_interrupts, ignoring_errors
from muybridge_protocol.delivery import concerns_every_request
from muybridge_protocol.errors import (
    InvalidAddress,
    MuybridgeError,
    ResultExpired,
    ServiceError,
    TaskFailed,
)
from muybridge_protocol.events import Event, Submitted
from muybridge_protocol.fleet import Dispatch, FleetOutcome
from muybridge_protocol.http import TransportFailure
from muybridge_protocol.operations import Create
from muybridge_protocol.operations.defaults import CONNECTIONS
from muybridge_protocol.purchases import UNKNOWN_END, Outcome, Purchase, Stage, State
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.remedies import in_records

INCOMING: Final = "incoming"
"""The folder for unfinished downloads."""
_PAUSE: Final = 1.0
"""Seconds until a run looks again for a purchase that another process is sending."""
Job = Callable[[], Coroutine[Any, Any, None]]


class Scheduler(FleetTeam):
    """The work on the items of a batch.

    Args:
        calls: The client's.
        driver: The client's, with the books of the batch's store.
        run: What the items share.
    """

    def __init__(self, calls: Calls, driver: Driver, run: Run) -> None:
        self._most = min(run.workers, CONNECTIONS)  # exchanges and downloads at once
        fleet = calls.fleet(
            now=driver.runtime.now(),
            wall=driver.runtime.wall(),
            concurrency=max(1, run.workers),
            connections=max(1, self._most),
            wait=run.settings.timeout,
            shares_rate=run.shares_rate,
        )
        super().__init__(driver, fleet, self._most)
        self._calls = calls
        self._run = run
        run.lock = self._team.lock
        self._slots = [run.runner.new_slot() for _ in range(run.workers)]
        self._items: dict[int, ItemWork] = {}
        self._ended: deque[tuple[ItemWork, Result | Task | ServiceError]] = deque()
        """Items whose tasks have ended, or whose results are to be saved."""
        self._under_way = 0
        self._may_take = True
        """Whether the batch may have an item that nobody works on."""
        self._is_last_look = False
        """Whether nobody was sending what items have joined, when they were last looked for."""
        run.leave = self._leave

    async def work(self) -> None:
        """Work until this run can do nothing more, or has to stop."""
        error: BaseException | None = None
        try:
            await self._team.open()
            await self._team.run(self._schedule)
        except BaseException as broken:
            error = broken
            raise
        finally:
            await self._end(error)
            if error is not None and not isinstance(error, self._runtime.cancelled):
                error.add_note(HOW_TO_GO_ON)

    async def _end(self, error: BaseException | None) -> None:
        """Wait for the responses to paid requests, and abandon everything else."""
        self._run.stopping = True
        try:
            await self._close(error)
        finally:
            for work in self._items.values():
                work.tracker.end(GeneratorExit())

    def _leave(self) -> None:
        """Give every item back that this run has not finished.

        Raises:
            StoreUnusable: They cannot be given back.
        """
        works = [*self._items.values()]
        for work in works:
            if work.is_sending:  # a second signal has left its exchange behind
                assert work.armed is not None  # noqa: S101  it was announced
                self._run.left_behind = True
                self._run.batch.store.conclude(work.armed, UNKNOWN_END)
            elif work.armed is not None and work.find_outcome is not None:
                self._record(work, work.armed, work.find_outcome())
        steps = [(work, work.left()) for work in works if work.armed is None]
        self._run.batch.release((work.item, *step) for work, step in steps if step is not None)

    async def _schedule(self) -> None:
        try:
            while not self._run.stopping and await self._step():
                self._run.stopping |= self._runtime.now() >= self._run.ends_at
        except BaseException as error:
            self._run.stopping = True
            if isinstance(error, self._runtime.cancelled):
                raise
            self._run.fail(error)

    async def _step(self) -> bool:
        """Do the next thing, and return whether something is left to do."""
        if self._may_take and self._slots:
            await self._take_items()
            return True
        await self._acquire_permits()
        with self._team.lock:
            if self._items:
                await self._go_on()
                return True
            # The last item in progress may just have ended, and made room.
            if self._may_take and self._slots:
                return True
        return self._run.settings.dedupe and await self._wait_for_others()

    async def _go_on(self) -> None:
        """Do the next thing for the items in progress."""
        if self._under_way >= self._most:
            await self._wait()
        elif self._ended:
            self._start(partial(self._finish_task, *self._ended.popleft()))
        elif not await self._advance():
            await self._wait()

    async def _wait_for_others(self) -> bool:
        """Wait while another process sends what items have joined. Return whether to look again."""
        batch = self._run.batch
        if not await self._runtime.in_thread(lambda: batch.waits_for_others):
            # They may have gone on just before.
            self._may_take, self._is_last_look = not self._is_last_look, True
            return self._may_take
        with self._team.lock:
            await self._wait(self._runtime.now() + _PAUSE)
            self._may_take = True
        but = self._run.runner.name
        await self._runtime.in_thread(partial(recover, batch, self._run.place, but=but))
        return True

    async def _take_items(self) -> None:
        """Start work on the next items of the batch, if there are any."""
        await self._runtime.checkpoint()  # others run first, because this waits for the disk
        with self._team.lock:
            self._may_take = False
            most, working = len(self._slots), {*self._items}
            creating = sum(work.task is None for work in self._items.values())
        items = await self._runtime.in_thread(partial(self._run.take, most, creating, working))
        self._is_last_look &= not items
        for item, purchase in items:
            with self._team.lock:
                work = ItemWork(
                    self._run,
                    item,
                    purchase,
                    self._slots.pop(),
                    self._driver.listeners,
                    self._driver.tags,
                )
                self._items[item.number] = work
            await self._about(work, partial(self._begin, work))
        # As many as were asked for: there may be more.
        if len(items) >= most:
            self._may_take = True

    async def _begin(self, work: ItemWork) -> None:
        with self._team.lock:
            source = work.begin(self._runtime.now)
            if isinstance(source, Task) and work.item.stage is Stage.COMPLETED:
                self._ended.append((work, source))
            else:
                self._fleet.add(work.item.number, source, self._runtime.now())

    def _settle(self, end: FleetOutcome[int]) -> None:
        self._ended.append((self._items[end.key], end.outcome))

    async def _wait(self, until: float = FOREVER) -> None:
        await super()._wait(min(until, self._run.ends_at))

    async def _acquire_permits(self) -> None:
        """Get permits for the fleet, if it needs some."""
        with self._team.lock:
            wanted = self._fleet.wanted_permits(self._runtime.now())
        if not wanted:
            return
        permits = await self._runtime.in_thread(partial(self._run.batch.acquire_permits, wanted))
        now = self._runtime.now()  # the store may have taken a while
        with self._team.lock:
            at, interval = now + permits.after, permits.interval
            self._fleet.allow(permits.count, now, at=at, interval=interval)

    async def _tell_pause(self, before: float) -> None:
        """Tell the other workers if the service has asked to slow down.

        Args:
            before: Until when nothing was to be sent before the response.
        """
        until, now = self._fleet.paused_until, self._runtime.now()
        if self._run.shares_rate and until > max(before, now):
            pause = partial(self._run.batch.throttle, until - now)
            await self._runtime.finish_in_thread(pause)

    # Exchanges

    async def _exchange(self, dispatch: Dispatch[int]) -> None:
        # Ctrl-C waits for the response to a paid request.
        held: HeldInterrupt | None = None
        exchange = partial(super()._exchange, dispatch)
        try:
            with hold_interrupts(when=dispatch.request.paid) as held:
                await self._about(self._items[dispatch.key], exchange)
        finally:
            if held is not None and held.seen:
                self._run.fail(held.interrupt())

    async def _before(self, dispatch: Dispatch[int]) -> ItemBooking | None:
        work = self._items[dispatch.key]
        if not dispatch.request.paid:
            with self._team.lock:
                work.tracker.sending(dispatch.request)
            return None
        with self._team.lock:
            create = self._fleet.operation_of(dispatch.ticket)
        assert isinstance(create, Create)  # noqa: S101  nothing else is paid
        books = self._driver.books
        assert books is not None  # noqa: S101  a batch has a store
        booking = ItemBooking(
            books,
            create,
            self._runtime,
            batch=self._run.batch,
            item=work.item,
            runner=self._run.runner,
            dedupe=self._run.settings.dedupe,
        )
        if booking.name is not None and await self._has_joined(work, booking):
            raise Stopped
        with self._team.lock:
            work.sending(dispatch.request)
            work.armed, work.is_sending = booking.key, True
        return booking

    async def _after(self, dispatch: Dispatch[int], booking: Booking | None, end: End) -> None:
        work = self._items[dispatch.key]
        if not isinstance(booking, ItemBooking):
            await self._polled(work, dispatch, end)
            return
        work.is_sending = False
        work.find_outcome = partial(booking.outcome_of, end, self._runtime.now())
        if not booking.is_armed:
            work.armed, work.find_outcome = None, None
            await self._not_armed(work, dispatch, booking, end)
        else:
            await self._conclude(work, dispatch, booking, end)

    async def _polled(self, work: ItemWork, dispatch: Dispatch[int], end: End) -> None:
        """Let the fleet take the end of a query."""
        if isinstance(end, BrokenOff):
            raise end.error
        with self._team.lock:
            if self._left:
                return
            before = self._fleet.paused_until
            _, outcome = self._take(work, dispatch, end)
            if outcome is not None:
                self._settle(outcome)
            self._team.notify()
        await self._tell_pause(before)

    async def _has_joined(self, work: ItemWork, booking: ItemBooking) -> bool:
        """Let an item join the purchase of an identical request, if there is one."""
        books, name, digest = self._driver.books, booking.name, booking.digest
        assert books is not None  # noqa: S101  a batch has a store
        assert name is not None  # noqa: S101  identical requests share it
        assert digest is not None  # noqa: S101  the same
        while True:
            purchase = await self._runtime.in_thread(partial(books.named, name, digest))
            if purchase is None:
                return False
            try:
                join = partial(self._run.batch.store.join, work.item, purchase.key)
                await self._runtime.in_thread(join)
            except Lost:
                item = await self._runtime.in_thread(
                    partial(self._run.batch.item, work.item.number)
                )
                if (item.stage, item.owner) != (work.item.stage, work.item.owner):
                    raise
                continue  # the purchase has just lost its name
            with self._team.lock:
                # It goes on when the purchase does, without a place in the fleet.
                work.tracker.end(GeneratorExit())
                if not self._left:
                    self._finish(work)
            return True

    async def _not_armed(
        self, work: ItemWork, dispatch: Dispatch[int], booking: ItemBooking, end: End
    ) -> None:
        """Take why a create was not sent: a name, a budget, or a store that cannot be used."""
        if isinstance(end, BrokenOff):
            note_request(end, dispatch.request)
            raise end.error
        if end is TWIN_UNDER_WAY:
            work.tracker.failed(TWIN_UNDER_WAY, self._runtime.now())
            work.tracker.tell_end(())
            if await self._has_joined(work, booking):
                return
        assert isinstance(end, TransportFailure)  # noqa: S101  nothing was sent
        with self._team.lock:
            if self._left:
                return
            if end is TWIN_UNDER_WAY:  # whose name is free again
                now = self._runtime.now()
                self._fleet.postpone(dispatch.ticket, now, now)
                return
            _, outcome = self._take(work, dispatch, end)
        if outcome is not None and outcome.error is not None:
            await self._left_queued(work, outcome.error, booking)

    async def _left_queued(self, work: ItemWork, error: ServiceError, booking: ItemBooking) -> None:
        """Leave an item that was not sent to a later run."""
        reason = one_line(error.describe(in_records))
        await self._move(work, (Stage.QUEUED, {"owner": None, "reason": reason}))
        with self._team.lock:
            if self._left:
                return
            work.tracker.end(error)
            exceeded = booking.exceeded
            if exceeded is not None and exceeded.is_unknown:  # others may fit
                self._run.miss_amount(work.item, reason)
                self._run.postpone(work.item, reason)
            else:
                self._run.postpone(work.item, error)
            self._finish(work)

    async def _conclude(
        self, work: ItemWork, dispatch: Dispatch[int], booking: ItemBooking, end: End
    ) -> None:
        """Record the outcome of a create, and let the fleet take it."""
        response = response_of(booking.key, end)
        is_kept = response is None
        if response is not None:
            with ignoring_errors(OSError):
                # The store alone may do. Only if that fails too is the response nowhere but in
                # memory.
                work.slot.keep(response)
                is_kept = True
        outcome = booking.outcome_of(end, self._runtime.now())
        try:
            purchase = await booking.conclude(outcome)
        except StoreUnusable as error:
            if response is not None and not is_kept:
                # Nothing is left to write to, so the error shows it.
                candidate = find_id(response.body)
                task = "" if candidate is None else f" (task {candidate})"
                error.add_note(
                    f"The response to {label_of_item(work.item)}{task} was: "
                    f"{response.body[:1000]!r}"
                )
            if isinstance(end, BrokenOff):  # only one of the two can be raised
                note_request(end, dispatch.request)
                end.error.add_note(f"{type(error).__name__} besides: {error}")
                if isinstance(end.error, self._runtime.cancelled):
                    raise end.error from None
                self._run.fail(end.error)
                return
            raise
        except genuine(Exception) as error:  # a value of this outcome cannot be recorded
            outcome = booking.without_meaning(end, error)
            work.find_outcome = lambda: outcome
            purchase = await booking.conclude(outcome)
        # Only now that the store has the outcome.
        work.slot.clear()
        before = self._fleet.paused_until
        try:
            if await self._is_ours(work, booking, purchase, outcome):
                with self._team.lock:
                    if not self._left:
                        self._take_created(work, dispatch, end, purchase)
        finally:
            if isinstance(end, BrokenOff):
                note_request(end, dispatch.request)
                if not isinstance(end.error, self._runtime.cancelled):
                    self._run.fail(end.error)
        if isinstance(end, BrokenOff) and isinstance(end.error, self._runtime.cancelled):
            raise end.error
        await self._tell_pause(before)

    async def _is_ours(
        self, work: ItemWork, booking: ItemBooking, purchase: Purchase, outcome: Outcome
    ) -> bool:
        """Take the item after its purchase, and return whether it is this run's.

        Where owners live on leases, another worker may have been given it meanwhile.
        """
        armed = armed_item(work.item, self._run.batch.owner, booking.key)
        assert armed is not None  # noqa: S101  it was armed
        work.concluded(armed, purchase, outcome)
        if not self._run.batch.store.database.leases or work.item.owner is None:
            return True
        item = await self._runtime.finish_in_thread(partial(self._run.batch.item, work.item.number))
        if (item.stage, item.owner) != (work.item.stage, work.item.owner):
            raise Lost(f"{label_of_item(item)} is another worker's")
        return True

    def _take_created(
        self,
        work: ItemWork,
        dispatch: Dispatch[int],
        end: End,
        purchase: Purchase,
    ) -> None:
        """Let the fleet take the outcome of a create, which is recorded."""
        events, outcome = self._take(work, dispatch, end)
        task = next((event.task for event in events if isinstance(event, Submitted)), None)
        if purchase.state is State.AMBIGUOUS and task is not None:
            # Another purchase has this task, or it cannot be recorded.
            self._finish_unknown(work, purchase.reason or "")
            return
        error = None if outcome is None else outcome.error
        if self._run.settings.creates is not None or self._run.settings.dedupe:
            self._may_take = True  # another create has room, or an item that has joined goes on
        if task is not None:
            work.submitted(task, self._runtime.now)
            if outcome is not None:
                self._ended.append((work, outcome.outcome))
        elif error is not None and concerns_every_request(error):
            work.tracker.end(error)
            self._run.postpone(work.item, error)
            self._finish(work)
        elif error is not None:
            work.not_created(error)
            self._finish(work)
        self._team.notify()

    def _finish_unknown(self, work: ItemWork, reason: str) -> None:
        work.tracker.end(GeneratorExit())
        self._run.event(work.item, What.AMBIGUOUS, reason)
        self._finish(work)

    def _take(
        self, work: ItemWork, dispatch: Dispatch[int], end: End
    ) -> tuple[tuple[Event, ...], FleetOutcome[int] | None]:
        """Let the fleet take the end of an exchange, and the listeners hear of it."""
        events = take_end(self._fleet, work.tracker, dispatch, end, self._runtime.now())
        outcome = self._fleet.take_outcome()  # now, because a listener may raise
        work.tracker.tell_end(events)
        return events, outcome

    # Ends of tasks

    async def _finish_task(self, work: ItemWork, outcome: Result | Task | ServiceError) -> None:
        """Save a result, or record that there is none."""
        await self._about(work, partial(self._save, work, outcome))

    async def _save(self, work: ItemWork, outcome: Result | Task | ServiceError) -> None:
        with self._team.lock:
            if not isinstance(outcome, Task):
                work.tracker.end(outcome)
            if isinstance(outcome, Result):
                work.completed(outcome, self._runtime.wall())
        match outcome:
            case TaskFailed() | ResultExpired() as error:
                await self._move(work, work.failed(error, self._runtime.wall()))
                with self._team.lock:
                    self._report_end(work, error)
            case ServiceError() as error:
                await self._move(work, work.postpone(error))
                with self._team.lock:
                    self._postpone(work, error)
            case source:
                await self._download(work, source)

    def _report_end(self, work: ItemWork, error: ServiceError) -> None:
        if not self._left:
            task = None if work.task is None else work.task.id
            self._run.event(work.item, What.FAILED, error.what(), task=task)
            self._finish(work)

    def _postpone(self, work: ItemWork, error: ServiceError | PlaceUnusable | str) -> None:
        if not self._left:
            self._run.postpone(work.item, error)
            self._finish(work)

    async def _download(self, work: ItemWork, source: Result | Task) -> None:
        """Download a result, and move the file to its final place."""
        incoming = self._run.place / INCOMING
        if self._run.settings.dedupe:  # others may download the same task at this moment
            incoming /= str(work.item.number)
        driver = attrs.evolve(self._driver, listeners=work.listeners)
        client = DrivenClient(self._calls, driver, owns_transport=False)
        try:
            make_folders(incoming)
            limit = self._run.settings.download_timeout
            saved = work.downloaded(incoming)
            if saved is None:
                saved = await client.download(source, incoming, timeout=limit)
            with self._team.lock:
                if self._left:
                    return
            placed = await self._runtime.in_thread(partial(work.place, saved))
        except genuine((InvalidAddress, ServiceError, PlaceUnusable, OSError)) as error:
            step, failure = work.not_saved(error)
            await self._move(work, step)
            with self._team.lock:
                self._postpone(work, failure)
            return
        await self._move(work, work.saved(placed))
        with ignoring_errors(OSError):  # only now: until here, another attempt would need it
            saved.unlink(missing_ok=True)
            if self._run.settings.dedupe:
                incoming.rmdir()
        await self._saved(work, placed)

    async def _saved(self, work: ItemWork, placed: Stored) -> None:
        """Report that a result is saved, and write its thumbnail, and its sidecar if wanted."""
        number = work.item.number
        with self._team.lock:
            if self._left:
                return
            work.report_saved(placed)
        # Results on many machines have no contact sheet.
        if placed.path is not None and self._run.has_sheet:
            thumbnail = self._run.place / THUMBNAILS / thumbnail_name(number)
            make = partial(make_thumbnail, placed.path, thumbnail)
            await self._runtime.in_thread(make)
        if self._run.settings.sidecar:
            await self._write_sidecar(number)
        with self._team.lock:
            if not self._left:
                self._finish(work)

    async def _write_sidecar(self, number: int) -> None:
        entry = await self._runtime.in_thread(partial(self._run.batch.entry, number))
        write = partial(write_sidecar_of, self._run.batch, entry, self._run.folder)
        failure = await self._runtime.in_thread(write)
        if failure is not None:
            with self._team.lock:
                report_missing(self._run, entry, failure)

    async def _move(self, work: ItemWork, step: Step) -> None:
        """Record a step of an item."""
        after, facts = step
        move = partial(self._run.batch.move, work.item, after, **facts)
        work.item = await self._runtime.finish_in_thread(move)

    # What goes wrong

    async def _about(self, work: ItemWork, job: Job) -> None:
        """Do what concerns *work*. Set it aside if that fails, or end the run if others would."""
        try:
            try:
                await job()
            except (Stopped, StoreUnusable, Lost):
                raise
            except genuine(Exception) as error:
                await self._set_aside(work, error)
        except Stopped:
            pass
        except Lost:
            with self._team.lock:
                self._run.tried.add(work.item.number)
                if not self._left and self._items.get(work.item.number) is work:
                    # It was never this run's to send, so it does not count against the limit.
                    self._run.sent -= work.task is None
                    self._finish(work)
        except BaseException as error:
            if isinstance(error, self._runtime.cancelled):
                raise
            self._run.fail(error)

    async def _set_aside(self, work: ItemWork, error: Exception) -> None:
        """Give an item back because of *error*: a later run or a person continues it."""
        kind = "" if isinstance(error, MuybridgeError) else f"{type(error).__name__}: "
        reason = one_line(f"it cannot be saved, recorded or shown: {kind}{error}")
        is_unknown = False
        if work.armed is not None:
            unknown = Outcome(state=State.AMBIGUOUS, reason=reason)
            outcome = unknown if work.find_outcome is None else work.find_outcome()
            await self._runtime.finish_in_thread(partial(self._record, work, work.armed, outcome))
            is_unknown = work.item.stage is Stage.AMBIGUOUS
        if not is_unknown and (step := work.set_aside()) is not None:
            after, facts = step
            await self._move(work, (after, {**facts, "reason": reason, "owner": None}))
        with self._team.lock:
            if self._left:
                return
            is_unknown |= work.item.stage is Stage.AMBIGUOUS
            if is_unknown:
                self._finish_unknown(work, reason)
            else:
                self._postpone(work, reason)

    def _record(self, work: ItemWork, key: str, outcome: Outcome) -> None:
        """Record what the create of an item has led to, where its own exchange could not."""
        armed = armed_item(work.item, self._run.batch.owner, key)
        assert armed is not None  # noqa: S101  it was armed
        work.concluded(armed, self._run.batch.store.conclude(key, outcome), outcome)

    def _finish(self, work: ItemWork) -> None:
        """Stop work on an item for this run."""
        self._fleet.drop(work.item.number)
        del self._items[work.item.number]
        self._slots.append(work.slot)
        self._may_take = True
        self._team.notify()

    def _start(self, job: Work, *, paid: bool = False) -> None:
        self._under_way += 1
        super()._start(partial(self._counted, job), paid=paid)

    async def _counted(self, job: Work) -> None:
        try:
            await job()
        finally:
            with self._team.lock:
                self._under_way -= 1
                self._team.notify()
