"""Every transport of ours passes the kit that checks other people's."""

from __future__ import annotations

import pickle
import re
import ssl
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from muybridge.testing.conformance import (
    AsyncTransportConformance,
    Capabilities,
    TransportConformance,
)
from muybridge.testing.conformance.blocking import BlockingTransport
from muybridge.testing.conformance.event_loops import TrioThread
from muybridge.wire.async_transport import AsyncTransport
from muybridge.wire.asyncio_transport import AsyncioTransport
from muybridge.wire.httpx2_transport import Httpx2Transport
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge.wire.trio_transport import TrioTransport

from .on_aiohttp import AiohttpTransport
from .on_pycurl import PycurlTransport

PAGE = Path(__file__).parents[2] / "docs" / "write-a-transport.md"


def documented() -> dict[str, Any]:
    """Return what the page on writing a transport defines: two transports and their suites."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    namespace: dict[str, Any] = {}
    for block in blocks:
        if re.search("^class ", block, re.MULTILINE):
            exec(block, namespace)  # noqa: S102  # our own page
    return namespace


DOCUMENTED = documented()


class TestRequestsTransport(TransportConformance):
    """The transport of `Client` passes all of it."""

    def make_transport(self, ssl_context: ssl.SSLContext) -> RequestsTransport:
        return RequestsTransport(ssl_context=ssl_context)


class TestTrioTransport(AsyncTransportConformance):
    """So does that of `TrioClient`."""

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> TrioTransport:
        return TrioTransport(ssl_context=ssl_context)


class TestAsyncioTransport(AsyncTransportConformance):
    """So does that of `AsyncClient` under asyncio."""

    event_loop = "asyncio"

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> AsyncioTransport:
        return AsyncioTransport(ssl_context=ssl_context)


@pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")
class TestAsyncioTransportOnUvloop(TestAsyncioTransport):
    """And so it does on uvloop."""

    event_loop = "uvloop"


class TestHttpx2Transport(TransportConformance):
    """So does the one on httpx2, but for what it declares."""

    capabilities = Capabilities(discards_unasked_responses=False, detects_cut_tls=False)

    def make_transport(self, ssl_context: ssl.SSLContext) -> Httpx2Transport:
        return Httpx2Transport(ssl_context=ssl_context)


class TestPycurlTransport(TransportConformance):
    """So does one on libcurl, which shows neither its socket nor all that it reads."""

    capabilities = Capabilities(
        keeps_alive=False,
        refuses_early_bytes=False,
        refuses_second_responses=False,
        shows_tls_phase=False,
        shows_sending=False,
        keeps_cut_heads=False,
    )

    def make_transport(self, ssl_context: ssl.SSLContext) -> PycurlTransport:
        return PycurlTransport(ssl_context)


class TestAiohttpTransport(AsyncTransportConformance):
    """So does one on aiohttp."""

    event_loop = "asyncio"
    capabilities = Capabilities(keeps_alive=False, shows_tls_phase=False, detects_cut_tls=False)

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> AiohttpTransport:
        return AiohttpTransport(ssl_context)


class TestDocumentedTransport(TransportConformance):
    """So does the one that a page of the docs shows whole, with what it declares there."""

    suite: type[TransportConformance] = DOCUMENTED["TestHttpClientTransport"]
    capabilities = suite.capabilities

    def make_transport(self, ssl_context: ssl.SSLContext) -> Transport:
        return self.suite().make_transport(ssl_context)


class TestDocumentedAsyncTransport(AsyncTransportConformance):
    """So does the one for asyncio that the page shows."""

    suite: type[AsyncTransportConformance] = DOCUMENTED["TestAsyncioSocketTransport"]
    event_loop = suite.event_loop
    capabilities = suite.capabilities

    def make_async_transport(self, ssl_context: ssl.SSLContext) -> AsyncTransport:
        return self.suite().make_async_transport(ssl_context)


def test_every_capability_is_explained() -> None:
    """The page on writing a transport has a row for each capability."""
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row for row in rows if row.islower()] == list(attrs.fields_dict(Capabilities))


class KeepsTheKey:
    """An asynchronous transport that would be pickled with what it keeps."""

    def __init__(self) -> None:
        self.kept = "sk-canary"


def test_the_blocking_face_hides_nothing() -> None:
    """To pickle the blocking face of an asynchronous transport is to pickle the transport."""
    with TrioThread() as thread:
        face = BlockingTransport(thread, cast("Any", KeepsTheKey()))
        assert b"sk-canary" in pickle.dumps(face)
