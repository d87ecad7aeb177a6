"""What an observer receives: calls, requests, responses and failures, each with its call."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest

import muybridge
from muybridge import (
    CreateAmbiguous,
    NotSent,
    RateLimited,
    StreamInterrupted,
    TaskFailed,
    TaskNotFound,
    Unauthorized,
)
from muybridge.drivers.notes import NOT_SENT
from muybridge_protocol.emulator import FAILURES, Timing
from muybridge_protocol.events import (
    Ambiguous,
    DownloadProgress,
    Event,
    Polled,
    Submitted,
    Throttled,
    WillRetry,
)
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    ExchangeFailed,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)
from muybridge_protocol.records.tasks import Result, Task
from transport.scripted_server import Peer, ScriptedServer, response_bytes

from .answers import CHUNKS, MODEL, PROMPT, STREAM, answering, spend
from .drivers import AnyClient, MakeClient
from .film import MEDIA, Film
from .fleets import run_all
from .heard import Heard, call_of
from .in_process import World
from .requests_made import image, small

LOST = TransportFailure(
    phase=Phase.HEAD, sent=True, reason=Reason.RESET, bytes_sent=300, detail="said elsewhere"
)
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
ENDS = ("ResponseReceived", "ExchangeFailed")


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_a_whole_run(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A create and a wait are two calls, each reported from its beginning to its end."""
    make_client(world, on_event=heard).run(image())
    create, wait = heard.by_call().values()
    assert [type(event).__name__ for event in create] == [
        "CallBegan", "RequestSent", "ResponseReceived", "Submitted", "CallEnded",
    ]  # fmt: skip
    polls = ["RequestSent", "ResponseReceived", "Polled"] * len(world.queries)
    assert [type(event).__name__ for event in wait] == ["CallBegan", *polls, "CallEnded"]
    assert heard.events == [*create, *wait]


def test_what_a_call_is(make_client: MakeClient, world: World, heard: Heard) -> None:
    """Each event names its call: what it does, the family, the model, and the task once known."""
    make_client(world, on_event=heard).run(image())
    calls = [call_of(event) for event in heard.events]
    assert {call.family for call in calls} == {"imga"}
    assert {call.model for call in calls} == {"imga"}
    assert {call.work for call in calls} == {None}
    create = [call for call in calls if call.kind == "create"]
    assert [call.task_id for call in create] == [None, None, None, "task-1", "task-1"]
    assert {call.task_id for call in calls if call.kind == "wait"} == {"task-1"}


def test_a_request_and_its_reply(make_client: MakeClient, heard: Heard) -> None:
    """A request tells where it goes and its size, a response its status, size and time."""
    world = World(latency=0.25)
    body = json.dumps({"id": "task-7", "status": "queued", "created": 1, "model": "imga"}).encode()
    world.instead.append(HttpResponse(200, (), body))
    make_client(world, on_event=heard).create(image())
    sent, reply = heard.one(RequestSent), heard.one(ResponseReceived)
    assert (sent.method, sent.scheme, sent.host, sent.port) == (
        "POST", "https", "service.test", 443,
    )  # fmt: skip
    assert sent.path == sent.template == "/v1/imga/images"
    assert sent.url == "https://service.test:443/v1/imga/images"
    assert sent.size == len(json.dumps(image().to_body(), separators=(",", ":")).encode())
    assert (reply.status, reply.size, reply.duration) == (200, len(body), 0.25)
    assert heard.end.duration == 0.25


def _delete(client: AnyClient) -> None:
    client.delete_asset("asset-1")


def _call(client: AnyClient) -> None:
    client.call("GET", "/v1/else?where=there")


def _text(client: AnyClient) -> None:
    client.generate_content(MODEL, PROMPT)


def _stream(client: AnyClient) -> None:
    spend(client, "stream_generate_content")


def _get(client: AnyClient) -> None:
    with pytest.raises(TaskNotFound):
        client.get("task-9")


CALLS: dict[str, tuple[Callable[[AnyClient], None], str, str | None]] = {
    "get": (_get, "/v1/result/task-9", "/v1/result/{id}"),
    "delete": (_delete, "/vidsb/asset/asset-1", "/vidsb/asset/{id}"),
    "call": (_call, "/v1/else", None),
    "text": (_text, f"/v1/models/{MODEL}:generateContent", "/v1/models/{model}:generateContent"),
    "text stream": (
        _stream,
        f"/v1/models/{MODEL}:streamGenerateContent",
        "/v1/models/{model}:streamGenerateContent",
    ),
}


@pytest.mark.parametrize("kind", CALLS)
def test_every_kind_of_call(make_client: MakeClient, world: World, heard: Heard, kind: str) -> None:
    """Every call is reported with its kind, and with its path without a query."""
    act, path, template = CALLS[kind]
    act(make_client(world, on_event=heard))
    assert {call_of(event).kind for event in heard.events} == {kind}
    sent = heard.one(RequestSent)
    assert (sent.path, sent.template) == (path, template)
    assert (heard.kinds[0], heard.kinds[-1]) == ("CallBegan", "CallEnded")


def test_calls_have_numbers_of_their_own(make_client: MakeClient, world: World) -> None:
    """No two calls have one number, though two clients share a listener."""
    heard = Heard()
    for client in (make_client(world, on_event=heard), make_client(world, on_event=heard)):
        client.create(image())
        client.create(image())
    assert len(heard.by_call()) == len(heard.of(CallBegan)) == 4


def test_a_failure_and_a_retry(make_client: MakeClient, heard: Heard) -> None:
    """A failed exchange reports how far it came, and the retry which attempt it is."""
    world = World(timing=Timing(image_processing=20))
    world.instead.extend([None, LOST, None])
    make_client(world, on_event=heard).run(image())
    failed, retry = heard.one(ExchangeFailed), heard.one(WillRetry)
    assert (failed.reason, failed.phase, failed.sent, failed.bytes_sent) == (
        Reason.RESET, Phase.HEAD, True, 300,
    )  # fmt: skip
    assert retry.cause == "connection reset while waiting for the response"
    assert "said elsewhere" in retry.reason
    assert call_of(retry).task_id == "task-1"
    assert [sent.resends for sent in heard.of(RequestSent)][:4] == [0, 0, 1, 0]


def test_a_request_that_was_not_sent(make_client: MakeClient, world: World, heard: Heard) -> None:
    """Attempts that reach nobody are reported as such, with their count and the call's end."""
    world.always = UNSENT
    with pytest.raises(NotSent):
        make_client(world, on_event=heard).create(image())
    assert [failed.sent for failed in heard.of(ExchangeFailed)] == [False] * 3
    assert [sent.resends for sent in heard.of(RequestSent)] == [0, 1, 2]
    assert [retry.cause for retry in heard.of(WillRetry)] == ["connection refused"] * 2
    assert (heard.end.error, heard.end.left) == ("NotSent", False)
    assert heard.end.duration == world.clock.elapsed > 0


def test_throttling(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A 429 is a response, and tells which call waits and for how long."""
    world.instead.append(HttpResponse(429, (("Retry-After", "7"),)))
    make_client(world, on_event=heard).create(image())
    assert heard.kinds[:5] == [
        "CallBegan", "RequestSent", "ResponseReceived", "Throttled", "RequestSent",
    ]  # fmt: skip
    throttled = heard.one(Throttled)
    assert throttled.delay == 7
    assert call_of(throttled).kind == "create"
    assert heard.of(RequestSent)[1].resends == 1


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (LOST, "connection reset while waiting for the response"),
        (HttpResponse(500, (), b'{"message": "a horse at a gallop"}'), "status 500"),
        (HttpResponse(200, (), b"[]"), "the response cannot be used"),
    ],
)
def test_ambiguity(
    make_client: MakeClient, world: World, heard: Heard, answer: Any, cause: str
) -> None:
    """An ambiguous request reports its cause in our words, whatever the service said."""
    world.instead.append(answer)
    with pytest.raises(CreateAmbiguous):
        make_client(world, on_event=heard).create(image())
    assert heard.one(Ambiguous).cause == cause
    assert heard.end.error == "CreateAmbiguous"


def test_a_task_that_fails(make_client: MakeClient, world: World, heard: Heard) -> None:
    """The end of a wait tells the task's last status and the error's class."""
    prompt = f"[fail:{next(iter(FAILURES))}]"
    with pytest.raises(TaskFailed):
        make_client(world, on_event=heard).run(image(prompt))
    create, wait = heard.of(CallEnded)
    assert (create.status, create.error) == ("processing", None)
    assert (wait.status, wait.error) == ("failed", "TaskFailed")


def test_tokens_of_a_task(make_client: MakeClient, world: World, heard: Heard) -> None:
    """The end of a wait tells the tokens that the service counted."""
    result = make_client(world, on_event=heard).run(small()["vidsb"])
    assert result.total_tokens
    assert heard.of(CallEnded)[1].total_tokens == result.total_tokens


def test_a_watch_that_is_left(make_client: MakeClient, heard: Heard) -> None:
    """Leaving a loop early is not an error."""
    world = World(timing=Timing(video_queued=10, video_processing=60))
    task = make_client(world).create(small()["vidd"])
    watched = make_client(world, on_event=heard).watch(task)
    assert next(watched).status == "processing"
    cast("Generator[Result]", watched).close()
    assert (heard.end.left, heard.end.error, heard.end.status) == (True, None, "processing")


def test_a_wait_whose_caller_raises(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A wait that the caller's own function interrupts counts as left."""

    def fail(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        make_client(world, on_event=heard).run(image(), on_update=fail)
    assert caught.value.__traceback__ is not None  # whose frames keep alive what they hold
    assert heard.of(CallEnded)[1].left
    assert heard.of(CallEnded)[1].error is None


@pytest.mark.parametrize("call", ["get", "wait"])
def test_a_call_that_is_broken_off(
    make_client: MakeClient,
    world: World,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    """An error from elsewhere ends the exchange and the call, by its name."""

    def broken(*_: object) -> HttpResponse:
        raise MemoryError

    monkeypatch.setattr(world, "answer", broken)
    with pytest.raises(MemoryError):
        getattr(make_client(world, on_event=heard), call)("task-1")
    assert heard.one(ExchangeFailed).reason is Reason.INTERRUPTED
    assert (heard.end.error, heard.end.left) == ("MemoryError", False)


def test_a_download_that_goes_on(make_client: MakeClient, tmp_path: Path, heard: Heard) -> None:
    """Each stretch of a resumed download reports its own bytes, and the end those of the file."""
    film = Film(cuts=(300,))
    film.instead.append(response_bytes(302, b"", location="/b?signed"))
    with ScriptedServer(film) as server:
        client = make_client(server.url, on_event=heard)
        client.download(f"{server.url}/a", tmp_path / "film.mp4")
    assert [sent.path for sent in heard.of(RequestSent)] == ["/a", "/b", "/b"]
    assert [sent.resends for sent in heard.of(RequestSent)] == [0, 1, 2]
    assert [sent.template for sent in heard.of(RequestSent)] == [None] * 3
    assert [began.status for began in heard.of(ResponseBegan)] == [302, 200, 206]
    assert [reply.status for reply in heard.of(ResponseReceived)] == [302, 206]
    assert [reply.size for reply in heard.of(ResponseReceived)] == [0, len(MEDIA) - 300]
    assert [failed.reason for failed in heard.of(ExchangeFailed)] == [Reason.TRUNCATED]
    assert heard.of(DownloadProgress)[-1].received == len(MEDIA)
    assert heard.end.size == len(MEDIA)
    assert {call_of(event).kind for event in heard.events} == {"download"}


def test_a_whole_text(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A text tells its model and the tokens that the service counted."""
    response = make_client(world, on_event=heard).generate_content(MODEL, PROMPT)
    usage = response.usage_metadata
    assert usage is not None
    assert call_of(heard.end).model == MODEL
    assert (heard.end.prompt_tokens, heard.end.answer_tokens, heard.end.total_tokens) == (
        usage.prompt_token_count,
        usage.candidates_token_count,
        usage.total_token_count,
    )
    assert heard.end.total_tokens


def test_a_stream(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A streamed text tells its head, its chunks, its bytes and its tokens."""
    chunks = spend(make_client(world, on_event=heard), "stream_generate_content")
    assert heard.kinds == [
        "CallBegan",
        "RequestSent",
        "ResponseBegan",
        "ResponseReceived",
        "CallEnded",
    ]
    reply = heard.one(ResponseReceived)
    assert reply.chunks == len(chunks) > 1
    assert reply.first_chunk is not None
    assert 0 <= reply.first_chunk <= reply.duration
    assert reply.size > 100
    assert (heard.end.total_tokens, heard.end.left) == (
        chunks[-1].usage_metadata.total_token_count,
        False,
    )


@pytest.mark.parametrize("method", ["stream_chat_completions", "stream_messages"])
def test_streams_in_other_protocols(make_client: MakeClient, heard: Heard, method: str) -> None:
    """Their chunks are counted, too."""
    with ScriptedServer(answering) as server:
        spend(make_client(server.url, on_event=heard), method)
    assert heard.one(ResponseReceived).chunks == len(CHUNKS)


def test_a_stream_that_is_left(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A stream that is left tells what was read until then."""
    with make_client(world, on_event=heard).stream_generate_content(MODEL, PROMPT) as stream:
        next(stream)
    assert heard.one(ResponseReceived).chunks == 1
    assert (heard.end.left, heard.end.error) == (True, None)


def test_a_stream_whose_reader_raises(make_client: MakeClient, world: World, heard: Heard) -> None:
    """An error in the block ends the call with its name."""
    stream = make_client(world, on_event=heard).stream_generate_content(MODEL, PROMPT)

    def read() -> None:
        with stream:
            next(stream)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert heard.end.error == "ZeroDivisionError"
    assert heard.one(ExchangeFailed).reason is Reason.INTERRUPTED


def test_a_stream_that_breaks_off(make_client: MakeClient, heard: Heard) -> None:
    """A stream that the network cuts reports where, and ends with the error its reader gets."""

    def cut(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM[: len(STREAM) // 2])
        peer.close()

    with ScriptedServer(cut) as server:
        client = make_client(server.url, on_event=heard)
        with pytest.raises(StreamInterrupted):
            spend(client, "stream_generate_content")
    assert heard.one(ExchangeFailed).phase is Phase.BODY
    assert heard.end.error == "StreamInterrupted"


def test_a_stream_that_is_refused(make_client: MakeClient, world: World, heard: Heard) -> None:
    """A refusal is a whole response."""
    world.always = HttpResponse(429, (), b"{}")
    with pytest.raises(RateLimited):
        spend(make_client(world, on_event=heard), "stream_generate_content")
    assert [reply.status for reply in heard.of(ResponseReceived)] == [429] * 4
    assert [reply.size for reply in heard.of(ResponseReceived)] == [2] * 4
    assert not heard.of(ResponseBegan)
    assert heard.end.error == "RateLimited"


def test_many_at_once(make_client: MakeClient, world: World, heard: Heard) -> None:
    """In a run of many tasks each event says of which piece of work it is."""
    client = make_client(world)
    old = client.create(image())
    world.instead.extend([None, HttpResponse(429, (("Retry-After", "2"),)), None, LOST])
    work = [*(image(f"horse {number}") for number in range(20)), old]
    seen = run_all(make_client(world, on_event=heard), work, concurrency=4)
    tasks = {outcome.key: outcome.task for outcome in seen}
    by_work: dict[int | None, list[AnyEvent]] = {}
    for event in heard.events:
        by_work.setdefault(call_of(event).work, []).append(event)
    assert set(by_work) == set(range(len(work)))
    for place, events in by_work.items():
        kinds = [call_of(event).kind for event in events if isinstance(event, CallBegan)]
        assert kinds[-1] == "wait" or isinstance(events[-1], CallEnded)
        ended = [event for event in events if isinstance(event, CallEnded)]
        assert [call_of(event).kind for event in ended] == kinds
        assert place is not None
        task = tasks[place]
        assert task is None or call_of(events[-1]).task_id == task.id
    for events in heard.by_call().values():
        names = [type(event).__name__ for event in events]
        assert (names[0], names[-1]) == ("CallBegan", "CallEnded")
        assert names.count("CallBegan") == names.count("CallEnded") == 1
        # One exchange at a time: no two calls are mixed up.
        exchanges = [name for name in names if name == "RequestSent" or name in ENDS]
        assert all(name == "RequestSent" for name in exchanges[::2])
        assert all(name in ENDS for name in exchanges[1::2])
        assert len(exchanges) % 2 == 0
    assert len(heard.of(RequestSent)) == len(world.seen) - 1


def test_a_run_that_is_left(make_client: MakeClient, heard: Heard) -> None:
    """Work that has not ended when a run is left is reported as left."""
    world = World(timing=Timing(video_processing=1e12))
    work = [image(), *[small()["vidd"]] * 3]
    client = make_client(world, on_event=heard)
    run_all(client, work, most=1, concurrency=4, timeout=None)
    ends = heard.of(CallEnded)
    assert len(ends) == len(heard.of(CallBegan)) == len(heard.by_call())
    assert [call_of(end).kind for end in ends if end.left] == ["wait"] * 3


def test_a_plain_listener(make_client: MakeClient, world: World) -> None:
    """Any function can listen; events about tasks are reported with their call."""
    events: list[AnyEvent] = []
    run_all(make_client(world, on_event=events.append), [image(), image()])
    of_tasks = [event for event in events if isinstance(event, Event)]
    assert {type(event) for event in of_tasks} == {Submitted, Polled}
    assert {call_of(event).work for event in of_tasks} == {0, 1}
    assert {type(event) for event in events} - {Submitted, Polled} == {
        CallBegan, CallEnded, ResponseReceived, RequestSent,
    }  # fmt: skip


class Mine(Exception):
    """An error of the program's own."""


def failing(kind: type[Any]) -> Callable[[AnyEvent], None]:
    def fail(event: AnyEvent) -> None:
        if isinstance(event, kind):
            raise Mine

    return fail


@pytest.mark.parametrize("kind", [ResponseReceived, Submitted, CallEnded])
def test_an_observer_that_raises_after_a_create(
    make_client: MakeClient, world: World, kind: type[Any]
) -> None:
    """Whatever an observer raises, the id was told first, and is in the error's notes."""
    told: list[Task] = []
    client = make_client(world, on_submitted=told.append, on_event=failing(kind))
    with pytest.raises(Mine) as caught:
        client.create(image())
    assert [task.id for task in told] == ["task-1"]
    assert any("task-1" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(("kind", "notes"), [(CallBegan, []), (RequestSent, [NOT_SENT])])
def test_an_observer_that_raises_before_a_create(
    make_client: MakeClient, world: World, kind: type[Any], notes: list[str]
) -> None:
    """Nothing is sent, and nothing is said to be under way."""
    with pytest.raises(Mine) as caught:
        make_client(world, on_event=failing(kind)).create(image())
    assert not world.seen
    assert getattr(caught.value, "__notes__", []) == notes


@pytest.mark.parametrize("kind", [CallBegan, RequestSent, ResponseReceived, CallEnded])
def test_an_observer_that_raises_in_a_run(
    make_client: MakeClient, world: World, kind: type[Any]
) -> None:
    """It ends the run, whose error has the ids in its notes; what was not sent is not ambiguous."""
    told: list[Task] = []
    client = make_client(world, on_submitted=told.append, on_event=failing(kind))
    with pytest.raises(Mine) as caught:
        run_all(client, [image(), image()], concurrency=1)
    note = "\n".join(caught.value.__notes__)
    assert all(task.id in note for task in told)
    assert len(told) == len(world.posts) == (kind in (ResponseReceived, CallEnded))
    assert f"{2 - len(told)} not sent" in note
    assert "under way" not in note


@pytest.mark.parametrize("kind", [RequestSent, ResponseBegan, ResponseReceived])
def test_the_end_after_an_observer_has_raised(
    make_client: MakeClient, world: World, heard: Heard, kind: type[Any]
) -> None:
    """An observer that raises during a stream, or when it is left, receives the call's end."""
    fail = failing(kind)

    def hear(event: AnyEvent) -> None:
        heard(event)
        fail(event)

    def leave() -> None:
        with make_client(world, on_event=hear).stream_generate_content(MODEL, PROMPT) as stream:
            next(stream)

    with pytest.raises(Mine):
        leave()
    assert heard.end.error == "Mine"
    # Of a request that is not sent no end is told.
    assert len([name for name in heard.kinds if name in ENDS]) == (kind is not RequestSent)
    assert heard.kinds[-1] == "CallEnded"


def test_an_observer_does_not_hide_an_error(make_client: MakeClient, world: World) -> None:
    """What an observer raises at the end of a call that failed does not take the error's place."""
    world.always = HttpResponse(401)
    with pytest.raises(Unauthorized):
        make_client(world, on_event=failing(CallEnded)).create(image())


def test_events_are_equal_by_what_they_say(
    make_client: MakeClient, world: World, heard: Heard
) -> None:
    """An event is the same whichever call it belongs to, as before there were calls."""
    world.instead.append(HttpResponse(429, (("Retry-After", "7"),)))
    make_client(world, on_event=heard).create(image())
    assert heard.one(Throttled).call is not None
    assert heard.one(Throttled) == Throttled("create", 7.0)


def test_a_text_that_is_lost(make_client: MakeClient, heard: Heard) -> None:
    """A text request without a response is reported as ambiguous, too."""
    with ScriptedServer(lambda peer: (peer.read_request(), peer.reset())) as server:
        client = make_client(server.url, on_event=heard)
        with pytest.raises(muybridge.TextAmbiguous):
            client.generate_content(MODEL, PROMPT)
    assert heard.one(ExchangeFailed).sent
    assert heard.one(Ambiguous).cause
    assert heard.end.error == "TextAmbiguous"
