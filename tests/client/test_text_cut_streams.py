"""Streams that are cut off, or report an error: a part is never taken for the whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muybridge import StreamInterrupted
from transport.scripted_server import Peer, ScriptedServer

from .answers import HEAD, LAST, STREAMS, TEXTS, ask, event, part
from .drivers import MakeClient

REASONS = {"each": (True, True, True), "last": (False, False, True), "none": (False, False, False)}
STEP = 61


def chunk(text: str, reason: bool) -> dict[str, Any]:  # noqa: FBT001  it is mapped
    """Return a chunk that brings *text* in each of the protocols."""
    native: dict[str, Any] = {"content": {"parts": [{"text": text}]}}
    chat: dict[str, Any] = {"index": 0, "delta": {"content": text}}
    message: dict[str, Any] = {"type": "text_delta", "text": text}
    if reason:
        native, chat = {**native, "finishReason": "STOP"}, {**chat, "finish_reason": "stop"}
        message["stop_reason"] = "end_turn"
    return {
        "candidates": [native],
        "choices": [chat],
        "type": "content_block_delta",
        "delta": message,
    }


def framed(events: list[bytes], framing: str) -> bytes:
    """Return the response whose body is *events*."""
    if framing == "chunked":
        return HEAD + b"".join(map(part, events)) + LAST
    body = b"".join(events)
    length = b"" if framing == "closed" else b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n%s" % (length, body)


@pytest.mark.parametrize("framing", ["chunked", "length", "closed"])
@pytest.mark.parametrize("layout", REASONS)
@pytest.mark.parametrize("method", STREAMS)
def test_cut_off(make_client: MakeClient, method: str, layout: str, framing: str) -> None:
    """Wherever the connection ends, the text is complete, or the error says that it is not."""
    chunks = [chunk(text, reason) for text, reason in zip(TEXTS, REASONS[layout], strict=True)]
    whole = framed([event(said) for said in chunks], framing)
    head = whole.index(b"\r\n\r\n") + 4
    ends = [framed([event(said) for said in chunks[:count]], "closed") for count in (1, 2)]
    between = [head + len(end.partition(b"\r\n\r\n")[2]) for end in ends]
    places = [*range(head, len(whole), STEP), *between, len(whole)]
    cuts = iter(places)

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(whole[: next(cuts)])

    with ScriptedServer(script) as server:
        client, complete = make_client(server.url), False
        for _ in places:
            given: list[Any] = []
            error = None
            try:
                with ask(client, method) as stream:
                    given.extend(stream)
            except StreamInterrupted as interruption:
                error = interruption
            said = [getattr(one, "raw", one) for one in given]
            assert said == chunks[: len(said)]
            if error is None:
                assert said == chunks
            else:
                assert list(error.chunks)[: len(given)] == given
            complete = error is None
        # The last was not cut off: it is whole, unless nothing says so.
        assert complete is (layout == "last" or (layout == "each" and framing != "closed"))
        assert server.posts == len(places)


PRETTY = json.dumps(
    {"error": {"code": 499, "message": "The operation was cancelled.", "status": "CANCELLED"}},
    indent=2,
).encode()


@pytest.mark.parametrize("end", [LAST, b""], ids=["ended", "cut"])
@pytest.mark.parametrize("reasons", REASONS.values(), ids=REASONS)
@pytest.mark.parametrize("layout", [PRETTY, b"data: " + PRETTY, b"event: error\ndata: " + PRETTY])
@pytest.mark.parametrize("method", STREAMS)
def test_an_error_in_the_stream(
    make_client: MakeClient, method: str, layout: bytes, reasons: tuple[bool, ...], end: bytes
) -> None:
    """An error that the service reports is raised in its words, after what came before it."""
    chunks = [chunk(text, reason) for text, reason in zip(TEXTS, reasons, strict=True)]
    body = [event(said) for said in chunks]

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + b"".join(map(part, [*body, layout[:40], layout[40:] + b"\n"])) + end)

    with ScriptedServer(script) as server:
        stream = ask(make_client(server.url), method)
        given: list[Any] = []
        with (
            stream,
            pytest.raises(StreamInterrupted, match="reported an error: The operation") as told,
        ):
            given.extend(stream)
        assert server.posts == 1
    assert [getattr(one, "raw", one) for one in stream.received()] == chunks
    assert told.value.arrived == len(told.value.chunks) == 3
    assert told.value.error == json.loads(PRETTY)
