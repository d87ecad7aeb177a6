"""A value for a JSON schema, as an answer that has to satisfy one.

The value is the same each time, and as plain as the schema allows. Text is the name of its
property, the first of several alternatives counts, numbers are close to zero, and lists have one
element. Optional properties are present, unless the schema would go on without end or no value is
found for them.

A schema is read as JSON schema, with the spellings of the native protocol: types in capitals, and
keywords in snake case, which Google's own software sends. Most keywords that software generates
from types are understood. If no value is found, for example for an intricate pattern, the request
is refused, because a wrong value would look like a model's mistake.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from muybridge_protocol.records.json import JsonObject, as_array, as_object, readable

_MOST_STEPS: Final = 5_000
"""Most schemas that are read for one value: a recursive one could take for ever."""

_MOST_ELEMENTS: Final = 1_000
_LONGEST_TEXT: Final = 10_000
_LONGEST_NAME: Final = 40

_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2024-01-02T03:04:05Z",
    "date": "2024-01-02",
    "time": "03:04:05Z",
    "duration": "PT1S",
    "email": "horse@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

_TRIED_FOR_PATTERNS: Final = (
    *_FORMATS.values(),
    "1.5",
    "#aabbcc",
    *(letter * count for count in range(13) for letter in ("a", "A", "0", "1")),
)

_NOT_UNDERSTOOD: Final = (
    "not",
    "if",
    "contains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
)

_SPELLINGS: Final[Mapping[str, str]] = {
    "any_of": "anyOf",
    "prefix_items": "prefixItems",
    "additional_properties": "additionalProperties",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
}

_LOWER_LIMITS: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER_LIMITS: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ALTERNATIVES: Final = ("anyOf", "oneOf")

_TYPES_BY_KEYWORD: Final[Mapping[str, str]] = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "minProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minimum": "number",
    "exclusiveMinimum": "number",
    "maximum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
"""The type that a keyword is about, for schemas that do not name theirs. Others are texts."""


class NoValue(Exception):
    """No value was found for a schema; the message says which part of it, and why."""


def value_for(schema: object, name: str = "value") -> Any:
    """Return a value that satisfies *schema*.

    Args:
        schema: A JSON schema of any content.
        name: The name of the value, which a text repeats.

    Raises:
        NoValue: None was found.
    """
    return _Maker(schema).make(schema, name, frozenset())


class _Maker:
    """Makes the value for one schema.

    Args:
        root: The whole schema, to which references refer.
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._steps = 0

    def make(self, given: object, name: str, inside: frozenset[str], number: int = 0) -> Any:
        """Return a value.

        Args:
            given: Its schema.
            name: Its name.
            inside: The references that it is within.
            number: Its number among several that have to differ.
        """
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NoValue(f"{name}: the schema is too large, or contains itself")
        schema, inside = self._resolved(given, name, inside)
        for keyword in _ALTERNATIVES:
            if keyword in schema:
                rest = {key: value for key, value in schema.items() if key != keyword}
                alternatives = [
                    {"allOf": [rest, one]} for one in _array(schema[keyword], keyword, name)
                ]
                return self._first(alternatives, name, inside, number)
        for keyword in _NOT_UNDERSTOOD:
            if keyword in schema:
                raise NoValue(f"{name}: the local service does not understand {keyword}")
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            values = _array(schema["enum"], "enum", name)
            if not values:
                raise NoValue(f"{name}: enum is empty")
            return values[number % len(values)]
        kinds = _types(schema)
        if len(kinds) > 1:
            typed = [{**schema, "type": kind} for kind in kinds]
            return self._first(typed, name, inside, number)
        return self._typed(kinds[0], schema, name, inside, number)

    def _first(
        self, schemas: list[JsonObject], name: str, inside: frozenset[str], number: int
    ) -> Any:
        """Return a value for the first of *schemas* that has one."""
        failure = NoValue(f"{name}: there is no alternative")
        for schema in schemas:
            try:
                return self.make(schema, name, inside, number)
            except NoValue as error:
                failure = error
        raise failure

    def _resolved(
        self, given: object, name: str, inside: frozenset[str]
    ) -> tuple[JsonObject, frozenset[str]]:
        """Return the schema *given*, with what it refers to and all that it combines."""
        if given is True:
            return {}, inside
        if given is False:
            raise NoValue(f"{name}: the schema allows no value")
        schema = as_object(given)
        if schema is None:
            raise NoValue(f"{name}: {readable(repr(given), 40)} is not a schema")
        schema = {_SPELLINGS.get(keyword, keyword): value for keyword, value in schema.items()}
        reference = schema.pop("$ref", None)
        if reference is not None:
            if not isinstance(reference, str) or reference in inside:
                raise NoValue(f"{name}: the schema contains itself")
            inside |= {reference}
            found, inside = self._resolved(self._at(reference, name), name, inside)
            schema = _merged(found, schema, name)
        while "allOf" in schema:
            for one in _array(schema.pop("allOf"), "allOf", name):
                part, inside = self._resolved(one, name, inside)
                schema = _merged(schema, part, name)
        return schema, inside

    def _at(self, reference: str, name: str) -> object:
        """Return the schema at *reference*, such as `#/$defs/Horse`."""
        found: Any = self._root
        place, _, path = reference.partition("/")
        if place != "#":
            raise NoValue(f"{name}: {readable(reference, 60)} is not within the schema")
        for step in path.split("/") if path else []:
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise NoValue(f"{name}: {readable(reference, 60)} does not exist")
            found = found[key]  # pyright: ignore[reportUnknownVariableType]  of anything
        return cast("object", found)

    def _typed(
        self, kind: str, schema: JsonObject, name: str, inside: frozenset[str], number: int
    ) -> Any:
        match kind:
            case "object":
                return self._object(schema, name, inside)
            case "array":
                return self._list(schema, name, inside)
            case "string":
                return _text(schema, name, number)
            case "integer" | "number":
                return _number(schema, name, number, whole=kind == "integer")
            case "boolean":
                return number % 2 == 0
            case "null":
                return None
            case _:
                raise NoValue(f"{name}: {readable(kind, 40)} is not a type")

    def _object(self, schema: JsonObject, name: str, inside: frozenset[str]) -> JsonObject:
        properties = as_object(schema.get("properties", {}))
        if properties is None:
            raise NoValue(f"{name}: properties is not an object")
        others = schema.get("additionalProperties", True)
        required = _array(schema.get("required", []), "required", name)
        fewest = _count(schema, "minProperties", 0)
        most = _count(schema, "maxProperties", _MOST_ELEMENTS)
        made: JsonObject = {}
        for key in required:
            if isinstance(key, str) and key not in made:
                made[key] = self.make(properties.get(key, others), key, inside)
        for key, one in properties.items():
            if key not in made and len(made) < most:
                with suppress(NoValue):
                    made[key] = self.make(one, key, inside)
        for key in (f"key{count + 1}" for count in range(min(fewest, _MOST_ELEMENTS))):
            if key not in made and len(made) < fewest:
                made[key] = self.make(others, key, inside)
        if not fewest <= len(made) <= most:
            raise NoValue(f"{name}: the number of properties cannot be met")
        return {key: made[key] for key in [*properties, *made] if key in made}

    def _list(self, schema: JsonObject, name: str, inside: frozenset[str]) -> list[Any]:
        fewest, most = _count(schema, "minItems", 0), _count(schema, "maxItems", _MOST_ELEMENTS)
        firsts = _array(schema.get("prefixItems", []), "prefixItems", name)
        if not fewest <= most or fewest > _MOST_ELEMENTS:
            raise NoValue(f"{name}: the number of elements cannot be met")
        made: list[Any] = []
        wanted = min(max(fewest, len(firsts), 1), most)
        try:
            for at in range(wanted):
                one = firsts[at] if at < len(firsts) else schema.get("items", True)
                made.append(self.make(one, name, inside, at))
        except NoValue:
            if len(made) < fewest:
                raise
        if schema.get("uniqueItems") is True:
            for at, value in enumerate(made):
                if value in made[:at]:
                    raise NoValue(f"{name}: there are too few different elements")
        return made


def _types(schema: JsonObject) -> list[str]:
    """Return the types that *schema* allows, null only if there is no other."""
    given: object = schema.get("type")
    if given is None:
        keyword = next((one for one in _TYPES_BY_KEYWORD if one in schema), None)
        return ["string" if keyword is None else _TYPES_BY_KEYWORD[keyword]]
    kinds = [str(kind).lower() for kind in (as_array(given) or [given])]
    return [kind for kind in kinds if kind != "null"] or ["null"]


def _text(schema: JsonObject, name: str, number: int) -> str:
    shortest, longest = _count(schema, "minLength", 0), _count(schema, "maxLength", _LONGEST_TEXT)
    if shortest > min(longest, _LONGEST_TEXT):
        raise NoValue(f"{name}: the length cannot be met")
    pattern: object = schema.get("pattern")
    formatted = _FORMATS.get(str(schema.get("format")))
    if formatted is not None:
        candidates = [formatted]
    else:
        plain = name[:_LONGEST_NAME] + (str(number + 1) if number else "")
        candidates = [plain[:longest].ljust(shortest, "a")]
    if pattern is not None:
        candidates += _TRIED_FOR_PATTERNS
    fitting = _fitting(candidates, pattern, name)
    found = [text for text in fitting if shortest <= len(text) <= longest]
    if not found:
        raise NoValue(f"{name}: no text was found for its pattern, format and length")
    return found[number % len(found)] if pattern is not None else found[0]


def _fitting(candidates: list[str], pattern: object, name: str) -> list[str]:
    """Return the *candidates* that *pattern* allows, which is any of them if it is None."""
    if pattern is None:
        return candidates
    try:
        compiled = re.compile(str(pattern))
        return [text for text in candidates if compiled.search(text)]
    except (re.error, OverflowError, RecursionError, FutureWarning):  # warnings may be errors
        raise NoValue(f"{name}: {readable(str(pattern), 60)} is not a pattern") from None


def _number(schema: JsonObject, name: str, number: int, *, whole: bool) -> int | float:
    low, high = _limits(schema)
    step = _real(schema, "multipleOf")
    if step is not None and step <= 0:
        raise NoValue(f"{name}: multipleOf is not positive")
    unit = step or 1
    with suppress(OverflowError):  # of limits that no float has
        if step is None and not whole and -math.inf < low < high < math.inf:
            unit = min(1, (high - low) / 4)
        # If there are too few numbers to differ, one of them repeats.
        for value in (*_values(low, high, unit, number), *_values(low, high, unit, 0)):
            fits = low <= value <= high and value not in _excluded(schema)
            if fits and not (whole and value % 1):
                return int(value) if value % 1 == 0 else value
    raise NoValue(f"{name}: no number was found within its limits")


def _values(low: float, high: float, unit: float, number: int) -> Iterator[float]:
    """Yield numbers that may be within the limits, as close to zero as they allow."""
    if low <= 0 <= high:
        yield from (unit * (number + extra) for extra in (0, 1))
        yield from (-unit * (number + extra) for extra in (0, 1))
    elif low > 0:
        first = math.ceil(low / unit)
        yield from (unit * (first + number + extra) for extra in (0, 1, 2))
        yield low
    else:
        first = math.floor(high / unit)
        yield from (unit * (first - number - extra) for extra in (0, 1, 2))
        yield high


def _limits(schema: JsonObject) -> tuple[float, float]:
    lows = [_real(schema, "minimum"), _real(schema, "exclusiveMinimum")]
    highs = [_real(schema, "maximum"), _real(schema, "exclusiveMaximum")]
    low = max((limit for limit in lows if limit is not None), default=-math.inf)
    high = min((limit for limit in highs if limit is not None), default=math.inf)
    return low, high


def _excluded(schema: JsonObject) -> tuple[object, ...]:
    """Return the limits that the number may not have. An older form says so by true."""
    found: list[object] = []
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        given: object = schema.get(exclusive)
        found.append(_real(schema, limit) if given is True else _real(schema, exclusive))
    return tuple(found)


def _merged(one: JsonObject, other: JsonObject, name: str) -> JsonObject:
    """Return a schema that demands what *one* and *other* demand."""
    merged = dict(one)
    for keyword, value in other.items():
        if keyword not in merged or merged[keyword] == value:
            merged[keyword] = value
            continue
        known = merged[keyword]
        if keyword == "properties":
            merged[keyword] = _merged_properties(known, value, name)
        elif keyword == "required":
            merged[keyword] = [*_array(known, keyword, name), *_array(value, keyword, name)]
        elif keyword == "enum":
            merged[keyword] = [item for item in as_array(known) if item in as_array(value)]
        elif keyword == "type":
            kinds = set(_types({"type": known}))
            merged[keyword] = [kind for kind in _types({"type": value}) if kind in kinds]
            if not merged[keyword]:
                raise NoValue(f"{name}: no type is allowed by all of its schemas")
        elif keyword in _LOWER_LIMITS and _are_numbers(known, value):
            merged[keyword] = max(known, value)
        elif keyword in _UPPER_LIMITS and _are_numbers(known, value):
            merged[keyword] = min(known, value)
        elif keyword in ("items", "additionalProperties"):
            merged[keyword] = {"allOf": [known, value]}
        elif keyword in _ALTERNATIVES:
            merged["allOf"] = [*as_array(merged.get("allOf")), {keyword: value}]
        elif keyword in ("const", "pattern", "multipleOf", *_NOT_UNDERSTOOD):
            raise NoValue(f"{name}: it has several values of {keyword}")
        else:
            merged[keyword] = value
    return merged


def _merged_properties(known: object, value: object, name: str) -> JsonObject:
    ones, others = as_object(known), as_object(value)
    if ones is None or others is None:
        raise NoValue(f"{name}: properties is not an object")
    both = {key: {"allOf": [ones[key], others[key]]} for key in ones if key in others}
    return {**ones, **others, **both}


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _array(value: object, keyword: str, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise NoValue(f"{name}: {keyword} is not an array")
    return as_array(value)


def _count(schema: JsonObject, keyword: str, default: int) -> int:
    """Return the count in *keyword*. The native protocol also writes counts as texts."""
    value: object = schema.get(keyword)
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:  # noqa: PLR2004  more is no count
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _real(schema: JsonObject, keyword: str) -> int | float | None:
    value: object = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
