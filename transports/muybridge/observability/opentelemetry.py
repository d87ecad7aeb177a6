"""OpenTelemetry: a span for each call and each request (`Tracing`), and metrics (`Metrics`).

    pip install "muybridge[otel]"

    client = Client(on_event=Tracing(on_event=Metrics()))

A call's span is a child of the span that is current when the call is made, or when its `run_all` or
batch is started. Spans hold only facts that `facts` allows, and the tags of the purchase
(`muybridge.tag.customer`). No header is added to any request, because requests hold exactly what
the service's specification says. Traces therefore do not continue inside the service.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import attrs

from muybridge.extras import missing_extra
from muybridge.observability.facts import Fact, facts
from muybridge.observability.semantics import PAID, Listener, generation, tags_of
from muybridge.version import __version__
from muybridge_protocol.events import DownloadProgress
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    CallInfo,
    ExchangeFailed,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
except ModuleNotFoundError as _missing:
    raise missing_extra(__name__, _missing.name or "", "otel") from None

_CALL = {
    "call_kind": "muybridge.call.kind",
    "call_task_id": "muybridge.task.id",
    "call_family": "muybridge.family",
    "call_model": "muybridge.model",
    "call_work": "muybridge.work",
}
_CALL_ENDED = {
    **_CALL,
    "error": "error.type",
    "left": "muybridge.left",
    "outcome": "muybridge.outcome",
    "status": "muybridge.task.status",
    "size": "muybridge.download.size",
    "prompt_tokens": "muybridge.tokens.prompt",
    "answer_tokens": "muybridge.tokens.answer",
    "total_tokens": "muybridge.tokens.total",
}
_GENERATED = {
    "call_task_id": "gen_ai.response.id",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "answer_tokens": "gen_ai.usage.output_tokens",
}
_REQUEST = {
    "method": "http.request.method",
    "scheme": "url.scheme",
    "host": "server.address",
    "port": "server.port",
    "path": "url.path",
    "template": "url.template",
    "size": "http.request.body.size",
}
_RESPONSE = {
    "status": "http.response.status_code",
    "size": "http.response.body.size",
    "chunks": "muybridge.chunks",
    "first_chunk": "muybridge.first_chunk",
    "phase": "muybridge.failure.phase",
    "sent": "muybridge.failure.sent",
}
"""The attributes that facts become, named by the semantic conventions where they have a name."""

_REFUSED = 400
"""The lowest status that the semantic conventions call an error for a client."""


@attrs.define
class _Open:
    """The open spans of a call in progress."""

    call: Span
    request: Span | None = None
    status: str | None = None


class Tracing(Listener):
    """A listener that creates spans. Any number of clients can share one.

        Client(on_event=Tracing())
        Client(on_event=Tracing(on_event=mine))

    Args:
        tracer_provider: Where spans go, or None for the program's global provider.
        on_event: Another listener, which receives the same events, or None.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        on_event: Callable[[AnyEvent], None] | None = None,
    ) -> None:
        super().__init__(on_event)
        self._tracer = trace.get_tracer("muybridge", __version__, tracer_provider)
        self._open: dict[int, _Open] = {}
        self._guard = threading.Lock()

    def _record(self, event: AnyEvent, info: CallInfo) -> None:
        if isinstance(event, CallBegan):
            attributes = {**_named(facts(event), _CALL), **tags_of(info)}
            if info.kind in PAID:  # a wait is part of what a create has begun
                attributes |= generation(info)
            span = self._tracer.start_span(f"muybridge {info.kind}", attributes=attributes)
            with self._guard:
                self._open[info.number] = _Open(span)
            return
        with self._guard:
            spans = self._open.get(info.number)
            if isinstance(event, CallEnded):
                self._open.pop(info.number, None)
        if spans is None:  # the call began before this listener was added
            return
        match event:
            case RequestSent():
                spans.request = self._start_request(event, spans.call)
            case ResponseBegan() | DownloadProgress():
                pass
            case ResponseReceived() | ExchangeFailed():
                _end_request(event, spans)
            case CallEnded():
                _end_call(event, spans)
            case _:
                _note(event, spans)

    def _break_off(self, event: AnyEvent, info: CallInfo, error: str) -> None:
        """End the span that *event* has started, with *error*: no later event will end it."""
        span: Span | None = None
        with self._guard:
            if isinstance(event, CallBegan):
                spans = self._open.pop(info.number, None)
                span = None if spans is None else spans.call
            elif isinstance(event, RequestSent) and info.number in self._open:
                # The call's own span ends with `CallEnded`, which still comes.
                spans = self._open[info.number]
                span, spans.request = spans.request, None
        if span is None:
            return
        if isinstance(event, CallBegan):
            _note_exception(span, error)
        _fail(span, error)
        span.end()

    def _start_request(self, event: RequestSent, parent: Span) -> Span:
        attributes = _named(facts(event), _REQUEST)
        attributes["url.full"] = event.url
        if event.resends:
            attributes["http.request.resend_count"] = event.resends
        return self._tracer.start_span(
            event.method if event.template is None else f"{event.method} {event.template}",
            context=trace.set_span_in_context(parent),
            kind=SpanKind.CLIENT,
            attributes=attributes,
        )


def _end_request(event: ResponseReceived | ExchangeFailed, spans: _Open) -> None:
    span, spans.request = spans.request, None
    if span is None:
        return
    values = facts(event)
    span.set_attributes(_named(values, _RESPONSE))
    if isinstance(event, ExchangeFailed):
        _fail(span, str(values["reason"]))
    elif event.status >= _REFUSED:
        _fail(span, str(event.status))
    span.end()


def _end_call(event: CallEnded, spans: _Open) -> None:
    span, values = spans.call, facts(event)
    span.set_attributes(_named(values, _CALL_ENDED))
    if event.call.kind in PAID:
        span.set_attributes(_named(values, _GENERATED))
    error = values.get("error")
    if error is not None:
        _note_exception(span, str(error))
        _fail(span, str(error))
    span.end()


def _note(event: AnyEvent, spans: _Open) -> None:
    """Add *event* to the call's span. A poll that repeats the known status is skipped."""
    values = facts(event)
    status = values.pop("status", None)
    if values.pop("changed", True) is False and status == spans.status:
        return
    attributes = {
        f"muybridge.{name}": value
        for name, value in values.items()
        if name != "event" and not name.startswith("call")
    }
    if status is not None:
        spans.status = str(status)
        attributes["muybridge.task.status"] = status
    spans.call.add_event(f"muybridge.{values['event']}", attributes)


def _note_exception(span: Span, kind: str) -> None:
    # The class alone, because the message may contain words of the service.
    span.add_event("exception", {"exception.type": kind})


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _named(values: Mapping[str, Fact], names: Mapping[str, str]) -> dict[str, Fact]:
    return {names[name]: value for name, value in values.items() if name in names}
