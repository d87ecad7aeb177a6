"""The clients under test, on real transports, behind the one face that the tests know."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import attrs

import muybridge
from client.drivers import AnyClient
from client.event_loops import BlockingAsyncClient, Run, asyncio_runs, trio_runs
from muybridge import batch
from muybridge.batch import Report
from muybridge.testing import SkippingClock
from muybridge.wire.asyncio_transport import AsyncioTransport
from muybridge.wire.http1.transport import Http1Transport
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge.wire.trio_transport import TrioTransport

KEY = "sk-canary-5e1fa0b7c2d94"


class PatientClock(SkippingClock):
    """Skips every wait, and remembers the longest."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0.0

    def sleep(self, seconds: float) -> None:
        """Skip a wait."""
        self.longest = max(self.longest, seconds)
        super().sleep(seconds)


@attrs.frozen(kw_only=True)
class Driven:
    """A client of one driver, and what else is to be known of it.

    Attributes:
        client: The client.
        clock: Its clock.
        batch: Runs a batch with it, given the items and a folder.
        hang_up: Closes its idle connections.
    """

    client: AnyClient
    clock: PatientClock
    batch: Callable[[list[Any], Path], Report]
    hang_up: Callable[[], None]


MakeDriven = Callable[..., Driven]
"""Makes a client, given a base URL and the client's options."""

MakeTransport = Callable[[ssl.SSLContext | None], Transport]
"""Makes a blocking transport, given what it trusts."""

MakeTrioTransport = Callable[[ssl.SSLContext | None], TrioTransport]
"""Makes a transport for trio, given what it trusts."""

MakeAsyncioTransport = Callable[[ssl.SSLContext | None], AsyncioTransport]
"""Makes a transport for asyncio, given what it trusts."""


def requests_driver(
    closing: ExitStack,
    trust: ssl.SSLContext | None,
    make_transport: MakeTransport = lambda trust: RequestsTransport(ssl_context=trust),
) -> MakeDriven:
    """Return what makes clients on requests, to be closed by *closing*."""

    def make(url: str, **options: Any) -> Driven:
        clock = PatientClock()
        transport = make_transport(trust)
        closing.callback(transport.close)
        client = muybridge.Client(KEY, url, url, transport=transport, clock=clock, **options)
        return Driven(
            client=client,
            clock=clock,
            batch=lambda items, folder: batch.run(client, items, folder, timeout=60),
            hang_up=transport.close,
        )

    return make


def _async_driver(
    closing: ExitStack,
    make_client: Callable[..., muybridge.AsyncClient],
    make_transport: Callable[[], Http1Transport],
    runs: Callable[[PatientClock], Run],
) -> MakeDriven:
    """Return what makes async clients, each on a transport of its own, to be closed by *closing*.

    Args:
        closing: Closes them.
        make_client: The client's class.
        make_transport: Makes a transport.
        runs: Returns what runs calls in an event loop, by a clock.
    """

    def make(url: str, **options: Any) -> Driven:
        clock = PatientClock()
        transport, run = make_transport(), runs(clock)
        hang_up = partial(run, transport.close)
        closing.callback(hang_up)
        client = make_client(KEY, url, url, transport=transport, wall=clock.wall, **options)
        return Driven(
            client=BlockingAsyncClient(client, run),
            clock=clock,
            batch=lambda items, folder: run(batch.run_async, client, items, folder, timeout=60),
            hang_up=hang_up,
        )

    return make


def trio_driver(
    closing: ExitStack,
    trust: ssl.SSLContext | None,
    make_transport: MakeTrioTransport = lambda trust: TrioTransport(ssl_context=trust),
) -> MakeDriven:
    """Return what makes clients for trio, to be closed by *closing*."""
    return _async_driver(closing, muybridge.TrioClient, partial(make_transport, trust), trio_runs)


def asyncio_driver(
    closing: ExitStack,
    trust: ssl.SSLContext | None,
    make_transport: MakeAsyncioTransport = lambda trust: AsyncioTransport(ssl_context=trust),
) -> MakeDriven:
    """Return what makes clients for asyncio, to be closed by *closing*."""
    return _async_driver(
        closing,
        muybridge.AsyncClient,
        partial(make_transport, trust),
        lambda clock: asyncio_runs(clock, closing),
    )


MakeDriver = Callable[[ExitStack, ssl.SSLContext | None], MakeDriven]
"""Makes what makes clients, given what closes them and what they trust."""

DRIVERS: dict[str, MakeDriver] = {
    "requests": requests_driver,
    "trio": trio_driver,
    "asyncio": asyncio_driver,
}
