"""Each failure says whether anything was sent, which decides whether a create may be retried."""

from __future__ import annotations

import datetime as dt
import socket
import ssl

import pytest

from muybridge.testing.certificates import server_context
from muybridge.testing.conformance.calling import (
    DEADLINE,
    ENOUGH,
    Checks,
    authority,
    expect,
    failure_of,
    get,
    given,
    post,
    server_tls,
    serving,
)
from muybridge.testing.conformance.lessons import (
    KEY,
    NAMED,
    SENT,
    UNSENT,
    WHOLE,
    Lesson,
    promises,
    shown,
)
from muybridge.testing.scripted_server import (
    Peer,
    Script,
    Step,
    closed_port,
    hang,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)
from muybridge.wire.transport import PARTIAL_LIMIT, Transport
from muybridge_protocol.http import Phase, Reason, TransportFailure

_CUT_HEAD = response_bytes(200, b"{}", x_task="task-1")[:-8]
_BIG = b"x" * (16 * 1024 * 1024)

BEFORE = Lesson(
    UNSENT,
    "where an exception becomes a TransportFailure: its class does not tell whether the request "
    "was sent (a connection error is one that was never made, or one that was lost); note it at "
    "the socket, or with a trace hook",
)
AFTER = Lesson(
    SENT,
    "where an exception becomes a TransportFailure: `sent` is True from the moment at which the "
    "first byte is handed to the socket; muybridge.wire.building.Exchange does it, from `begin` on",
)
CERTIFIED = Lesson(
    f"{KEY}, and a server that can impersonate the service receives it",
    "make_transport: the ssl_context it is given checks certificates and their hosts, if it is "
    "used as it is, with the host of the URL as server_hostname",
)
CUT = Lesson(
    WHOLE,
    "where the body ends: some libraries take any end for the end, so that what came has to be "
    "compared with Content-Length; muybridge.wire.building.Response does it",
)
KEPT = Lesson(
    f"{WHOLE}; what had arrived may hold the id of a paid task, which the client looks for in it",
    "what is done with pieces before the failure: keep the first 64 KiB of the decoded body, and "
    "the status",
)


def _unsent(
    failure: TransportFailure, phases: set[Phase], reasons: set[Reason], received: bytes = b""
) -> None:
    BEFORE.require(not failure.sent, "sent=False: the request has not begun", failure)
    BEFORE.require(received == b"", "nothing sent to the server", received[:80])
    expect(failure, NAMED, bytes_sent=0, phase=phases, reason=reasons)


def _client_hello(peer: Peer) -> None:
    """Read the beginning of a TLS handshake."""
    peer.receive()


class Failing(Checks):
    """What is reported about failures of the network and of the server."""

    def test_name_resolution(self, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name that does not resolve leaves the request unsent."""

        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        with given("a host that the system's name resolution does not know"):
            failure = failure_of(transport, post("http://nobody.invalid/v1"), BEFORE)
            _unsent(failure, {Phase.RESOLVE}, {Reason.NAME_RESOLUTION})

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_refused(self, transport: Transport, scheme: str) -> None:
        """A port at which nobody listens leaves the request unsent."""
        url = f"{scheme}://127.0.0.1:{closed_port()}/"
        with given("a port at which nobody listens"):
            failure = failure_of(transport, post(url), BEFORE)
            _unsent(failure, {Phase.CONNECT}, {Reason.REFUSED})

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ([_client_hello, send(b"HTTP/1.1 400 Bad Request\r\n\r\n")], Reason.TLS),
            ([_client_hello, reset], Reason.RESET),
            ([_client_hello], Reason.CLOSED),
            (hang, Reason.TIMED_OUT),
        ],
        ids=["plain server", "reset", "closed", "silence"],
    )
    def test_handshake(self, transport: Transport, script: Script, reason: Reason) -> None:
        """A TLS handshake that fails leaves the request unsent."""
        reasons = {reason}
        if reason is not Reason.TIMED_OUT:  # which of them it is depends on how a library reads
            reasons = {Reason.RESET, Reason.CLOSED, Reason.TLS}
        with serving(script, scheme="https") as server:
            failure = failure_of(transport, post(server.url), BEFORE, timeout=DEADLINE)
            _unsent(failure, self._handshaking, reasons)

    @property
    def _handshaking(self) -> set[Phase]:
        shown = self.capabilities.shows_tls_phase
        return {Phase.TLS} if shown else {Phase.CONNECT, Phase.TLS}

    @promises("shows_tls_phase")
    def test_tls_phase(self, transport: Transport) -> None:
        """A TLS handshake that fails is reported as such."""
        with serving([_client_hello, reset], scheme="https") as server:
            failure = failure_of(transport, post(server.url), BEFORE)
            expect(failure, NAMED, phase=Phase.TLS)

    @pytest.mark.parametrize("whose", ["of another host", "of an unknown authority", "of the past"])
    def test_certificate(self, transport: Transport, whose: str) -> None:
        """An invalid certificate leaves the request unsent."""
        issuer = type(authority())() if whose == "of an unknown authority" else authority()
        host = "elsewhere.example" if whose == "of another host" else "127.0.0.1"
        expires = dt.datetime(2001, 1, 1, tzinfo=dt.UTC) if whose == "of the past" else None
        with (
            serving(serve(), tls=server_context(issuer, host, expires=expires)) as server,
            given(f"a server with a certificate {whose}"),
        ):
            failure = failure_of(transport, post(server.url), CERTIFIED)
            _unsent(failure, self._handshaking, {Reason.CERTIFICATE}, server.received)

    def test_trusted_certificate(self, transport: Transport) -> None:
        """A certificate of the given CA is accepted, so that the checks of TLS prove something."""
        lesson = Lesson(UNSENT, "make_transport: it is to use the ssl_context it is given")
        with serving([read_request, hang], tls=server_tls()) as server:
            failure = failure_of(transport, post(server.url), lesson, timeout=DEADLINE)
            lesson.require(server.posts == 1, "one POST over TLS", failure)

    @pytest.mark.parametrize("timeout", [0.0, -1.0])
    def test_no_time(self, transport: Transport, timeout: float) -> None:
        """An exchange without any time left does not begin."""
        with serving(serve()) as server, given(f"timeout={timeout}"):
            failure = failure_of(transport, post(server.url), BEFORE, timeout=timeout)
            _unsent(failure, set(Phase), {Reason.TIMED_OUT}, server.received)
            BEFORE.require(not server.peers, "no connection", "there was one")

    @pytest.mark.parametrize("scheme", ["http", "https"])
    @pytest.mark.parametrize(
        ("script", "reasons"),
        [
            ([read_request], {Reason.CLOSED, Reason.TRUNCATED}),
            ([read_request, send(_CUT_HEAD)], {Reason.TRUNCATED, Reason.CLOSED}),
            ([read_request, reset], {Reason.RESET, Reason.CLOSED}),
            ([read_request, hang], {Reason.TIMED_OUT}),
            ([read_request, send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), hang], {Reason.MALFORMED}),
        ],
        ids=["closed", "cut head", "reset", "silence", "no HTTP"],
    )
    def test_instead_of_a_response(
        self, transport: Transport, scheme: str, script: Script, reasons: set[Reason]
    ) -> None:
        """Once the request was sent, anything but a response makes it ambiguous."""
        with serving(script, tls=_tls(scheme)) as server:
            failure = failure_of(transport, post(server.url), AFTER, timeout=DEADLINE)
            AFTER.require(server.posts == 1, "one POST", f"{server.posts} POSTs")
            AFTER.require(failure.sent, "sent=True: the server has read the request", failure)
            NAMED.require(failure.bytes_sent > 0, "bytes_sent above 0", failure)
            expect(failure, NAMED, phase=Phase.HEAD, reason=reasons, status=None)

    @pytest.mark.parametrize("how", ["reset", "stalled"])
    def test_in_the_request(
        self, transport: Transport, tls: ssl.SSLContext | None, how: str
    ) -> None:
        """A request that is interrupted in the middle counts as sent."""

        def stall(peer: Peer) -> None:
            """Read no more of one request than its head, and wait."""
            peer.read_head()
            peer.stopping.wait(2)

        script: Script = [Peer.read_head, reset] if how == "reset" else stall
        with serving(script, tls=tls) as server:
            request = post(server.url, _BIG)
            timeout = DEADLINE if how == "stalled" else ENOUGH
            failure = failure_of(transport, request, AFTER, timeout=timeout)
            AFTER.require(failure.sent, "sent=True: some of it has arrived", failure)
            reasons = {Reason.RESET, Reason.CLOSED} if how == "reset" else {Reason.TIMED_OUT}
            expect(failure, NAMED, phase={Phase.SEND, Phase.HEAD}, reason=reasons)

    @promises("shows_sending")
    def test_how_much_was_sent(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """The failure says that the request was being sent, and how much of it had been."""

        def stall(peer: Peer) -> None:
            """Read no more of one request than its head, and wait."""
            peer.read_head()
            peer.stopping.wait(2)

        with serving(stall, tls=tls) as server:
            failure = failure_of(transport, post(server.url, _BIG), AFTER, timeout=DEADLINE)
            some = 0 < failure.bytes_sent < len(_BIG)
            NAMED.require(some, f"bytes_sent between 0 and the {len(_BIG)} of the body", failure)
            expect(failure, NAMED, phase=Phase.SEND, reason=Reason.TIMED_OUT)

    @promises("keeps_cut_heads")
    def test_cut_head(self, transport: Transport) -> None:
        """The failure keeps what had arrived of a truncated head."""
        lesson = Lesson(
            KEPT.why,
            "what is read before the head is complete: keep it as it comes from the socket "
            "(muybridge.wire.building.Exchange.receive does it), for a library throws it away",
        )
        with serving([read_request, send(_CUT_HEAD)]) as server:
            failure = failure_of(transport, post(server.url), lesson)
            expect(failure, lesson, sent=True, partial=_CUT_HEAD)

    @pytest.mark.parametrize("end", ["closed", "reset", "silence"])
    @pytest.mark.parametrize("form", ["counted", "chunked"])
    def test_cut_body(
        self, transport: Transport, tls: ssl.SSLContext | None, form: str, end: str
    ) -> None:
        """The failure keeps the status, and what had arrived of a truncated body."""
        part = b'{"id": "task-1", '
        whole = response_bytes(201, part + b"more")
        if form == "chunked":
            head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
            whole = head + b"%x\r\n%s\r\n" % (len(part), part) + b"more"

        def pause(peer: Peer) -> None:
            """Wait for a moment."""  # a reset may overtake what was sent
            peer.stopping.wait(0.05)

        # Under TLS, Python cannot always tell a reset from an end without a closing alert.
        broken = {Reason.RESET, Reason.TRUNCATED} if tls else {Reason.RESET}
        ends: dict[str, tuple[list[Step], set[Reason]]] = {
            "closed": ([], {Reason.TRUNCATED}),
            "reset": ([pause, reset], broken),
            "silence": ([hang], {Reason.TIMED_OUT}),
        }
        steps, reasons = ends[end]
        with serving([read_request, send(whole[:-4]), *steps], tls=tls) as server:
            timeout = DEADLINE if end == "silence" else ENOUGH
            failure = failure_of(transport, post(server.url), CUT, timeout=timeout)
            expect(failure, KEPT, sent=True, status=201, partial=part)
            expect(failure, NAMED, phase=Phase.BODY, reason=reasons)

    def test_most_of_what_is_kept(self, transport: Transport) -> None:
        """The failure keeps 64 KiB of what had arrived, and no more."""
        whole = response_bytes(200, b"x" * 200_000)
        with serving([read_request, send(whole[:-1])]) as server:
            failure = failure_of(transport, get(server.url), CUT)
            right = failure.partial == b"x" * PARTIAL_LIMIT
            found = f"{len(failure.partial)} bytes, {shown(failure)}"
            KEPT.require(right, f"the first {PARTIAL_LIMIT} bytes in partial", found)


def _tls(scheme: str) -> ssl.SSLContext | None:
    return server_tls() if scheme == "https" else None
