"""Batches in a store that several machines share: begin one, and look at it from anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Final

import attrs

from muybridge.batch.items.batch import SETTLED, Batch, tag_of
from muybridge.batch.items.entries import Entries
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.folder import FOLDER, find_batch
from muybridge.batch.items.reading import (
    THE_BATCH,
    CheckedItems,
    Source,
    checked_items,
)
from muybridge.batch.items.requests import amounts_of_item, unknown_amounts
from muybridge.batch.items.submission import NewItems, check_same_items, check_service
from muybridge.batch.results.places.names import check_place, place_for_all
from muybridge.configuration import check_prices, check_spending
from muybridge.purchases import open_store
from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.rates import check_rate
from muybridge.purchases.store import Store
from muybridge_protocol.arguments import check_type
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.purchases import BudgetUse, Item, Stage, read_amounts
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.purchases import Budget, Purchase


@attrs.frozen
class SharedBatch:
    """A batch in a store that several machines share.

    Args:
        store: The store, or its place: `postgresql://USER@HOST/DATABASE`. Keep the password in a
            `.pgpass` file, or in `PGPASSWORD`.
        name: The batch's name, of 1 to 200 printable characters.
    """

    store: Store | str | os.PathLike[str] = attrs.field(repr=False)
    name: str

    def __attrs_post_init__(self) -> None:
        line = "a store, or its place, such as 'postgresql://HOST/DATABASE'"
        check_type("store", self.store, (Store, str, os.PathLike), line)

    def open(self) -> Batch:
        """Open it.

        Raises:
            StoreUnusable: The store cannot be used, or there is no such batch.
        """
        with ExitStack() as stack:
            store = stack.enter_context(self.open_store())
            batch = Batch.find(store, self.name)
            if batch is None:
                message = f"There is no batch {self.name} in {store.place}."
                raise StoreUnusable(message, lacks="batch")
            stack.pop_all()  # the batch closes it
        return batch

    def open_store(self) -> Store:
        """Open the store, as a new owner."""
        return self.store.another() if isinstance(self.store, Store) else open_store(self.store)


LONGEST_NAME: Final = 200
"""Longest name of a batch in a store, in characters."""


def is_batch_name(name: object) -> bool:
    """Whether *name* may be that of a batch in a store: the value of a tag, typed in one line."""
    if not isinstance(name, str) or name != name.strip():
        return False
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


Place = str | os.PathLike[str] | SharedBatch
"""The folder of a batch, or a batch in a store."""


@attrs.frozen(kw_only=True)
class SharedReport:
    """The progress of a batch in a store.

    Args:
        batch: The batch.
        counts: How many items are in each state, without empty states.
        entries: Its items, read from the store on access.
        strays: Purchases that were paid for, and whose task no item has: their responses arrived
            when somebody had decided otherwise.
        stopped: Why a worker stopped early, or "".
        over_budget: Whether it stopped because a budget is used up: the batch's own, or one of the
            client's.
        budget: How far the batch's budget is used up, or None if it has none.
        out: Where its results go, or None if each worker has its own place.
    """

    batch: SharedBatch
    counts: Mapping[Stage, int]
    entries: Sequence[Entry] = attrs.field(repr=False)
    strays: tuple[Purchase, ...] = ()
    stopped: str = ""
    over_budget: bool = False
    budget: BudgetUse | None = None
    out: str | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, neither for a worker nor for a person."""
        return {*SETTLED}.issuperset(self.counts)

    @property
    def ambiguous(self) -> tuple[Entry, ...]:
        """The items that need a person's decision."""
        if Stage.AMBIGUOUS not in self.counts:
            return ()
        with self.batch.open() as batch:
            return tuple(batch.entries(Stage.AMBIGUOUS))


def submit(
    batch: SharedBatch,
    source: Source,
    service: Service,
    *,
    rate: float | None = None,
    budget: Budget | None = None,
    prices: PriceList | None = None,
    out: str | os.PathLike[str] | None = None,
) -> SharedReport:
    """Begin *batch*, or add items to it. Nothing is sent: workers do that.

    Submitting the same items again changes nothing; items may be appended to them. If anything is
    refused, nothing has changed.

    Args:
        batch: The batch.
        source: A file (`.jsonl`, `.json` or `.csv`), requests, or objects with the keys of a file's
            items.
        service: Where its tasks will be: `client.service`.
        rate: Maximum requests per second of all workers at this service together; infinity for no
            limit, or None to leave it unchanged. All batches of a store at the same service
            share this limit.
        budget: What all creates of the batch may consume together, whichever machines send them, or
            None to leave it unchanged. It is a budget of the tag `batch=NAME`.
        prices: What they cost, or None if workers know. They also apply to items that were added
            without them and are not sent yet.
        out: Where workers store the results: `s3://BUCKET/PREFIX`, or a folder that has the same
            absolute path on every machine; or None to leave it unchanged. Without one, each worker
            needs its own. Running workers keep the old place.

    Raises:
        InvalidInput: Some items are not valid, or differ from those that the batch has, a budget
            cannot be kept, or the name does not have 1 to 200 printable characters.
        StoreUnusable: The store cannot be used, or the batch's tasks are elsewhere.
        ValueError: The rate is not above 0, the budget is one for a day or a month, or the place
            for results is not the same for every worker.
        OSError: The file cannot be read.
    """
    check_batch(batch)
    check_prices(prices)
    check_spending(budget, None)
    check_type("rate", rate, (int, float, NoneType), "a number")
    check_type("service", service, Service, "the service of a client", "client.service")
    if out is not None:
        check_place(out)
    if not is_batch_name(batch.name):
        message = (
            f"it must have 1 to {LONGEST_NAME} characters, all printable, and no space at its ends"
        )
        raise InvalidInput(THE_BATCH, [InputProblem("the name", message)])
    check_rate(rate)
    check_budget(budget)
    place = None if out is None else place_for_all(out)
    named = service.require_base_url()
    with ExitStack() as stack:
        items = stack.enter_context(checked_items(source, service.gave_out))
        store = stack.enter_context(batch.open_store())
        known = Batch.find(store, batch.name)
        if known is None:
            if budget is not None:
                _check_amounts(items, budget, prices)
            if budget is not None:  # before anybody can send anything
                store.limit(tag_of(batch.name), budget)
            known = Batch.begin(
                store, batch.name, NewItems(items, prices), service=named, place=place
            )
        check_service(known, named)
        if not known.is_new:
            count = check_same_items(known, items)
            use = _use_of(known)
            limits = budget or (None if use is None else use.budget)
            if limits is not None:
                _check_amounts(items, limits, prices, known)
            if budget is not None:
                store.limit(known.tag, budget)
            if prices is not None:
                known.price(lambda item: amounts_of_item(item, prices))
            if len(items) > count:
                known.add(NewItems(items, prices, count), after=count)
            if place is not None:
                known = known.store_in(place)
        if rate is not None:
            known.limit_rate(rate)
        return report_of(batch, known)


def _check_amounts(
    items: CheckedItems, budget: Budget, prices: PriceList | None, batch: Batch | None = None
) -> None:
    """Check that it is known how much of what *budget* limits each item needs.

    Args:
        items: The items.
        budget: The budget.
        prices: What they cost, or None if that is not known.
        batch: The batch, if it is begun: it may have recorded what its items need.

    Raises:
        InvalidInput: It is not.
    """
    problems: list[InputProblem] = []
    recorded: Iterator[Item] = iter(()) if batch is None else batch.items()
    for number, item in enumerate(items, start=1):
        known = next(recorded, None)
        if known is None or known.amounts is None:
            amounts = amounts_of_item(item.new(), prices)
        else:
            amounts = read_amounts(known.amounts)
        problems += [
            InputProblem(f"item {number}", reason, measure.value)
            for measure, reason in unknown_amounts(budget, amounts)
        ]
    if problems:
        raise InvalidInput(THE_BATCH, problems)


def check_budget(budget: Budget | None) -> None:
    """Check that *budget* can be one of a batch.

    Raises:
        ValueError: It is a budget for a period.
    """
    if budget is not None and budget.per is not None:
        raise ValueError("the budget of a batch is one for the whole batch: leave `per` out")


def check_batch(batch: object) -> None:
    """Check that *batch* is a batch in a store.

    Raises:
        TypeError: It is something else.
    """
    line = "SharedBatch('postgresql://HOST/DATABASE', name)"
    check_type("batch", batch, SharedBatch, "a SharedBatch", line)


def shared_status(batch: SharedBatch) -> SharedReport:
    """Return the progress of *batch*.

    Raises:
        StoreUnusable: The store cannot be used, or there is no such batch.
    """
    check_batch(batch)
    with batch.open() as found:
        return report_of(batch, found)


def report_of(batch: SharedBatch, found: Batch) -> SharedReport:
    """Return the progress of *batch*, which is open."""
    counts = found.counts()
    return SharedReport(
        batch=batch,
        counts=counts,
        entries=Entries(batch.open, sum(counts.values())),
        strays=tuple(found.strays()),
        budget=_use_of(found),
        out=found.place,
    )


def _use_of(batch: Batch) -> BudgetUse | None:
    """Return how far the budget of a batch is used up, or None if it has none."""
    for stored in batch.store.limits():
        if stored.tag == batch.tag and stored.budget.per is None:
            spent = batch.store.spent(stored.label_of(batch.tag), stored.budget)
            return BudgetUse(budget=stored.budget, spent=spent, exceeded=None)
    return None


def open_batch(place: Place) -> Batch:
    """Open a batch, wherever it is.

    Raises:
        StoreUnusable: There is no batch, or its store cannot be read or does not contain it.
    """
    if isinstance(place, SharedBatch):
        return place.open()
    check_type("out", place, (str, os.PathLike), "the folder of a batch, or a SharedBatch")
    return find_batch(Path(place))


def folder_of(place: Place) -> Path | None:
    """Return the folder of this machine's files of a batch, or None if it is anywhere."""
    return None if isinstance(place, SharedBatch) else Path(place) / FOLDER
