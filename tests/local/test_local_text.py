"""Text from the local service: over real sockets, and its pace on a virtual clock."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import threading
from collections.abc import Generator, Iterator
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import trio
import trio.testing

from muybridge.local import LocalService, application
from muybridge.local.streaming import send_stream
from muybridge_protocol.emulator import StreamedResponse

MODEL = "textg-2.5-pro"
PLAIN = f"/v1/models/{MODEL}:generateContent"
ARRAY = f"/v1/models/{MODEL}:streamGenerateContent"
SSE = f"{ARRAY}?alt=sse"
NATIVE = {"contents": [{"role": "user", "parts": [{"text": "caf\u00e9 \u2603"}]}]}
CHAT = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": "hello"}]}
STREAMS = {
    "events": (SSE, NATIVE),
    "array": (ARRAY, NATIVE),
    "chat": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "messages": ("/v1/messages", {**CHAT, "stream": True}),
}

NEVER = 1e-9
"""A speed at which the second piece of a stream comes after years."""


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=1000) as running:
        yield running


@contextlib.contextmanager
def posted(service: LocalService, path: str, body: object) -> Generator[HTTPResponse]:
    """Send a request on a connection of its own, and give the reply's head."""
    connection = HTTPConnection(urlsplit(service.text_base_url).netloc, timeout=20)
    headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/json"}
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), headers)
        with connection.getresponse() as reply:
            yield reply


def whole(service: LocalService, path: str, body: object) -> bytes:
    with posted(service, path, body) as reply:
        assert reply.status == 200
        return reply.read()


def test_text_is_served_where_everything_is(service: LocalService) -> None:
    """The text endpoints have the service's own address, and answer like the rest."""
    assert service.text_base_url == service.base_url
    reply = requests.post(
        f"{service.text_base_url}{PLAIN}",
        json=NATIVE,
        headers={"Authorization": f"Bearer {service.api_key}"},
        timeout=20,
    )
    assert reply.headers["Content-Length"] == str(len(reply.content))
    (candidate,) = reply.json()["candidates"]
    assert "caf\u00e9 \u2603" in candidate["content"]["parts"][0]["text"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_comes_in_chunks_of_http(service: LocalService, name: str) -> None:
    """A stream has no length, and each of its pieces is a chunk of HTTP."""
    path, body = STREAMS[name]
    with posted(service, path, body) as reply:
        assert reply.status == 200
        assert reply.getheader("Content-Length") is None
        assert reply.getheader("Transfer-Encoding") == "chunked"
        pieces: list[bytes] = []
        while piece := reply.read1():  # never more than one chunk
            pieces.append(piece)
    assert len(pieces) > 5
    ends = {"array": b"\n]", "chat": b"data: [DONE]\n\n"}
    assert pieces[-1].endswith(ends.get(name, b"}\n\n" if name == "messages" else b"}\r\n\r\n"))


@pytest.mark.parametrize("path", [SSE, ARRAY])
def test_a_stream_is_whole(service: LocalService, path: str) -> None:
    """The texts of a stream, however framed, are those of the plain reply."""
    streamed = whole(service, path, NATIVE).decode()
    if path == SSE:
        chunks = [
            json.loads(event.removeprefix("data: ")) for event in streamed.split("\r\n\r\n")[:-1]
        ]
    else:
        chunks = json.loads(streamed)
    texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks]
    record = json.loads(whole(service, PLAIN, NATIVE))
    assert "".join(texts) == record["candidates"][0]["content"]["parts"][0]["text"]


def test_a_connection_goes_on_after_a_stream(service: LocalService) -> None:
    """After a stream was read to its end, its connection takes the next request."""
    headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/json"}
    connection = HTTPConnection(urlsplit(service.base_url).netloc, timeout=20)
    with contextlib.closing(connection):
        connection.connect()
        first = connection.sock
        for _ in range(3):
            connection.request("POST", SSE, json.dumps(NATIVE), headers)
            assert connection.getresponse().read()
            assert connection.sock is first


def test_a_stream_to_an_old_client_ends_with_its_connection(service: LocalService) -> None:
    """A client of HTTP/1.0, which knows no chunks, gets the stream as it is, and then the end."""
    address = urlsplit(service.base_url)
    body = json.dumps(NATIVE).encode()
    head = (
        f"POST {SSE} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {service.api_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(head.encode() + body)
        with connection.makefile("rb") as reply:
            events = reply.read().partition(b"\r\n\r\n")[2]
    assert events.startswith(b"data: {")
    assert b'"STOP"' in events
    assert events.endswith(b"}\r\n\r\n")


def test_a_stream_ends_when_its_reader_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece comes at once; a stream whose reader leaves ends, and the service goes on."""
    ended = threading.Event()

    async def watched(*arguments: Any) -> None:
        try:
            await send_stream(*arguments)
        finally:
            ended.set()

    monkeypatch.setattr(application, "send_stream", watched)
    with LocalService(speed=NEVER) as service:
        with posted(service, SSE, NATIVE) as reply:
            assert reply.read1().count(b"data: ") == 1
            assert not ended.is_set()
        assert ended.wait(20)
        assert whole(service, PLAIN, NATIVE)
    gc.collect()


def test_a_service_ends_in_the_middle_of_a_stream() -> None:
    """A stream that has not ended when the service does is cut off, and its reader sees it."""
    with contextlib.ExitStack() as clients:
        with LocalService(speed=NEVER) as service:
            reply = clients.enter_context(posted(service, SSE, NATIVE))
            assert reply.read1()
        with pytest.raises(IncompleteRead):
            reply.read()
    gc.collect()


class Exchange:
    """A request whose reply is recorded piece by piece, with the virtual time of each."""

    def __init__(self, leaves_after: float) -> None:
        self.leaves_after = leaves_after
        self.ended: float | None = None
        self.heads: list[Any] = []
        self.pieces: list[tuple[float, bytes, bool]] = []

    async def receive(self) -> Any:
        await trio.sleep(self.leaves_after)
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.heads.append(message)
        else:
            self.pieces.append((trio.current_time(), message["body"], message["more_body"]))


def streamed(pieces: tuple[bytes, ...], *, leaves_after: float = 1e9) -> Exchange:
    """Return the exchange in which *pieces* are sent 10 s apart."""
    reply = StreamedResponse.of(200, (("Content-Type", "a/b"),), pieces, interval=10)
    exchange = Exchange(leaves_after)

    async def go() -> None:
        await send_stream(reply, exchange.receive, exchange.send)
        exchange.ended = trio.current_time()

    trio.run(go, clock=trio.testing.MockClock(autojump_threshold=0))
    return exchange


def test_pieces_are_sent_at_their_pace() -> None:
    """The first piece is sent at once, each other after the interval, and then the end at once."""
    exchange = streamed((b"a", b"b", b"c"))
    assert exchange.heads == [
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"a/b")]}
    ]
    assert exchange.pieces == [
        (0, b"a", True),
        (10, b"b", True),
        (20, b"c", True),
        (20, b"", False),
    ]
    assert exchange.ended == 20


@pytest.mark.parametrize(("leaves_after", "sent"), [(5, b"a"), (15, b"ab"), (19, b"ab")])
def test_nothing_is_sent_to_a_reader_who_left(leaves_after: float, sent: bytes) -> None:
    """When the reader leaves, no further piece is sent, and no end either."""
    exchange = streamed((b"a", b"b", b"c"), leaves_after=leaves_after)
    assert b"".join(body for _, body, _ in exchange.pieces) == sent
    assert all(more for *_, more in exchange.pieces)
    assert exchange.ended == leaves_after


def test_answers_are_scripted() -> None:
    """The service says what it was given, and checks that before it starts."""
    with LocalService(speed=1000, answers=["Neigh."]) as service:
        for expected in ("Neigh.", "caf\u00e9"):
            record = json.loads(whole(service, PLAIN, NATIVE))
            assert expected in record["candidates"][0]["content"]["parts"][0]["text"]
        service.script(["Whinny."])
        assert b"Whinny." in whole(service, PLAIN, NATIVE)
    with pytest.raises(ValueError, match=r"answers\[0\]: answer has an unknown field 'txt'"):
        LocalService(answers=[{"txt": "Neigh."}])
