"""Track one call: which events belong to it, how long its requests take, how it ends.

This module is only loaded if somebody listens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import attrs

from muybridge.drivers.listeners import SilentTracker, find_log
from muybridge.signals import ignoring_errors
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.errors import Refused, TaskFailed
from muybridge_protocol.estimates.quantities import Quantities, text_quantities
from muybridge_protocol.events import (
    Ambiguous,
    DownloadProgress,
    Event,
    FailureEvent,
    Polled,
    Submitted,
)
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import (
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
    describe_failure,
)
from muybridge_protocol.observations import (
    AnyEvent,
    CallBegan,
    CallEnded,
    CallInfo,
    CallKind,
    CallOutcome,
    ExchangeFailed,
    Expected,
    RequestSent,
    ResponseBegan,
    ResponseReceived,
)
from muybridge_protocol.operations import Operation
from muybridge_protocol.purchases import State, judged
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import origin_of

if TYPE_CHECKING:
    from muybridge.drivers.listeners import Listeners
    from muybridge.observability.logs import Log

_numbers = itertools.count(1)

_MODEL = re.compile(r"/v1/models/([^/:]+(?::[^/:]+)*):(?:streamG|g)enerateContent\Z")
_BROKEN_OFF = TransportFailure(phase=Phase.SEND, sent=True, reason=Reason.INTERRUPTED)
"""Reported for an exchange that an unrelated exception interrupted: it may have been sent."""
_LIMIT = 200
"""Most characters of a name that are reported."""
_TEXT: Final = ("text", "text stream")
_PAID: Final = ("create", *_TEXT)
"""The kinds of calls that always cost money."""


class Tracker(SilentTracker):
    """One call, reported to the listeners.

    Args:
        listeners: The client's.
        log: Logs events, or None.
        info: Which call it is.
        now: Tells seconds on the driver's clock.
        request: What it creates, or None.
    """

    def __init__(
        self,
        listeners: Listeners,
        log: Log | None,
        info: CallInfo,
        now: Callable[[], float],
        request: MediaRequest | None = None,
    ) -> None:
        super().__init__(listeners)
        self._log = log
        self._info = info
        self._now = now
        self._request = request
        listened = listeners.on_event is not None
        self._tells_requests = listened or (log is not None and log.tells_requests)
        self._began = now()
        self._ended = False
        self._status: str | None = None
        # The exchange under way, or the last one.
        self._open = False
        self._sent = 0.0
        self._response: int | None = None
        self._failure: TransportFailure | None = None
        self._took: float | None = None
        self._size = 0
        self._resends = 0
        # What is counted on the way.
        self._file: int | None = None
        self._chunks: int | None = None
        self._first_chunk: float | None = None
        self._usage: Any = None
        # What the service made of it.
        self._pays = info.kind in _PAID
        self._accepted = False
        self._ambiguous = False
        self._tell(CallBegan(call=info))

    def expect(self, usual: float, age: float | None) -> None:
        """Tell how long such tasks usually take."""
        self._tell(Expected(call=self._info, usual=usual, age=age))

    def sending(self, request: HttpRequest) -> None:
        """Tell that *request* is about to be sent."""
        self._sent, self._open = self._now(), False
        self._response = self._failure = self._took = None
        self._size, self._file = 0, None
        self._pays = self._pays or request.paid
        if self._tells_requests:
            scheme, host, port = origin_of(request.url)
            path = urlsplit(request.url).path
            sent = RequestSent(
                call=self._info,
                method=request.method,
                scheme=scheme,
                host=host,
                port=port,
                path=path,
                template=_template(self._info, path),
                size=len(request.body or b""),
                resends=self._resends,
            )
            self._tell(sent)
        self._open = True

    def head(self, status: int, now: float) -> None:
        """Tell that the head of a streamed response has arrived."""
        self._response = status
        self._accepted = True  # of a text that streams: any other response is not told here
        if self._tells_requests:
            self._tell(ResponseBegan(call=self._info, status=status, duration=now - self._sent))

    def responded(self, response: HttpResponse, now: float) -> None:
        """Record a whole response. `tell_end` reports it, once it has been read."""
        self._response, self._size = response.status, len(response.body)
        self._took = now - self._sent

    def failed(self, failure: TransportFailure, now: float | None) -> None:
        """Record an exchange without a whole response. `tell_end` reports it."""
        self._failure = failure
        self._took = None if now is None else now - self._sent

    def piece(self, size: int) -> None:
        """Count a piece of a body."""
        self._size += size

    def chunk(self, chunk: object) -> None:
        """Count a chunk of a streamed text."""
        if self._chunks is None:
            self._first_chunk = self._now() - self._sent
        self._chunks = (self._chunks or 0) + 1
        self._usage = getattr(chunk, "usage_metadata", None) or self._usage

    def tell(self, events: tuple[Event, ...]) -> None:
        """Tell *events* of an exchange in progress."""
        for event in events:
            if isinstance(event, DownloadProgress):
                self._count(event)
        self._tell(*map(self._stamped, events))

    def tell_end(self, events: tuple[Event, ...]) -> None:
        """Tell that an exchange has ended, and the *events* it led to."""
        ends = self._end_of_exchange()
        stamped = tuple(map(self._stamped, events))
        # The next request of the call repeats this one, except after a poll.
        polled = Polled in map(type, events)
        self._resends = 0 if polled else self._resends + 1
        self._tell(*ends, *stamped)

    def end(self, outcome: object = None) -> None:
        """Tell that the call has ended, with a value or an exception."""
        if self._ended:
            return
        self._ended = True
        if isinstance(outcome, BaseException):
            with ignoring_errors():  # of a listener: the error that ends the call matters more
                self._tell_end_of_call(outcome)
        else:
            self._tell_end_of_call(outcome)

    def _tell_end_of_call(self, outcome: object) -> None:
        now = self._now()
        ends: tuple[AnyEvent, ...] = ()
        if self._open:
            self._failure = self._failure or _BROKEN_OFF
            ends = self._end_of_exchange()
        status: object = self._status
        tokens: float | None = None
        if isinstance(outcome, Task | Result):
            status = outcome.status
        if isinstance(outcome, TaskFailed):
            status = outcome.result.status
        if isinstance(outcome, Result):
            tokens = outcome.total_tokens
        usage = getattr(outcome, "usage_metadata", None) or self._usage
        broken = isinstance(outcome, BaseException)
        left = isinstance(outcome, GeneratorExit)
        event = CallEnded(
            call=self._info,
            duration=now - self._began,
            error=type(outcome).__name__ if broken and not left else None,
            left=left,
            status=None if status is None else readable(str(status), _LIMIT),
            size=_size_of(outcome),
            prompt_tokens=getattr(usage, "prompt_token_count", None),
            answer_tokens=getattr(usage, "candidates_token_count", None),
            total_tokens=getattr(usage, "total_token_count", tokens),
            outcome=(verdict := self._verdict(outcome)),
            consumed=self._consumed(usage) if verdict in ("submitted", "ambiguous") else None,
        )
        try:
            self._tell(*ends)
        finally:  # even if a listener raises: every listener hears that the call has ended
            self._tell(event)

    def _verdict(self, outcome: object) -> CallOutcome | None:
        """Return what has become of a call that costs money, which has ended with *outcome*."""
        if not self._pays:
            return None
        if self._ambiguous:
            return "ambiguous"
        if isinstance(outcome, HttpResponse):  # of a call to any endpoint
            return _OUTCOMES.get(judged(outcome).state)
        if self._accepted or (self._info.kind in _TEXT and not isinstance(outcome, BaseException)):
            return "submitted"
        if isinstance(outcome, Refused):
            return "refused"
        return "not sent" if isinstance(outcome, BaseException) else None

    def _consumed(self, usage: Any) -> Quantities | None:
        """Return what the call consumes, if the service has accepted it."""
        if self._request is not None:
            return self._request.quantities()
        if self._info.kind not in _TEXT:
            return None
        return text_quantities(
            self._info.model or "",
            getattr(usage, "total_token_count", None),
            input_tokens=getattr(usage, "prompt_token_count", None),
            output_tokens=getattr(usage, "candidates_token_count", None),
        )

    def _count(self, event: DownloadProgress) -> None:
        """Count the bytes of a download. Its first progress says where it resumes."""
        if self._file is not None:
            self._size += event.received - self._file
        self._file = event.received

    def _stamped(self, event: Event) -> Event:
        """Return *event* with its call and the cause from the last exchange."""
        if isinstance(event, Submitted):
            self._info = of_task(self._info, event.task)
            self._status = event.task.status
            self._accepted = True
        elif isinstance(event, Polled):
            self._status = event.result.status
        if isinstance(event, Ambiguous):
            self._ambiguous = True
        if isinstance(event, FailureEvent):
            return attrs.evolve(event, call=self._info, cause=self._cause())
        return attrs.evolve(event, call=self._info)

    def _cause(self) -> str:
        if self._failure is not None:
            return describe_failure(self._failure.reason, self._failure.phase)
        if self._response is None:
            return ""
        good = 200 <= self._response <= 299  # noqa: PLR2004  the class of success
        return "the response cannot be used" if good else f"status {self._response}"

    def _end_of_exchange(self) -> tuple[AnyEvent, ...]:
        was_open, self._open = self._open, False
        if not (was_open and self._tells_requests):
            return ()
        took = self._now() - self._sent if self._took is None else self._took
        if self._failure is not None:
            failure = ExchangeFailed(
                call=self._info,
                reason=self._failure.reason,
                phase=self._failure.phase,
                sent=self._failure.sent,
                bytes_sent=self._failure.bytes_sent,
                status=self._failure.status,
                duration=took,
            )
            return (failure,)
        assert self._response is not None  # noqa: S101  an exchange ends with one of the two
        received = ResponseReceived(
            call=self._info,
            status=self._response,
            duration=took,
            size=self._size,
            chunks=self._chunks,
            first_chunk=self._first_chunk,
        )
        return (received,)

    def _tell(self, *events: AnyEvent) -> None:
        if events:
            self._listeners.tell(events, self._log)


_OUTCOMES: Final[dict[State, CallOutcome]] = {
    State.ACCEPTED: "submitted", State.RELEASED: "refused", State.AMBIGUOUS: "ambiguous",
}  # fmt: skip
"""What the verdict on the end of an exchange is called in events."""


def track_work(
    listeners: Listeners,
    work: MediaRequest | Task,
    place: int | None,
    now: Callable[[], float],
    tags: Mapping[str, str] = NO_TAGS,
) -> Tracker:
    """Return the tracker of the first call for a piece of *work* of a run.

    Args:
        listeners: The client's.
        work: A request to create, or a task to wait for.
        place: Its place among the work of the run, or None.
        now: Tells seconds on the driver's clock.
        tags: The tags of its purchase.
    """
    if isinstance(work, Task):
        info = of_task(new_info("wait", work=place, tags=tags), work)
    else:
        family, model = work.family.name, work.model_name
        info = new_info("create", family=family, model=model, work=place, tags=tags)
    return Tracker(listeners, find_log(), info, now, None if isinstance(work, Task) else work)


def info_of(operation: Operation[Any], tags: Mapping[str, str]) -> CallInfo:
    """Return which call *operation* is, with a number of its own."""
    request: Any = getattr(operation, "request", None)
    sent: HttpRequest | None = getattr(operation, "http_request", None)
    task: object = getattr(operation, "task", None)
    if request is not None:
        family, model = request.family.name, request.model_name
        return new_info(operation.kind, family=family, model=model, tags=tags)
    if isinstance(task, Task):
        return of_task(new_info(operation.kind, tags=tags), task)
    match = None if sent is None else _MODEL.search(urlsplit(sent.url).path)
    return new_info(operation.kind, model=None if match is None else match[1], tags=tags)


def new_info(
    kind: CallKind,
    *,
    family: str | None = None,
    model: str | None = None,
    work: int | None = None,
    tags: Mapping[str, str],
) -> CallInfo:
    """Return which call it is, with a number of its own."""
    shown = None if model is None else readable(model, _LIMIT)
    return CallInfo(
        number=next(_numbers), kind=kind, family=family, model=shown, work=work, tags=tags
    )


def of_task(info: CallInfo, task: Task) -> CallInfo:
    """Return *info* with the id of *task*. What the request has said of family and model stays."""
    model = info.model or task.requested_model or task.model or None
    return attrs.evolve(
        info,
        task_id=task.id,
        family=info.family or task.family or None,
        model=None if model is None else readable(model, _LIMIT),
    )


def _size_of(outcome: object) -> int | None:
    # Only downloads have one. The class is not imported: loading it takes a while.
    return outcome.size if type(outcome).__name__ == "Saved" else None  # type: ignore[attr-defined]


def _template(info: CallInfo, path: str) -> str | None:
    """Return *path* with placeholders for ids and models, if the endpoint is specified."""
    above, _, last = path.rpartition("/")
    if info.kind == "create":
        return path
    if info.kind == "delete" or (info.task_id == unquote(last) and above.endswith("/v1/result")):
        return f"{above}/{{id}}"
    if info.kind in ("text", "text stream"):
        match = _MODEL.search(path)
        return path if match is None else path.replace(f"/{match[1]}:", "/{model}:")
    return None
