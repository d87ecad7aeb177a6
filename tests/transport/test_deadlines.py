"""Every call ends by its deadline, however busy the other side keeps the connection."""

from __future__ import annotations

import math
import socket
import ssl
import time

import pytest

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from .calls import failure_of, get, post
from .scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    read_request,
    send,
)

DEADLINE = 0.3


def drip(data: bytes) -> Step:
    return lambda peer: peer.drip(data, every=0.03)


def flood(data: bytes) -> Step:
    def step(peer: Peer) -> None:
        while not peer.stopping.is_set():
            peer.send(data)

    return step


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("phase", "steps"),
    [
        (Phase.HEAD, [flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)]),
        (Phase.HEAD, [flood(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)]),
        (Phase.BODY, [send(CHUNKED), drip(b"0" * 999)]),
        (Phase.BODY, [send(CHUNKED + b"0\r\n"), drip(b"X: y\r\n" * 999)]),
        (Phase.BODY, [send(HEAD + b"\r\n"), drip(b"x" * 999)]),
        (Phase.BODY, [send(HEAD + b"\r\n"), flood(b"x" * 4096)]),
    ],
)
def test_drips(
    transport: Transport, tls: ssl.SSLContext | None, phase: Phase, steps: list[Step]
) -> None:
    """A response that drips in, or never ends, is abandoned at the deadline."""
    with ScriptedServer([read_request, *steps], tls=tls) as server:
        failure = failure_of(transport, post(server.url, body_limit=None), timeout=DEADLINE)
        assert (failure.phase, failure.reason) == (phase, Reason.TIMED_OUT)
        assert (failure.sent, server.posts) == (True, 1)


def test_idle_handshake(transport: Transport) -> None:
    """A TLS handshake in which nothing arrives ends the exchange early, with nothing sent."""

    def script(peer: Peer) -> None:
        peer.receive()
        peer.stopping.wait(5)

    with ScriptedServer(script, scheme="https") as server:
        failure = failure_of(transport, get(server.url, idle_timeout=0.15), timeout=math.inf)
    assert (failure.phase, failure.sent, failure.reason) == (Phase.TLS, False, Reason.TIMED_OUT)


def test_many_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying one address after another also ends at the deadline."""
    tried: list[float] = []

    def connect(sock: socket.socket, _: object) -> None:
        wait = sock.gettimeout() or 0
        tried.append(wait)
        time.sleep(wait)
        raise TimeoutError("timed out")

    real = socket.getaddrinfo("127.0.0.1", 9, 0, socket.SOCK_STREAM)

    def resolve(*_: object) -> object:
        return real * 50

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", connect)
    transport = RequestsTransport(connect_timeout=0.1)
    failure = failure_of(transport, post("http://many.example/"), timeout=DEADLINE)
    assert (failure.phase, failure.sent) == (Phase.CONNECT, False)
    assert failure.reason is Reason.TIMED_OUT
    assert 3 <= len(tried) <= 4
    assert max(tried) <= 0.1
