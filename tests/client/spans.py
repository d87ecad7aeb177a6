"""The spans that a program gets from its tracers, kept for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer


class Spans:
    """A tracer of a program's own, and the spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def tracer(self) -> Tracer:
        return self.provider.get_tracer("program")

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of that name."""
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """Return the only span of that name."""
        (span,) = self.named(name)
        return span

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        """Return the children of a span."""
        return [span for span in self.all if is_child(span, parent)]


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    assert parent.context is not None
    return span.parent is not None and span.parent.span_id == parent.context.span_id


def told(span: ReadableSpan) -> Mapping[str, Any]:
    """Return a span's attributes."""
    assert span.attributes is not None
    return span.attributes
