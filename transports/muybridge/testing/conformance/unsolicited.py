"""Responses that nobody asked for are never taken for the response to a request."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from muybridge.testing.certificates import server_context
from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    Checks,
    authority,
    call,
    failure_of,
    get,
    only_transport_errors,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import WHOLE, Lesson, promises
from muybridge.testing.scripted_server import (
    Peer,
    ScriptedServer,
    hang,
    in_turn,
    read_request,
    response_bytes,
    send,
    serve,
)
from muybridge.wire.transport import Transport, TransportError, exchange
from muybridge_protocol.http import HttpRequest

_EVIL = response_bytes(200, b"somebody else's")
_IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"

UNASKED = Lesson(
    f"{WHOLE}; a create would be answered with the id of somebody else's task",
    "what a connection goes back to its pool with: bytes after the response's end, or on an idle "
    "connection, mean that it must be closed; a paid request has a connection of its own",
)
EARLY = Lesson(
    "what arrives before the first byte of a request cannot be its response: a 429 would make the "
    "client send the create again, which is then paid for twice, a 400 would report it as refused, "
    "and a 200 would give it another task's id",
    "the moment before a paid request's first byte: if anything can be read by then, raise "
    "TransportError with sent=False, and the client retries; muybridge.wire.building.Exchange.send "
    "checks it if it is given the socket, and so does building.refuse_early_bytes",
)
BEHIND = Lesson(
    "what follows may be the true response, and accept the request: taken for refused, it is "
    "reported as free of charge, or sent and paid for again after a 429, and its id is lost",
    "the end of a response that refuses a paid request: whatever has arrived behind it makes the "
    "exchange fail, with everything that arrived; building.Response does it if exchange.receive "
    "gets everything that is read and exchange.send knows the socket",
)


@contextlib.contextmanager
def _connected_late(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Delay each new connection until the server has sent something on it."""
    connect = socket.socket.connect

    def connect_and_wait(sock: socket.socket, address: Any) -> None:
        timeout = sock.gettimeout()
        sock.settimeout(ENOUGH)
        connect(sock, address)
        select.select([sock], [], [], ENOUGH)
        sock.settimeout(timeout)

    with monkeypatch.context() as patched:
        patched.setattr(socket.socket, "connect", connect_and_wait)
        yield


def _greet_over_tls(peer: Peer) -> None:
    """Make a TLS 1.2 handshake, send a whole response right behind it, and answer one request."""
    context = server_context(authority(), "127.0.0.1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # where the server has the last word
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)

    def until_done(step: Callable[[], object], behind: bytes = b"") -> None:
        while True:
            try:
                step()
            except ssl.SSLWantReadError:
                peer.sock.sendall(outgoing.read())
                data = peer.sock.recv(65536)
                if not data:
                    raise ConnectionResetError("the client went away") from None
                incoming.write(data)
            else:
                break
        tls.write(behind)
        peer.sock.sendall(outgoing.read())  # in one piece, so that nothing comes between

    until_done(tls.do_handshake, _EVIL)
    until_done(lambda: peer.received.extend(tls.read()), response_bytes(200, b"its own"))
    peer.hang()


class Unasked(Checks):
    """What happens to responses that nobody asked for."""

    @promises("refuses_early_bytes")
    def test_before_the_first_byte(
        self, transport: Transport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What arrives before a paid request is sent is not taken for its response."""
        script = [send(_EVIL), serve(200, b"its own")]
        with serving(script) as server, _connected_late(monkeypatch):
            self._check_early(transport, server)

    @promises("refuses_early_bytes", decides=False)
    def test_behind_the_handshake(self, transport: Transport) -> None:
        """Nor is what arrives right behind a TLS handshake."""
        with serving(_greet_over_tls, scheme="https") as server:
            self._check_early(transport, server)

    def _check_early(self, transport: Transport, server: ScriptedServer) -> None:
        request = post(server.url)
        try:
            with only_transport_errors():
                response = exchange(transport, request, timeout=ENOUGH, authorization=AUTHORIZATION)
        except TransportError as error:
            EARLY.require(not error.failure.sent, "sent=False", error.failure)
            EARLY.require(
                not server.posts, "no POST, for the failure says sent=False", error.failure
            )
        else:
            found = f"status {response.status} with the body {response.body!r}"
            expected = "TransportError with sent=False, or the response b'its own'"
            EARLY.require(response.body == b"its own", expected, found)

    @promises("refuses_second_responses")
    @pytest.mark.parametrize("status", [400, 429])
    def test_behind_a_refusal(self, transport: Transport, status: int) -> None:
        """A paid request is not taken for refused if another response follows the refusal."""
        with serving([read_request, send(response_bytes(status, b"no") + _EVIL), hang]) as server:
            failure = failure_of(transport, post(server.url), BEHIND)
        BEHIND.require(failure.sent, "sent=True, for it may have been accepted", failure)
        kept = b"somebody else's" in failure.partial
        BEHIND.require(kept, "partial with the second response", failure)

    def test_unasked_response_to_paid(
        self, transport: Transport, tls: ssl.SSLContext | None
    ) -> None:
        """What a server sends unasked is never taken for the response to a paid request."""
        self._check_behind(transport, tls, post)

    @promises("discards_unasked_responses")
    def test_unasked_response(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """Nor for the response to one that costs nothing."""
        self._check_behind(transport, tls, get)

    def _check_behind(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        make: Callable[[str], HttpRequest],
    ) -> None:
        for whole in (response_bytes(200, b"{}"), _IN_CHUNKS):
            first = [read_request, send(whole + _EVIL), hang]
            with serving(in_turn(first, serve(200, b"its own")), tls=tls) as server:
                for turn, own in (("first", b"{}"), ("second", b"its own")):
                    body = call(transport, make(server.url), UNASKED).body
                    UNASKED.equal(body, own, f"for the {turn} request {own!r}")

    @pytest.mark.parametrize("make", [get, post], ids=["GET", "POST"])
    def test_unasked_while_idle(
        self, transport: Transport, tls: ssl.SSLContext | None, make: Callable[[str], HttpRequest]
    ) -> None:
        """What a server sends on an idle connection is not taken for the next response."""
        idle, sent = threading.Event(), threading.Event()

        def first(peer: Peer) -> None:
            """Answer one request, and send another response while the connection is idle."""
            peer.read_request()
            peer.send(response_bytes())
            idle.wait(ENOUGH)
            with contextlib.suppress(OSError):  # it may have been closed
                peer.send(_EVIL)
            sent.set()
            peer.hang()

        with serving(in_turn(first, serve(200, b"its own")), tls=tls) as server:
            call(transport, get(server.url), UNASKED)
            idle.set()
            sent.wait(ENOUGH)
            body = call(transport, make(server.url), UNASKED).body
            UNASKED.equal(body, b"its own", "for the second request b'its own'")
