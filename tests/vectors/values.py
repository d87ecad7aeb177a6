"""Values on both sides of every limit that the tables state."""

from __future__ import annotations

from collections.abc import Iterator

from muybridge_protocol.families import Field
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

URL = "https://media.example.com/horse.png"
ASSET = "asset://asset-1"
DATA = "data:image/png;base64,iVBORw0KGgo="
PLAIN = "iVBORw0KGgo" + "A" * 53
_FORMS = (URL, "http://media.example.com/horse.png?size=1&sign=a%20b", ASSET, DATA, PLAIN)
_NO_URLS = ("", "horse.png", "ftp://media.example.com/horse.png", "https://", f"{URL} ")
_PRIVATE = ("http://localhost/horse.png", "http://10.1.2.3/horse.png", "http://[::1]/horse.png")
_WRONG_TYPES: dict[Kind, tuple[object, ...]] = {
    Kind.STRING: (None, 5, True, [URL], {}),
    Kind.INTEGER: (None, "5", 5.5, True, [5]),
    Kind.NUMBER: (None, "5", True, [5]),
    Kind.BOOLEAN: (None, "true", 1),
    Kind.STRINGS: (None, URL, 5, [5], [[URL]], [None]),
}


def near(field: Field, rules: tuple[ValueRule, ...]) -> Iterator[object]:
    """Yield values of the right type at the limits of *rules*, and just beyond them."""
    if field.kind is Kind.BOOLEAN:
        yield from (True, False)
    for rule in rules:
        yield from _near_rule(field, rule)


def wrong_types(field: Field) -> tuple[object, ...]:
    """Return values of other types than the field's."""
    return _WRONG_TYPES[field.kind]


def _near_rule(field: Field, rule: ValueRule) -> Iterator[object]:
    match rule:
        case OneOf(options, ignore_case):
            yield from options
            if field.kind is Kind.STRING:
                yield "nonsense"
                yield str(options[-1]).swapcase()
            else:
                yield max(map(int, options)) + 1
            if ignore_case:
                yield from (str(option).upper() for option in options)
        case Between(low, high, also):
            yield from (low, high, *also, low - 1, high + 1)
        case Text(limit):
            yield from ("a", "A \U0001f40e\nat a gallop", "", " \n\u3000")
            if limit is not None:
                yield from ("\U0001f40e" * limit, "a" * (limit + 1))
        case ModelName():
            yield from ("a-model", "", " ", "a\nb")
        case Items(low, high):
            yield from (list(_urls(count)) for count in sorted({0, low, high, high + 1}))
        case MediaUrl():
            for url in (*_FORMS, *_NO_URLS, *_PRIVATE):
                yield [url] if field.kind is Kind.STRINGS else url
        case PixelSize():
            yield from _sizes(rule)
        case NotSet():
            pass
        case _:
            raise TypeError(f"no values are known for the rule {rule.name}")


def _urls(count: int) -> Iterator[str]:
    return (f"https://media.example.com/{number}.png" for number in range(count))


def _sizes(rule: PixelSize) -> Iterator[str]:
    step, longest = rule.multiple_of, rule.longest_edge
    edges = range(step, longest + 1, step)
    good = [
        (width, height)
        for width in edges
        for height in edges
        if rule.complaint(f"{width}x{height}") is None
    ]
    smallest = min(good, key=lambda size: (size[0] * size[1], size))
    largest = max(good, key=lambda size: (size[0] * size[1], size))
    widest = max(good, key=lambda size: (size[0] / size[1], -size[0]))
    for width, height in (smallest, largest, widest, widest[::-1]):
        yield f"{width}x{height}"
    yield f"{smallest[0] - step}x{smallest[1]}"
    yield f"{largest[0] + step}x{largest[1]}"
    yield f"{widest[0] + step}x{widest[1]}"
    yield f"{longest + step}x{longest // 2}"
    yield f"{smallest[0] + 1}x{smallest[1] + step}"
    yield from ("1024", "1024X1024", "1024x1024 ", "-1024x1024", "01024x1024", "1024x0")
