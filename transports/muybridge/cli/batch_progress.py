"""The progress of a batch: bars on a terminal, lines elsewhere, JSON on request."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from muybridge.batch.events import BatchEvent, What
from muybridge.batch.journal_entries import Entry
from muybridge.cli.terminal import document, is_live, message_console, say
from muybridge_protocol.records.convert import attributes, wire_names
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONGEST_LABEL = 24
_LONGEST_LINE = 4000
_QUIET = frozenset({What.SENDING, What.COMPLETED})
"""Events that bars show, and that need no line."""


def _say(event: BatchEvent) -> None:
    """Report *event* as a plain line on stderr."""
    if event.what not in _QUIET and not is_terminal(event.detail):
        say(line(event))


class _Bars:
    """A bar for the batch and one for each item in progress. Problems are printed as lines."""

    def __init__(self) -> None:
        from rich.progress import (  # noqa: PLC0415  only a terminal needs it
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self.progress: Progress = Progress(
            # No markup: a name is the user's, and a status the service's.
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=message_console(),
            transient=True,
            # Data goes to stdout, and nothing of it through the bars.
            redirect_stdout=False,
        )
        self._whole: TaskID = self.progress.add_task("batch", total=None)
        self._rows: dict[int, TaskID] = {}

    def event(self, event: BatchEvent) -> None:
        """Show *event*."""
        self.progress.update(self._whole, completed=event.finished, total=event.total)
        match event.what:
            case What.DOWNLOADED:
                self._drop(event.item)
            case What.FAILED | What.REFUSED | What.AMBIGUOUS | What.POSTPONED:
                self._drop(event.item)
                say(line(event))
            case _:
                self._show(event)

    def _show(self, event: BatchEvent) -> None:
        label = readable(event.name or f"item {event.item}", _LONGEST_LABEL)
        text = f"  {label}: {_STEPS.get(event.what, readable(event.detail, 60))}"
        row = self._rows.get(event.item)
        if row is None:
            self._rows[event.item] = self.progress.add_task(text, total=_LAST_STEP)
        else:
            step = _STEP_NUMBERS.get(event.what)
            self.progress.update(row, description=text, completed=step)

    def _drop(self, item: int) -> None:
        row = self._rows.pop(item, None)
        if row is not None:
            self.progress.remove_task(row)


_STEPS = {
    What.SENDING: "sending",
    What.SUBMITTED: "accepted",
    What.COMPLETED: "downloading",
}
_STEP_NUMBERS = {What.SENDING: 0, What.SUBMITTED: 1, What.STATUS: 2, What.COMPLETED: 3}
_LAST_STEP = 4


@contextmanager
def reporting(*, json: bool) -> Generator[Callable[[BatchEvent], None], None, None]:
    """Yield the function that reports each event: as JSON, as bars or as lines."""
    if json:
        yield lambda event: document(event_record(event))
    elif is_live():
        bars = _Bars()
        with bars.progress:
            yield bars.event
    else:
        yield _say


def line(event: BatchEvent) -> str:
    """Return *event* as a line for people."""
    label = f"item {event.item} ({event.name})" if event.name else f"item {event.item}"
    said = None if event.what is What.RETRY else event.what  # the detail is a sentence
    parts = [said, event.task if event.what is What.SUBMITTED else None, event.detail]
    return readable(f"{label}: {' '.join(filter(None, parts))}", _LONGEST_LINE)


def event_record(event: BatchEvent) -> dict[str, Any]:
    """Return *event* as programs read it."""
    record = attributes(event, *wire_names(BatchEvent))
    path = None if event.path is None else str(event.path)
    return _known({"event": record.pop("what"), **record, "path": path})


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return an item of the journal as programs read it."""
    return _known(
        {
            **attributes(entry, "number", "name", "family", "state"),
            "task": entry.task_id,
            "candidate_id": entry.candidate,
            **attributes(entry, "reason", "path", "size", "sha256"),
        }
    )


def _known(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value not in (None, "")}
