"""What purchases consume, by measure, and exact sums of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from muybridge_protocol.estimates.estimate import estimate_of
from muybridge_protocol.estimates.price_list import PriceList
from muybridge_protocol.estimates.quantities import Quantities
from muybridge_protocol.estimates.totals import Sum
from muybridge_protocol.estimates.units import EXACT


class Measure(StrEnum):
    """Something that a request consumes."""

    CREATES = "creates"
    PICTURES = "pictures"
    SECONDS = "seconds"
    CALLS = "calls"
    COST = "cost"


Amounts = Mapping[Measure, Decimal | None]
"""How much of each is consumed; None if it is unknown, which is not 0."""
Sums = Mapping[Measure, Sum]
"""What many purchases consume."""

NOTHING: Final[Sums] = dict.fromkeys(Measure, Sum())
UNKNOWN_CALL: Final[Amounts] = {
    **dict.fromkeys(Measure, None), Measure.CREATES: Decimal(1), Measure.CALLS: Decimal(1),
}  # fmt: skip
"""A call to any endpoint may create something, or be a text request."""

DIGITS: Final = 30
"""Most digits before the point, and after it: sums of such numbers are exact in `EXACT`."""
DAY: Final = 86_400
"""Seconds in a day of UTC: Unix time has no leap seconds."""


def day_of(wall: float) -> int:
    """Return the day that contains *wall*, counted from 1970, in UTC."""
    return int(wall // DAY)


def amounts_of(wanted: Quantities, prices: PriceList | None) -> Amounts:
    """Return what a request consumes.

    Args:
        wanted: The quantities, as `MediaRequest.quantities` or `text_quantities` returns them.
        prices: What things cost, or None if that is not known.
    """
    return {
        Measure.CREATES: Decimal(wanted.creates),
        Measure.PICTURES: None if wanted.pictures is None else Decimal(wanted.pictures),
        Measure.SECONDS: wanted.seconds,
        Measure.CALLS: Decimal(wanted.calls),
        Measure.COST: estimate_of(wanted, prices).cost,
    }


def countable(amount: Decimal | None) -> Decimal | None:
    """Return *amount* as it can be added up exactly, rounded up, or None if it cannot be.

    A budget must not count less than a request consumes, so an amount that is too large, or is not
    a number, is unknown.
    """
    if amount is None or not amount.is_finite() or amount < 0 or amount.adjusted() >= DIGITS:
        return None
    if int(amount.as_tuple().exponent) >= -DIGITS:
        return amount
    return amount.quantize(Decimal((0, (1,), -DIGITS)), ROUND_CEILING, EXACT)


def all_countable(amounts: Amounts) -> Amounts:
    """Return *amounts*, each of them as it can be added up exactly."""
    return {one: countable(amount) for one, amount in amounts.items()}


def plus(sums: Sums, amounts: Amounts) -> Sums:
    """Return *sums* with one purchase more."""
    return {one: sums[one].plus(amounts[one]) for one in Measure}


def minus(sums: Sums, amounts: Amounts) -> Sums:
    """Return *sums* with one purchase less."""
    return {
        one: sums[one]
        + (Sum(unknown=-1) if (less := amounts[one]) is None else Sum(less.copy_negate()))
        for one in Measure
    }


def totals(sums: Sums) -> Amounts:
    """Return each sum, or None where an amount in it is unknown."""
    return {one: sums[one].total for one in Measure}


# As stores keep them: JSON with decimal numbers as strings, so that any database keeps all digits


def written_amounts(amounts: Amounts) -> str:
    """Return *amounts* as JSON."""
    return json.dumps({one: None if it is None else str(it) for one, it in amounts.items()})


def read_amounts(text: str) -> Amounts:
    """Return the amounts that *text* has as JSON."""
    return _amounts_in(text)


@lru_cache(maxsize=256)  # thousands of purchases consume the same
def _amounts_in(text: str) -> Amounts:
    amounts: dict[str, str | None] = json.loads(text)
    return {one: None if (it := amounts[one]) is None else Decimal(it) for one in Measure}


def written_sums(sums: Sums) -> str:
    """Return *sums* as JSON."""
    return json.dumps({one: [str(it.known), it.unknown] for one, it in sums.items()})


def read_sums(texts: Iterable[str]) -> Sums:
    """Return what all of *texts* have as JSON, added up."""
    total = dict(NOTHING)
    for text in texts:
        sums: dict[str, list[Any]] = json.loads(text)
        for one, (known, unknown) in sums.items():
            total[Measure(one)] += Sum(Decimal(known), unknown)
    return total
