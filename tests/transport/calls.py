"""Requests that the tests of a transport make, and what they come to."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from muybridge.testing.conformance.blocking import BlockingTransport
from muybridge.wire import async_transport
from muybridge.wire.transport import Transport, TransportError, exchange
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure

KEY = "sk-canary-7f3a9b"
AUTHORIZATION = f"Bearer {KEY}"
QUERY = "signature=canary-4c1d"
SLACK = 0.5
"""Seconds by which a call may end after its deadline."""


def get(url: str, **settings: Any) -> HttpRequest:
    return HttpRequest(method="GET", url=url, **settings)


def post(url: str, body: bytes = b'{"prompt": "a horse"}', **settings: Any) -> HttpRequest:
    headers = (("Content-Type", "application/json"),)
    return HttpRequest(method="POST", url=url, headers=headers, body=body, paid=True, **settings)


def call(transport: Transport, request: HttpRequest, timeout: float = 5.0) -> HttpResponse:
    """Send *request* as the clients do, and return the whole response."""
    if isinstance(transport, BlockingTransport):
        do = partial(async_transport.exchange, transport.inner, request)
        return transport.thread.run(partial(do, timeout=timeout, authorization=AUTHORIZATION))
    return exchange(transport, request, timeout=timeout, authorization=AUTHORIZATION)


def failure_of(
    transport: Transport, request: HttpRequest, timeout: float = 5.0
) -> TransportFailure:
    """Return how the exchange fails, having checked that it does so in time and cleanly."""
    began = time.monotonic()
    with pytest.raises(TransportError) as caught:
        call(transport, request, timeout)
    assert time.monotonic() - began < max(timeout, 0) + SLACK
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert KEY not in repr(caught.value) + str(caught.value.failure)
    return caught.value.failure
