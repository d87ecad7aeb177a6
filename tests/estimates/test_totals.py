"""What many requests consume and cost together."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.estimates import (
    Estimate,
    Group,
    Price,
    PriceList,
    Quantities,
    Sum,
    Total,
    Totals,
    Unit,
    estimate_of,
)
from muybridge_protocol.families import ImgbRequest, VidrRequest

numbers = st.decimals(0, 1_000_000, places=12, allow_nan=False)
optional = st.none() | numbers

COUNTED = ("creates", "calls", "reference_images", "reference_videos", "reference_sounds")
"""What is known of every request."""

PRICES = PriceList("USD", (Price(family="vidr", unit=Unit.SECOND, amount=Decimal("0.1")),))


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    """Draw an estimate of which anything may be unknown."""
    quantities = Quantities(
        family=draw(st.sampled_from(["imgb", "vidr", "text"])),
        model=draw(st.sampled_from([None, "a", "b"])),
        tier=draw(st.sampled_from([None, "low"])),
        **{name: draw(st.integers(0, 9)) for name in COUNTED},
        pictures=draw(st.none() | st.integers(0, 4)),
        seconds=draw(optional),
        tokens=draw(st.none() | st.integers(0, 10**9)),
        reference_seconds=draw(optional),
    )
    return estimate_of(quantities, PRICES)


def exact(amounts: list[Any]) -> tuple[Fraction, int]:
    """Return the sum of what is known, without any rounding, and how many are unknown."""
    known = [Fraction(amount) for amount in amounts if amount is not None]
    return sum(known, Fraction(0)), len(amounts) - len(known)


@given(st.lists(estimates(), max_size=30))
def test_totals_are_exact(given_estimates: list[Estimate]) -> None:
    """A total is the exact sum of what is known, and counts every request that it lacks."""
    with localcontext() as context:
        context.prec = 3  # the program's own precision does not matter
        totals = Totals.of(iter(given_estimates), "USD")
        total = totals.total
    assert total.requests == len(given_estimates)
    for name in COUNTED:
        assert getattr(total, name) == sum(getattr(one.quantities, name) for one in given_estimates)
    for name in ("pictures", "seconds", "tokens", "reference_seconds"):
        found: Sum = getattr(total, name)
        amounts = [getattr(one.quantities, name) for one in given_estimates]
        assert (Fraction(found.known), found.unknown) == exact(amounts)
    costs = [one.cost for one in given_estimates]
    assert (Fraction(total.cost.known), total.cost.unknown) == exact(costs)
    assert (total.cost.total is None) == (None in costs)


@given(st.lists(estimates(), max_size=20), st.integers(0, 20))
def test_totals_may_be_added_in_parts(given_estimates: list[Estimate], middle: int) -> None:
    """The total of two parts is that of the whole, and each group has its own requests."""
    parts = [Totals.of(given_estimates[:middle]), Totals.of(given_estimates[middle:])]
    whole = Totals.of(given_estimates)
    assert parts[0].total + parts[1].total == whole.total
    for group, total in whole.groups.items():
        assert total.requests == sum(
            (one.quantities.family, one.quantities.model, one.quantities.tier)
            == (group.family, group.model, group.tier)
            for one in given_estimates
        )


def test_groups() -> None:
    """Requests are grouped by family, model and tier, in the order of their first ones."""
    requests = [
        VidrRequest(model="vidrPro", prompt="a horse", duration=4),
        ImgbRequest(model="imgb-2", prompt="a horse", quality="high"),
        VidrRequest(model="vidrPro", prompt="a horse"),
    ]
    totals = Totals.of((request.estimate(PRICES) for request in requests), PRICES.currency)
    video, picture = totals.groups.items()
    assert video[0] == Group(family="vidr", model="vidrPro")
    assert (video[1].seconds, video[1].cost) == (Sum(Decimal(4), 1), Sum(Decimal("0.4"), 1))
    assert picture[0] == Group(family="imgb", model="imgb-2", tier="high")
    assert picture[1].cost == Sum(Decimal(0), 1)
    assert totals.total.seconds.total is None
    assert totals.total.pictures.total == 1
    assert Totals().total == Total()
