"""`run` and `run_trio`: a batch from its beginning, or from where it stopped, to its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from muybridge.async_client import AsyncClient
from muybridge.batch.events import BatchEvent, Report
from muybridge.batch.items import Source
from muybridge.batch.journal import PATIENCE
from muybridge.batch.opening import CONCURRENCY, Settings, opened, status
from muybridge.batch.scheduler import Scheduler
from muybridge.client import Client
from muybridge.drivers import blocking
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT

if TYPE_CHECKING:
    from muybridge.trio_client import TrioClient


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
    face = client._client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  its coroutines
    return blocking.run(_run, face, source, out, settings)


async def run_trio(
    client: TrioClient,
    source: Source | None,
    out: str | os.PathLike[str],
    *,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  of each task, not of this call
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    local: bool = False,
    patience: float = PATIENCE,
) -> Report:
    """Do under trio what `run` does, with the same arguments and errors.

    Cancelled, it lets the paid requests under way come to their replies, which are in the journal
    then; the same call goes on. The journal is written in this thread, because between a reply and
    its place on the disk there must be no checkpoint: that takes some milliseconds each time.

    Args:
        client: The client to use.
        source: A file, requests, or objects as they stand in a file; or None to go on.
        out: The folder of the batch.
        concurrency: How many tasks there may be at once.
        timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event.
        local: Whether the service is an embedded one, which knows nothing of earlier runs.
        patience: Seconds to wait for another process that is writing to the journal.

    Raises:
        InvalidBatch: Some items are not valid. Nothing was sent.
        JournalUnusable: The journal cannot be used; `WrongService` if its tasks are elsewhere.
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
    return await _run(client, source, out, settings)


async def _run(
    client: AsyncClient, source: Source | None, out: str | os.PathLike[str], settings: Settings
) -> Report:
    calls = client._calls  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  a batch works as
    driver = client._driver  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  the client does
    driver.runtime.now()  # raises where the client cannot be used, before there is a journal
    with opened(client.service, source, out, settings) as shared:
        await Scheduler(calls, driver, shared).work()
    await driver.runtime.checkpoint()
    return attrs.evolve(status(out), stopped=shared.stopped)
