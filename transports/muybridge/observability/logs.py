"""Log records of what a client does, with Python's `logging`.

There are three loggers below `muybridge`: `muybridge.requests` logs each request and response,
`muybridge.tasks` the status of tasks, and `muybridge.calls` calls, their ends and their retries.
Each record has its facts twice: in the message, for people, and in attributes that begin with
`muybridge_`, for programs. Only facts that `facts` allows are logged.
"""

from __future__ import annotations

import logging
from typing import Final, assert_never

from muybridge.observability.facts import Fact, facts
from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.events import (
    Ambiguous,
    DownloadProgress,
    Polled,
    ServiceSilent,
    Submitted,
    Throttled,
    WillRetry,
)
from muybridge_protocol.http import Phase, Reason, describe_failure
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

REQUESTS: Final = logging.getLogger("muybridge.requests")
TASKS: Final = logging.getLogger("muybridge.tasks")
CALLS: Final = logging.getLogger("muybridge.calls")

# If the program does not configure logging, nothing is printed.
logging.getLogger("muybridge").addHandler(logging.NullHandler())


class Log:
    """Logs events, each under the logger and at the level that `_place_of` says."""

    @property
    def tells_requests(self) -> bool:
        """Whether individual requests are logged."""
        return REQUESTS.isEnabledFor(logging.DEBUG)

    def write(self, event: AnyEvent) -> None:
        """Log *event*, if its logger is enabled for its level."""
        place = _place_of(event)
        if place is None or not place[0].isEnabledFor(place[1]):
            return
        logger, level = place
        values = facts(event)
        extra = {f"muybridge_{name}": value for name, value in values.items()}
        whose = f"{values.get('call_kind', '')} {values.get('call', '')}".strip()
        task = values.get("call_task_id")
        subject = whose if task is None else f"{whose} ({task})"
        logger.log(level, "%s: %s", subject, _line(values), extra=extra)


def _place_of(event: AnyEvent) -> tuple[logging.Logger, int] | None:
    """Return the logger and the level of *event*, or None if it is not logged."""
    match event:
        case DownloadProgress():
            return None  # there are thousands of them; the end of the call has the size
        case Submitted():
            return TASKS, logging.INFO
        case Polled(changed=changed):
            return TASKS, logging.INFO if changed else logging.DEBUG
        case CallBegan() | Expected():
            return CALLS, logging.DEBUG
        case CallEnded(error=error):
            return CALLS, logging.INFO if error is None else logging.WARNING
        case WillRetry() | ServiceSilent() | Throttled():
            return CALLS, logging.WARNING
        case Ambiguous():
            return CALLS, logging.ERROR
        case RequestSent() | ResponseBegan() | ResponseReceived() | ExchangeFailed():
            return REQUESTS, logging.DEBUG
        case _:
            assert_never(event)


def _line(values: dict[str, Fact]) -> str:
    """Return the facts of an event as a sentence."""
    match values:
        case {"event": "CallBegan"}:
            return "begins"
        case {"event": "Expected", "usual": int() | float() as seconds}:
            return f"such tasks usually take {shown_seconds(seconds)}"
        case {"event": "RequestSent", "method": method, "host": host, "port": port, "path": path}:
            again = ", once more" if values["resends"] else ""
            return (
                f"{method} {values['scheme']}://{host}:{port}{path}, {values['size']} bytes{again}"
            )
        case {"event": "ResponseBegan", "status": status, "duration": int() | float() as seconds}:
            return f"status {status} after {seconds:.3f} s"
        case {
            "event": "ResponseReceived",
            "status": status,
            "duration": int() | float() as seconds,
        }:
            chunks = f", {values['chunks']} chunks" if "chunks" in values else ""
            return f"status {status}, {values['size']} bytes{chunks} after {seconds:.3f} s"
        case {"event": "ExchangeFailed", "reason": str(reason), "phase": str(phase), "sent": sent}:
            what = "may have arrived" if sent else "was not sent"
            why = describe_failure(Reason(reason), Phase(phase))
            return f"{why} after {values['duration']:.3f} s; the request {what}"
        case {"event": "Submitted"}:
            return f"accepted, {values.get('status', 'without a status')}"
        case {"event": "Polled", "status": status, "changed": changed}:
            return f"{'is now' if changed else 'is still'} {status}"
        case {"event": "WillRetry", "delay": int() | float() as seconds}:
            return f"retrying {values['what']} in {shown_seconds(seconds)}: {values['cause']}"
        case {
            "event": "ServiceSilent",
            "silent": int() | float() as silent,
            "delay": int() | float() as seconds,
        }:
            next_poll = f"next poll in {shown_seconds(seconds)}: {values['cause']}"
            return f"no valid response for {shown_seconds(silent)}, {next_poll}"
        case {"event": "Throttled", "delay": int() | float() as seconds}:
            what = f"{values['what']} resumes in {shown_seconds(seconds)}"
            return f"the service asks to slow down; {what}"
        case {"event": "Ambiguous"}:
            return f"may or may not have been accepted, and is not sent again: {values['cause']}"
        case {"event": "CallEnded"}:
            return _end(values)
        case _:
            return str(values["event"])


def _end(values: dict[str, Fact]) -> str:
    how = f"failed with {values['error']}" if "error" in values else "done"
    facts = [f"{'left' if values['left'] else how} after {values['duration']:.3f} s"]
    if "status" in values:
        facts.append(str(values["status"]))
    if "size" in values:
        facts.append(f"{values['size']} bytes")
    if "total_tokens" in values:
        facts.append(f"{values['total_tokens']} tokens")
    return ", ".join(facts)
