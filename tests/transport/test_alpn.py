"""The handshake names the protocol that the transport speaks (ALPN)."""

from __future__ import annotations

import ssl

import pytest
import trustme

from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from .calls import call, failure_of, get, post
from .certificates import client_context, server_context
from .conftest import MakeTransport
from .scripted_server import ScriptedServer, read_request, serve

EXTENSION = b"\x00\x10\x00\x0b\x00\x09\x08http/1.1"
"""What a ClientHello that offers http/1.1, and only that, contains (RFC 7301)."""


def hello_of(transport: Transport) -> bytes:
    """Return the ClientHello that *transport* sends."""
    with ScriptedServer(lambda peer: peer.receive() and None, scheme="https") as server:
        failure = failure_of(transport, get(server.url))
        assert failure.phase is Phase.TLS
        return server.received


def test_http_1_is_offered(make_transport: MakeTransport) -> None:
    """By default, http/1.1 is offered, and no other protocol."""
    assert EXTENSION in hello_of(make_transport())


def test_a_context_is_used_unchanged(
    make_transport: MakeTransport, client_tls: ssl.SSLContext
) -> None:
    """A context of the user's own offers what the user chose, which may be nothing."""
    assert b"http/1.1" not in hello_of(make_transport(ssl_context=client_tls))


def test_http_1_is_chosen(make_transport: MakeTransport, authority: trustme.CA) -> None:
    """A server that knows both protocols chooses http/1.1 where it is the one on offer."""
    offering, choosing = client_context(authority), server_context(authority, "127.0.0.1")
    offering.set_alpn_protocols(["http/1.1"])
    choosing.set_alpn_protocols(["h2", "http/1.1"])
    with ScriptedServer(serve(200, b"whole"), tls=choosing) as server:
        assert call(make_transport(ssl_context=offering), get(server.url)).body == b"whole"
        sock = server.peers[0].sock
        assert isinstance(sock, ssl.SSLSocket)
        assert sock.selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize("protocol", ["h2", "spdy/3"])
def test_another_protocol_is_refused(
    make_transport: MakeTransport, authority: trustme.CA, protocol: str
) -> None:
    """Nothing is sent if the two sides agree on a protocol whose responses cannot be read."""
    offering, choosing = client_context(authority), server_context(authority, "127.0.0.1")
    offering.set_alpn_protocols([protocol, "http/1.1"])
    choosing.set_alpn_protocols([protocol])
    with ScriptedServer([read_request], tls=choosing) as server:
        failure = failure_of(make_transport(ssl_context=offering), post(server.url))
        assert (failure.phase, failure.sent, failure.reason) == (Phase.TLS, False, Reason.TLS)
        assert protocol in failure.detail
        assert server.received == b""
