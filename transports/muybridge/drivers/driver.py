"""The driver: does what operations ask for, and hands them what came of it.

It is written once, as coroutines over a transport and a `Runtime`. There is no policy here: what to
send, when, and what a failure means is decided by the operation, and there is no timeout or cancel
scope, because those are the transport's.

An operation is a value; `Drive` holds the latest one and asks it for its next action until it has
settled. `Driver.exchange` is the one place where a request meets the transport. It ends in one of
three ways, and raises nothing:

- an `HttpResponse`: a whole reply, without the key;
- a `TransportFailure`: the network failed, and the transport says how far the exchange came;
- a `BrokenOff`: something else came in between, such as Ctrl-C, a cancellation, what a signal
  handler raises, or a defect. It goes on to the caller, once the operation and the listeners have
  been told and what is known about money is in its notes.

While a paid request is under way, the first Ctrl-C is held back. After its reply there is no
checkpoint until the outcome is returned, so that no cancellation comes between an id and its user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from muybridge.credentials import Credentials
from muybridge.drivers.interrupts import hide_frames, hold_interrupts
from muybridge.drivers.listeners import Listeners, SilentTracker, find_log
from muybridge.drivers.notes import (
    BrokenOff,
    Ledger,
    add_note,
    interrupted,
    interruption_of,
    note_request,
)
from muybridge.wire.async_transport import (
    AsyncStreamedReply,
    AsyncTransport,
    beginning,
    whole,
)
from muybridge.wire.transport import TransportError
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations import Fetch, Operation, Send, Settled, Wait
from muybridge_protocol.operations.next_polls import NextPolls

from .runtime import Runtime

if TYPE_CHECKING:
    from muybridge.files.saving import PartFile
    from muybridge_protocol.operations import Download
    from muybridge_protocol.operations.download import Saved
    from muybridge_protocol.operations.text import OpenStream

T = TypeVar("T")
Op = TypeVar("Op", bound=Operation[Any])
Stream = AbstractAsyncContextManager[AsyncStreamedReply]


@attrs.frozen
class Driver:
    """What every operation of one client is driven with.

    Args:
        transport: What sends requests.
        credentials: The API key.
        listeners: Who is told of events.
        runtime: What tells the time and waits.
        next_polls: What remembers when tasks may next be polled.
    """

    transport: AsyncTransport
    credentials: Credentials
    listeners: Listeners
    runtime: Runtime
    next_polls: NextPolls

    async def finish(self, operation: Operation[T], ledger: Ledger | None = None) -> T:
        """Drive *operation* to its end and return its outcome.

        Args:
            operation: The operation at its beginning.
            ledger: Where to book what comes of it, before Ctrl-C can come again.

        Raises:
            ServiceError: It ended with it.
        """
        drive = Drive(self, operation, ledger)
        while await drive.step():
            pass
        outcome: T = drive.outcome()
        return outcome

    async def download(self, operation: Download, part: PartFile) -> Saved:
        """Drive *operation* to its end, saving what comes into *part*.

        Raises:
            ServiceError: It ended with it.
            OSError: The part cannot be written.
        """
        drive = _Saving(self, operation, part)
        while await drive.step():
            pass
        saved: Saved = drive.outcome()
        return saved

    async def exchange(
        self, request: HttpRequest, deadline: float
    ) -> HttpResponse | TransportFailure | BrokenOff:
        """Send *request*, read its whole reply, and return what came of it; nothing is raised."""
        came = await self.attempt(
            request, deadline, lambda stream: whole(stream, paid=request.paid)
        )
        return self.credentials.redact_response(came) if isinstance(came, HttpResponse) else came

    async def attempt(
        self,
        request: HttpRequest,
        deadline: float,
        read: Callable[[Stream], Awaitable[T]],
    ) -> T | TransportFailure | BrokenOff:
        """Send *request*, and return what *read* makes of the exchange, or how it ended instead.

        Args:
            request: What to send.
            deadline: By when, on the runtime's clock.
            read: Enters the exchange that it is given, and reads the reply.
        """
        stream: Stream | None = None
        try:
            stream = self.transport.stream(
                request,
                timeout=deadline - self.runtime.now(),
                authorization=self.credentials.authorization_for(request),
            )
            reading = read(stream)
            if not request.shielded:
                return await reading
            return await self.runtime.unbroken(reading, partial(_may_be_sent, stream))
        except TransportError as error:
            return self.credentials.redact_failure(error.failure)
        except BaseException as error:  # noqa: BLE001  whoever called raises it again
            # A shielded request is cancelled before its first byte, or not at all.
            unsent = request.shielded and isinstance(error, self.runtime.cancelled)
            failure = interruption_of(error, sent=_may_be_sent(stream, not unsent))
            hide_frames(error)
            return BrokenOff(error, failure)


def _may_be_sent(stream: Stream | None, unless_told: bool = True) -> bool:  # noqa: FBT001, FBT002  as getattr has it
    """Whether any byte of a request may have been sent, as far as its *stream* tells."""
    return bool(getattr(stream, "sent", unless_told))


class Drive(Generic[Op]):
    """An operation under way. It may be left between two steps, since nothing lives on.

    Args:
        driver: What it is driven with.
        operation: The operation at its beginning.
        ledger: Where to book what comes of it, before Ctrl-C can come again.
    """

    def __init__(self, driver: Driver, operation: Op, ledger: Ledger | None = None) -> None:
        self._driver = driver
        self._operation: Op = operation
        self._tracker = _track(operation, driver)
        self._ledger = Ledger() if ledger is None else ledger
        self._settled: Settled[Any] | None = None
        self.events: tuple[Event, ...] = ()
        """What the last step made known."""

    async def step(self) -> bool:
        """Do the next thing that the operation asks for, and return whether it goes on."""
        self.events = ()
        runtime = self._driver.runtime
        try:
            now = runtime.now()
            match self._next_action(now):
                case Send(request, deadline):
                    await self._send(request, deadline, now)
                case Fetch(request, deadline):
                    self._tracker.sending(request, now)
                    await self._fetch(request, deadline)
                case Wait(until):
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
        """Tell the listeners that it is not driven any further."""
        self._tracker.end(GeneratorExit())

    def outcome(self) -> Any:
        """Return what the operation came to, once no step is left.

        Raises:
            ServiceError: It ended with it.
        """
        if self._settled is None:
            raise RuntimeError("the operation is still under way")
        return self._settled.unwrap()

    def _next_action(self, now: float) -> Send | Fetch | Wait | Settled[Any]:
        return self._operation.next_action(now)

    async def _send(self, request: HttpRequest, deadline: float, now: float) -> None:
        next_polls, runtime, held = self._driver.next_polls, self._driver.runtime, None
        try:
            with hold_interrupts(when=request.shielded) as held:
                self._tracker.sending(request, now)
                self._ledger.begin(request)
                next_polls.note(self._operation, now)
                operation = await self._exchange(request, deadline)
                self._ledger.book(operation)
                next_polls.note(operation, runtime.now())
                self._tracker.tell_end(operation.events)
        except runtime.cancelled:
            if held is not None and held.seen:
                raise held.interrupt() from None
            raise
        if held.seen:
            raise interrupted(operation, held)
        await runtime.raise_cancellation()
        self._operation, self.events = operation, operation.events

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        """Send *request*, whose reply comes in pieces."""
        raise NotImplementedError

    async def _exchange(
        self,
        request: HttpRequest,
        deadline: float,
        read: Callable[[Stream], Awaitable[HttpResponse | None]] | None = None,
    ) -> Op:
        """Send *request* and return the operation after what came of it."""
        before = self._operation
        driver = self._driver
        came = await (
            driver.exchange(request, deadline)
            if read is None
            else driver.attempt(request, deadline, read)
        )
        now = self._driver.runtime.now()
        match came:
            case HttpResponse():
                self._tracker.replied(came, now)
                return self._operation.receive(came, now)
            case TransportFailure() if self._operation.settled is None:
                self._tracker.failed(came, now)
                return self._operation.fail(came, now)
            case BrokenOff():
                self._break_off(came, before, request, now)
                raise came.error
            case _:  # dealt with by `read`; if it broke, then while it was being left
                return self._operation

    def _break_off(self, broken: BrokenOff, before: Op, request: HttpRequest, now: float) -> None:
        """Tell everybody that the exchange was broken off; then its error can be raised."""
        failure = broken.failure
        self._tracker.failed(failure, now)
        note_request(broken, request)
        if not request.paid:
            return
        if not failure.sent:
            self._ledger.withdraw()
        try:  # an operation may write down what is known
            after = before.fail(failure, now)
            self._tracker.tell_end(after.events if failure.sent else ())
        except Exception as other:  # noqa: BLE001  a journal's or a listener's: one can be raised
            add_note(broken.error, f"{type(other).__name__} besides: {other}")


class _Saving(Drive["Download"]):
    """A download under way.

    Args:
        driver: What it is driven with.
        operation: The operation at its beginning.
        part: Where to save what comes.
    """

    def __init__(self, driver: Driver, operation: Download, part: PartFile) -> None:
        super().__init__(driver, operation)
        self._part = part

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        self._operation = await self._exchange(request, deadline, self._save)
        self._tracker.tell_end(self._operation.events)

    async def _save(self, stream: Stream) -> None:
        from muybridge_protocol.operations.download import Stage  # noqa: PLC0415  not all download

        now = self._driver.runtime.now
        async with stream as reply:
            head = self._driver.credentials.redact_head(reply.head)
            moment = now()
            self._operation = self._operation.accept(head, moment)
            self._tracker.head(head.status, moment)
            if self._operation.stage is not Stage.READING:
                return
            self._part.begin(self._operation.part)
            self._tracker.tell(self._operation.events)
            async for piece in reply.pieces():
                self._operation = self._operation.take(piece)
                if self._operation.settled is not None:
                    return
                # In this thread: a piece goes to the system's cache in a fraction of the time that
                # handing it to another thread would take.
                self._part.write(piece)
                self._tracker.tell(self._operation.events)
        self._operation = self._operation.end(now())


class StreamOpening(Drive["OpenStream"]):
    """A text request under way whose reply is streamed, as far as its head.

    Args:
        driver: What it is driven with.
        operation: The operation at its beginning.
        opened: What closes the reply.
    """

    def __init__(self, driver: Driver, operation: OpenStream, opened: AsyncExitStack) -> None:
        super().__init__(driver, operation)
        self._opened = opened
        self._reply: AsyncStreamedReply | None = None

    async def open(self) -> tuple[AsyncStreamedReply, SilentTracker]:
        """Return the reply whose body is the stream, and what tells of the call, which goes on.

        Raises:
            ServiceError: The operation ended with it.
        """
        while self._reply is None:
            if not await self.step():
                self.outcome()
        return self._reply, self._tracker

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        self._operation = await self._exchange(request, deadline, self._open)
        if self._reply is None:
            self._tracker.tell_end(self._operation.events)

    async def _open(self, stream: Stream) -> HttpResponse | None:
        async with AsyncExitStack() as opening:
            reply = await opening.enter_async_context(stream)
            now = self._driver.runtime.now()
            operation = self._operation.accept(reply.head, now)
            if operation.settled is not None:
                self._tracker.head(reply.head.status, now)
                self._opened.push_async_exit(opening.pop_all())
                self._operation, self._reply = operation, reply
                return None
            body = await beginning(reply)
        response = HttpResponse(reply.head.status, reply.head.headers, body)
        return self._driver.credentials.redact_response(response)


def _track(operation: Operation[Any], driver: Driver) -> SilentTracker:
    """Return what tells the listeners of the call that *operation* begins."""
    if not driver.listeners.listen:
        return SilentTracker(driver.listeners)
    from muybridge.drivers.tracking import Tracker, info_of  # noqa: PLC0415  for listeners alone

    return Tracker(driver.listeners, find_log(), info_of(operation), driver.runtime.now)
