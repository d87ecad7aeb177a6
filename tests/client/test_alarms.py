"""What a signal handler of the program's own raises comes out as itself, wherever it strikes.

The handlers of soft time limits do so. Trio allows none of them to raise while its event loop
waits, so that there the signal arrives within a task's own steps.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import pytest

import moments
from muybridge.drivers.notes import NOT_SENT, TEXT_UNDER_WAY, UNDER_WAY, accepted
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import (
    Peer,
    Script,
    ScriptedServer,
    hang,
    in_turn,
    read_request,
    response_bytes,
    send,
    serve,
)

from .alarms import ERRORS, NAMES, alarm, alarm_in, alarm_raises, notes, posix
from .answers import HEAD, MODEL, PROMPT
from .canaries import everything
from .drivers import MakeClient
from .in_process import KEY
from .requests_made import image

pytestmark = posix

RECORD = b'{"id": "task-1", "object": "image", "created": 1, "status": "queued"}'
WHOLE = response_bytes(200, RECORD)
Patch = Callable[[pytest.MonkeyPatch], None]


def nothing(_: pytest.MonkeyPatch) -> None:
    """Let the server send the signal."""


def within(moment: str, driver: str) -> Patch:
    return lambda patch: alarm_in(patch, moments.at(moment, driver))


NONE, ONE = frozenset({0}), frozenset({1})


@attrs.frozen
class Point:
    """A moment of an exchange, and what is known if it ends there.

    Args:
        script: What the server does.
        said: What the note says.
        patch: Makes the signal arrive, where the server does not send it.
        scheme: The server's.
        posts: How many POSTs it may have seen by then.
    """

    script: Script
    said: str
    patch: Patch = nothing
    scheme: str = "http"
    posts: frozenset[int] = NONE


# The last byte wakes the client, should the signal have come just before it began to wait.
REPLIES: dict[str, Point] = {
    "no response yet": Point([read_request, alarm, send(b"H"), hang], UNDER_WAY, posts=ONE),
    "head": Point(
        [read_request, send(WHOLE[:20]), alarm, send(WHOLE[20:21]), hang], UNDER_WAY, posts=ONE
    ),
    "body": Point(
        [read_request, send(WHOLE[:-9]), alarm, send(WHOLE[-9:-8]), hang], UNDER_WAY, posts=ONE
    ),
}
POINTS: dict[str, dict[str, Point]] = {
    "requests": {
        # What replaces a part of urllib3 may send the request until a connection of ours has it.
        "library": Point(serve(), UNDER_WAY, within("within urllib3", "requests")),
        "lookup": Point(serve(), NOT_SENT, within("lookup", "requests")),
        "connect": Point(serve(), NOT_SENT, within("connect", "requests")),
        "handshake": Point([Peer.receive, alarm, send(b"\x16"), hang], NOT_SENT, scheme="https"),
        # The first byte counts as sent from the moment at which its call begins.
        "first byte": Point(hang, UNDER_WAY, within("first byte", "requests")),
        **REPLIES,
    },
    "trio": {
        "preparation": Point(serve(), NOT_SENT, within("preparation", "trio")),
        "lookup": Point(serve(), NOT_SENT, within("lookup", "trio")),
        "connect": Point(serve(), NOT_SENT, within("connect", "trio")),
        "first byte": Point(hang, UNDER_WAY, within("first byte", "trio")),
        "no response yet": Point(
            [read_request, hang], UNDER_WAY, within("no response yet", "trio"), posts=NONE | ONE
        ),
    },
}
CASES = [(driver, point) for driver, points in POINTS.items() for point in points]


@pytest.fixture(params=ERRORS, ids=NAMES)
def error(request: pytest.FixtureRequest) -> BaseException:
    """What the handler raises."""
    raised: BaseException = request.param()
    return raised


@pytest.mark.parametrize(("driver", "point"), CASES)
def test_create(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    point: str,
    error: BaseException,
) -> None:
    """It ends a create as itself; nothing is sent afterwards, and the note says what is known."""
    at = POINTS[driver][point]
    with ScriptedServer(at.script, scheme=at.scheme) as server, monkeypatch.context() as patch:
        at.patch(patch)
        with alarm_raises(error), pytest.raises(type(error)) as caught:
            make_client(server.url).create(image())
    assert caught.value is error
    assert notes(error) == at.said
    assert error.args[-1] == "time is up"
    assert server.posts in at.posts
    assert KEY not in everything(error)
    assert [entry.name for entry in caught.traceback][-1] == "handler"


@pytest.mark.parametrize(("driver", "point"), CASES)
def test_text(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    point: str,
    error: BaseException,
) -> None:
    """It ends a text request as itself, with what that may have cost."""
    at = POINTS[driver][point]
    said = TEXT_UNDER_WAY if at.said == UNDER_WAY else at.said
    with ScriptedServer(at.script, scheme=at.scheme) as server, monkeypatch.context() as patch:
        at.patch(patch)
        with alarm_raises(error), pytest.raises(type(error)) as caught:
            make_client(server.url).generate_content(MODEL, PROMPT)
    assert caught.value is error
    assert notes(error) == said
    assert server.posts in at.posts


@pytest.mark.parametrize(("driver", "point"), CASES)
def test_poll(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    point: str,
    error: BaseException,
) -> None:
    """It ends a wait as itself, and the note says how to resume."""
    at = POINTS[driver][point]
    with ScriptedServer(at.script, scheme=at.scheme) as server, monkeypatch.context() as patch:
        at.patch(patch)
        with alarm_raises(error), pytest.raises(type(error)) as caught:
            make_client(server.url).wait("task-1")
    assert caught.value is error
    assert "to resume: wait('task-1')" in notes(error)


@pytest.mark.parametrize(("driver", "point"), CASES)
def test_delete(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
    point: str,
    error: BaseException,
) -> None:
    """It ends a deletion as itself, and nothing is retried."""
    at = POINTS[driver][point]
    with ScriptedServer(at.script, scheme=at.scheme) as server, monkeypatch.context() as patch:
        at.patch(patch)
        with alarm_raises(error), pytest.raises(type(error)) as caught:
            make_client(server.url).delete_asset("asset-1")
    assert caught.value is error
    assert server.received.count(b"DELETE ") <= 1


@pytest.mark.parametrize("driver", ["requests"])
def test_download(make_client: MakeClient, tmp_path: Path, error: BaseException) -> None:
    """It ends a download as itself, and the next one resumes what was saved."""
    body = bytes(range(256)) * 8
    head = response_bytes(200, body, etag='"horse"')[: -len(body)]

    def rest(peer: Peer) -> None:
        asked = re.search(rb"Range: bytes=([0-9]+)-", peer.read_head(), re.IGNORECASE)
        if asked is None:  # the signal came before anything was saved
            peer.send(response_bytes(200, body, etag='"horse"'))
        else:
            begin = int(asked[1])
            place = f"bytes {begin}-{len(body) - 1}/{len(body)}"
            peer.send(response_bytes(206, body[begin:], etag='"horse"', content_range=place))
        peer.hang()

    first = [read_request, send(head + body[:1000]), alarm, send(body[1000:1001]), hang]
    with ScriptedServer(in_turn(first, rest)) as server:
        client = make_client(server.url)
        with alarm_raises(error), pytest.raises(type(error)) as caught:
            client.download(f"{server.url}/horse.png", tmp_path / "horse.png")
        assert caught.value is error
        assert not (tmp_path / "horse.png").exists()
        path = client.download(f"{server.url}/horse.png", tmp_path / "horse.png")
        assert path.read_bytes() == body


@pytest.mark.parametrize("driver", ["requests"])
def test_text_stream(make_client: MakeClient, error: BaseException) -> None:
    """It ends a stream of text as itself, with what that may have cost."""
    script = [read_request, send(HEAD), alarm, send(b"1"), hang]
    with ScriptedServer(script) as server:
        stream = make_client(server.url).stream_generate_content(MODEL, PROMPT)
        with alarm_raises(error), pytest.raises(type(error)) as caught, stream:
            next(stream)
    assert caught.value is error
    assert TEXT_UNDER_WAY in notes(error)
    assert server.posts == 1


def test_an_earlier_alarm_is_not_raised_again(make_client: MakeClient) -> None:
    """A failure of the network, met while such an error is handled, is reported as what it is."""
    error = TimeoutError("time is up")
    with ScriptedServer([read_request]) as server:
        client = make_client(server.url)
        try:
            with alarm_raises(error):
                alarm()
        except TimeoutError:
            with pytest.raises(Exception, match="may have been accepted"):
                client.create(image())


SHARED = ("lookup", "connect", "first byte", "no response yet")
CTRL_C = {
    "requests": (*SHARED, "body, before its first piece"),
    "trio": ("preparation", *SHARED),
}
PRESSED = [(driver, point) for driver, points in CTRL_C.items() for point in points]
BEFORE = ("preparation", "lookup", "connect")
"""The points before the first byte."""


@pytest.mark.parametrize(("driver", "point"), PRESSED)
def test_ctrl_c_during_a_create(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, driver: str, point: str
) -> None:
    """Ctrl-C at any point of a create comes out after the response, with the id in its notes."""
    with ScriptedServer([read_request, send(WHOLE), hang]) as server:
        client = make_client(server.url)
        with monkeypatch.context() as patch:
            alarm_in(patch, moments.at(point, driver), signal.SIGINT)
            with pytest.raises(KeyboardInterrupt) as caught:
                client.create(image())
        assert server.posts == 1
    assert notes(caught.value) == accepted(Task(id="task-1"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("driver", "point"), PRESSED)
def test_ctrl_c_during_a_text_request(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, driver: str, point: str
) -> None:
    """Ctrl-C at any point of a text request ends it at once, and says whether it was sent."""
    with ScriptedServer([read_request, send(WHOLE), hang]) as server:
        client = make_client(server.url)
        with monkeypatch.context() as patch:
            alarm_in(patch, moments.at(point, driver), signal.SIGINT)
            with pytest.raises(KeyboardInterrupt) as caught:
                client.generate_content(MODEL, PROMPT)
        assert server.posts <= (point not in BEFORE)
    assert notes(caught.value) == (NOT_SENT if point in BEFORE else TEXT_UNDER_WAY)
    assert KEY not in everything(caught.value)


def test_a_handler_that_deletes_its_frame(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, handler: Callable[..., None]
) -> None:
    """A handler's error is recognised even if the handler deletes the frame that it was given."""
    alarm_in(monkeypatch, moments.at("preparation"))
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with ScriptedServer(serve(200, RECORD)) as server, pytest.raises(TimeoutError) as caught:
            make_client(server.url).create(image())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert caught.value.args == ("time is up",)
    assert notes(caught.value) == NOT_SENT
    assert server.posts == 0


def deletes_it(number: int, frame: object) -> None:
    del number, frame
    raise TimeoutError("time is up")


class Limit:
    def __call__(self, *arguments: object) -> None:
        del arguments
        raise TimeoutError("time is up")

    method = __call__


@pytest.fixture(
    params=[deletes_it, partial(deletes_it), Limit(), Limit().method],
    ids=["function", "partial", "object", "method"],
)
def handler(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A signal handler."""
    found: Callable[..., None] = request.param
    return found
