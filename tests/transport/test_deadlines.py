"""Every call ends by its deadline, however busy the other side keeps the connection."""

from __future__ import annotations

import socket
import ssl
import time

import pytest
import trustme

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from .calls import SLACK, call, failure_of, get, post
from .certificates import server_context
from .scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    read_request,
    reply_bytes,
    send,
    serve,
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
        (Phase.HEAD, [drip(HEAD + b"X: " + b"y" * 1000)]),
        (Phase.HEAD, [drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)]),
        (Phase.HEAD, [flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)]),
        (Phase.HEAD, [flood(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)]),
        (Phase.BODY, [send(reply_bytes(200, b"x" * 999)[:-999]), drip(b"x" * 999)]),
        (Phase.BODY, [send(CHUNKED), drip(b"1\r\nx\r\n" * 999)]),
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


def test_handshake_drip(transport: Transport, authority: trustme.CA) -> None:
    """A TLS handshake that drips in is abandoned at the deadline, with the request unsent."""
    context = server_context(authority, "127.0.0.1")

    def script(peer: Peer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        handshake = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(peer.receive())
        with pytest.raises(ssl.SSLWantReadError):
            handshake.do_handshake()
        peer.drip(outgoing.read(), every=0.02)

    with ScriptedServer(script, scheme="https") as server:
        failure = failure_of(transport, post(server.url), timeout=DEADLINE)
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


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_no_time(transport: Transport, timeout: float) -> None:
    """A call with no time left does not begin."""
    with ScriptedServer(serve()) as server:
        failure = failure_of(transport, post(server.url), timeout)
        assert (failure.sent, failure.reason) == (False, Reason.TIMED_OUT)
        assert server.peers == []


def test_unbounded(transport: Transport) -> None:
    """An infinite timeout is a timeout like any other."""
    with ScriptedServer(serve()) as server:
        assert call(transport, get(server.url), float("inf")).status == 200


@pytest.mark.parametrize("phase", [Phase.HEAD, Phase.BODY])
def test_idle(transport: Transport, tls: ssl.SSLContext | None, phase: Phase) -> None:
    """A gap between bytes of the response longer than allowed ends the exchange early."""
    whole = reply_bytes(200, b"x" * 10)
    begun = whole[:-5] if phase is Phase.BODY else whole[:5]

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.drip(begun, every=0.002)
        peer.stopping.wait(5)

    with ScriptedServer(script, tls=tls) as server:
        began = time.monotonic()
        failure = failure_of(transport, get(server.url, idle_timeout=0.15), timeout=5)
        assert time.monotonic() - began < 0.15 + len(begun) * 0.004 + SLACK
    assert (failure.phase, failure.reason) == (phase, Reason.TIMED_OUT)


def test_deadline_of_next_request(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """A reused connection has the deadline of its current request."""
    with ScriptedServer(serve(), tls=tls) as server:
        call(transport, get(server.url), timeout=0.2)
        time.sleep(0.25)
        call(transport, get(server.url), timeout=0.2)
        assert len(server.peers) == 1
