"""Numbers as tables, spreadsheets and numpy have them: a whole one is sent as an integer."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import FAMILIES, MediaRequest, VidcRequest, ViddRequest
from muybridge_protocol.families.examples import smallest_example
from muybridge_protocol.rules.values import Kind

FOUR: tuple[Any, ...] = (
    *(4, 4.0, Decimal(4), Decimal("4.00"), Fraction(4)),
    *(np.int64(4), np.uint8(4), np.float64(4), np.float32(4)),
)
NOT_WHOLE: tuple[Any, ...] = (
    *(4.5, Decimal("4.5"), np.float64(4.5), True, False, np.True_, "4", "4.0"),
    *(float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e400")),
    *(np.float64("nan"), np.float64("inf"), 10**400, Fraction(10**400, 3), 4 + 0j, [4.0]),
)
FIELDS = [
    (family, field)
    for family in FAMILIES.values()
    for field in family.fields
    if field.kind is Kind.INTEGER
]


def ways(body: dict[str, Any], request: type[MediaRequest]) -> list[Any]:
    """Return every way to make the request from Python."""
    names = {field.wire: field.name for field in request.family.fields}
    typed = {names[wire]: value for wire, value in body.items()}
    return [
        lambda: request(**typed),
        lambda: request.from_body(body),
        lambda: request.from_body(body, keep_unknown=True),
    ]


@pytest.mark.parametrize(("family", "field"), FIELDS, ids=str)
def test_whole_numbers(family: Any, field: Any) -> None:
    """Every integer field takes a whole number in any form, and sends it without a point."""
    body = smallest_example(family)
    number = next(n for n in (4, 8, 6, 10) if field.problem(n, field.rules) is None)
    for form in FOUR:
        value = type(form)(number)
        for make in ways({**body, field.wire: value}, family.request):
            request = make()
            sent = request.to_body()[field.wire]
            assert (type(sent), sent) == (int, number)
            assert request == family.request.from_body({**body, field.wire: number})
            assert f'"{field.wire}": {number}' in json.dumps(request.to_body())
            assert request.quantities() == make().quantities()


@pytest.mark.parametrize("value", NOT_WHOLE, ids=repr)
def test_other_numbers(value: Any) -> None:
    """What is not a whole number stays refused, and a boolean is none."""
    for make in ways({"model": "vidc_o3", "prompt": "A horse", "duration": value}, VidcRequest):
        with pytest.raises(InvalidRequest) as caught:
            make()
        assert [problem.field for problem in caught.value.problems] == ["duration"]


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (Decimal("4.5"), 4.5),
        (np.float64(4.5), 4.5),
        (Fraction(9, 2), 4.5),
        (np.int8(4), 4),
        (4.0, 4.0),
    ],
    ids=repr,
)
def test_numbers_with_a_point(value: Any, sent: float) -> None:
    """A field for any number sends what JSON has for it."""
    request = ViddRequest(model="viddq3-pro", prompt="A horse", duration=value)
    found = request.to_body()["duration"]
    assert (type(found), found) == (type(sent), sent)


def test_what_is_on_the_wire() -> None:
    """A body that is sent as it is gets no such help: the service may take 4.0 for no integer."""
    report = FAMILIES["vidc"].check({"model": "vidc_o3", "prompt": "A horse", "duration": 4.0})
    assert [problem.field for problem in report.problems] == ["duration"]
