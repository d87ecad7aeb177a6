"""The progress of a batch: bars on a terminal, lines elsewhere, JSON on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.batch.events import BatchEvent, What
from muybridge.batch.items.entry import Entry
from muybridge.cli.terminal import document, is_live, message_console, say
from muybridge_protocol.problems import InputProblem
from muybridge_protocol.records.convert import attributes, wire_names
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONGEST_LABEL = 24
_LONGEST_LINE = 4000
_QUIET = frozenset({What.SENDING, What.COMPLETED})
"""Events that bars show, and that need no line."""
_PROBLEMS = frozenset({What.FAILED, What.REFUSED, What.AMBIGUOUS, What.POSTPONED})
"""Events whose detail is a sentence that says why."""
_AS_BEFORE = "for the same reason"

_SECONDS_BETWEEN_COUNTS = 30.0
"""How often plain lines are followed by one with the counts."""


class Pace:
    """How fast items finish in this run, and when the rest may be finished.

    Args:
        clock: Returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._before = 0

    def counts(self, event: BatchEvent) -> str:
        """Return the counts after *event*, with the rate and the time left once they are known."""
        rate = self._rate(event)
        left = event.total - event.finished - event.ambiguous
        parts = [
            f"{event.failed} failed" if event.failed else "",
            f"{event.ambiguous} ambiguous" if event.ambiguous else "",
            "" if rate is None else f"{_per_time(rate)}",
            "" if rate is None or left <= 0 else f"ETA {_duration(left / rate)}",
        ]
        return ", ".join(filter(None, parts))

    def _rate(self, event: BatchEvent) -> float | None:
        """Return how many items finish per second, or None before two have."""
        now = self._clock()
        if self._began is None:
            self._began, self._before = now, event.finished
        seconds, finished = now - self._began, event.finished - self._before
        return finished / seconds if seconds > 0 and finished > 1 else None


def _per_time(rate: float) -> str:
    """Return *rate* per second, minute or hour, whichever gives a number that can be read."""
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * seconds >= 1 or unit == "h":
            return f"{rate * seconds:.3g}/{unit}"
    raise AssertionError


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Problems:
    """Events as lines. A reason that postpones one item after another is given once."""

    def __init__(self) -> None:
        self._postponed = ""

    def line(self, event: BatchEvent) -> str:
        """Return *event* as a line."""
        if event.what is What.POSTPONED:
            if event.detail == self._postponed:
                event = attrs.evolve(event, detail=_AS_BEFORE)
            else:
                self._postponed = event.detail
        return line(event)


class Lines:
    """Reports events as plain lines on stderr, and the counts from time to time.

    Args:
        clock: Returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pace = Pace(clock)
        self._counted: float | None = None
        self._problems = _Problems()

    def event(self, event: BatchEvent) -> None:
        """Say what a person should know of *event*, and from time to time the counts."""
        if event.what not in _QUIET and not is_terminal(event.detail):
            say(self._problems.line(event))
        counts = self._pace.counts(event)
        now = self._clock()
        if self._counted is None:
            self._counted = now
        elif now - self._counted >= _SECONDS_BETWEEN_COUNTS:
            self._counted = now
            done = f"{event.finished} of {event.total} finished"
            say(", ".join(filter(None, [done, counts])))


class _Bars:
    """A bar for the batch and one for each item in progress. Problems are printed as lines."""

    def __init__(self) -> None:
        from rich.progress import (
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
            TextColumn("{task.fields[counts]}", markup=False),
            console=message_console(),
            transient=True,
            # Data goes to stdout, and nothing of it through the bars.
            redirect_stdout=False,
        )
        self._whole: TaskID = self.progress.add_task("batch", total=None, counts="")
        self._pace = Pace()
        self._problems = _Problems()
        self._rows: dict[int, TaskID] = {}

    def event(self, event: BatchEvent) -> None:
        """Move the bars. A problem is printed as a line above them."""
        self.progress.update(
            self._whole,
            completed=event.finished,
            total=event.total,
            counts=self._pace.counts(event),
        )
        match event.what:
            case What.DOWNLOADED:
                self._drop(event.item)
            case what if what in _PROBLEMS:
                self._drop(event.item)
                say(self._problems.line(event))
            case _:
                self._show(event)

    def _show(self, event: BatchEvent) -> None:
        label = readable(event.name or f"item {event.item}", _LONGEST_LABEL)
        text = f"  {label}: {_STEPS.get(event.what, readable(event.detail, 60))}"
        row = self._rows.get(event.item)
        if row is None:
            self._rows[event.item] = self.progress.add_task(text, total=_LAST_STEP, counts="")
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
"""How much a bar is when it is full. An item that has ended loses its bar."""


class Skipped:
    """Reports the problems of items that are skipped, and is true once there are any.

    Args:
        json: Whether programs read it.
    """

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._any = False

    def __bool__(self) -> bool:
        """Return whether an item was skipped."""
        return self._any

    def __call__(self, problem: InputProblem) -> None:
        """Report *problem*."""
        self._any = True
        if self._json:
            document({"event": "skipped", **problem.to_dict()})
        else:
            say(f"skipped: {problem}")


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
        yield Lines().event


def line(event: BatchEvent) -> str:
    """Return *event* as one line for people, without control characters."""
    label = f"item {event.item} ({event.name})" if event.name else f"item {event.item}"
    word = None if event.what is What.RETRY else event.what  # the detail is a sentence
    parts = [word, event.task if event.what is What.SUBMITTED else None, event.detail]
    joint = ": " if event.what in _PROBLEMS and event.detail != _AS_BEFORE else " "
    return readable(f"{label}: {joint.join(filter(None, parts))}", _LONGEST_LINE)


def event_record(event: BatchEvent) -> dict[str, Any]:
    """Return *event* as programs read it."""
    record = attributes(event, *wire_names(BatchEvent))
    path = None if event.path is None else str(event.path)
    return _without_blanks({"event": record.pop("what"), **record, "path": path})


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return an item of a batch as programs read it."""
    return _without_blanks(
        {
            **attributes(entry, "number", "name", "family", "state"),
            "task": entry.task_id,
            "candidate_id": entry.possible_id,
            **attributes(entry, "reason", "path", "size", "sha256"),
        }
    )


def _without_blanks(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value not in (None, "")}
