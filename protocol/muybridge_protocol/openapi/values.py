"""The schema of one field's value, from its type and its rules."""

from __future__ import annotations

from collections.abc import Iterable

from muybridge_protocol.openapi import patterns
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import (
    Between,
    Items,
    Kind,
    ModelName,
    NotSet,
    OneOf,
    PixelSize,
    Text,
    ValueRule,
)


def value_schema(kind: Kind, rules: Iterable[ValueRule]) -> JsonObject:
    """Return the schema of a value of *kind* that satisfies *rules*."""
    limits = limits_schema(kind, rules)
    if kind is not Kind.STRINGS:
        return {"type": kind.value, **limits}
    items = {"type": "string", **limits.pop("items", {})}
    return {"type": "array", "items": items, **limits}


def limits_schema(kind: Kind, rules: Iterable[ValueRule]) -> JsonObject:
    """Return the schema of a value that satisfies *rules*, and whose type is checked elsewhere."""
    schema: JsonObject = {}
    for rule in rules:
        part = _rule_schema(rule)
        if isinstance(rule, MediaUrl) and kind is Kind.STRINGS:
            part = {"items": part}
        if schema.keys() & part.keys():
            schema.setdefault("allOf", []).append(part)
        else:
            schema |= part
    return schema


def _rule_schema(rule: ValueRule) -> JsonObject:
    match rule:
        case OneOf(options, ignore_case=True):
            return {"pattern": patterns.in_any_case(options), "examples": list(options)}
        case OneOf(options):
            return {"enum": list(options)}
        case Between(low, high, also):
            between: JsonObject = {"minimum": low, "maximum": high}
            return {"anyOf": [between, {"enum": list(also)}]} if also else between
        case Text(limit):
            text: JsonObject = {"minLength": 1, "pattern": patterns.NOT_BLANK}
            return {**text, "maxLength": limit} if limit else text
        case ModelName():
            return {"minLength": 1, "pattern": patterns.NOT_BLANK}
        case Items(low, high):
            most: JsonObject = {"maxItems": high}
            return {"minItems": low, **most} if low else most
        case NotSet(why):
            return {"not": {}, "description": f"Must not be sent: {why}."}
        case PixelSize():
            return {"pattern": patterns.pixel_size(rule)}
        case MediaUrl():
            return {"pattern": patterns.media_url(rule)}
        case _:
            raise TypeError(f"no schema is known for the rule {rule.name}")
