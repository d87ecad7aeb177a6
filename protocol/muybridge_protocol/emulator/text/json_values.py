"""A value for a JSON schema, as an answer that has to satisfy one.

The value is plain, and the same each time: a text is the name of its property, the first of several
alternatives counts, numbers are close to zero, and lists have one element. Optional properties are
present, unless the schema would go on without end or no value is found for them.

What software generates from types is understood, in JSON schema's spelling and in the native
protocol's: types in capitals, and keywords in snake case. All else is refused, because a wrong
value would look like a model's mistake; a script answers those requests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from muybridge_protocol.records.json import InvalidJson, JsonObject, as_array, as_object, readable

_MOST_STEPS: Final = 5_000
"""Most schemas that are read for one value: a recursive one could take for ever."""

_MOST_ELEMENTS: Final = 1_000
_LONGEST_TEXT: Final = 10_000
_LONGEST_NAME: Final = 40
"""Limits of what is made, whatever a schema demands: elements, characters of a text, and those of a
field's name that its text repeats."""

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
"""Texts of which one may match a pattern: of formats and codes, and up to 12 letters or digits."""

_ANNOTATIONS: Final = ("title", "description", "default", "examples")
_NOT_UNDERSTOOD: Final = (
    *("not", "if", "contains", "$dynamicRef"),
    *("dependentRequired", "dependentSchemas", "dependencies"),
)


def value_for(schema: object, name: str = "value") -> Any:
    """Return a value that satisfies *schema*.

    Args:
        schema: A JSON schema of any content.
        name: The name of the value, which a text repeats.

    Raises:
        InvalidJson: None was found. The message says which part of the schema is why.
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
            raise InvalidJson(f"{name}: the schema is too large, or contains itself")
        schema = _read(given, name)
        for part in as_array(schema.pop("allOf", None)):
            schema = _joined(schema, _read(part, name), name)
        if (reference := schema.pop("$ref", None)) is not None:
            if not isinstance(reference, str) or reference in inside:
                raise InvalidJson(f"{name}: the schema contains itself")
            target = _read(self._at(reference, name), name)
            return self.make(_joined(target, schema, name), name, inside | {reference}, number)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._first(as_array(schema.pop(keyword)), schema, name, inside, number)
        for keyword in _NOT_UNDERSTOOD:
            if keyword in schema:
                raise InvalidJson(f"{name}: the local service does not understand {keyword}")
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            if not (values := as_array(schema["enum"])):
                raise InvalidJson(f"{name}: enum is empty")
            return values[number % len(values)]
        return self._typed(_type(schema), schema, name, inside, number)

    def _first(
        self,
        several: list[object],
        rest: JsonObject,
        name: str,
        inside: frozenset[str],
        number: int,
    ) -> Any:
        """Return a value for the first of *several* alternatives that has one beside the *rest*."""
        failure = InvalidJson(f"{name}: there is no alternative")
        for one in several:
            try:
                return self.make(_joined(rest, _read(one, name), name), name, inside, number)
            except InvalidJson as error:
                failure = error
        raise failure

    def _at(self, reference: str, name: str) -> object:
        """Return the schema at *reference*, such as `#/$defs/Horse`."""
        place, *path = reference.split("/")
        target: object = self._root if place == "#" else None
        for step in path:
            target = (as_object(target) or {}).get(step.replace("~1", "/").replace("~0", "~"))
        if target is None:
            raise InvalidJson(f"{name}: the schema does not contain {readable(reference, 60)}")
        return target

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
                raise InvalidJson(f"{name}: {readable(kind, 40)} is not a type")

    def _object(self, schema: JsonObject, name: str, inside: frozenset[str]) -> JsonObject:
        properties = as_object(schema.get("properties")) or {}
        others = schema.get("additionalProperties", True)
        fewest = _count(schema, "minProperties", 0)
        most = _count(schema, "maxProperties", _MOST_ELEMENTS)
        record: JsonObject = {}
        for key in as_array(schema.get("required")):
            record[str(key)] = self.make(properties.get(str(key), others), str(key), inside)
        for key in properties:
            if key not in record and len(record) < most:
                with suppress(InvalidJson):
                    record[key] = self.make(properties[key], key, inside)
        for number in range(1, 1 + min(fewest - len(record), _MOST_ELEMENTS)):
            record[f"key{number}"] = self.make(others, f"key{number}", inside)
        named = schema.keys() & {"propertyNames", "patternProperties"}
        if named and record:
            raise InvalidJson(f"{name}: the local service does not understand {min(named)}")
        if not fewest <= len(record) <= most:
            raise InvalidJson(f"{name}: the number of properties cannot be met")
        return {key: record[key] for key in [*properties, *record] if key in record}

    def _list(self, schema: JsonObject, name: str, inside: frozenset[str]) -> list[Any]:
        fewest, most = _count(schema, "minItems", 0), _count(schema, "maxItems", _MOST_ELEMENTS)
        if fewest > min(most, _MOST_ELEMENTS):
            raise InvalidJson(f"{name}: the number of elements cannot be met")
        firsts = as_array(schema.get("prefixItems"))
        items: list[Any] = []
        try:
            for at in range(min(max(fewest, len(firsts), 1), most)):
                one = firsts[at] if at < len(firsts) else schema.get("items", True)
                items.append(self.make(one, name, inside, at))
        except InvalidJson:
            # Elements that need not be there are left out.
            if len(items) < fewest:
                raise
        unique = schema.get("uniqueItems") is True
        if unique and any(value in items[:at] for at, value in enumerate(items)):
            raise InvalidJson(f"{name}: there are too few different elements")
        return items


def _read(given: object, name: str) -> JsonObject:
    """Return a copy of the schema *given*, in the spelling of JSON schema."""
    if given is False:
        raise InvalidJson(f"{name}: the schema allows no value")
    schema = {} if given is True else as_object(given)
    if schema is None:
        raise InvalidJson(f"{name}: {readable(repr(given), 40)} is not a schema")
    return {re.sub("_([a-z])", lambda at: at[1].upper(), key): schema[key] for key in schema}


def _joined(one: JsonObject, other: JsonObject, name: str) -> JsonObject:
    """Return a schema that demands what *one* and *other* demand."""
    joined = {**one, **other}
    for keyword in one.keys() & other.keys():
        first, value = one[keyword], other[keyword]
        if keyword == "required":
            joined[keyword] = [*as_array(first), *as_array(value)]
        elif keyword == "properties":
            joined[keyword] = _joined(as_object(first) or {}, as_object(value) or {}, name)
        elif first != value and keyword not in _ANNOTATIONS:
            raise InvalidJson(f"{name}: it has several values of {readable(keyword, 40)}")
    return joined


def _type(schema: JsonObject) -> str:
    """Return the first type that *schema* allows, null only if there is no other."""
    given: object = schema.get("type")
    if given is None:
        if schema.keys() & {"properties", "required", "additionalProperties", "minProperties"}:
            return "object"
        return "array" if schema.keys() & {"items", "prefixItems", "minItems"} else "string"
    kinds = [str(kind).lower() for kind in (as_array(given) or [given])]
    return next((kind for kind in kinds if kind != "null"), "null")


def _text(schema: JsonObject, name: str, number: int) -> str:
    shortest, longest = _count(schema, "minLength", 0), _count(schema, "maxLength", _LONGEST_TEXT)
    if shortest > min(longest, _LONGEST_TEXT):
        raise InvalidJson(f"{name}: the length cannot be met")
    plain = name[:_LONGEST_NAME] + (str(number + 1) if number else "")
    formatted = _FORMATS.get(str(schema.get("format")))
    texts = [formatted or plain[:longest].ljust(shortest, "a")]
    if (pattern := schema.get("pattern")) is not None:
        try:
            compiled = re.compile(str(pattern))
        except (re.error, OverflowError, RecursionError, FutureWarning):  # warnings may be errors
            raise InvalidJson(f"{name}: {readable(str(pattern), 60)} is not a pattern") from None
        texts = [text for text in (*texts, *_TRIED_FOR_PATTERNS) if compiled.search(text)]
    texts = [text for text in texts if shortest <= len(text) <= longest]
    if not texts:
        raise InvalidJson(f"{name}: no text was found for its pattern, format and length")
    return texts[number % len(texts)]


def _number(schema: JsonObject, name: str, number: int, *, whole: bool) -> int | float:
    lows = [_real(schema, "minimum", -math.inf), _real(schema, "exclusiveMinimum", -math.inf)]
    highs = [_real(schema, "maximum", math.inf), _real(schema, "exclusiveMaximum", math.inf)]
    low, high = max(lows), min(highs)
    step = _real(schema, "multipleOf", 1)
    nearest = min(max(low, 0), high)
    with suppress(OverflowError, ValueError, ZeroDivisionError):  # of numbers without end
        first = math.ceil(nearest / step) if nearest >= 0 else math.floor(nearest / step)
        # If there are too few numbers to differ, one of them repeats.
        steps = [sign * more for more in (number, number + 1, 0, 1) for sign in (1, -1)]
        values = [step * (first + more) for more in steps]
        if "multipleOf" not in schema:
            values += [nearest, (low + high) / 2]
        for value in values:
            fits = low <= value <= high and value not in (lows[1], highs[1])
            if fits and not (whole and value % 1):
                return int(value) if value % 1 == 0 else value
    raise InvalidJson(f"{name}: no number was found within its limits")


def _count(schema: JsonObject, keyword: str, default: int) -> int:
    """Return the count in *keyword*. The native protocol also writes counts as texts."""
    value: object = schema.get(keyword)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _real(schema: JsonObject, keyword: str, default: float) -> int | float:
    value: object = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default
