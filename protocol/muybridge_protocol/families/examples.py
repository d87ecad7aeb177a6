"""Example bodies that the service accepts, one for each model."""

from __future__ import annotations

from muybridge_protocol.families.family import Family
from muybridge_protocol.families.field import Field
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Between, Kind, OneOf

PROMPT = "A horse at a gallop"
_MEDIUM = "https://media.example.com/horse.mp4"


def examples(family: Family) -> dict[str, JsonObject]:
    """Return a body for each model: its required fields, and the service's defaults.

    A family whose models are not shown has one, under its own name.
    """
    return {name: _with_defaults(family, body) for name, body in _required(family).items()}


def smallest_example(family: Family) -> JsonObject:
    """Return the example with the fewest fields: those that its model requires."""
    return min(_required(family).values(), key=len)


def _required(family: Family) -> dict[str, JsonObject]:
    """Return a body with only the required fields for each model."""
    bodies: dict[str, JsonObject] = {
        model.name: {"model": model.name, "prompt": PROMPT} for model in family.models
    }
    bodies = bodies or {family.name: {"prompt": PROMPT}}
    for name, body in bodies.items():
        while missing := [field for field in _wanted(family, body, name) if field.wire not in body]:
            body.update((field.wire, _value(field)) for field in missing)
        if problems := family.check(body).problems:
            raise ValueError(f"there is no example of {name} yet: {problems}")
    return bodies


def _wanted(family: Family, body: JsonObject, model: str) -> list[Field]:
    """Return the fields that a request for *model* needs, those that *body* asks for included."""
    demanded = {wire for rule in family.relations for wire in rule.demands(body, model)}
    return [field for field in family.fields if field.required or field.wire in demanded]


def _with_defaults(family: Family, body: JsonObject) -> JsonObject:
    for field in family.fields:
        if field.service_default is None or field.wire in body:
            continue
        fuller = {**body, field.wire: field.service_default}
        report = family.check(fuller)
        if report.ok and not report.notices:
            body = fuller
    return body


def _value(field: Field) -> object:
    """Return a value that *field*, for which the service has no default, accepts."""
    for rule in field.rules:
        match rule:
            case OneOf(options):
                return options[0]
            case Between(low):
                return low
            case MediaUrl():
                return [_MEDIUM] if field.kind is Kind.STRINGS else _MEDIUM
            case _:
                pass
    return PROMPT
