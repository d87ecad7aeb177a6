"""What observers, logs and spans never show: keys, headers, queries, prompts, bodies, messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import muybridge
from muybridge import MuybridgeError
from muybridge.observability.facts import ALLOWED, CALL, facts
from muybridge.observability.opentelemetry import Tracing
from muybridge_protocol.events import Event
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.observations import CallInfo, Observation

from .answers import MODEL, spend
from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .heard import Heard
from .in_process import MP4, VirtualClock, World

CANARY = "canary-9f86d081"
KEY = f"sk-{CANARY}-key"
LINK = f"https://media.example.com/film.mp4?X-Signature={CANARY}#{CANARY}"

HEADERS = (
    ("Set-Cookie", f"session={CANARY}"),
    ("X-Request-Id", CANARY),
    ("ETag", f'"{CANARY}"'),
    ("Content-Type", "video/mp4"),
    ("Content-Disposition", f"attachment; filename={CANARY}"),
)
TASK = {
    "id": "task-1", "object": CANARY, "created": 1, "model": "imga", "status": "queued",
    "error": CANARY, "prompt": CANARY,
}  # fmt: skip
ENDED = {**TASK, "status": "completed", "image_url": LINK, "video_url": LINK}
SAID = json.dumps({"error": {"message": f"{CANARY} {KEY}"}, "code": CANARY, "msg": CANARY}).encode()
FAILURE = TransportFailure(
    phase=Phase.BODY,
    sent=True,
    reason=Reason.TRUNCATED,
    bytes_sent=7,
    partial=CANARY.encode(),
    status=200,
    detail=f"{CANARY} {KEY} {LINK}",
)

ANSWERS: dict[str, list[HttpResponse | TransportFailure]] = {
    "accepted": [
        HttpResponse(200, HEADERS, json.dumps(TASK).encode()),
        HttpResponse(200, HEADERS, json.dumps(ENDED).encode()),
    ],
    "failed": [
        HttpResponse(200, HEADERS, json.dumps(TASK).encode()),
        HttpResponse(200, HEADERS, json.dumps({**TASK, "status": "failed"}).encode()),
    ],
    "refused": [HttpResponse(400, HEADERS, SAID)],
    "throttled": [HttpResponse(429, HEADERS, SAID)],
    "broken": [HttpResponse(500, HEADERS, SAID)],
    "not JSON": [HttpResponse(200, HEADERS, f"<{CANARY} {KEY}".encode())],
    "redirected": [HttpResponse(302, (*HEADERS, ("Location", LINK)), SAID)],
    "a film": [HttpResponse(200, HEADERS, MP4 + CANARY.encode())],
    "lost": [FAILURE],
    "unsent": [attrs.evolve(FAILURE, sent=False, phase=Phase.CONNECT)],
}


def request() -> muybridge.MediaRequest:
    return muybridge.ImgaRequest(model="imga", prompt=CANARY, image_urls=[LINK])


BODY = {"model": MODEL, "messages": [{"role": "user", "content": CANARY}]}

CALLS: dict[str, Callable[[AnyClient, Path], object]] = {
    "run": lambda client, _: client.run(request(), timeout=300),
    "run_all": lambda client, _: run_all(client, [request(), "task-1"], timeout=300),
    "get": lambda client, _: client.get("task-1"),
    "download": lambda client, folder: client.download(LINK, folder, timeout=300),
    "delete": lambda client, _: client.delete_asset("asset-1"),
    "call": lambda client, _: client.call("POST", f"/v1/else?key={CANARY}", {"a": CANARY}),
    "text": lambda client, _: client.generate_content(MODEL, CANARY, system_instruction=CANARY),
    "chat": lambda client, _: client.chat_completions(BODY),
    "messages": lambda client, _: client.messages(BODY),
    "stream": lambda client, _: spend(client, "stream_generate_content"),
}


class Recorder(logging.Handler):
    """Keeps records with all their attributes as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {vars(record)!r}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    logger, recorder = logging.getLogger("muybridge"), Recorder()
    level = logger.level
    logger.addHandler(recorder)
    logger.setLevel(logging.DEBUG)
    yield recorder.lines
    logger.removeHandler(recorder)
    logger.setLevel(level)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("call", CALLS)
def test_nothing_secret_is_shown(
    make_client: MakeClient, logged: list[str], tmp_path: Path, call: str, answer: str
) -> None:
    """Whatever is in a request, a response or an address, no observer is shown it."""
    world = World(key=KEY, clock=VirtualClock())
    *first, last = ANSWERS[answer]
    world.instead.extend(first)
    world.always = last
    exporter, heard = InMemorySpanExporter(), Heard()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    client = make_client(world, on_event=Tracing(provider, on_event=heard))
    with suppress(MuybridgeError):
        CALLS[call](client, tmp_path)
    provider.shutdown()
    spans = [span.to_json() for span in exporter.get_finished_spans()]
    observed = [event for event in heard.events if not isinstance(event, Event)]
    assert len(spans) > 1
    assert len(logged) > 2
    assert len(observed) > 3
    shown = [
        *spans,
        *logged,
        *(f"{event!r} {attrs.asdict(event)!r}" for event in observed),
        *(repr(facts(event)) for event in heard.events),
        *(repr(event.call) for event in heard.events),
    ]
    assert [text for text in shown if CANARY in text] == []


def test_the_list_is_whole() -> None:
    """Every kind of event is on the list, and an observation has no attribute that is not."""
    where = "ALLOWED in transports/muybridge/observability/facts.py"
    listed = {kind.__name__ for kind in ALLOWED}
    known = {kind.__name__ for kind in (*get_args(Event), *get_args(Observation))}
    assert listed == known, f"add {known - listed} to {where}, or remove {listed - known}"
    for kind in get_args(Observation):
        # `consumed` is no plain fact: metrics count it.
        names = {field.name for field in attrs.fields(kind)} - {"call", "consumed"}
        assert names == set(ALLOWED[kind]), kind
    # Tags are no plain fact either: spans show each of them by its key.
    names = {f"call.{field.name}" for field in attrs.fields(CallInfo)} - {"call.tags"}
    assert names == set(CALL)


def test_facts_are_plain(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """A fact is a text, a number or a truth, as logs and spans take them."""
    heard = Heard()
    client = make_client(world, on_event=heard)
    client.download(client.run(muybridge.ImgaRequest(model="imga", prompt="a horse")), tmp_path)
    found: list[Any] = [value for event in heard.events for value in facts(event).values()]
    assert {type(value) for value in found} == {str, int, float, bool}


def test_names_are_shown_on_one_line(make_client: MakeClient, world: World) -> None:
    """What the service calls a model or a status cannot forge a line of a log, nor fill it."""
    record = {**TASK, "model": "a\nWARNING forged", "status": "b\r\nforged" + "x" * 10_000}
    world.instead.append(HttpResponse(200, (), json.dumps(record).encode()))
    heard = Heard()
    client = make_client(world, on_event=heard)
    with suppress(MuybridgeError):
        client.create(muybridge.VidmRequest(prompt="a horse"))
    texts = [str(value) for event in heard.events for value in facts(event).values()]
    assert not any(mark in text for text in texts for mark in "\r\n")
    assert max(map(len, texts)) < 1000
