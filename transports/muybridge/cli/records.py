"""JSON documents: tasks and results with the service's own fields, and the families' tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from muybridge_protocol.families import Family, Field, Model
from muybridge_protocol.records.convert import attributes, unstructure, wire_names
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.rules.values import ValueRule

if TYPE_CHECKING:
    from muybridge.verbs.generation import Generation
    from muybridge_protocol.text.models import TextModel
    from muybridge_protocol.text.responses import GenerateContentResponse


def task_record(task: Task) -> dict[str, Any]:
    """Return the task's record as received, with its family and the token that resumes it."""
    own = {**attributes(task, "family"), "token": task.to_token()}
    return {**attributes(task, "id"), **task.raw, **own}


def result_record(result: Result) -> dict[str, Any]:
    """Return the result's record as received."""
    return {**attributes(result, "id", "status"), **result.raw}


def generation_record(generation: Generation) -> dict[str, Any]:
    """Return what a finished command reports about a task."""
    record: dict[str, Any] = {}
    if generation.task is not None:
        record["task"] = task_record(generation.task)
    if generation.result is not None:
        record["result"] = result_record(generation.result)
        record["expires_at"] = generation.result.expires_at
    if generation.path is not None:
        record["path"] = str(generation.path)
    return record


def answer_record(answer: GenerateContentResponse) -> dict[str, Any]:
    """Return what a command reports about an answer, or about the part that has arrived."""
    usage = answer.usage_metadata
    return {
        "text": answer.candidates[0].text if answer.candidates else "",
        "finish_reason": answer.finish_reason,
        "usage": None if usage is None else attributes(usage, *wire_names(type(usage))),
        "response": answer.raw,
    }


def text_model_record(model: TextModel) -> dict[str, Any]:
    """Return everything known about a text *model*."""
    return {
        "family": "text",
        **attributes(model, "name", "base"),
        "variant": model.variant.name.lower(),
    }


def family_record(family: Family) -> dict[str, Any]:
    """Return everything the tables say about *family*."""
    return {
        **attributes(family, "name", "media", "create_path", "resolution"),
        "duration": family.duration or None,
        **attributes(family, "makes_audio", "body_shown", "pacing", "retention"),
        "fields": [_field_record(family, field) for field in family.fields],
        "relations": [{"rule": rule.name, **unstructure(rule)} for rule in family.relations],
        **attributes(family, "aliases", "ineffective"),
        "models": [model_record(family, model) for model in family.models],
        **attributes(family, "notes"),
    }


def model_record(family: Family, model: Model) -> dict[str, Any]:
    """Return everything the tables say about *model*, with its own limits and its family's."""
    return {
        "family": family.name,
        **attributes(model, "name", "note"),
        "billing": model.billing or None,
        "limits": {
            field.wire: _rule_records((*field.rules, *model.limits.get(field.wire, ())))
            for field in family.fields
            if field.wire != "model"
        },
        "own_limits": sorted(model.limits),
        "defaults": family.defaults_of(model),
        "pacing": unstructure(model.pacing or family.pacing),
        **attributes(family, "retention", "notes"),
    }


def _field_record(family: Family, field: Field) -> dict[str, Any]:
    return {
        "name": field.wire,
        "type": field.kind,
        **attributes(field, "required"),
        "default": family.default_of(field),
        "rules": _rule_records(field.rules),
        **attributes(field, "doc"),
    }


def _rule_records(rules: Iterable[ValueRule]) -> list[dict[str, Any]]:
    return [
        {"rule": rule.name, **unstructure(rule), **attributes(rule, "accepted")} for rule in rules
    ]
