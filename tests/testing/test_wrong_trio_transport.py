"""The kit refuses a transport for trio that a cancellation robs of what was paid for."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import pytest

from muybridge.testing.conformance import AsyncTransportConformance, NotConforming
from muybridge.wire.async_transport import AsyncStreamedReply
from muybridge.wire.trio_transport import TrioTransport
from muybridge_protocol.http import HttpRequest


class ShieldsNothing:
    """Lets every exchange be cancelled at any time."""

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self.right = TrioTransport(ssl_context=ssl_context)

    @asynccontextmanager
    async def stream(
        self,
        request: HttpRequest,
        *,
        timeout: float,  # noqa: ASYNC109  # as that of AsyncTransport
        authorization: str | None = None,
    ) -> AsyncGenerator[AsyncStreamedReply]:
        free = attrs.evolve(request, interruptible=True)
        async with self.right.stream(free, timeout=timeout, authorization=authorization) as reply:
            yield reply

    async def close(self) -> None:
        await self.right.close()


class Suite(AsyncTransportConformance):
    def make_async_transport(self, ssl_context: ssl.SSLContext) -> ShieldsNothing:
        return ShieldsNothing(ssl_context)


def test_cancelled() -> None:
    """Who loses a paid response to a cancellation is told when it came, and what it costs."""
    with pytest.raises(NotConforming) as caught:
        Suite().test_cancelled_while_it_is_paid()
    message = str(caught.value)
    for words in (
        "given: a server that is to read one whole request, and answer it when the exchange has",
        "the response b'{\"id\": 7}', in spite of the cancellation",
        "found: the cancellation",
        "has been paid for, and nobody knows its id",
        "HttpRequest.shielded",
    ):
        assert words in message
