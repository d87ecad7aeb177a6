"""How the commands for batches end: exit codes, reasons, and what a database says about a batch."""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

import click

from muybridge.batch import SharedReport
from muybridge.batch.items.entry import Entry
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.batch.shared import Place
from muybridge.cli.batch_places import words_of
from muybridge.cli.batch_preview import budget_records, say_spent
from muybridge.cli.batch_progress import entry_record
from muybridge.cli.errors import interrupted_code
from muybridge.cli.exit_codes import (
    AMBIGUOUS,
    DONE,
    FAILED,
    NOT_SAVED,
    NOT_SENT,
    SAFE,
    ExitCode,
)
from muybridge.cli.invocation import Invocation
from muybridge.cli.purchase_records import purchase_record, task_of
from muybridge.cli.terminal import answer, document, long_document, say
from muybridge.purchases import Purchase, StoreUnusable
from muybridge_protocol.purchases import Stage
from muybridge_protocol.service import is_identifier, shown_id

ENDINGS = (
    (
        AMBIGUOUS,
        (Stage.AMBIGUOUS,),
        "some requests may have been accepted, and you decide (`muybridge decide`)",
    ),
    (
        NOT_SAVED,
        (Stage.COMPLETED,),
        "some results are not downloaded yet, or the store cannot be used",
    ),
    (
        SAFE,
        (Stage.QUEUED, Stage.CLAIMED, Stage.ARMED, Stage.JOINED, Stage.SUBMITTED),
        "some items are not finished",
    ),
    (NOT_SENT, (Stage.REFUSED,), "some were refused"),
    (FAILED, (Stage.FAILED,), "some tasks failed, or `--skip-invalid` skipped items"),
    (DONE, (), "all are done"),
)
"""The exit code of a batch with an item in one of the states, and its meaning.

The first row that fits counts: items that need a decision come first, then those that another run
finishes, then the rest.
"""


def exit_code_for(counts: Mapping[Stage, int]) -> ExitCode:
    """Return the exit code for a batch, given how many items are in each state."""
    return next((code for code, states, _ in ENDINGS if any(map(counts.get, states))), DONE)


@contextmanager
def store_errors(context: click.Context, invocation: Invocation) -> Generator[None, None, None]:
    """Report an unusable store or place as a fault of the disk, not as the end of a task."""
    try:
        yield
    except (StoreUnusable, PlaceUnusable) as error:
        for line in (f"error: {error}", *getattr(error, "__notes__", ())):
            say(line)
        lacks = error.lacks if isinstance(error, StoreUnusable) else ""
        if not lacks:
            invocation.say_next_command()
        if invocation.presentation.json:
            record = {"type": type(error).__name__, "message": str(error), "exit_code": NOT_SAVED}
            record |= {"lacks": lacks, "away": error.away}
            document({"ok": False, "error": record})
        context.exit(NOT_SAVED)


def say_reasons(entries: Iterable[Entry], *, stopped: str = "") -> None:
    """Say why items are in their states; why items are queued, once for each reason.

    Args:
        entries: The items.
        stopped: Why the run has stopped, which is said elsewhere.
    """
    queued: dict[str, list[str]] = {}
    for entry in entries:
        if entry.reason is None or entry.state is Stage.DOWNLOADED:
            continue
        if entry.state is Stage.QUEUED:
            if entry.reason != stopped:
                queued.setdefault(entry.reason, []).append(entry.label)
        else:
            say(f"{entry.label} is {entry.state}: {entry.reason}{_named(entry)}")
    for reason, (first, *others) in queued.items():
        are = f" and {len(others)} more are" if others else " is"
        say(f"{first}{are} {Stage.QUEUED}: {reason}")


def counted(counts: Mapping[Stage, int] | Mapping[str, int]) -> str:
    """Return how many items are in each state, in words."""
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def summary_record(
    code: int, counts: Mapping[Stage, int] | Mapping[str, int], entries: Iterable[Entry]
) -> dict[str, object]:
    """Return what a batch's last JSON object has, wherever it is."""
    return {
        "event": "summary",
        "ok": not code,
        "exit_code": code,
        "counts": dict(counts),
        "items": map(entry_record, entries),
    }


def say_how_to_decide(place: Place) -> None:
    """Say how a person decides about ambiguous items of the batch at *place*."""
    words = shlex.join(["muybridge", "decide", *words_of(place)])
    say(
        f"check your account, then decide: {words} ITEM --adopt ID | "
        "--abandon | --release --not-charged | --resubmit --i-may-pay-twice"
    )


def show_shared(
    context: click.Context,
    invocation: Invocation,
    report: SharedReport,
    *,
    interrupted: KeyboardInterrupt | None = None,
) -> None:
    """Report the state of a batch in a database, and exit with the code for it."""
    state = exit_code_for(report.counts)
    if state == SAFE and report.over_budget:
        state = NOT_SENT  # another worker could not continue, either
    code = state if interrupted is None else interrupted_code(interrupted, state)
    ambiguous = report.ambiguous
    if invocation.presentation.json:
        strays = [{"number": stray.number, **purchase_record(stray)} for stray in report.strays]
        use = report.budget
        more: dict[str, object] = {} if use is None else {"budgets": list(budget_records(use))}
        if report.out is not None:
            more["out"] = report.out
        summary = summary_record(code, report.counts, ambiguous)
        long_document({**summary, "strays": strays, **more})
    say_reasons(ambiguous)
    if ambiguous:
        say_how_to_decide(report.batch)
    say_strays(report.strays)
    if report.budget is not None:
        say_spent(report.budget)
    if report.out is not None:
        say(f"results go to {report.out}")
    if report.stopped:
        say(f"stopped: {report.stopped}")
    if not invocation.presentation.json:
        answer(counted(report.counts))
    context.exit(code)


def say_strays(strays: Iterable[Purchase]) -> None:
    """Report tasks that no item has, and what to do about them."""
    for stray in strays:
        say(
            f"item {stray.number}: a response arrived after you had decided about the item. It "
            f"names task {task_of(stray)}, which you have probably paid for; to see it: muybridge "
            f"get {shlex.quote(task_of(stray))}"
        )


def _named(entry: Entry) -> str:
    """Return a note about the id that the response to an ambiguous item names, or ""."""
    named = entry.possible_id if entry.state is Stage.AMBIGUOUS else None
    if named is None or not is_identifier(named):
        return ""
    return f"; the response names {shown_id(named)}"
