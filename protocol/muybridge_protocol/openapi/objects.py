"""The schemas of JSON objects that a class of ours reads or writes, and of arrays."""

from __future__ import annotations

from collections.abc import Iterable

from muybridge_protocol.records.convert import partial
from muybridge_protocol.records.json import JsonObject


def object_schema(
    shape: type, *, required: Iterable[str] = (), **properties: JsonObject
) -> JsonObject:
    """Return the schema of the records of *shape*.

    Args:
        shape: The class whose fields say their names on the wire.
        required: The fields that are always there, by their attributes.
        **properties: The schemas of the fields, by their attributes.
    """
    schema: JsonObject = {"type": "object"}
    if names := list(partial(shape, **dict.fromkeys(required))):
        schema["required"] = names
    return {**schema, "properties": partial(shape, **properties)}


def array_schema(items: JsonObject, **more: object) -> JsonObject:
    """Return the schema of an array of *items*, with *more* keywords."""
    return {"type": "array", "items": items, **more}
