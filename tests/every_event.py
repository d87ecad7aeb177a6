"""A sample of every kind of event, with a value in every attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from muybridge_protocol.call_info import CallInfo
from muybridge_protocol.events import (
    Ambiguous,
    DownloadProgress,
    Event,
    Polled,
    ServiceSilent,
    Submitted,
    Throttled,
    WillRetry,
)
from muybridge_protocol.http import Phase, Reason
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    ExchangeFailed,
    Expected,
    Observation,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)
from muybridge_protocol.records.tasks import Result, Status, Task

KINDS: Final[tuple[type[AnyEvent], ...]] = (*get_args(Event), *get_args(Observation))
HERE: Final = "SAMPLES in tests/every_event.py"
_CALL: Final = CallInfo(number=7, kind="wait", task_id="task-1")
_COMMON: Final[dict[str, Any]] = {"call": _CALL, "cause": "a cause"}
_REQUEST: Final[dict[str, Any]] = {
    "call": _CALL,
    "scheme": "https",
    "host": "api.example.com",
    "port": 443,
    "path": "/v1/result/task-1",
    "template": "/v1/result/{id}",
    "size": 0,
    "resends": 0,
}
SAMPLES: Final[tuple[AnyEvent, ...]] = (
    Submitted(Task(id="task-1", status=Status.QUEUED), call=_CALL),
    Polled(Result(id="task-1", status=Status.PROCESSING), changed=True, call=_CALL),
    WillRetry("poll", "a reason", 1.5, 2, **_COMMON),
    ServiceSilent(700.0, "a reason", 1.5, **_COMMON),
    Throttled("poll", 1.5, call=_CALL),
    Ambiguous("a reason", **_COMMON),
    DownloadProgress(2**20, 2**21, call=_CALL),
    CallBegan(call=_CALL),
    Expected(call=_CALL, usual=84.2, age=61.4),
    CallEnded(call=_CALL, duration=1.5, status="completed", size=5, total_tokens=7),
    RequestSent(method="GET", **_REQUEST),
    ResponseBegan(call=_CALL, status=200, duration=1.5),
    ResponseReceived(call=_CALL, status=200, duration=1.5, size=5),
    ExchangeFailed(
        call=_CALL,
        reason=Reason.RESET,
        phase=Phase.HEAD,
        sent=True,
        bytes_sent=5,
        status=None,
        duration=1.5,
    ),
)
_OF_KIND: Final[Mapping[type, AnyEvent]] = {type(event): event for event in SAMPLES}


def sample(kind: type[AnyEvent]) -> AnyEvent:
    """Return an event of *kind*."""
    assert kind in _OF_KIND, f"add a `{kind.__name__}` to {HERE}"
    return _OF_KIND[kind]
