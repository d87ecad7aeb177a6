"""The emulator's responses: records exactly as in the specification's tables, and errors.

The specification shows no body for HTTP-level errors. Here all of them have one shape, except
those of the text endpoints, which follow their own protocols:

    {"error": {"code": "...", "message": "...", "problems": [{"field": "...", "message": "..."}]}}

| status | code |
|---|---|
| 400 | `invalid_json`, `invalid_request`, `parameter_conflict`; if strict, `unknown_model` |
| 401 | `unauthorized` |
| 403 | `forbidden` |
| 404 | `not_found` |
| 405 | `method_not_allowed` |
| 413 | `body_too_large` |
| 415 | `unsupported_media_type` |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self
from urllib.parse import quote

import attrs

from muybridge_protocol.emulator.lengths import tokens
from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.tasks import EmulatedTask
from muybridge_protocol.families import VIDD, VIDSB
from muybridge_protocol.http import Headers, HttpResponse
from muybridge_protocol.media.formats import USUAL
from muybridge_protocol.records.convert import partial
from muybridge_protocol.records.tasks import Result, Status, Task

_JSON_TYPE = ("Content-Type", "application/json")


@attrs.frozen
class StreamedResponse(HttpResponse):
    """A response whose body is sent piece by piece.

    Args:
        status: The HTTP status.
        headers: Header fields.
        body: The whole body: its pieces together.
        pieces: The pieces in the order in which they are sent.
        interval: Seconds between one piece and the next.
    """

    pieces: tuple[bytes, ...] = attrs.field(
        default=(), repr=lambda pieces: f"<{len(pieces)} pieces>"
    )
    interval: float = 0.0

    @classmethod
    def of(
        cls, status: int, headers: Headers, pieces: tuple[bytes, ...], *, interval: float
    ) -> Self:
        """Return the response that has *pieces* as its body, *interval* seconds apart."""
        return cls(status, headers, b"".join(pieces), pieces, interval)


def json_response(value: object, *, status: int = 200, headers: Headers = ()) -> HttpResponse:
    """Return a response with *value* as its JSON body, in ASCII."""
    # ASCII alone, because a lone surrogate that a request held has no UTF-8.
    return HttpResponse(status, (_JSON_TYPE, *headers), json.dumps(value).encode("ascii"))


def error_response(refused: Refused) -> HttpResponse:
    """Return the error that answers a *refused* request, in the shape that all of them have."""
    problems = [
        {"field": problem.field, "message": problem.sentence()} for problem in refused.problems
    ]
    error = {"code": refused.code, "message": str(refused), "problems": problems}
    return json_response({"error": error}, status=refused.status, headers=refused.headers)


def task_record(task: EmulatedTask, now: float) -> Mapping[str, object]:
    """Return the response to a create call (spec, "Task record")."""
    status = task.status(now)
    return partial(
        Task,
        id=task.id,
        object=task.family.create_object,
        created=task.created,
        model=task.model,
        status=status,
        **_error(task, status),
    )


def result_record(task: EmulatedTask, now: float, public_url: str) -> Mapping[str, object]:
    """Return the response to a result query (spec, "Result record").

    Args:
        task: The task asked for.
        now: Unix seconds.
        public_url: Where results are served from.
    """
    family = task.family
    status = task.status(now)
    completed = status is Status.COMPLETED
    url = f"{public_url}/media/{quote(media_name(task), safe='')}" if completed else None
    record: dict[str, object] = {f"{family.media}_url": url}
    if family is VIDD:
        record["total_tokens"] = None
    if completed and task.seconds is not None:
        record["actual_duration"] = task.seconds
        if family in (VIDD, VIDSB):
            record["total_tokens"] = tokens(task.seconds)
    return partial(
        Result,
        id=task.id,
        # Not shown for `imga`, `vidr` and `vidm`: there it is the same as in the create call.
        object=family.result_object or family.create_object,
        created=task.created,
        model=task.model,
        status=status,
        **record,
        **_error(task, status),
    )


def media_name(task: EmulatedTask) -> str:
    """Return the file name that the task's image or video is served under."""
    return f"{task.id}{USUAL[task.family.media].suffix}"


def _error(task: EmulatedTask, status: Status) -> Mapping[str, object]:
    has_failed = status is Status.FAILED
    if task.family.omits_error and not has_failed:
        return {}
    return {"error": task.error if has_failed else None}
