"""What the transport on httpx2 does beyond what the kit checks: HTTP/2, and proxies."""

from __future__ import annotations

import ast
import inspect
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
from tests.transport.scripted_server import connect_proxy

import muybridge
from muybridge.extras import install_command
from muybridge.testing.certificates import client_context, server_context
from muybridge.testing.conformance.calling import AUTHORIZATION, authority, get, post
from muybridge.wire import httpx2_transport
from muybridge.wire.httpx2_transport import Httpx2Transport
from muybridge.wire.transport import TransportError, exchange
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    hang,
    in_turn,
    read_request,
    response_bytes,
    serve,
)


def outcome(
    transport: Httpx2Transport, request: HttpRequest, timeout: float = 5.0
) -> HttpResponse | TransportFailure:
    """Return what *request* comes to."""
    try:
        return exchange(transport, request, timeout=timeout, authorization=AUTHORIZATION)
    except TransportError as error:
        return error.failure


def trusting(*, http2: bool = False, proxy: str | None = None) -> Httpx2Transport:
    context = client_context(authority())
    return Httpx2Transport(ssl_context=context, http2=http2, proxy=proxy)


@pytest.fixture
def tls() -> ssl.SSLContext:
    """What a server makes its handshakes with that can speak HTTP/2."""
    context = server_context(authority(), "127.0.0.1")
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def speak_http2(peer: Peer, seen: list[object] | None = None, *, most: int = 1000) -> None:
    """Answer so many requests over HTTP/2 with their paths; say of others that they were not seen.

    That is how a server closes a connection, and invites clients to send them again.
    """
    spoken = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    spoken.initiate_connection()
    peer.send(spoken.data_to_send())
    while data := peer.receive():
        for event in spoken.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                if seen is not None:
                    seen.append(event)
                most -= 1
                if most < 0:
                    spoken.close_connection(last_stream_id=(event.stream_id or 3) - 2)
                    continue
                fields = dict(event.headers or ())
                spoken.send_headers(event.stream_id or 1, [(":status", "200")])
                spoken.send_data(event.stream_id or 1, fields[b":path"], end_stream=True)
        peer.send(spoken.data_to_send())


def by_protocol(peer: Peer) -> None:
    """Speak what was agreed on in the handshake."""
    if isinstance(peer.sock, ssl.SSLSocket) and peer.sock.selected_alpn_protocol() == "h2":
        speak_http2(peer)
    else:
        serve(200, b"over HTTP/1.1")(peer)


def test_http2(tls: ssl.SSLContext) -> None:
    """Polls go out over HTTP/2 where the server speaks it, and paid requests do not."""
    transport = trusting(http2=True)
    with ScriptedServer(by_protocol, tls=tls) as server:
        found = outcome(transport, get(f"{server.url}/v1?a=%2f"))
        assert found == HttpResponse(200, (), b"/v1?a=%2f")
        paid = outcome(transport, post(server.url))
        assert isinstance(paid, HttpResponse)
        assert paid.body == b"over HTTP/1.1"
        transport.close()


def test_http2_lost_reply(tls: ssl.SSLContext) -> None:
    """Over HTTP/2, too, a connection that ends instead of a response leaves the request sent."""

    def script(peer: Peer) -> None:
        spoken = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        spoken.initiate_connection()
        peer.send(spoken.data_to_send())
        while not any(
            isinstance(event, h2.events.RequestReceived)
            for event in spoken.receive_data(peer.receive())
        ):
            peer.send(spoken.data_to_send())

    transport = trusting(http2=True)
    with ScriptedServer(script, tls=tls) as server:
        found = outcome(transport, get(server.url))
        assert len(server.peers) == 1
        transport.close()
    assert isinstance(found, TransportFailure)
    assert (found.sent, found.phase) == (True, Phase.HEAD)


def test_http2_invitation_to_try_again(tls: ssl.SSLContext) -> None:
    """What a server says it has not seen is not sent again by the transport."""
    transport = trusting(http2=True)
    seen: list[object] = []
    with ScriptedServer(lambda peer: speak_http2(peer, seen, most=1), tls=tls) as server:
        assert isinstance(outcome(transport, get(server.url)), HttpResponse)
        found = outcome(transport, get(server.url))
        assert isinstance(found, TransportFailure)
        assert (found.sent, found.reason) == (True, Reason.CLOSED)
        transport.close()
    assert len(seen) == 2


def ignore(data: bytes, seconds: float) -> None:
    """Write nothing."""


def test_http2_before_the_request() -> None:
    """What opens an HTTP/2 connection is no byte of the request."""
    exchange = httpx2_transport.building.Exchange(get("https://a.test"), timeout=1)
    exchange.phase = Phase.TLS
    exchange.send(b"PRI * HTTP/2.0", ignore)
    assert (exchange.sent, exchange.bytes_sent) == (False, 0)
    exchange.begin()
    exchange.send(b"request", ignore)
    assert (exchange.sent, exchange.bytes_sent) == (True, 7)
    with pytest.raises(httpx2_transport.building.Fault):
        exchange.begin()


def socks_proxy(peer: Peer) -> None:
    """Be a SOCKS5 proxy without passwords."""
    peer.receive()
    peer.send(b"\x05\x00")
    asked = peer.receive()
    kind, rest = asked[3], asked[4:]
    host = socket.inet_ntoa(rest[:4]) if kind == 1 else rest[1 : 1 + rest[0]].decode()
    port = int.from_bytes(asked[-2:], "big")
    with socket.create_connection((host, port), 5) as onward:
        peer.send(b"\x05\x00\x00\x01" + bytes(6))
        back = threading.Thread(target=pump, args=(onward, peer.sock), daemon=True)
        back.start()
        pump(peer.sock, onward)
        back.join(5)


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.mark.parametrize("scheme", ["socks5", "http"])
def test_proxy(tls: ssl.SSLContext, scheme: str) -> None:
    """A proxy leads to the server, and what is said to it is no part of the request."""
    script = socks_proxy if scheme == "socks5" else connect_proxy
    with (
        ScriptedServer(script) as proxy,
        ScriptedServer(in_turn(serve(), [read_request]), tls=tls) as server,
    ):
        transport = trusting(proxy=f"{scheme}://{proxy.address}")
        assert isinstance(outcome(transport, post(server.url)), HttpResponse)
        assert (len(proxy.peers), server.posts) == (1, 1)
        lost = outcome(transport, post(server.url))
        assert isinstance(lost, TransportFailure)
        assert (lost.sent, lost.bytes_sent) == (True, len(bytes(server.peers[1].received)))
        transport.close()


def test_proxy_refuses() -> None:
    """A proxy that makes no tunnel leaves the request unsent."""
    refusal = response_bytes(403, b"no")
    with ScriptedServer([Peer.read_head, lambda peer: peer.send(refusal), hang]) as proxy:
        transport = trusting(proxy=f"http://{proxy.address}")
        found = outcome(transport, post("https://service.test/"))
    assert isinstance(found, TransportFailure)
    assert (found.sent, found.reason) == (False, Reason.PROXY_REFUSED)


@pytest.mark.parametrize("scheme", ["socks5", "http"])
def test_no_key_in_clear(scheme: str) -> None:
    """A proxy is not shown the key."""
    with ScriptedServer(hang) as proxy:
        transport = trusting(proxy=f"{scheme}://{proxy.address}")
        found = outcome(transport, post("http://service.test/"))
        assert isinstance(found, TransportFailure)
        assert not found.sent
        assert "would read the key" in found.detail
        assert proxy.peers == []


def test_under_a_hundred_lines() -> None:
    """It is as short as the page says that walks through it."""
    source = inspect.getsource(httpx2_transport)
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            told |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = [
        line
        for number, line in enumerate(source.splitlines(), 1)
        if number not in told and line.strip() and not line.strip().startswith("#")
    ]
    assert len(lines) < 100


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:s3cret",
        "http://user:s3cret@[::1",
        "user:s3cret@host:80",
        "sk-s3cret",
        "http://",
    ],
)
def test_unreadable_proxy(proxy: str) -> None:
    """A proxy that cannot be read is refused at once, and its password is not shown."""
    with pytest.raises(ValueError, match="proxy") as caught:
        Httpx2Transport(proxy=proxy)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_missing_extra() -> None:
    """Without httpx2, the pip command that brings it is told."""
    home = Path(muybridge.__file__).parent.parent
    code = (
        f"import sys; sys.path[:0] = [{str(home)!r}, {str(home.parent / 'protocol')!r}]\n"
        "sys.modules['httpcore2'] = None\nimport muybridge\n"
        "try: muybridge.Httpx2Transport\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert install_command("httpx2") in done.stdout
