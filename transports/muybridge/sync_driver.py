"""Drives operations in blocking code: does what they ask for, and tells them what came of it.

There is no policy here: what to send, when, and what a failure means is decided by the operation.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from muybridge.announcing import Ledger, Listeners, Unfollowed, break_off, interrupted
from muybridge.clock import Clock
from muybridge.credentials import Credentials
from muybridge.interrupts import hold_interrupts
from muybridge.wire.transport import StreamedReply, Transport, TransportError, beginning, whole
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations import Fetch, Operation, Send, Wait
from muybridge_protocol.operations.next_polls import NextPolls

if TYPE_CHECKING:
    from muybridge.saving import PartFile
    from muybridge_protocol.operations import Download
    from muybridge_protocol.operations.download import Saved
    from muybridge_protocol.operations.text import OpenStream

T = TypeVar("T")
Op = TypeVar("Op", bound=Operation[Any])


@attrs.frozen
class Driver:
    """What every operation of one client is driven with.

    Args:
        transport: What sends requests.
        credentials: The API key.
        listeners: Who is told of events.
        clock: What tells the time and waits.
        next_polls: What remembers when tasks may next be polled.
    """

    transport: Transport
    credentials: Credentials
    listeners: Listeners
    clock: Clock
    next_polls: NextPolls

    def finish(self, operation: Operation[T], ledger: Ledger | None = None) -> T:
        """Drive *operation* to its end and return its outcome.

        Args:
            operation: The operation at its beginning.
            ledger: Where to book what comes of it, before Ctrl-C can come again.

        Raises:
            ServiceError: It ended with it.
        """
        driven = self.drive(operation, ledger)
        while True:
            try:
                next(driven)
            except StopIteration as end:
                outcome: T = end.value
                return outcome

    def drive(
        self, operation: Operation[T], ledger: Ledger | None = None
    ) -> Generator[Event, None, T]:
        """Do what *operation* asks for, yield what becomes known, and return its outcome.

        It may be left at any time, since nothing of it lives on between two steps.

        Args:
            operation: The operation at its beginning.
            ledger: Where to book what comes of it, before Ctrl-C can come again.

        Raises:
            ServiceError: It ended with it.
        """
        followed = self.listeners.follow(operation, self.clock.monotonic)
        try:
            outcome = yield from self._drive(operation, ledger or Ledger(), followed)
        except BaseException as error:
            followed.end(error)
            raise
        followed.end(outcome)
        return outcome

    def _drive(
        self, operation: Operation[T], ledger: Ledger, followed: Unfollowed
    ) -> Generator[Event, None, T]:
        while True:
            now = self.clock.monotonic()
            match operation.next_action(now):
                case Send(request, deadline):
                    with hold_interrupts(when=request.shielded) as held:
                        followed.sending(request, now)
                        ledger.begin(request)
                        self.next_polls.note(operation, now)
                        operation = self.exchange(operation, request, deadline, followed, ledger)
                        ledger.book(operation)
                        self.next_polls.note(operation, self.clock.monotonic())
                        followed.tell_end(operation.events)
                    if held.seen:
                        raise interrupted(operation, held)
                    yield from operation.events
                case Wait(until):
                    self._sleep(until)
                case settled:
                    return settled.unwrap()

    def download(self, operation: Download, part: PartFile) -> Saved:
        """Drive *operation* to its end, saving what comes into *part*.

        Raises:
            ServiceError: It ended with it.
            OSError: The part cannot be written.
        """
        followed = self.listeners.follow(operation, self.clock.monotonic)
        try:
            while True:
                now = self.clock.monotonic()
                match operation.next_action(now):
                    case Send(request, deadline):
                        followed.sending(request, now)
                        operation = self.exchange(operation, request, deadline, followed)
                        followed.tell_end(operation.events)
                    case Fetch(request, deadline):
                        followed.sending(request, now)
                        operation = self._fetch(operation, request, deadline, part, followed)
                        followed.tell_end(operation.events)
                    case Wait(until):
                        self._sleep(until)
                    case settled:
                        saved = settled.unwrap()
                        break
        except BaseException as error:
            followed.end(error)
            raise
        followed.end(saved)
        return saved

    def open_stream(
        self, operation: OpenStream, opened: ExitStack
    ) -> tuple[StreamedReply, Unfollowed]:
        """Drive *operation* to its end, and return the reply whose body is the stream.

        Args:
            operation: The operation at its beginning.
            opened: What closes the reply.

        Returns:
            The reply, and what tells of the call, which goes on until the stream has been left.

        Raises:
            ServiceError: The operation ended with it.
        """
        followed = self.listeners.follow(operation, self.clock.monotonic)
        try:
            while True:
                now = self.clock.monotonic()
                match operation.next_action(now):
                    case Fetch(request, deadline):
                        followed.sending(request, now)
                        operation, reply = self._open(
                            operation, request, deadline, opened, followed
                        )
                        if reply is not None:
                            return reply, followed
                        followed.tell_end(operation.events)
                    case Wait(until):
                        self._sleep(until)
                    case settled:
                        settled.unwrap()
        except BaseException as error:
            followed.end(error)
            raise

    def exchange(
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
                timeout=deadline - self.clock.monotonic(),
                authorization=self.credentials.authorization_for(request),
            )
            response = whole(entering, paid=request.paid)
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:
            now = self.clock.monotonic()
            break_off(error, operation, request, stream, followed=followed, now=now, ledger=ledger)
            raise
        else:
            response = self.credentials.redact_response(response)
            now = self.clock.monotonic()
            followed.replied(response, now)
            return operation.receive(response, now)
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        now = self.clock.monotonic()
        followed.failed(failure, now)
        return operation.fail(failure, now)

    def _fetch(
        self,
        operation: Download,
        request: HttpRequest,
        deadline: float,
        part: PartFile,
        followed: Unfollowed,
    ) -> Download:
        """Fetch *request* into *part* and return the operation after what came of it."""
        from muybridge_protocol.operations.download import Stage  # noqa: PLC0415  not all download

        timeout = deadline - self.clock.monotonic()
        try:
            with self.transport.stream(request, timeout=timeout) as reply:
                head = self.credentials.redact_head(reply.head)
                now = self.clock.monotonic()
                operation = operation.accept(head, now)
                followed.head(head.status, now)
                if operation.stage is not Stage.READING:
                    return operation
                part.begin(operation.part)
                followed.tell(operation.events)
                for piece in reply.pieces():
                    operation = operation.take(piece)
                    if operation.settled is not None:
                        return operation
                    part.write(piece)
                    followed.tell(operation.events)
            return operation.end(self.clock.monotonic())
        except TransportError as error:
            failure = error.failure
        if operation.settled is not None:  # it broke while it was being left
            return operation
        now = self.clock.monotonic()
        followed.failed(failure, now)
        return operation.fail(failure, now)

    def _open(
        self,
        operation: OpenStream,
        request: HttpRequest,
        deadline: float,
        opened: ExitStack,
        followed: Unfollowed,
    ) -> tuple[OpenStream, StreamedReply | None]:
        """Send *request*; return the operation after the head, and the reply if it is a stream."""
        timeout = deadline - self.clock.monotonic()
        authorization = self.credentials.authorization_for(request)
        stream: object = None
        before = operation
        try:
            with ExitStack() as opening:
                stream = entering = self.transport.stream(
                    request, timeout=timeout, authorization=authorization
                )
                reply = opening.enter_context(entering)
                now = self.clock.monotonic()
                operation = operation.accept(reply.head, now)
                if operation.settled is not None:
                    followed.head(reply.head.status, now)
                    opened.push(opening.pop_all())
                    return operation, reply
                body = beginning(reply)
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:
            now = self.clock.monotonic()
            break_off(error, before, request, stream, followed=followed, now=now)
            raise
        else:
            response = HttpResponse(reply.head.status, reply.head.headers, body)
            response = self.credentials.redact_response(response)
            now = self.clock.monotonic()
            followed.replied(response, now)
            return operation.receive(response, now), None
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        now = self.clock.monotonic()
        followed.failed(failure, now)
        return operation.fail(failure, now), None

    def _sleep(self, until: float) -> None:
        # The moment may have passed since the operation named it.
        self.clock.sleep(max(0.0, until - self.clock.monotonic()))
