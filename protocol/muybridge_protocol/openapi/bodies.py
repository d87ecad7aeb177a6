"""The schema of a family's create request: its fields, its models' limits, and its relations.

The schema uses the names on the wire. As in the check itself, a field without effect does not count
in rules between fields, and a field counts as sent under its old name, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from muybridge_protocol.families import Family, Field
from muybridge_protocol.openapi.values import limits_schema, value_schema
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.remedies import as_sentence
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.schemas import any_of, model_among
from muybridge_protocol.rules.values import PixelSize, ValueRule, both


def body_schema(family: Family) -> JsonObject:
    """Return the schema of a create request's body."""
    schema: JsonObject = {
        "type": "object",
        "required": [field.wire for field in family.fields if field.required],
        "properties": {field.wire: _property(family, field) for field in family.fields},
        "additionalProperties": not family.body_shown,
    }
    conditions = [
        *_model_limits(family),
        *_model_defaults(family),
        *(
            {"description": relation.sentence(), **relation.schema(partial(_sent, family))}
            for relation in family.relations
        ),
    ]
    if conditions:
        schema["allOf"] = conditions
    return schema


def _property(family: Family, field: Field) -> JsonObject:
    schema = value_schema(field.kind, field.rules)
    schema["description"] = " ".join(_sentences(family, field))
    default = family.default_of(field)
    if default is not None:
        schema["default"] = default
    if any(alias.legacy == field.wire for alias in family.aliases):
        schema["deprecated"] = True
    return schema


def _sentences(family: Family, field: Field) -> Iterator[str]:
    yield f"{field.text()}."
    for rule in field.rules:
        if isinstance(rule, MediaUrl | PixelSize):
            yield as_sentence(rule.form)
    for ineffective in family.ineffective:
        if ineffective.field == field.wire:
            yield f"It {ineffective.message()}."
    for alias in family.aliases:
        if alias.legacy == field.wire:
            yield f"Together with {alias.field} it is accepted only with the same value."
    yield from _words_of_default(family, field)
    if field.wire == "model":
        for model in family.models:
            billing = f"billed {model.billing}" if model.billing else ""
            about = "; ".join(filter(None, (model.note, billing)))
            if about:
                yield f"`{model.name}`: {about}."


# Rules for single models.


def _model_limits(family: Family) -> Iterator[JsonObject]:
    """Yield each limit once, with all the models that share it."""
    shared: dict[tuple[str, tuple[ValueRule, ...]], list[str]] = {}
    for model in family.models:
        for wire, rules in model.limits.items():
            if not any(
                rule.field == wire and model.name in rule.models for rule in family.ineffective
            ):
                shared.setdefault((wire, rules), []).append(model.name)
    for (wire, rules), models in shared.items():
        field = family.field(wire)
        if field is None:
            continue
        chosen = model_among(models)
        without_effect = [
            _named(family, rule.other)
            for rule in family.ineffective
            if rule.field == wire and rule.other is not None
        ]
        if without_effect:
            chosen["not"] = any_of(without_effect)
        limits = {wire: limits_schema(field.kind, rules)}
        yield {"if": chosen, "then": {"properties": limits}}


def _models_by_default(family: Family, field: Field) -> dict[object, list[str]]:
    """Return the models with each default of *field*, if it does not have one for all of them."""
    shared: dict[object, list[str]] = {}
    if family.default_of(field) is None:
        for model in family.models:
            value = family.defaults_of(model).get(field.wire)
            if value is not None:
                shared.setdefault(value, []).append(model.name)
    return shared


def _words_of_default(family: Family, field: Field) -> Iterator[str]:
    """Yield a default that not every request may send, in words."""
    shared = _models_by_default(family, field)
    for value, models in shared.items():
        yield f"Default {value} for {both(models)}."
    if not shared and field.service_default != family.default_of(field):  # it has an alternative
        yield f"If it and its alternative are left out, the service takes {field.service_default}."


def _model_defaults(family: Family) -> Iterator[JsonObject]:
    """Yield each default that not all models have, with the models that have it."""
    for field in family.fields:
        for value, models in _models_by_default(family, field).items():
            then = {"properties": {field.wire: {"default": value}}}
            yield {"if": model_among(models), "then": then}


# Rules between fields.


def _sent(family: Family, wire: str) -> JsonObject:
    """Return the schema of a body in which the field *wire* is sent, and has an effect."""
    without_effect: list[JsonObject] = []
    for rule in family.ineffective:
        if rule.field != wire:
            continue
        if rule.other is not None:
            without_effect.append(_named(family, rule.other))
        if rule.models:
            without_effect.append(model_among(rule.models))
    sent = _named(family, wire)
    return {**sent, "not": any_of(without_effect)} if without_effect else sent


def _named(family: Family, wire: str) -> JsonObject:
    """Return the schema of a body that has the field *wire*, under any of its names."""
    names = [wire, *(alias.legacy for alias in family.aliases if alias.field == wire)]
    return any_of({"required": [name]} for name in names)
