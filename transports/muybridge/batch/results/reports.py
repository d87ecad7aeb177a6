"""How far a batch is: counts, and the contact sheet for whoever wants to see more."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from heapq import merge
from operator import attrgetter
from pathlib import Path

from muybridge.batch.entries import Entries
from muybridge.batch.events import Report
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import JournalUnusable
from muybridge.batch.results.missing_files import as_found, counts_as_found, lacks_file
from muybridge.batch.results.places.names import check_place
from muybridge.batch.results.sheet import contact_sheet
from muybridge.batch.runner_files import processes_at_work
from muybridge.batch.sqlite.journal import FOLDER, SqliteJournal
from muybridge.signals import ignoring_errors


def status(out: str | os.PathLike[str]) -> Report:
    """Return the progress of the batch in *out*. Nothing is written.

    Args:
        out: The folder of the batch.

    Raises:
        JournalUnusable: The journal cannot be used, or there is none.
    """
    check_place(out)
    folder = Path(out)
    with SqliteJournal(folder, writes=False) as journal:
        counts, missing = counts_as_found(journal, folder)
    sheet: Path | None = None
    with ignoring_errors(OSError):
        sheet = contact_sheet.find_sheet(folder)
    return _report(folder, counts, missing, sheet)


def write_sheet(out: str | os.PathLike[str]) -> Path:
    """Write the contact sheet of the batch in *out*, and return where it is.

    Pages on which nothing has changed are left as they are.

    Args:
        out: The folder of the batch.

    Raises:
        JournalUnusable: The journal cannot be used, or there is none.
        OSError: The sheet cannot be written. An earlier one is still there.
    """
    check_place(out)
    folder = Path(out)
    with SqliteJournal(folder, writes=False) as journal:
        made_from = contact_sheet.sections(journal, folder)
        return contact_sheet.write_sheet(folder, journal, made_from)


def closing_report(out: str | os.PathLike[str]) -> Report:
    """Return the progress of the batch in *out* at the end of a run, and write its contact sheet.

    The items and their files are looked at once for both. The results are safe without the sheet.

    Args:
        out: The folder of the batch.

    Raises:
        JournalUnusable: The journal cannot be used.
    """
    folder = Path(out)
    sheet: Path | None = None
    # It writes nothing to the journal, so that a full disk hides no task that is paid for.
    with SqliteJournal(folder, writes=False) as journal:
        made_from = contact_sheet.sections(journal, folder)
        with ignoring_errors(OSError):
            sheet = contact_sheet.write_sheet(folder, journal, made_from)
    counts = sum((section.counts for section in made_from), Counter[State]())
    missing = sum(section.missing for section in made_from)
    return _report(
        folder, {state: counts[state] for state in State if counts[state]}, missing, sheet
    )


def reasons(report: Report) -> Iterator[Entry]:
    """Yield the items of *report* that have a reason for their state, unlike most of them."""
    folder = report.folder
    with _reading(folder) as journal:
        # The journal has no reason yet for a file that has just gone.
        downloaded = journal.outlines(State.DOWNLOADED) if report.missing else ()
        lost = (journal.entry(one.number) for one in downloaded if lacks_file(one, folder))
        for entry in merge(lost, journal.reasons(), key=attrgetter("number")):
            yield as_found(entry, folder)


def _reading(folder: Path) -> SqliteJournal:
    return SqliteJournal(folder, check=False, writes=False)


def _report(folder: Path, counts: dict[State, int], missing: int, sheet: Path | None) -> Report:
    total = sum(counts.values())
    others: list[str] = []
    with suppress(JournalUnusable):  # what the journal says is true without it
        others = processes_at_work(folder / FOLDER)
    return Report(
        folder=folder,
        entries=Entries(partial(_reading, folder), total, partial(as_found, folder=folder)),
        counts=counts,
        sheet=sheet,
        missing=missing,
        at_work=tuple(others),
    )
