"""Open a batch for a run, and release it afterwards."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muybridge.base_client import BaseClient
from muybridge.batch.events import What
from muybridge.batch.items.batch import LEASE, SETTLED, Batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.folder import (
    FOLDER,
    Record,
    begin_in_folder,
    close,
    find_batch,
    find_in_folder,
)
from muybridge.batch.items.reading import CheckedItems, Source, checked_items
from muybridge.batch.items.submission import NewItems, check_same_items, check_service
from muybridge.batch.results.missing_files import follow_files
from muybridge.batch.results.places.folder import FolderStore
from muybridge.batch.running.lease import Lease
from muybridge.batch.running.notes import HOW_TO_GO_ON, KEPT, TO_RESUME
from muybridge.batch.running.recovery import recover
from muybridge.batch.running.run_state import Run, Settings
from muybridge.batch.running.side_files import Runner
from muybridge.client import Client
from muybridge.drivers.calls import check_wait_of_create
from muybridge.drivers.fleet_team import Stopped
from muybridge.drivers.notes import UNDER_WAY
from muybridge.purchases.booking import Books
from muybridge.purchases.errors import Lost, StoreUnusable
from muybridge.purchases.rates import check_rate
from muybridge_protocol.arguments import NO_TAGS, check_type
from muybridge_protocol.errors import LocalError
from muybridge_protocol.purchases import Stage
from muybridge_protocol.purchases.tags import OwnTags
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge.credentials import Credentials
    from muybridge.purchases.store import Store

CONCURRENCY = 4
"""Default number of tasks at once."""


_EXPIRED = (
    f"{{place}} has not heard of this run for {LEASE:g} seconds: it was paused, or the store was "
    "away. Others may continue its items, and it sends nothing more. Run it again to resume."
)
LOCAL = "an embedded service (--local)"
"""What a batch calls a service that exists only during its run."""


@contextmanager
def opened(
    service: Service,
    source: Source | None,
    out: str | os.PathLike[str],
    settings: Settings,
    given: Store | None,
) -> Generator[Run, None, None]:
    """Open the batch in *out*, or begin it, and release unfinished items at the end.

    The items of dead runners are recovered first. A worker's exception is raised at the end.

    Args:
        service: Where its tasks are.
        source: Its items, or None for those that it has.
        out: Its folder.
        settings: How it is run.
        given: The store that it is given, opened for this run alone, or None. Close it, too.
    """
    if settings.concurrency < 1:
        raise ValueError(f"concurrency must be at least 1 (got {settings.concurrency})")
    check_wait_of_create(settings.timeout)
    check_limit(settings.limit)
    check_rate(settings.rate)
    if settings.local and settings.dedupe:
        raise ValueError("an embedded service forgets its tasks, so that none can be joined later")
    if settings.local and not service.is_local:
        raise ValueError(f"{service} is not on this machine, and so not an embedded service")
    folder = Path(out)
    place = folder / FOLDER
    with ExitStack() as stack, ExitStack() as reading:
        items = (
            None
            if source is None
            else reading.enter_context(checked_items(source, service.gave_out))
        )
        batch = _open_batch(service, items, folder, settings, given)
        # The run, as soon as there is one.
        runs: list[Run] = []
        stack.callback(lambda: close(batch, resigns=not any(it.left_behind for it in runs)))
        known = 0 if items is None or batch.is_new else check_same_items(batch, items)
        # Where owners hold locks, everybody sees which of them are dead.
        owner = batch.owner if batch.store.database.leases else ""
        runner = stack.enter_context(Runner(place, owner))
        batch = _settle_service(batch, runner, service, settings)
        if items is not None and not batch.is_new and len(items) > known:
            batch.add(NewItems(items, after=known), after=known)
        if settings.rate is not None:
            batch.limit_rate(settings.rate)
        # The items are in the store by now. Their file may be large, and the run long.
        reading.close()
        lost: list[Entry] = []

        def prepare() -> None:
            lost.extend(follow_files(batch, folder))
            if settings.local and not runner.has_company:
                batch.start_over()

        run = Run(
            batch=batch,
            store=FolderStore(folder),
            folder=folder,
            place=place,
            runner=runner,
            settings=settings,
            shares_rate=batch.has_rate,
        )
        runs.append(run)
        if batch.store.database.leases:
            batch.store.register(LEASE)
            stack.enter_context(Lease(run, LEASE))
        try:
            with at_work(run, prepare):
                with suppress(Stopped):  # from a hook, whose error is raised at the end
                    for entry in lost:
                        run.event(entry, What.RETRY, entry.reason or "")
                yield run
        except Lost as error:
            raise StoreUnusable(_EXPIRED.format(place=batch.store.place)) from error


@contextmanager
def at_work(run: Run, prepare: Callable[[], None] = lambda: None) -> Generator[None, None, None]:
    """Recover the items of dead workers, and release those of *run* at the end.

    A worker's exception is raised at the end.

    Args:
        run: What the workers of a run share.
        prepare: Called after the recovery.
    """
    batch, runner = run.batch, run.runner
    try:
        entries = recover(batch, run.place, but=runner.name)
        prepare()
        counts = batch.counts()
        run.total = sum(counts.values())
        run.finished = sum(counts.get(stage, 0) for stage in SETTLED)
        run.failed = sum(counts.get(stage, 0) for stage in (Stage.FAILED, Stage.REFUSED))
        run.ambiguous = max(0, counts.get(Stage.AMBIGUOUS, 0) - len(entries))
        waiting = sum(counts.get(stage, 0) for stage in _OPEN)
        run.workers = min(run.settings.concurrency, waiting)
        with suppress(Stopped):  # from a hook, whose error is raised below
            for entry in entries:
                run.event(entry, What.AMBIGUOUS, entry.reason or "")
        yield
    finally:
        run.stopping = True  # for workers that a second signal has left behind
        _leave(run)
    if run.error is not None:
        if runner.keeps_responses:
            run.error.add_note(KEPT)
        if isinstance(run.error, KeyboardInterrupt):
            broken_off = UNDER_WAY in getattr(run.error, "__notes__", ())
            run.error.add_note(TO_RESUME if broken_off else HOW_TO_GO_ON)
        raise run.error


_OPEN = (Stage.QUEUED, Stage.JOINED, Stage.SUBMITTED, Stage.COMPLETED)


def books_of(batch: Batch, books: Books | None, credentials: Credentials, *, local: bool) -> Books:
    """Return what the creates of a batch are booked with.

    Args:
        batch: The batch.
        books: The client's, or None.
        credentials: The client's.
        local: Whether the service is an embedded one. What it creates costs nothing, and it gives
            the same ids again and again.
    """
    tags = OwnTags({**(NO_TAGS if books is None else books.tags), **batch.tags})
    keeping = partial(Books, batch.store, credentials=credentials, dedupe=False, tags=tags)
    if local:
        return keeping((), account=f"embedded {secrets.token_hex(8)}")
    return keeping(()) if books is None else keeping(books.budgets, prices=books.prices)


def _open_batch(
    service: Service,
    items: CheckedItems | None,
    folder: Path,
    settings: Settings,
    given: Store | None,
) -> Batch:
    """Open the batch in *folder*, or begin it with *items*, and check its service."""
    named = _name_of(service, settings)
    try:
        batch = find_in_folder(folder, given, patience=settings.patience)
    except LocalError:
        record = Record.read(folder)
        if record is not None and record.store is None:
            with find_batch(folder) as own:
                if own.service == LOCAL:  # the service is the reason, and not the store
                    check_service(own, named)
        raise
    if batch is None:
        if items is None:
            raise StoreUnusable(f"There is no batch in {folder}.", lacks="batch")
        batch = begin_in_folder(
            folder, given, NewItems(items), service=named, patience=settings.patience
        )
    elif Record.read(folder) is None:
        Record(None, batch.number, batch.name).write(folder)
    if not _may_move(batch, named):
        check_service(batch, named)
    return batch


def _name_of(service: Service, settings: Settings) -> str:
    return LOCAL if settings.local else service.require_base_url()


def _may_move(batch: Batch, service: str) -> bool:
    """Whether the batch may continue at *service*: no service has been sent any of it."""
    return LOCAL not in (batch.service, service) and not batch.has_begun


def _settle_service(batch: Batch, runner: Runner, service: Service, settings: Settings) -> Batch:
    """Let a batch that no service has been sent any of continue at *service*.

    The store is changed first and other runners are looked for afterwards. So of two runners that
    begin in the same moment, either the later one reads the change, or this one finds the other.

    Raises:
        StoreUnusable: The batch's tasks are elsewhere, or another runner may create some there.
    """
    named = _name_of(service, settings)
    now = Batch.find(batch.store, batch.number) or batch
    if now.service == named:
        return batch
    if _may_move(now, named):
        moved = now.change_service(named)
        if not runner.has_company and not moved.has_begun:
            return moved
        moved.change_service(now.service)
    check_service(now, named)
    return batch


def check_client(client: object, kind: type[Client | BaseClient], line: str) -> None:
    """Check that *client* is one for the function that it is given to.

    Args:
        client: The client.
        kind: What the function takes.
        line: What to write for a client of the other kind.

    Raises:
        TypeError: It is something else.
    """
    other = isinstance(client, Client | BaseClient)
    use = "a Client" if kind is Client else "an AsyncClient"
    check_type("client", client, kind, use, line if other else "")


def check_limit(limit: object) -> None:
    """Check that *limit* is a number of items, or None.

    Raises:
        ValueError: It is neither.
    """
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise ValueError(f"limit must be 0 or more items, or None (got {limit!r})")


def _leave(run: Run) -> None:
    """Give back the items of the run, if the store can be written."""
    try:
        run.batch.store.record_late()
        run.leave()
        run.batch.store.unregister()
    except (StoreUnusable, Lost):
        run.runner.leaves_something = True  # the error behind this is already on its way
