"""Drives operations under trio: does what they ask for, and tells them what came of it.

There is no policy here, and no cancel scope: a time-out is the transport's, and a cancellation
passes through. After the reply to a paid request there is no checkpoint until the operation's
outcome is returned, so that no cancellation comes between an id and its user.
"""

from __future__ import annotations

from collections import deque
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import attrs
import trio

from muybridge.announcing import Ledger, Listeners, Unfollowed, break_off, interrupted
from muybridge.credentials import Credentials
from muybridge.interrupts import hold_interrupts
from muybridge.saving import PartFile
from muybridge.wire.async_transport import (
    AsyncStreamedReply,
    AsyncTransport,
    beginning,
    whole,
)
from muybridge.wire.transport import TransportError
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations import Download, Fetch, Operation, Send, Settled, Wait
from muybridge_protocol.operations.download import Saved, Stage
from muybridge_protocol.operations.next_polls import NextPolls

if TYPE_CHECKING:
    from muybridge_protocol.operations.text import OpenStream

T = TypeVar("T")
Op = TypeVar("Op", bound=Operation[Any])


def trio_now() -> float:
    """Return trio's time, at the beginning of a call.

    Raises:
        RuntimeError: The call is not made under trio.
    """
    try:
        return trio.current_time()
    except RuntimeError:
        raise RuntimeError(
            "TrioClient needs trio, and was called outside of it. Call it from a function that "
            "trio.run runs. Under asyncio, use Client in asyncio.to_thread. Nothing was sent."
        ) from None


@attrs.frozen
class Driver:
    """What every operation of one client is driven with.

    Args:
        transport: What sends requests.
        credentials: The API key.
        listeners: Who is told of events.
        next_polls: What remembers when tasks may next be polled.
    """

    transport: AsyncTransport
    credentials: Credentials
    listeners: Listeners
    next_polls: NextPolls

    async def finish(self, operation: Operation[T], ledger: Ledger | None = None) -> T:
        """Drive *operation* to its end and return its outcome.

        Args:
            operation: The operation at its beginning.
            ledger: Where to book what comes of it, before Ctrl-C can come again.

        Raises:
            ServiceError: It ended with it.
        """
        driven = Driven(self, operation, ledger)
        async for _ in driven:
            pass
        return driven.outcome()

    async def download(self, operation: Download, part: PartFile) -> Saved:
        """Drive *operation* to its end, saving what comes into *part*.

        Raises:
            ServiceError: It ended with it.
            OSError: The part cannot be written.
        """
        followed = self.listeners.follow(operation, trio.current_time)
        try:
            while True:
                now = trio.current_time()
                match operation.next_action(now):
                    case Send(request, deadline):
                        followed.sending(request, now)
                        operation = await self.exchange(operation, request, deadline, followed)
                        followed.tell_end(operation.events)
                    case Fetch(request, deadline):
                        followed.sending(request, now)
                        operation = await self._fetch(operation, request, deadline, part, followed)
                        followed.tell_end(operation.events)
                    case Wait(until):
                        await trio.sleep_until(until)
                    case settled:
                        saved = settled.unwrap()
                        break
        except BaseException as error:
            followed.end(error)
            raise
        followed.end(saved)
        return saved

    async def open_stream(
        self, operation: OpenStream, opened: AsyncExitStack
    ) -> tuple[AsyncStreamedReply, Unfollowed]:
        """Drive *operation* to its end, and return the reply whose body is the stream.

        Args:
            operation: The operation at its beginning.
            opened: What closes the reply.

        Returns:
            The reply, and what tells of the call, which goes on until the stream has been left.

        Raises:
            ServiceError: The operation ended with it.
        """
        followed = self.listeners.follow(operation, trio.current_time)
        try:
            while True:
                now = trio.current_time()
                match operation.next_action(now):
                    case Fetch(request, deadline):
                        followed.sending(request, now)
                        operation, reply = await self._open(
                            operation, request, deadline, opened, followed
                        )
                        if reply is not None:
                            return reply, followed
                        followed.tell_end(operation.events)
                    case Wait(until):
                        await trio.sleep_until(until)
                    case settled:
                        settled.unwrap()
        except BaseException as error:
            followed.end(error)
            raise

    async def exchange(
        self,
        operation: Op,
        request: HttpRequest,
        deadline: float,
        followed: Unfollowed,
        ledger: Ledger | None = None,
    ) -> Op:
        """Send *request* and return the operation after what came of it."""
        stream: object = None
        try:
            stream = entering = self.transport.stream(
                request,
                timeout=deadline - trio.current_time(),
                authorization=self.credentials.authorization_for(request),
            )
            response = await whole(entering, paid=request.paid)
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:
            # A shielded request is cancelled before its first byte, or not at all.
            unshielded = not (isinstance(error, trio.Cancelled) and request.shielded)
            break_off(
                error,
                operation,
                request,
                stream,
                followed=followed,
                now=trio.current_time(),
                ledger=ledger,
                unless_told=unshielded,
            )
            raise
        else:
            response = self.credentials.redact_response(response)
            now = trio.current_time()
            followed.replied(response, now)
            return operation.receive(response, now)
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        now = trio.current_time()
        followed.failed(failure, now)
        return operation.fail(failure, now)

    async def _fetch(
        self,
        operation: Download,
        request: HttpRequest,
        deadline: float,
        part: PartFile,
        followed: Unfollowed,
    ) -> Download:
        """Fetch *request* into *part* and return the operation after what came of it."""
        timeout = deadline - trio.current_time()
        try:
            async with self.transport.stream(request, timeout=timeout) as reply:
                head = self.credentials.redact_head(reply.head)
                now = trio.current_time()
                operation = operation.accept(head, now)
                followed.head(head.status, now)
                if operation.stage is not Stage.READING:
                    return operation
                part.begin(operation.part)
                followed.tell(operation.events)
                async for piece in reply.pieces():
                    operation = operation.take(piece)
                    if operation.settled is not None:
                        return operation
                    # In this thread: a piece goes to the system's cache in a fraction of the
                    # time that handing it to another thread would take.
                    part.write(piece)
                    followed.tell(operation.events)
            return operation.end(trio.current_time())
        except TransportError as error:
            failure = error.failure
        if operation.settled is not None:  # it broke while it was being left
            return operation
        now = trio.current_time()
        followed.failed(failure, now)
        return operation.fail(failure, now)

    async def _open(
        self,
        operation: OpenStream,
        request: HttpRequest,
        deadline: float,
        opened: AsyncExitStack,
        followed: Unfollowed,
    ) -> tuple[OpenStream, AsyncStreamedReply | None]:
        """Send *request*; return the operation after the head, and the reply if it is a stream."""
        timeout = deadline - trio.current_time()
        authorization = self.credentials.authorization_for(request)
        stream: object = None
        before = operation
        try:
            async with AsyncExitStack() as opening:
                stream = entering = self.transport.stream(
                    request, timeout=timeout, authorization=authorization
                )
                reply = await opening.enter_async_context(entering)
                now = trio.current_time()
                operation = operation.accept(reply.head, now)
                if operation.settled is not None:
                    followed.head(reply.head.status, now)
                    opened.push_async_exit(opening.pop_all())
                    return operation, reply
                body = await beginning(reply)
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:
            now = trio.current_time()
            break_off(error, before, request, stream, followed=followed, now=now)
            raise
        else:
            response = HttpResponse(reply.head.status, reply.head.headers, body)
            response = self.credentials.redact_response(response)
            now = trio.current_time()
            followed.replied(response, now)
            return operation.receive(response, now), None
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        now = trio.current_time()
        followed.failed(failure, now)
        return operation.fail(failure, now), None


class Driven(Generic[T]):
    """An operation under way: iterating does what it asks for, and yields what becomes known.

    It may be left at any time, since nothing of it lives on between two steps.

    Args:
        driver: What it is driven with.
        operation: The operation at its beginning.
        ledger: Where to book what comes of it, before Ctrl-C can come again.
    """

    def __init__(
        self, driver: Driver, operation: Operation[T], ledger: Ledger | None = None
    ) -> None:
        self._driver = driver
        self._operation = operation
        self._followed = driver.listeners.follow(operation, trio.current_time)
        self._ledger = Ledger() if ledger is None else ledger
        self._events: deque[Event] = deque()
        self._settled: Settled[T] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            while not self._events:
                now = trio.current_time()
                match self._operation.next_action(now):
                    case Send(request, deadline):
                        await self._exchange(request, deadline, now)
                    case Wait(until):
                        await trio.sleep_until(until)
                    case settled:
                        self._settled = settled
                        break
        except BaseException as error:
            self._followed.end(error)
            raise
        if self._events:
            return self._events.popleft()
        self._followed.end(self._settled.outcome if self._settled is not None else None)
        raise StopAsyncIteration

    async def _exchange(self, request: HttpRequest, deadline: float, now: float) -> None:
        held = None
        followed = self._followed
        try:
            with hold_interrupts(when=request.shielded) as held:
                followed.sending(request, now)
                self._ledger.begin(request)
                self._driver.next_polls.note(self._operation, now)
                operation = await self._driver.exchange(
                    self._operation, request, deadline, followed, self._ledger
                )
                self._ledger.book(operation)
                self._driver.next_polls.note(operation, trio.current_time())
                followed.tell_end(operation.events)
        except trio.Cancelled:
            if held is not None and held.seen:
                raise held.interrupt() from None
            raise
        if held.seen:
            raise interrupted(operation, held)
        self._operation = operation
        self._events.extend(operation.events)

    def leave(self) -> None:
        """Take note that it is not driven any further."""
        self._followed.end(GeneratorExit())

    def outcome(self) -> T:
        """Return what the operation came to, once the iteration has ended.

        Raises:
            ServiceError: It ended with it.
        """
        if self._settled is None:
            raise RuntimeError("the operation is still under way")
        return self._settled.unwrap()
