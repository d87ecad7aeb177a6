"""A price: what one unit of something costs."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import attrs

from muybridge_protocol.estimates.units import Unit

HIGHEST: Final = Decimal(1_000_000)
"""Highest price of a unit."""

Key = tuple[str, str | None, str | None]
"""What a price is for: the family, the model and the tier. None stands for all of them."""


@attrs.frozen(kw_only=True)
class Price:
    """What one unit costs.

    Args:
        family: The family, or `text`.
        model: The model, or None for every model of the family.
        tier: The quality or resolution, or None for each of them.
        unit: What the amount is for.
        amount: Money, in the currency of the list; 0 to 1,000,000.
        output_amount: Money for 1,000 output tokens, if *amount* is for input tokens alone; or None
            if both cost the same.

    Raises:
        ValueError: An amount is negative, too high or not a number, or input and output are not
            tokens.
    """

    family: str
    model: str | None = None
    tier: str | None = None
    unit: Unit
    amount: Decimal
    output_amount: Decimal | None = None

    def __attrs_post_init__(self) -> None:
        for amount in (self.amount, self.output_amount):
            if amount is None:
                continue
            if not amount.is_finite() or amount.is_signed():
                raise ValueError(f"a price must be 0 or more (got {amount})")
            if amount > HIGHEST:
                raise ValueError(f"a price must be at most {HIGHEST:,} (got {amount})")
        if self.output_amount is not None and self.unit is not Unit.THOUSAND_TOKENS:
            raise ValueError(
                f"input and output have prices of their own only {Unit.THOUSAND_TOKENS}"
            )

    @property
    def key(self) -> Key:
        """What the price is for. A price list has no two prices with the same key."""
        return (self.family, self.model, self.tier)
