"""The schemas of the service's records, exactly as far as the specification shows them.

Records may have more fields than these. Bodies of HTTP-level errors are not shown, so that they
have no schema.
"""

from __future__ import annotations

from typing import Final

from muybridge_protocol.families import FAMILIES, IMGB, Family
from muybridge_protocol.openapi.objects import object_schema
from muybridge_protocol.operations.delete_asset import SUCCESS
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Status, Task

_REQUIRED: Final = ("id", "object", "created", "model", "status")
_COMMON: Final[JsonObject] = {
    "id": {"type": "string", "description": "The task's identifier."},
    "created": {"type": "integer", "description": "When it was created, Unix seconds."},
    "model": {"type": "string", "description": "The model used."},
}


def task_schema(family: Family) -> JsonObject:
    """Return the schema of the response to *family*'s create call (spec, "Task record")."""
    statuses = [Status.QUEUED]
    if family.starts_processing:
        statuses.append(Status.PROCESSING)
    if family is IMGB or family.omits_error:
        statuses.append(Status.FAILED)
    required, failure = [*_REQUIRED, "error"], "The failure message; null on success."
    if family.omits_error:
        required.remove("error")
        failure = "The failure message; left out unless the status is failed."
    schema = object_schema(
        Task,
        required=required,
        **_COMMON,
        object={"const": family.create_object},
        status={"enum": statuses},
        error={"type": ["string", "null"], "description": failure},
    )
    if Status.FAILED in statuses:
        schema |= _FAILED_HAS_A_REASON
    return schema


_FAILED_HAS_A_REASON: Final[JsonObject] = {
    "if": {"properties": {"status": {"const": Status.FAILED.value}}, "required": ["status"]},
    "then": {"properties": {"error": {"type": "string"}}, "required": ["error"]},
}


def result_schema() -> JsonObject:
    """Return the schema of the response to a result query (spec, "Result record")."""
    shown = ", ".join(
        f"`{family.result_object}` ({family.name})"
        for family in FAMILIES.values()
        if family.result_object is not None
    )
    cancelling = "; cancelled is reported for family vidsa alone"
    schema = object_schema(
        Result,
        required=_REQUIRED,
        **_COMMON,
        object={"type": "string", "description": f"{shown}; not shown for the other families."},
        status={
            "enum": list(Status),
            "description": f"completed, failed and cancelled are terminal{cancelling}.",
        },
        image_url=_link("the image"),
        video_url=_link("the MP4 video"),
        actual_duration={
            "type": "number",
            "description": "The real length in seconds of a completed video.",
        },
        total_tokens={
            "type": ["number", "null"],
            "description": (
                "Tokens that the task consumed, of families vidsb, where it is an integer, and "
                "vidd, where it is null until completion."
            ),
        },
        error={"type": ["string", "null"], "description": "Why the task failed."},
    )
    only_completed = {
        "description": "Only a completed task has a URL.",
        "if": {
            "properties": {"status": {"not": {"const": Status.COMPLETED.value}}},
            "required": ["status"],
        },
        "then": {"properties": {"image_url": {"type": "null"}, "video_url": {"type": "null"}}},
    }
    return {**schema, "allOf": [_FAILED_HAS_A_REASON, only_completed]}


def _link(what: str) -> JsonObject:
    return {
        "type": ["string", "null"],
        "format": "uri",
        "description": f"Where {what} is, downloaded without a key; null until it is completed.",
    }


ASSET_DELETION: Final[JsonObject] = {
    "type": "object",
    "required": ["code", "msg", "data"],
    "properties": {
        "code": {
            "type": "string",
            "description": f'"{SUCCESS}" means success, any other value failure.',
        },
        "msg": {"type": "string", "description": "A confirmation, or what went wrong."},
        "data": {"type": "null"},
    },
}
