"""`run`: a batch from its beginning, or from where it stopped, to its end."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import attrs

from muybridge.batch.events import BatchEvent, Report
from muybridge.batch.items import Source
from muybridge.batch.journal import PATIENCE
from muybridge.batch.opening import CONCURRENCY, HOW_TO_GO_ON, Settings, opened, status
from muybridge.batch.run_state import Run
from muybridge.batch.worker import Worker
from muybridge.client import Client
from muybridge.interrupts import tell, waiting_for
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT


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

    Ctrl-C stops the run: it waits for the responses to paid requests under way, ends everything
    else, and is raised again. A second one is raised at once, and leaves those requests ambiguous.
    For other signals, such as SIGTERM, the handlers of the program decide.

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
    settings = Settings(
        concurrency=concurrency,
        timeout=timeout,
        download_timeout=download_timeout,
        on_event=on_event,
        local=local,
        patience=patience,
    )
    with opened(client.service, source, out, settings) as shared:
        _work(client, shared)
    return attrs.evolve(status(out), stopped=shared.stopped)


def _work(client: Client, shared: Run) -> None:
    """Let workers do what is to be done; Ctrl-C stops them, but for paid requests under way."""
    workers = [Worker(client, shared) for _ in range(shared.workers)]
    # Daemons, so that a second Ctrl-C ends the program; the journal then says what is not known.
    # Each in a copy of the caller's context, where listeners find such as a trace's current span.
    threads = [
        threading.Thread(target=copy_context().run, args=(worker.work,), daemon=True)
        for worker in workers
    ]
    try:
        for thread in threads:
            thread.start()
        _await(workers)
    except BaseException as error:
        shared.stopping.set()
        # One whose thread has no number yet finds the run stopped before it does anything.
        started = [worker for worker, thread in zip(workers, threads, strict=True) if thread.ident]
        for worker in started:
            worker.break_off()
        paid = sum(worker.pays for worker in started)
        if paid and isinstance(error, KeyboardInterrupt):
            tell(waiting_for(paid))
        _await(started, grace=_GRACE)
        error.add_note(HOW_TO_GO_ON)
        raise


_GRACE = 1.0
"""Seconds that what costs nothing has to end when a run is stopped: it resumes in the next run."""
_TURN = 0.1
"""Seconds of one wait: on Windows Ctrl-C does not interrupt a longer one."""


def _await(workers: list[Worker], *, grace: float = math.inf) -> None:
    """Wait until all *workers* have ended; those that pay for nothing have *grace* seconds."""
    end = time.monotonic() + grace
    for worker in workers:
        while not worker.wait_for_end(_TURN) and (worker.pays or time.monotonic() < end):
            pass
