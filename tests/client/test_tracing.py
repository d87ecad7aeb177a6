"""The spans that a client makes for OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode

import muybridge
from muybridge import CreateAmbiguous, TaskFailed, batch
from muybridge.observability.opentelemetry import Tracing
from muybridge_protocol.emulator import FAILURES, Timing
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from transport.scripted_server import ScriptedServer, response_bytes

from .answers import MODEL, PROMPT, spend
from .drivers import MakeClient
from .film import MEDIA, Film
from .fleets import run_all
from .heard import Heard
from .in_process import AsyncFace, InProcessTransport, World
from .requests_made import image
from .spans import Spans, told

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET, detail="said elsewhere")


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.provider.shutdown()


def test_a_run(make_client: MakeClient, world: World, spans: Spans) -> None:
    """A create and a wait are spans below the caller's, each request a client's span below them."""
    with spans.tracer.start_as_current_span("mine"):
        make_client(world, on_event=Tracing(spans.provider)).run(image())
    mine = spans.one("mine")
    create, wait = spans.one("muybridge create"), spans.one("muybridge wait")
    assert spans.below(mine) == [create, wait]
    (post,) = spans.below(create)
    assert post.name == "POST /v1/imga/images"
    queries = spans.below(wait)
    assert {query.name for query in queries} == {"GET /v1/result/{id}"}
    assert len(queries) == len(world.queries)
    assert {span.kind for span in (post, *queries)} == {SpanKind.CLIENT}
    assert {span.kind for span in (create, wait)} == {SpanKind.INTERNAL}
    assert {span.status.status_code for span in spans.all} == {StatusCode.UNSET}
    for span in (create, wait):
        assert told(span)["muybridge.task.id"] == "task-1"
        assert told(span)["muybridge.model"] == "imga"
        assert told(span)["muybridge.family"] == "imga"
    assert told(create)["muybridge.task.status"] == "processing"
    assert told(wait)["muybridge.task.status"] == "completed"
    assert len({span.context.trace_id for span in spans.all if span.context is not None}) == 1


def test_the_attributes_of_a_request(make_client: MakeClient, world: World, spans: Spans) -> None:
    """A request's span has the attributes that the semantic conventions name."""
    make_client(world, on_event=Tracing(spans.provider)).create(image())
    assert told(spans.one("POST /v1/imga/images")) == {
        "http.request.method": "POST",
        "url.scheme": "https",
        "server.address": "service.test",
        "server.port": 443,
        "url.path": "/v1/imga/images",
        "url.full": "https://service.test:443/v1/imga/images",
        "url.template": "/v1/imga/images",
        "http.request.body.size": 47,
        "http.response.status_code": 200,
        "http.response.body.size": 98,
    }


def test_no_header_is_added(make_client: MakeClient, spans: Spans) -> None:
    """What is sent is what the specification says: a trace is not told to the service."""
    heads: list[bytes] = []
    for listener in (None, Tracing(spans.provider)):
        film = Film()
        with ScriptedServer(film) as server, spans.tracer.start_as_current_span("mine"):
            client = make_client(server.url, on_event=listener)
            client.call("GET", "/v1/else")
            heads += [head.replace(server.address.encode(), b"host") for head in film.asked]
    assert heads[0] == heads[1]


def test_retries(make_client: MakeClient, world: World, spans: Spans) -> None:
    """Each try is a span of its own, with its count, and how it failed."""
    world.instead.extend([HttpResponse(429, (("Retry-After", "7"),)), None, LOST])
    make_client(world, on_event=Tracing(spans.provider)).run(image())
    first, second = spans.named("POST /v1/imga/images")
    assert (told(first)["error.type"], first.status.status_code) == ("429", StatusCode.ERROR)
    assert "http.request.resend_count" not in told(first)
    assert told(second)["http.request.resend_count"] == 1
    lost, again, *_ = spans.named("GET /v1/result/{id}")
    assert (told(lost)["error.type"], lost.status.status_code) == (
        "connection reset", StatusCode.ERROR,
    )  # fmt: skip
    assert told(lost)["muybridge.failure.phase"] == "head"
    assert "http.response.status_code" not in told(lost)
    assert told(again)["http.request.resend_count"] == 1
    create, wait = spans.one("muybridge create"), spans.one("muybridge wait")
    assert [event.name for event in create.events] == [
        "muybridge.Throttled", "muybridge.Submitted",
    ]  # fmt: skip
    assert create.events[0].attributes == {"muybridge.what": "create", "muybridge.delay": 7.0}
    assert wait.events[0].name == "muybridge.WillRetry"
    retry = wait.events[0].attributes
    assert retry is not None
    assert retry["muybridge.cause"] == "connection reset while waiting for the response"
    assert create.status.status_code is wait.status.status_code is StatusCode.UNSET


def test_states_are_noted_once(make_client: MakeClient, spans: Spans) -> None:
    """A wait's span has an event for each new status, not for each query."""
    world = World(timing=Timing(image_queued=0, image_processing=30))
    make_client(world, on_event=Tracing(spans.provider)).run(image())
    events = spans.one("muybridge wait").events
    assert [(event.attributes or {})["muybridge.task.status"] for event in events] == [
        "processing", "completed",
    ]  # fmt: skip
    assert len(world.queries) > 2


def failing() -> World:
    world = World()
    world.always = HttpResponse(500, (), b'{"message": "no horses"}')
    return world


@pytest.mark.parametrize(
    ("make_world", "prompt", "kind", "name"),
    [
        (failing, "a horse", CreateAmbiguous, "muybridge create"),
        (World, f"[fail:{next(iter(FAILURES))}]", TaskFailed, "muybridge wait"),
    ],
    ids=["ambiguous", "failed"],
)
def test_errors(
    make_client: MakeClient,
    spans: Spans,
    make_world: Callable[[], World],
    prompt: str,
    kind: type[Exception],
    name: str,
) -> None:
    """A call that fails says by which error, and not a word of the service."""
    with pytest.raises(kind):
        make_client(make_world(), on_event=Tracing(spans.provider)).run(image(prompt))
    span = spans.one(name)
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert told(span)["error.type"] == kind.__name__
    assert span.events[-1].name == "exception"
    assert span.events[-1].attributes == {"exception.type": kind.__name__}
    assert "no horses" not in "".join(span.to_json() for span in spans.all)


def test_a_download(make_client: MakeClient, spans: Spans, tmp_path: Path) -> None:
    """A download's requests are named by their method alone, and have no query."""
    film = Film(cuts=(300,))
    film.instead.append(response_bytes(302, b"", location="/b?signed"))
    with ScriptedServer(film) as server:
        client = make_client(server.url, on_event=Tracing(spans.provider))
        client.download(f"{server.url}/a?secret", tmp_path / "film.mp4")
        address = server.url
    download = spans.one("muybridge download")
    assert told(download)["muybridge.download.size"] == len(MEDIA)
    requests = spans.below(download)
    assert [span.name for span in requests] == ["GET"] * 3
    assert [told(span)["url.full"] for span in requests] == [
        f"{address}/a", f"{address}/b", f"{address}/b",
    ]  # fmt: skip
    assert [told(span).get("http.response.status_code") for span in requests] == [302, 200, 206]
    assert told(requests[1])["error.type"] == "truncated"
    everything = "".join(span.to_json() for span in spans.all)
    assert "secret" not in everything
    assert "signed" not in everything


def test_text(make_client: MakeClient, world: World, spans: Spans) -> None:
    """A text and a stream are spans with tokens, and the stream's request counts chunks."""
    client = make_client(world, on_event=Tracing(spans.provider))
    client.generate_content(MODEL, PROMPT)
    chunks = spend(client, "stream_generate_content")
    whole, stream = spans.one("muybridge text"), spans.one("muybridge text stream")
    for span in (whole, stream):
        assert told(span)["muybridge.model"] == MODEL
        assert told(span)["muybridge.tokens.total"]
    (post,) = spans.below(stream)
    assert post.name == "POST /v1/models/{model}:streamGenerateContent"
    assert told(post)["muybridge.chunks"] == len(chunks)
    assert PROMPT not in "".join(span.to_json() for span in spans.all)


def test_assets(make_client: MakeClient, world: World, spans: Spans) -> None:
    """A deletion is a span, too."""
    make_client(world, on_event=Tracing(spans.provider)).delete_asset("asset-1")
    (request,) = spans.below(spans.one("muybridge delete"))
    assert request.name == "DELETE /vidsb/asset/{id}"


def test_a_stream_that_is_left(make_client: MakeClient, world: World, spans: Spans) -> None:
    """A stream that is left ends its spans, without an error."""
    client = make_client(world, on_event=Tracing(spans.provider))
    with client.stream_generate_content(MODEL, PROMPT) as stream:
        next(stream)
    assert told(spans.one("muybridge text stream"))["muybridge.left"] is True
    assert {span.status.status_code for span in spans.all} == {StatusCode.UNSET}
    assert len(spans.all) == 2


def test_a_run_of_many(make_client: MakeClient, world: World, spans: Spans) -> None:
    """In a run of many tasks every call is below the caller's span, and has its own requests."""
    client = make_client(world, on_event=Tracing(spans.provider))
    with spans.tracer.start_as_current_span("mine"):
        seen = run_all(client, [image(f"horse {number}") for number in range(12)], concurrency=4)
    mine = spans.one("mine")
    calls = [*spans.named("muybridge create"), *spans.named("muybridge wait")]
    assert len(calls) == 2 * len(seen) == len(spans.below(mine))
    for call in calls:
        task = told(call)["muybridge.task.id"]
        (outcome,) = [outcome for outcome in seen if outcome.unwrap().id == task]
        assert told(call)["muybridge.work"] == outcome.key
        for request in spans.below(call):
            assert request.start_time is not None
            assert call.start_time is not None
            assert call.start_time <= request.start_time
            if request.name.startswith("GET"):
                assert told(request)["url.path"] == f"/v1/result/{task}"
    assert len(spans.all) == 1 + len(calls) + len(world.seen)


def test_callers_at_once(spans: Spans) -> None:
    """Threads that share a client each have their own span above their calls."""
    world = World(assets=("asset-1", "asset-2"))
    tracing = Tracing(spans.provider)
    barrier = threading.Barrier(2)

    def act(name: str) -> None:
        with spans.tracer.start_as_current_span(name):
            barrier.wait(10)
            client.delete_asset(name)

    inside = InProcessTransport(world)
    with muybridge.Client(
        world.key, world.url, transport=inside, clock=world.clock, on_event=tracing
    ) as client:
        threads = [threading.Thread(target=act, args=(name,)) for name in ("asset-1", "asset-2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    for name in ("asset-1", "asset-2"):
        (call,) = spans.below(spans.one(name))
        (request,) = spans.below(call)
        assert told(request)["url.path"] == f"/vidsb/asset/{name}"


def test_tasks_at_once(spans: Spans) -> None:
    """Tasks of one nursery each have their own span above their calls."""
    world = World(assets=("asset-1", "asset-2"))
    client = muybridge.TrioClient(
        world.key,
        world.url,
        transport=AsyncFace(InProcessTransport(world)),
        on_event=Tracing(spans.provider),
    )

    async def act(name: str) -> None:
        with spans.tracer.start_as_current_span(name):
            await trio.lowlevel.checkpoint()
            await client.delete_asset(name)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in ("asset-1", "asset-2"):
                nursery.start_soon(act, name)

    trio.run(main)
    for name in ("asset-1", "asset-2"):
        (call,) = spans.below(spans.one(name))
        (request,) = spans.below(call)
        assert told(request)["url.path"] == f"/vidsb/asset/{name}"


def test_a_batch(spans: Spans, tmp_path: Path) -> None:
    """The calls of a batch are below the span in which it was run."""
    world = World()
    inside = InProcessTransport(world)
    with (
        muybridge.Client(
            world.key,
            world.url,
            transport=inside,
            clock=world.clock,
            on_event=Tracing(spans.provider),
        ) as client,
        spans.tracer.start_as_current_span("mine"),
    ):
        batch.run(client, [image(), image()], tmp_path, concurrency=2)
    kinds = sorted(span.name for span in spans.below(spans.one("mine")))
    assert kinds == [
        *["muybridge create"] * 2, *["muybridge download"] * 2, *["muybridge wait"] * 2,
    ]  # fmt: skip


def test_beside_a_listener(make_client: MakeClient, spans: Spans) -> None:
    """Another listener receives the same events as it would alone."""
    alone, beside = Heard(), Heard()
    for listener in (alone, Tracing(spans.provider, on_event=beside)):
        make_client(World(), on_event=listener).run(image())
    assert beside.kinds == alone.kinds
    assert beside.kinds[:2] == ["CallBegan", "RequestSent"]


def test_the_program_s_own_provider(make_client: MakeClient, world: World) -> None:
    """Without a provider of its own it takes the program's, which may do nothing."""
    result = make_client(world, on_event=Tracing()).run(image())
    assert result.id == "task-1"


def test_it_is_an_extra() -> None:
    """Neither the clients nor the logs need OpenTelemetry."""
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import muybridge, muybridge.batch\n"
        "import muybridge.drivers.tracking, muybridge.observability.logs\n"
        "muybridge.Client, muybridge.TrioClient\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
