"""What happens to spans if another listener raises, and to calls if tracing raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

import moments
from muybridge.observability.opentelemetry import Tracing
from muybridge_protocol.events import Submitted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    ExchangeFailed,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)

from .answers import MODEL, PROMPT
from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .heard import Heard
from .in_process import World
from .requests_made import image
from .spans import Spans, told


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.provider.shutdown()


class Mine(Exception):
    """An error of the program's own."""


class Unended(SpanProcessor):
    """Keeps the names of the spans that were started and have not ended."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(
        self,
        span: Span,
        parent_context: Context | None = None,  # noqa: ARG002  given by its name
    ) -> None:
        self.names.append(span.name)

    def on_end(self, span: ReadableSpan) -> None:
        self.names.remove(span.name)


def raising(kind: type[Any]) -> Callable[[AnyEvent], None]:
    def listen(event: AnyEvent) -> None:
        if isinstance(event, kind):
            raise Mine

    return listen


def _create(client: AnyClient) -> None:
    client.create(image())


def _run_many(client: AnyClient) -> None:
    run_all(client, [image(), image()], concurrency=2)


def _leave_stream(client: AnyClient) -> None:
    with client.stream_generate_content(MODEL, PROMPT) as stream:
        next(stream)


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        *[
            (act, kind)
            for act in (_create, _run_many)
            for kind in (CallBegan, RequestSent, ResponseReceived, Submitted, CallEnded)
        ],
        *[
            (_leave_stream, kind)
            for kind in (CallBegan, RequestSent, ResponseBegan, ResponseReceived)
        ],
    ],
)
def test_a_listener_that_raises(
    make_client: MakeClient,
    world: World,
    spans: Spans,
    act: Callable[[AnyClient], None],
    kind: type[Any],
) -> None:
    """Whatever another listener raises comes out, and every span has ended and been released."""
    unended = Unended()
    spans.provider.add_span_processor(unended)
    tracing = Tracing(spans.provider, on_event=raising(kind))
    with pytest.raises(Mine):
        act(make_client(world, on_event=tracing))
    assert spans.all
    assert not unended.names
    assert not moments.spans_under_way(tracing)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (CallBegan, ["muybridge create"]),
        (RequestSent, ["POST /v1/imga/images", "muybridge create"]),
    ],
)
def test_the_spans_of_a_listener_s_error(
    make_client: MakeClient, world: World, spans: Spans, kind: type[Any], names: list[str]
) -> None:
    """A span that another listener's error interrupted names the class of that error."""
    with pytest.raises(Mine):
        make_client(world, on_event=Tracing(spans.provider, on_event=raising(kind))).create(image())
    assert [span.name for span in spans.all] == names
    assert [told(span)["error.type"] for span in spans.all] == ["Mine"] * len(names)
    assert {span.status.status_code for span in spans.all} == {StatusCode.ERROR}
    assert [event.name for event in spans.all[-1].events] == ["exception"]


def test_a_listener_that_raises_when_a_broken_exchange_ends(
    make_client: MakeClient, world: World, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the call is still reported, with the error that interrupted it."""

    def broken(*_: object) -> HttpResponse:
        raise MemoryError

    monkeypatch.setattr(world, "answer", broken)
    tracing = Tracing(spans.provider, on_event=raising(ExchangeFailed))
    with pytest.raises(MemoryError):
        make_client(world, on_event=tracing).get("task-9")
    assert told(spans.one("muybridge get"))["error.type"] == "MemoryError"
    assert not moments.spans_under_way(tracing)


class Broken(SpanProcessor):
    """A processor that raises when a span starts, or when it ends."""

    def __init__(self, when: str) -> None:
        self._when = when

    def on_start(
        self,
        span: Span,
        parent_context: Context | None = None,  # noqa: ARG002  given by its name
    ) -> None:
        if self._when == "start":
            raise RuntimeError(span.name)

    def on_end(self, span: ReadableSpan) -> None:
        if self._when == "end":
            raise RuntimeError(span.name)


@pytest.mark.parametrize("when", ["start", "end"])
def test_a_processor_that_raises(
    make_client: MakeClient, world: World, spans: Spans, when: str
) -> None:
    """Tracing that fails interrupts no call, and another listener receives every event."""
    spans.provider.add_span_processor(Broken(when))
    heard = Heard()
    tracing = Tracing(spans.provider, on_event=heard)
    assert make_client(world, on_event=tracing).create(image()).id == "task-1"
    assert heard.kinds == ["CallBegan", "RequestSent", "ResponseReceived", "Submitted", "CallEnded"]
    assert len(spans.all) == (2 if when == "end" else 0)
    assert not moments.spans_under_way(tracing)


@pytest.mark.parametrize("kind", [CallBegan, RequestSent])
def test_a_processor_and_a_listener_that_raise(
    make_client: MakeClient, world: World, spans: Spans, kind: type[Any]
) -> None:
    """The listener's error is the one that comes out."""
    spans.provider.add_span_processor(Broken("end"))
    tracing = Tracing(spans.provider, on_event=raising(kind))
    with pytest.raises(Mine):
        make_client(world, on_event=tracing).create(image())
    assert not moments.spans_under_way(tracing)
