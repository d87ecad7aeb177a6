"""What a fault of the network or the peer is reported as, and whether anything was sent."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from .calls import AUTHORIZATION, call, failure_of, get, post
from .conftest import MakeTransport
from .holding import hold, something_arrives
from .scripted_server import (
    Peer,
    Script,
    ScriptedServer,
    hang,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)

BIG = b"x" * (16 * 1024 * 1024)


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 70}.example"])
def test_impossible_name(transport: Transport, host: str) -> None:
    """A host name that no DNS query can carry fails to resolve, and raises no UnicodeError."""
    failure = failure_of(transport, get(f"http://{host}/"))
    assert (failure.phase, failure.reason) == (Phase.RESOLVE, Reason.NAME_RESOLUTION)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EHOSTUNREACH, Reason.UNREACHABLE),
        (errno.ENETUNREACH, Reason.UNREACHABLE),
        (errno.ETIMEDOUT, Reason.TIMED_OUT),
        (errno.ENOBUFS, Reason.LOCAL_LIMIT),
        (errno.EPERM, Reason.OTHER),
    ],
)
def test_connect_errors(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, number: int, reason: Reason
) -> None:
    """Errors of the operating system while connecting are reported with their error number."""

    def connect(*_: object) -> None:
        raise OSError(number, "made up")

    monkeypatch.setattr(socket.socket, "connect", connect)
    failure = failure_of(transport, post("http://127.0.0.1:9/"))
    assert (failure.phase, failure.sent, failure.reason) == (Phase.CONNECT, False, reason)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Reason.TLS),
        ([Peer.receive, reset], Reason.RESET),
        ([Peer.receive], Reason.CLOSED),
    ],
    ids=["plain server", "reset", "closed"],
)
def test_reasons_of_a_failed_handshake(
    transport: Transport, script: Script, reason: Reason
) -> None:
    """Our transports tell a server without TLS, a reset and an end in the handshake apart."""
    with ScriptedServer(script, scheme="https") as server:
        assert failure_of(transport, post(server.url), timeout=0.3).reason is reason


def test_unknown_authority(make_transport: MakeTransport, server_tls: ssl.SSLContext) -> None:
    """A certificate of an authority that is not trusted leaves the request unsent."""
    with ScriptedServer(serve(), tls=server_tls) as server:
        failure = failure_of(make_transport(), post(server.url))
        assert server.posts == 0
    found = (failure.phase, failure.sent, failure.reason)
    assert found == (Phase.TLS, False, Reason.CERTIFICATE)


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
@pytest.mark.parametrize("form", ["file", "directory"])
def test_ca_from_environment(
    make_transport: MakeTransport,
    variable: str,
    form: str,
    authority: trustme.CA,
    server_tls: ssl.SSLContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The authorities of a file or a hashed directory named in the environment are trusted."""
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    if form == "directory":
        hashed = subprocess.run(  # noqa: S603  # no word of it comes from outside
            ["openssl", "x509", "-hash", "-noout", "-in", bundle],  # noqa: S607  # the one there is
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        bundle.rename(tmp_path / f"{hashed}.0")
    monkeypatch.setenv(variable, str(tmp_path if form == "directory" else bundle))
    transport = make_transport()
    with ScriptedServer(serve(), tls=server_tls) as server:
        assert call(transport, get(server.url)).status == 200


def test_missing_ca(
    make_transport: MakeTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CA certificates that cannot be read leave the request unsent."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "missing.pem"))
    failure = failure_of(make_transport(), post("https://127.0.0.1:9/"))
    assert (failure.sent, failure.reason) == (False, Reason.CERTIFICATE)
    assert "missing.pem" in failure.detail


@pytest.mark.parametrize("end", [Reason.CLOSED, Reason.RESET])
def test_an_end_instead_of_a_reply(
    transport: Transport, tls: ssl.SSLContext | None, end: Reason
) -> None:
    """Our transports tell how the connection ended, and count each byte of the request."""
    script: Script = [read_request, reset] if end is Reason.RESET else [read_request]
    with ScriptedServer(script, tls=tls) as server:
        failure = failure_of(transport, post(server.url))
        assert failure.bytes_sent == len(server.received)
    # Under TLS, Python cannot always tell a reset from an end without a closing alert.
    assert failure.reason in ({end, Reason.CLOSED} if tls else {end})


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a connection is there; then what comes on it comes before a request is sent."""
    ready = threading.Event()

    def wait(sock: socket.socket) -> None:
        ready.set()
        something_arrives(sock)

    hold(monkeypatch, wait)
    return ready


def test_reset_before_the_first_byte(transport: Transport, connected: threading.Event) -> None:
    """A connection that is reset before it took a byte leaves the request unsent."""
    with ScriptedServer([lambda _: connected.wait(5), reset]) as server:
        failure = failure_of(transport, post(server.url))
        assert server.received == b""
    assert (failure.phase, failure.sent, failure.reason) == (Phase.SEND, False, Reason.RESET)
    assert failure.bytes_sent == 0


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.EPIPE])
def test_a_connection_that_takes_no_byte(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """If the system reports a lost connection for the very first byte, nothing was sent."""

    send = socket.socket.send

    def lost(sock: socket.socket, data: memoryview) -> int:
        if bytes(data[:4]) == b"POST":
            raise OSError(number, "made up")
        return send(sock, data)  # such as what wakes an event loop

    monkeypatch.setattr(socket.socket, "send", lost)
    with ScriptedServer(hang) as server:
        failure = failure_of(transport, post(server.url))
    assert (failure.phase, failure.sent, failure.bytes_sent) == (Phase.SEND, False, 0)
    assert failure.reason is Reason.RESET


@pytest.mark.parametrize(
    ("text", "sent", "reason"),
    [
        ("Connection refused by Responses - it quotes the URL", False, Reason.REFUSED_HERE),
        ("anything else", True, Reason.OTHER),
    ],
    ids=["refusal", "failure"],
)
def test_a_mock_in_place_of_the_session(
    requests_transport: RequestsTransport,
    monkeypatch: pytest.MonkeyPatch,
    *,
    text: str,
    sent: bool,
    reason: Reason,
) -> None:
    """A mock that has no response sent nothing; of any other failure it may have sent all."""

    def fail(*_: object, **__: object) -> None:
        raise requests.ConnectionError(text)

    monkeypatch.setattr(requests.Session, "send", fail)
    failure = failure_of(requests_transport, post("http://service.test/"))
    assert (failure.sent, failure.reason) == (sent, reason)
    assert text not in failure.detail
    assert "ConnectionError" in failure.detail


def test_an_alarm_right_after_sending(
    requests_transport: RequestsTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a signal handler raises once all is sent does not make the request unsent."""
    send = socket.socket.send

    def interrupted(sock: socket.socket, data: memoryview) -> int:
        send(sock, data)
        raise ConnectionResetError("made up by a handler")

    monkeypatch.setattr(socket.socket, "send", interrupted)
    with ScriptedServer(serve()) as server:
        assert failure_of(requests_transport, post(server.url)).sent


def test_what_was_not_sent(
    requests_transport: RequestsTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing counts as sent before a stream is entered, or if Ctrl-C interrupts connecting."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(socket.socket, "connect", interrupted)
    request = post("http://127.0.0.1:9/")
    stream = requests_transport.stream(request, timeout=5.0, authorization=AUTHORIZATION)
    assert not stream.sent
    with pytest.raises(KeyboardInterrupt), stream:
        pass
    assert not stream.sent


def test_reset_within_the_request(transport: Transport) -> None:
    """If the connection breaks before the whole request is sent, the phase is SEND."""
    with ScriptedServer([Peer.read_head, Peer.reset]) as server:
        failure = failure_of(transport, post(server.url, b"x" * 30_000_000))
    assert (failure.phase, failure.sent) == (Phase.SEND, True)


def test_early_refusal(transport: Transport) -> None:
    """A whole response that arrives before the request is fully sent is returned."""

    def refuse(peer: Peer) -> None:
        peer.read_head()
        peer.send(response_bytes(413, b"too large", connection="close"))
        peer.sock.shutdown(socket.SHUT_RD)
        peer.stopping.wait(1)

    with ScriptedServer(refuse) as server:
        response = call(transport, post(server.url, b"x" * 3_000_000), timeout=0.7)
    assert (response.status, response.body) == (413, b"too large")


@pytest.fixture
def no_descriptors() -> Iterator[None]:
    """Let the process open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("no_descriptors")
def test_no_descriptors(transport: Transport) -> None:
    """Without a file descriptor left the request is unsent, and the limit is named."""
    failure = failure_of(transport, post("http://127.0.0.1:9/"))
    assert (failure.sent, failure.reason) == (False, Reason.LOCAL_LIMIT)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "//127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/a\r\nX: y",
        "http://127.0.0.1/\N{SNOWMAN}",
        "http://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example/",
        "http\N{LATIN SMALL LETTER LONG S}://good.example/",
        "http://good.e\N{KELVIN SIGN}ample/",
        "http://good.example\\@evil.example/",
        "http:///",
        "http://127.0.0.1:port/",
    ],
)
def test_unusable_url(transport: Transport, url: str) -> None:
    """A URL that cannot be sent as it is, is rejected, unsent, and not shown."""
    failure = failure_of(transport, get(url))
    assert (failure.sent, failure.reason) == (False, Reason.OTHER)
    assert "secret" not in failure.detail


@pytest.mark.parametrize(
    ("name", "value"),
    [("Host", "1"), ("content-length", "1"), ("Transfer-Encoding", "1"), ("X-Thing", "a\nb")],
)
def test_unusable_field(transport: Transport, name: str, value: str) -> None:
    """A field that says where a request goes or ends, or breaks it apart, is refused by name."""
    with ScriptedServer(serve()) as server:
        failure = failure_of(transport, get(server.url, headers=((name, value),)))
        assert (failure.sent, failure.reason) == (False, Reason.OTHER)
        assert name in failure.detail
        assert server.received == b""


def test_reset_within_the_first_piece(
    transport: Transport, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under TLS, a part of the first piece may have left before an error: it counts as sent."""

    def narrow(sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def at_the_first_byte(peer: Peer) -> None:
        select.select([peer.sock], [], [], 5)
        reset(peer)

    hold(monkeypatch, narrow)
    with ScriptedServer(at_the_first_byte, tls=server_tls) as server:
        assert failure_of(transport, post(server.url, b"x" * 1_000_000)).sent


@pytest.mark.parametrize("lost", [reset, [read_request], [read_request, send(b"HTTP/1.1 2")]])
def test_something_that_retries(
    requests_transport: RequestsTransport, monkeypatch: pytest.MonkeyPatch, lost: Script
) -> None:
    """Even if a program makes every requests session retry, nothing is sent twice."""
    send_once = requests.Session.send

    def persist(*arguments: Any, **named: Any) -> requests.Response:
        try:
            return send_once(*arguments, **named)
        except Exception:  # noqa: BLE001  as such a program does
            return send_once(*arguments, **named)

    monkeypatch.setattr(requests.Session, "send", persist)
    with ScriptedServer([read_request, *([lost] if callable(lost) else lost[1:])]) as server:
        failure = failure_of(requests_transport, post(server.url))
        assert (failure.sent, server.posts, len(server.peers)) == (True, 1, 1)
