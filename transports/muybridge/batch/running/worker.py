"""`work` and `work_async`: one of several machines at work on a batch in a store.

A worker takes turns. In a turn it is one incarnation of a worker: it registers under a fresh id,
works on free items until it can do nothing more, and gives back what it has not finished. Between
two turns it keeps nothing but the files of responses whose outcome the store could not take; the
next turn records those first. So whatever ends a turn (a database that is away, a lease that has
run out, a kill) ends no more than that turn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Final

import attrs

from muybridge.base_client import BaseClient
from muybridge.batch.events import BatchEvent
from muybridge.batch.items.batch import LEASE
from muybridge.batch.items.submission import check_service
from muybridge.batch.results.places.names import agreed_place
from muybridge.batch.results.places.opening import open_store, spool_of
from muybridge.batch.results.places.port import PlaceUnusable, Store
from muybridge.batch.running.lease import Lease
from muybridge.batch.running.opening import at_work, books_of, check_client
from muybridge.batch.running.run_state import Run, Settings
from muybridge.batch.running.scheduler import Scheduler
from muybridge.batch.running.side_files import Runner
from muybridge.batch.shared import (
    SharedBatch,
    SharedReport,
    check_batch,
    report_of,
    shared_status,
)
from muybridge.client import Client
from muybridge.drivers import blocking
from muybridge.drivers.calls import check_wait_of_create, is_time
from muybridge.drivers.runtime import FOREVER
from muybridge.files.durable import make_folders
from muybridge.purchases.errors import Lost, StoreUnusable
from muybridge_protocol.arguments import check_type
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.purchases import Stage

if TYPE_CHECKING:
    from muybridge.async_client import AsyncClient

CREATES: Final = 4
"""Most creates under way at once: a crash leaves that many ambiguous items at most."""
CONCURRENCY: Final = 32
"""Most tasks in progress at once."""
PATIENCE: Final = 600.0
"""Seconds to wait for a database that is away."""
_FRUITLESS: Final = 3
"""Turns without any progress after which nobody can do anything more."""
_SHORTEST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 10.0
"""Seconds between two turns: from the first without progress to the last."""
_LOG: Final = logging.getLogger("muybridge.batch")
_UNFINISHED: Final = (
    Stage.QUEUED,
    Stage.CLAIMED,
    Stage.ARMED,
    Stage.SUBMITTED,
    Stage.COMPLETED,
)


def work(
    client: Client,
    batch: SharedBatch,
    out: str | os.PathLike[str] | None = None,
    *,
    creates: int = CREATES,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    patience: float = PATIENCE,
    lease: float | None = None,
    spool: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
) -> SharedReport:
    """Work on *batch*, together with every other worker, until nothing is left to do.

    No two workers work on the same item, and a create that may have been accepted is never resent.
    If a worker dies or is cut off, the others take over its items when its lease expires.

    Ctrl-C stops this worker: it waits for the responses to creates in flight, releases its items,
    and is raised again.

    Args:
        client: The client to use.
        batch: The batch.
        out: Where results go: a folder on this machine, or `s3://BUCKET/PREFIX`; or None for the
            place that the batch was submitted with.
        creates: Maximum number of creates under way at once.
        concurrency: Maximum number of tasks in progress at once.
        timeout: Seconds to wait for a task, or None for no limit. Another turn waits again.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event of this worker, by one thread at a time.
        patience: Seconds to wait for a database or store that was reached before and is now
            unreachable.
        lease: Seconds without a sign of life after which another worker takes over, or None for the
            default. All workers of a batch should use the same value.
        spool: The folder on this machine for unfinished downloads, and for responses while the
            database is unreachable; or None for *out*, or for the user's state folder if *out* is
            in S3.
        seconds: Seconds after which this worker releases its unfinished items and returns, or None
            for no limit. It still waits for the responses to creates in flight.

    Raises:
        StoreUnusable: The store cannot be used, or the batch's tasks are elsewhere. Nothing
            is sent that it could not record.
        PlaceUnusable: Results cannot be stored. If that is found at the start, nothing is sent.
        ValueError: The concurrency, or the number of creates, is below 1, or the lease is not above
            0; or *out* is not a valid place, differs from the batch's, or is missing.
        OSError: The folder cannot be created.
    """
    settings = _settings(
        creates, concurrency, timeout, download_timeout, on_event, seconds, patience=patience
    )
    check_client(client, Client, "await batch.work_async(client, ...)")
    return blocking.run(_work, client, batch, _Where(out, spool), settings, lease)


async def work_async(
    client: AsyncClient,
    batch: SharedBatch,
    out: str | os.PathLike[str] | None = None,
    *,
    creates: int = CREATES,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  of each task, not of this call
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    patience: float = PATIENCE,
    lease: float | None = None,
    spool: str | os.PathLike[str] | None = None,
    seconds: float | None = None,
) -> SharedReport:
    """Do under asyncio or trio what `work` does, with the same arguments and errors.

    Args:
        client: The client to use.
        batch: The batch.
        out: Where results go: a folder on this machine, or `s3://BUCKET/PREFIX`; or None for the
            place that the batch was submitted with.
        creates: Maximum number of creates under way at once.
        concurrency: Maximum number of tasks in progress at once.
        timeout: Seconds to wait for a task, or None for no limit. Another turn waits again.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event of this worker.
        patience: Seconds to wait for a database or store that was reached before and is now
            unreachable.
        lease: Seconds without a sign of life after which another worker takes over, or None for the
            default.
        spool: The folder on this machine for unfinished downloads, and for responses while the
            database is unreachable; or None for the default.
        seconds: Seconds after which this worker releases its unfinished items and returns, or None
            for no limit.

    Raises:
        StoreUnusable: The store cannot be used, or the batch's tasks are elsewhere.
        PlaceUnusable: Results cannot be stored. If that is found at the start, nothing is sent.
        ValueError: The concurrency, or the number of creates, is below 1, or the lease is not above
            0; or *out* is not a valid place, differs from the batch's, or is missing.
        OSError: The folder cannot be created.
    """
    settings = _settings(
        creates, concurrency, timeout, download_timeout, on_event, seconds, patience=patience
    )
    check_client(client, BaseClient, "batch.work(client, ...)")
    return await _work(client, batch, _Where(out, spool), settings, lease)


def _settings(
    creates: int,
    concurrency: int,
    timeout: float | None,
    download_timeout: float,
    on_event: Callable[[BatchEvent], None] | None,
    seconds: float | None,
    *,
    patience: float,
) -> Settings:
    check_wait_of_create(timeout)
    check_type("creates", creates, int, "a whole number")
    settings = Settings(
        concurrency=concurrency,
        timeout=timeout,
        download_timeout=download_timeout,
        on_event=on_event,
        local=False,
        patience=patience,
        creates=creates,
        seconds=seconds,
    )
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1 (got {concurrency})")
    if creates < 1:
        raise ValueError(f"creates must be at least 1 (got {creates})")
    return settings


@attrs.frozen
class _Where:
    """The places that a worker was given; see `work`."""

    out: str | os.PathLike[str] | None
    spool: str | os.PathLike[str] | None

    def open(self, kept: str | None) -> _Places:
        """Return the places to use, if *kept* is that of the batch."""
        out = agreed_place(self.out, kept)
        spool = spool_of(out, self.spool)
        return _Places(open_store(out, spool), spool)


@attrs.frozen
class _Places:
    """Where results go, and the folder for everything else that this machine keeps."""

    store: Store
    spool: Path


@attrs.frozen(kw_only=True)
class _Turn:
    """How a turn ended.

    Args:
        report: The progress of the batch.
        others: Whether other workers own items.
        lease: Seconds after which one that has fallen silent is declared dead.
        store_failed: Why the store could not take a result, or "".
    """

    report: SharedReport
    others: bool
    lease: float
    store_failed: str

    @property
    def unfinished(self) -> bool:
        """Whether workers can do more."""
        return any(map(self.report.counts.get, _UNFINISHED))


async def _work(
    client: Client | BaseClient,
    batch: SharedBatch,
    where: _Where,
    settings: Settings,
    lease: float | None,
) -> SharedReport:
    check_batch(batch)
    for name, place in (("out", where.out), ("spool", where.spool)):
        use = "a folder" if name == "spool" else "a folder, or s3://BUCKET/PREFIX"
        check_type(name, place, (str, os.PathLike, NoneType), use)
    check_type("lease", lease, (int, float, NoneType), "a number of seconds")
    if lease is not None and not is_time(lease):
        raise ValueError(f"lease must be a positive number of seconds (got {lease!r})")
    runtime = client.parts.driver.runtime
    with batch.open() as found:
        check_service(found, client.service.require_base_url())
        places = where.open(found.place)
    await runtime.in_thread(places.store.check)
    # Turns without progress, when the database was last reached, the counts then, whether the place
    # for results has failed since, and whether the wait for one of them was announced.
    fruitless, reached, before, doubtful, waiting = 0, runtime.now(), None, False, False
    ends_at = FOREVER if settings.seconds is None else runtime.now() + settings.seconds
    while True:
        pause = min(_SHORTEST_PAUSE * 2.0**fruitless, _LONGEST_PAUSE)
        try:
            if doubtful:
                await runtime.in_thread(places.store.check)
            turn = await _turn(
                client, batch, places, settings, lease or LEASE,
                creates=not doubtful, ends_at=ends_at,
            )  # fmt: skip
        except Lost:  # declared dead: the next incarnation continues
            if runtime.now() >= ends_at:
                return shared_status(batch)
        except (StoreUnusable, PlaceUnusable) as error:
            now = runtime.now()
            if not error.away or now - reached > settings.patience or now >= ends_at:
                raise
            if not waiting:
                _LOG.warning("%s This worker waits up to %g seconds.", error, settings.patience)
            waiting, pause = True, 1.0
        else:
            reached, doubtful, waiting = runtime.now(), bool(turn.store_failed), False
            # Creates of other workers may fill a budget only for a moment.
            over_budget = turn.report.over_budget
            stopped = turn.report.stopped and not over_budget
            if stopped or not turn.unfinished or runtime.now() >= ends_at:
                return turn.report
            progress = turn.others or turn.report.counts != before
            if over_budget and not progress:
                return turn.report
            fruitless, before = (0 if progress else fruitless + 1), turn.report.counts
            if fruitless >= _FRUITLESS:
                return attrs.evolve(turn.report, stopped=turn.store_failed)
            if turn.others:  # they finish their items, or their leases run out
                pause = min(turn.lease / 4, _LONGEST_PAUSE)
        await runtime.sleep_until(min(runtime.now() + pause, ends_at))


async def _turn(
    client: Client | BaseClient,
    batch: SharedBatch,
    places: _Places,
    settings: Settings,
    lease: float,
    *,
    creates: bool,
    ends_at: float,
) -> _Turn:
    """Work on free items until this worker can do nothing more.

    Args:
        client: The client.
        batch: The batch.
        places: Where everything goes.
        settings: How it is run.
        lease: Seconds for which a registration holds.
        creates: Whether new tasks are created. After the store has failed, none are until it has
            taken what is completed.
        ends_at: When it gives back what it has not finished, on the client's clock.
    """
    parts = client.parts
    driver = parts.driver
    driver.runtime.now()  # raises where the client cannot be used
    with batch.open() as found:
        check_service(found, client.service.require_base_url())
        place = places.spool / f"batch-{found.number:x}"
        make_folders(place, mode=0o700)
        found.store.register(lease)
        with Runner(place, found.owner) as runner:
            run = Run(
                batch=found,
                store=places.store,
                folder=places.spool,
                place=place,
                runner=runner,
                settings=settings,
                shares_rate=True,
                creates=creates,
                ends_at=ends_at,
                has_sheet=False,
            )
            books = books_of(found, driver.books, driver.credentials, local=False)
            with Lease(run, lease), at_work(run):
                await Scheduler(parts.calls, attrs.evolve(driver, books=books), run).work()
        await driver.runtime.checkpoint()
        report = report_of(batch, found)
        return _Turn(
            report=attrs.evolve(report, stopped=run.stopped, over_budget=run.over_budget),
            others=bool(found.owners()),
            lease=lease,
            store_failed=run.store_failed,
        )
