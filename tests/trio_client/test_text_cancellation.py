"""A text request is cancelled at once, wherever it is, and is never sent twice."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import trio_test

import moments
import muybridge
from client.answers import ASKED, CHUNKS, EVENTS, HEAD, LAST, MODEL, PROMPT, part
from client.in_process import World
from muybridge.wire.trio_transport import TrioStream
from muybridge_protocol.http import HttpRequest, HttpResponse
from transport.scripted_server import Peer, ScriptedServer, response_bytes

from .in_trio import at_every_checkpoint, client_of, mock_world, on_virtual_time

LATENCIES = pytest.mark.parametrize("latency", [0.0, 0.2])


@LATENCIES
@on_virtual_time
async def test_plain(latency: float) -> None:
    """A plain call is cancelled at any checkpoint, the reply's included, and sent once."""
    world = mock_world()
    client = client_of(world, latency)
    answers: list[str] = []
    unanswered: list[bool] = []
    runs = 0

    async def generate() -> None:
        nonlocal runs
        runs += 1
        answers.clear()
        answers.append((await client.generate_content(MODEL, PROMPT)).text)

    async def check(scope: trio.CancelScope) -> None:
        assert bool(answers) is not scope.cancelled_caught
        unanswered.append(scope.cancelled_caught)
        assert len(world.posts) <= runs

    assert await at_every_checkpoint(generate, check) >= 4
    # Without a shield some were broken off after their first byte.
    assert len(world.posts) > unanswered.count(False)


@LATENCIES
@on_virtual_time
async def test_streamed(latency: float) -> None:
    """A stream is cancelled at any checkpoint: before it opens, and while it is read."""
    world = mock_world()
    client = client_of(world, latency)
    counts: list[int] = []

    async def stream() -> None:
        counts.append(0)
        async with client.stream_generate_content(MODEL, PROMPT) as chunks:
            async for _ in chunks:
                counts[-1] += 1

    async def check(scope: trio.CancelScope) -> None:
        assert len(world.posts) <= len(counts)
        if not scope.cancelled_caught:
            assert counts[-1] == max(counts) > 3

    assert await at_every_checkpoint(stream, check) >= 8
    assert len(set(counts)) == max(counts) + 1


@on_virtual_time
async def test_waits_are_virtual(world: World) -> None:
    """The waits between tries go by trio's clock, and may be cancelled."""
    client = client_of(world, 0.1)
    busy = HttpResponse(429, (("Retry-After", "100"),))
    world.instead.extend([busy, busy, busy])
    began = trio.current_time()
    assert (await client.chat_completions(ASKED))["choices"]
    assert 300 <= trio.current_time() - began < 305
    world.instead.append(busy)
    with trio.move_on_after(50) as scope:
        async with client.stream_messages({**ASKED, "max_tokens": 5}):
            raise AssertionError("there is no stream")
    assert scope.cancelled_caught
    assert len(world.posts) == 5


class Slowly:
    """A service on a real socket that answers in parts, and knows who went away."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts
        self.asked = 0
        self.answered = 0

    def __call__(self, peer: Peer) -> None:
        while True:
            peer.read_request()
            self.asked += 1
            for data in self._parts:
                self.wait(peer)
                peer.send(data)
            self.answered += 1

    def wait(self, peer: Peer) -> None:
        """Wait before the next part."""
        peer.stopping.wait(0.002)


class WhenAsked(Slowly):
    """The same, each part sent only when the client wants more, so that none come together."""

    def __init__(self, *parts: bytes) -> None:
        super().__init__(*parts)
        self._by_port: dict[int, threading.Semaphore] = {}

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take note of what the connections of every client want, by their ports."""
        receive = moments.at("no response yet", "trio").value

        async def want(stream: TrioStream, size: int) -> bytes:
            self._wanted(stream.sock.getsockname()[1]).release()
            return await receive(stream, size)

        monkeypatch.setattr(*moments.at("no response yet", "trio").place, want)

    def wait(self, peer: Peer) -> None:
        wanted = self._wanted(peer.sock.getpeername()[1])
        while not wanted.acquire(timeout=0.01):
            if peer.stopping.is_set():
                return

    def _wanted(self, port: int) -> threading.Semaphore:
        # In one step: the client and the server's threads ask for it.
        return self._by_port.setdefault(port, threading.Semaphore(0))


BODY = b'{"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}'
REPLY = response_bytes(200, BODY)


@pytest.mark.parametrize("method", ["generate_content", "stream_generate_content"])
@trio_test
async def test_on_a_socket(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over sockets a cancelled request closes its connection, and nothing is sent again."""
    slow = (
        WhenAsked(REPLY[:10], REPLY[10:20], REPLY[20:-9], REPLY[-9:-6], REPLY[-6:-3], REPLY[-3:])
        if method == "generate_content"
        else WhenAsked(HEAD[:9], HEAD[9:], *map(part, EVENTS), LAST)
    )
    slow.watch(monkeypatch)
    runs = 0
    with ScriptedServer(slow) as server:

        async def ask() -> None:
            nonlocal runs
            runs += 1
            async with muybridge.TrioClient("key", server.url, server.url) as client:
                asked: Any = getattr(client, method)(MODEL, PROMPT)
                if method == "generate_content":
                    await asked
                else:
                    async with asked as stream:
                        assert len([chunk async for chunk in stream]) == len(CHUNKS)

        async def check(_: trio.CancelScope) -> None:
            assert server.posts <= runs
            assert len(server.peers) <= runs

        assert await at_every_checkpoint(ask, check) >= 6
    # Without a shield some were broken off between their first byte and the reply's last one.
    assert server.posts > 1


@pytest.mark.parametrize("interruptible", [True, False])
@pytest.mark.parametrize("sent", [0, 10, len(REPLY) - 3], ids=["none", "head", "body"])
@trio_test
async def test_shields(sent: int, *, interruptible: bool) -> None:
    """A paid exchange is shielded until its reply has come, unless it may be interrupted."""
    gone = trio.Event()
    cancelled = threading.Event()
    token = trio.lowlevel.current_trio_token()

    def cancel() -> None:
        scope.cancel()
        cancelled.set()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(REPLY[:sent])
        token.run_sync_soon(cancel)
        if interruptible:
            with suppress(OSError):
                peer.hang()
            token.run_sync_soon(gone.set)
        else:
            # Not before: the end of the reply ends the shield, and what comes then is too late.
            assert cancelled.wait(10)
            peer.send(REPLY[sent:])

    transport = muybridge.TrioTransport()
    body = b""
    with ScriptedServer(script) as server, trio.fail_after(10):
        request = HttpRequest(
            method="POST", url=server.url, body=b"{}", paid=True, interruptible=interruptible
        )
        with trio.CancelScope() as scope:
            async with transport.stream(request, timeout=10) as reply:
                body = b"".join([piece async for piece in reply.pieces()])
        assert cancelled.is_set()
        if interruptible:
            await gone.wait()
        await transport.close()
        assert server.posts == 1
    assert scope.cancelled_caught is interruptible
    assert (body == BODY) is not interruptible


@trio_test
async def test_a_stream_that_was_cancelled_is_over() -> None:
    """Reading on after a cancellation is an interruption, and never a clean end."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(EVENTS[0]))
        peer.hang()

    with ScriptedServer(script) as server:
        async with (
            muybridge.TrioClient("key", server.url, server.url) as client,
            client.stream_generate_content(MODEL, PROMPT) as stream,
        ):
            first = await anext(stream)
            with trio.CancelScope() as scope:
                scope.cancel()
                await anext(stream)
            assert scope.cancelled_caught
            with pytest.raises(muybridge.StreamInterrupted) as caught:
                await anext(stream)
            with pytest.raises(muybridge.StreamInterrupted):
                await stream.collect()
        assert server.posts == 1
    assert caught.value.chunks == (first,)


@on_virtual_time
async def test_already_cancelled(world: World) -> None:
    """In a scope that is cancelled already nothing is sent."""
    client = client_of(world)
    for method in ("generate_content", "stream_generate_content"):
        with trio.CancelScope() as scope:
            scope.cancel()
            asked: Any = getattr(client, method)(MODEL, PROMPT)
            if method == "generate_content":
                await asked
            else:
                await asked.__aenter__()
        assert scope.cancelled_caught
    assert not world.seen
