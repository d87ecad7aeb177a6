"""Which connection a request uses, and what happens to it afterwards."""

from __future__ import annotations

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from muybridge.testing.conformance.calling import (
    Checks,
    call,
    expect,
    failure_of,
    get,
    given,
    no_failure,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import NAMED, ONCE, UNSENT, Lesson, promises
from muybridge.testing.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    hang,
    in_turn,
    read_request,
    reply,
    reset,
    response_bytes,
    send,
    serve,
)
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

_MANY = 12

STALE = Lesson(
    "on a connection that was used before, a late response to an earlier request is taken for the "
    "one to a create, which is then paid for twice or reported as refused; and one that the server "
    "has just closed makes the create ambiguous for nothing",
    "HttpRequest.paid: it goes out on a connection that is opened for it",
)
LAST = Lesson(
    "a request on a connection that is about to be closed is silently lost; a create is then "
    "ambiguous for nothing",
    "which connections go back to their pool: none whose response says `Connection: close`, or is "
    "of HTTP/1.0",
)
INSIDE = Lesson(
    "a host name in a result's URL could lead a download into your network, to a metadata service "
    "for instance; and a name that was checked may resolve to another address "
    "a moment later",
    "HttpRequest.public_host_only: look the name up once, check every address "
    "(muybridge.wire.building.addresses_of), connect to these",
)


def _settle(server: ScriptedServer) -> None:
    """Wait until the server has closed its ends."""
    for thread in server.script_threads:
        thread.join(2)


class Connecting(Checks):
    """How connections are used."""

    @promises("keeps_alive")
    def test_keep_alive(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """Consecutive requests that cost nothing share one connection."""
        lesson = Lesson(
            "a thousand tasks are asked for every few seconds, and a TLS handshake costs more "
            "than all the rest of a poll",
            "responses must be read to their end, and their connection be given back to the pool",
        )
        with serving(serve(), tls=tls) as server:
            for _ in range(4):
                call(transport, get(server.url), lesson)
            found = len(server.peers)
            lesson.require(found == 1, "one connection for four requests", f"{found} connections")

    def test_stale_connection(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """A paid request uses a connection that no other request has used."""
        with serving(serve(), tls=tls) as server:
            call(transport, get(server.url), STALE)
            for earlier in ("GET", "POST"):
                before = len(server.peers)
                call(transport, post(server.url), STALE)
                is_new = len(server.peers) > before
                STALE.require(is_new, "a new connection for the POST", f"that of the {earlier}")

    def test_closed_while_idle(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """A connection that the server closed while it was idle costs no request."""
        with serving([read_request, reply()], tls=tls) as server:
            for wanted in range(1, 4):
                call(transport, post(server.url), STALE)
                _settle(server)
                found = server.posts
                STALE.require(found == wanted, f"{wanted} POSTs", f"{found} POSTs")

    @pytest.mark.parametrize(
        "first",
        [[read_request, reset], [read_request, send(b"junk\r\n")]],
        ids=["reset", "no HTTP"],
    )
    def test_after_a_failure(
        self, transport: Transport, tls: ssl.SSLContext | None, first: list[Step]
    ) -> None:
        """After a failure, the next request has a connection of its own."""
        lesson = Lesson(UNSENT, "a failed exchange has to close its connection")
        with serving(in_turn(first, serve()), tls=tls) as server:
            failure_of(transport, get(server.url), lesson)
            call(transport, get(server.url), lesson)

    @pytest.mark.parametrize(
        "first",
        [
            response_bytes(200, b"{}", connection="close"),
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        ],
        ids=["Connection: close", "HTTP/1.0"],
    )
    def test_last_response(self, transport: Transport, first: bytes) -> None:
        """A connection that the server announces to close is not used again."""
        with serving(in_turn([read_request, send(first), hang], serve())) as server:
            for make in (get, get, post):
                call(transport, make(server.url), LAST, timeout=1.0)

    def test_many_at_once(self, transport: Transport) -> None:
        """Many threads at once each get their own response, and none waits for a connection."""
        lesson = Lesson(
            "a request that waits for a connection to become free waits for other people's "
            "downloads, and its deadline goes by",
            "the pool's limit of connections: there must be none, or a new one beyond it; and "
            "what exchanges share between threads",
        )
        together = threading.Barrier(_MANY)

        def echo(peer: Peer) -> None:
            """Read one whole request, and answer it when all the others have been read, too."""
            path = peer.read_request().split(b" ")[1]
            together.wait(2)
            peer.send(response_bytes(200, path))
            peer.hang()

        with serving(echo) as server, ThreadPoolExecutor(_MANY) as threads:

            def body(number: int) -> bytes:
                return call(transport, get(f"{server.url}/{number}"), lesson).body

            try:
                bodies = list(threads.map(body, range(_MANY)))
            finally:
                together.abort()
            wanted = [b"/%d" % number for number in range(_MANY)]
            expected = f"for {_MANY} requests at once, to each its own path as a response"
            lesson.equal(bodies, wanted, expected)

    def test_close(self, transport: Transport, tls: ssl.SSLContext | None) -> None:
        """Closing the transport closes idle connections; it can still be used."""
        lesson = Lesson(
            "connections that nobody closes are descriptors that run out",
            "close: it closes idle connections, and later requests still work",
        )
        gone = threading.Event()

        def script(peer: Peer) -> None:
            """Answer one request, and see the connection being closed."""
            peer.read_request()
            peer.send(response_bytes())
            peer.hang()
            gone.set()

        with serving(script, tls=tls) as server:
            call(transport, get(server.url), lesson)
            with no_failure(lesson):
                transport.close()
            lesson.require(gone.wait(1), "the idle connection closed", "it is open")
            call(transport, get(server.url), lesson)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    @promises("checks_connected_address", decides=False)
    def test_private_address(
        self, transport: Transport, tls: ssl.SSLContext | None, host: str
    ) -> None:
        """A request for public hosts only never connects to a private address."""
        with serving(serve(), tls=tls) as server:
            url = server.url.replace("127.0.0.1", host)
            for _ in range(2):
                with given(f"HttpRequest(url='{url}', public_host_only=True)"):
                    failure = failure_of(transport, get(url, public_host_only=True), INSIDE)
                    expect(failure, INSIDE, reason=Reason.PRIVATE_ADDRESS, sent=False)
                    expect(failure, NAMED, phase={Phase.RESOLVE, Phase.CONNECT})
                # Nor does it go out on a connection that another request has opened there.
                call(transport, get(url), INSIDE)
            found = server.received.count(b"GET ")
            INSIDE.require(found == 2, "only the two other requests", f"{found} requests")  # noqa: PLR2004  # those above

    @promises("checks_connected_address", decides=False)
    def test_one_private_address(
        self, transport: Transport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One private address among those of a host is enough to refuse it."""
        with serving(serve()) as server:

            def resolve(*_: object, **__: object) -> list[object]:
                return [
                    (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, server.port))
                    for address in ("127.0.0.1", "93.184.215.14")
                ]

            monkeypatch.setattr(socket, "getaddrinfo", resolve)
            request = get("http://rebound.example/", public_host_only=True)
            with given("public_host_only=True, a host's addresses 127.0.0.1 and 93.184.215.14"):
                failure = failure_of(transport, request, INSIDE, timeout=1.0)
                expect(failure, INSIDE, reason=Reason.PRIVATE_ADDRESS)

    @promises("checks_connected_address")
    def test_rebound_name(self, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name whose address was checked is not looked up again to connect."""
        lookup, connect = socket.getaddrinfo, socket.socket.connect
        # A public address. What is looked up a second time is this machine.
        answers = ["93.184.215.14"]

        def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
            # The flags, the fifth after the host. With some, only the form of an address is asked
            # for, as libraries do before they connect.
            numeric = (*arguments, *[0] * 5)[4] or named.get("flags", 0)
            if host not in ("rebound.example", b"rebound.example") or numeric:
                return lookup(host, *arguments, **named)
            return lookup(answers.pop() if answers else "127.0.0.1", *arguments, **named)

        def refuse(sock: socket.socket, address: Any) -> None:
            if address[0] == "93.184.215.14":  # nothing is to leave this machine
                raise ConnectionRefusedError
            connect(sock, address)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        with serving(serve()) as server:
            request = get(f"http://rebound.example:{server.port}/", public_host_only=True)
            with given("public_host_only=True, and a name that is first public, then 127.0.0.1"):
                failure_of(transport, request, INSIDE)
                INSIDE.require(not server.peers, "no connection to 127.0.0.1", "there was one")

    def test_second_address(self, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
        """When a host's first address refuses, the next one is tried, and one POST is made."""
        lesson = Lesson(ONCE, "how a connection is made: each address in turn, before sending")
        with serving(serve()) as server:

            def both(*_: object, **__: object) -> list[object]:
                stream = socket.SOCK_STREAM
                return [
                    (socket.AF_INET, stream, 6, "", (address, server.port))
                    for address in ("127.0.0.2", "127.0.0.1")
                ]

            monkeypatch.setattr(socket, "getaddrinfo", both)
            with given("a host with the addresses 127.0.0.2, which refuses, and 127.0.0.1"):
                call(transport, post(f"http://two.example:{server.port}/"), lesson)
                lesson.require(server.posts == 1, "one POST", f"{server.posts} POSTs")
