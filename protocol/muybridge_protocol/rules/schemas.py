"""Pieces of JSON schemas for the bodies of requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muybridge_protocol.records.json import JsonObject


def model_among(models: Sequence[str]) -> JsonObject:
    """Return the schema of a body with one of *models*."""
    named: JsonObject = {"const": models[0]} if len(models) == 1 else {"enum": list(models)}
    return {"properties": {"model": named}, "required": ["model"]}


def any_of(schemas: Iterable[JsonObject]) -> JsonObject:
    """Return the schema of a body that follows any of *schemas*."""
    several: list[JsonObject] = []
    for schema in schemas:
        several += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return several[0] if len(several) == 1 else {"anyOf": several}


def all_of(schemas: Iterable[JsonObject]) -> JsonObject:
    """Return the schema of a body that follows all *schemas*."""
    several = list(schemas)
    if all(schema.keys() == {"required"} for schema in several):
        return {"required": [name for schema in several for name in schema["required"]]}
    return {"allOf": several}
