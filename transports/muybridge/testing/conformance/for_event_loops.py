"""The checks of an asynchronous transport."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from importlib import import_module
from typing import ClassVar, Literal

import pytest

from muybridge.testing.conformance.blocking import BlockingTransport
from muybridge.testing.conformance.cancelling import Cancelling
from muybridge.testing.conformance.event_loops import AsyncioThread, EventLoopThread, TrioThread
from muybridge.testing.conformance.every_transport import EveryTransport
from muybridge.wire.async_transport import AsyncTransport


class AsyncTransportConformance(Cancelling, EveryTransport):
    """The checks of an asynchronous transport: an `AsyncTransport`.

    They are those of a blocking transport, run in a thread with an event loop, except that
    cancellations replace signals. Inherit it in a class whose name begins with `Test`,
    override `make_async_transport`, and name the event loop.
    """

    event_loop: ClassVar[Literal["trio", "asyncio", "uvloop"]] = "trio"
    """The event loop that it runs on."""

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> AsyncTransport:
        """Return a new transport of the kind to check.

        Args:
            ssl_context: The context that it must use for TLS connections.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how its transport is made")

    def make_transport(self, ssl_context: ssl.SSLContext) -> BlockingTransport:
        """Return the transport behind a blocking face."""
        return BlockingTransport(self._thread, self.make_async_transport(ssl_context))

    @pytest.fixture(autouse=True)
    def _event_loop(self) -> Iterator[None]:
        with thread_of(self.event_loop) as self._thread:
            yield


def thread_of(event_loop: Literal["trio", "asyncio", "uvloop"]) -> EventLoopThread:
    """Return a thread for *event_loop*."""
    if event_loop == "trio":
        return TrioThread()
    if event_loop == "asyncio":
        return AsyncioThread()
    return AsyncioThread(import_module("uvloop").new_event_loop)
