"""The schema of a family's create request: its fields, its models' limits, and its relations.

The schema uses the names on the wire. As in the check itself, a field without effect does not count
in rules between fields, and a field counts as sent under its old name, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from muybridge_protocol.families import Family, Field
from muybridge_protocol.openapi.values import limits_schema, value_schema
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import (
    Alternatives,
    Excludes,
    FewerWith,
    OnlyWith,
    Relation,
    RequiredFor,
    Requires,
)
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
            {"description": relation.sentence(), **_condition(family, relation)}
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
    yield f"{_wire_names(family, field.doc)}."
    for rule in field.rules:
        if isinstance(rule, MediaUrl | PixelSize):
            accepted = rule.accepted.removeprefix("use ")
            yield f"{accepted[0].upper()}{accepted[1:]}."
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


def _wire_names(family: Family, doc: str) -> str:
    """Return *doc*, which calls fields by their Python names, with those on the wire."""
    for field in family.fields:
        if field.name != field.wire:
            doc = re.sub(rf"\b{field.name}\b", field.wire, doc)
    return doc


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
        chosen = _model_among(models)
        without_effect = [
            _named(family, rule.other)
            for rule in family.ineffective
            if rule.field == wire and rule.other is not None
        ]
        if without_effect:
            chosen["not"] = _any_of(without_effect)
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
            yield {"if": _model_among(models), "then": then}


def _model_among(models: Sequence[str]) -> JsonObject:
    named: JsonObject = {"const": models[0]} if len(models) == 1 else {"enum": list(models)}
    return {"properties": {"model": named}, "required": ["model"]}


# Rules between fields.


def _condition(family: Family, relation: Relation) -> JsonObject:
    match relation:
        case Requires(field, other):
            sent, others = _sent(family, field), _sent(family, other)
            if sent == {"required": [field]} and others == {"required": [other]}:
                return {"dependentRequired": {field: [other]}}
            return {"if": sent, "then": others}
        case Excludes(these, those):
            both = (
                _any_of(_sent(family, field) for field in these),
                _any_of(_sent(family, field) for field in those),
            )
            return {"not": _all_of(both)}
        case Alternatives(one, other):
            return {"not": _all_of((_sent(family, one), _sent(family, other)))}
        case RequiredFor(field, models):
            return {
                "if": _model_among(models),
                "then": {**_sent(family, field), "properties": {field: {"minItems": 1}}},
            }
        case OnlyWith(field, value, other, options):
            both_sent = _all_of((_sent(family, field), _sent(family, other)))
            return {
                "if": {"properties": {field: {"const": value}}, **both_sent},
                "then": {"properties": {other: {"enum": list(options)}}},
            }
        case FewerWith(field, high, other):
            return {
                "if": _sent(family, other),
                "then": {"properties": {field: {"maxItems": high}}},
            }
        case _:
            raise TypeError(f"no schema is known for the relation {type(relation).__name__}")


def _sent(family: Family, wire: str) -> JsonObject:
    """Return the schema of a body in which the field *wire* is sent, and has an effect."""
    without_effect: list[JsonObject] = []
    for rule in family.ineffective:
        if rule.field != wire:
            continue
        if rule.other is not None:
            without_effect.append(_named(family, rule.other))
        if rule.models:
            without_effect.append(_model_among(rule.models))
    sent = _named(family, wire)
    return {**sent, "not": _any_of(without_effect)} if without_effect else sent


def _named(family: Family, wire: str) -> JsonObject:
    """Return the schema of a body that has the field *wire*, under any of its names."""
    names = [wire, *(alias.legacy for alias in family.aliases if alias.field == wire)]
    return _any_of({"required": [name]} for name in names)


def _any_of(schemas: Iterable[JsonObject]) -> JsonObject:
    several: list[JsonObject] = []
    for schema in schemas:
        several += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return several[0] if len(several) == 1 else {"anyOf": several}


def _all_of(schemas: Iterable[JsonObject]) -> JsonObject:
    several = list(schemas)
    if all(schema.keys() == {"required"} for schema in several):
        return {"required": [name for schema in several for name in schema["required"]]}
    return {"allOf": several}
