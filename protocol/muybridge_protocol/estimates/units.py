"""The units of prices, and which of them fit what a model makes and how it is billed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from enum import StrEnum
from typing import Final

from muybridge_protocol.families.family import Billing, Media


class Unit(StrEnum):
    """What a price is for. The values are the keys of a price file."""

    CALL = "per_call"
    PICTURE = "per_picture"
    SECOND = "per_second"
    THOUSAND_TOKENS = "per_1000_tokens"


EXACT: Final = Context(prec=60)
"""Sums and costs are calculated in this context: the program's own may round to fewer digits."""
TOKENS: Final = Decimal(1000)
"""Tokens in a `Unit.THOUSAND_TOKENS`."""

OF_TEXT: Final = (Unit.CALL, Unit.THOUSAND_TOKENS)
"""The units that fit a text call."""

_OF_MEDIA: Final[Mapping[Media, tuple[Unit, ...]]] = {
    Media.IMAGE: (Unit.CALL, Unit.PICTURE, Unit.THOUSAND_TOKENS),
    Media.VIDEO: (Unit.CALL, Unit.SECOND, Unit.THOUSAND_TOKENS),
}
_BY_BILLING: Final[Mapping[Billing, tuple[Unit, ...]]] = {
    Billing.PER_CALL: (Unit.CALL,),
    Billing.PER_SECOND: (Unit.SECOND,),
    # A call makes one picture, so these two say the same.
    Billing.BY_QUALITY: (Unit.CALL, Unit.PICTURE),
    Billing.BY_RESOLUTION: (Unit.CALL, Unit.PICTURE),
}


def units_of(media: Media, billing: Billing) -> tuple[Unit, ...]:
    """Return the units that do not contradict what the specification says of a model."""
    return _BY_BILLING.get(billing, _OF_MEDIA[media])
