"""Which connection a request uses, and what happens to the connection afterwards."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge.wire.trio_transport import TrioTransport
from muybridge_protocol.http import Reason

from .calls import call, failure_of, get, post
from .conftest import MakeTransport
from .scripted_server import (
    Peer,
    ScriptedServer,
    in_turn,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)


def test_polls_follow_a_paid_request(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """Polls reuse the connection of the create, so that a task costs one TLS handshake."""
    with ScriptedServer(serve(), tls=tls) as server:
        call(transport, post(server.url))
        call(transport, get(server.url))
        call(transport, get(server.url))
        assert len(server.peers) == 1


def test_paid_requests_leave_one_connection_open(
    make_transport: MakeTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Many creates in a row do not pile up idle connections, nor warn of a full pool."""
    transport = make_transport(pool_size=2)
    with caplog.at_level("WARNING"), ScriptedServer(serve()) as server:
        for _ in range(10):
            call(transport, post(server.url))
        first, *others = server.peers
        for thread in server.script_threads[1:]:
            thread.join(5)
        assert len(others) == 9
        assert [thread.is_alive() for thread in server.script_threads] == [True] + [False] * 9
        call(transport, get(server.url))
        assert first.received.startswith(b"POST")
        assert b"GET / " in first.received
    assert not caplog.records


def test_polls_seconds_apart(
    transport: Transport, tls: ssl.SSLContext | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polls share one connection however far apart the specification has them, up to a minute."""
    clock, passed = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed)
    with ScriptedServer(serve(), tls=tls) as server:
        for pause in (6.0, 6.0, 6.0, 60.0):
            call(transport, get(server.url))
            passed += pause
        call(transport, get(server.url))
        assert len(server.peers) == 1


def test_unsolicited_reply_with_the_body(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """What follows a body in one piece with it is neither of the body nor the next response."""
    head_read = threading.Event()
    head, _, body = response_bytes().partition(b"\r\n\r\n")

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(head + b"\r\n\r\n")
        head_read.wait(5)
        peer.send(body + response_bytes(200, b"evil"))
        peer.hang()

    with ScriptedServer(in_turn(script, serve(200, b"good")), tls=tls) as server:
        with transport.stream(get(server.url), timeout=5) as reply:
            head_read.set()
            assert b"".join(reply.pieces()) == body
        assert call(transport, get(server.url)).body == b"good"


def test_threads(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """Thirty-two threads at once each get their own response, and none waits for a connection."""
    together = threading.Barrier(32)

    def echo(peer: Peer) -> None:
        while True:
            path = peer.read_request().split(b" ")[1]
            if path.startswith(b"/first"):
                together.wait(10)
            peer.send(response_bytes(200, path))

    with (
        ScriptedServer(echo, tls=tls) as server,
        ThreadPoolExecutor(32) as threads,
    ):
        firsts = [f"/first{n}" for n in range(32)]
        rest = [f"/n{n}" for n in range(320)]
        for paths in (firsts, rest):
            requests = [get(server.url + path) for path in paths]
            replies = threads.map(call, repeat(transport), requests)
            assert [response.body.decode() for response in replies] == paths
        assert len(server.peers) == 32


def test_more_threads_than_kept(make_transport: MakeTransport) -> None:
    """A pool smaller than the number of threads makes none of them wait."""
    transport = make_transport(pool_size=2)
    together = threading.Barrier(8)

    def script(peer: Peer) -> None:
        peer.read_request()
        together.wait(5)
        peer.send(response_bytes())
        peer.hang()

    with ScriptedServer(script) as server, ThreadPoolExecutor(8) as threads:
        replies = threads.map(call, repeat(transport), [get(server.url)] * 8)
        assert [response.status for response in replies] == [200] * 8


def test_fork(requests_transport: RequestsTransport, tls: ssl.SSLContext | None) -> None:
    """A forked child opens connections of its own and leaves its parent's alone."""
    transport = requests_transport
    with ScriptedServer(serve(), tls=tls) as server:
        call(transport, get(server.url))
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if call(transport, get(server.url)).status == 200 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert call(transport, get(server.url)).status == 200
        assert len(server.peers) == 2


DESCRIPTORS = Path("/proc/self/fd")


def descriptors() -> int:
    return len(list(DESCRIPTORS.iterdir()))


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors by /proc")
def test_no_leak(transport: Transport, tls: ssl.SSLContext | None) -> None:
    """Failures of every kind leave no file descriptor open."""
    faults = (
        [reset],
        [read_request],
        [read_request, reset],
        [read_request, send(b"SSH-2.0\r\n")],
        [read_request, send(response_bytes()[:-1])],
        [read_request, send(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")],
    )
    by_turns = [faults[n % len(faults)] for n in range(120)]
    with ScriptedServer(in_turn(*by_turns), tls=tls) as server:
        # As many as a round of faults, so that what is made once is there.
        for _ in faults:
            failure_of(transport, get(server.url))
        settle(server)
        before = descriptors()
        for _ in range(100):
            failure_of(transport, get(server.url))
        settle(server)
        assert descriptors() <= before


def settle(server: ScriptedServer) -> None:
    """Wait until the server's threads have closed their ends."""
    for thread in server.script_threads:
        thread.join(5)


def test_interrupt(requests_transport: RequestsTransport, tls: ssl.SSLContext | None) -> None:
    """An interrupt passes through untouched, and its connection is closed."""
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        os.kill(os.getpid(), 2)
        peer.hang()
        closed.set()

    with ScriptedServer(script, tls=tls) as server:
        with pytest.raises(KeyboardInterrupt):
            call(requests_transport, post(server.url))
        assert closed.wait(5)
        assert server.posts == 1


@pytest.mark.parametrize("kind", [RequestsTransport, TrioTransport])
def test_construction_is_cheap(kind: Callable[[], object]) -> None:
    """Making a transport reads no certificates: that waits for the first TLS connection."""
    began = time.perf_counter()
    for _ in range(20):
        kind()
    assert (time.perf_counter() - began) / 20 < 0.001


Address = tuple[int, int, int, str, tuple[str, int]]


def resolve_by(monkeypatch: pytest.MonkeyPatch, answers: list[list[Address]]) -> None:
    """Let each look-up of a name give the next of *answers*."""

    def getaddrinfo(*_: object) -> list[Address]:
        return answers.pop(0)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("private", ["169.254.169.254", "168.63.129.16", "192.0.0.192"])
def test_one_private_address_among_public_ones(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, private: str
) -> None:
    """One private address among those of a host is enough to refuse it."""
    both: list[Address] = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 80)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (private, 80)),
    ]
    resolve_by(monkeypatch, [both])
    failure = failure_of(transport, get("http://rebound.example/", public_host_only=True))
    assert (failure.sent, failure.reason) == (False, Reason.PRIVATE_ADDRESS)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "168.63.129.16", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"],
)
def test_no_request_goes_to_a_metadata_service(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """A name that resolves to a cloud's metadata service is refused, whatever else is allowed."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    resolve_by(monkeypatch, [[(family, socket.SOCK_STREAM, 6, "", (address, 80))]])
    failure = failure_of(transport, get("http://rebound.example/"))
    assert (failure.sent, failure.reason) == (False, Reason.PRIVATE_ADDRESS)
