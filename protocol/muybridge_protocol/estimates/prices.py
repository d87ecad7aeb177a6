"""A price: what one unit of something costs."""

from __future__ import annotations

from decimal import Decimal

import attrs

from muybridge_protocol.estimates.units import Unit

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
        amount: Money, in the currency of the list; 0 or more.

    Raises:
        ValueError: The amount is negative or not a number.
    """

    family: str
    model: str | None = None
    tier: str | None = None
    unit: Unit
    amount: Decimal

    def __attrs_post_init__(self) -> None:
        if not self.amount.is_finite() or self.amount.is_signed():
            raise ValueError(f"a price must be 0 or more (got {self.amount})")

    @property
    def key(self) -> Key:
        """What the price is for."""
        return (self.family, self.model, self.tier)
