"""Ctrl-C interrupts a text request at once, and says that it may have been charged."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import moments
from muybridge import StreamInterrupted
from muybridge.drivers.notes import TEXT_UNDER_WAY
from muybridge_protocol.http import HttpResponse
from transport.scripted_server import Peer, ScriptedServer, hang, read_request, send

from .alarms import ctrl_c
from .answers import CHUNKS, EVENTS, HEAD, MODEL, PROMPT, hang_until_closed, part, spend
from .canaries import everything
from .drivers import MakeClient
from .in_process import KEY, World

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a thread are posix")

BOTH = ("generate_content", "stream_generate_content")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Ctrl-C is handled as in a fresh interpreter, and after the test as before it."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("begun", [b"", HEAD[:20]], ids=["none", "head"])
def test_ctrl_c_before_the_reply(
    make_client: MakeClient,
    capsys: pytest.CaptureFixture[str],
    method: str,
    begun: bytes,
) -> None:
    """Ctrl-C is not held back for the response, and the request is not sent again."""
    # The last byte wakes the client, should the signal have come just before it began to wait.
    script = [read_request, send(begun), ctrl_c, send(HEAD[len(begun) : len(begun) + 1]), hang]
    with ScriptedServer(script) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            spend(make_client(server.url), method)
        assert server.posts == 1
    assert notes(caught.value) == [TEXT_UNDER_WAY]
    assert "may have been charged" in TEXT_UNDER_WAY
    assert "task" not in TEXT_UNDER_WAY
    assert KEY not in everything(caught.value)
    assert capsys.readouterr().err == ""


def test_ctrl_c_within_a_stream(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two chunks interrupts the stream; what arrived before is still available."""
    gone = threading.Event()
    reading = threading.Event()
    first: Any = None

    take = moments.at("next chunk of a text")
    take_next = take.value

    def next_chunk(stream: object) -> Any:
        chunk: Any = take_next(stream)
        if first is not None:  # not before the second chunk is asked for, and about to be read
            reading.set()
        return chunk

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(EVENTS[0]))
        assert reading.wait(10)
        ctrl_c(peer)
        peer.send(b"1")
        hang_until_closed(gone)(peer)

    with ScriptedServer(script) as server:
        with make_client(server.url).stream_generate_content(MODEL, PROMPT) as stream:
            with monkeypatch.context() as patched:
                patched.setattr(*take.place, next_chunk)
                first = next(stream)
                with pytest.raises(KeyboardInterrupt) as caught:
                    next(stream)
            with pytest.raises(StreamInterrupted):
                list(stream)
            with pytest.raises(StreamInterrupted):
                stream.collect()
        assert gone.wait(10)
        assert server.posts == 1
    assert notes(caught.value) == [TEXT_UNDER_WAY]
    assert KEY not in everything(caught.value)
    assert stream.received() == (first,)
    assert first.raw == CHUNKS[0]


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, SystemExit])
def test_odd_errors(
    make_client: MakeClient,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    kind: type[BaseException],
) -> None:
    """Any error that interrupts a text request is raised with what that may have cost, once."""

    def broken(*_: object) -> HttpResponse:
        raise kind

    monkeypatch.setattr(world, "answer", broken)
    with pytest.raises(kind) as caught:
        spend(make_client(world), method)
    assert notes(caught.value) == [TEXT_UNDER_WAY]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_odd_errors_within_a_stream(
    make_client: MakeClient,
    world: World,
    kind: type[BaseException],
) -> None:
    """The same is true of errors that interrupt a stream while it is read."""

    class Body(bytes):
        def __getitem__(self, place: Any) -> Any:
            if place.start:
                raise kind
            return EVENTS[0]

    world.always = HttpResponse(200, (), Body(EVENTS[0] + EVENTS[1]))
    with make_client(world).stream_generate_content(MODEL, PROMPT) as stream:
        assert next(stream).raw == CHUNKS[0]
        with pytest.raises(kind) as caught:
            next(stream)
        with pytest.raises(StreamInterrupted):
            next(stream)
    assert notes(caught.value) == [TEXT_UNDER_WAY]


def test_ones_own_interruption_is_ones_own(make_client: MakeClient, world: World) -> None:
    """What is raised where the chunks are used comes out as it is."""
    stream = make_client(world).stream_generate_content(MODEL, PROMPT)
    with pytest.raises(KeyboardInterrupt) as caught, stream:
        raise KeyboardInterrupt
    assert notes(caught.value) == []
