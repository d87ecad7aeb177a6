"""Drives operations in blocking code: does what they ask for, and tells them what came of it.

There is no policy here: what to send, when, and what a failure means is decided by the operation.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from muybridge.announcing import Ledger, Listeners, interrupted, note_under_way
from muybridge.clock import Clock
from muybridge.credentials import Credentials
from muybridge.interrupts import hold_interrupts
from muybridge.wire.transport import StreamedReply, Transport, TransportError, beginning, exchange
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations import Fetch, Operation, Send, Wait

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
    """

    transport: Transport
    credentials: Credentials
    listeners: Listeners
    clock: Clock

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
        ledger = Ledger() if ledger is None else ledger
        while True:
            match operation.next_action(self.clock.monotonic()):
                case Send(request, deadline):
                    with hold_interrupts(when=request.shielded) as held:
                        ledger.begin(request)
                        operation = self.exchange(operation, request, deadline)
                        ledger.book(operation)
                        self.listeners.tell(operation.events)
                    if held.seen:
                        raise interrupted(operation)
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
        while True:
            match operation.next_action(self.clock.monotonic()):
                case Send(request, deadline):
                    operation = self.exchange(operation, request, deadline)
                    self.listeners.tell(operation.events)
                case Fetch(request, deadline):
                    operation = self._fetch(operation, request, deadline, part)
                    self.listeners.tell(operation.events)
                case Wait(until):
                    self._sleep(until)
                case settled:
                    return settled.unwrap()

    def open_stream(self, operation: OpenStream, opened: ExitStack) -> StreamedReply:
        """Drive *operation* to its end, and return the reply whose body is the stream.

        Args:
            operation: The operation at its beginning.
            opened: What closes the reply.

        Raises:
            ServiceError: The operation ended with it.
        """
        while True:
            match operation.next_action(self.clock.monotonic()):
                case Fetch(request, deadline):
                    operation, reply = self._open(operation, request, deadline, opened)
                    self.listeners.tell(operation.events)
                    if reply is not None:
                        return reply
                case Wait(until):
                    self._sleep(until)
                case settled:
                    settled.unwrap()

    def exchange(self, operation: Op, request: HttpRequest, deadline: float) -> Op:
        """Send *request* and return the operation after what came of it."""
        try:
            response = exchange(
                self.transport,
                request,
                timeout=deadline - self.clock.monotonic(),
                authorization=self.credentials.authorization_for(request),
            )
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:  # noqa: BLE001  it is raised again
            note_under_way(error, request)
            # The frames of the libraries below have the key in their variables.
            raise error.with_traceback(None) from None
        else:
            response = self.credentials.redact_response(response)
            return operation.receive(response, self.clock.monotonic())
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        return operation.fail(failure, self.clock.monotonic())

    def _fetch(
        self, operation: Download, request: HttpRequest, deadline: float, part: PartFile
    ) -> Download:
        """Fetch *request* into *part* and return the operation after what came of it."""
        from muybridge_protocol.operations.download import Stage  # noqa: PLC0415  not all download

        timeout = deadline - self.clock.monotonic()
        try:
            with self.transport.stream(request, timeout=timeout) as reply:
                head = self.credentials.redact_head(reply.head)
                operation = operation.accept(head, self.clock.monotonic())
                if operation.stage is not Stage.READING:
                    return operation
                part.begin(operation.part)
                self.listeners.tell(operation.events)
                for piece in reply.pieces():
                    operation = operation.take(piece)
                    if operation.settled is not None:
                        return operation
                    part.write(piece)
                    self.listeners.tell(operation.events)
            return operation.end(self.clock.monotonic())
        except TransportError as error:
            failure = error.failure
        return operation.fail(failure, self.clock.monotonic())

    def _open(
        self, operation: OpenStream, request: HttpRequest, deadline: float, opened: ExitStack
    ) -> tuple[OpenStream, StreamedReply | None]:
        """Send *request*; return the operation after the head, and the reply if it is a stream."""
        timeout = deadline - self.clock.monotonic()
        authorization = self.credentials.authorization_for(request)
        try:
            with ExitStack() as opening:
                reply = opening.enter_context(
                    self.transport.stream(request, timeout=timeout, authorization=authorization)
                )
                operation = operation.accept(reply.head, self.clock.monotonic())
                if operation.settled is not None:
                    opened.push(opening.pop_all())
                    return operation, reply
                body = beginning(reply)
        except TransportError as error:
            failure = self.credentials.redact_failure(error.failure)
        except BaseException as error:  # noqa: BLE001  it is raised again
            note_under_way(error, request)
            # The frames of the libraries below have the key in their variables.
            raise error.with_traceback(None) from None
        else:
            response = HttpResponse(reply.head.status, reply.head.headers, body)
            response = self.credentials.redact_response(response)
            return operation.receive(response, self.clock.monotonic()), None
        # Outside of the handler, so that no frame of a foreign library hangs on a later error.
        return operation.fail(failure, self.clock.monotonic()), None

    def _sleep(self, until: float) -> None:
        # The moment may have passed since the operation named it.
        self.clock.sleep(max(0.0, until - self.clock.monotonic()))
