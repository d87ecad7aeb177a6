"""Nothing that arrives before the first byte of a request is taken for its response."""

from __future__ import annotations

import ssl

import pytest

from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason, TransportFailure

from .calls import call, failure_of, get, post
from .holding import hold, something_arrives
from .scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    hang,
    response_bytes,
    send,
    serve,
)

STRAYS = {
    "429": response_bytes(429, b"", retry_after="0"),
    "400": response_bytes(400, b'{"error": "no"}'),
    "200": response_bytes(200, b'{"id": "task-of-another"}'),
    "a part of a head": b"HTTP/1.1 200 OK\r\n",
    "one byte": b"\n",
}


def shake_hands(context: ssl.SSLContext, behind: bytes = b"", *, close: bool = False) -> Step:
    """Return a step that makes a TLS handshake and sends *behind* in one piece with its end."""

    def step(peer: Peer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.sock.sendall(outgoing.read())
                incoming.write(peer.sock.recv(65536))
        if behind:
            tls.write(behind)
        if close:
            with pytest.raises(ssl.SSLWantReadError):  # it waits for the alert of the client
                tls.unwrap()
        peer.sock.sendall(outgoing.read())

    return step


def assert_unsent(failure: TransportFailure, reason: Reason) -> None:
    """Check that nothing was sent, and that nothing of a response is reported."""
    assert (failure.phase, failure.sent, failure.reason) == (Phase.SEND, False, reason)
    assert (failure.bytes_sent, failure.partial, failure.status) == (0, b"", None)
    assert "before the request was sent" in failure.detail


@pytest.mark.parametrize("stray", STRAYS)
def test_before_a_request(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, stray: str
) -> None:
    """What arrives on a new connection before the request leaves it unsent."""
    hold(monkeypatch, something_arrives)
    with ScriptedServer([send(STRAYS[stray]), hang]) as server:
        assert_unsent(failure_of(transport, post(server.url)), Reason.MALFORMED)
        assert_unsent(failure_of(transport, get(server.url)), Reason.MALFORMED)
    assert server.received == b""


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_before_a_request_over_tls(
    transport: Transport,
    server_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    version: ssl.TLSVersion,
    stray: str,
) -> None:
    """So does what comes right behind the handshake, after session tickets or without any."""
    monkeypatch.setattr(server_tls, "minimum_version", version)
    monkeypatch.setattr(server_tls, "maximum_version", version)
    if version is ssl.TLSVersion.TLSv1_3:  # where the end of the handshake is the client's
        hold(monkeypatch, something_arrives)
    script = [shake_hands(server_tls, STRAYS[stray]), Peer.receive, hang]
    with ScriptedServer(script, scheme="https") as server:
        assert_unsent(failure_of(transport, post(server.url)), Reason.MALFORMED)
    assert server.received == b""


def test_session_tickets(
    transport: Transport, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Session tickets, which TLS 1.3 sends unasked, do not keep a request from being sent."""
    hold(monkeypatch, something_arrives)
    with ScriptedServer(serve(200, b"its own"), tls=server_tls) as server:
        assert call(transport, post(server.url)).body == b"its own"
        assert isinstance(server.peers[0].sock, ssl.SSLSocket)
        assert server.peers[0].sock.version() == "TLSv1.3"


def test_closed_before_a_request(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that the server closes before the request leaves it unsent."""
    hold(monkeypatch, something_arrives)
    with ScriptedServer([Peer.close]) as server:
        assert_unsent(failure_of(transport, post(server.url)), Reason.CLOSED)


def test_tls_closed_before_a_request(
    transport: Transport, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does one whose TLS ends, with an alert or without."""
    monkeypatch.setattr(server_tls, "num_tickets", 0)  # they would arrive first
    hold(monkeypatch, something_arrives)
    for script in ([shake_hands(server_tls, close=True), hang], [shake_hands(server_tls)]):
        with ScriptedServer(script, scheme="https") as server:
            failure = failure_of(transport, post(server.url))
        assert (failure.phase, failure.sent, failure.reason) == (Phase.SEND, False, Reason.CLOSED)
