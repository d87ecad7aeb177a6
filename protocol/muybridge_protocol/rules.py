"""The vocabulary of field rules, in which each family states what the service accepts.

A value rule looks at one value. A relation looks at all values of a request. Both are plain data,
so that local checks, the command's help, the emulator and the reference tables read the same
statement. Fields are named as on the wire.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Protocol, TypeGuard
from urllib.parse import urlsplit

import attrs

Values = Mapping[str, object]
"""The values of a request that are set, by wire name."""


@attrs.frozen
class Problem:
    """One thing that the service would not accept.

    Args:
        field: The field's name on the wire, or "" for the request as a whole.
        value: The value found, or None where the field is missing.
        rule: The broken rule's name, for programs.
        message: What is wrong, for people.
        accepted: What would be accepted.
    """

    field: str
    value: object
    rule: str
    message: str
    accepted: str

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.message}; {self.accepted}"


@attrs.frozen
class Notice:
    """A setting that is accepted but has no effect.

    Args:
        field: The field's name on the wire.
        message: Why it has none.
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

    def accepts(self, value: object) -> bool:
        """Whether *value* is of this type, without any conversion."""
        match self:
            case Kind.STRING:
                return isinstance(value, str)
            case Kind.INTEGER:
                return isinstance(value, int) and not isinstance(value, bool)
            case Kind.NUMBER:
                return (isinstance(value, int) and not isinstance(value, bool)) or (
                    isinstance(value, float) and math.isfinite(value)
                )
            case Kind.BOOLEAN:
                return isinstance(value, bool)
            case Kind.STRINGS:
                return is_array(value) and all(isinstance(item, str) for item in value)


def is_array(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether *value* becomes a JSON array."""
    return isinstance(value, list | tuple)


def with_article(kind: Kind) -> str:
    """Return the type's name with its article, for a sentence."""
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
        return f"use {_either(self.options)}{case}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if self.ignore_case and isinstance(value, str) and value.isascii():
            lowered = value.lower()
            found = any(lowered == str(option).lower() for option in self.options)
        else:
            found = value in self.options
        return None if found else f"{shown(value)} is not accepted"


def one_of(*options: str | int, ignore_case: bool = False) -> OneOf:
    """Return the rule that a value is one of *options*."""
    return OneOf(options, ignore_case)


@attrs.frozen
class Between:
    """The number lies between *low* and *high*, both included, or is in *also*."""

    name: ClassVar[str] = "between"
    low: int
    high: int
    also: tuple[int, ...] = ()
    unit: str = "s"

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        also = "".join(f", or {number}" for number in self.also)
        return f"use {self.low} to {self.high} {self.unit}{also}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        if not isinstance(value, int | float):
            return f"{shown(value)} is not a number"
        if self.low <= value <= self.high or value in self.also:
            return None
        return f"{shown(value)} is out of range"


@attrs.frozen
class Text:
    """The string has something to read in it, and at most *limit* characters."""

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
    """The string can be a model's name: it is not blank and is fit to print."""

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
    """The array has from *low* to *high* items."""

    name: ClassVar[str] = "items"
    low: int
    high: int

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return f"use at most {self.high}" if not self.low else f"use {self.low} to {self.high}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        count = len(value) if is_array(value) else 0
        if self.low <= count <= self.high:
            return None
        return f"there {'is 1 item' if count == 1 else f'are {count} items'}"


def at_most(count: int) -> Items:
    """Return the rule that an array has at most *count* items."""
    return Items(0, count)


@attrs.frozen
class NotSet:
    """The field must not be sent at all."""

    name: ClassVar[str] = "not_set"
    why: str

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        return "leave the field out"

    def complaint(self, value: object) -> str | None:  # noqa: ARG002  every value is wrong
        """Return what is wrong with *value*, or None."""
        return self.why


_ABSOLUTE_URL = re.compile(r"https?://[^\s/?#\x00-\x1f\x7f]+[^\s\x00-\x1f\x7f]*", re.IGNORECASE)
_ASSET = re.compile(r"asset://[A-Za-z0-9._~:=+@-]{1,256}")
_DATA_URI = re.compile(r"data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/_-]+={0,2}", re.IGNORECASE)
_BARE_BASE64 = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}")


@attrs.frozen(kw_only=True)
class MediaUrl:
    """The string, or each string of the array, tells where a picture, video or sound is.

    Args:
        base64: Whether the media itself may stand there, as a `data:` URI.
        bare_base64: Whether it may also stand there as plain base64.
        assets: Whether `asset://<id>` is accepted.
        public: Whether the service asks for a public URL, so that a host that only this
            machine or network can reach is refused.
    """

    name: ClassVar[str] = "media_url"
    base64: bool = True
    bare_base64: bool = False
    assets: bool = False
    public: bool = False

    @property
    def accepted(self) -> str:
        """What the rule accepts."""
        forms = ["a public http(s) URL" if self.public else "an http(s) URL"]
        if self.assets:
            forms.append("asset://<id>")
        if self.base64:
            forms.append("a data:...;base64 URI")
        if self.bare_base64:
            forms.append("plain base64")
        return f"use {_either(forms)}"

    def complaint(self, value: object) -> str | None:
        """Return what is wrong with *value*, or None."""
        items = [value] if isinstance(value, str) else value
        if not is_array(items):
            return f"{shown(value)} is not a URL"
        for item in items:
            complaint = self._complaint(item) if isinstance(item, str) else "not a string"
            if complaint:
                return complaint
        return None

    def _complaint(self, url: str) -> str | None:
        if url[:8].lower() == "asset://":
            if not self.assets:
                return f"{shown(url)}: assets are not accepted here"
            return None if _ASSET.fullmatch(url) else f"{shown(url)} is not asset://<id>"
        if url[:5].lower() == "data:":
            if not self.base64:
                return "base64 media is not accepted here"
            return None if _DATA_URI.fullmatch(url) else f"{shown(url)} is not a base64 data: URI"
        if _ABSOLUTE_URL.fullmatch(url):
            if self.public and not is_public_host(_host_of(url)):
                return f"{shown(url)} is not a public address"
            return None
        if _BARE_BASE64.fullmatch(url):
            return None if self.bare_base64 else "plain base64 is not accepted here"
        return f"{shown(url)} is not a URL"


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_public_host(host: str) -> bool:
    """Whether *host*, a name or an address, may be one that the whole internet can reach.

    A name is judged by its form alone: what it resolves to is for a driver to see.
    """
    name = host.partition("%")[0].rstrip(".").lower()
    if not name or name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return False
    # A last label that is a number makes resolvers read the whole as an address.
    if ":" not in name and not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return True
    try:
        return is_public_address(ipaddress.ip_address(name))
    except ValueError:  # an old notation of an address: decimal, octal, hexadecimal or short
        return False


def is_public_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether *address*, and any IPv4 address inside it, is reachable from the whole internet."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(inner)
    return address.is_global and not address.is_multicast


_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@attrs.frozen(kw_only=True)
class PixelSize:
    """The string is `{width}x{height}` in pixels, within the limits.

    Args:
        longest_edge: Most pixels of an edge.
        multiple_of: What both edges are multiples of.
        longest_ratio: Most that the long edge may be of the short one.
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
        return (
            f"use {{width}}x{{height}}: edges of at most {self.longest_edge} px, multiples of "
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
    """Return width and height of a `{width}x{height}` text in pixels, or None."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text, re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


class Relation(Protocol):
    """A rule between fields of one request."""

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:
        """Yield what is wrong with *values*; *model* is None when the tables do not know it."""
        ...


@attrs.frozen
class Requires:
    """*field* may only be sent together with *other*."""

    field: str
    other: str

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:  # noqa: ARG002  holds for all
        """Yield what is wrong with *values*."""
        if self.field in values and self.other not in values:
            yield Problem(
                self.field,
                values[self.field],
                "requires",
                f"needs {self.other}",
                f"send {self.other} as well, or leave {self.field} out",
            )


def together(one: str, other: str) -> tuple[Requires, Requires]:
    """Return the rules that *one* and *other* are sent together or not at all."""
    return Requires(one, other), Requires(other, one)


@attrs.frozen
class Excludes:
    """No field of *these* may be sent together with a field of *those*."""

    these: tuple[str, ...]
    those: tuple[str, ...]

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:  # noqa: ARG002  holds for all
        """Yield what is wrong with *values*."""
        clash = [field for field in self.those if field in values]
        if not clash:
            return
        for field in self.these:
            if field in values:
                yield Problem(
                    field,
                    values[field],
                    "excludes",
                    f"cannot be combined with {' or '.join(clash)}",
                    f"send either {field} or {' and '.join(clash)}",
                )


@attrs.frozen
class Alternatives:
    """Only one of two fields that say the same thing may be sent."""

    one: str
    other: str

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:  # noqa: ARG002  holds for all
        """Yield what is wrong with *values*."""
        if self.one in values and self.other in values:
            yield Problem(
                self.other,
                values[self.other],
                "alternatives",
                f"is an alternative to {self.one}, which is sent too",
                f"send only one of {self.one} and {self.other}",
            )


@attrs.frozen
class RequiredFor:
    """*field* must be sent, and not be empty, for each of *models*."""

    field: str
    models: tuple[str, ...]

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        if model in self.models and not values.get(self.field):
            yield Problem(
                self.field,
                values.get(self.field),
                "required_for_model",
                f"is required by model {model}",
                f"send at least one item in {self.field}",
            )


@attrs.frozen
class OnlyWith:
    """*field* may have the value *value* only while *other* has one of *options*."""

    field: str
    value: str
    other: str
    options: tuple[str, ...]

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:  # noqa: ARG002  holds for all
        """Yield what is wrong with *values*."""
        if (
            values.get(self.field) == self.value
            and self.other in values
            and values[self.other] not in self.options
        ):
            yield Problem(
                self.field,
                self.value,
                "only_with",
                f"{shown(self.value)} is not accepted with {self.other} "
                f"{shown(values[self.other])}",
                f"with {self.value} use {self.other} {_either(self.options)}",
            )


@attrs.frozen
class FewerWith:
    """*field* may have at most *high* items while *other* is sent."""

    field: str
    high: int
    other: str

    def problems(self, values: Values, model: str | None) -> Iterator[Problem]:  # noqa: ARG002  holds for all
        """Yield what is wrong with *values*."""
        items = values.get(self.field)
        if self.other in values and is_array(items) and len(items) > self.high:
            yield Problem(
                self.field,
                items,
                "items",
                f"there are {len(items)} items beside {self.other}",
                f"with {self.other} use at most {self.high}",
            )


@attrs.frozen
class Ineffective:
    """*field* has no effect while *other* is sent, or for each of *models*."""

    field: str
    why: str
    other: str | None = None
    models: tuple[str, ...] = ()

    def applies(self, values: Values, model: str | None) -> bool:
        """Whether *field* is sent here for nothing."""
        return self.field in values and (
            (self.other is not None and self.other in values) or model in self.models
        )


@attrs.frozen
class Alias:
    """*legacy* is an old name of *field*: the same value under both is sent once."""

    legacy: str
    field: str


def shown(value: object, limit: int = 80) -> str:
    """Return *value* as a message shows it: short, on one line, a URL without its query."""
    if isinstance(value, str) and "://" in value:
        value = value.partition("?")[0]
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer too long, or an array nested too deeply
        text = f"this {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _either(options: Sequence[object]) -> str:
    texts = [str(option) for option in options]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
