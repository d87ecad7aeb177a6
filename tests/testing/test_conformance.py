"""Every transport of ours passes the kit that checks other people's."""

from __future__ import annotations

import pickle
import ssl
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from muybridge.testing.conformance import (
    AsyncTransportConformance,
    Capabilities,
    TransportConformance,
)
from muybridge.testing.conformance.blocking import BlockingTransport, TrioThread
from muybridge.wire.httpx2_transport import Httpx2Transport
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.trio_transport import TrioTransport


def later(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    """Return *clock*, put forward."""
    return lambda: clock() + seconds


class Aging:
    """Lets idle connections grow old without waiting: the transports' clocks jump."""

    @pytest.fixture(autouse=True)
    def _clocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def grow_old(self, seconds: float) -> None:
        for clock in ("monotonic", "perf_counter"):
            real: Callable[[], float] = getattr(time, clock)
            self._monkeypatch.setattr(time, clock, later(real, seconds))


class TestRequestsTransport(Aging, TransportConformance):
    """The transport of `Client` passes all of it."""

    def make_transport(self, ssl_context: ssl.SSLContext) -> RequestsTransport:
        return RequestsTransport(ssl_context=ssl_context)


class TestTrioTransport(Aging, AsyncTransportConformance):
    """So does that of `TrioClient`."""

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> TrioTransport:
        return TrioTransport(ssl_context=ssl_context)


class TestHttpx2Transport(Aging, TransportConformance):
    """So does the one on httpx2, but for what it declares."""

    capabilities = Capabilities(discards_unasked_replies=False, detects_cut_tls=False)

    def make_transport(self, ssl_context: ssl.SSLContext) -> Httpx2Transport:
        return Httpx2Transport(ssl_context=ssl_context)


class KeepsTheKey:
    """An asynchronous transport that would be pickled with what it keeps."""

    def __init__(self) -> None:
        self.kept = "sk-canary"


def test_the_blocking_face_hides_nothing() -> None:
    """To pickle the blocking face of an asynchronous transport is to pickle the transport."""
    with TrioThread() as thread:
        face = BlockingTransport(thread, cast("Any", KeepsTheKey()))
        assert b"sk-canary" in pickle.dumps(face)
