"""A user's prices, and which of them a request has."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from muybridge_protocol.estimates.prices import Key, Price
from muybridge_protocol.estimates.quantities import Quantities


@attrs.frozen
class PriceList:
    """A user's prices. The one for a tier is preferred to that for a model or a family.

    Args:
        currency: What amounts are counted in, such as `USD`.
        prices: At most one for each family, model and tier.

    Raises:
        ValueError: There are two prices for the same thing.
    """

    currency: str
    prices: tuple[Price, ...]
    _by_key: Mapping[Key, Price] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        by_key = {price.key: price for price in self.prices}
        if len(by_key) != len(self.prices):
            raise ValueError("there are two prices for the same thing")
        object.__setattr__(self, "_by_key", by_key)

    def price_of(self, quantities: Quantities) -> Price | None:
        """Return the price of a request, or None if there is none."""
        family, model, tier = quantities.family, quantities.model, quantities.tier
        for key in ((family, model, tier), (family, model, None), (family, None, None)):
            price = self._by_key.get(key)
            if price is not None:
                return price
        return None
