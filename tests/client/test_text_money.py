"""No fault of the network or the service makes a text request be paid twice.

The server counts the POSTs that reach it: that is the bill.
"""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any

import pytest

from muybridge import (
    Forbidden,
    MuybridgeError,
    NotSent,
    RateLimited,
    Refused,
    StreamInterrupted,
    TextAmbiguous,
    Unauthorized,
)
from muybridge_protocol.events import Event, Throttled, WillRetry
from muybridge_protocol.http import HttpRequest, HttpResponse, Reason
from muybridge_protocol.operations import Fetch, Send, Wait
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.service import Service
from muybridge_protocol.text.encoding import encode_mapping
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    closed_port,
    hang,
    in_turn,
    read_request,
    reply,
    reset,
    response_bytes,
    send,
    serve,
)

from .answers import (
    ASKED,
    EVENTS,
    HEAD,
    PLAIN,
    STREAM,
    STREAMS,
    WHOLE,
    answering,
    ask,
    part,
    spend,
)
from .drivers import AnyClient, MakeClient
from .heard import tasks_alone

ANSWER = json.dumps(WHOLE).encode()
HTML = b"<html><body>Bad gateway</body></html>"
ALL = (*PLAIN, *STREAMS)
"""The protocols differ in their bodies alone, so that most cases need one of each kind only."""
BOTH = ("generate_content", "stream_messages")


def ambiguous(client: AnyClient, method: str, **options: Any) -> TextAmbiguous:
    with pytest.raises(TextAmbiguous) as caught:
        spend(client, method, **options)
    assert not isinstance(caught.value, OSError)
    assert caught.value.candidate_id is None
    assert "Asking again may cost again" in str(caught.value)
    assert "task" not in str(caught.value)
    return caught.value


def some(peer: Peer) -> None:
    """Read the beginning of a request."""
    peer.receive(20)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("end", [reset, Peer.close], ids=["RST", "FIN"])
@pytest.mark.parametrize("begun", [some, read_request], ids=["some", "all"])
def test_lost_before_the_reply(
    make_client: MakeClient, begun: Step, end: Step, method: str
) -> None:
    """If the connection is lost after some or all of the request, it is ambiguous, sent once."""
    with ScriptedServer([begun, end]) as server:
        error = ambiguous(make_client(server.url), method)
        assert len(server.peers) == 1
    assert error.failure is not None
    assert error.failure.sent


def test_lost_while_sending(make_client: MakeClient) -> None:
    """A large request that is cut off on its way is sent once."""
    body = {"model": "x", "prompt": "y" * 8_000_000}
    for method in ("messages", "stream_messages"):
        with ScriptedServer([some, reset]) as server:
            call = partial(getattr(make_client(server.url), method), body)
            with pytest.raises(TextAmbiguous) as caught:
                call() if method == "messages" else call().__enter__()
            assert len(server.peers) == 1
        assert caught.value.failure is not None
        assert caught.value.failure.sent


@pytest.mark.parametrize("method", BOTH)
def test_lost_at_every_byte_of_the_reply(make_client: MakeClient, method: str) -> None:
    """Wherever the response is cut off, the request is sent once, and open or cut off."""
    step = 1 if method in PLAIN else 3
    whole = response_bytes(200, ANSWER) if method in PLAIN else STREAM
    head = whole.index(b"\r\n\r\n") + 4

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(whole[: peer.number * step])

    complete = len(whole) if method in PLAIN else whole.index(EVENTS[-1]) + len(EVENTS[-1])
    with ScriptedServer(script) as server:
        client = make_client(server.url)
        for number, cut in enumerate(range(0, complete, step), 1):
            kind = StreamInterrupted if method in STREAMS and cut >= head else TextAmbiguous
            with pytest.raises(kind) as caught:
                spend(client, method)
            assert type(caught.value) is kind
            assert server.posts == number
        assert spend(client, method)


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("sent", [b"", HEAD[:20]], ids=["none", "some"])
def test_a_head_that_never_ends(make_client: MakeClient, sent: bytes, method: str) -> None:
    """A response that does not begin makes the request ambiguous once its time is up."""
    with ScriptedServer([read_request, send(sent), hang]) as server:
        error = ambiguous(make_client(server.url), method, timeout=0.2)
        assert server.posts == len(server.peers) == 1
    assert error.failure is not None
    assert error.failure.reason is Reason.TIMED_OUT


def test_silence_before_the_head(make_client: MakeClient) -> None:
    """A service that is silent for too long before a stream leaves the request open."""
    with ScriptedServer([read_request, hang]) as server:
        error = ambiguous(make_client(server.url), "stream_generate_content", silence=0.1)
        assert server.posts == 1
    assert error.failure is not None
    assert error.failure.reason is Reason.TIMED_OUT


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("status", [408, 409, 418, 499, 500, 502, 503, 504, 520, 599])
def test_statuses_that_leave_it_open(make_client: MakeClient, status: int, method: str) -> None:
    """A status that says nothing about the request is ambiguous, and never retried."""
    with ScriptedServer(serve(status, HTML, retry_after="0")) as server:
        error = ambiguous(make_client(server.url), method)
        assert server.posts == 1
    assert error.status == status
    assert error.raw == HTML


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_redirects_are_not_followed(make_client: MakeClient, status: int, method: str) -> None:
    """A request that is redirected is ambiguous, and nobody speaks to where it points."""
    with ScriptedServer(answering) as target:
        script = serve(status, b"" if status == 304 else HTML, location=f"{target.url}/v1")
        with ScriptedServer(script) as server:
            error = ambiguous(make_client(server.url), method)
            assert server.posts == 1
        assert not target.peers
    assert error.status == status


@pytest.mark.parametrize("method", PLAIN)
@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"OK", HTML, ANSWER + b"x", ANSWER[:-1], b"\xff\xfe\x00", b"[" * 100_000,
     b'{"error": {"code": 500, "message": "overloaded"}}', b'{"error": "no"}'],
    ids=lambda body: repr(body[:24]),
)  # fmt: skip
def test_a_reply_without_an_answer(make_client: MakeClient, body: bytes, method: str) -> None:
    """A success without an answer is ambiguous, and its response is kept."""
    with ScriptedServer(serve(200, body)) as server:
        error = ambiguous(make_client(server.url), method)
        assert server.posts == 1
    assert error.status == 200
    assert error.raw == body


@pytest.mark.parametrize("method", PLAIN)
def test_what_has_been_paid_for_is_read(make_client: MakeClient, method: str) -> None:
    """An answer is not lost over a number, an empty error, or the array that it stands in."""
    odd = ANSWER[:-1] + b', "avgLogprobs": NaN, "error": {"code": 0, "message": ""}}'
    for body in (odd, b"[" + odd + b"]"):
        with ScriptedServer(serve(200, body)) as server:
            reply = spend(make_client(server.url), method)
        record = getattr(reply, "raw", reply)
        assert record == {
            **json.loads(ANSWER),
            "avgLogprobs": None,
            "error": {"code": 0, "message": ""},
        }


@pytest.mark.parametrize("method", STREAMS)
def test_a_stream_that_is_an_error(make_client: MakeClient, method: str) -> None:
    """A success whose stream is one error is an interruption that tells it, and sent once."""
    told = b'{"error": {"code": 500, "message": "overloaded"}}'
    for body in (told, b"[" + told + b"]", b"data: " + told + b"\n\n"):
        with ScriptedServer(serve(200, body)) as server:
            with pytest.raises(StreamInterrupted, match="overloaded") as caught:
                spend(make_client(server.url), method)
            assert server.posts == 1
        assert caught.value.error == json.loads(told)
        assert caught.value.arrived == 0


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Refused), (401, Unauthorized), (402, Refused), (403, Forbidden), (404, Refused),
     (413, Refused), (422, Refused)],
)  # fmt: skip
def test_refusals(make_client: MakeClient, status: int, kind: type[Refused], method: str) -> None:
    """A refusal is reported as such with what the service said, and not retried."""
    body = b'{"error": {"code": 4, "message": "the prompt is empty", "status": "X"}}'
    with ScriptedServer(serve(status, body)) as server:
        with pytest.raises(kind, match="the prompt is empty") as caught:
            spend(make_client(server.url), method)
        assert server.posts == 1
    assert type(caught.value) is kind
    assert caught.value.body == body


@pytest.mark.parametrize("method", BOTH)
def test_a_refusal_without_end(make_client: MakeClient, method: str) -> None:
    """However long the response that refuses a stream is, its beginning is reported."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(HEAD.replace(b"200 OK", b"400 Bad"))
        while True:
            peer.send(part(b"no! " * 4000))

    with ScriptedServer(script) as server:
        with pytest.raises((Refused, TextAmbiguous)) as caught:
            spend(make_client(server.url), method, size_limit=200_000)
        assert server.posts == 1
    if method in STREAMS:
        assert isinstance(caught.value, Refused)
        assert 16_000 <= len(caught.value.body) <= 64 * 1024


@pytest.mark.parametrize("method", ALL)
def test_throttled(make_client: MakeClient, method: str) -> None:
    """A 429 did nothing, so the request is sent again once the service allows it."""
    events: list[Event] = []
    throttled = [read_request, reply(429, b"{}", retry_after="7")]
    with ScriptedServer(in_turn([*throttled, answering], answering)) as server:
        assert spend(make_client(server.url, on_event=tasks_alone(events.append)), method)
        assert server.posts == 2
    assert [event.delay for event in events if isinstance(event, Throttled)] == [7.0]


@pytest.mark.parametrize("method", BOTH)
def test_throttled_for_good(make_client: MakeClient, method: str) -> None:
    """After the fourth 429 the request fails, and nothing was charged."""
    with ScriptedServer(serve(429, b"{}")) as server:
        with pytest.raises(RateLimited):
            spend(make_client(server.url), method)
        assert server.posts == 4


@pytest.mark.parametrize("method", BOTH)
def test_throttled_beyond_its_time(make_client: MakeClient, method: str) -> None:
    """A wait that is longer than the request's timeout is not begun."""
    with ScriptedServer(serve(429, b"{}", retry_after="20")) as server:
        with pytest.raises(RateLimited):
            spend(make_client(server.url), method, timeout=15)
        assert server.posts == 1


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_every_try_is_within_the_time(stream: bool) -> None:  # noqa: FBT001  a case
    """Each attempt ends at the timeout of the whole, however long the waits before it."""
    service = Service(base_url="https://a.test", text_base_url="https://text.test")
    sent = encode_mapping(ASKED, service, path="/v1/messages", stream=stream)
    operation: OpenStream | TextCall[HttpRequest] = (
        OpenStream.start(sent, service, now=1000.0, timeout=60, seed=0)
        if stream
        else TextCall[HttpRequest].start(
            sent, lambda _: sent, service, now=1000.0, timeout=60, seed=0
        )
    )
    assert operation.next_action(1000.0) == (Fetch if stream else Send)(sent, 1060.0)
    later = operation.receive(HttpResponse(429, (("Retry-After", "50"),)), 1001.0)
    assert later.next_action(1001.0) == Wait(1051.0)
    assert later.next_action(1051.0) == (Fetch if stream else Send)(sent, 1060.0)


@pytest.mark.parametrize("method", ALL)
def test_refused_connection(make_client: MakeClient, method: str) -> None:
    """A connection that nobody accepts is tried three times, and nothing was sent."""
    events: list[Event] = []
    client = make_client(f"http://127.0.0.1:{closed_port()}", on_event=tasks_alone(events.append))
    with pytest.raises(NotSent) as caught:
        spend(client, method)
    assert caught.value.attempts == 3
    assert not caught.value.failure.sent
    assert [type(event) for event in events] == [WillRetry, WillRetry]


@pytest.mark.parametrize("method", BOTH)
def test_idle_connection_closed_by_the_server(make_client: MakeClient, method: str) -> None:
    """A kept connection that the server closed in between does no harm to a text request."""
    closed = threading.Event()

    def query_and_close(peer: Peer) -> None:
        peer.read_request()
        peer.send(response_bytes(200, b'{"id": "task-1", "status": "queued", "created": 1}'))
        peer.close()
        closed.set()

    with ScriptedServer(in_turn(query_and_close, answering)) as server:
        client = make_client(server.url)
        client.get("task-1")
        assert closed.wait(10)
        assert spend(client, method)
        assert server.posts == 1


def test_an_answer_that_nobody_asked_for(make_client: MakeClient) -> None:
    """A second stream behind the first one is never taken for the next request's."""
    with ScriptedServer(in_turn([read_request, send(STREAM + STREAM), hang], answering)) as server:
        client = make_client(server.url)
        first = spend(client, "stream_generate_content")
        assert spend(client, "stream_generate_content") == first
        assert server.posts == len(server.peers) == 2


def test_a_listener_that_raises(make_client: MakeClient) -> None:
    """An error of one's own listener comes out, and nothing is sent after it."""

    def fail(_: Event) -> None:
        raise ZeroDivisionError

    with ScriptedServer(serve(429, b"{}", retry_after="1")) as server:
        for method in BOTH:
            with pytest.raises(ZeroDivisionError):
                spend(make_client(server.url, on_event=tasks_alone(fail)), method)
        assert server.posts == 2


def test_ambiguity_is_told(make_client: MakeClient) -> None:
    """The outcome of a text request is reported to the listener, too."""
    events: list[Event] = []
    with ScriptedServer(serve(500)) as server:
        for method in BOTH:
            with pytest.raises(MuybridgeError):
                spend(make_client(server.url, on_event=tasks_alone(events.append)), method)
    assert [type(event).__name__ for event in events] == ["Ambiguous", "Ambiguous"]


@pytest.mark.parametrize("method", PLAIN)
def test_a_reply_that_is_too_large(make_client: MakeClient, method: str) -> None:
    """A response above the limit is rejected, and the request is open; a higher limit takes it."""
    body = ANSWER[:-1] + b', "x": "' + b"y" * 1000 + b'"}'
    with ScriptedServer(serve(200, body)) as server:
        client = make_client(server.url)
        error = ambiguous(client, method, size_limit=1000)
        assert server.posts == 1
        assert ask(client, method, size_limit=2000)
    assert error.failure is not None
    assert error.failure.reason is Reason.TOO_LARGE
