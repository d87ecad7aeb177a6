"""Each failure says whether anything was sent: on that hangs whether a create may be repeated."""

from __future__ import annotations

import socket
import ssl

import pytest

from muybridge.testing.certificates import server_context
from muybridge.testing.conformance.calling import (
    DEADLINE,
    Checks,
    authority,
    failure_of,
    get,
    post,
    server_tls,
    serving,
    shown,
)
from muybridge.testing.conformance.lessons import SENT, UNSENT, WHOLE, Lesson, promises
from muybridge.testing.scripted_server import (
    Peer,
    Script,
    closed_port,
    hang,
    read_request,
    reply_bytes,
    reset,
    send,
    serve,
)
from muybridge.wire.transport import PARTIAL_LIMIT, Transport
from muybridge_protocol.http import Phase, Reason, TransportFailure

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
    "first byte is handed to the socket",
)
KEPT = Lesson(
    f"{WHOLE}; what had arrived may hold the id of a paid task, which the client looks for in it",
    "what is done with pieces before the failure: keep the first 64 KiB of the decoded body, and "
    "the status",
)


def _unsent(
    failure: TransportFailure, phases: set[Phase], reasons: set[Reason], received: bytes = b""
) -> None:
    BEFORE.require(not failure.sent, "sent=False: the request has not begun", shown(failure))
    BEFORE.require(failure.bytes_sent == 0, "bytes_sent=0", failure.bytes_sent)
    BEFORE.require(received == b"", "nothing sent to the server", received[:80])
    BEFORE.require(failure.phase in phases, f"a phase of {sorted(phases)}", failure.phase)
    BEFORE.require(failure.reason in reasons, f"a reason of {sorted(reasons)}", failure.reason)


class Failing(Checks):
    """What is said of failures of the network and of the other side."""

    def test_name_resolution(self, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name that does not resolve leaves the request unsent."""

        def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        failure = failure_of(transport, post("http://nobody.invalid/v1"), BEFORE)
        _unsent(failure, {Phase.RESOLVE}, {Reason.NAME_RESOLUTION})

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_refused(self, transport: Transport, scheme: str) -> None:
        """A port at which nobody listens leaves the request unsent."""
        url = f"{scheme}://127.0.0.1:{closed_port()}/"
        failure = failure_of(transport, post(url), BEFORE)
        _unsent(failure, {Phase.CONNECT}, {Reason.REFUSED})

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ([Peer.receive, send(b"HTTP/1.1 400 Bad Request\r\n\r\n")], Reason.TLS),
            ([Peer.receive, reset], Reason.RESET),
            ([Peer.receive], Reason.CLOSED),
            (hang, Reason.TIMED_OUT),
        ],
        ids=["plain server", "reset", "closed", "silence"],
    )
    def test_handshake(self, transport: Transport, script: Script, reason: Reason) -> None:
        """A TLS handshake that fails leaves the request unsent."""
        with serving(script, scheme="https") as server:
            failure = failure_of(transport, post(server.url), BEFORE, timeout=DEADLINE)
        reasons = {reason}
        if reason is not Reason.TIMED_OUT:  # which of them it is depends on how a library reads
            reasons = {Reason.RESET, Reason.CLOSED, Reason.TLS}
        _unsent(failure, {Phase.TLS}, reasons)

    @pytest.mark.parametrize("whose", ["of another host", "of an unknown authority"])
    def test_certificate(self, transport: Transport, whose: str) -> None:
        """A certificate that proves nothing leaves the request unsent."""
        known = authority() if whose == "of another host" else type(authority())()
        host = "elsewhere.example" if whose == "of another host" else "127.0.0.1"
        with serving(serve(), tls=server_context(known, host)) as server:
            failure = failure_of(transport, post(server.url), BEFORE)
        _unsent(failure, {Phase.TLS}, {Reason.CERTIFICATE}, server.received)

    def test_trusted_certificate(self, transport: Transport) -> None:
        """One of the given authority is taken, so that the checks of TLS prove something."""
        lesson = Lesson(UNSENT, "make_transport: it is to use the ssl_context it is given")
        with serving([read_request, hang], tls=server_tls()) as server:
            failure = failure_of(transport, post(server.url), lesson, timeout=DEADLINE)
            lesson.require(server.posts == 1, "one POST over TLS", shown(failure))

    @pytest.mark.parametrize("timeout", [0.0, -1.0])
    def test_no_time(self, transport: Transport, timeout: float) -> None:
        """An exchange without any time left does not begin."""
        with serving(serve()) as server:
            failure = failure_of(transport, post(server.url), BEFORE, timeout=timeout)
            _unsent(failure, set(Phase), {Reason.TIMED_OUT}, server.received)

    @pytest.mark.parametrize("scheme", ["http", "https"])
    @pytest.mark.parametrize(
        ("script", "reasons"),
        [
            ([read_request], {Reason.CLOSED, Reason.TRUNCATED}),
            ([read_request, reset], {Reason.RESET, Reason.CLOSED}),
            ([read_request, hang], {Reason.TIMED_OUT}),
            ([read_request, send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), hang], {Reason.MALFORMED}),
        ],
        ids=["closed", "reset", "silence", "no HTTP"],
    )
    def test_instead_of_a_reply(
        self, transport: Transport, scheme: str, script: Script, reasons: set[Reason]
    ) -> None:
        """Once it was sent, whatever comes instead of a reply leaves open what became of it."""
        with serving(script, tls=_tls(scheme)) as server:
            failure = failure_of(transport, post(server.url), AFTER, timeout=DEADLINE)
            AFTER.require(server.posts == 1, "one POST", f"{server.posts} POSTs")
        AFTER.require(failure.sent, "sent=True: the server has read the request", shown(failure))
        AFTER.require(failure.bytes_sent > 0, "bytes_sent above 0", failure.bytes_sent)
        AFTER.require(failure.phase is Phase.HEAD, "Phase.HEAD", failure.phase)
        AFTER.require(failure.reason in reasons, f"a reason of {sorted(reasons)}", failure.reason)
        AFTER.require(failure.status is None, "no status", failure.status)

    @pytest.mark.parametrize("how", ["reset", "stalled"])
    def test_in_the_request(self, transport: Transport, how: str) -> None:
        """A request that breaks off in its middle counts as sent."""

        def stall(peer: Peer) -> None:
            peer.read_head()
            peer.stopping.wait(2)

        script: Script = [Peer.read_head, reset] if how == "reset" else stall
        with serving(script) as server:
            request = post(server.url, _BIG)
            failure = failure_of(transport, request, AFTER, timeout=DEADLINE)
        AFTER.require(failure.sent, "sent=True: some of it has arrived", shown(failure))
        some = 0 < failure.bytes_sent < len(_BIG)
        AFTER.require(some, "bytes_sent between nothing and all", failure.bytes_sent)
        phases = {Phase.SEND, Phase.HEAD}
        AFTER.require(failure.phase in phases, "Phase.SEND or HEAD", failure.phase)

    @promises("keeps_cut_heads")
    def test_cut_head(self, transport: Transport) -> None:
        """What had arrived of a head that was cut off is kept."""
        part = reply_bytes(200, b"{}", x_task="task-1")[:-8]
        with serving([read_request, send(part)]) as server:
            failure = failure_of(transport, post(server.url), KEPT)
        KEPT.require(failure.sent, "sent=True", shown(failure))
        KEPT.require(failure.partial == part, f"partial={part!r}", failure.partial)

    @pytest.mark.parametrize("end", ["closed", "reset", "silence"])
    @pytest.mark.parametrize("form", ["counted", "chunked"])
    def test_cut_body(self, transport: Transport, form: str, end: str) -> None:
        """Of a body cut short, the status and what had arrived are kept."""
        came = b'{"id": "task-1", '
        whole = reply_bytes(201, came + b"more")
        if form == "chunked":
            head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
            whole = head + b"%x\r\n%s\r\n" % (len(came), came) + b"more"

        def script(peer: Peer) -> None:
            peer.read_request()
            peer.send(whole[:-4])
            if end == "silence":
                peer.hang()
            elif end == "reset":
                peer.stopping.wait(0.05)  # a reset may overtake what was sent
                peer.reset()

        with serving(script) as server:
            failure = failure_of(transport, post(server.url), KEPT, timeout=DEADLINE)
        reasons = {"closed": Reason.TRUNCATED, "reset": Reason.RESET, "silence": Reason.TIMED_OUT}
        KEPT.require(failure.sent, "sent=True", shown(failure))
        KEPT.require(failure.phase is Phase.BODY, "Phase.BODY", failure.phase)
        KEPT.require(failure.status == 201, "status=201", failure.status)  # noqa: PLR2004  # the one sent
        KEPT.require(failure.partial == came, f"partial={came!r}", failure.partial)
        KEPT.require(failure.reason is reasons[end], f"{reasons[end]!r}", repr(failure.reason))

    def test_most_of_what_is_kept(self, transport: Transport) -> None:
        """Of what had arrived, 64 KiB are kept and no more."""
        whole = reply_bytes(200, b"x" * 200_000)
        with serving([read_request, send(whole[:-1])]) as server:
            failure = failure_of(transport, get(server.url), KEPT)
        right = failure.partial == b"x" * PARTIAL_LIMIT
        KEPT.require(right, f"the first {PARTIAL_LIMIT} bytes", f"{len(failure.partial)} bytes")


def _tls(scheme: str) -> ssl.SSLContext | None:
    return server_tls() if scheme == "https" else None
