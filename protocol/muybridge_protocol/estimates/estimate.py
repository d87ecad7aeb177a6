"""What one request consumes and costs."""

from __future__ import annotations

from decimal import Decimal

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.estimates.price_list import PriceList
from muybridge_protocol.estimates.prices import Price
from muybridge_protocol.estimates.quantities import Quantities
from muybridge_protocol.estimates.units import EXACT, TOKENS


@attrs.frozen(kw_only=True)
class Estimate:
    """What one request consumes and costs, as far as it is known before it is sent.

    Args:
        quantities: What it consumes.
        price: The price that applies to it, or None if there is none.
        currency: What `cost` is counted in, or None if no prices were given.
    """

    quantities: Quantities
    price: Price | None = None
    currency: str | None = None

    @property
    def cost(self) -> Decimal | None:
        """What the request costs, or None if that is not known."""
        if self.price is None:
            return None
        output_amount = self.price.output_amount
        if output_amount is None:
            count = self.quantities.count(self.price.unit)
            return None if count is None else EXACT.multiply(count, self.price.amount)
        taken, given = self.quantities.input_tokens, self.quantities.output_tokens
        if taken is None or given is None:
            return None
        money = EXACT.multiply(Decimal(taken), self.price.amount)
        return EXACT.divide(EXACT.fma(Decimal(given), output_amount, money), TOKENS)


def estimate_of(quantities: Quantities, prices: PriceList | None = None) -> Estimate:
    """Return the estimate for a request.

    Args:
        quantities: What it consumes.
        prices: What things cost, or None if that is not known.
    """
    if prices is None:
        return Estimate(quantities=quantities)
    check_type("prices", prices, PriceList, "a PriceList", "muybridge.load_prices(path)")
    return Estimate(
        quantities=quantities, price=prices.price_of(quantities), currency=prices.currency
    )
