"""What a transport is built of notices what a library does not."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal

import pytest
import trio

from muybridge.testing.conformance.for_event_loops import thread_of
from muybridge.wire.async_transport import whole
from muybridge.wire.asyncio_transport import AsyncioLoop
from muybridge.wire.building import (
    AsyncResponse,
    Exchange,
    Fault,
    Opened,
    Response,
    fields_of,
    locate,
    look_up,
)
from muybridge.wire.transport import TransportError
from muybridge.wire.trio_transport import TrioLoop
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse, Phase, Reason

LENGTH = (("Content-Length", "6"),)
LOOPS: dict[str, Any] = {"trio": TrioLoop(), "asyncio": AsyncioLoop()}

EventLoop = Literal["trio", "asyncio"]
each_loop = pytest.mark.parametrize("event_loop", ["trio", "asyncio"])


def received(method: str, status: int, *pieces: bytes) -> Iterator[bytes]:
    """Yield what a `Response` makes of *pieces* that a library has taken for the whole body."""

    def send(exchange: Exchange, _: str | None) -> Opened:
        exchange.begin()
        exchange.send(b"request", lambda _data, _seconds: None)
        return Opened(HttpHead(status, LENGTH), iter(pieces), lambda: None)

    request = HttpRequest(method=method, url="http://service.test/")
    with Response(send, Exchange(request, 5.0), None) as reply:
        yield from reply.pieces()


def test_a_body_that_is_too_short() -> None:
    """A body shorter than its length was cut, whatever the library takes it for."""
    with pytest.raises(TransportError) as caught:
        list(received("GET", 200, b"cut", b"."))
    failure = caught.value.failure
    assert (failure.reason, failure.phase, failure.sent) == (Reason.TRUNCATED, Phase.BODY, True)
    assert (failure.status, failure.partial) == (200, b"cut.")
    assert failure.detail == "the body ended 2 bytes early"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304)])
def test_no_body_has_no_length(method: str, status: int) -> None:
    """Where a response has no body, its length says what another response would have."""
    assert not list(received(method, status))


def test_a_whole_body() -> None:
    """A body of its length is whole, and empty pieces are none."""
    assert list(received("GET", 200, b"all", b"", b" of")) == [b"all", b" of"]


async def pause(event_loop: EventLoop) -> None:
    """Let a few turns of the event loop pass, each of which may be cancelled."""
    for _ in range(3):
        if event_loop == "trio":
            await trio.lowlevel.checkpoint()
        else:
            await asyncio.sleep(0)


def library(
    event_loop: EventLoop, *pieces: bytes, headers: tuple[tuple[str, str], ...] = LENGTH
) -> Callable[[Exchange, str | None], Awaitable[Opened]]:
    """Return what sends a request by a library that suspends at each step."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            await pause(event_loop)
            yield piece

    async def send(exchange: Exchange, _: str | None) -> Opened:
        await pause(event_loop)
        exchange.begin()
        exchange.sent = True
        await pause(event_loop)
        exchange.awaiting()
        return Opened(HttpHead(200, headers), body(), lambda: None)

    return send


def got(event_loop: EventLoop, request: HttpRequest, *pieces: bytes, **more: Any) -> HttpResponse:
    """Return what an `AsyncResponse` makes of *pieces*, the whole body according to a library."""

    async def call() -> HttpResponse:
        send = library(event_loop, *pieces, **more)
        reply = AsyncResponse(send, Exchange(request, 5.0), None, LOOPS[event_loop])
        return await whole(reply, paid=request.paid)

    with thread_of(event_loop) as thread:
        return thread.run(call)


GET = HttpRequest(method="GET", url="http://service.test/")
POST = HttpRequest(method="POST", url="http://service.test/", body=b"{}", paid=True)


def test_nothing_is_sent_before_a_response_is_entered() -> None:
    """This holds even if its record is of an earlier attempt that was sent."""
    used = Exchange(POST, 5.0)
    used.sent = True

    def send(_exchange: Exchange, _: str | None) -> Opened:
        raise AssertionError

    assert not Response(send, used, None).sent
    assert not AsyncResponse(library("asyncio"), used, None, LOOPS["asyncio"]).sent


class LibraryError(Exception):
    """What an HTTP library raises."""

    __module__ = "some_library.errors"


@each_loop
def test_an_async_body_is_checked_as_well(event_loop: EventLoop) -> None:
    """A body of an async library is decoded, limited, and compared with its length."""
    coded = gzip.compress(b"decoded")
    headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(coded))))
    pieces = (coded[:9], b"", coded[9:])
    assert got(event_loop, GET, *pieces, headers=headers).body == b"decoded"
    for request, piece, reason in (
        (GET, b"cut", Reason.TRUNCATED),
        (HttpRequest(method="GET", url=GET.url, body_limit=5), b"longer", Reason.TOO_LARGE),
    ):
        with pytest.raises(TransportError) as caught:
            got(event_loop, request, piece)
        failure = caught.value.failure
        assert (failure.reason, failure.phase, failure.partial) == (reason, Phase.BODY, piece)


@each_loop
def test_a_cancellation_waits_for_a_paid_response(event_loop: EventLoop) -> None:
    """Wherever a create is cancelled, nothing was sent, or its response is read to the end.

    The cancellation itself is not lost: it arrives at the first wait after the exchange.
    """
    outcomes: list[str] = []

    async def call(exchange: Exchange) -> None:
        send = library(event_loop, b"who", b"le.")
        reply = AsyncResponse(send, exchange, None, LOOPS[event_loop])
        response = await whole(reply, paid=True)
        outcomes.append(response.body.decode())
        await pause(event_loop)
        outcomes.append("not cancelled")

    for nth in range(1, 100):
        outcomes.clear()
        exchange = Exchange(POST, 5.0)
        with thread_of(event_loop) as thread:

            async def cancelled(nth: int = nth, exchange: Exchange = exchange) -> bool:
                return (await thread.cancelled_at(nth, lambda: call(exchange)))[1]

            reached = thread.run(cancelled)
        if not reached:
            assert outcomes == ["whole.", "not cancelled"]
            return
        assert outcomes[:1] == ["whole."] * exchange.sent
        assert "not cancelled" not in outcomes
    raise AssertionError("it is suspended forever")


def test_the_end_of_asyncio_run_leaves_a_create_in_doubt() -> None:
    """Who ends the event loop in the middle of a create gets a failure that says it was sent."""
    outcomes: list[TransportError] = []

    async def forever(exchange: Exchange, _: str | None) -> Opened:
        exchange.begin()
        exchange.sent = True
        await asyncio.Event().wait()
        raise AssertionError

    async def call() -> None:
        try:
            async with AsyncResponse(forever, Exchange(POST, 60.0), None, LOOPS["asyncio"]):
                pass
        except TransportError as error:
            outcomes.append(error)

    async def main() -> None:
        main.task = asyncio.create_task(call())  # type: ignore[attr-defined]
        await pause("asyncio")

    asyncio.run(main())
    assert [error.failure.sent for error in outcomes] == [True]


@pytest.mark.parametrize("turned", [False, True], ids=["passed on", "turned into an error"])
def test_a_cancellation_comes_out_as_it_was_requested(
    caplog: pytest.LogCaptureFixture, *, turned: bool
) -> None:
    """Before the first byte, a library ends by the cancellation, or by an error of its own."""
    caught: list[asyncio.CancelledError] = []

    async def send(_: Exchange, __: str | None) -> Opened:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if turned:
                raise LibraryError from None
            raise
        raise AssertionError

    async def call() -> None:
        try:
            async with AsyncResponse(send, Exchange(POST, 60.0), None, LOOPS["asyncio"]):
                pass
        except asyncio.CancelledError as error:
            caught.append(error)

    async def main() -> None:
        task = asyncio.create_task(call())
        await pause("asyncio")
        task.cancel("enough")
        await task

    asyncio.run(main())
    gc.collect()
    assert [error.args for error in caught] == [("enough",)]
    assert isinstance(caught[0].__cause__, LibraryError) is turned
    assert caplog.messages == []  # a task's error that nobody retrieves is logged


@pytest.mark.parametrize("proxy", [False, True])
@each_loop
def test_a_lookup_ends_in_time(
    event_loop: EventLoop,
    proxy: bool,  # noqa: FBT001  a parameter
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name lookup that the operating system does not end is a timeout, and nothing is sent."""
    ended = threading.Event()

    def resolve(_host: object, *arguments: Any, **named: Any) -> list[Any]:
        if (*arguments, *[0] * 5)[4] or named.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "it is a name")
        ended.wait(5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    exchange = Exchange(GET, 5.0)

    async def call() -> None:
        try:
            await look_up(LOOPS[event_loop], exchange, "slow.test", 80, proxy=proxy, most=0.05)
        finally:
            ended.set()

    with thread_of(event_loop) as thread, pytest.raises(TimeoutError) as caught:
        thread.run(call)
    failure = exchange.failure(caught.value)
    assert (failure.phase, failure.reason, failure.sent) == (
        Phase.RESOLVE,
        Reason.TIMED_OUT,
        False,
    )
    assert failure.detail.startswith("the proxy slow.test:80") is proxy


@pytest.mark.parametrize(
    "bad",
    ["\r\nX-Injected: y", "\n", "\r", "\0", "\N{HORIZONTAL ELLIPSIS}"],
    ids=["another field", "line feed", "carriage return", "null", "beyond Latin-1"],
)
def test_no_field_can_split_a_request(bad: str) -> None:
    """A header, or a key, that could split the request is refused before anything is sent."""
    origin, _ = locate(GET)
    split = HttpRequest(method="GET", url=GET.url, headers=(("X-A", f"a{bad}"),))
    for request, key in ((split, None), (GET, f"Bearer {bad}")):
        with pytest.raises(Fault) as caught:
            fields_of(request, origin, key)
        failure = Exchange(request, 5.0).failure(caught.value)
        assert (failure.reason, failure.sent) == (Reason.OTHER, False)
        assert bad not in failure.detail


@each_loop
def test_a_response_may_be_left(event_loop: EventLoop) -> None:
    """The body of an exchange that is left early is closed at once, and not at some later time."""
    closed: list[str] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"more"
        finally:
            closed.append("body")
            await pause(event_loop)  # which it should not
            closed.append("too late")

    async def send(exchange: Exchange, _: str | None) -> Opened:
        exchange.begin()
        return Opened(HttpHead(200), body(), lambda: closed.append("connection"))

    async def call() -> None:
        async with AsyncResponse(send, Exchange(GET, 5.0), None, LOOPS[event_loop]) as reply:
            assert await anext(reply.pieces()) == b"more"
        assert closed == ["connection", "body"]

    with thread_of(event_loop) as thread:
        thread.run(call)


class LibraryAttributeError(AttributeError):
    """What a library raises for a mistake of its caller."""

    __module__ = "some_library.errors"


DEFECTS: list[Exception] = [
    TypeError("an argument is missing"),
    AttributeError("no such attribute"),
    KeyError("no such key"),
    ZeroDivisionError(),
    RuntimeError("called twice"),
    asyncio.InvalidStateError(),
    json.JSONDecodeError("no JSON", "", 0),
    LibraryAttributeError("no such option"),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=[type(defect).__name__ for defect in DEFECTS])
def test_a_defect_is_no_failure_of_the_network(defect: Exception) -> None:
    """A mistake in a transport is raised as it is: as a failure, it would hide, and be retried."""
    with pytest.raises(type(defect)) as caught:
        Exchange(POST, 5.0).failure(defect)
    assert caught.value is defect


@pytest.mark.parametrize(
    "error",
    [
        LibraryError(),
        ConnectionResetError(),
        Fault(Reason.CLOSED),
        asyncio.IncompleteReadError(b"", 1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_library_is_one(error: Exception) -> None:
    """What a library raises for the network is a failure, whatever the library."""
    assert not Exchange(POST, 5.0).failure(error).sent
