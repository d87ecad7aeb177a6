"""The kit refuses an async transport that a cancellation robs of what was paid for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import attrs
import pytest

import moments
from muybridge.testing.conformance import AsyncTransportConformance, NotConforming
from muybridge.testing.conformance.for_event_loops import thread_of
from muybridge.wire.async_transport import AsyncStreamedResponse
from muybridge.wire.asyncio_transport import AsyncioTransport
from muybridge.wire.http1.transport import Http1Transport
from muybridge.wire.transport import TransportError
from muybridge.wire.trio_transport import TrioTransport
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure


@attrs.frozen
class ShieldsNothing:
    """Lets every exchange be cancelled at any time."""

    right: Http1Transport

    @asynccontextmanager
    async def stream(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  # as that of AsyncTransport
        authorization: str | None = None,
    ) -> AsyncGenerator[AsyncStreamedResponse]:
        free = attrs.evolve(request, interruptible=True)
        async with self.right.stream(free, timeout=timeout, authorization=authorization) as reply:
            yield reply

    async def close(self) -> None:
        await self.right.close()


@attrs.frozen
class ReportsCancellations(ShieldsNothing):
    """Turns a cancellation into a failure.

    Args:
        sent: Whether it says that the request was sent.
    """

    sent: bool

    @asynccontextmanager
    async def stream(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  # as that of AsyncTransport
        authorization: str | None = None,
    ) -> AsyncGenerator[AsyncStreamedResponse]:
        whole = ShieldsNothing.stream(self, request, timeout=timeout, authorization=authorization)
        try:
            async with whole as reply:
                yield reply
        except asyncio.CancelledError:
            failure = TransportFailure(phase=Phase.HEAD, sent=self.sent, reason=Reason.OTHER)
            raise TransportError(failure) from None


class OnTrio(AsyncTransportConformance):
    def make_async_transport(self, ssl_context: ssl.SSLContext) -> ShieldsNothing:
        return ShieldsNothing(TrioTransport(ssl_context=ssl_context))


class OnAsyncio(AsyncTransportConformance):
    event_loop = "asyncio"

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> ShieldsNothing:
        return ShieldsNothing(AsyncioTransport(ssl_context=ssl_context))


class SaysSent(OnAsyncio):
    def make_async_transport(self, ssl_context: ssl.SSLContext) -> ShieldsNothing:
        return ReportsCancellations(AsyncioTransport(ssl_context=ssl_context), sent=True)


class SaysUnsent(OnAsyncio):
    def make_async_transport(self, ssl_context: ssl.SSLContext) -> ShieldsNothing:
        return ReportsCancellations(AsyncioTransport(ssl_context=ssl_context), sent=False)


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Iterator[AsyncTransportConformance]:
    """The suite that a test is parametrised with, with its event loop."""
    suite: AsyncTransportConformance = request.param()
    with thread_of(suite.event_loop) as thread:
        moments.run_on(suite, thread)
        yield suite


@pytest.mark.parametrize("made", [OnTrio, OnAsyncio, SaysUnsent], indirect=True)
def test_cancelled(made: AsyncTransportConformance) -> None:
    """Who loses a paid response to a cancellation is told when it came, and what it costs."""
    with pytest.raises(NotConforming) as caught:
        made.test_cancelled_while_it_is_paid()
    message = str(caught.value)
    for words in (
        "given: a server that is to read one whole request, and answer it when the exchange has",
        "the response b'{\"id\": 7}', in spite of the cancellation",
        "found: TransportError, phase=Phase.HEAD, sent=False"
        if isinstance(made, SaysUnsent)
        else "found: the cancellation",
        "has been paid for, and nobody knows its id",
        "HttpRequest.shielded",
    ):
        assert words in message


@pytest.mark.parametrize("made", [OnTrio, OnAsyncio, SaysUnsent], indirect=True)
def test_cancelled_at_each_suspension(made: AsyncTransportConformance) -> None:
    """So is who loses it at one suspension out of many."""
    with pytest.raises(NotConforming) as caught:
        made.test_cancelled_at_each_suspension()
    message = str(caught.value)
    for words in ("expected: no byte of the request", "at suspension ", "nobody knows its id"):
        assert words in message


@pytest.mark.parametrize("made", [SaysSent], indirect=True)
def test_a_failure_that_says_what_was_sent(made: AsyncTransportConformance) -> None:
    """Under asyncio, a paid exchange may also end with a failure that says what was sent."""
    made.test_cancelled_while_it_is_paid()
    made.test_cancelled_at_each_suspension()
