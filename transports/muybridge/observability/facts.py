"""Which facts of an event may be shown in logs, spans and anywhere else that strangers may read.

`ALLOWED` is the whole list: an attribute that is not on it is never shown. Headers, queries of
links, prompts, bodies, the service's messages and the key are not on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from muybridge_protocol.events import (
    Ambiguous,
    DownloadProgress,
    Polled,
    ServiceSilent,
    Submitted,
    Throttled,
    WillRetry,
)
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    ExchangeFailed,
    Expected,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)
from muybridge_protocol.records.json import readable

Fact = str | int | float | bool

CALL: tuple[str, ...] = (
    "call.number", "call.kind", "call.task_id", "call.family", "call.model", "call.work",
)  # fmt: skip
"""The attributes of an event's call that may be shown."""

ALLOWED: Mapping[type[AnyEvent], tuple[str, ...]] = {
    CallBegan: (),
    RequestSent: (
        "method", "scheme", "host", "port", "path", "template", "size", "resends",
    ),
    ResponseBegan: ("status", "duration"),
    ResponseReceived: ("status", "duration", "size", "chunks", "first_chunk"),
    ExchangeFailed: ("reason", "phase", "sent", "bytes_sent", "status", "duration"),
    Submitted: ("task.status",),
    Polled: ("result.status", "changed", "age", "took"),
    Expected: ("usual", "age"),
    WillRetry: ("what", "cause", "delay", "attempt"),
    ServiceSilent: ("silent", "cause", "delay"),
    Throttled: ("what", "delay"),
    Ambiguous: ("cause",),
    DownloadProgress: ("received", "total"),
    CallEnded: (
        "duration", "error", "left", "status", "size", "outcome",
        "prompt_tokens", "answer_tokens", "total_tokens",
    ),
}  # fmt: skip
"""The attributes of each kind of event that may be shown, besides those of its call."""

_LONGEST = 500
"""Most characters of a text that is shown."""


def facts(event: AnyEvent) -> dict[str, Fact]:
    """Return the facts of *event* that may be shown, by name. Unknown ones are left out.

    `event` is the name of the event's class. Facts about its call begin with `call_`, except for
    the call's number, which is `call`.
    """
    values: dict[str, Fact] = {"event": type(event).__name__}
    if event.call is not None:
        for name, path in _CALL:
            value = path(event)
            if value is not None:
                values[name] = _shown(value)
    for name, path in _PATHS[type(event)]:
        value = path(event)
        if value is not None:
            values[name] = _shown(value)
    return values


def _shown(value: object) -> Fact:
    if isinstance(value, bool | int | float):
        return value
    return readable(str(value), _LONGEST)


_CALL = [
    ("call" if path == "call.number" else path.replace(".", "_"), attrgetter(path)) for path in CALL
]
_PATHS = {
    kind: [(path.rpartition(".")[2], attrgetter(path)) for path in paths]
    for kind, paths in ALLOWED.items()
}
