"""`run` and `run_async`: a batch from its beginning, or from where it stopped, to its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import attrs

from muybridge.base_client import BaseClient
from muybridge.batch.events import BatchEvent, Report
from muybridge.batch.items.folder import PATIENCE
from muybridge.batch.items.reading import Source
from muybridge.batch.results.places.names import check_place
from muybridge.batch.results.reports import closing_report
from muybridge.batch.results.sidecars import catch_up
from muybridge.batch.running.opening import CONCURRENCY, books_of, check_client, opened
from muybridge.batch.running.run_state import Settings
from muybridge.batch.running.scheduler import Scheduler
from muybridge.client import Client
from muybridge.configuration import check_spending
from muybridge.drivers import blocking
from muybridge.drivers.fleet_team import Stopped
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.purchases import Stage

if TYPE_CHECKING:
    from muybridge.async_client import AsyncClient
    from muybridge.purchases import Store
    from muybridge.purchases.booking import Books


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
    limit: int | None = None,
    sidecar: bool = False,
    dedupe: bool = False,
    rate: float | None = None,
    store: Store | str | os.PathLike[str] | None = None,
) -> Report:
    """Create every task of a batch, wait for each, and save the results.

    A store records the progress. If a batch was stopped for any reason, the same call
    resumes it. A create that may have been accepted is never resent. Several processes may run the
    same batch at the same time.

    Ctrl-C stops the run: it waits for the responses to creates in flight, ends everything else, and
    is raised again. A second one is raised at once, and leaves those creates ambiguous. Other
    signals, such as SIGTERM, are handled by your program.

    Args:
        client: The client to use.
        source: A file (`.jsonl`, `.json` or `.csv`), requests, or objects with the keys of a
            file's items; or None to resume the batch in *out*.
        out: The folder of the batch: for the results, the contact sheet, and the store if it has
            one of its own.
        concurrency: Maximum number of tasks in progress at once, each from its create until its
            result is saved.
        timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event, by one thread at a time.
        local: Whether the service is an embedded one, which does not know earlier runs. Unfinished
            items are then created again, which costs nothing.
        patience: Seconds to wait for another process that is writing to a store of its own.
        limit: Maximum number of new items that this run sends, or None for all. The next run sends
            more.
        sidecar: Whether to write a JSON file next to each result that says where it comes from,
            including results of earlier runs.
        dedupe: Whether identical requests share one task, also with requests outside this batch
            that the client's store has. Each item has its own file.
        rate: Maximum requests (creates and result queries) per second of all processes that run
            this batch; infinity for no limit, or None to leave it unchanged. Downloads are not
            counted.
        store: The store of everything that the batch pays for, or its place: a file, or
            `postgresql://USER@HOST/DATABASE`. If it is None, the batch is in the client's store, or
            in that of `MUYBRIDGE_STORE`; without these, in one of its own in *out*.

    Raises:
        InvalidInput: Some items are not valid. Nothing was sent.
        StoreUnusable: The store cannot be used, or the batch's tasks are elsewhere.
            Nothing is sent that the store could not record.
        LocalError: The batch is in another store.
        ValueError: The concurrency is below 1, the limit below 0, the rate not above 0, *local* is
            set for a remote service, or *dedupe* for an embedded one.
        OSError: The file cannot be read.
    """
    settings = Settings(
        concurrency=concurrency,
        timeout=timeout,
        download_timeout=download_timeout,
        on_event=on_event,
        local=local,
        patience=patience,
        limit=limit,
        sidecar=sidecar,
        dedupe=dedupe,
        rate=rate,
    )
    check_client(client, Client, "await batch.run_async(client, ...)")
    return blocking.run(_run, client, source, out, settings, store)


async def run_async(
    client: AsyncClient,
    source: Source | None,
    out: str | os.PathLike[str],
    *,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  of each task, not of this call
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    local: bool = False,
    patience: float = PATIENCE,
    limit: int | None = None,
    sidecar: bool = False,
    dedupe: bool = False,
    rate: float | None = None,
    store: Store | str | os.PathLike[str] | None = None,
) -> Report:
    """Do under asyncio or trio what `run` does, with the same arguments and errors.

    If it is cancelled, it first waits for the responses to creates in flight and records them; the
    same call resumes. A response is on disk before anything else happens. However often Ctrl-C is
    pressed, the run waits for these responses: trio delivers an interruption to its main task only,
    and `asyncio.run` turns it into a cancellation.

    Args:
        client: The client to use.
        source: A file, requests, or objects with the keys of a file's items; or None to resume.
        out: The folder of the batch.
        concurrency: Maximum number of tasks in progress at once, each from its create until its
            result is saved.
        timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event.
        local: Whether the service is an embedded one, which does not know earlier runs.
        patience: Seconds to wait for another process that is writing to a store of its own.
        limit: Maximum number of new items that this run sends, or None for all. The next run sends
            more.
        sidecar: Whether to write a JSON file next to each result that says where it comes from,
            including results of earlier runs.
        dedupe: Whether identical requests share one task, also with requests outside this batch
            that the client's store has. Each item has its own file.
        rate: Maximum requests (creates and result queries) per second of all processes that run
            this batch; infinity for no limit, or None to leave it unchanged. Downloads are not
            counted.
        store: The store of everything that the batch pays for, or its place: a file, or
            `postgresql://USER@HOST/DATABASE`. If it is None, the batch is in the client's store, or
            in that of `MUYBRIDGE_STORE`; without these, in one of its own in *out*.

    Raises:
        InvalidInput: Some items are not valid. Nothing was sent.
        StoreUnusable: The store cannot be used, or the batch's tasks are elsewhere.
        LocalError: The batch is in another store.
        ValueError: The concurrency is below 1, the limit below 0, the rate not above 0, *local* is
            set for a remote service, or *dedupe* for an embedded one.
        OSError: The file cannot be read.
    """
    settings = Settings(
        concurrency=concurrency,
        timeout=timeout,
        download_timeout=download_timeout,
        on_event=on_event,
        local=local,
        patience=patience,
        limit=limit,
        sidecar=sidecar,
        dedupe=dedupe,
        rate=rate,
    )
    check_client(client, BaseClient, "batch.run(client, ...)")
    return await _run(client, source, out, settings, store)


run_trio = run_async


async def _run(
    client: Client | BaseClient,
    source: Source | None,
    out: str | os.PathLike[str],
    settings: Settings,
    store: Store | str | os.PathLike[str] | None,
) -> Report:
    check_place(out)
    check_spending(None, store)
    parts = client.parts
    driver = parts.driver
    books = driver.books
    if settings.dedupe and store is None:
        books = parts.named_books()
    driver.runtime.now()  # raises where the client cannot be used, before there is a batch
    given = None if settings.local else _own_store(store, books)
    with given or nullcontext():
        with opened(client.service, source, out, settings, given) as run:
            own = books_of(run.batch, driver.books, driver.credentials, local=settings.local)
            driver = attrs.evolve(driver, books=own)
            if settings.sidecar:
                with suppress(Stopped):  # from a hook, whose error is raised at the end
                    await catch_up(run, driver.runtime)
            await Scheduler(parts.calls, driver, run).work()
        await driver.runtime.checkpoint()
        # A place does not say who uses it, and how, so the report is read from the same store.
        report = closing_report(out, store=given)
    queued = report.counts.get(Stage.QUEUED, 0)
    stopped = run.stopped or run.store_failed
    if not stopped and run.at_limit and queued:
        stopped = f"the limit of {settings.limit} is reached; new items left: {queued}"
    return attrs.evolve(report, stopped=stopped, without_sidecar=run.without_sidecar)


def _own_store(store: Store | str | os.PathLike[str] | None, books: Books | None) -> Store | None:
    """Open the store that a run is given, if any, as an owner that lives as long as the run.

    What becomes of the run does not concern whoever lends the store.
    """
    from muybridge.purchases import Store, open_store

    if store is None:
        return None if books is None else books.store.another()
    return store.another() if isinstance(store, Store) else open_store(store)
