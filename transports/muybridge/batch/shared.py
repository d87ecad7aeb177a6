"""Batches in a journal that several machines share: begin one, and look at it from anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import attrs

from muybridge.batch.entries import Entries
from muybridge.batch.events import SETTLED
from muybridge.batch.items import BatchProblem, InvalidBatch, Source, checked_items
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.limits.rate import check_rate
from muybridge.batch.opening import check_same_items, check_service
from muybridge.batch.port import SharedJournal, Stray
from muybridge.batch.results.places.names import check_place, place_for_all
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.configuration import check_prices, check_spending
from muybridge_protocol.arguments import check_type
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.purchases import Budget, BudgetUse


@attrs.frozen
class SharedBatch:
    """A batch in a database.

    Args:
        url: The database: `postgresql://USER@HOST/DATABASE`. Keep the password in a `.pgpass` file,
            or in `PGPASSWORD`.
        name: The batch's name, of 1 to 200 printable characters.
    """

    url: str = attrs.field(repr=False)
    name: str

    def __attrs_post_init__(self) -> None:
        check_type("url", self.url, str, "a string, such as 'postgresql://HOST/DATABASE'")

    def open(self, *, lease: float | None = None) -> SharedJournal:
        """Open its journal.

        Args:
            lease: Seconds without a sign of life after which another worker takes over, or None for
                the default.

        Raises:
            JournalMissing: There is no such batch.
            JournalUnusable: The database cannot be used.
        """
        from muybridge.batch.postgres import LEASE, PostgresJournal

        return PostgresJournal(self.url, self.name, lease=LEASE if lease is None else lease)


LONGEST_NAME: Final = 200
"""Longest name of a batch in a database, in characters."""


def is_batch_name(name: object) -> bool:
    """Whether *name* may be that of a batch in a database: it is shown and typed in one line."""
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()


Place = str | os.PathLike[str] | SharedBatch
"""The folder of a batch, or a batch in a database."""


@attrs.frozen(kw_only=True)
class SharedReport:
    """The progress of a batch in a database.

    Args:
        batch: The batch.
        counts: How many items are in each state, without empty states.
        entries: Its items, read from the journal on access.
        strays: Responses that arrived too late to be recorded for their items, except those whose
            tasks the items have been given since. If one has a task id, that task was paid for.
        stopped: Why a worker stopped early, or "".
        over_budget: Whether it stopped because a budget is used up: the batch's own, or one of the
            client's.
        budget: How far the batch's budget is used up, or None if it has none.
        out: Where its results go, or None if each worker has its own place.
    """

    batch: SharedBatch
    counts: Mapping[State, int]
    entries: Sequence[Entry] = attrs.field(repr=False)
    strays: tuple[Stray, ...] = ()
    stopped: str = ""
    over_budget: bool = False
    budget: BudgetUse | None = None
    out: str | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, neither for a worker nor for a person."""
        return SETTLED.issuperset(self.counts)

    @property
    def ambiguous(self) -> tuple[Entry, ...]:
        """The items that need a person's decision."""
        if State.AMBIGUOUS not in self.counts:
            return ()
        with self.batch.open() as journal:
            return tuple(journal.entries(State.AMBIGUOUS))


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
            limit, or None to leave it unchanged. All batches of a database at the same service
            share this limit.
        budget: What all creates of the batch may consume together, whichever machines send them, or
            None to leave it unchanged. A batch that was begun without a budget cannot get one
            later.
        prices: What they cost, if the budget limits that. They also apply to items that were added
            without them and are not sent yet.
        out: Where workers store the results: `s3://BUCKET/PREFIX`, or a folder that has the same
            absolute path on every machine; or None to leave it unchanged. Without one, each worker
            needs its own. Running workers keep the old place.

    Raises:
        InvalidBatch: Some items are not valid, or differ from those that the batch has, a budget
            cannot be kept, or the name does not have 1 to 200 printable characters.
        JournalUnusable: The database cannot be used; `WrongService` if its tasks are elsewhere.
        ValueError: The rate is not above 0, the budget is one for a day or a month, or the place
            for results (`WrongPlace`) is not the same for every worker.
        OSError: The file cannot be read.
    """
    from muybridge.batch.limits.spending import check_budget
    from muybridge.batch.postgres import PostgresJournal

    check_batch(batch)
    check_prices(prices)
    check_spending(budget, None)
    check_type("rate", rate, (int, float, NoneType), "a number")
    check_type("service", service, Service, "the service of a client", "client.service")
    if out is not None:
        check_place(out)
    if not is_batch_name(batch.name):
        said = f"it must have 1 to {LONGEST_NAME} characters, all of them printable"
        raise InvalidBatch([BatchProblem("the name", "", said)])
    check_rate(rate)
    check_budget(budget)
    place = None if out is None else place_for_all(out)
    named = service.require_base_url()
    with ExitStack() as stack:
        items = stack.enter_context(checked_items(source, service.gave_out))
        given: dict[str, Any] = {"budget": budget, "prices": prices, "out": place, "rate": rate}
        journal = stack.enter_context(
            PostgresJournal.create(batch.url, batch.name, named, items, **given)
        )
        check_service(journal, named)
        if not journal.is_new:
            # All of it or nothing. As in a worker's step, items are locked before the counts that
            # adding some changes. What workers wait for is locked last.
            with journal.transaction():
                known = check_same_items(journal, items)
                if budget is not None or prices is not None:
                    journal.complete_needs(budget)
                if len(items) > known:
                    journal.add(islice(items, known, None), after=known, budget=budget)
                if place is not None:
                    journal.store_in(place)
                if budget is not None:
                    journal.limit_budget(budget)
                if rate is not None:
                    journal.limit_rate(rate)
        return report_of(batch, journal)


def check_batch(batch: object) -> None:
    """Check that *batch* is a batch in a database.

    Raises:
        TypeError: It is something else.
    """
    line = "SharedBatch('postgresql://HOST/DATABASE', name)"
    check_type("batch", batch, SharedBatch, "a SharedBatch", line)


def shared_status(batch: SharedBatch) -> SharedReport:
    """Return the progress of *batch*.

    Raises:
        JournalUnusable: The database cannot be used, or there is no such batch.
    """
    check_batch(batch)
    with batch.open() as journal:
        return report_of(batch, journal)


def report_of(batch: SharedBatch, journal: SharedJournal) -> SharedReport:
    """Return the progress of *batch* as *journal* has it."""
    counts = journal.counts()
    entries = Entries(partial(batch.open), sum(counts.values()))
    return SharedReport(
        batch=batch,
        counts=counts,
        entries=entries,
        strays=tuple(stray for stray in journal.strays() if not _is_adopted(journal, stray)),
        budget=journal.budget_use(),
        out=journal.out,
    )


def _is_adopted(journal: SharedJournal, stray: Stray) -> bool:
    """Whether the item has the task of *stray* by now."""
    return stray.task_id is not None and stray.task_id == journal.entry(stray.number).task_id


def open_journal(place: Place) -> SqliteJournal | SharedJournal:
    """Open the journal of a batch, wherever it is."""
    if isinstance(place, SharedBatch):
        return place.open()
    check_type("out", place, (str, os.PathLike), "the folder of a batch, or a SharedBatch")
    return SqliteJournal(Path(place))
