"""Every place into which the key might leak, and what it must not be found in."""

from __future__ import annotations

import contextlib
import copy
import http.client
import io
import logging
import pickle
import traceback
import warnings
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import attrs
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.traceback import Traceback

from muybridge.observability.facts import facts
from muybridge.observability.opentelemetry import Tracing
from muybridge_protocol.observations import AnyEvent
from muybridge_protocol.records.tasks import Result, Task

from .clients import KEY
from .hostile_server import SIGNATURE

SIGNED = ("repr", "str", "args", "notes", "logs", "warnings", "output", "events", "spans")
"""The sinks that people read, where the query of a signed link has no place either."""

_FORMATTER = logging.Formatter("%(name)s %(levelname)s %(message)s %(args)r %(exc_text)s")


class _Keeper(logging.Handler):
    """Keeps every record as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(_FORMATTER.format(record) + repr(vars(record)))


@attrs.define
class Sinks:
    """What was shown while a call was made, and of what came of it.

    Attributes:
        taken: By sink, everything that it took.
    """

    taken: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict[str, list[str]](list))
    _spans: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter, init=False)

    def add(self, sink: str, text: object) -> None:
        """Put something into a sink."""
        self.taken[sink].append(str(text))

    @property
    def shown(self) -> dict[str, str]:
        """By sink, everything that it took, as one text."""
        return {sink: "\n".join(texts) for sink, texts in self.taken.items()}

    @contextlib.contextmanager
    def open(self, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
        """Take what is logged, warned of and printed meanwhile, http.client's debugging too."""
        keeper, out = _Keeper(), io.StringIO()
        root = logging.getLogger()
        level = root.level
        root.addHandler(keeper)
        root.setLevel(logging.DEBUG)
        with monkeypatch.context() as patch:
            patch.setattr(http.client.HTTPConnection, "debuglevel", 1)
            try:
                with (
                    warnings.catch_warnings(record=True) as warned,
                    contextlib.redirect_stdout(out),
                    contextlib.redirect_stderr(out),
                ):
                    warnings.simplefilter("always")
                    yield
            finally:
                root.removeHandler(keeper)
                root.setLevel(level)
        self.add("logs", "\n".join(keeper.lines))
        self.add("spans", [span.to_json() for span in self._spans.get_finished_spans()])
        self.add("warnings", [str(warning) for warning in warned])
        self.add("output", out.getvalue())

    def listener(self) -> Tracing:
        """Return an `on_event` that takes every event, and the spans that are made of them."""
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        return Tracing(provider, on_event=self._hear)

    def _hear(self, event: AnyEvent) -> None:
        self.add("events", f"{event!r} {event} {facts(event)}")

    def look_at_client(self, client: object) -> None:
        """Take all that a client shows of itself, which it must not be copied for."""
        self.add("repr", repr(client))
        self.add("str", str(client))
        self.add("attributes", vars(client))
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError) as caught:
                take(client)  # type: ignore[operator]  # each takes one value
            self.add("pickle", str(caught.value))

    def look_at(self, value: object) -> None:
        """Take all that a result shows of itself."""
        self.add("repr", repr(value))
        self.add("str", str(value))
        self.add("pickle", pickle.dumps(value))
        self.add("copy", repr(vars_of(copy.deepcopy(value))))
        self.add("attributes", vars_of(value))
        if isinstance(value, Task):
            self.add("token", value.to_token())
        elif isinstance(value, Result):
            self.add("token", value.to_task().to_token())

    def look_at_error(self, error: BaseException) -> None:
        """Take all that an error shows of itself, the variables of its traceback included."""
        self.add("repr", repr(error))
        self.add("str", str(error))
        self.add("args", repr(error.args))
        self.add("notes", getattr(error, "__notes__", ()))
        self.add("attributes", vars_of(error))
        self.add("pickle", pickle.dumps(error))
        self.add("copy", repr(vars_of(copy.copy(error))))
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        self.add("traceback", "".join(told.format()))
        self.add("rich traceback", rich_text(type(error), error, error.__traceback__))
        task = getattr(error, "task", None)
        if isinstance(task, Task):
            self.add("token", task.to_token())

    def look_at_files(self, folder: Path) -> None:
        """Take every file that was written, a store among them."""
        for path in folder.rglob("*"):
            sink = "store" if "store" in path.name else "files"
            self.add(sink, path.name)
            if path.is_file():
                self.add(sink, path.read_bytes())

    def check(self) -> None:
        """Check that neither the key nor the signature of a link is where it should not be."""
        shown = self.shown
        for sink, text in shown.items():
            assert KEY not in text, f"the key is in the sink: {sink}"
        for sink in SIGNED:
            assert SIGNATURE not in shown.get(sink, ""), f"a signature is in: {sink}"


def vars_of(value: object) -> Mapping[str, Any]:
    """Return the attributes of a value, with slots or without."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names = [*slots, *getattr(value, "__dict__", ())]
    return {name: getattr(value, name, None) for name in map(str, names) if name != "__weakref__"}


def rich_text(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
    """Return what rich puts into a traceback with variables, before it is cut to a screen."""
    told = Traceback.extract(kind, error, trace, show_locals=True)
    shown: list[str] = []
    for stack in told.stacks:
        shown += [stack.exc_type, stack.exc_value, repr(stack.notes)]
        for frame in stack.frames:
            shown += [f"{name}={node}" for name, node in (frame.locals or {}).items()]
    return "\n".join(shown)
