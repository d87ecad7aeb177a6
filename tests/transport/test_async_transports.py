"""What only the async transport does, or does in its own way, under each event loop."""

from __future__ import annotations

import contextlib
import errno
import gc
import gzip
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import anyio
import anyio.lowlevel
import attrs
import pytest
import trio

import moments
from muybridge.credentials import AuthorizationHeader
from muybridge.wire.async_transport import exchange
from muybridge.wire.exchange import Exchange
from muybridge.wire.http1.byte_streams import Address
from muybridge.wire.http1.connections import first_that_answers
from muybridge.wire.http1.response import Response
from muybridge.wire.http1.response_reader import ResponseReader
from muybridge.wire.http1.socket_stream import SocketStream
from muybridge.wire.http1.transport import Http1Transport
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure

from .calls import AUTHORIZATION, KEY, QUERY, get, post
from .event_loops import EVENT_LOOPS, EventLoop, in_event_loop
from .scripted_server import (
    Peer,
    ScriptedServer,
    deaf_port,
    hang,
    in_turn,
    read_request,
    response_bytes,
    send,
    serve,
)


@pytest.fixture(params=EVENT_LOOPS)
def event_loop(request: pytest.FixtureRequest) -> EventLoop:
    """Each event loop in turn."""
    return EVENT_LOOPS[request.param]


async def failure_of(
    transport: Http1Transport, request: HttpRequest, limit: float = 5.0
) -> TransportFailure:
    with pytest.raises(TransportError) as caught:
        await exchange(transport, request, timeout=limit, authorization=AUTHORIZATION)
    return caught.value.failure


@pytest.mark.parametrize(
    ("limit", "connect_timeout", "detail"),
    [
        (0.2, 10.0, "the time for the whole exchange is up"),
        (3600.0, 0.2, "the name lookup took too long"),
    ],
)
@in_event_loop
async def test_slow_name_resolution(
    event_loop: EventLoop,
    monkeypatch: pytest.MonkeyPatch,
    limit: float,
    connect_timeout: float,
    detail: str,
) -> None:
    """A name lookup that takes too long is abandoned, like an address that does not answer."""
    released = threading.Event()

    def slow(*_: object) -> None:
        if not released.is_set() and threading.current_thread() is not threading.main_thread():
            released.wait(5)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    began = time.monotonic()
    transport = event_loop.transport(connect_timeout=connect_timeout)
    failure = await failure_of(transport, post("http://slow.example/"), limit)
    assert time.monotonic() - began < 1
    released.set()
    assert (failure.phase, failure.sent, failure.reason, failure.detail) == (
        Phase.RESOLVE,
        False,
        Reason.TIMED_OUT,
        detail,
    )


@in_event_loop
async def test_only_names_are_looked_up(
    event_loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address is connected to without a lookup, which takes a thread; a name is looked up."""
    loop, looked_up = type(event_loop.transport.event_loop), list[str]()
    real: Any = loop.look_up

    async def look_up(self: object, host: str, port: int) -> object:
        looked_up.append(host)
        return await real(self, host, port)

    monkeypatch.setattr(loop, "look_up", look_up)
    transport = event_loop.transport()
    with ScriptedServer(serve()) as server:
        assert (await exchange(transport, get(server.url), timeout=5)).status == 200
        assert looked_up == []
        by_name = get(server.url.replace("127.0.0.1", "localhost"))
        assert (await exchange(transport, by_name, timeout=5)).status == 200
        assert looked_up == ["localhost"]
    failure = await failure_of(transport, get("http://nowhere.invalid/"))
    assert (failure.phase, failure.reason) == (Phase.RESOLVE, Reason.NAME_RESOLUTION)
    await transport.close()


@pytest.fixture(name="deaf_port")
def _deaf_port() -> Iterator[int]:
    with deaf_port() as port:
        yield port


@in_event_loop
async def test_silent_address(event_loop: EventLoop, deaf_port: int) -> None:
    """An address that never answers ends with the deadline, nothing sent."""
    failure = await failure_of(event_loop.transport(), post(f"http://127.0.0.1:{deaf_port}/"), 0.2)
    assert (failure.phase, failure.sent, failure.reason) == (
        Phase.CONNECT,
        False,
        Reason.TIMED_OUT,
    )


@in_event_loop
async def test_address_after_a_silent_one(
    event_loop: EventLoop, deaf_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that never answers is abandoned in time to try the next one."""
    real = socket.getaddrinfo

    def two(_: object, port: int, *rest: int) -> object:
        return [*real("127.0.0.1", deaf_port, *rest), *real("127.0.0.1", port, *rest)]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    transport = event_loop.transport(connect_timeout=0.1)
    with ScriptedServer(serve()) as server:
        assert (await exchange(transport, get(server.url), timeout=5)).status == 200
    await transport.close()


@pytest.mark.skipif(os.name != "posix", reason="SIGALRM is posix")
@in_event_loop
async def test_signal_while_an_address_is_tried(
    event_loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a signal handler raises is not the address's failure, so that no other one is tried."""
    loop, tried = event_loop.transport.event_loop, list[Address]()
    error = ConnectionRefusedError("time is up")

    def struck(_: object, address: Address, *_rest: object) -> NoReturn:
        tried.append(address)
        signal.raise_signal(signal.SIGALRM)
        raise AssertionError("the handler raises")

    def handler(_number: int, _frame: FrameType | None) -> NoReturn:
        raise error

    monkeypatch.setattr(type(loop), "connect", struck)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        addresses = [*await loop.look_up("127.0.0.1", 9)] * 2
        with pytest.raises(ConnectionRefusedError) as caught:
            await first_that_answers(loop, addresses, 5, Exchange(get("http://host.test/"), 5))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught.value is error
    assert len(tried) == 1


@pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="needs two records in one segment")
@in_event_loop
async def test_second_record_of_tls(
    event_loop: EventLoop, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    """A response nobody asked for is found even where it waits inside of the TLS engine."""

    def script(peer: Peer) -> None:
        peer.read_request()
        # Two records in one segment: the second is read from the socket, but not decrypted yet.
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        peer.send(response_bytes())
        peer.send(response_bytes(200, b"evil"))
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        peer.hang()

    transport = event_loop.transport(ssl_context=client_tls)
    with ScriptedServer(in_turn(script, serve(200, b"good")), tls=server_tls) as server:
        assert (await exchange(transport, get(server.url), timeout=5)).body == b"{}"
        assert (await exchange(transport, get(server.url), timeout=5)).body == b"good"
        assert len(server.peers) == 2
    await transport.close()


@in_event_loop
async def test_left_inside_a_coding(event_loop: EventLoop) -> None:
    """An exchange that was left returns nothing more, not even data that had already arrived."""
    body = gzip.compress(bytes(300_000))
    transport = event_loop.transport()
    with ScriptedServer(serve(200, body, content_encoding="gzip")) as server:
        async with transport.stream(get(server.url), timeout=5) as reply:
            assert await anext(reply.pieces())
        with pytest.raises(TransportError):
            await anext(reply.pieces())
    await transport.close()


@in_event_loop
async def test_old_connections_are_closed(
    event_loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that has been idle for minutes makes room when another one is kept."""
    transport = event_loop.transport()
    closed = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        try:
            serve()(peer)
        finally:
            closed.release()

    async def fetch(url: str) -> None:
        await exchange(transport, get(url), timeout=5)

    with ScriptedServer(script) as server:
        async with transport.stream(get(server.url), timeout=5) as first:
            await fetch(server.url)
            assert [piece async for piece in first.pieces()] == [b"{}"]
        monkeypatch.setattr(*moments.constant("longest idle time"), -1.0)
        await fetch(server.url)
        assert len(server.peers) == 2
        assert await event_loop.in_thread(partial(closed.acquire, timeout=5))
    await transport.close()


@in_event_loop
async def test_cancelled_where_more_has_come(event_loop: EventLoop) -> None:
    """A response that never pauses can be cancelled, and ends in time."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(theirs):
        theirs.sendall(b"more")
        ours.settimeout(0)
        with contextlib.closing(event_loop.stream(ours)) as stream:
            assert await event_loop.cancelled(partial(stream.receive, 4))
            assert await stream.receive(4) == b"more"


class Connecting(socket.socket):
    """A socket whose connection takes a while, and then fails or not.

    Args:
        error: How it ends: 0, or an error of the operating system.
    """

    def __init__(self, ours: socket.socket, error: int) -> None:
        super().__init__(fileno=ours.detach())
        self._error = error
        self._asked = 0

    def connect(self, _address: object, /) -> NoReturn:
        raise BlockingIOError(errno.EINPROGRESS, "in progress")

    def getsockopt(self, *_: int) -> int:  # type: ignore[override]  the one that is asked for
        return self._error

    def getpeername(self) -> object:
        self._asked += 1
        if self._asked == 1:  # the first wait has ended early
            raise OSError(errno.ENOTCONN, "not connected")
        return super().getpeername()


@pytest.mark.parametrize("error", [0, errno.ECONNREFUSED])
@in_event_loop
async def test_connecting_takes_a_while(
    event_loop: EventLoop, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """A connection that takes a while is waited for, and its error is that of its address."""
    ours, theirs = socket.socketpair()
    sock = Connecting(ours, error)

    def opened(_address: Address) -> socket.socket:
        return sock

    monkeypatch.setattr(*moments.at("socket opened").place, opened)
    loop = event_loop.transport.event_loop
    with contextlib.closing(theirs):
        connecting = loop.connect((0, 0, 0, "", ()), 5, "late")
        if error:
            with pytest.raises(ConnectionRefusedError):
                await connecting
            assert sock.fileno() < 0
            return
        stream = await connecting
        assert await stream.send(memoryview(b"more")) == len(theirs.recv(9))
        stream.close()


@in_event_loop
async def test_two_tasks_wait_for_one_connection(event_loop: EventLoop) -> None:
    """The second task is refused, and what arrives goes to the first one."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    stream, received = event_loop.stream(ours), list[bytes]()

    async def receive() -> None:
        try:
            received.append(await stream.receive(4))
        except event_loop.busy:
            theirs.sendall(b"more")

    with contextlib.closing(theirs), contextlib.closing(stream), anyio.fail_after(10):
        await event_loop.together(receive, receive)
    assert received == [b"more"]


@in_event_loop
async def test_closed_while_a_task_waits(
    event_loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task wakes up when its connection is closed, and does nothing to the next connection."""
    is_waiting: defaultdict[SocketStream, anyio.Event] = defaultdict(anyio.Event)
    wait_readable: Any = event_loop.stream.wait_readable
    received: list[bytes] = []

    async def wait(stream: SocketStream) -> None:
        is_waiting[stream].set()
        await wait_readable(stream)

    def opened() -> tuple[SocketStream, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        return event_loop.stream(ours), theirs

    async def receive_in_vain() -> None:
        with pytest.raises((OSError, trio.ClosedResourceError)):
            await stream.receive(1)

    async def take_its_number() -> None:
        await is_waiting[stream].wait()
        number = stream.sock.fileno()
        stream.close()
        second, theirs = opened()
        assert second.sock.fileno() == number

        async def receive() -> None:
            received.append(await second.receive(4))

        async def send() -> None:
            await is_waiting[second].wait()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            theirs.sendall(b"more")

        with contextlib.closing(theirs), contextlib.closing(second):
            await event_loop.together(receive, send)

    monkeypatch.setattr(event_loop.stream, "wait_readable", wait)
    stream, theirs = opened()
    with contextlib.closing(theirs), anyio.fail_after(10):
        await event_loop.together(receive_in_vain, take_its_number)
    assert received == [b"more"]


@pytest.mark.parametrize("behind", [b"5\r\n", b"5\r\nevil!\r\n0\r\n\r\n", b"evil"])
@in_event_loop
async def test_behind_a_bodiless_reply(event_loop: EventLoop, behind: bytes) -> None:
    """A connection on which something came behind a response to HEAD serves no other request."""
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    script = in_turn([read_request, send(whole + behind), hang], [read_request, send(whole), hang])
    transport = event_loop.transport()
    with ScriptedServer(script) as server:
        for _ in range(2):
            request = HttpRequest(method="HEAD", url=server.url)
            assert (await exchange(transport, request, timeout=5)).body == b""
        assert len(server.peers) == 2
    await transport.close()


@pytest.mark.parametrize(
    "whole",
    [
        response_bytes(200, b"x" * 300_000),
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ],
    ids=["counted", "endless", "chunked"],
)
@in_event_loop
async def test_nothing_is_left_of_a_reply(event_loop: EventLoop, whole: bytes) -> None:
    """Once a response has been read, nothing that read it waits for the garbage collector."""
    transport = event_loop.transport()
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(left, ResponseReader) for left in gc.get_objects())
        with ScriptedServer([read_request, send(whole)]) as server:
            await exchange(transport, get(server.url), timeout=5)
        assert sum(isinstance(left, ResponseReader) for left in gc.get_objects()) == before
    finally:
        gc.enable()
    await transport.close()


def attributes_of(stream: Response) -> list[Any]:
    return [getattr(stream, field.name, None) for field in attrs.fields(Response)]


@in_event_loop
async def test_the_key_is_not_kept(event_loop: EventLoop) -> None:
    """An exchange keeps the key no longer than until it has been sent."""
    transport = event_loop.transport()
    with ScriptedServer(serve()) as server:
        stream = transport.stream(get(server.url), timeout=5, authorization=AUTHORIZATION)
        async with stream:
            kept = attributes_of(stream)
            assert AUTHORIZATION not in kept
            assert KEY not in repr(kept)
    await transport.close()


@pytest.mark.parametrize("method", ["get", "GET /", "GET\r\nX: y", ""])
@in_event_loop
async def test_no_method(event_loop: EventLoop, method: str) -> None:
    """A request with an invalid method is not sent."""
    for body in (None, b""):
        request = HttpRequest(method=method, url="http://127.0.0.1:9/", body=body)
        failure = await failure_of(event_loop.transport(), request)
        assert (failure.sent, failure.reason) == (False, Reason.OTHER)


def kept_by_caches() -> int:
    """Return how many values all caches of functions hold."""
    modules = [module for name, module in sys.modules.items() if name.startswith("muybridge")]
    functions = [function for module in modules for function in vars(module).values()]
    caches = [function.cache_info for function in functions if hasattr(function, "cache_info")]
    return sum(cache_info().currsize for cache_info in caches)


@in_event_loop
async def test_links_are_not_kept(event_loop: EventLoop) -> None:
    """How a request for a result's link begins, whose signature opens it, is not kept."""
    transport = event_loop.transport()
    with ScriptedServer(serve()) as server:
        await exchange(transport, get(f"{server.url}/v1/result/a", authorized=True), timeout=5)
        before = kept_by_caches()
        await exchange(transport, get(f"{server.url}/a.mp4?{QUERY}"), timeout=5)
        assert f"GET /a.mp4?{QUERY} HTTP/1.1\r\n".encode() in server.received
        assert kept_by_caches() == before
    await transport.close()


@in_event_loop
async def test_left_in_the_middle(event_loop: EventLoop) -> None:
    """Leaving the pieces and the stream early closes the connection; further reads raise."""
    transport = event_loop.transport()
    with ScriptedServer(serve(200, b"x" * 500_000)) as server:
        async with transport.stream(get(server.url), timeout=5) as reply:
            async for piece in reply.pieces():
                assert piece
                break
        with pytest.raises(TransportError):
            await anext(reply.pieces())
        assert (await exchange(transport, get(server.url), timeout=5)).status == 200
        assert len(server.peers) == 2
    await transport.close()


@in_event_loop
async def test_dropped_without_a_word(event_loop: EventLoop) -> None:
    """Iterators that are dropped halfway leave nothing for the garbage collector to complain of."""
    transport = event_loop.transport()
    with ScriptedServer(serve(200, b"x" * 500_000)) as server:
        async with transport.stream(get(server.url), timeout=5) as reply:
            await anext(reply.pieces())
        del reply
        gc.collect()
    await transport.close()


@in_event_loop
async def test_closed_while_in_use(event_loop: EventLoop) -> None:
    """A connection in use while its transport is closed serves its response and is closed then."""
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(response_bytes(200, b"whole"))
        peer.hang()
        gone.set()

    transport = event_loop.transport()
    with ScriptedServer(script) as server:
        async with transport.stream(get(server.url), timeout=5) as reply:
            await transport.close()
            assert b"".join([piece async for piece in reply.pieces()]) == b"whole"
        assert await event_loop.in_thread(partial(gone.wait, 5))


def test_another_event_loop(event_loop: EventLoop) -> None:
    """A transport can be used in one event loop after another, on the connections it has."""
    transport = event_loop.transport()

    async def fetch() -> None:
        assert (await exchange(transport, get(server.url), timeout=5)).status == 200

    with ScriptedServer(serve()) as server:
        for _ in range(3):
            event_loop.run(fetch)
        assert len(server.peers) == 1
        event_loop.run(transport.close)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(event_loop: EventLoop) -> None:
    """A forked child opens connections of its own and leaves its parent's alone."""
    transport = event_loop.transport()

    async def fetch() -> int:
        return (await exchange(transport, get(server.url), timeout=5)).status

    with ScriptedServer(serve()) as server:
        event_loop.run(fetch)
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if event_loop.run(fetch) == 200 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert event_loop.run(fetch) == 200
        assert len(server.peers) == 2
        event_loop.run(transport.close)


@in_event_loop
async def test_one_error_at_a_time(event_loop: EventLoop) -> None:
    """Many exchanges that fail at once each raise an error of their own, and never a group."""
    transport = event_loop.transport()
    failures: list[TransportFailure] = []

    async def fail() -> None:
        failures.append(await failure_of(transport, post(server.url)))

    with ScriptedServer([read_request]) as server:
        await event_loop.together(*[fail] * 30)
    assert {failure.reason for failure in failures} == {Reason.CLOSED}
    assert len(failures) == 30


@in_event_loop
async def test_key_while_connecting(event_loop: EventLoop) -> None:
    """An exchange shows the key in none of its attributes while it connects; then it is gone."""
    connecting = threading.Event()

    def script(peer: Peer) -> None:
        connecting.set()
        peer.hang()

    with ScriptedServer(script, scheme="https") as server:
        streamed = event_loop.transport().stream(
            post(server.url), timeout=0.3, authorization=AuthorizationHeader(AUTHORIZATION)
        )

        async def fail() -> None:
            with pytest.raises(TransportError):
                await streamed.__aenter__()

        async def look() -> None:
            await event_loop.in_thread(partial(connecting.wait, 5))
            assert KEY not in repr(attributes_of(streamed))
            assert "[api key]" in repr(attributes_of(streamed))

        await event_loop.together(fail, look)
    assert "[api key]" not in repr(attributes_of(streamed))


@in_event_loop
async def test_junk_after_a_whole_reply(event_loop: EventLoop) -> None:
    """Bytes after a body that came with its head are not part of it, and end its connection."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(response_bytes() + b"junk")
        peer.hang()

    transport = event_loop.transport()
    with ScriptedServer(in_turn(script, serve(200, b"good"))) as server:
        assert (await exchange(transport, get(server.url), timeout=5)).body == b"{}"
        assert (await exchange(transport, get(server.url), timeout=5)).body == b"good"
        assert len(server.peers) == 2
    await transport.close()


@pytest.mark.parametrize("size", [10, 11])
@in_event_loop
async def test_limit_of_a_whole_reply(event_loop: EventLoop, size: int) -> None:
    """A body that has come with its head is bounded, too."""
    transport = event_loop.transport()
    with ScriptedServer(serve(200, b"x" * size)) as server:
        request = get(server.url, body_limit=10)
        if size > 10:
            failure = await failure_of(transport, request)
            assert (failure.reason, failure.status) == (Reason.TOO_LARGE, 200)
        else:
            assert (await exchange(transport, request, timeout=5)).body == b"x" * 10
    await transport.close()
