"""The create of an item: armed with its item in one transaction, and concluded with it in one."""

from __future__ import annotations

import attrs

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.requests import request_of
from muybridge.batch.running.recovery import unreadable
from muybridge.batch.running.side_files import UNFINISHED, KeptResponse, Runner
from muybridge.drivers.fleet_team import End
from muybridge.drivers.notes import TWIN_UNDER_WAY, BrokenOff
from muybridge.drivers.runtime import Runtime
from muybridge.purchases.booking import Booking, Books
from muybridge.purchases.once import name_of_identical
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Create
from muybridge_protocol.purchases import Item, Order, Outcome, read_amounts
from muybridge_protocol.records.json import RAW_LIMIT


class ItemBooking(Booking):
    """The create of an item, in the store of its batch.

    Args:
        books: Those of the batch's store.
        create: The create, at its beginning.
        runtime: The client's.
        batch: The batch.
        item: The item.
        runner: Notes what is armed, for whoever comes next.
        dedupe: Whether identical requests share one purchase.
    """

    def __init__(
        self,
        books: Books,
        create: Create,
        runtime: Runtime,
        *,
        batch: Batch,
        item: Item,
        runner: Runner,
        dedupe: bool,
    ) -> None:
        self.name: str | None = None
        """The name that identical requests share, if they share one purchase."""
        self.digest: str | None = None
        if dedupe:
            # Identical requests join outside the batch as well, if the rest of their tags agrees.
            shared = {key: it for key, it in books.tags.items() if key not in batch.tags}
            self.name, self.digest = name_of_identical(request_of(item), shared)
        super().__init__(
            books,
            create,
            runtime,
            once=self.name,
            digest=self.digest,
            if_held=TWIN_UNDER_WAY,
            tags=books.tags,
        )
        self._batch = batch
        self._item = item
        self._judged: Outcome | None = None
        self._runner = runner

    def outcome_of(self, end: End, now: float) -> Outcome:
        """Return what *end* means, whatever it is, and the same however often it is asked."""
        if self._judged is None:
            try:
                self.judge(end, now)
                self._judged = self.outcome
            except Exception as error:  # noqa: BLE001  it concerns this item only
                self._judged = self.without_meaning(end, error)
        return self._judged

    def without_meaning(self, end: End, error: Exception) -> Outcome:
        """Return what is recorded of *end*, which cannot be judged or recorded."""
        response = response_of(self.key, end)
        status, body = (None, b"") if response is None else (response.status, response.body)
        return unreadable(status, body, error)

    def _order(self) -> Order:
        order = super()._order()
        if self._item.amounts is None:
            return order
        return attrs.evolve(order, amounts=read_amounts(self._item.amounts))

    def _arm(self, lasts: float, item: tuple[int, int] | None = None) -> None:
        super()._arm(lasts, item or (self._batch.number, self._item.number))
        # Only now: whoever comes next takes a store without this purchase for an older copy.
        self._runner.note(self.key)


def response_of(key: str, end: End) -> KeptResponse | None:
    """Return what has arrived of the response to the purchase *key*, or None if nothing has."""
    if isinstance(end, HttpResponse):
        return KeptResponse(key=key, status=end.status, body=end.body[:RAW_LIMIT])
    failure = end.failure if isinstance(end, BrokenOff) else end
    if not failure.partial:
        return None
    return KeptResponse(key=key, status=UNFINISHED, body=failure.partial[:RAW_LIMIT])
