"""The driver: does what operations ask for, and hands them the outcome.

It is written once, as coroutines over a transport and a `Runtime`. There is no policy here: the
operation decides what to send, when, and what a failure means. Timeouts and cancel scopes belong to
the transport.

An operation is a value. `Drive` holds the latest one and asks it for its next action until it has
settled. `Driver.attempt` is the one place where a request meets the transport. It raises nothing
and returns what was read, or how that failed:

- an `HttpResponse`: the response, with the key redacted;
- a `TransportFailure`: the network failed, and the transport reports how far the exchange got;
- a `BrokenOff`: something else interrupted it, such as Ctrl-C, a cancellation, an exception from a
  signal handler, or a defect. The driver raises it again once the operation and the listeners have
  seen it and its notes say what is known about money.

While a paid request is in flight, the first Ctrl-C is held back. After its response there is no
checkpoint until the outcome is returned, so no cancellation can come between an id and its user.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import attrs

from muybridge.credentials import Credentials
from muybridge.drivers.listeners import Listeners, SilentTracker, find_log
from muybridge.drivers.notes import (
    BrokenOff,
    PaidNotes,
    add_note,
    interrupted,
    interruption_of,
    note_request,
)
from muybridge.signals import hide_frames, hold_interrupts
from muybridge.wire.async_transport import AsyncStreamedResponse, AsyncTransport, whole
from muybridge.wire.transport import TransportError
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.events import Event, Polled
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations import Create, Fetch, Operation, Poll, Send, Settled, Wait
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.records.tasks import Result, Status

from .runtime import Conclude, Runtime

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking, Books
    from muybridge.purchases.history import History
    from muybridge_protocol.purchases import Tags

T = TypeVar("T")
Op = TypeVar("Op", bound=Operation[Any])
Stream = AbstractAsyncContextManager[AsyncStreamedResponse]


@attrs.frozen(eq=False, repr=False)
class Driver:
    """Drives every operation of one client.

    Args:
        transport: Sends requests.
        credentials: The API key.
        listeners: Receive events.
        runtime: Tells the time and waits.
        next_polls: Remembers when each task may next be polled.
        books: What paid requests are booked with, or None.
    """

    transport: AsyncTransport
    credentials: Credentials
    listeners: Listeners
    runtime: Runtime
    next_polls: NextPolls
    books: Books | None = None

    def booking(self, operation: Operation[Any], tags: Tags = NO_TAGS) -> Booking | None:
        """Return what books *operation* under *tags*, or None if nothing does."""
        if self.books is None:
            return None
        return self.books.booking(operation, self.runtime, tags=tags)

    @property
    def tags(self) -> Tags:
        """The tags of every purchase."""
        return NO_TAGS if self.books is None else self.books.tags

    async def finish(
        self,
        operation: Operation[T],
        notes: PaidNotes | None = None,
        booking: Booking | None = None,
    ) -> T:
        """Drive *operation* to its end and return its outcome.

        Args:
            operation: The operation, not yet driven.
            notes: Where to book the outcome before another Ctrl-C can arrive.
            booking: Books it in the store, or None for the driver's choice.

        Raises:
            ServiceError: The operation failed.
        """
        drive = Drive(self, operation, notes, booking)
        try:
            while await drive.step():
                pass
            outcome: T = drive.outcome()
        except BaseException as error:
            # Here too: another Ctrl-C may strike where the caller leaves its note.
            if notes is not None:
                notes.leave_note(error)
            raise
        return outcome

    async def exchange(
        self,
        request: HttpRequest,
        deadline: float,
        booking: Booking | None = None,
    ) -> HttpResponse | TransportFailure | BrokenOff:
        """Send *request*, read the whole response, and return the outcome. Raises nothing."""
        return await self.attempt(request, deadline, partial(whole, paid=request.paid), booking)

    async def attempt(
        self,
        request: HttpRequest,
        deadline: float,
        read: Callable[[Stream], Coroutine[Any, Any, T]],
        booking: Booking | None = None,
        announce: Callable[[HttpRequest], None] | None = None,
        conclude: Conclude[T] | None = None,
    ) -> HttpResponse | T | TransportFailure | BrokenOff:
        """Send *request* and return the result of *read*, or how the exchange failed.

        The key is redacted in both. If the store does not permit the request, nothing is sent.

        Args:
            request: What to send.
            deadline: When to give up, on the runtime's clock.
            read: Enters the exchange and reads the response.
            booking: Books it in the store, or None.
            announce: Called last before the request is sent, or None.
            conclude: Takes the end of a shielded exchange that goes on although the caller's
                coroutine was closed, or None. The key is not redacted.
        """
        # First of all: nothing is announced that the store does not permit.
        if booking is not None and (withheld := await booking.arm(deadline)) is not None:
            return withheld
        try:
            if announce is not None:
                announce(request)
            # The last look at the clock, because listeners may have taken their time.
            if booking is not None and (withheld := booking.withheld()) is not None:
                return withheld
        except BaseException as error:  # noqa: BLE001  the caller raises it again
            return BrokenOff(error, interruption_of(error, sent=False))
        stream: Stream | None = None
        try:
            stream = self.transport.stream(
                request,
                timeout=deadline - self.runtime.now(),
                authorization=self.credentials.authorization_for(request),
            )
            reading = read(stream)
            if request.shielded:
                sent = partial(_may_be_sent, stream)
                reading = self.runtime.unbroken(reading, sent, conclude)
            end = await reading
        except GeneratorExit:  # the coroutine is closed, perhaps after its event loop
            raise
        except TransportError as error:
            return self.credentials.redact_failure(error.failure)
        except BaseException as error:  # noqa: BLE001  the caller raises it again
            # A shielded request is only cancelled before its first byte.
            unsent = request.shielded and isinstance(error, self.runtime.cancelled)
            failure = interruption_of(error, sent=_may_be_sent(stream, not unsent))
            hide_frames(error)
            return BrokenOff(error, failure)
        return self.credentials.redact_response(end) if isinstance(end, HttpResponse) else end


def _may_be_sent(stream: Stream | None, default: bool = True) -> bool:  # noqa: FBT001, FBT002  as getattr has it
    """Whether any byte of a request may have been sent, as far as its *stream* tells."""
    return bool(getattr(stream, "sent", default))


class Drive(Generic[Op]):
    """An operation in progress. It may be abandoned between two steps: it holds no resources.

    Args:
        driver: The driver of its client.
        operation: The operation, not yet driven.
        notes: Where to book the outcome before another Ctrl-C can arrive.
        booking: Books it in the store, or None for the driver's choice.
        tags: The tags of the purchase that it is about, if it is none itself; or None if they are
            not known.
    """

    def __init__(
        self,
        driver: Driver,
        operation: Op,
        notes: PaidNotes | None = None,
        booking: Booking | None = None,
        tags: Tags | None = None,
    ) -> None:
        self._driver = driver
        self._operation: Op = operation
        self._booking = driver.booking(operation) if booking is None else booking
        known = driver.tags if self._booking is None else self._booking.tags
        self._tracker = _track(operation, driver, known if tags is None else tags)
        self._notes = PaidNotes() if notes is None else notes
        self._settled: Settled[Any] | None = None
        self._has_recalled = False
        self._history: History | None = None
        self.events: tuple[Event, ...] = ()
        """What the last step revealed."""

    async def step(self) -> bool:
        """Do the next thing that the operation asks for, and return whether more is left to do."""
        self.events = ()
        runtime = self._driver.runtime
        try:
            now = runtime.now()
            # An operation whose response is read in pieces asks for a `Fetch`, as its type says.
            match cast("Send | Fetch | Wait | Settled[Any]", self._operation.next_action(now)):
                case Send(request, deadline):
                    paced = self._driver.next_polls.claim(self._operation, now)
                    if paced is self._operation:
                        await self._send(request, deadline)
                    else:  # others have polled the task meanwhile
                        self._operation = paced
                case Fetch(request, deadline):
                    await self._fetch(request, deadline)
                case Wait(until):
                    await self._recall()
                    await runtime.sleep_until(until)
                case settled:
                    self._settled = settled
        except BaseException as error:
            self._tracker.end(error)
            raise
        if self._settled is not None:
            self._tracker.end(self._settled.outcome)
        return self._settled is None

    def leave(self) -> None:
        """Tell the listeners that it is driven no further."""
        self._tracker.end(GeneratorExit())

    def outcome(self) -> Any:
        """Return the outcome, once no step is left.

        Raises:
            ServiceError: The operation failed.
        """
        if self._settled is None:
            raise RuntimeError("the operation is still under way")
        return self._settled.unwrap()

    async def _send(self, request: HttpRequest, deadline: float) -> None:
        runtime, held = self._driver.runtime, None
        try:
            with hold_interrupts(when=request.shielded) as held:
                is_closed = False
                try:
                    operation = await self._exchange(request, deadline)
                    # Before the listeners hear of it: if one raises, its exception carries these
                    # notes, and so the id.
                    self._notes.book(operation)
                    self._tracker.tell_end(operation.events)
                except GeneratorExit:
                    is_closed = True  # nothing can be awaited: see `_conclude`
                    raise
                finally:
                    if self._booking is not None and not is_closed:
                        await self._booking.record()
        except runtime.cancelled:
            # The user has pressed Ctrl-C besides, and expects to see that.
            if held is not None and held.seen:
                raise held.interrupt() from None
            await self._drop_cancellation()
            raise
        except Exception:  # a listener's, which undoes no cancellation
            await runtime.raise_cancellation()
            raise
        # The outcome has its place in the operation, in the store and with the listeners: from here
        # on, whatever was held back may be raised.
        if held.seen:
            raise interrupted(operation, held)
        if request.paid:
            await runtime.raise_cancellation()
        self._operation, self.events = operation, operation.events
        await self._recall()
        if self._history is not None:
            self._note_duration(self._history)

    async def _recall(self) -> None:
        """Find out, once in a wait, how long such tasks usually take.

        It follows a poll, or begins a sleep: a store that hangs does not delay the first poll.
        """
        poll, books = self._operation, self._driver.books
        if self._has_recalled or books is None or not isinstance(poll, Poll) or poll.once:
            return
        self._has_recalled = True
        runtime = self._driver.runtime
        self._history = await runtime.in_thread(partial(books.history, poll.task.id))
        usual = None if self._history is None else self._history.usual
        if usual is not None:
            self._tracker.expect(usual, poll.age(runtime.now()))

    def _note_duration(self, history: History) -> None:
        """Note how long the task has taken, if it has just been completed."""
        assert self._driver.books is not None  # noqa: S101  the history is from there
        for event in self.events:
            match event:
                case Polled(Result(status=Status.COMPLETED), took=took) if took is not None:
                    self._driver.books.store.note_duration(history, took)
                case _:
                    pass

    async def _drop_cancellation(self) -> None:
        """Drop a second cancellation, which says the same as the first."""
        runtime = self._driver.runtime
        try:
            await runtime.raise_cancellation()
        except runtime.cancelled:
            return

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        """Send *request*, and read the response piece by piece."""
        raise NotImplementedError

    async def _exchange(
        self,
        request: HttpRequest,
        deadline: float,
        read: Callable[[Stream], Coroutine[Any, Any, HttpResponse | None]] | None = None,
    ) -> Op:
        """Send *request* and return the operation after the exchange."""
        before = self._operation
        driver = self._driver
        if read is None:
            read = partial(whole, paid=request.paid)
        end = await driver.attempt(
            request, deadline, read, self._booking, self._tell_sending, self._conclude
        )
        now = driver.runtime.now()
        if isinstance(end, BrokenOff):
            self._break_off(end, before, request, now)
            raise end.error
        return self._after(end, now)

    def _after(self, end: HttpResponse | TransportFailure | None, now: float) -> Op:
        """Return the operation after an exchange."""
        match end:
            case HttpResponse():
                self._tracker.responded(end, now)
                after = self._operation.receive(end, now)
            case TransportFailure() if self._operation.settled is None:
                self._tracker.failed(end, now)
                after = self._operation.fail(end, now)
            case _:  # `read` has handled it; any failure came while leaving the exchange
                after = self._operation
        self._driver.next_polls.note(after, now)
        if self._booking is not None:
            self._booking.take(after)
        return after

    async def _conclude(self, end: HttpResponse | TransportFailure | None) -> None:
        """End an exchange that went on after the coroutine of its call was closed.

        Nobody takes the outcome. So it is told, kept in `interrupted_tasks`, and recorded.
        """
        credentials = self._driver.credentials
        if isinstance(end, HttpResponse):
            end = credentials.redact_response(end)
        elif isinstance(end, TransportFailure):
            end = credentials.redact_failure(end)
        try:
            after = self._after(end, self._driver.runtime.now())
            self._notes.book(after)
            # No exception reaches anybody here. This one only carries the note, and the task is
            # kept.
            self._notes.leave_note(GeneratorExit())
            self._tracker.tell_end(after.events)
        finally:
            if self._booking is not None:
                await self._booking.record()

    def _tell_sending(self, request: HttpRequest) -> None:
        """Tell the listeners of *request*, which the store has permitted."""
        self._tracker.sending(request)
        self._notes.begin(request)

    def _break_off(self, broken: BrokenOff, before: Op, request: HttpRequest, now: float) -> None:
        """Tell the operation and the listeners before the error is raised."""
        failure = broken.failure
        self._tracker.failed(failure, now)
        note_request(broken, request)
        if not request.paid:
            return
        # The notes of a call name what is under way, and this is not.
        if not failure.sent:
            self._notes.withdraw()
        try:  # an operation may write down what is known
            after = before.fail(failure, now)
            if self._booking is not None:
                self._booking.take(after)
            self._tracker.tell_end(after.events if failure.sent else ())
        except Exception as other:  # noqa: BLE001  a store's or a listener's: one can be raised
            add_note(broken.error, f"{type(other).__name__} besides: {other}")


def _track(operation: Operation[Any], driver: Driver, tags: Tags) -> SilentTracker:
    """Return the tracker of the call that *operation* begins."""
    log = find_log()
    if log is None and driver.listeners.on_event is None:
        return SilentTracker(driver.listeners)
    from muybridge.drivers.tracking import Tracker, info_of

    info = info_of(operation, tags)
    request = operation.request if isinstance(operation, Create) else None
    return Tracker(driver.listeners, log, info, driver.runtime.now, request)
