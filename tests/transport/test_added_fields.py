"""Header fields that an instrumentation of requests adds to what is sent."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import Reason

from .calls import KEY, call, post
from .scripted_server import ScriptedServer, serve

NAME = "traceparent"


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Fields that are added to each request, as an instrumentation does it."""
    fields: dict[str, str] = {}
    send = requests.Session.send

    def traced(session: requests.Session, request: Any, **more: Any) -> requests.Response:
        request.headers.update(fields)
        return send(session, request, **more)

    monkeypatch.setattr(requests.Session, "send", traced)
    return fields


def test_a_field_that_is_added(requests_transport: RequestsTransport, add: dict[str, str]) -> None:
    """It is sent beside ours, once, and ours stay as they are."""
    add[NAME] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with ScriptedServer(serve()) as server:
        assert call(requests_transport, post(server.url)).status == 200
        (peer,) = server.peers
    head = bytes(peer.received).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    assert head.count(f"{NAME}: {add[NAME]}") == 1
    assert [line for line in head if line.startswith("authorization")] == [
        f"authorization: bearer {KEY}"
    ]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\n", "\0"])
def test_a_field_that_would_break_the_request_apart(
    requests_transport: RequestsTransport, add: dict[str, str], value: str
) -> None:
    """Nothing is sent of a request that a field would break apart."""
    add[NAME] = value
    with ScriptedServer(serve()) as server:
        with pytest.raises(TransportError) as caught:
            call(requests_transport, post(server.url))
        assert server.posts == 0
    assert not caught.value.failure.sent
    assert caught.value.failure.reason is Reason.OTHER
