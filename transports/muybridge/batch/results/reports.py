"""How far a batch is: counts, and the contact sheet for whoever wants to see more."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from muybridge.batch.events import Report
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entries import Entries
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.folder import FOLDER, find_batch
from muybridge.batch.results.missing_files import as_found, counts_as_found, lacks_file
from muybridge.batch.results.places.names import check_place
from muybridge.batch.results.sheet import contact_sheet
from muybridge.batch.running.side_files import processes_at_work
from muybridge.purchases.errors import StoreUnusable
from muybridge.signals import ignoring_errors
from muybridge_protocol.purchases import Stage

if TYPE_CHECKING:
    from muybridge.purchases.store import Store


def status(out: str | os.PathLike[str], *, store: Store | None = None) -> Report:
    """Return the progress of the batch in *out*.

    Args:
        out: The folder of the batch.
        store: The store with the batch, or None for the one that the folder names.

    Raises:
        StoreUnusable: The store cannot be used, or there is no batch.
    """
    check_place(out)
    folder = Path(out)
    with _opened(folder, store) as batch:
        counts, missing = counts_as_found(batch, folder)
        sheet: Path | None = None
        with ignoring_errors(OSError):
            sheet = contact_sheet.find_sheet(folder)
        return _report(batch, folder, store, counts, missing, sheet)


def write_sheet(out: str | os.PathLike[str], *, store: Store | None = None) -> Path:
    """Write the contact sheet of the batch in *out*, and return where it is.

    Pages on which nothing has changed are left as they are.

    Args:
        out: The folder of the batch.
        store: The store with the batch, or None for the one that the folder names.

    Raises:
        StoreUnusable: The store cannot be used, or there is no batch.
        OSError: The sheet cannot be written. An earlier one is still there.
    """
    check_place(out)
    folder = Path(out)
    with _opened(folder, store) as batch:
        made_from = contact_sheet.sections(batch, folder)
        return contact_sheet.write_sheet(folder, batch, made_from)


def closing_report(out: str | os.PathLike[str], *, store: Store | None = None) -> Report:
    """Return the progress of the batch in *out* at the end of a run, and write its contact sheet.

    The items and their files are looked at once for both. The results are safe without the sheet.

    Args:
        out: The folder of the batch.
        store: The store with the batch, or None for the one that the folder names.

    Raises:
        StoreUnusable: The store cannot be used.
    """
    folder = Path(out)
    with _opened(folder, store) as batch:
        made_from = contact_sheet.sections(batch, folder)
        sheet: Path | None = None
        with ignoring_errors(OSError):
            sheet = contact_sheet.write_sheet(folder, batch, made_from)
        totals = sum((section.counts for section in made_from), Counter[Stage]())
        counts = {stage: totals[stage] for stage in Stage if totals[stage]}
        missing = sum(section.missing for section in made_from)
        return _report(batch, folder, store, counts, missing, sheet)


def reasons(report: Report) -> Iterator[Entry]:
    """Yield the items of *report* that have a reason for their stage, unlike most of them."""
    folder, entries = report.folder, report.entries
    opened = entries.open_batch() if isinstance(entries, Entries) else find_batch(folder)
    with opened as batch:
        # The store has no reason yet for a file that has just gone.
        downloaded = batch.outlines(Stage.DOWNLOADED) if report.missing else ()
        lost = (batch.entry(one.number) for one in downloaded if lacks_file(one, folder))
        for entry in merge(lost, batch.reasons(), key=attrgetter("number")):
            yield as_found(entry, folder)


@contextmanager
def _opened(folder: Path, store: Store | None) -> Generator[Batch]:
    """Open the batch in *folder*, for a report of it. A store that is given stays open."""
    batch = find_batch(folder, store)
    try:
        # A sender that has died is noticed only if the store can be written: a full disk hides no
        # task that is paid for.
        with suppress(StoreUnusable):
            batch.store.sweep()
        yield batch
    finally:
        if store is None:
            batch.store.close()


def _report(
    batch: Batch,
    folder: Path,
    store: Store | None,
    counts: dict[Stage, int],
    missing: int,
    sheet: Path | None,
) -> Report:
    others: list[str] = []
    with suppress(StoreUnusable):  # what the store says is true without it
        others = processes_at_work(folder / FOLDER)
    return Report(
        folder=folder,
        name=batch.name,
        entries=Entries(
            partial(find_batch, folder, store),
            sum(counts.values()),
            partial(as_found, folder=folder),
        ),
        counts=counts,
        strays=tuple(batch.strays()),
        sheet=sheet,
        missing=missing,
        at_work=tuple(others),
    )
