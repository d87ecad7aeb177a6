"""What happens to operations in the vectors: responses, failures, and pieces of files."""

from __future__ import annotations

import json
from dataclasses import dataclass

from muybridge_protocol.http import HttpHead, HttpResponse, Phase, Reason, TransportFailure

from .telling import WALL, Told

_LINK = "https://cdn.example.net/a.mp4?sign=abc"


@dataclass(frozen=True)
class Film:
    """A response in pieces, and how it ends."""

    head: HttpHead
    pieces: tuple[bytes, ...] = ()
    failure: TransportFailure | None = None


@dataclass(frozen=True)
class Slow:
    """A reaction that takes longer than the others."""

    reaction: HttpResponse | TransportFailure
    seconds: float


Plain = HttpResponse | TransportFailure | Film
Reaction = Plain | Slow


# What a script is about.

CREATE: Told = {
    "kind": "create",
    "family": "imgb",
    "input": {"model": "imgb-2", "prompt": "a horse"},
}
TASK: Told = {"id": "task-1"}
NEW_TASK: Told = {"id": "task-1", "family": "vidv", "submitted_at": WALL}
KEPT_TASK: Told = {"id": "task-1", "family": "vidsa", "submitted_at": WALL - 90_000}
POLL: Told = {"kind": "poll", "task": TASK}
DELETE: Told = {"kind": "delete_asset", "id": "asset-1"}
TEXT: Told = {
    "kind": "generate_content",
    "model": "textg-2.5-pro",
    "input": {"contents": [{"role": "user", "parts": [{"text": "a horse?"}]}]},
}
DOWNLOAD: Told = {"kind": "download", "url": _LINK, "task": {"id": "task-1"}}


# Reactions.


def response(status: int, record: object = None, **headers: str) -> HttpResponse:
    body = b"" if record is None else json.dumps(record, ensure_ascii=False).encode()
    return raw(status, body, **headers)


def raw(status: int, body: bytes, **headers: str) -> HttpResponse:
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpResponse(status, fields, body)


def result(status: str, **fields: object) -> HttpResponse:
    return response(200, {"id": "task-1", "status": status, **fields})


DONE = result("completed", video_url=_LINK, actualDuration=8)
UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
BAD_CERTIFICATE = TransportFailure(phase=Phase.TLS, sent=False, reason=Reason.CERTIFICATE)
NO_RESPONSE = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
CUT_OFF = TransportFailure(
    phase=Phase.BODY,
    sent=True,
    reason=Reason.TRUNCATED,
    status=200,
    partial=b'{"id": "task-9", "sta',
)


def film(
    status: int, *pieces: bytes, failure: TransportFailure | None = None, **headers: str
) -> Film:
    return Film(HttpHead(status, raw(status, b"", **headers).headers), pieces, failure)


_MP4 = b"\x00\x00\x00\x18ftyp"
_BROKEN = TransportFailure(phase=Phase.BODY, sent=True, reason=Reason.RESET, status=200)

ACCEPTED = response(200, {"id": "task-1", "object": "image", "created": 1_760_000_001,
                       "model": "imgb-2", "status": "queued", "error": None})  # fmt: skip
DELETED = response(200, {"code": "0", "msg": "deleted", "data": None})
ANSWER = response(200, {"candidates": [{"content": {"parts": [{"text": "Fast."}], "role": "model"},
                                     "finishReason": "STOP", "index": 0}]})  # fmt: skip

SCRIPTS: list[tuple[str, Told, list[Reaction]]] = [
    ("a create that is accepted", CREATE, [ACCEPTED]),
    ("a create that reaches the service at the third attempt", CREATE, [UNSENT, UNSENT, ACCEPTED]),
    ("a create that never reaches the service", CREATE, [UNSENT] * 3),
    ("a create with an invalid certificate", CREATE, [BAD_CERTIFICATE]),
    ("a create whose response is lost", CREATE, [NO_RESPONSE]),
    ("a create whose response is cut off after the id", CREATE, [CUT_OFF]),
    ("a create that is throttled twice", CREATE,
     [response(429), response(429, Retry_After="7"), ACCEPTED]),
    ("a create that is always throttled", CREATE, [response(429)] * 4),
    ("a create that is told to wait too long", CREATE, [response(429, Retry_After="121")]),
    ("a create, unsent and throttled in turn", CREATE, [UNSENT, response(429), UNSENT, ACCEPTED]),
    ("a new task from beginning to end", {"kind": "poll", "task": NEW_TASK},
     [result("queued"), result("processing"), result("processing"), DONE]),
    ("a bare id is asked for at once", POLL, [result("processing"), DONE]),
    ("a caller's own pace", {**POLL, "poll_interval": 2},
     [result("queued"), result("queued"), DONE]),
    ("an unknown status is polled on", POLL, [result("paused"), DONE]),
    ("a task that fails", POLL, [result("failed", error="content policy violation")]),
    ("a task that is cancelled", POLL, [result("processing"), result("cancelled")]),
    ("a task that goes back to an earlier status", POLL,
     [result("processing"), result("queued"), DONE]),
    ("another task's result", POLL, [response(200, {"id": "task-2", "status": "completed"})]),
    ("completed without a URL, four times", POLL, [result("completed")] * 4),
    ("completed without a URL at first", POLL, [result("completed", video_url=None), DONE]),
    ("polls that fail, and then do not", POLL,
     [NO_RESPONSE, UNSENT, response(503), raw(200, b"<html>"), DONE]),
    ("responses that cannot be read, four times", POLL, [raw(200, b"{")] * 4),
    ("polls that are throttled", POLL,
     [response(429), response(429, Retry_After="90"), response(429, Retry_After="1000"), DONE]),
    ("a Retry-After as a date", POLL,
     [response(429, Retry_After="Thu, 09 Oct 2025 08:54:00 GMT",
            Date="Thu, 09 Oct 2025 08:53:20 GMT"), DONE]),
    ("a poll that is redirected", POLL, [response(302, Location="https://elsewhere.example.net/")]),
    ("a new task that is not known yet", {"kind": "poll", "task": NEW_TASK, "poll_interval": 1},
     [response(404), response(404), DONE]),
    ("an unknown id", POLL, [response(404)]),
    ("a task whose record is deleted", {"kind": "poll", "task": KEPT_TASK}, [response(404)]),
    ("a key that is revoked while waiting", POLL, [result("queued"), response(401)]),
    ("a bare id whose record names the model", POLL,
     [result("processing", model="vidsb_2_0_fast", created=1_760_000_000), DONE]),
    ("a task that may not be polled yet",
     {"kind": "poll", "task": {**NEW_TASK, "next_poll_at": WALL + 45}}, [DONE]),
    ("waiting that ends by its deadline", {**POLL, "wait": 20}, [result("queued")] * 4),
    ("a service that does not answer for an hour", POLL, [NO_RESPONSE] * 200),
    ("a single query", {"kind": "query", "task": NEW_TASK}, [result("processing")]),
    ("a single query that fails three times", {"kind": "query", "task": NEW_TASK},
     [NO_RESPONSE] * 3),
    ("an asset that is deleted", DELETE, [DELETED]),
    ("a deletion that fails", DELETE, [response(200, {"code": "1", "msg": "no such asset"})]),
    ("a deletion whose success is a number", DELETE,
     [response(200, {"code": 0, "msg": "deleted"})]),
    ("a deletion whose first response is lost", DELETE,
     [NO_RESPONSE, response(200, {"code": "1", "msg": "no such asset"})]),
    ("a deletion that nobody confirms", DELETE, [NO_RESPONSE] * 4),
    ("a deletion that is never sent", DELETE, [UNSENT] * 4),
    ("a text that is answered", TEXT, [ANSWER]),
    ("a text whose response is lost", TEXT, [NO_RESPONSE]),
    ("a text that is throttled", TEXT, [response(429, Retry_After="3"), ANSWER]),
    ("a text that is answered by an error", TEXT,
     [response(200, {"error": {"message": "overloaded"}})]),
    ("a download", DOWNLOAD,
     [film(200, _MP4, b"rest", Content_Length="12", Content_Type="video/mp4")]),
    ("a download that is resumed", DOWNLOAD,
     [film(200, _MP4, failure=_BROKEN, Content_Length="12", ETag='"a"'),
      film(206, b"rest", ETag='"a"', Content_Range="bytes 8-11/12")]),
    ("a download without a validator begins anew", DOWNLOAD,
     [film(200, _MP4, failure=_BROKEN, Content_Length="12"),
      film(200, _MP4, b"rest", Content_Length="12")]),
    ("a download that is shorter than announced", DOWNLOAD,
     [film(200, _MP4, Content_Length="12", ETag='"a"'),
      film(206, b"rest", ETag='"a"', Content_Range="bytes 8-11/12")]),
    ("a download whose link has expired", DOWNLOAD,
     [film(403), result("completed", video_url="https://cdn.example.net/b.mp4"), film(200, _MP4)]),
    ("a download whose fresh link has expired, too", DOWNLOAD,
     [film(404), result("completed", video_url="https://cdn.example.net/b.mp4"), film(410)]),
    ("a download that is redirected", DOWNLOAD,
     [film(302, Location="https://cdn2.example.net/a.mp4"), film(200, _MP4)]),
    ("a download that is redirected to this machine", DOWNLOAD,
     [film(302, Location="https://localhost/a.mp4")]),
    ("a download that is a page", DOWNLOAD, [film(200, b"<html>", Content_Type="text/html")]),
    ("a download that brings nothing, five times", DOWNLOAD, [film(503)] * 5),
    ("a create whose Retry-After cannot be read", CREATE, [response(429, Retry_After="soon")]),
    ("a create whose Retry-After is a date that is over", CREATE,
     [response(429, Retry_After="Thu, 09 Oct 2025 08:53:00 GMT",
            Date="Thu, 09 Oct 2025 08:53:20 GMT")]),
    ("a create with two Retry-After", CREATE,
     [HttpResponse(429, (("retry-after", "1.5"), ("Retry-After", "1")), b""), ACCEPTED]),
    ("a create that cannot be retried within its deadline", CREATE,
     [response(429, Retry_After="120")] * 3),
    ("a create that answers slowly", CREATE, [Slow(UNSENT, 59), ACCEPTED]),
    ("a poll with an invalid certificate", POLL, [BAD_CERTIFICATE]),
    ("a poll that answers slowly", {"kind": "poll", "task": NEW_TASK},
     [Slow(result("queued"), 45), result("queued"), result("queued"), DONE]),
    ("a poll that fails slowly", {"kind": "poll", "task": NEW_TASK},
     [Slow(NO_RESPONSE, 60), result("queued"), DONE]),
    ("a bare id whose polls fail in between", POLL,
     [result("queued"), NO_RESPONSE, NO_RESPONSE, result("queued"), result("queued"), DONE]),
    ("a bare id whose record names the model after a failure", POLL,
     [NO_RESPONSE, result("queued", model="imga"), result("queued"), DONE]),
    ("a Retry-After below the interval", {"kind": "poll", "task": NEW_TASK},
     [response(503, Retry_After="7"), DONE]),
    ("a Retry-After with a record has no effect", POLL,
     [response(200, {"id": "task-1", "status": "queued"}, Retry_After="90"), DONE]),
    ("a Retry-After with what cannot be read has no effect", POLL,
     [raw(200, b"{", Retry_After="90"), DONE]),
    ("a Retry-After of a poll that cannot be read", POLL,
     [response(429, Retry_After="soon"), DONE]),
    ("completed without a URL, and then processing", POLL,
     [result("completed"), result("processing")]),
    ("completed without a URL, with failures in between", POLL,
     [result("completed"), NO_RESPONSE, result("completed"), raw(200, b"{"), DONE]),
    ("a task that is not known after a minute", {"kind": "poll", "task": NEW_TASK},
     [response(404)] * 3),
    ("a wait that ends before the first poll", {"kind": "poll", "task": NEW_TASK, "wait": 10}, []),
    ("a wait of no time", {**POLL, "wait": 0}, []),
    ("a service that is silent for ten minutes, and then throttles", POLL,
     [*[NO_RESPONSE] * 10, response(429), NO_RESPONSE, DONE]),
    ("a caller's own pace of ten minutes", {**POLL, "poll_interval": 700},
     [NO_RESPONSE, NO_RESPONSE, NO_RESPONSE, DONE]),
    ("a result whose link expires", {"kind": "poll", "task": NEW_TASK},
     [result("completed", video_url=_LINK, created=1_760_000_001)]),
    ("a bare id whose result names the model", POLL,
     [result("completed", video_url=_LINK, created=1_760_000_001, model="vidsb_2_0")]),
    ("a single query of a task that has failed", {"kind": "query", "task": NEW_TASK},
     [result("failed", error="content policy violation")]),
    ("a single query of a task without its URL", {"kind": "query", "task": NEW_TASK},
     [result("completed")]),
    ("a single query of an unknown id", {"kind": "query", "task": TASK}, [response(404)]),
    ("a single query of a bare id that fails", {"kind": "query", "task": TASK},
     [NO_RESPONSE, result("queued")]),
    ("a single query of a new task that is not known yet", {"kind": "query", "task": NEW_TASK},
     [response(404)] * 3),
    ("a single query that is always throttled", {"kind": "query", "task": NEW_TASK},
     [response(429)] * 3),
    ("a single query whose responses cannot be read", {"kind": "query", "task": NEW_TASK},
     [raw(200, b"{")] * 3),
    ("a download that is throttled", DOWNLOAD,
     [film(429, Retry_After="3"), film(200, _MP4, b"rest", Content_Length="12")]),
    ("a download that is redirected too often", DOWNLOAD,
     [film(302, Location=f"https://cdn.example.net/{number}") for number in range(6)]),
    ("a download whose rest is of another version", DOWNLOAD,
     [film(200, _MP4, failure=_BROKEN, Content_Length="12", ETag='"a"'),
      film(206, b"rest", ETag='"b"', Content_Range="bytes 8-11/12"),
      film(200, _MP4, b"rest", ETag='"b"', Content_Length="12")]),
]  # fmt: skip


# Single responses.

STATUSES = (
    200, 201, 204, 302, 400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 429, 499,
    500, 502, 503, 504, 599,
)  # fmt: skip

RECORDS: dict[str, list[bytes]] = {
    "create": [
        b'{"id": "task-1", "status": "queued"}',
        b'\xef\xbb\xbf{"id": "task-1"}',
        b'{"id": "task-1", "status": "failed", "error": "unsupported resolution and ratio"}',
        b'{"id": "", "status": "failed", "error": "unsupported resolution and ratio"}',
        b'{"id": "task-1", "status": "brewing", "created": "soon", "model": 5, "seed": 7}',
        b'{"id": "..", "status": "queued"}',
        b'{"id": "a/b \\u00e9", "status": "queued"}',
        b'{"data": {"id": "task-1", "status": "queued"}}',
        b'{"id": 5, "status": "queued"}',
        b'{"status": "queued"}',
        b'{"id": "task-1", "id": "task-2"}',
        b'{"id": "task-1", "created": NaN}',
        b'{"id": "task-1", "created": 1e999}',
        b'{"id": "task-1"} {}',
        b'{"id": "task-1", "sta',
        b'["task-1"]',
        b"null",
        b"",
        b"<html>Bad gateway</html>",
        b'{"id": "task-1", "prompt": "\xff"}',
    ],
    "poll": [
        b'{"id": "task-1", "status": "completed", "video_url": "https://cdn.example.net/a.mp4"}',
        b'{"id": "task-1", "status": "processing", "actualDuration": 4.5, "totalTokens": 9000}',
        b'{"id": "task-1", "status": "queued", "actualDuration": "4", "created": 1760000000}',
        b'{"id": "task-1", "status": "completed", "image_url": "https://cdn.example.net/a.png"}',
        b'{"id": "task-1", "status": "completed", "video_url": ""}',
        b'{"id": "task-1", "status": "failed", "error": {"code": 7}}',
        b'{"id": "task-1", "status": "cancelled"}',
        b'{"id": "task-1", "status": "Completed"}',
        b'{"id": "task-1", "status": null}',
        b'{"id": "task-1"}',
        b'{"id": "task-10", "status": "completed"}',
        (
            b'{"id": "task-1", "status": "completed", "object": "video", "created": 1760000000, '
            b'"model": "vidsb_2_0_pro", "video_url": "https://cdn.example.net/b.mp4", '
            b'"actualDuration": 4.5, "totalTokens": 4500}'
        ),
    ],
    "delete_asset": [
        b'{"code": "0", "msg": "ok", "data": null}',
        b'{"code": "0"}',
        b'{"code": "00", "msg": "ok"}',
        b'{"code": null, "msg": "ok"}',
        b'{"msg": "ok"}',
        b"[]",
    ],
    "generate_content": [
        b'{"candidates": [{"content": {"parts": [{"text": "a"}, {"text": "b"}]}}]}',
        b'{"candidates": [{"content": {"parts": [{"text": "hm", "thought": true}]}}]}',
        b'{"candidates": [{"finishReason": "MAX_TOKENS"}, {"finishReason": "STOP"}]}',
        b'{"candidates": [{"content": {"parts": "a"}, "finishReason": "SAFETY_NET"}]}',
        b'{"candidates": []}',
        b'{"promptFeedback": {"blockReason": "SAFETY"}}',
        b'{"error": "overloaded"}',
        b"[]",
    ],
}
REFUSALS: list[bytes] = [
    b'{"id": "task-7", "object": "image", "status": "queued"}',
    b'{"error": {"message": "because", "task": {"id": "task-7", "status": "queued"}}}',
    b'[{"id": 7, "status": "processing"}]',
    b'{"taskId": "task-7", "error": "because"}',
    b'{"error": {"task-ID": 7}}',
    b'{"task_id": 0, "error": "because"}',
    b'{"jobId": "task-7", "state": "IN_PROGRESS"}',
    b'{"request_id": "task-7", "status": "error"}',
    b'{"request_id": "task-7", "error": "because"}',
    b'{"id": "task-7", "error": "because"}',
    b'{"id": "task-7", "status": 400}',
    b'{"id": "task-7", "status": "400 Bad Request"}',
    b'{"id": "task-7", "status": "BAD_REQUEST"}',
    b'{"id": "task-7", "status": "RESOURCE_EXHAUSTED"}',
    b'{"error": {"status": "INVALID_ARGUMENT", "message": "because"}}',
    b'{"body": "{\\"id\\": \\"task-7\\", \\"status\\": \\"queued\\"}"}',
    b'{"id": "task-7", "status": "queued", "sta',
    '{"id": "task-7", "status": "queued"}'.encode("utf-16"),
    b'{"id": "request-7", "data": {"id": "task-7"}, "state": "QUEUED"}',
    b'{"request_id": "request-7", "uuid": "task-7", "phase": "running"}',
    b'{"status": "queued", "valid": "task-7"}',
    b'{"id": "", "status": "queued"}',
    *(
        json.dumps({"jobId": "task-7", "state": state}).encode()
        for state in (
            "queued",
            "IN_QUEUE",
            "enqueued",
            "queueing",
            "queuing",
            "pending",
            "waiting",
            "scheduled",
            "created",
            "submitted",
            "accepted",
            "received",
            "not_started",
            "starting",
            "started",
            "initializing",
            "preparing",
            "processing",
            "in progress",
            "running",
            "generating",
            "rendering",
            "executing",
            "working",
            "dreaming",
            "completed",
            "complete",
            "succeeded",
            "succeed",
            "success",
            "successful",
            "finished",
            "done",
            "ready",
            "TASK_STATUS_QUEUED",
            "brewing",
        )
    ),
    *(
        json.dumps({"id": "task-7", "status": status}).encode()
        for status in (
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "UNAUTHENTICATED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "error",
            "fail",
            "failure",
            "throttled",
            "limited",
            "rate_limited",
            "rate_limit_exceeded",
            "rejected",
            "blocked",
            "Unauthorized",
            "Payment Required",
            "Forbidden",
            "Method Not Allowed",
            "Payload Too Large",
            "Content Too Large",
            "Request Entity Too Large",
            "Unsupported Media Type",
            "Unprocessable Entity",
            "Unprocessable Content",
            "Too Early",
            "Too Many Requests",
            "failed",
        )
    ),
]
"""Bodies of a create that is refused: with a task inside, it may have been accepted."""

OPERATIONS = {"create": CREATE, "poll": POLL, "delete_asset": DELETE, "generate_content": TEXT}
