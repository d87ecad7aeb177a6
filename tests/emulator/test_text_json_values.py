"""Values for JSON schemas: judged by jsonschema, which others wrote."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.emulator.text.json_values import value_for
from muybridge_protocol.records.json import InvalidJson

HORSE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 2}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LINKED: dict[str, Any] = {
    "$ref": "#/$defs/Link",
    "$defs": {
        "Link": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "next": {"anyOf": [{"$ref": "#/$defs/Link"}, {"type": "null"}]},
                "others": {"type": "array", "items": {"$ref": "#/$defs/Link"}},
            },
            "required": ["value", "next", "others"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, "value"),
        ({}, "value"),
        ({"type": "string", "maxLength": 2}, "va"),
        ({"type": "string", "minLength": 7}, "valueaa"),
        ({"type": "string", "format": "date"}, "2024-01-02"),
        ({"type": "string", "pattern": "^[A-Z]{3}$"}, "AAA"),
        ({"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}, "2024-01-02"),
        ({"type": "integer"}, 0),
        ({"type": "integer", "exclusiveMinimum": 0}, 1),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "minimum": 1, "multipleOf": 4}, 4),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}, 0),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "number", "minimum": 0.5, "maximum": 0.5}, 0.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 0),
        ({"enum": ["trot", "walk"]}, "trot"),
        ({"const": {"a": 1}}, {"a": 1}),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"oneOf": [{"type": "string", "pattern": "^(?!.)x"}, {"type": "integer"}]}, 0),
        ({"allOf": [{"minimum": 3}, {"maximum": 9}], "type": "integer"}, 3),
        ({"type": "array"}, ["value"]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "array", "minItems": 3, "items": {"type": "integer"}}, [0, 1, 2]),
        ({"type": "array", "minItems": 2, "uniqueItems": True}, ["value", "value2"]),
        ({"minItems": 3, "items": {"type": "integer", "minimum": 0, "maximum": 1}}, [0, 1, 0]),
        ({"prefixItems": [{"type": "integer"}, {"type": "boolean"}]}, [0, False]),
        ({"type": "array", "items": False}, []),
        (HORSE, {"name": "name", "age": 2}),
        (LINKED, {"value": 0, "next": None, "others": []}),
        ({"type": "object", "minProperties": 2}, {"key1": "key1", "key2": "key2"}),
        ({"required": ["a"], "additionalProperties": {"type": "integer"}}, {"a": 0}),
        ({"properties": {"a": {}, "b": {}}, "maxProperties": 1, "required": ["b"]}, {"b": "b"}),
        ({"properties": {"a": {"not": {}}, "b": {}}}, {"b": "b"}),
        ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, {}),
        # As the native protocol writes it.
        ({"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}}, {"n": 0}),
        ({"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "2"}, ["value", "value2"]),
        ({"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": 2}, [0, 1]),
    ],
)  # fmt: skip
def test_a_value_is_plain(schema: Any, value: Any) -> None:
    """The value is the plainest that the schema allows, and the same each time."""
    made = value_for(schema)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (False, "the schema allows no value"),
        ("text", "'text' is not a schema"),
        ({"enum": []}, "enum is empty"),
        ({"enum": 1}, "enum is empty"),
        ({"type": "horse"}, "horse is not a type"),
        ({"type": "string", "pattern": "^zebra$"}, "no text was found"),
        ({"type": "string", "pattern": "("}, r"\( is not a pattern"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "the length cannot be met"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number was found"),
        ({"type": "integer", "minimum": 10**400}, "no number was found"),
        ({"type": "integer", "multipleOf": 0}, "no number was found"),
        ({"type": "array", "minItems": 10**9}, "the number of elements cannot be met"),
        ({"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "boolean"}},
         "too few different elements"),
        ({"type": "object", "minProperties": 10**9}, "the number of properties cannot be met"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "a: the schema all"),
        ({"$ref": "#"}, "contains itself"),
        ({"$ref": "#/$defs/a"}, "does not contain #/"),
        ({"$ref": "https://example.com/a"}, "does not contain https"),
        ({"not": {}}, "does not understand not"),
        ({"required": ["a"], "patternProperties": {"a": {}}}, "understand patternProperties"),
        ({"anyOf": []}, "there is no alternative"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "several values of type"),
        ({"allOf": [{"minimum": 3}, {"minimum": 5}]}, "several values of minimum"),
    ],
)  # fmt: skip
def test_what_has_no_value_is_refused(schema: Any, complaint: str) -> None:
    """A schema without a value, or that is not understood, is refused with the reason."""
    with pytest.raises(InvalidJson, match=complaint):
        value_for(schema)


def test_a_schema_that_grows_without_end_is_refused() -> None:
    """Definitions that all refer to each other do not take for ever."""
    names = [f"d{number}" for number in range(12)]
    each = {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}, "required": names}
    with pytest.raises(InvalidJson, match=r"contains itself|too large"):
        value_for({"$ref": "#/$defs/d0", "$defs": dict.fromkeys(names, each)})


Schema = dict[str, Any]

small = st.integers(-9, 9)
sizes = st.integers(0, 9)
names = st.sampled_from(["a", "b", "c"])


def texts(shortest: int, more: int) -> Schema:
    return {"type": "string", "minLength": shortest, "maxLength": shortest + more}


def numbers(kind: str, low: int, more: int) -> Schema:
    return {"type": kind, "minimum": low, "maximum": low + more}


def between(low: int, more: int) -> Schema:
    return {"exclusiveMinimum": low, "exclusiveMaximum": low + 1 + more}


def objects(properties: Schema, required: set[str], others: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": others}
    return {**schema, "required": sorted(required)}


def arrays(items: Schema, fewest: int) -> Schema:
    return {"type": "array", "items": items, "minItems": fewest}


def alternatives(several: list[Schema]) -> Schema:
    return {"anyOf": several}


def composed(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    properties = st.dictionaries(names, inner, max_size=3)
    return st.one_of(
        st.builds(objects, properties, st.sets(names), inner),
        st.builds(arrays, inner, st.integers(0, 3)),
        st.builds(alternatives, st.lists(inner, min_size=1, max_size=3)),
    )


others: list[Schema] = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["null", "string"]},
    {},
    {"enum": ["a", 1, None]},
    {"const": 5},
    {"type": "integer", "multipleOf": 3},
]
scalars: st.SearchStrategy[Schema] = st.one_of(
    st.builds(texts, sizes, sizes),
    st.builds(numbers, st.sampled_from(["integer", "number"]), small, sizes),
    st.builds(between, small, sizes),
    st.sampled_from(others),
)


@given(st.recursive(scalars, composed, max_leaves=8))
def test_a_value_satisfies_its_schema(schema: Any) -> None:
    """What is made satisfies the schema, as jsonschema judges."""
    jsonschema.validate(value_for(schema), schema, cls=jsonschema.Draft202012Validator)


keywords = st.sampled_from(
    ["type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "minimum",
     "maximum", "multipleOf", "minItems", "minLength", "pattern", "uniqueItems", "$ref", "a"]
)  # fmt: skip
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=4),
    max_leaves=8,
)


@given(json_values)
def test_any_schema_has_a_value_or_none(schema: Any) -> None:
    """Whatever is given as a schema, there is a value or a reason why there is none."""
    with suppress(InvalidJson):
        value_for(schema)
