"""What requests consume and cost, as far as it is known before they are sent.

`Quantities` say what one request consumes. The families' tables know that, and the specification
decides how much they know. `PriceList` is a price file of the user's, because the specification has
no prices. `Estimate` joins the two for one request, and `Totals` adds up many.

Unknown is None, never 0: the length of a video that follows its reference, the tokens of an answer,
the cost of a request without a price. A sum keeps what is known apart from how many requests it
does not contain, and so never claims to be the whole.
"""

from muybridge_protocol.estimates.estimate import Estimate, estimate_of
from muybridge_protocol.estimates.price_file import parse_prices
from muybridge_protocol.estimates.price_list import PriceList
from muybridge_protocol.estimates.prices import Price
from muybridge_protocol.estimates.quantities import (
    TEXT,
    Quantities,
    media_quantities,
    text_quantities,
)
from muybridge_protocol.estimates.totals import Group, Sum, Total, Totals
from muybridge_protocol.estimates.units import Unit

__all__ = [
    "TEXT",
    "Estimate",
    "Group",
    "Price",
    "PriceList",
    "Quantities",
    "Sum",
    "Total",
    "Totals",
    "Unit",
    "estimate_of",
    "media_quantities",
    "parse_prices",
    "text_quantities",
]
