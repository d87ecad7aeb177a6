"""The document's schemas against the hand-transcribed cases of every family.

The cases say what the service accepts; the library's own check is held to them elsewhere. What no
schema can say is listed here, with the reason, and nothing else may differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from families.cases import Body
from families.contracts import CONTRACTS
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.openapi.values import value_schema
from muybridge_protocol.rules.media_urls import IMAGE_BEGINNINGS, MediaUrl
from muybridge_protocol.rules.values import Between, Kind, Problem, Text

from .schemas import SCHEMAS, accepts, matches


def schema_of(family: Family) -> str:
    return f"{family.name.capitalize()}Request"


@dataclass(frozen=True)
class Inexpressible:
    """A rule that no JSON Schema can say, and which problems are its."""

    reason: str
    holds: Callable[[Family, Body, Problem], bool]


def _is_whole_float(family: Family, body: Body, problem: Problem) -> bool:
    value = body.get(problem.field)
    if problem.rule != "type" or not isinstance(value, float) or not value.is_integer():
        return False
    again = family.check({**body, problem.field: int(value)})
    return problem.field not in {other.field for other in again.problems}


INEXPRESSIBLE = {
    "5.0 for an integer": Inexpressible(
        "JSON Schema knows one number: 5.0 is the integer 5 there. The service's own JSON reader "
        "may not think so, and the document's description says so in words.",
        _is_whole_float,
    ),
    "conflicting values of a field's two names": Inexpressible(
        "No keyword compares one field's value with another's.",
        lambda _, __, problem: problem.rule == "alias",
    ),
    "sizes in pixels": Inexpressible(
        "No keyword does arithmetic on numbers inside a text: multiples of 16, 3:1, all pixels.",
        lambda _, __, problem: (
            problem.rule == "pixel_size" and "is not {width}" not in problem.message
        ),
    ),
    "public hosts": Inexpressible(
        "Which addresses are public is arithmetic on them and a registry's table.",
        lambda _, __, problem: "is not a public address" in problem.message,
    ),
}


def is_json(value: object) -> bool:
    """Whether *value* could stand in a request at all: no NaN, infinity or lone surrogate."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def rejected(name: str) -> Iterator[Body]:
    """Yield the bodies that the service rejects, as they would be on the wire.

    The client sends 5 where it is given 5.0, so that this is in no family's table.
    """
    yield from (case.body for case in CONTRACTS[name].rejected)
    for case in CONTRACTS[name].accepted:
        for field in FAMILIES[name].fields:
            value = case.body.get(field.wire)
            if field.kind is Kind.INTEGER and isinstance(value, int):
                yield {**case.body, field.wire: float(value)}


@pytest.mark.parametrize("name", FAMILIES)
def test_accepted_bodies(name: str) -> None:
    """What the service accepts satisfies the schema."""
    schema = schema_of(FAMILIES[name])
    wrong = [str(case) for case in CONTRACTS[name].accepted if not accepts(schema, case.body)]
    assert wrong == []


@pytest.mark.parametrize("name", FAMILIES)
def test_rejected_bodies(name: str) -> None:
    """What the service rejects does not satisfy the schema, but for what no schema can say."""
    family = FAMILIES[name]
    for body in rejected(name):
        if not is_json(body):
            continue
        problems = family.check(body).problems
        beyond = all(
            any(row.holds(family, body, problem) for row in INEXPRESSIBLE.values())
            for problem in problems
        )
        assert accepts(schema_of(family), body) is beyond, repr(body)[:300]


def test_every_exception_is_needed() -> None:
    """Each rule that is said to be inexpressible is met in the cases of some family."""
    met = {
        row_name
        for name, family in FAMILIES.items()
        for body in rejected(name)
        for problem in family.check(body).problems
        for row_name, row in INEXPRESSIBLE.items()
        if row.holds(family, body, problem)
    }
    assert met == set(INEXPRESSIBLE)


@pytest.mark.parametrize("name", FAMILIES)
def test_missing_fields(name: str) -> None:
    """A body without a required field does not satisfy the schema, and the smallest one does."""
    cases, schema = CONTRACTS[name], schema_of(FAMILIES[name])
    assert accepts(schema, cases.smallest)
    for missing in cases.required:
        body = {wire: value for wire, value in cases.smallest.items() if wire != missing}
        assert not accepts(schema, body)


# The patterns, against the rules that they are made of.

_MARKS = st.sampled_from(
    [*"hHtTpPsS:/?#@.-_=+ \t\n\r\x00\x1c\x1f\x7f\x85\xa0\u1680\u2003\u2028\u3000\ufeff\u200b", "a",
     "data:", "DATA:", "image/png", ";base64,", "asset://", "Asset://", "https://", "HTTP://",
     "iVBORw0KGgo", "/9j/", "A" * 50, "Zz09", "example.com", "a" * 257]
)  # fmt: skip
_RULES = [
    MediaUrl(base64=base64, bare_base64=bare, assets=assets)
    for base64 in (False, True)
    for bare in (False, True)
    for assets in (False, True)
]


@pytest.mark.parametrize("rule", _RULES, ids=str)
@given(text=st.lists(_MARKS, max_size=6).map("".join))
def test_the_pattern_of_addresses(rule: MediaUrl, text: str) -> None:
    """The pattern and the rule agree on every text, but for the host that an address names."""
    complaint = rule.complaint(text)
    if complaint is not None and "names no host" in complaint:
        return
    assert matches(value_schema(Kind.STRING, [rule]), text) is (complaint is None)


@given(text=st.lists(_MARKS, max_size=4).map("".join))
def test_the_pattern_of_texts(text: str) -> None:
    """The pattern and the rule agree on which texts are blank."""
    rule = Text(100)
    assert matches(value_schema(Kind.STRING, [rule]), text) is (rule.complaint(text) is None)


def test_the_description_names_fields_as_they_are_sent() -> None:
    """A description calls a field by its name on the wire."""
    text = json.dumps(SCHEMAS)
    for family in FAMILIES.values():
        for field in family.fields:
            if field.name != field.wire:
                assert field.name not in text


NOT_SENT = {("duration", FAMILIES["vidg"]), ("size", FAMILIES["vidr"])}
"""Defaults that not every request may send: a model forbids the field, or it has an alternative."""


def test_defaults_and_old_names() -> None:
    """Every default that may be sent is given, and what is legacy is marked as deprecated."""
    for family in FAMILIES.values():
        properties: dict[str, Any] = SCHEMAS[schema_of(family)]["properties"]
        told = {wire: field["default"] for wire, field in properties.items() if "default" in field}
        sendable = {
            w: v for w, v in CONTRACTS[family.name].defaults.items() if (w, family) not in NOT_SENT
        }
        assert told == sendable
        old = {wire for wire, field in properties.items() if field.get("deprecated")}
        assert old == ({"image", "lastFrameImage"} if family.name == "videos" else set())


def test_a_limit_on_what_has_no_effect() -> None:
    """A model's limit does not hold for a field that another one overrides."""
    body = {"model": "imgb-2-r", "prompt": "a horse", "ratio": "16:9", "resolution": "4k"}
    assert not accepts("ImgbRequest", body)
    assert accepts("ImgbRequest", {**body, "size": "1024x1024"})


@pytest.mark.parametrize("first", IMAGE_BEGINNINGS)
def test_the_shortest_plain_base64(first: str) -> None:
    """Plain base64 is taken for such from 64 digits on, as the rule has it."""
    rule = MediaUrl(bare_base64=True)
    for length in (63, 64):
        text = first.ljust(length, "A")
        assert matches(value_schema(Kind.STRING, [rule]), text) is (length == 64)
        assert (rule.complaint(text) is None) is (length == 64)


def test_two_rules_of_one_kind() -> None:
    """Where two rules would say the same keyword, both hold."""
    schema = value_schema(Kind.INTEGER, [Between(1, 9), Between(5, 20)])
    assert [number for number in range(25) if matches(schema, number)] == [5, 6, 7, 8, 9]
