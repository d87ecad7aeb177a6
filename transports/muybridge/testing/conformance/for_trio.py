"""The checks of a transport for trio."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from muybridge.testing.conformance import EveryTransport
from muybridge.testing.conformance.blocking import BlockingTransport
from muybridge.testing.conformance.cancelling import Cancelling
from muybridge.testing.conformance.event_loops import TrioThread
from muybridge.wire.async_transport import AsyncTransport


class AsyncTransportConformance(Cancelling, EveryTransport):
    """The checks of a transport for trio: an `AsyncTransport`.

    They are those of a blocking transport, run in a thread with an event loop, except that
    cancellations replace signals. Inherit it in a class whose name begins with `Test`,
    and override `make_async_transport`.
    """

    _thread: TrioThread

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
        with TrioThread() as self._thread:
            yield
