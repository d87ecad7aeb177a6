"""`run`: a batch from its beginning, or from where it stopped, to its end."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from muybridge.batch.events import SETTLED, BatchEvent, Report, What
from muybridge.batch.items import BatchProblem, InvalidBatch, Source, read_items
from muybridge.batch.recovery import recover, release
from muybridge.batch.run_state import Run
from muybridge.batch.runners import Runner
from muybridge.batch.sheet import write_sheet
from muybridge.batch.worker import Worker
from muybridge.journal import PATIENCE, Journal
from muybridge.journal_entries import NewItem, State
from muybridge.journal_errors import JournalMissing, JournalUnusable
from muybridge.sync_client import Client
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.service import Service

CONCURRENCY = 4
"""Tasks at once unless said otherwise."""


LOCAL = "an embedded service (--local)"
"""What the journal calls a service that ends with its run."""


class WrongService(JournalUnusable):
    """The batch's tasks are at another service."""


def run(
    client: Client,
    source: Source | None,
    out: str | os.PathLike[str],
    *,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    local: bool = False,
    patience: float = PATIENCE,
) -> Report:
    """Create every task of a batch, wait for each, and save the results.

    What was done is kept in a journal within *out*: a batch that was stopped, by whatever, is
    gone on with by the same call. No create is sent twice that may have been accepted. Several
    processes may run the same batch at the same time.

    Ctrl-C lets the paid requests under way come to their end, and is raised again then.

    Args:
        client: The client to use.
        source: A file (`.jsonl`, `.json` or `.csv`), requests, or objects as they stand in a
            file; or None to go on with the batch that is in *out*.
        out: The folder of the batch: for the results, the contact sheet and the journal.
        concurrency: How many tasks there may be at once.
        timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event, by one thread at a time.
        local: Whether the service is an embedded one, which knows nothing of earlier runs. What
            they have not finished is then created anew, which costs nothing.
        patience: Seconds to wait for another process that is writing to the journal.

    Raises:
        InvalidBatch: Some items are not valid. Nothing was sent.
        JournalUnusable: The journal cannot be used; `WrongService` if its tasks are elsewhere.
            Nothing is sent that the journal could not be told of.
        ValueError: The concurrency is below 1, or *local* is said of a service elsewhere.
        OSError: The file cannot be read.
    """
    if concurrency < 1:
        raise ValueError(f"{concurrency} tasks at once are too few; use 1 or more")
    folder = Path(out)
    items = None if source is None else read_items(source)
    here = service_of(client)
    if local and not here.is_local:
        raise ValueError(f"{here.base_url} is not on this machine, and so not an embedded service")
    named = LOCAL if local else here.base_url
    with _journal(folder, items, named, patience) as journal, Runner(folder) as runner:
        shared = Run(
            journal=journal,
            runner=runner,
            tell=on_event if on_event is not None else _ignore,
            wait_timeout=timeout,
            download_timeout=download_timeout,
        )
        try:
            for entry in recover(journal, here, but=runner.name):
                if entry.state is State.AMBIGUOUS:
                    shared.event(entry, What.AMBIGUOUS, entry.reason or "")
            if local and not set(journal.owners()):
                journal.start_over()
            _work(client, shared, concurrency)
        finally:
            _leave(journal, here, runner)
        if shared.error is not None:
            raise shared.error
        return _report(journal, stopped=shared.stopped)


def status(out: str | os.PathLike[str]) -> Report:
    """Return how far the batch in *out* has come, and write its contact sheet anew.

    Args:
        out: The folder of the batch.

    Raises:
        JournalUnusable: The journal cannot be used, or there is none.
    """
    with Journal(Path(out)) as journal:
        return _report(journal)


def service_of(client: Client) -> Service:
    """Return where *client*'s service is."""
    service: Service = vars(client)["_calls"].service
    return service


def _journal(folder: Path, items: list[NewItem] | None, service: str, patience: float) -> Journal:
    """Open the journal in *folder*, or begin it; what is new in *items* is added."""
    try:
        journal = Journal(folder, patience=patience)
    except JournalMissing:
        if items is None:
            raise
        journal = Journal.create(folder, service, items, patience=patience)
    try:
        _check_service(journal, service)
        if items is not None:
            _add_new(journal, items)
    except BaseException:
        journal.close()
        raise
    return journal


def _check_service(journal: Journal, service: str) -> None:
    if journal.service != service:
        raise WrongService(
            f"The batch in {journal.folder} was begun at {journal.service}, and this is {service}: "
            "its tasks are not known here. Use that service, or another folder."
        )


def _add_new(journal: Journal, items: list[NewItem]) -> None:
    """Add what *items* has after those of the journal, which have to be the same."""
    known = journal.entries()
    for entry, item in zip(known, items, strict=False):
        same = (entry.name, entry.family) == (item.name, item.family)
        if not same or json.loads(entry.body) != item.body:
            problem = f"differs from the batch in {journal.folder}, which has been begun"
            advice = "use another folder, or leave the file out to go on with that one"
            raise InvalidBatch([BatchProblem(f"item {entry.number}", "", f"{problem}; {advice}")])
    if len(items) < len(known):
        problem = f"{len(known)} items are in {journal.folder}, and {len(items)} in what is given"
        raise InvalidBatch([BatchProblem("the batch", "", problem)])
    if len(items) > len(known):
        journal.add(items[len(known) :])


def _work(client: Client, shared: Run, concurrency: int) -> None:
    """Let workers do what is to be done; Ctrl-C stops them when nothing paid is on its way."""
    states = Counter(entry.state for entry in shared.journal.entries())
    shared.total, shared.finished = states.total(), sum(states[state] for state in SETTLED)
    waiting = sum(states[state] for state in (State.QUEUED, State.SUBMITTED, State.COMPLETED))
    workers = [Worker(client, shared) for _ in range(min(concurrency, waiting))]
    # Daemons, so that a second Ctrl-C ends the program; the journal then says what is not known.
    threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
    started: list[Worker] = []
    try:
        for worker, thread in zip(workers, threads, strict=True):
            thread.start()
            started.append(worker)
        _await(started)
    except BaseException as error:
        shared.stopping.set()
        # An error in here would break paid requests off, whatever is wrong with the screen.
        with suppress(Exception):
            if isinstance(error, KeyboardInterrupt) and sys.stderr is not None:
                print(_WAITING, file=sys.stderr)  # noqa: T201  the one who pressed it must know
        _await(started)
        error.add_note(HOW_TO_GO_ON)
        raise


def _await(workers: list[Worker]) -> None:
    """Wait until all *workers* have ended."""
    for worker in workers:
        # Not `Thread.join`: after Ctrl-C older Pythons take every thread for ended. In short turns,
        # because on Windows Ctrl-C does not end a longer wait.
        while not worker.ended.wait(1.0):
            pass


def _leave(journal: Journal, service: Service, runner: Runner) -> None:
    """Give back what belongs to the runner, if the journal can be told so."""
    if runner.keeps_replies:
        return  # the next run reads them first
    try:
        release(journal, service, runner.name)
    except JournalUnusable:
        runner.leaves_something = True  # the error that led to this is on its way already


def _report(journal: Journal, *, stopped: str = "") -> Report:
    report = Report(folder=journal.folder, entries=tuple(journal.entries()), stopped=stopped)
    sheet: Path | None = None
    with suppress(OSError):  # the results are safe without it
        sheet = write_sheet(report)
    return Report(folder=report.folder, entries=report.entries, sheet=sheet, stopped=stopped)


def _ignore(_: BatchEvent) -> None:
    pass


_WAITING = (
    "muybridge: waiting for the replies to paid requests, so that no id is lost; Ctrl-C again "
    "gives them up"
)
HOW_TO_GO_ON = "No paid request was broken off. The batch is in its journal: run it again to go on."
