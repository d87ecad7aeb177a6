"""Cancellation of an asynchronous exchange: at any time, except in the middle of a paid one."""

from __future__ import annotations

import functools
import itertools
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from muybridge.testing.certificates import client_context
from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    authority,
    get,
    post,
    serving,
)
from muybridge.testing.conformance.event_loops import EventLoopThread, Work
from muybridge.testing.conformance.lessons import Lesson, shown
from muybridge.testing.scripted_server import Peer, hang, response_bytes
from muybridge.wire.async_transport import AsyncTransport, exchange
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpRequest, HttpResponse

SHIELD = Lesson(
    "a create that is cancelled after its first byte has been paid for, and nobody knows its id",
    "HttpRequest.shielded. Under trio: a CancelScope with shield=True and the exchange's deadline, "
    "from the first byte until the response's last one; before the first byte there is a "
    "checkpoint. asyncio has no such shield: finish the exchange in spite of CancelledError, or "
    "turn that into a failure with sent=True",
)
FREE = Lesson(
    "a cancelled wait must end at once, and leave no connection behind",
    "AsyncTransport: only a request that is `shielded` is shielded",
)


T = TypeVar("T")

Outcome = HttpResponse | Exception | None
"""A response, an error, or nothing where the cancellation ended the exchange."""

_after_the_smoke_check = pytest.mark.usefixtures("transport")  # the fixture runs it first


class Cancelling(ABC):
    """What a cancellation does to an exchange."""

    _thread: EventLoopThread

    @abstractmethod
    def make_async_transport(self, ssl_context: ssl.SSLContext) -> AsyncTransport:
        """Return a new transport of the kind to be checked."""

    @_after_the_smoke_check
    def test_cancelled_before_the_first_byte(self) -> None:
        """A paid request that is cancelled before its first byte is not sent."""
        seen = threading.Event()

        def script(peer: Peer) -> None:
            """Read the beginning of a TLS handshake; then the exchange is cancelled."""
            peer.receive()
            seen.set()
            peer.hang()

        with serving(script, scheme="https") as server:
            outcome = self._cancelled(post(server.url), seen)
            SHIELD.equal(outcome, None, "the cancellation, in the handshake")
            SHIELD.require(server.posts == 0, "no POST", f"{server.posts} POSTs")

    @_after_the_smoke_check
    def test_cancelled_while_it_is_paid(self) -> None:
        """One that is cancelled after its first byte still gets its response."""
        seen, cancelled = threading.Event(), threading.Event()

        body = b'{"id": 7}'

        def script(peer: Peer) -> None:
            """Read one whole request, and answer it when the exchange has been cancelled."""
            peer.read_request()
            seen.set()
            cancelled.wait(2)
            sent = response_bytes(200, body)
            peer.send(sent[:-2])
            peer.drip(sent[-2:], every=0.01)
            peer.hang()

        with serving(script) as server:
            outcome = self._cancelled(post(server.url), seen, cancelled)
            whole = isinstance(outcome, HttpResponse) and outcome.body == body
            # Without shields, a library may fail instead, as long as the failure says that it may
            # be sent.
            ambiguous = not self._thread.has_shields and _may_be_sent(outcome)
            expected = f"the response {body!r}, in spite of the cancellation"
            SHIELD.require(whole or ambiguous, expected, outcome or "the cancellation")

    @_after_the_smoke_check
    def test_cancelled_at_each_suspension(self) -> None:
        """Wherever a paid request is cancelled, it is not sent, or its outcome is known."""
        reached = True
        for nth in itertools.count(1):
            ended = threading.Event()

            def script(peer: Peer, ended: threading.Event = ended) -> None:
                """Read one whole request, and answer it in pieces."""
                try:
                    peer.read_request()
                    sent = response_bytes(200, b'{"id": 7}')
                    peer.send(sent[:-3])
                    peer.drip(sent[-3:], every=0.003)
                    peer.hang()
                finally:
                    ended.set()

            with serving(script) as server:
                outcome, reached = self._cancelled_at(nth, post(server.url))
                if isinstance(outcome, HttpResponse):
                    right = outcome.body == b'{"id": 7}'
                    SHIELD.require(right, "the whole response", f"the body {outcome.body!r}")
                elif not _may_be_sent(outcome):
                    if server.peers:
                        ended.wait(1)
                    found = f"{shown(outcome or 'the cancellation')}, at suspension {nth}"
                    SHIELD.require(not server.received, "no byte of the request", found)
            # Past its last suspension, a request is not cancelled any more: every moment has been
            # tried.
            if not reached:
                break

    @_after_the_smoke_check
    def test_cancelled_while_it_costs_nothing(self) -> None:
        """One that costs nothing, or may be interrupted, can be cancelled at any time."""
        for free in (get, functools.partial(post, interruptible=True)):
            seen = threading.Event()
            gone = threading.Event()

            def script(
                peer: Peer, seen: threading.Event = seen, gone: threading.Event = gone
            ) -> None:
                """Read one whole request; then the exchange is cancelled."""
                peer.read_request()
                seen.set()
                hang(peer)
                gone.set()

            with serving(script) as server:
                FREE.equal(self._cancelled(free(server.url), seen), None, "the cancellation")
                FREE.require(gone.wait(1), "the connection closed", "it is open")

    def _cancelled(
        self,
        request: HttpRequest,
        seen: threading.Event,
        cancelled: threading.Event | None = None,
    ) -> Outcome:
        """Return how an exchange ended that is cancelled once the server has seen it, if it did."""
        moment = functools.partial(seen.wait, 2)
        then = (cancelled or threading.Event()).set
        return self._call(request, lambda work: self._thread.cancelled_after(moment, then, work))

    def _cancelled_at(self, nth: int, request: HttpRequest) -> tuple[Outcome, bool]:
        """Return how an exchange ended that is cancelled as it suspends for the *nth* time.

        Return also whether it was suspended that often.
        """
        return self._call(request, lambda work: self._thread.cancelled_at(nth, work))

    def _call(
        self,
        request: HttpRequest,
        cancelling: Callable[[Work[HttpResponse | Exception]], Awaitable[T]],
    ) -> T:
        """Run an exchange of *request* under *cancelling*, on a transport of its own."""
        transport = self.make_async_transport(client_context(authority()))

        async def call() -> HttpResponse | Exception:
            try:
                return await exchange(
                    transport, request, timeout=ENOUGH, authorization=AUTHORIZATION
                )
            except Exception as error:  # noqa: BLE001  # reported to the author of the transport
                return error

        async def main() -> T:
            try:
                return await cancelling(call)
            finally:
                await transport.close()

        return self._thread.run(main)


def _may_be_sent(outcome: Outcome) -> bool:
    """Whether a failure says that some of the request may have been sent."""
    return isinstance(outcome, TransportError) and outcome.failure.sent
