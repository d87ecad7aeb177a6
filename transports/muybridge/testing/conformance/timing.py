"""Every exchange ends by its deadline, however busy the other side keeps the connection."""

from __future__ import annotations

import ssl

import pytest

from muybridge.testing.certificates import server_context
from muybridge.testing.conformance.calling import (
    DEADLINE,
    Checks,
    authority,
    call,
    expect,
    failure_of,
    get,
    given,
    post,
    serving,
)
from muybridge.testing.conformance.failing import AFTER, BEFORE
from muybridge.testing.conformance.lessons import NAMED, TIME, Lesson
from muybridge.testing.scripted_server import Peer, read_request, response_bytes, send, serve
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

_SLOWLY = 0.04  # seconds between two drops: less than any timeout of a single read
_HEAD = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

TOTAL = Lesson(
    TIME,
    "timeouts that start anew with each read: measure what is left before each step; "
    "muybridge.wire.building.Exchange.remaining does it",
)
IDLE = Lesson(
    "a stream that has fallen silent is to be noticed long before its deadline, which is minutes "
    "away",
    "HttpRequest.idle_timeout: it bounds each read, as well as the deadline does; "
    "muybridge.wire.building.Exchange.awaiting returns the lesser of the two",
)


class Timing(Checks):
    """When an exchange ends."""

    @pytest.mark.parametrize(
        ("phase", "begun", "drops"),
        [
            (Phase.HEAD, b"", _HEAD + b"X: " + b"y" * 20 + b"\r\nContent-Length: 0\r\n\r\n"),
            (Phase.HEAD, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + response_bytes()),
            (Phase.BODY, response_bytes(200, b"x" * 30)[:-30], b"x" * 30),
            (Phase.BODY, _CHUNKED, b"1\r\nx\r\n" * 8 + b"0\r\n\r\n"),
        ],
        ids=["head", "informational", "counted body", "chunked body"],
    )
    def test_drops(self, transport: Transport, phase: Phase, begun: bytes, drops: bytes) -> None:
        """A response that arrives a byte at a time is abandoned at the deadline."""

        def drip(peer: Peer) -> None:
            peer.drip(drops, every=_SLOWLY)

        drip.__doc__ = f"Send {drops!r}, a byte every {_SLOWLY} s, for longer than {DEADLINE} s."
        steps = [send(begun), drip] if begun else [drip]
        with serving([read_request, *steps]) as server:
            failure = failure_of(transport, post(server.url), TOTAL, timeout=DEADLINE)
            expect(failure, TOTAL, reason=Reason.TIMED_OUT)
            expect(failure, AFTER, sent=True)
            AFTER.require(server.posts == 1, "one POST", f"{server.posts} POSTs")
            expect(failure, NAMED, phase=phase)

    def test_handshake_in_drops(self, transport: Transport) -> None:
        """A TLS handshake that arrives slowly is abandoned at the deadline, the request unsent."""
        context = server_context(authority(), "127.0.0.1")

        def script(peer: Peer) -> None:
            """Send its part of the TLS handshake in drops, for longer than the timeout."""
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            handshake = context.wrap_bio(incoming, outgoing, server_side=True)
            incoming.write(peer.receive())
            try:
                handshake.do_handshake()
            except ssl.SSLWantReadError:
                peer.drip(outgoing.read(), every=_SLOWLY, size=50)

        with serving(script, scheme="https") as server:
            failure = failure_of(transport, post(server.url), TOTAL, timeout=DEADLINE)
            expect(failure, TOTAL, reason=Reason.TIMED_OUT)
            expect(failure, BEFORE, sent=False)
            shows = self.capabilities.shows_tls_phase
            expect(failure, NAMED, phase={Phase.TLS} if shows else {Phase.TLS, Phase.CONNECT})

    @pytest.mark.parametrize("phase", [Phase.HEAD, Phase.BODY])
    def test_idle(self, transport: Transport, tls: ssl.SSLContext | None, phase: Phase) -> None:
        """A gap longer than allowed between bytes of the response ends the exchange early."""
        whole = response_bytes(200, b"x" * 10)

        def script(peer: Peer) -> None:
            """Read one whole request, and fall silent for 4 s in the middle of the response."""
            peer.read_request()
            cut = 5 if phase is Phase.HEAD else len(whole) - 5
            peer.send(whole[:cut])
            peer.stopping.wait(4.0)
            peer.send(whole[cut:])

        with serving(script, tls=tls) as server:
            # Long enough for a busy machine to begin the response.
            failure = failure_of(transport, get(server.url, idle_timeout=0.5), IDLE)
            expect(failure, IDLE, reason=Reason.TIMED_OUT)
            expect(failure, NAMED, phase=phase)

    def test_no_idle_timeout(self, transport: Transport) -> None:
        """Without an idle timeout, a gap is bound by the deadline alone."""

        def script(peer: Peer) -> None:
            """Read one whole request, and send the response in drops, 0.1 s apart."""
            peer.read_request()
            peer.drip(response_bytes(200, b"slow"), every=0.1, size=30)

        with serving(script) as server:
            call(transport, get(server.url), IDLE)

    def test_endless_time(self, transport: Transport) -> None:
        """An infinite timeout is a timeout like any other."""
        lesson = Lesson(
            "infinity is how users ask to wait without a limit",
            "what turns seconds into the library's timeout: a socket takes no infinite one",
        )
        with serving(serve()) as server, given("timeout=inf; a socket takes no such one"):
            call(transport, get(server.url), lesson, timeout=float("inf"))

    def test_next_deadline(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """A kept connection obeys the deadline of the request that it currently serves."""
        lesson = Lesson(TIME, "a timeout that was set on the connection when it was opened")

        def script(peer: Peer) -> None:
            """Answer the first request at once, and the next one after the first one's timeout."""
            for wait in (0.0, 1.2 * DEADLINE):
                peer.read_request()
                peer.stopping.wait(wait)
                peer.send(response_bytes())

        with serving(script, tls=tls) as server:
            call(transport, get(server.url), lesson, timeout=DEADLINE)
            call(transport, get(server.url), lesson)
