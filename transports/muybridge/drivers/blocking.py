"""The runtime of blocking code: coroutines never suspend, and workers are threads."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from contextvars import copy_context
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, cast

import attrs

from muybridge.clock import Clock, SystemClock
from muybridge.drivers.notes import note_outcome
from muybridge.signals import Terminated, hold_interrupts, tell, waiting_for
from muybridge.wire.async_transport import AsyncStreamedResponse
from muybridge.wire.http1.blocking import BlockingResponse
from muybridge.wire.transport import StreamedResponse, Transport
from muybridge_protocol.http import HttpHead, HttpRequest

from .runtime import FOREVER, Conclude, Work

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", covariant=True)  # noqa: PLC0105  the name is that of type checkers

_TURN = 1.0
"""Longest single wait in seconds: on Windows, Ctrl-C does not interrupt a wait."""
_GRACE = 1.0
"""Seconds that unpaid work has to end when a team is closed."""


def run(function: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs) -> T:
    """Run the coroutine of *function*, whose I/O blocks, and return its result."""
    outcome: Any = None
    try:
        try:
            function(*arguments, **named).send(None)
        except StopIteration as end:
            outcome = end.value
        else:
            raise RuntimeError("a coroutine of blocking code has suspended: it awaited something")
        return cast("T", outcome)
    except BaseException as error:
        # Ctrl-C may arrive while the outcome is handed over, when nothing else holds it.
        ended = error.__context__
        note_outcome(error, ended.value if isinstance(ended, StopIteration) else outcome)
        raise


@attrs.frozen(eq=False, repr=False)
class BlockingRuntime:
    """Waits on a clock, in the caller's thread.

    Args:
        clock: Tells the time and waits.
    """

    clock: Clock
    cancelled: tuple[type[BaseException], ...] = ()

    def now(self) -> float:
        """Return seconds on a monotonic clock."""
        return self.clock.monotonic()

    def wall(self) -> float:
        """Return Unix seconds."""
        return self.clock.wall()

    async def sleep_until(self, moment: float) -> None:
        """Wait until *moment*, which may be in the past."""
        self.clock.sleep(max(0.0, moment - self.clock.monotonic()))

    async def checkpoint(self) -> None:
        """Do nothing: other threads run at any time."""

    def unbroken(
        self,
        exchange: Coroutine[Any, Any, T],
        sent: Callable[[], bool],  # noqa: ARG002  as said
        conclude: Conclude[T] | None = None,  # noqa: ARG002  as said
    ) -> Coroutine[Any, Any, T]:
        """Return *exchange*: threads are not cancelled."""
        return exchange

    async def raise_cancellation(self) -> None:
        """Do nothing, for the same reason."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in the caller's thread."""
        return work()

    async def finish_in_thread(self, work: Callable[[], T]) -> T:
        """Do *work* in the caller's thread."""
        return work()

    def team(self, size: int) -> BlockingTeam:
        """Return *size* threads, which start when the team is opened."""
        return BlockingTeam(self.clock, size)


class BlockingTeam:
    """Threads, and the condition that guards their shared state.

    They run in the context of the team's creator, so listeners find a trace's current span, for
    example. They are daemons, because a hanging query must not keep the program from exiting.

    Args:
        clock: Tells the time and waits.
        size: How many threads.
    """

    def __init__(self, clock: Clock, size: int) -> None:
        self._clock = clock
        self._jobs: SimpleQueue[tuple[Work, bool] | None] = SimpleQueue()
        self._unfinished = 0
        self._paid = 0
        self.lock: threading.Condition = threading.Condition()
        """Guards the shared state of the threads."""
        self._threads = [
            threading.Thread(
                # A copy for each: two threads cannot run in the same context at a time.
                target=copy_context().run,
                args=(self._work,),
                name=f"muybridge-{number}",
                daemon=True,
            )
            for number in range(size)
        ]

    async def open(self) -> None:
        """Start the threads."""
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:  # no thread can be started, or Ctrl-C was pressed
            self._dismiss()
            raise

    def start(self, work: Work, *, paid: bool = False) -> None:
        """Let the next idle thread run *work*."""
        with self.lock:
            self._unfinished += 1
            self._paid += paid
            self._jobs.put((work, paid))

    async def run(self, work: Work) -> None:
        """Let a thread run *work*, and wait for it to end.

        It waits for a lock, because a signal handler that raises during the `wait` of a condition
        or an event may leave a RuntimeError in place of its own exception.
        """
        at_work = threading.Lock()
        at_work.acquire()

        async def whole() -> None:
            try:
                await work()
            finally:
                at_work.release()

        self.start(whole)
        while not at_work.acquire(timeout=_TURN):
            pass

    def notify(self) -> None:
        """Wake every thread that waits."""
        self.lock.notify_all()

    async def wait(self, until: float = FOREVER) -> None:
        """Release the lock until `notify` or *until* a moment, but for a second at most."""
        left = max(0.0, until - self._clock.monotonic())
        if left == FOREVER or isinstance(self._clock, SystemClock):
            self.lock.wait(min(left, _TURN))
        elif self._unfinished > 1:
            # A simulated clock must not run ahead of another thread's work.
            self.lock.wait(_TURN)
        else:
            self.lock.release()
            try:
                self._clock.sleep(left)
            finally:
                self.lock.acquire()

    async def close(self, error: BaseException | None) -> None:
        """Wait for paid work to end, and give other work a moment.

        Ctrl-C is held back meanwhile and raised at the end. A second one is raised at once. If
        Ctrl-C ends the team's use, the next one counts as the second.
        """
        with hold_interrupts(when=not isinstance(error, KeyboardInterrupt)) as held:
            try:
                if self._paid and isinstance(error, KeyboardInterrupt):
                    # It was raised at once: paid requests of other threads hold nothing back here.
                    # So nobody has said yet why the program does not end.
                    number = error.number if isinstance(error, Terminated) else signal.SIGINT
                    tell(waiting_for(self._paid, number))
                self._wait_while(lambda: self._paid > 0, math.inf)
            finally:  # also after a second Ctrl-C: then each thread ends after its work
                self._dismiss()
            self._wait_while(lambda: self._unfinished > 0, _GRACE)
        if held.seen:
            raise held.interrupt() from error

    def _wait_while(self, goes_on: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        with self.lock:
            while goes_on() and (left := end - time.monotonic()) > 0:
                self.lock.wait(min(left, _TURN))

    def _dismiss(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, paid = job
            with suppress(BaseException):  # the work has passed it on itself
                run(work)
            with self.lock:
                self._unfinished -= 1
                self._paid -= paid
                self.lock.notify_all()


class BlockingTransport:
    """A blocking transport behind the driver's asynchronous interface.

    Args:
        transport: Sends requests.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractAsyncContextManager[AsyncStreamedResponse]:
        """Send *request* and hand over its response."""
        stream = self.transport.stream(request, timeout=timeout, authorization=authorization)
        # Ours can be awaited as it is.
        return stream if isinstance(stream, BlockingResponse) else _Stream(stream)

    async def close(self) -> None:
        """Close every idle connection."""
        self.transport.close()


class _Stream:
    """A blocking exchange behind the asynchronous interface."""

    def __init__(self, stream: AbstractContextManager[StreamedResponse]) -> None:
        self._stream = stream

    @property
    def sent(self) -> bool:
        # A transport that does not say may have sent it: that is what costs money.
        return bool(getattr(self._stream, "sent", True))

    async def __aenter__(self) -> _Response:
        return _Response(self._stream.__enter__())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._stream.__exit__(kind, error, traceback)


class _Response:
    """A blocking response behind the asynchronous interface."""

    def __init__(self, response: StreamedResponse) -> None:
        self._response = response

    @property
    def head(self) -> HttpHead:
        return self._response.head

    def pieces(self) -> AsyncIterator[bytes]:
        return _Pieces(self._response.pieces())


class _Pieces:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        return piece


def iterate(context: AbstractAsyncContextManager[AsyncIterator[T]]) -> Iterator[T]:
    """Yield the items of the iterator that *context* gives, inside the context."""
    source = run(context.__aenter__)
    try:
        while (item := run(_next, source)) is not None:
            yield item
    finally:
        run(context.__aexit__, None, None, None)


async def _next(source: AsyncIterator[T]) -> T | None:
    return await anext(source, None)


class AsyncIteratorContext(Protocol[C]):
    """An asynchronous context that is iterated over."""

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    async def __anext__(self) -> C: ...


class BlockingIterator(Generic[T]):
    """An asynchronous context and iterator, for blocking code.

    Args:
        source: The context, whose I/O blocks.
    """

    def __init__(self, source: AsyncIteratorContext[T]) -> None:
        self._source = source

    def __enter__(self) -> Self:
        run(self._source.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run(self._source.__aexit__, kind, error, traceback)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return run(self._source.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None
