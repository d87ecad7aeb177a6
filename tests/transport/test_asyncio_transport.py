"""What only the transport on asyncio does: it absorbs cancellations that asyncio cannot shield."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest

from muybridge.testing.conformance.event_loops import CancelledAt
from muybridge.wire.async_transport import exchange
from muybridge.wire.asyncio_transport import AsyncioLoop, AsyncioStream, AsyncioTransport
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason

from .calls import AUTHORIZATION, get, post
from .scripted_server import (
    Peer,
    ScriptedServer,
    closed_port,
    hang,
    read_request,
    response_bytes,
    serve,
)

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class WithoutReaders(asyncio.SelectorEventLoop):
    """As far as streams can tell, Windows' proactor loop."""

    pauses: ClassVar[list[float]] = []

    def call_later(self, delay: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        self.pauses.append(delay)
        return super().call_later(delay, *arguments, **options)

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        raise NotImplementedError

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:
        raise NotImplementedError

    async def sock_recv(self, sock: socket.socket, n: int) -> bytes:
        assert n == 0
        ready = self.create_future()
        super().add_reader(sock, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            self.remove_reader(sock)
        return b""


def uvloops() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


@pytest.fixture(params=[asyncio.SelectorEventLoop, uvloops, WithoutReaders])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, T]], T]:
    """Runs a coroutine on each event loop in turn."""
    if request.param is uvloops:
        pytest.importorskip("uvloop")

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(coroutine)

    return run


Run = Callable[[Coroutine[Any, Any, Any]], Any]


def cancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("from outside")


@pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])
def test_cancelled_at_each_suspension(
    run: Run, tls: ssl.SSLContext | None, client_tls: ssl.SSLContext, *, again: bool
) -> None:
    """Wherever a paid exchange is cancelled, nothing was sent, or its response is complete."""

    async def cancelled_at(nth: int) -> tuple[CancelledAt[HttpResponse], HttpResponse | None]:
        transport, response = AsyncioTransport(ssl_context=client_tls), None
        paid = exchange(transport, post(server.url), timeout=5, authorization=AUTHORIZATION)
        calling = CancelledAt(nth, paid, cancel, again=again)
        with suppress(asyncio.CancelledError):
            response = await calling
            await asyncio.sleep(0)
            assert not calling.requests
        await asyncio.sleep(0)  # it is cancelled once
        await transport.close()
        return calling, response

    def script(peer: Peer) -> None:
        """Respond in four pieces: the exchange waits for each of them."""
        peer.read_request()
        whole = response_bytes(200, b"whole")
        peer.send(whole[:-3])
        peer.drip(whole[-3:], every=0.003)
        peer.hang()

    complete: list[bool] = []
    calling = None
    with ScriptedServer(script, tls=tls) as server:
        while calling is None or calling.requests or sum(complete) < 3:
            calling, response = run(cancelled_at(len(complete) + 1))
            complete.append(response is not None)
            assert response is None or response.body == b"whole"
    print(f"cancelled at each of {len(complete) - 1} suspensions")  # noqa: T201  # for the report: pytest -s
    assert complete[:2] == [False, False]  # while it connects, and right before the first byte
    assert server.posts == sum(complete)


def test_free_request_is_cancelled_at_once(run: Run) -> None:
    """A request that costs nothing, or may be interrupted, ends where it is cancelled."""

    async def cancelled_at(request: HttpRequest, nth: int) -> bool:
        transport = AsyncioTransport()
        calling = CancelledAt(nth, exchange(transport, request, timeout=5), cancel)
        with suppress(asyncio.CancelledError):
            await calling
            assert not calling.requests
        await transport.close()
        return calling.suspensions == nth and calling.requests == 1

    with ScriptedServer(serve(200, b"whole")) as server:
        for request in (get(server.url), post(server.url, interruptible=True)):
            count = next(nth for nth in range(1, 100) if not run(cancelled_at(request, nth)))
            assert count > 2  # while it connects, and while it waits for the response


async def call(request: HttpRequest, limit: float = 20) -> HttpResponse:
    transport = AsyncioTransport()
    done = await exchange(transport, request, timeout=limit)
    await transport.close()  # which does not suspend
    return done


def hold_back(arrived: threading.Event, release: threading.Event) -> Callable[[Peer], None]:
    """Return a script that responds to a request once it may."""

    def script(peer: Peer) -> None:
        peer.read_request()
        arrived.set()
        release.wait(5)
        peer.send(response_bytes(200, b"whole"))
        peer.hang()

    return script


def test_cancelled_while_the_event_loop_shuts_down(run: Run) -> None:
    """A paid exchange that the event loop's shutdown cancels finishes, and keeps its result."""
    arrived, release = threading.Event(), threading.Event()

    async def background() -> None:
        paid.append(asyncio.create_task(call(post(server.url))))
        await asyncio.to_thread(arrived.wait, 5)
        threading.Timer(0.05, release.set).start()

    paid: list[asyncio.Task[HttpResponse]] = []
    with ScriptedServer(hold_back(arrived, release)) as server:
        run(background())
    assert not paid[0].cancelled()
    assert paid[0].result().body == b"whole"


def test_withdrawn_cancellation(run: Run) -> None:
    """A cancellation that was withdrawn meanwhile is not delivered after the exchange."""
    arrived, release = threading.Event(), threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)

        def expire() -> None:
            limit.reschedule(0)
            loop.call_later(0.02, release.set)

        def expire_once_sent() -> None:
            arrived.wait(5)
            loop.call_soon_threadsafe(expire)

        watching = loop.run_in_executor(None, expire_once_sent)
        async with limit:
            done = await call(post(server.url))
        assert limit.expired()
        await watching
        await asyncio.sleep(0.01)
        assert done.body == b"whole"

    with ScriptedServer(hold_back(arrived, release)) as server:
        run(main())


@pytest.mark.parametrize("shielded", [False, True])
def test_cancelled_as_the_time_ends(run: Run, *, shielded: bool) -> None:
    """A cancellation in the very turn of the timeout is raised, by a shielded wait afterwards."""

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0)
            stream = AsyncioStream(ours)

            async def wait() -> bytes:
                loop.call_later(0.011, task.cancel)
                loop.call_soon(time.sleep, 0.05)  # so that both moments pass in one turn
                return await stream.receive(1)

            options = {"shielded": True} if shielded else {}
            waiting = AsyncioLoop().within(0.01, "late", wait(), **options)
            with pytest.raises(TimeoutError if shielded else asyncio.CancelledError) as caught:
                await waiting
            if shielded:
                assert str(caught.value) == "late"
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(0)
            assert task.cancelling() == 1
            task.uncancel()

    run(main())


def test_timeout_within_a_timeout(run: Run) -> None:
    """Whichever of two shielded waits runs out of time ends with its own message."""

    async def within(outer: float, inner: float) -> str:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0)
            loop, receiving = AsyncioLoop(), AsyncioStream(ours).receive(1)
            narrow = loop.within(inner, "inner", receiving, shielded=True)
            with pytest.raises(TimeoutError) as caught:
                await loop.within(outer, "outer", narrow, shielded=True)
        await asyncio.sleep(0)
        return str(caught.value)

    assert run(within(0.02, 5)) == "outer"
    assert run(within(5, 0.02)) == "inner"


def test_nobody_waits_for_what_arrives() -> None:
    """If nobody waits for what arrives, the event loop stops watching until somebody does."""

    async def receive() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        stream = AsyncioStream(ours)
        with closing(theirs), closing(stream):
            theirs.sendall(b"asked for")
            assert await stream.receive(9) == b"asked for"
            theirs.sendall(b"not")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not loop.remove_reader(ours.fileno())
            assert await stream.receive(9) == b"not"

    asyncio.run(receive())


def test_what_has_been_read_ends_no_wait() -> None:
    """A task that has read what arrived sleeps until more arrives."""

    class Counted(AsyncioStream):
        waits = 0

        def wait_readable(self) -> Awaitable[object]:
            self.waits += 1
            return super().wait_readable()

    async def receive() -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        stream = Counted(ours)

        async def send(word: bytes) -> None:
            for _ in range(5):  # turns of the event loop
                await asyncio.sleep(0)
            theirs.sendall(word)

        with closing(theirs), closing(stream):
            for number, word in enumerate((b"one", b"two", b"three"), 1):
                async with asyncio.TaskGroup() as group:
                    group.create_task(send(word))
                    assert await stream.receive(9) == word
                assert stream.waits == number

    asyncio.run(receive())


def test_one_event_loop_after_another() -> None:
    """A connection that one event loop has watched is watched by the next one."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    stream = AsyncioStream(ours)
    with closing(theirs), closing(stream):
        for word in (b"first", b"second"):
            theirs.sendall(word)
            assert asyncio.run(stream.receive(9)) == word


def test_failures_say_what_was_sent(run: Run) -> None:
    """A refused connection sent nothing; a response that never comes leaves the request sent."""

    async def fail(url: str) -> tuple[Phase, bool, Reason]:
        with pytest.raises(TransportError) as caught:
            await call(post(url), 0.2)
        failure = caught.value.failure
        return failure.phase, failure.sent, failure.reason

    unused = f"http://127.0.0.1:{closed_port()}"
    assert run(fail(unused)) == (Phase.CONNECT, False, Reason.REFUSED)
    with ScriptedServer([read_request, hang]) as server:
        assert run(fail(server.url)) == (Phase.HEAD, True, Reason.TIMED_OUT)


def test_large_request(run: Run) -> None:
    """A body that fills the buffers of the operating system is sent whole."""

    def script(peer: Peer) -> None:
        released.wait(0.2)
        peer.read_request()
        peer.send(response_bytes(200, b"whole"))

    async def send() -> bytes:
        body = b"x" * 20_000_000
        return (await call(post(server.url, body))).body

    released = threading.Event()
    with ScriptedServer(script) as server:
        assert run(send()) == b"whole"
        assert len(server.received) > 20_000_000


def empty(sock: socket.socket) -> None:
    """Receive all that has come to *sock*."""
    with suppress(BlockingIOError):
        while True:
            sock.recv(65536)


def test_waiting_for_room(run: Run) -> None:
    """What waits until bytes can be sent lets others run, and looks again soon."""

    async def main() -> bool:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0)
            theirs.settimeout(0)
            with suppress(BlockingIOError):
                while True:
                    ours.send(b"x" * 65536)
            sending = CancelledAt(0, AsyncioStream(ours).send(memoryview(b"x")), cancel)
            asyncio.get_running_loop().call_soon(empty, theirs)
            assert await sending == 1
            pauses = isinstance(asyncio.get_running_loop(), WithoutReaders)
            assert pauses or sending.suspensions == 1
        return pauses

    WithoutReaders.pauses.clear()
    has_paused = run(main())
    assert bool(WithoutReaders.pauses) is has_paused
    assert all(pause < 0.1 for pause in WithoutReaders.pauses)


def test_waiting_for_bytes(run: Run) -> None:
    """Once bytes have arrived, nothing else is awaited."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(0)
            receiving = CancelledAt(0, AsyncioStream(ours).receive(4), cancel)
            asyncio.get_running_loop().call_soon(theirs.sendall, b"more")
            assert await receiving == b"more"
            assert receiving.suspensions <= 2

    WithoutReaders.pauses.clear()
    run(main())
    assert not WithoutReaders.pauses


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs eager tasks")
def test_eager_tasks(run: Run) -> None:
    """A task that runs before `create_task` returns can be cancelled up to its first byte."""

    make_task: Any = asyncio.Task
    eager = partial(make_task, eager_start=True)

    async def main() -> None:
        # Made by hand: uvloop and the factory of Python 3.13.0 do not fit together.
        loop = asyncio.get_running_loop()
        task = eager(call(post(server.url)), loop=loop)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        task = eager(call(post(server.url)), loop=loop)
        await asyncio.to_thread(arrived.wait, 5)
        task.cancel()
        release.set()
        assert (await task).body == b"whole"

    arrived, release = threading.Event(), threading.Event()
    with ScriptedServer(hold_back(arrived, release)) as server:
        run(main())
    assert server.posts == 1
