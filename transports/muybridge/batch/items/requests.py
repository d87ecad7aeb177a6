"""The requests of items, and what they consume."""

from __future__ import annotations

import warnings
from typing import Protocol

from muybridge_protocol.estimates import PriceList
from muybridge_protocol.families import MediaRequest, find_family
from muybridge_protocol.families.request import parse
from muybridge_protocol.purchases import KNOWN_BY, Amounts, Budget, Measure, amounts_of
from muybridge_protocol.records.json import read_object


class Written(Protocol):
    """An item, with its request as JSON."""

    @property
    def family(self) -> str:
        """The family of the request."""
        ...

    @property
    def body(self) -> str:
        """The request as it is sent, as JSON."""
        ...


def request_of(item: Written) -> MediaRequest:
    """Return the request of *item*, whose warnings were shown when it was checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse(find_family(item.family), read_object(item.body), keep_unknown=True)


def amounts_of_item(item: Written, prices: PriceList | None) -> Amounts:
    """Return what the create of *item* consumes."""
    return amounts_of(request_of(item).quantities(), prices)


def unknown_amounts(budget: Budget, amounts: Amounts) -> list[tuple[Measure, str]]:
    """Return what *budget* limits of which nobody knows how much a request needs, and why not."""
    reasons: list[tuple[Measure, str]] = []
    for one in budget.limits:
        if amounts[one] is None:
            theirs = "cost is" if one is Measure.COST else f"{one} are"
            unknown = f"{budget.named(one)} cannot be checked, because its {theirs} unknown"
            reasons.append((one, f"{unknown}. {KNOWN_BY.get(one, 'Leave that limit out')}"))
    return reasons
