"""Estimate what the requests of a file will consume and cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

import attrs

from muybridge.batch.items.reading import WrongItem, read_item
from muybridge.verbs.request_files import Verdict, folder_of, items
from muybridge_protocol.estimates import Estimate, PriceList, Totals
from muybridge_protocol.families.family import OwnLinks, no_link

MOST_NAMED: Final = 50
"""Most wrong items that are named: any number of them takes no more memory."""


@attrs.frozen
class Estimation:
    """What the requests of a file will consume and cost.

    Args:
        totals: The sums of the valid items.
        wrong: The first items that are not valid, and so not counted.
        wrong_count: How many items are not valid.
    """

    totals: Totals
    wrong: tuple[Verdict, ...]
    wrong_count: int


def estimate(
    file: BinaryIO, prices: PriceList | None = None, own: OwnLinks = no_link
) -> Estimation:
    """Return what the requests of *file* will consume and cost.

    Args:
        file: JSON lines, or a file of another format that its name says.
        prices: What requests cost, or None if that is not known.
        own: Recognizes links that the service in use has given out.

    Raises:
        LocalError: The file cannot be read any further.
    """
    wrong: list[Verdict] = []
    count = 0

    def estimates() -> Iterator[Estimate]:
        nonlocal count
        for place, item in items(file):
            try:
                if isinstance(item, WrongItem):
                    raise item
                _, request = read_item(item, folder_of(file), own)
            except WrongItem as error:
                count += 1
                if count <= MOST_NAMED:
                    wrong.append(Verdict.of(place, item, error.problems))
            else:
                yield request.estimate(prices)

    totals = Totals.of(estimates(), None if prices is None else prices.currency)
    return Estimation(totals, tuple(wrong), count)
