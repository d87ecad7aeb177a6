"""Cancellation of an asynchronous exchange: at any time, except in the middle of a paid one."""

from __future__ import annotations

import functools
import ssl
import threading
from abc import ABC, abstractmethod

import pytest
import trio

from muybridge.testing.certificates import client_context
from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    authority,
    get,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import Lesson
from muybridge.testing.scripted_server import Peer, hang, reply_bytes
from muybridge.wire.async_transport import AsyncTransport, exchange
from muybridge_protocol.http import HttpRequest, HttpResponse

SHIELD = Lesson(
    "a create that is cancelled after its first byte has been paid for, and nobody knows its id",
    "HttpRequest.shielded: a CancelScope with shield=True and the exchange's deadline, from the "
    "first byte until the response's last one; before the first byte there is a checkpoint",
)
FREE = Lesson(
    "a cancelled wait must end at once, and leave no connection behind",
    "AsyncTransport: only a request that is `shielded` is shielded",
)


_after_the_smoke_check = pytest.mark.usefixtures("transport")  # the fixture runs it first


class Cancelling(ABC):
    """What a cancellation does to an exchange under trio."""

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
            SHIELD.require(outcome is None, "the cancellation, in the handshake", outcome)
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
            sent = reply_bytes(200, body)
            peer.send(sent[:-2])
            peer.drip(sent[-2:], every=0.01)
            peer.hang()

        with serving(script) as server:
            outcome = self._cancelled(post(server.url), seen, cancelled)
            found = outcome.body if isinstance(outcome, HttpResponse) else outcome
            expected = f"the response {body!r}, in spite of the cancellation"
            SHIELD.require(found == body, expected, found or "the cancellation")

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
                outcome = self._cancelled(free(server.url), seen)
                FREE.require(outcome is None, "the cancellation", outcome)
                FREE.require(gone.wait(1), "the connection closed", "it is open")

    def _cancelled(
        self,
        request: HttpRequest,
        seen: threading.Event,
        cancelled: threading.Event | None = None,
    ) -> HttpResponse | Exception | None:
        """Return how an exchange ended that is cancelled once the server has seen it, if it did."""
        outcomes: list[HttpResponse | Exception] = []
        transport = self.make_async_transport(client_context(authority()))

        async def call(scope: trio.CancelScope) -> None:
            with scope:
                try:
                    outcome: HttpResponse | Exception = await exchange(
                        transport, request, timeout=ENOUGH, authorization=AUTHORIZATION
                    )
                except Exception as error:  # noqa: BLE001  # reported to the author of the transport
                    outcome = error
                outcomes.append(outcome)

        async def main() -> None:
            scope = trio.CancelScope()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, scope)
                await trio.to_thread.run_sync(seen.wait, 2)
                scope.cancel()
                if cancelled is not None:
                    cancelled.set()
            await transport.close()

        trio.run(main)
        return outcomes[0] if outcomes else None
