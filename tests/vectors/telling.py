"""The core's values as the vectors tell them."""

from __future__ import annotations

import base64
from typing import Any

from muybridge_protocol.errors import ServiceError, TaskFailed
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
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations import Fetch, Send, Settled, Wait
from muybridge_protocol.operations.download import Saved
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.service import Service
from muybridge_protocol.text.responses import GenerateContentResponse

Told = dict[str, Any]

SERVICE = Service(base_url="https://api.example.com", text_base_url="http://text.example.com")
NOW = 0.0
WALL = 1_760_000_000.0

_FACTS = (
    "status", "message", "retry_after", "candidate_id", "attempts", "code", "msg", "asset_id",
    "waited", "silent", "lasting",
)  # fmt: skip
"""What of an error is told, if it has it. Words are for people and may change."""


def told_body(body: bytes | None) -> Told:
    if body is None:
        return {}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def told_request(request: HttpRequest) -> Told:
    return {
        "method": request.method,
        "url": request.url,
        "headers": [list(header) for header in request.headers],
        **told_body(request.body),
        "authorized": request.authorized,
        "paid": request.paid,
    }


def told_response(response: HttpResponse) -> Told:
    return {**told_head(HttpHead(response.status, response.headers)), **told_body(response.body)}


def told_head(head: HttpHead) -> Told:
    return {"status": head.status, "headers": [list(header) for header in head.headers]}


def told_failure(failure: TransportFailure) -> Told:
    told: Told = {
        "phase": failure.phase.value,
        "sent": failure.sent,
        "reason": failure.reason.value,
    }
    if failure.status is not None:
        told["status"] = failure.status
    if failure.partial:
        told["partial"] = failure.partial.decode()
    return told


def told_action(action: Send | Fetch | Wait | Settled[Any]) -> Told:
    match action:
        case Send(request, deadline):
            return {"do": "send", "request": told_request(request), "deadline": deadline}
        case Fetch(request, deadline):
            return {"do": "fetch", "request": told_request(request), "deadline": deadline}
        case Wait(until):
            return {"do": "wait", "until": until}
        case Settled(outcome):
            return {"do": "end", "outcome": told_outcome(outcome)}


def told_outcome(outcome: object) -> Told:
    match outcome:
        case None:
            return {"type": "Deleted"}
        case Task():
            return {
                "type": "Task",
                **_set(outcome, "id", "family", "model", "requested_model", "status", "object",
                       "created", "error", "submitted_at"),
                "token": outcome.to_token(),
            }  # fmt: skip
        case Result():
            return {
                "type": "Result",
                **_set(outcome, "id", "status", "model", "object", "created", "image_url",
                       "video_url", "actual_duration", "total_tokens", "error", "expires_at"),
            }  # fmt: skip
        case Saved():
            return {"type": "Saved", **_set(outcome, "size", "content_type", "length_verified")}
        case GenerateContentResponse():
            text = outcome.candidates[0].text if outcome.candidates else ""
            return {"type": "Text", "text": text, **_set(outcome, "finish_reason")}
        case ServiceError():
            told: Told = {"type": type(outcome).__name__, **_set(outcome, *_FACTS)}
            if isinstance(outcome, TaskFailed):
                told["result"] = told_outcome(outcome.result)
            if outcome.task is not None:
                told["task_id"] = outcome.task.id
                told |= _set(outcome.task, "next_poll_at")
            return told
        case _:
            raise TypeError(type(outcome).__name__)


def _set(value: object, *names: str) -> Told:
    """Return those of the attributes that are there and not None."""
    found = {name: getattr(value, name, None) for name in names}
    return {name: item for name, item in found.items() if item is not None}


def told_event(event: Event) -> Told:
    match event:
        case Submitted(task):
            return {"type": "Submitted", "task_id": task.id}
        case Polled(result, changed):
            return {"type": "Polled", "status": str(result.status), "changed": changed}
        case WillRetry(what, _, delay, attempt):
            return {"type": "WillRetry", "what": what, "delay": delay, "attempt": attempt}
        case ServiceSilent(silent, _, delay):
            return {"type": "ServiceSilent", "silent": silent, "delay": delay}
        case Throttled(what, delay):
            return {"type": "Throttled", "what": what, "delay": delay}
        case Ambiguous():
            return {"type": "Ambiguous"}
        case DownloadProgress(received, total):
            return {"type": "DownloadProgress", "received": received, "total": total}
        case _:
            raise TypeError(
                f"tell {type(event).__name__} in told_event of tests/vectors/telling.py"
            )
