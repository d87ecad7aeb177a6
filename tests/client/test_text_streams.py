"""Streams of text: as they come, closed when they are left, and exact about what was cut off."""

from __future__ import annotations

import json
import math
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from muybridge import StreamInterrupted, Unauthorized, collect
from muybridge_protocol.http import HttpRequest, Reason
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    in_turn,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)

from .answers import (
    ASKED,
    CHUNKS,
    EVENTS,
    HEAD,
    LAST,
    MODEL,
    PROMPT,
    STREAMS,
    TEXTS,
    answering,
    ask,
    candidate,
    event,
    hang_until_closed,
    part,
    spend,
    streaming,
)
from .drivers import AnyClient, AnyContentStream, MakeClient
from .in_process import InProcessTransport, World

FORMS: dict[str, bytes] = {
    "events": b"".join(EVENTS),
    "CRLF": b"".join(EVENTS).replace(b"\n", b"\r\n"),
    "array": json.dumps(CHUNKS).encode(),
    "pretty array": json.dumps(CHUNKS, indent=2).encode(),
    "bare": b"\n".join(json.dumps(chunk).encode() for chunk in CHUNKS),
    "DONE": b"".join(EVENTS) + b"data: [DONE]\n\n",
    "without a last line end": b"".join(EVENTS).removesuffix(b"\n\n"),
}


def opened(client: AnyClient, **options: Any) -> AnyContentStream:
    return client.stream_generate_content(MODEL, PROMPT, **options)


@pytest.mark.parametrize("form", FORMS)
def test_forms(make_client: MakeClient, form: str) -> None:
    """Whichever form a stream has, and however its body is framed, the chunks are the same."""
    body = FORMS[form]
    scripts: list[Any] = [
        serve(200, body),
        [read_request, send(b"HTTP/1.1 200 OK\r\n\r\n" + body)],
        streaming(*(body[at : at + 7] for at in range(0, len(body), 7))),
    ]
    with ScriptedServer(in_turn(*scripts)) as server:
        for _ in scripts:
            with opened(make_client(server.url)) as stream:
                assert [chunk.raw for chunk in stream] == list(CHUNKS)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_chunks_come_as_they_are_sent(make_client: MakeClient, coding: str) -> None:
    """A chunk is returned as soon as it arrives, before the server sends the next one."""
    given = [threading.Event() for _ in EVENTS]

    def script(peer: Peer) -> None:
        packing = zlib.compressobj(wbits=31)
        peer.read_request()
        peer.send(HEAD.replace(b"\r\n\r\n", f"\r\nContent-Encoding: {coding}\r\n\r\n".encode()))
        for data, seen in zip(EVENTS, given, strict=True):
            packed = packing.compress(data) + packing.flush(zlib.Z_SYNC_FLUSH)
            peer.send(part(packed if coding == "gzip" else data))
            assert seen.wait(10)
        if coding == "gzip":
            peer.send(part(packing.flush()))
        peer.send(LAST)

    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        for text, seen in zip(TEXTS, given, strict=True):
            assert next(stream).text == text
            seen.set()
        assert next(stream, None) is None


@pytest.mark.parametrize("given", [0, 1])
def test_left_early(make_client: MakeClient, given: int) -> None:
    """A stream that is left early closes its connection, and the next call opens another one."""
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(EVENTS[0]))
        hang_until_closed(gone)(peer)

    with ScriptedServer(in_turn(script, answering)) as server:
        client = make_client(server.url)
        with opened(client) as stream:
            for _ in range(given):
                next(stream)
        assert gone.wait(10)
        assert len(stream.received()) == given
        client.get("task-1")
        assert len(server.peers) == 2
        assert server.posts == 1


def test_left_by_an_error(make_client: MakeClient) -> None:
    """An error of one's own leaves the stream, closes the connection and comes out as it is."""
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(EVENTS[0]))
        hang_until_closed(gone)(peer)

    with ScriptedServer(script) as server:
        client = make_client(server.url)
        with pytest.raises(ZeroDivisionError) as caught, opened(client) as stream:
            _ = [1 / 0 for _ in stream]
        assert gone.wait(10)
    assert not hasattr(caught.value, "__notes__")


def test_read_to_the_end(make_client: MakeClient) -> None:
    """A stream that was read to its end gives its connection back for the next query."""
    with ScriptedServer(answering) as server:
        client = make_client(server.url)
        with opened(client) as stream:
            assert len(list(stream)) == len(CHUNKS)
        client.get("task-1")
        assert len(server.peers) == 1
        client.get("task-1")
        assert len(server.peers) == 1


@pytest.mark.parametrize("method", ["messages", "stream_messages"])
def test_connections_of_their_own(make_client: MakeClient, method: str) -> None:
    """What costs money does not go out on a connection that was used before."""
    with ScriptedServer(answering) as server:
        client = make_client(server.url)
        client.get("task-1")
        assert spend(client, method)
        assert len(server.peers) == 2
        client.get("task-1")
        assert len(server.peers) == 2


def test_read_beyond_the_last_chunk(make_client: MakeClient) -> None:
    """Stopping at the last chunk is not reading to the end: the connection is closed."""
    with ScriptedServer(in_turn(streaming(*EVENTS, end=b""), answering)) as server:
        client = make_client(server.url)
        with opened(client) as stream:
            for _ in CHUNKS:
                next(stream)
        assert stream.collect().text == "".join(TEXTS)
        client.get("task-1")
        assert len(server.peers) == 2


def test_opened_twice(make_client: MakeClient) -> None:
    """A stream is sent once: opening it again is an error, whether it was read or refused."""
    with ScriptedServer(in_turn(answering, serve(401))) as server:
        read, refused = opened(make_client(server.url)), opened(make_client(server.url))
        with read:
            with pytest.raises(RuntimeError, match="once"):
                read.__enter__()
            assert len(list(read)) == len(CHUNKS)
        with pytest.raises(Unauthorized):
            refused.__enter__()
        for stream in (read, refused):
            with pytest.raises(RuntimeError, match="once"):
                stream.__enter__()
        assert server.posts == 2


def test_never_opened(make_client: MakeClient) -> None:
    """A stream that is not opened sends nothing, and reading it is an error."""
    with ScriptedServer(answering) as server:
        stream = opened(make_client(server.url))
        for read in (lambda: next(stream), lambda: list(stream), stream.collect):
            with pytest.raises(RuntimeError, match="with"):
                read()
        assert stream.received() == ()
        assert not server.peers


def test_read_after_leaving(make_client: MakeClient) -> None:
    """A stream that was left has no more chunks, and does not pass for whole unless it was."""
    with ScriptedServer(in_turn(streaming(*EVENTS), streaming(*EVENTS))) as server:
        with opened(make_client(server.url)) as stream:
            whole = list(stream)
        # Of another client: the server is about to close the first one's connection.
        with opened(make_client(server.url)) as other:
            next(other)
        assert list(stream) == []
        assert stream.collect().text == "".join(chunk.text for chunk in whole)
        for read in (lambda: list(other), lambda: next(other), other.collect):
            with pytest.raises(StreamInterrupted, match="left") as caught:
                read()
            assert [chunk.text for chunk in caught.value.chunks] == [TEXTS[0]]
        assert server.posts == 2


ERROR = {"error": {"code": 503, "message": "the model is overloaded", "status": "UNAVAILABLE"}}
CUTS: dict[str, tuple[Any, str]] = {
    "in an event": (streaming(*EVENTS[:2], EVENTS[2][:20]), "cannot be read"),
    "in an event, FIN": (streaming(*EVENTS[:2], EVENTS[2][:20], end=b""), "truncated"),
    "between events, FIN": (streaming(*EVENTS[:2], end=b""), "truncated"),
    "in a part": (streaming(*EVENTS[:2], end=part(EVENTS[2])[:9]), "truncated"),
    "after a length": (
        [
            read_request,
            send(response_bytes(200, b"".join(EVENTS[:2]), content_length="999")),
        ],
        "truncated",
    ),
    "clean end": (streaming(*EVENTS[:2]), "without saying"),
    "DONE": (streaming(*EVENTS[:2], b"data: [DONE]\n\n"), "without saying"),
    "error": (streaming(*EVENTS[:2], event(ERROR), EVENTS[2]), "the model is overloaded"),
    "junk": (streaming(*EVENTS[:2], b"data: {\n\n", EVENTS[2]), "cannot be read"),
    "no object": (streaming(*EVENTS[:2], b"data: 17\n\n", EVENTS[2]), "cannot be read"),
}


@pytest.mark.parametrize("cut", CUTS)
def test_cut_off(make_client: MakeClient, cut: str) -> None:
    """A stream that is cut off raises with everything that it gave, and is not asked for again."""
    script, said = CUTS[cut]
    given: list[Any] = []
    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        with pytest.raises(StreamInterrupted, match=said) as caught:
            given.extend(stream)
        assert next(stream, None) is None
        assert server.posts == len(server.peers) == 1
    error = caught.value
    assert [chunk.raw for chunk in given] == list(CHUNKS[:2])
    assert error.chunks == stream.received() == tuple(given)
    assert error.arrived == 2
    assert error.raw.startswith(b"".join(EVENTS[:2]))
    assert (error.error == ERROR) is (cut == "error")
    assert not isinstance(error, OSError)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_what_came_is_one_answer(make_client: MakeClient) -> None:
    """The chunks of an answer that was cut off are folded into one by `muybridge.collect`."""
    with (
        ScriptedServer(streaming(*EVENTS[:2])) as server,
        opened(make_client(server.url)) as stream,
    ):
        with pytest.raises(StreamInterrupted) as caught:
            stream.collect()
        came = collect(stream.received())
    assert came == collect(caught.value.chunks)
    assert came.text == "".join(chunk.text for chunk in caught.value.chunks) != ""


def test_reset(make_client: MakeClient) -> None:
    """A connection that is reset in the middle of an event costs none of those before it."""
    given = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(EVENTS[0]) + part(EVENTS[1] + EVENTS[2][:20]))
        assert given.wait(10)  # because a reset may overtake what was sent before it
        peer.reset()

    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        chunks = [next(stream), next(stream)]
        given.set()
        with pytest.raises(StreamInterrupted, match="reset") as caught:
            next(stream)
        assert server.posts == 1
    assert [chunk.raw for chunk in chunks] == list(CHUNKS[:2])
    assert caught.value.chunks == tuple(chunks)
    assert caught.value.failure is not None
    assert caught.value.failure.sent


@pytest.mark.parametrize("end", [reset, Peer.close], ids=["RST", "FIN"])
def test_lost_after_the_answer(make_client: MakeClient, end: Step) -> None:
    """A connection that is lost after the last chunk does not spoil a complete answer."""
    given = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + b"".join(map(part, EVENTS)))
        given.wait(10)
        end(peer)

    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        texts = [next(stream).text for _ in CHUNKS]
        given.set()
        assert list(stream) == []
        assert stream.collect().text == "".join(texts)


OVER: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "DONE": ("stream_chat_completions", (*EVENTS, b"data: [DONE]\n\n")),
    "DONE alone": ("stream_chat_completions", (*EVENTS[:2], b"data: [DONE]\n\n")),
    "DONE after a reason": ("stream_generate_content", (*EVENTS, b"data: [DONE]\n\n")),
    "message_stop": ("stream_messages", EVENTS),
    "the array's end": ("stream_generate_content", (FORMS["array"],)),
    "the array's end, alone": ("stream_generate_content", (FORMS["array"][:-1], b"\n]")),
}


@pytest.mark.parametrize("name", OVER)
def test_over(make_client: MakeClient, name: str) -> None:
    """A stream that says that it is over is not waited for, though the connection stays open."""
    method, bodies = OVER[name]
    given, gone = threading.Event(), threading.Event()
    waited_for: list[bool] = []

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + b"".join(map(part, bodies)))
        waited_for.append(not given.wait(5))
        hang_until_closed(gone)(peer)

    with ScriptedServer(in_turn(script, answering)) as server:
        client = make_client(server.url)
        with ask(client, method, timeout=8) as stream:
            assert len(list(stream)) == len(stream.received()) == 3 - (name == "DONE alone")
            given.set()
            assert list(stream) == []
        assert gone.wait(10)
        assert waited_for == [False]
        assert spend(client, method)
        assert len(server.peers) == 2


def test_over_too_early(make_client: MakeClient) -> None:
    """An array that ends before the answer does is cut off, and is not waited for either."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD + part(b"[" + json.dumps(CHUNKS[0]).encode() + b"]"))
        peer.hang()

    with ScriptedServer(script) as server:
        client = make_client(server.url)
        with pytest.raises(StreamInterrupted, match="without saying") as caught:
            spend(client, "stream_generate_content")
        assert server.posts == 1
    assert [chunk.raw for chunk in caught.value.chunks] == [CHUNKS[0]]


JUNK = (b"data: end\n\n", b"data: null\n\n", b"data: {\n\n", b"data: [done]\n\n")


@pytest.mark.parametrize("junk", JUNK)
def test_junk_after_the_answer(make_client: MakeClient, junk: bytes) -> None:
    """What cannot be read after a complete answer does not spoil it."""
    script = streaming(*EVENTS, junk)
    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        assert [chunk.raw for chunk in stream] == list(CHUNKS)
        assert stream.collect().text == "".join(TEXTS)


@pytest.mark.parametrize("end", [LAST, b""], ids=["ended", "cut"])
@pytest.mark.parametrize("first", ["STOP in all", "STOP first"])
def test_reasons_that_come_early(make_client: MakeClient, first: str, end: bytes) -> None:
    """Where reasons to stop come too early, an answer is whole only if its body is."""
    said = [candidate("", "STOP"), candidate("half of "), candidate("the answer")]
    if first == "STOP in all":
        said = [candidate(text, "STOP") for text in TEXTS]
    script = streaming(*map(event, said), end=end)
    with ScriptedServer(script) as server, opened(make_client(server.url)) as stream:
        given = [next(stream).raw for _ in said]
        if end:
            assert list(stream) == []
            assert stream.collect().text
        else:
            for read in (lambda: next(stream), stream.collect):
                with pytest.raises(StreamInterrupted):
                    read()
    assert given == said


@pytest.mark.parametrize("method", STREAMS)
def test_a_page_instead_of_a_stream(make_client: MakeClient, method: str) -> None:
    """A success that is a page is shown by its beginning."""
    with ScriptedServer(serve(200, b"<html><p>Sign in</html>")) as server:
        client = make_client(server.url)
        with pytest.raises(StreamInterrupted, match="it begins: <html><p>Sign in"):
            spend(client, method)
        assert server.posts == 1


@pytest.mark.parametrize("method", STREAMS)
def test_no_stream_at_all(make_client: MakeClient, method: str) -> None:
    """A success without a stream in it is an interruption that nothing came before."""
    for body in (b"", b"OK", b"<html></html>", b"[]", b"{}", b"\xff\xfe", b"null", b'"text"'):
        with ScriptedServer(serve(200, body)) as server:
            with pytest.raises(StreamInterrupted) as caught:
                spend(make_client(server.url), method)
            assert server.posts == 1
        assert caught.value.raw == body


SMALL = 2 * len(EVENTS[0])


def test_an_event_that_is_too_large(make_client: MakeClient) -> None:
    """Only an event above the limit is an error, which has the chunks before it."""
    large = event({"candidates": [], "x": "y" * SMALL})
    with ScriptedServer(streaming(*EVENTS[:2], large, EVENTS[2])) as server:
        client = make_client(server.url)
        with opened(client, size_limit=SMALL) as stream:
            with pytest.raises(StreamInterrupted, match="bytes") as caught:
                list(stream)
            assert [chunk.raw for chunk in stream.received()] == list(CHUNKS[:2])
        with opened(client, size_limit=len(large) + sum(map(len, EVENTS))) as stream:
            assert len(list(stream)) == 4
    assert [chunk.raw for chunk in caught.value.chunks] == list(CHUNKS[:2])
    assert caught.value.arrived == 2


def test_a_stream_that_is_too_large(make_client: MakeClient) -> None:
    """A stream without end is rejected at the limit."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD)
        while True:
            peer.send(part(EVENTS[0]))

    with ScriptedServer(script) as server:
        stream = opened(make_client(server.url), size_limit=500)
        with stream, pytest.raises(StreamInterrupted, match="too large") as caught:
            list(stream)
        assert server.posts == 1
    assert caught.value.failure is not None
    assert caught.value.failure.reason is Reason.TOO_LARGE
    assert len(caught.value.raw) <= 1000
    assert caught.value.arrived == len(caught.value.chunks) >= 500 // len(EVENTS[0])


def silence(peer: Peer) -> None:
    """Say something, and no more."""
    peer.read_request()
    peer.send(HEAD + part(EVENTS[0]))
    peer.hang()


def drip(peer: Peer) -> None:
    """Send an event, and then meaningless bytes forever."""
    peer.read_request()
    peer.send(HEAD + part(EVENTS[0]))
    while not peer.stopping.wait(0.01):
        peer.send(part(b": still thinking\n\n"))


@pytest.mark.parametrize("limit", ["silence", "deadline"])
def test_times(make_client: MakeClient, limit: str) -> None:
    """A stream ends when nothing comes for too long, and, whatever comes, with its time."""
    options: dict[str, float] = {"timeout": 0.3}
    script: Callable[[Peer], None] = drip
    if limit == "silence":
        options, script = {"silence": 0.1}, silence
    with ScriptedServer(script) as server, opened(make_client(server.url), **options) as stream:
        with pytest.raises(StreamInterrupted, match="timed out") as caught:
            list(stream)
        assert server.posts == 1
    assert caught.value.failure is not None
    assert caught.value.failure.reason is Reason.TIMED_OUT
    assert [chunk.raw for chunk in caught.value.chunks] == [CHUNKS[0]]


@pytest.mark.parametrize("method", STREAMS)
def test_silence(make_client: MakeClient, method: str) -> None:
    """How long a stream may be silent is up to the caller, for each of the protocols."""
    with ScriptedServer(silence) as server:
        client = make_client(server.url)
        for given in (0.2, None):
            with pytest.raises(StreamInterrupted, match="timed out"):
                spend(client, method, silence=given, timeout=0.4)
        for wrong in (0, -1, math.nan, math.inf, "9"):
            with pytest.raises(ValueError, match="silence"):
                spend(client, method, silence=wrong)
        assert server.posts == 2


def test_no_limit_of_silence(make_client: MakeClient, world: World) -> None:
    """A stream is asked for with the limit of silence that was given, or without any."""
    limits: list[float | None] = []

    class Noting(InProcessTransport):
        def stream(self, request: HttpRequest, **options: Any) -> Any:
            limits.append(request.idle_timeout)
            return super().stream(request, **options)

    client = make_client(world, transport=Noting(world))
    for given in (400, None):
        for stream in (
            client.stream_generate_content(MODEL, PROMPT, silence=given),
            client.stream_chat_completions(ASKED, silence=given),
            client.stream_messages({**ASKED, "max_tokens": 5}, silence=given),
            client.stream_generate_content(MODEL, PROMPT),
            client.stream_chat_completions(ASKED),
            client.stream_messages({**ASKED, "max_tokens": 5}),
        ):
            with stream:
                assert list(stream)
    assert limits == [400] * 3 + [180] * 3 + [None] * 3 + [180] * 3


def test_many_streams_at_once(make_client: MakeClient) -> None:
    """Several streams of one client are read side by side, each on a connection of its own."""
    with ScriptedServer(answering) as server:
        client = make_client(server.url)
        with opened(client) as one, opened(client) as other:
            pairs = list(zip(one, other, strict=True))
        assert [pair[0].raw for pair in pairs] == [pair[1].raw for pair in pairs] == list(CHUNKS)
        assert len(server.peers) == 2
