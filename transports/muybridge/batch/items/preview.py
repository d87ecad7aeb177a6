"""What a run of a batch would send, found out before it is run: nothing is sent, no file made."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.batch.items.batch import SETTLED, Batch
from muybridge.batch.items.folder import find_in_folder
from muybridge.batch.items.reading import CheckedItems, Source, checked_items
from muybridge.batch.items.submission import check_same_items
from muybridge.batch.results.missing_files import as_found, counts_as_found, is_back
from muybridge.batch.results.places.names import check_place
from muybridge.batch.running.opening import check_limit
from muybridge.configuration import (
    LIMIT_VARIABLE,
    STORE_VARIABLES,
    check_prices,
    check_spending,
)
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.arguments import check_type
from muybridge_protocol.estimates import (
    Estimate,
    PriceList,
    Totals,
    estimate_of,
    media_quantities,
)
from muybridge_protocol.families import find_family
from muybridge_protocol.families.family import any_link
from muybridge_protocol.families.request import parse
from muybridge_protocol.purchases import Stage

if TYPE_CHECKING:
    from muybridge.purchases import Budget, BudgetUse, Store
    from muybridge_protocol.service import Service

_UNSENT = frozenset({Stage.QUEUED, Stage.CLAIMED})


@attrs.frozen(kw_only=True)
class Preview:
    """What a run would send.

    Args:
        folder: The batch's folder.
        counts: How many of its items are in each stage; empty if it is not begun.
        sends: How many new requests the run would send at most.
        joins: How many more items it would take, which share the task of an identical request.
        left: How many items the limit leaves for later runs.
        totals: What these requests consume and cost.
        budgets: How far each budget is used up, and whether these requests fit into the rest.
    """

    folder: Path
    counts: Mapping[Stage, int]
    sends: int
    left: int
    totals: Totals
    joins: int = 0
    budgets: tuple[BudgetUse, ...] = ()


def preview(
    source: Source | None,
    out: str | os.PathLike[str],
    *,
    limit: int | None = None,
    dedupe: bool = False,
    prices: PriceList | None = None,
    local: bool = False,
    budget: Budget | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    service: Service | None = None,
) -> Preview:
    """Return what `run` would send, without sending it or writing anything.

    Items that were already sent are not sent again, so they do not count.

    Args:
        source: The items, as for `run`, or None for those in *out*.
        out: The folder of the batch, which need not exist.
        limit: Maximum number of new items to send, or None for all.
        dedupe: Whether identical requests share one task, as for `run`. An item counts as sent even
            if a request outside this run has such a task already: only the key tells whose it is.
        prices: What requests cost, or None if that is not known.
        local: Whether the service is an embedded one, as for `run`. Budgets do not apply to it.
        budget: The client's, or None. The environment's limits count as well.
        store: The client's, or its place, or None for the default one.
        service: Where they would be sent, or None if that is not known yet. Links to this machine
            are then not checked.

    Raises:
        InvalidInput: Some items are not valid.
        StoreUnusable: The store cannot be used, or there is no batch, and no items.
        LocalError: The batch is in another store, or a limit in the environment cannot be read.
        ValueError: The limit is below 0.
        OSError: The file cannot be read.
    """
    check_limit(limit)
    check_place(out)
    check_type("dedupe", dedupe, bool, "True or False")
    check_type("local", local, bool, "True or False")
    check_prices(prices)
    check_spending(budget, store)
    folder = Path(out)
    with ExitStack() as stack:
        own = any_link if service is None else service.gave_out
        items = None if source is None else stack.enter_context(checked_items(source, own))
        batch = _find(folder, budget, store, stack, local=local, dedupe=dedupe)
        if batch is None and items is None:
            raise StoreUnusable(f"There is no batch in {folder}.", lacks="batch")
        if batch is not None and items is not None:
            check_same_items(batch, items)
        unsent = _unsent(batch, items, folder, local=local)
        chosen = islice(unsent, limit)
        occurrences: Counter[str] = Counter()
        sent = _first_of_each(chosen, occurrences) if dedupe else chosen
        estimates = (_estimate(*one, prices) for one in sent)
        totals = Totals.of(estimates, None if prices is None else prices.currency)
        return Preview(
            folder=folder,
            counts={} if batch is None else counts_as_found(batch, folder)[0],
            sends=totals.total.requests,
            left=sum(1 for _ in unsent),
            totals=totals,
            joins=occurrences.total() - len(occurrences),
            budgets=() if local else tuple(_budgets(totals, budget, store)),
        )


def _find(
    folder: Path,
    budget: Budget | None,
    store: Store | str | os.PathLike[str] | None,
    stack: ExitStack,
    *,
    local: bool,
    dedupe: bool,
) -> Batch | None:
    """Return the batch in *folder*, as `run` finds it, or None if there is none."""
    from muybridge.purchases import Store, open_store

    wanted = any(name.startswith(STORE_VARIABLES) for name in os.environ)
    given: Store | None = None
    if not local and (budget is not None or store is not None or dedupe or wanted):
        given = store if isinstance(store, Store) else stack.enter_context(open_store(store))
    return find_in_folder(folder, given)


def _unsent(
    batch: Batch | None, items: CheckedItems | None, folder: Path, *, local: bool
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the family and the body of each request that has not been sent."""
    known = 0
    for entry in () if batch is None else batch.entries():
        known += 1
        # An embedded service has forgotten what is unfinished.
        forgotten = local and as_found(entry, folder).state not in SETTLED
        if entry.state in _UNSENT or (forgotten and not is_back(entry, folder)):
            yield entry.family, json.loads(entry.body)
    for item in islice(items or (), known, None):
        yield item.family, item.body


def _first_of_each(
    requests: Iterator[tuple[str, Mapping[str, Any]]], occurrences: Counter[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the first of all requests that are identical, and count them all in *occurrences*."""
    from muybridge.purchases.once import name_of_identical

    for family, body in requests:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were shown when the item was checked
            name, _ = name_of_identical(parse(find_family(family), body, keep_unknown=True))
        occurrences[name] += 1
        if occurrences[name] == 1:
            yield family, body


def _budgets(
    totals: Totals, budget: Budget | None, store: Store | str | os.PathLike[str] | None
) -> Iterator[BudgetUse]:
    """Yield what the store has left of each budget, and whether *totals* fit."""
    if budget is None and not any(name.startswith(LIMIT_VARIABLE) for name in os.environ):
        return
    from muybridge.purchases import BudgetUse, Measure, Store, open_store
    from muybridge.purchases.environment import budget_of_environment

    total = totals.total
    wanted = {
        Measure.CREATES: Decimal(total.creates),
        Measure.PICTURES: total.pictures.total,
        Measure.SECONDS: total.seconds.total,
        Measure.CALLS: Decimal(total.calls),
        Measure.COST: None if totals.currency is None else total.cost.total,
    }
    with ExitStack() as stack:
        books = store if isinstance(store, Store) else stack.enter_context(open_store(store))
        for one in (budget, budget_of_environment()):
            if one is not None and one.limits:
                spent = books.spent(budget=one)
                exceeded = one.exceeded_by(wanted, spent) if total.requests else None
                yield BudgetUse(budget=one, spent=spent, exceeded=exceeded)


def _estimate(family: str, body: Mapping[str, Any], prices: PriceList | None) -> Estimate:
    return estimate_of(media_quantities(find_family(family), body.get("model"), body), prices)
