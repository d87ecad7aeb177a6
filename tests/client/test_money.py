"""No fault of the network or the service makes a create be paid twice, or loses an id.

The server counts the POSTs that reach it: that is the bill.
"""

from __future__ import annotations

import json
import threading

import pytest

from muybridge import CreateAmbiguous, Forbidden, NotSent, RateLimited, Refused, Unauthorized
from muybridge_protocol.events import Event, Throttled, WillRetry
from muybridge_protocol.http import Reason
from muybridge_protocol.records.tasks import Status
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    closed_port,
    hang,
    in_turn,
    read_request,
    reset,
    response_bytes,
    send,
    serve,
)

from .drivers import AnyClient, MakeClient
from .heard import tasks_alone
from .requests_made import image

TASK = {"id": "task-1", "object": "imga", "created": 1, "model": "imga", "status": "queued"}
CREATED = json.dumps(TASK).encode()
WHOLE = response_bytes(200, CREATED, content_type="application/json")
ID_KNOWN = WHOLE.index(b'"task-1"') + len(b'"task-1"')
"""Bytes of the reply after which its id has arrived."""

HTML = b"<html><body>Bad gateway</body></html>"


def ambiguous(client: AnyClient) -> CreateAmbiguous:
    with pytest.raises(CreateAmbiguous) as caught:
        client.create(image())
    assert not isinstance(caught.value, OSError)
    return caught.value


def some(peer: Peer) -> None:
    """Read the beginning of a request."""
    peer.receive(20)


@pytest.mark.parametrize("end", [reset, Peer.close], ids=["RST", "FIN"])
@pytest.mark.parametrize("begun", [some, read_request], ids=["some", "all"])
def test_lost_before_the_reply(make_client: MakeClient, begun: Step, end: Step) -> None:
    """If the connection is lost after some or all of the request, the create is ambiguous."""
    with ScriptedServer([begun, end]) as server:
        error = ambiguous(make_client(server.url))
        assert len(server.peers) == 1
    assert error.failure is not None
    assert error.failure.sent
    assert error.candidate_id is None


@pytest.mark.parametrize("end", ["RST", "FIN"])
def test_lost_at_every_byte_of_the_reply(make_client: MakeClient, end: str) -> None:
    """Wherever the response is cut off, the create is sent once; an id that came is reported."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(WHOLE[: peer.number])
        if end == "RST":
            peer.reset()

    with ScriptedServer(script) as server:
        client = make_client(server.url)
        for cut in range(len(WHOLE)):
            error = ambiguous(client)
            assert error.raw in WHOLE
            if end == "FIN":  # a reset may overtake what was sent before it
                assert error.candidate_id == ("task-1" if cut >= ID_KNOWN else None)
                assert error.status == (200 if cut >= WHOLE.index(b"{") else None)
            assert server.posts == cut + 1
        task = client.create(image()) if end == "FIN" else None
    assert task is None or task.id == "task-1"


@pytest.mark.parametrize("coding", ["counted", "chunked"])
def test_an_id_far_behind(make_client: MakeClient, coding: str) -> None:
    """An id that arrived late in a response that is cut off is reported."""
    body = b'{"pad": "%s", %s' % (b"x" * 300_000, CREATED[1:-1])
    whole = response_bytes(200, body + b"}", content_type="application/json")
    if coding == "chunked":
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = head + b"%x\r\n%s\r\n" % (len(body), body) + b"0"
    with ScriptedServer([read_request, send(whole[:-1])]) as server:
        error = ambiguous(make_client(server.url))
        assert server.posts == 1
    assert error.candidate_id == "task-1"
    assert error.failure is not None
    assert error.raw == error.failure.partial == body[: 64 * 1024]


def test_an_id_in_a_reply_that_is_too_large(make_client: MakeClient) -> None:
    """An id that arrived before a response exceeded the limit is reported."""
    body = b'{"pad": "%s", %s, "rest": "' % (b"x" * 1_000_000, CREATED[1:-1])
    body += b"y" * 8 * 2**20
    with ScriptedServer([read_request, send(response_bytes(200, body))]) as server:
        error = ambiguous(make_client(server.url))
        assert server.posts == 1
    assert error.failure is not None
    assert error.failure.reason is Reason.TOO_LARGE
    assert error.candidate_id == "task-1"
    assert error.raw == body[: 64 * 1024]


OPERATIONS = ("get", "delete_asset", "call GET", "call POST")


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["RST", "FIN", "stall"])
@pytest.mark.parametrize("operation", ["create", *OPERATIONS])
def test_every_byte_of_every_operation(make_client: MakeClient, operation: str, end: str) -> None:
    """Wherever a response is cut off, what costs money is sent once, and the rest ends well."""
    body = b'{"code": "0"}' if operation == "delete_asset" else CREATED
    whole = response_bytes(200, body)
    broken: set[int] = set()
    cut = 0

    def script(peer: Peer) -> None:
        while True:
            peer.read_request()
            paid = operation in ("create", "call POST")
            if not paid and cut in broken:
                peer.send(whole)
                continue
            broken.add(cut)
            peer.send(whole[:cut])
            if end == "stall":
                peer.hang()
            elif end == "RST":
                peer.reset()
            return

    with ScriptedServer(script) as server:
        client = make_client(server.url, timeout=0.2 if end == "stall" else 20.0)
        calls = {
            "create": lambda: client.create(image()),
            "get": lambda: client.get("task-1"),
            "delete_asset": lambda: client.delete_asset("asset-1"),
            "call GET": lambda: client.call("GET", "/v1/any"),
            "call POST": lambda: client.call("POST", "/v1/any", {}),
        }
        for cut in range(len(whole)):
            if operation in ("create", "call POST"):
                with pytest.raises(CreateAmbiguous):
                    calls[operation]()
                assert server.posts == cut + 1
            else:
                calls[operation]()


@pytest.mark.parametrize("sent", [b"", WHOLE[:20], WHOLE[:-30]], ids=["none", "head", "body"])
def test_a_reply_that_never_ends(make_client: MakeClient, sent: bytes) -> None:
    """A response that stops arriving makes the create ambiguous at its timeout."""
    with ScriptedServer([read_request, send(sent), hang]) as server:
        error = ambiguous(make_client(server.url, timeout=0.3))
        assert server.posts == len(server.peers) == 1
    assert error.failure is not None
    assert error.failure.reason is Reason.TIMED_OUT
    assert error.candidate_id == ("task-1" if len(sent) >= ID_KNOWN else None)


@pytest.mark.parametrize("status", [408, 409, 418, 451, 499, 500, 502, 503, 504, 520, 599])
def test_statuses_that_leave_it_open(make_client: MakeClient, status: int) -> None:
    """A status that says nothing about the create is ambiguous, and never retried."""
    with ScriptedServer(serve(status, HTML, retry_after="0")) as server:
        error = ambiguous(make_client(server.url))
        assert server.posts == 1
    assert error.status == status
    assert error.raw == HTML


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308, 399])
def test_redirects_are_not_followed(make_client: MakeClient, status: int) -> None:
    """A create that is redirected is ambiguous, and the redirect's target is not contacted."""
    with ScriptedServer(serve(200, CREATED)) as target:
        script = serve(status, b"" if status == 304 else CREATED, location=f"{target.url}/v1")
        with ScriptedServer(script) as server:
            error = ambiguous(make_client(server.url))
            assert server.posts == 1
            assert len(server.peers) == 1
        assert not target.peers
    assert error.status == status
    assert error.candidate_id == (None if status == 304 else "task-1")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_within_the_service(make_client: MakeClient, status: int) -> None:
    """Redirects within the service are not followed: that would send the request again."""
    with ScriptedServer(serve(status, b"", location="/v1/imga/images")) as server:
        ambiguous(make_client(server.url))
        assert server.posts == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"task-1"',
        b"OK",
        b"{}",
        HTML,
        b'{"object": "imga", "status": "queued"}',
        b'{"id": null}',
        b'{"id": 17}',
        b'{"id": ""}',
        b'{"id": ".."}',
        b'{"id": "t\\u0000"}',
        b'{"id": "t\\ud800"}',
        b'{"id": "' + b"x" * 5000 + b'"}',
        CREATED + b"x",
        CREATED[:-1] + b', "id": "task-2"}',
        CREATED.decode().encode("utf-16"),
        b"\xff\xfe\x00",
        b"[" * 100_000,
        CREATED[:-1] + b', "created": NaN}',
        CREATED[:-1] + b', "n": ' + b"9" * 5000 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_reply_without_a_usable_id(make_client: MakeClient, body: bytes) -> None:
    """A success without a task that can be asked for is ambiguous, and its response is kept."""
    with ScriptedServer(serve(200, body)) as server:
        error = ambiguous(make_client(server.url))
        assert server.posts == 1
    assert error.status == 200
    assert error.raw == body[: 64 * 1024]
    if b'"task-1"' in body[1:]:
        assert error.candidate_id == "task-1"


@pytest.mark.parametrize("status", [200, 201, 202, 203, 299])
def test_any_success_counts(make_client: MakeClient, status: int) -> None:
    """Any status of success with a task is a success, whatever media type it claims."""
    with ScriptedServer(
        serve(status, b"\xef\xbb\xbf" + CREATED, content_type="text/html")
    ) as server:
        assert make_client(server.url).create(image()).id == "task-1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused), (401, Unauthorized), (402, Refused), (403, Forbidden), (404, Refused),
        (405, Refused), (413, Refused), (415, Refused), (422, Refused), (425, Refused),
    ],
)  # fmt: skip
def test_refusals(make_client: MakeClient, status: int, kind: type[Refused]) -> None:
    """A refusal is reported with what the service said, and not retried."""
    body = b'{"error": {"message": "the prompt is empty"}}'
    with ScriptedServer(serve(status, body)) as server:
        with pytest.raises(kind, match="the prompt is empty") as caught:
            make_client(server.url).create(image())
        assert server.posts == 1
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert caught.value.body == body


@pytest.mark.parametrize("status", [400, 401, 403, 422, 429, 500])
def test_a_refusal_that_names_an_id(make_client: MakeClient, status: int) -> None:
    """An error status whose body names a task is ambiguous, and the id is reported."""
    with ScriptedServer(serve(status, CREATED, retry_after="0")) as server:
        error = ambiguous(make_client(server.url))
        assert server.posts == 1
    assert error.candidate_id == "task-1"
    assert "task-1" in str(error)


def test_throttled(make_client: MakeClient) -> None:
    """A 429 did nothing, so the create is sent again once the service allows it."""
    events: list[Event] = []
    with ScriptedServer(in_turn(serve(429, b"{}", retry_after="7"), serve(200, CREATED))) as server:
        task = make_client(server.url, on_event=tasks_alone(events.append)).create(image())
        assert server.posts == 2
    assert task.id == "task-1"
    assert [event.delay for event in events if isinstance(event, Throttled)] == [7.0]


def test_throttled_for_good(make_client: MakeClient) -> None:
    """After the fourth 429 the create fails, and nothing was charged."""
    with ScriptedServer(serve(429, b"{}")) as server:
        with pytest.raises(RateLimited):
            make_client(server.url).create(image())
        assert server.posts == 4


def test_throttled_for_too_long(make_client: MakeClient) -> None:
    """If the service asks to wait for more than two minutes, the call fails at once."""
    with ScriptedServer(serve(429, b"{}", retry_after="121")) as server:
        with pytest.raises(RateLimited) as caught:
            make_client(server.url).create(image())
        assert server.posts == 1
    assert caught.value.retry_after == 121


def test_refused_connection(make_client: MakeClient) -> None:
    """A refused connection is tried three times, and the create was not sent."""
    events: list[Event] = []
    client = make_client(f"http://127.0.0.1:{closed_port()}", on_event=tasks_alone(events.append))
    with pytest.raises(NotSent) as caught:
        client.create(image())
    assert caught.value.attempts == 3
    assert not caught.value.failure.sent
    assert [type(event) for event in events] == [WillRetry, WillRetry]


def test_idle_connection_closed_by_the_server(make_client: MakeClient) -> None:
    """An idle connection that the server closed in between does not harm a create."""
    closed = threading.Event()
    result = json.dumps({**TASK, "status": "processing"}).encode()

    def query_and_close(peer: Peer) -> None:
        peer.read_request()
        peer.send(response_bytes(200, result))
        peer.close()
        closed.set()

    with ScriptedServer(in_turn(query_and_close, serve(200, CREATED))) as server:
        client = make_client(server.url)
        client.get("task-1")
        assert closed.wait(5)
        assert client.create(image()).id == "task-1"
        assert server.posts == 1


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_a_second_reply_nobody_asked_for(make_client: MakeClient, late: bool) -> None:  # noqa: FBT001  a case
    """An unsolicited response is never taken for the response to the next request."""
    asked, sent = threading.Event(), threading.Event()
    second = response_bytes(200, CREATED.replace(b"task-1", b"task-2"))

    def twice(peer: Peer) -> None:
        peer.read_request()
        if late:
            peer.send(WHOLE)
            asked.wait(5)
            peer.send(second)
        else:
            peer.send(WHOLE + second)
        sent.set()
        peer.hang()

    third = serve(200, CREATED.replace(b"task-1", b"task-3"))
    with ScriptedServer(in_turn(twice, third)) as server:
        client = make_client(server.url)
        assert client.create(image()).id == "task-1"
        asked.set()
        assert sent.wait(5)
        assert client.create(image()).id == "task-3"
        assert server.posts == 2


def test_refused_by_a_record(make_client: MakeClient) -> None:
    """A record that is failed and has no id is a refusal; with an id it is a failed task."""
    refused = json.dumps({"status": "failed", "error": "no such ratio"}).encode()
    failed = json.dumps({**TASK, "status": "failed", "error": "no such ratio"}).encode()
    with ScriptedServer(in_turn(serve(200, refused), serve(200, failed))) as server:
        client = make_client(server.url)
        with pytest.raises(Refused, match="no such ratio"):
            client.create(image())
        task = client.create(image())
    assert (task.id, task.status, task.error) == ("task-1", Status.FAILED, "no such ratio")


@pytest.mark.parametrize("status", [200, 500])
def test_call_pays_once(make_client: MakeClient, status: int) -> None:
    """A POST to any endpoint is sent once, however its response is cut off."""
    with ScriptedServer([read_request, send(response_bytes(status, CREATED)[:-1])]) as server:
        with pytest.raises(CreateAmbiguous) as caught:
            make_client(server.url).call("POST", "/v1/any", {"prompt": "x"})
        assert server.posts == 1
    assert caught.value.status == status
