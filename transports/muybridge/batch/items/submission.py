"""Items as they are submitted to a batch: new ones, and those that it must have already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.reading import THE_BATCH, CheckedItem, CheckedItems
from muybridge.batch.items.requests import amounts_of_item
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.errors import InputProblem, InvalidInput

if TYPE_CHECKING:
    from muybridge.purchases.store import NewItem
    from muybridge_protocol.estimates import PriceList


class NewItems:
    """Items as a store takes them, read again each time.

    Args:
        items: The items.
        prices: What they cost, or None if whoever sends them knows.
        after: How many of them the store has.
    """

    def __init__(
        self, items: CheckedItems, prices: PriceList | None = None, after: int = 0
    ) -> None:
        self._items = items
        self._prices = prices
        self._after = after

    def __iter__(self) -> Iterator[NewItem]:
        """Yield those that the store does not have."""
        for item in islice(self._items, self._after, None):
            new = item.new()
            if self._prices is not None:
                new = item.new(amounts_of_item(new, self._prices))
            yield new


def check_service(batch: Batch, service: str) -> None:
    """Check that the batch's tasks are at *service*.

    Raises:
        StoreUnusable: They are elsewhere.
    """
    if batch.service != service:
        raise StoreUnusable(
            f"The batch {batch.name} was begun at {batch.service}, and this is {service}: "
            "its tasks are not known here. Use that service, or begin another batch."
        )


def check_same_items(batch: Batch, items: Iterable[CheckedItem]) -> int:
    """Check that *items* begin with those of the batch, and return how many those are.

    Raises:
        InvalidInput: They do not.
    """
    known = given = 0
    iterator = iter(items)
    for entry in batch.entries():
        known += 1
        item = next(iterator, None)
        # Read on all the same: the message says how many items there are.
        if item is None:
            continue
        given += 1
        same = (entry.name, entry.family) == (item.name, item.family)
        if not same or json.loads(entry.body) != item.body:
            problem = f"differs from the batch {batch.name}, which has been begun"
            message = f"{problem}; {_INSTEAD}"
            raise InvalidInput(THE_BATCH, [InputProblem(f"item {entry.number}", message)])
    if given < known:
        problem = f"{batch.name} has {known} items (got {given})"
        raise InvalidInput(THE_BATCH, [InputProblem(THE_BATCH, f"{problem}; {_INSTEAD}")])
    return known


_INSTEAD = (
    "submit the same items as before, with new ones at the end; or leave them out to resume; or "
    "begin another batch"
)
