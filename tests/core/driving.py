"""A driver on a virtual clock: it plays a script of responses and failures to an operation."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

from muybridge_protocol.events import Event
from muybridge_protocol.families import ImgaRequest
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.operations import (
    Call,
    Create,
    DeleteAsset,
    Download,
    Fetch,
    Operation,
    Poll,
    Send,
    Settled,
    Wait,
)
from muybridge_protocol.operations.download import DownloadStage, Part
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.service import Service
from muybridge_protocol.text.encoding import encode_content
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentResponse

WALL = 1_760_000_000.0
"""Unix seconds when the virtual clock shows zero."""

SERVICE = Service(base_url="https://api.example.com", text_base_url="http://text.example.com")
REQUEST = ImgaRequest(model="imga", prompt="a horse")
TEXT_REQUEST = GenerateContentRequest(model="textg-2.5-pro", contents="what is a horse?")
SEEDED: dict[str, Any] = {"seed": 0}
START: dict[str, Any] = {"now": 0.0}
LINK = "https://cdn.example.net/a.mp4"


@dataclass(frozen=True)
class Streamed:
    """A response in pieces, and how it ends."""

    head: HttpHead
    pieces: tuple[bytes, ...] = ()
    failure: TransportFailure | None = None


T = TypeVar("T")

Reaction = HttpResponse | TransportFailure | Streamed


@dataclass(frozen=True)
class After:
    """A reaction that takes its time."""

    seconds: float
    reaction: Reaction


@dataclass
class Run:
    """What a driver saw of an operation."""

    operation: Operation[Any]
    outcome: Any = None
    requests: list[HttpRequest] = field(default_factory=list[HttpRequest])
    times: list[float] = field(default_factory=list[float])
    deadlines: list[float] = field(default_factory=list[float])
    events: list[Event] = field(default_factory=list[Event])
    actions: int = 0
    now: float = 0.0
    disk: bytearray = field(default_factory=bytearray)

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.requests]

    @property
    def gaps(self) -> list[float]:
        return [later - sooner for sooner, later in zip(self.times, self.times[1:], strict=False)]


class UnforeseenRequest(AssertionError):
    """More was sent than the script has reactions for."""


Action = Send | Fetch | Wait | Settled[Any]


def next_action(operation: Operation[Any], now: float) -> Action:
    return operation.next_action(now)


def drive(
    operation: Operation[Any],
    *script: Reaction | After,
    forever: Reaction | After | None = None,
    now: float = 0.0,
    disk: bytes = b"",
    limit: int = 100_000,
) -> Run:
    """Drive *operation* to its end, answering with *script* and then with *forever*."""
    run = Run(operation, now=now, disk=bytearray(disk))
    reactions = iter(script)
    while run.actions < limit:
        run.actions += 1
        match next_action(run.operation, run.now):
            case Settled(outcome):
                run.outcome = outcome
                return run
            case Wait(until):
                assert until > run.now, "a wait that does not wait"
                run.now = until
            case Send(request, deadline) | Fetch(request, deadline) as action:
                run.requests.append(request)
                run.times.append(run.now)
                run.deadlines.append(deadline)
                reaction = next(reactions, forever)
                if reaction is None:
                    raise UnforeseenRequest(f"{request} after {run.events}")
                if isinstance(reaction, After):
                    run.now += reaction.seconds
                    reaction = reaction.reaction
                run.operation = _react(run, action, reaction)
                run.events += run.operation.events
    raise AssertionError(f"no end after {limit} actions")


def _react(run: Run, action: Send | Fetch, reaction: Reaction) -> Operation[Any]:
    operation = run.operation
    if isinstance(reaction, TransportFailure):
        return operation.fail(reaction, run.now)
    if isinstance(action, Send):
        if isinstance(reaction, Streamed):
            body = b"".join(reaction.pieces)
            reaction = HttpResponse(reaction.head.status, reaction.head.headers, body)
        return operation.receive(reaction, run.now)
    if isinstance(reaction, HttpResponse):
        reaction = Streamed(HttpHead(reaction.status, reaction.headers), (reaction.body,))
    if isinstance(operation, OpenStream):
        return _open(run, operation, reaction)
    assert isinstance(operation, Download)
    return _stream(run, operation, reaction)


def _open(run: Run, operation: OpenStream, reply: Streamed) -> OpenStream:
    operation = operation.accept(reply.head, run.now)
    if operation.settled is not None:
        return operation
    if reply.failure is not None:
        return operation.fail(reply.failure, run.now)
    body = b"".join(reply.pieces)
    return operation.receive(HttpResponse(reply.head.status, reply.head.headers, body), run.now)


def _stream(run: Run, operation: Download, reply: Streamed) -> Download:
    operation = operation.accept(reply.head, run.now)
    if operation.settled is not None or operation.stage is not DownloadStage.READING:
        return operation
    assert operation.part.offset <= len(run.disk), "a hole in the file"
    del run.disk[operation.part.offset :]
    for piece in reply.pieces:
        operation = operation.take(piece)
        if operation.settled is not None:
            return operation
        run.disk += piece
        assert operation.part.offset == len(run.disk)
        run.events += operation.events
    if reply.failure is not None:
        return operation.fail(reply.failure, run.now)
    return operation.end(run.now)


# Operations at their beginning.


def create(*, now: float = 0.0, **options: Any) -> Create:
    return Create.start(REQUEST, SERVICE, now=now, wall=WALL + now, **SEEDED | options)


def task(name: str = "t1", **fields: Any) -> Task:
    return Task(id=name, **fields)


def poll(about: Task | None = None, *, now: float = 0.0, **options: Any) -> Poll:
    """Return a poll; of a bare id unless told otherwise, which is asked for at once."""
    chosen = about if about is not None else task()
    return Poll.start(chosen, SERVICE, now=now, wall=WALL + now, **SEEDED | options)


def newborn_poll(**options: Any) -> Poll:
    """Return the poll of a task that was created five seconds ago, which is asked for at once."""
    return poll(task(submitted_at=WALL - 5), **options)


def query(about: Task | None = None, **options: Any) -> Poll:
    return Poll.query(
        about if about is not None else task(), SERVICE, now=0, wall=WALL, **SEEDED | options
    )


def delete(**options: Any) -> DeleteAsset:
    return DeleteAsset.start("a1", SERVICE, now=0, **SEEDED | options)


def call(method: str = "POST", path: str = "/v1/chat/completions", **options: Any) -> Call:
    return Call.start(method, path, SERVICE, now=0, **SEEDED | options)


def text_call(**options: Any) -> TextCall[GenerateContentResponse]:
    sent = encode_content(TEXT_REQUEST, SERVICE)
    return TextCall[GenerateContentResponse].start(
        sent, GenerateContentResponse, SERVICE, **START | SEEDED | options
    )


def open_stream(**options: Any) -> OpenStream:
    sent = encode_content(TEXT_REQUEST, SERVICE, stream=True)
    return OpenStream.start(sent, SERVICE, **START | SEEDED | options)


def download(
    url: str | None = LINK, *, about: Task | None = None, part: Part | None = None, **options: Any
) -> Download:
    return Download.start(url, SERVICE, task=about, part=part, now=0, **SEEDED | options)


# Reactions.


def reply(status: int, record: object = None, **headers: str) -> HttpResponse:
    """Return a response with *record* as its JSON body, or without a body."""
    body = b"" if record is None else json.dumps(record).encode()
    return HttpResponse(status, _headers(headers), body)


def raw(status: int, body: bytes, **headers: str) -> HttpResponse:
    return HttpResponse(status, _headers(headers), body)


def _headers(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in headers.items())


def media(status: int, *pieces: bytes, broken: bool = False, **headers: str) -> Streamed:
    """Return a response with a file; *broken* if its connection breaks after the last piece."""
    failure = lost(Phase.BODY, Reason.TRUNCATED) if broken else None
    return Streamed(HttpHead(status, _headers(headers)), pieces, failure)


def unsent(reason: Reason = Reason.REFUSED, phase: Phase = Phase.CONNECT) -> TransportFailure:
    return TransportFailure(phase=phase, sent=False, reason=reason)


def lost(
    phase: Phase = Phase.HEAD,
    reason: Reason = Reason.RESET,
    *,
    partial: bytes = b"",
    status: int | None = None,
) -> TransportFailure:
    """Return the failure of an exchange whose request, or a part of it, has left."""
    return TransportFailure(
        phase=phase, sent=True, reason=reason, bytes_sent=200, partial=partial, status=status
    )


def record(status: str, name: str = "t1", **fields: object) -> dict[str, object]:
    return {"id": name, "status": status, **fields}


def result(status: str, name: str = "t1", **fields: object) -> HttpResponse:
    return reply(200, record(status, name, **fields))


DONE = result("completed", video_url=LINK)


def repeat(count: int, reaction: T) -> list[T]:
    return [reaction] * count
