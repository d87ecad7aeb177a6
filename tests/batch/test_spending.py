"""What the creates of a batch consume, and what is said where that is unknown."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext

import pytest
from muybridge.batch.journal_entries import NewItem
from muybridge.batch.limits.spending import Spending, needs_of, unknown_amounts

from muybridge.purchases import Budget, Measure


def item(family: str, **body: object) -> NewItem:
    return NewItem(name="", stem="1", family=family, body=body)


def test_what_an_item_needs_is_counted_silently() -> None:
    """Settings without effect were reported when the item was checked, and are not again."""
    url = "https://example.com/a.mp4"
    body = {"model": "vidc_o3", "prompt": "x", "duration": 4, "referenceVideos": [url]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert needs_of(item("vidc", **body), None)[Measure.CREATES] == 1


@pytest.mark.parametrize(
    ("budget", "advised"), [(Budget(cost=7), True), (Budget(seconds=7), False)]
)
def test_an_unknown_amount(budget: Budget, advised: bool) -> None:  # noqa: FBT001  a parameter of the test
    """Where the price of an item is missing, the problem asks for it, and only there."""
    body = {"model": "viddq9", "prompt": "x"}
    (problem,) = unknown_amounts(budget, 1, needs_of(item("vidd", **body), None))
    assert problem.where == "item 1"
    assert ("because its cost is unknown. Give its price" in problem.message) is advised
    assert ("because its seconds are unknown. Set its length" in problem.message) is not advised


def test_the_programs_own_precision() -> None:
    """In a program that calculates with one digit, as much is released as was reserved."""
    needs = {measure: Decimal("1.25") for measure in Measure}
    with localcontext() as context:
        context.prec = 1
        spending = Spending().reserve(needs, Budget()).reserve(needs, Budget()).release(needs)
    assert spending.amounts == needs
