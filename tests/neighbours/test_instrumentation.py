"""OpenTelemetry's instrumentation of requests and of urllib3 shows its spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import muybridge
from transport.scripted_server import ScriptedServer, read_request, reset

from .conftest import KEY, Studio

IMAGE = muybridge.ImgbRequest(model="imgb-2", prompt="a horse")


@pytest.fixture(params=[RequestsInstrumentor, URLLib3Instrumentor])
def exporter(request: pytest.FixtureRequest) -> Iterator[InMemorySpanExporter]:
    """What collects the spans of each instrumentation in turn."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor: Any = request.param()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def test_spans(studio: Studio, exporter: InMemorySpanExporter) -> None:
    """Each exchange has a span with its method, URL and status, and without the key."""
    result = studio.client.run(IMAGE)
    spans = [span.attributes or {} for span in exporter.get_finished_spans()]
    assert result.id == "task-1"
    assert studio.posts == 1
    assert [span["http.method"] for span in spans] == ["POST", "GET"]
    assert [span["http.status_code"] for span in spans] == [200, 200]
    assert all(str(span["http.url"]).startswith(studio.url) for span in spans)
    assert KEY not in repr(spans)


def test_the_trace_is_propagated(studio: Studio, exporter: InMemorySpanExporter) -> None:
    """The service is told the trace, as an instrumentation does that adds a header."""
    studio.client.run(IMAGE)
    assert studio.server.received.count(b"traceparent: ") == 2
    assert len(exporter.get_finished_spans()) == 2


def test_a_failure(exporter: InMemorySpanExporter) -> None:
    """A create whose response is lost has one span, with an error, and is not sent again."""
    with (
        ScriptedServer([read_request, reset]) as server,
        muybridge.Client(KEY, server.url) as client,
    ):
        with pytest.raises(muybridge.CreateAmbiguous, match="connection reset"):
            client.create(IMAGE)
        assert server.posts == 1
    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok
    assert KEY not in repr(span.attributes)
