"""Rules for single values, in which each family states what the service accepts.

A value rule checks one value, a relation (`relations`) all values of a request. Both are plain
data, so that local checks, the help of the command, the emulator and the reference tables are all
derived from the same statement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from numbers import Real
from typing import ClassVar, Protocol, TypeGuard, cast

import attrs

from muybridge_protocol.records.json import truncated
from muybridge_protocol.remedies import Face, Remedy, advice, in_python

Naming = Callable[[str], str]
"""Returns the name to show for a field's name on the wire."""

_CONTENT = re.compile(r"[Dd][Aa][Tt][Aa]:|[A-Za-z0-9+/_-]{256}")
"""How text begins that is the content of a file: a `data:` URI, or plain base64."""
# The type of a file stands within so many characters, before the comma.
_LONGEST_START = 40
_PLAIN = (int, str, bool, list, tuple, type(None))
"""The types of most values, which are what JSON has."""


@attrs.frozen
class Problem:
    """One reason why the service would reject a request.

    Args:
        field: The field's name on the wire, or "" for the request as a whole.
        value: The value found, or None if the field is missing.
        rule: The name of the violated rule, for programs.
        message: What is wrong, for people.
        accepted: What would be accepted.
        named: What the caller calls the field, if that is not its name on the wire.
        remedies: What else can be done.
    """

    field: str
    value: object = attrs.field(repr=lambda value: shown(value))  # noqa: PLW0108  it is defined below
    rule: str
    message: str
    accepted: str
    named: str = ""
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        return self.describe(in_python)

    def describe(self, face: Face) -> str:
        """Return the field, what is wrong, and what to do in the words of *face*."""
        name = self.named or self.field
        return f"{name}: {self.sentence(face)}" if name else self.sentence(face)

    def sentence(self, face: Face = in_python) -> str:
        """Return what is wrong, and what to do in the words of *face*."""
        return f"{self.message}; {self.accepted_in(face)}"

    def to_dict(self, face: Face = in_python) -> dict[str, str]:
        """Return the problem as a JSON object, without the value."""
        record = {name: str(getattr(self, name)) for name in ("field", "rule", "message")}
        return {**record, "accepted": self.accepted_in(face)}

    def accepted_in(self, face: Face) -> str:
        """Return what would be accepted, and what else can be done in the words of *face*."""
        clause = advice(self.remedies, face)
        joint = " " if self.accepted[-1:] in ("?", ";") else ", or "
        return f"{self.accepted}{joint}{clause}" if clause else self.accepted


@attrs.frozen
class Notice:
    """A setting that is accepted but has no effect.

    Args:
        field: The field's name on the wire.
        message: Why it has no effect.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class Kind(StrEnum):
    """The JSON type of a field."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRINGS = "array of string"

    def plain(self, value: object) -> object:
        """Return *value* as JSON has it, if it is a number of another kind than JSON's.

        Tables and spreadsheets have 4.0 for a whole number, and numpy and `decimal` have numbers of
        their own. Any other value is returned unchanged, for `accepts` to judge.
        """
        if self not in (Kind.INTEGER, Kind.NUMBER) or type(value) in _PLAIN:
            return value
        if not isinstance(value, float) and not _is_number(value):
            return value
        number = cast("float", value)
        try:
            whole = int(number)
            if number == whole and (self is Kind.INTEGER or not isinstance(value, float)):
                return whole
            return float(number) if self is Kind.NUMBER else value
        except (ValueError, OverflowError):  # it is infinite, or no number
            return value

    def accepts(self, value: object, string: type | tuple[type, ...] = str) -> bool:
        """Whether *value* has this type, without conversion.

        Args:
            value: Any value.
            string: The types that become a JSON string.
        """
        match self:
            case Kind.STRING:
                return isinstance(value, string)
            case Kind.INTEGER:
                return isinstance(value, int) and not isinstance(value, bool)
            case Kind.NUMBER:
                return (isinstance(value, int) and not isinstance(value, bool)) or (
                    isinstance(value, float) and math.isfinite(value)
                )
            case Kind.BOOLEAN:
                return isinstance(value, bool)
            case Kind.STRINGS:
                return is_array(value) and all(isinstance(item, string) for item in value)


def _is_number(value: object) -> bool:
    """Whether *value* is a number that is neither an `int` nor a `float`."""
    from decimal import Decimal

    return isinstance(value, Real | Decimal)


def is_array(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether *value* becomes a JSON array."""
    return isinstance(value, list | tuple)


def with_article(kind: Kind) -> str:
    """Return the name of the type with its article."""
    return f"{'an' if kind in (Kind.INTEGER, Kind.STRINGS) else 'a'} {kind}"


class ValueRule(Protocol):
    """A rule for one value, whose type has already been checked."""

    name: ClassVar[str]

    @property
    def accepted(self) -> str:
        """What the rule accepts, as the end of a sentence."""
        ...

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        ...


@attrs.frozen
class OneOf:
    """The value is one of *options*."""

    name: ClassVar[str] = "one_of"
    options: tuple[str | int, ...]
    ignore_case: bool = False

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        case = " (in any case)" if self.ignore_case else ""
        return f"use {either(self.options)}{case}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if self.ignore_case and isinstance(value, str) and value.isascii():
            lowered = value.lower()
            is_option = any(lowered == str(option).lower() for option in self.options)
        else:
            is_option = value in self.options
        return None if is_option else f"{shown(value)} is not accepted"


def one_of(*options: str | int, ignore_case: bool = False) -> OneOf:
    """Return the rule that a value is one of *options*."""
    return OneOf(options, ignore_case)


@attrs.frozen
class Between:
    """The number is between *low* and *high*, inclusive, or is in *also*.

    Args:
        low: The smallest number.
        high: The largest number.
        also: Other numbers that are accepted, such as -1 for automatic.
        unit: The unit that messages show after *high*: "s" for seconds by default, "" for none, or
            a word such as "steps".
    """

    name: ClassVar[str] = "between"
    low: int
    high: int
    also: tuple[int, ...] = ()
    unit: str = "s"

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        also = "".join(f", or {number}" for number in self.also)
        unit = f" {self.unit}" if self.unit else ""
        return f"use {self.low} to {self.high}{unit}{also}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if not isinstance(value, int | float):
            return f"{shown(value)} is not a number"
        if self.low <= value <= self.high or value in self.also:
            return None
        return f"{shown(value)} is out of range"


@attrs.frozen
class Text:
    """The string is not blank, and has at most *limit* characters."""

    name: ClassVar[str] = "text"
    limit: int | None = None

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return f"use 1 to {self.limit} characters" if self.limit else "use a text that is not blank"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if not isinstance(value, str) or not value.strip():
            return "the text is blank"
        if self.limit is not None and len(value) > self.limit:
            return f"the text has {len(value)} characters"
        return None


@attrs.frozen
class ModelName:
    """The string can be a model's name: it is not blank, and is printable."""

    name: ClassVar[str] = "model_name"

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return "use the name that the service uses"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if isinstance(value, str) and value.strip() and value.isprintable():
            return None
        return f"{shown(value)} is no model name"


@attrs.frozen
class Items:
    """The array has *low* to *high* items. For the size of a number, use `Between`.

    Args:
        low: Fewest items, or 0 if the array may be empty.
        high: Most items.
    """

    name: ClassVar[str] = "items"
    low: int
    high: int

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return f"use at most {self.high}" if not self.low else f"use {self.low} to {self.high}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if not is_array(value):
            return f"{shown(value)} is not an array"
        count = len(value)
        if self.low <= count <= self.high:
            return None
        return f"there {'is 1 item' if count == 1 else f'are {count} items'}"


def at_most(count: int) -> Items:
    """Return the rule that an array has at most *count* items, and may be empty.

    Args:
        count: Most items. For the size of a number, use `Between`.
    """
    return Items(0, count)


@attrs.frozen
class NotSet:
    """The field must not be sent."""

    name: ClassVar[str] = "not_set"
    why: str

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return "leave the field out"

    def complaint(self, value: object) -> str | None:  # noqa: ARG002  every value is wrong
        """Return what is wrong with *value*, or None."""
        return self.why


@attrs.frozen(kw_only=True)
class PixelSize:
    """The string is `{width}x{height}` in pixels, within the limits.

    Args:
        longest_edge: Longest edge, in pixels.
        multiple_of: Both edges are multiples of this.
        longest_ratio: Largest ratio of the long edge to the short one.
        least_pixels: Fewest pixels in all.
        most_pixels: Most pixels in all.
    """

    name: ClassVar[str] = "pixel_size"
    longest_edge: int
    multiple_of: int
    longest_ratio: int
    least_pixels: int
    most_pixels: int

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return f"use {self.form}"

    @property
    def form(self) -> str:
        """How an accepted value is written."""
        return (
            f"{{width}}x{{height}}: edges of at most {self.longest_edge} px, multiples of "
            f"{self.multiple_of}, at most {self.longest_ratio}:1, "
            f"{self.least_pixels} to {self.most_pixels} pixels in all"
        )

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        size = parse_pixel_size(value) if isinstance(value, str) else None
        if size is None:
            return f"{shown(value)} is not {{width}}x{{height}}"
        width, height = size
        if max(size) > self.longest_edge:
            return f"an edge of {max(size)} px is too long"
        if width % self.multiple_of or height % self.multiple_of:
            return f"{value}: both edges must be multiples of {self.multiple_of}"
        if max(size) > self.longest_ratio * min(size):
            return f"{value} is more than {self.longest_ratio}:1"
        if not self.least_pixels <= width * height <= self.most_pixels:
            return f"{value} has {width * height} pixels"
        return None


def parse_pixel_size(text: str) -> tuple[int, int] | None:
    """Return the width and height, in pixels, of a `{width}x{height}` text, or None."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def shown(value: object, limit: int = 80) -> str:
    """Return *value* for a message: short, on one line, and without the query of a URL."""
    if isinstance(value, str) and "://" in value:
        value = value.partition("?")[0]
    try:
        # An id may look like base64, and a message needs its beginning.
        is_id = isinstance(value, str) and ":" not in value[:5]
        text = repr(value if is_id else without_content(value))
    except (ValueError, RecursionError):  # an integer too long, or an array nested too deeply
        text = f"this {type(value).__name__}"
    return truncated(re.sub(_QUERY, r"\1", text), limit)


_QUERY = r"(:/[^\s'\"?]*)\?[^\s'\"]*"
"""The query of a URL in a representation. A `Path` has removed the second slash."""


@attrs.frozen
class _Content:
    """Stands for text that is the content of a file, where a request is shown."""

    text: str

    def __repr__(self) -> str:
        return self.text


def without_content(value: object) -> object:
    """Return *value* with its type and size in place of each text that is a file's content."""
    match value:
        case str() if type(value) is str and _CONTENT.match(value):
            start, comma, _ = value[:_LONGEST_START].partition(",")
            start = start if comma else "base64"
            return _Content(f"<{start}: {len(value):,} characters>")
        case list() | tuple():
            items = map(without_content, cast("Sequence[object]", value))
            return list(items) if isinstance(value, list) else tuple(items)
        case dict():
            named = cast("dict[object, object]", value)
            return {name: without_content(item) for name, item in named.items()}
        case _:
            return value


def either(options: Sequence[object]) -> str:
    """Return the options in words: `a, b or c`."""
    return _listed(options, "or")


def both(things: Sequence[object]) -> str:
    """Return the things in words: `a, b and c`."""
    return _listed(things, "and")


def _listed(things: Sequence[object], joint: str) -> str:
    *most, last = map(str, things)
    return f"{', '.join(most)} {joint} {last}" if most else last
