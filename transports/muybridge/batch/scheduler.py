"""A batch at work: many items on one `Fleet`, with the journal kept around all that they do.

It is written once, for every way to run code: it awaits nothing but a transport and the port in
`muybridge.drivers.runtime`. One worker schedules: it takes items from the journal, asks the fleet
what to send next, and starts a worker for each exchange and each download. An item that waits,
for its turn or for its next poll, holds nothing but its place in the fleet.

Downloads run beside the fleet, not on it: they go to another host, without the key, in pieces that
are written as they arrive, and the service's rate limits do not apply to them. They share the
workers with the exchanges, so the bound on both together is one number.

The journal is written around the fleet's decisions. A paid request is armed in the journal before
it goes to the transport. Its response is in the journal before the fleet reads it, and the outcome
before anyone is told. Nothing is awaited between the response and the journal, so no cancellation
can come between the two.

There are two kinds of failure. A defect that interrupts an exchange, an unusable journal, or an
exception from a signal handler or a listener ends the run, because the next item would meet it
too; `Run.error` keeps the first one. Everything else concerns one item, which is set aside.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from muybridge.base_client import DrivenClient
from muybridge.batch.item_work import ItemWork
from muybridge.batch.journal_entries import Entry, NewItem, State
from muybridge.batch.journal_errors import ClaimLost, JournalUnusable, OverBudget, UnknownAmount
from muybridge.batch.opening import HOW_TO_GO_ON
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.batch.results.sheet.thumbnails import FOLDER as THUMBNAILS
from muybridge.batch.results.sheet.thumbnails import make_thumbnail, thumbnail_name
from muybridge.batch.results.sidecars import report_missing, write_sidecar_of
from muybridge.batch.run_state import Run, Stopped
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Driver
from muybridge.drivers.notes import TWIN_UNDER_WAY, BrokenOff, note_request
from muybridge.drivers.pauses import paused, seconds_awake_or_asleep
from muybridge.drivers.runtime import FOREVER, Work
from muybridge.files.durable import make_folders
from muybridge.signals import (
    HeldInterrupt,
    genuine,
    hold_interrupts,
    ignoring_errors,
)
from muybridge_protocol.errors import CreateAmbiguous, InvalidAddress, ServiceError
from muybridge_protocol.errors import OverBudget as NothingLeft
from muybridge_protocol.events import Submitted
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet, FleetOutcome
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Wait
from muybridge_protocol.operations.defaults import CONNECTIONS
from muybridge_protocol.records.json import read_object
from muybridge_protocol.records.tasks import Result, Task

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking

INCOMING: Final = "incoming"
"""The folder for unfinished downloads."""


class Scheduler:
    """The work on the items of a batch.

    Args:
        calls: The client's.
        driver: The client's.
        run: What the items share.
    """

    def __init__(self, calls: Calls, driver: Driver, run: Run) -> None:
        runtime = driver.runtime
        now = runtime.now()
        self._calls = calls
        self._driver = driver
        self._run = run
        self._most = min(run.workers, CONNECTIONS)  # exchanges and downloads at once
        self._team = runtime.team(self._most + 1)  # one more schedules
        run.lock = self._team.lock
        self._slots = [run.runner.new_slot() for _ in range(run.workers)]
        self._items: dict[int, ItemWork] = {}
        self._to_save: deque[tuple[ItemWork, Result | Task]] = deque()
        self._under_way = 0
        self._may_take = True
        """Whether the journal may hold an item that no runner works on."""
        self._left = False
        """Whether the journal is released, so that a late worker must not touch it."""
        self._fleet: Fleet[int] = Fleet(
            calls.service,
            wall_offset=runtime.wall() - now,
            seed=random.getrandbits(32),
            concurrency=max(1, run.workers),
            connections=max(1, self._most),
            timeout=calls.timeout,
            wait=run.settings.timeout,
            poll_interval=calls.poll_interval,
            next_polls=calls.next_polls,
            shares_rate=run.shares_rate,
        )

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
            if error is not None and not isinstance(error, self._driver.runtime.cancelled):
                error.add_note(HOW_TO_GO_ON)

    async def _end(self, error: BaseException | None) -> None:
        """Wait for the responses to paid requests, and abandon everything else."""
        self._run.stopping = True
        with self._team.lock:
            self._team.notify()
        try:
            await self._team.close(error)
        finally:
            with self._team.lock:
                self._left = True
            for work in self._items.values():
                work.tracker.end(GeneratorExit())

    async def _schedule(self) -> None:
        with self._team.lock:
            try:
                while not self._run.stopping and await self._step():
                    self._run.stopping |= self._driver.runtime.now() >= self._run.ends_at
            except BaseException as error:
                self._run.stopping = True
                if isinstance(error, self._driver.runtime.cancelled):
                    raise
                self._run.fail(error)

    async def _step(self) -> bool:
        """Do the next thing, and return whether something is left to do."""
        if self._may_take and self._slots:
            await self._take_item()
        elif not self._items:
            return False
        elif self._under_way >= self._most:
            await self._wait()
        elif self._to_save:
            work, source = self._to_save.popleft()
            self._start(partial(self._save, work, source))
        else:
            await self._advance()
        return True

    async def _take_item(self) -> None:
        """Start work on the next item of the journal, if there is one."""
        await self._driver.runtime.checkpoint()  # others run first, because this waits for the disk
        creating = sum(work.entry.token is None for work in self._items.values())
        entry = self._run.take(creating)
        if entry is None:
            self._may_take = False
            return
        work = ItemWork(self._run, entry, self._slots.pop(), self._driver.listeners)
        self._items[entry.number] = work
        with self._concerning(work):
            source = work.begin(self._driver.runtime.now)
            if isinstance(source, Task) and entry.state is State.COMPLETED:
                self._to_save.append((work, source))
            else:
                self._fleet.add(entry.number, source, self._driver.runtime.now())

    async def _advance(self) -> None:
        """Do what the fleet asks for."""
        self._acquire_permits()
        match self._fleet.next_action(self._driver.runtime.now()):
            case Dispatch() as sent:
                self._start(partial(self._exchange, sent), paid=sent.request.paid)
            case FleetOutcome(key=key) as ended:
                work = self._items[key]
                with self._concerning(work):
                    self._awaited(work, ended)
            case Wait(until):
                await self._wait(until)
            case Busy() | Done():
                await self._wait()

    async def _wait(self, until: float = FOREVER) -> None:
        """Wait for a worker of the team, for *until*, or for the end of the run."""
        await self._team.wait(min(until, self._run.ends_at))

    def _acquire_permits(self) -> None:
        """Get permits for the fleet, if it needs some."""
        wanted = self._fleet.wanted_permits(self._driver.runtime.now())
        if wanted:
            permits = self._run.journal.acquire_permits(wanted)
            now = self._driver.runtime.now()  # the journal may have taken a while
            at, interval = now + permits.after, permits.interval
            self._fleet.allow(permits.count, now, at=at, interval=interval)

    def _tell_pause(self, before: float) -> None:
        """Tell the other workers if the service has asked to slow down.

        Args:
            before: Until when nothing was to be sent before the response.
        """
        until, now = self._fleet.paused_until, self._driver.runtime.now()
        if self._run.shares_rate and until > max(before, now):
            self._run.journal.throttle(until - now)

    async def _exchange(self, sent: Dispatch[int]) -> None:
        """Send a request and take its outcome. Ctrl-C waits for the response to a paid one."""
        held: HeldInterrupt | None = None
        try:
            with hold_interrupts(when=sent.request.paid) as held:
                await self._send(sent)
        finally:
            if held is not None and held.seen:
                self._run.fail(held.interrupt())

    async def _send(self, sent: Dispatch[int]) -> None:
        work = self._items[sent.key]
        booking: Booking | None = None
        if self._run.settings.dedupe and sent.request.paid:
            booking = await self._join(work, sent)
            if booking is None:
                return
        with self._team.lock:
            if booking is None:
                booking = self._driver.booking(self._fleet.operation_of(sent.ticket))
            armed_at = seconds_awake_or_asleep()
            if not self._may_send(work, sent, booking):
                return
        take = partial(self._take_end, work, sent)
        withhold = partial(self._paused_since, armed_at) if sent.request.paid else None
        await self._driver.pass_on(sent.request, sent.deadline, booking, take, withhold)

    def _paused_since(self, armed_at: float, _: HttpRequest) -> TransportFailure | None:
        """Return a failure that nothing was sent, if this process was paused after arming."""
        passed = seconds_awake_or_asleep() - armed_at
        return paused(passed) if passed > self._run.journal.send_within else None

    async def _join(self, work: ItemWork, sent: Dispatch[int]) -> Booking | None:
        """Return what books a create, or None if it is not sent now: an identical one was."""
        from muybridge.purchases.booking import Booking
        from muybridge.purchases.joining import join, settle

        with self._team.lock:
            create = self._fleet.operation_of(sent.ticket)
        try:
            found = await join(self._driver, create)
        except BaseException as error:
            if isinstance(error, self._driver.runtime.cancelled):
                raise
            self._run.fail(error)
            return None
        if isinstance(found, Booking):
            return found
        with self._team.lock:
            if not self._left:
                with self._concerning(work):
                    settle(self._fleet, sent.ticket, found, self._driver.runtime.now())
                    self._joined(work, found)
        return None

    def _take_held(self, work: ItemWork, sent: Dispatch[int]) -> None:
        """Put a create off that was armed, and then found that an identical one is under way."""
        from muybridge.purchases.joining import settle

        now = self._driver.runtime.now()
        work.tracker.failed(TWIN_UNDER_WAY, now)
        work.tracker.tell_end(())
        work.record.conclude(None)
        settle(self._fleet, sent.ticket, TWIN_UNDER_WAY, now)
        self._joined(work, TWIN_UNDER_WAY)

    def _joined(self, work: ItemWork, found: Task | CreateAmbiguous | TransportFailure) -> None:
        """Take what an identical request has led to."""
        ended = self._fleet.take_outcome()
        if isinstance(found, Task):
            work.joined(found, self._driver.runtime.now)
            if ended is not None:
                self._awaited(work, ended)
        elif ended is not None:
            work.left_queued(f"an identical request was sent before: {ended.error}")
            self._finish(work)

    def _take_end(
        self,
        work: ItemWork,
        sent: Dispatch[int],
        came: HttpResponse | TransportFailure | BrokenOff,
    ) -> None:
        if sent.request.paid:  # before others let go of the lock: the journal may keep them waiting
            work.record.hold(came.failure if isinstance(came, BrokenOff) else came)
        with self._team.lock:
            if self._left:
                return
            with self._concerning(work):
                if isinstance(came, BrokenOff):
                    self._take_broken(work, sent, came)
                    return
                if came is TWIN_UNDER_WAY:
                    self._take_held(work, sent)
                    return
                before = self._fleet.paused_until
                self._take(work, sent, came)
                self._tell_pause(before)

    def _may_send(self, work: ItemWork, sent: Dispatch[int], booking: Booking | None) -> bool:
        """Tell that a request is about to be sent, and return whether to send it."""
        may_send = False
        with self._concerning(work):
            work.tracker.sending(sent.request)
            try:
                if sent.request.paid:
                    work.arm(sent.deadline - self._driver.runtime.now(), booking)
                may_send = True
            except UnknownAmount as error:
                work.left_queued(str(error))
                self._run.miss_amount(work.entry, str(error))
                self._finish(work)
            except OverBudget as error:
                self._withhold(work, sent, error)
        return may_send

    def _withhold(self, work: ItemWork, sent: Dispatch[int], over: OverBudget) -> None:
        """Give an item back that does not fit into the budget of the batch, and create no more."""
        now = self._driver.runtime.now()
        failure = TransportFailure(
            phase=Phase.CONNECT, sent=False, reason=Reason.OVER_BUDGET, detail=str(over)
        )
        work.tracker.failed(failure, now)
        self._fleet.fail(sent.ticket, failure, now)
        ended = self._fleet.take_outcome()
        if ended is not None and ended.error is not None:
            work.withheld(ended.error, self._driver.runtime.now)
        self._finish(work)

    def _take(
        self, work: ItemWork, sent: Dispatch[int], came: HttpResponse | TransportFailure
    ) -> None:
        """Write the outcome of an exchange to the journal, before and after the fleet takes it."""
        now, paid = self._driver.runtime.now(), sent.request.paid
        failure = None if isinstance(came, HttpResponse) else came
        if isinstance(came, HttpResponse):
            work.tracker.responded(came, now)
            if paid:
                work.keep(came)
            events = self._fleet.receive(sent.ticket, came, now)
        else:
            work.tracker.failed(came, now)
            events = self._fleet.fail(sent.ticket, came, now)
        ended = self._fleet.take_outcome()
        if paid:
            task = next((event.task for event in events if isinstance(event, Submitted)), None)
            created = task if task is not None or ended is None else ended.error
            created = work.record.conclude(created, failure, shares=self._run.settings.local)
            work.tracker.tell_end(events)
            if isinstance(created, NothingLeft) and self._lacks_amount(work.entry):
                work.tracker.end(created)
                self._run.miss_amount(work.entry, created.what())
                self._run.postpone(work.entry, created.what())
                self._finish(work)
                return
            if not work.created(created, self._driver.runtime.now):
                self._finish(work)
                return
            if self._run.settings.creates is not None:
                self._may_take = True  # another create has room
        else:
            work.tracker.tell_end(events)
        if ended is not None:
            self._awaited(work, ended)

    def _lacks_amount(self, entry: Entry) -> bool:
        """Whether a budget of the client limits something that *entry* needs an unknown amount of.

        Another item may well fit into that budget.
        """
        from muybridge.batch.limits.spending import needs_of

        books, body = self._driver.books, read_object(entry.body)
        if books is None:
            return False
        item = NewItem(name=entry.name, stem=entry.stem, family=entry.family, body=body)
        needs = needs_of(item, books.prices)
        return any(needs[one] is None for budget in books.budgets for one in budget.limits)

    def _take_broken(self, work: ItemWork, sent: Dispatch[int], broken: BrokenOff) -> None:
        """Take an exchange that something other than the network interrupted."""
        cancelled = isinstance(broken.error, self._driver.runtime.cancelled)
        if sent.request.paid:
            note_request(broken, sent.request)
            try:
                self._take(work, sent, broken.failure)
            except Exception as other:  # noqa: BLE001  from the journal or a listener: only one can be raised
                broken.error.add_note(f"{type(other).__name__} besides: {other}")
            if not cancelled:
                self._run.fail(broken.error)
        if cancelled or not sent.request.paid:
            raise broken.error

    def _awaited(self, work: ItemWork, ended: FleetOutcome[int]) -> None:
        """Take the end of a task."""
        if work.awaited(ended.outcome, self._driver.runtime.wall()):
            self._to_save.append((work, ended.unwrap()))
        else:
            self._finish(work)

    async def _save(self, work: ItemWork, source: Result | Task) -> None:
        """Download a result, and move the file to its final place."""
        with self._concerning(work):
            incoming = self._run.place / INCOMING
            if self._run.settings.dedupe:  # others may download the same task at this moment
                incoming /= str(work.entry.number)
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
                    leftovers = work.leftovers(saved)
                placed = await driver.runtime.in_thread(partial(work.place, saved, leftovers))
                if self._run.settings.dedupe:
                    with ignoring_errors(OSError):  # an empty folder is no problem
                        incoming.rmdir()
            except genuine((InvalidAddress, ServiceError, PlaceUnusable, OSError)) as error:
                with self._team.lock:
                    if not self._left:
                        work.not_saved(error)
            else:
                await self._saved(work, saved, placed)
            with self._team.lock:
                self._finish(work)

    async def _saved(self, work: ItemWork, saved: Path, placed: Stored) -> None:
        """Record where a result is, and write its thumbnail, and its sidecar if that is wanted."""
        with self._team.lock:
            if self._left:
                return
            entry = work.saved(saved, placed)
        # A shared batch has no contact sheet.
        if placed.path is not None and self._run.journal.lease is None:
            thumbnail = self._run.place / THUMBNAILS / thumbnail_name(entry.number)
            make = partial(make_thumbnail, placed.path, thumbnail)
            await self._driver.runtime.in_thread(make)
        if not self._run.settings.sidecar:
            return
        write = partial(write_sidecar_of, entry, self._run.folder)
        failure = await self._driver.runtime.in_thread(write)
        with self._team.lock:
            if failure is not None:
                report_missing(self._run, entry, failure)

    @contextmanager
    def _concerning(self, work: ItemWork) -> Generator[None, None, None]:
        """Set *work* aside if the block fails, or end the run if the failure is not the item's."""
        try:
            try:
                yield
            except (Stopped, JournalUnusable, ClaimLost):
                raise
            except genuine(Exception) as error:
                with self._team.lock:
                    if self._left:
                        return
                    work.set_aside(error, self._calls.service)
                    self._finish(work)
        except Stopped:
            pass
        except ClaimLost:
            with self._team.lock:
                self._run.tried.add(work.entry.number)
                self._finish(work)
        except BaseException as error:
            if isinstance(error, self._driver.runtime.cancelled):
                raise
            self._run.fail(error)

    def _finish(self, work: ItemWork) -> None:
        """Stop work on an item for this run."""
        self._fleet.drop(work.entry.number)
        del self._items[work.entry.number]
        self._slots.append(work.slot)
        self._may_take = True

    def _start(self, job: Work, *, paid: bool = False) -> None:
        """Let a worker do *job*."""
        self._under_way += 1
        self._team.start(partial(self._counted, job), paid=paid)

    async def _counted(self, job: Work) -> None:
        try:
            await job()
        finally:
            with self._team.lock:
                self._under_way -= 1
                self._team.notify()
