"""Open a batch for a run, and release it afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

from muybridge.base_client import BaseClient
from muybridge.batch.decisions.in_store import apply_decisions
from muybridge.batch.events import SETTLED, What
from muybridge.batch.items import BatchProblem, CheckedItems, InvalidBatch, Source, checked_items
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, JournalMissing, JournalUnusable
from muybridge.batch.limits.rate import check_rate
from muybridge.batch.port import Journal
from muybridge.batch.recovery import judge_late, recover, release
from muybridge.batch.results.missing_files import follow_files
from muybridge.batch.results.places.folder import FolderStore
from muybridge.batch.run_state import Run, Settings, Stopped
from muybridge.batch.runner_files import Runner
from muybridge.batch.sqlite.journal import FOLDER, SqliteJournal
from muybridge.client import Client
from muybridge.drivers.calls import check_wait_of_create
from muybridge.drivers.notes import UNDER_WAY
from muybridge_protocol.arguments import check_type
from muybridge_protocol.service import Service

CONCURRENCY = 4
"""Default number of tasks at once."""


LOCAL = "an embedded service (--local)"
"""What the journal calls a service that exists only during its run."""


class WrongService(JournalUnusable):
    """The batch's tasks are at another service."""


@contextmanager
def opened(
    service: Service, source: Source | None, out: str | os.PathLike[str], settings: Settings
) -> Generator[Run, None, None]:
    """Open the batch in *out*, or begin it, and release unfinished items at the end.

    The items of dead runners are recovered first. A worker's exception is raised at the end.
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
    with ExitStack() as stack, ExitStack() as given:
        items = (
            None if source is None else given.enter_context(checked_items(source, service.gave_out))
        )
        journal = stack.enter_context(_open_journal(service, items, folder, settings))
        if journal.is_new:
            items = None  # it has them
        known = 0 if items is None else check_same_items(journal, items)
        runner = stack.enter_context(Runner(place))
        journal.register(runner.name, runner.note)

        gone: list[Entry] = []

        def prepare() -> None:
            gone.extend(follow_files(journal, folder))
            if settings.local:
                with journal.transaction():
                    if not journal.owners():
                        journal.start_over()

        _settle_service(journal, runner, service, settings)
        with journal.transaction():
            if items is not None and len(items) > known:
                journal.add(islice(items, known, None), after=known)
            if settings.rate is not None:
                journal.limit_rate(settings.rate)
        given.close()
        store = FolderStore(folder)
        run = Run(
            journal=journal,
            store=store,
            folder=folder,
            place=place,
            runner=runner,
            settings=settings,
            shares_rate=journal.has_rate,
        )
        with at_work(service, run, prepare):
            with suppress(Stopped):  # from a hook, whose error is raised at the end
                for entry in gone:
                    run.event(entry, What.RETRY, entry.reason or "")
            yield run


@contextmanager
def at_work(
    service: Service, run: Run, prepare: Callable[[], None] = lambda: None
) -> Generator[None, None, None]:
    """Recover the items of dead workers, and release those of *run* at the end.

    A worker's exception is raised at the end.

    Args:
        service: Where the batch's tasks are.
        run: What the workers of a run share.
        prepare: Called after the recovery.
    """
    journal, runner = run.journal, run.runner
    try:
        found = recover(journal, service, run.place, but=runner.name)
        judge_late(journal, service)
        apply_decisions(journal)
        prepare()
        counts = journal.counts()
        run.total = sum(counts.values())
        run.finished = sum(counts.get(state, 0) for state in SETTLED)
        run.failed = sum(counts.get(state, 0) for state in (State.FAILED, State.REFUSED))
        found_ambiguous = [entry for entry in found if entry.state is State.AMBIGUOUS]
        run.ambiguous = max(0, counts.get(State.AMBIGUOUS, 0) - len(found_ambiguous))
        waiting = sum(counts.get(state, 0) for state in _OPEN)
        run.workers = min(run.settings.concurrency, waiting)
        with suppress(Stopped):  # from a hook, whose error is raised below
            for entry in found_ambiguous:
                run.event(entry, What.AMBIGUOUS, entry.reason or "")
        yield
    finally:
        run.stopping = True  # for workers that a second signal has left behind
        _leave(journal, service, runner)
    if run.error is not None:
        if runner.keeps_replies:
            run.error.add_note(KEPT)
        if isinstance(run.error, KeyboardInterrupt):
            broken_off = UNDER_WAY in getattr(run.error, "__notes__", ())
            run.error.add_note(TO_RESUME if broken_off else HOW_TO_GO_ON)
        raise run.error


_OPEN = (State.QUEUED, State.SUBMITTED, State.COMPLETED)


def _open_journal(
    service: Service, items: CheckedItems | None, folder: Path, settings: Settings
) -> SqliteJournal:
    """Open the journal in *folder*, or begin it with *items*, and check its service."""
    named = _name_of(service, settings)
    try:
        journal = SqliteJournal(folder, patience=settings.patience)
    except JournalMissing:
        if items is None:
            raise
        journal = SqliteJournal.create(folder, named, items, patience=settings.patience)
    try:
        if not _may_move(journal, named):
            check_service(journal, named)
    except BaseException:
        journal.close()
        raise
    return journal


def _name_of(service: Service, settings: Settings) -> str:
    return LOCAL if settings.local else service.require_base_url()


def _may_move(journal: SqliteJournal, service: str) -> bool:
    """Whether the batch may continue at *service*: no service has been sent any of it."""
    return LOCAL not in (journal.service, service) and not journal.has_begun


def _settle_service(
    journal: SqliteJournal, runner: Runner, service: Service, settings: Settings
) -> None:
    """Let a batch that no service has been sent any of continue at *service*.

    The journal is changed first and other runners are looked for afterwards. So of two runners that
    begin in the same moment, either the later one reads the change, or this one finds the other.

    Raises:
        WrongService: The batch's tasks are elsewhere, or another runner may create some there.
    """
    named, before = _name_of(service, settings), journal.service
    if before == named:
        return
    if _may_move(journal, named):
        journal.change_service(named)
        if not runner.has_company and not journal.has_begun:
            return
        journal.change_service(before)
    check_service(journal, named)


def check_service(journal: Journal, service: str) -> None:
    """Check that the batch's tasks are at *service*.

    Raises:
        WrongService: They are elsewhere.
    """
    if journal.service != service:
        raise WrongService(
            f"The batch in {journal.name} was begun at {journal.service}, and this is {service}: "
            "its tasks are not known here. Use that service, or begin another batch."
        )


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


def check_same_items(journal: Journal, items: CheckedItems) -> int:
    """Check that *items* begin with those of the journal, and return how many those are.

    Raises:
        InvalidBatch: They do not.
    """
    known = sum(journal.counts().values())
    for entry, item in zip(journal.entries(), items, strict=False):
        same = (entry.name, entry.family) == (item.name, item.family)
        if not same or json.loads(entry.body) != item.body:
            problem = f"differs from the batch in {journal.name}, which has been begun"
            said = f"{problem}; {_instead(journal)}"
            raise InvalidBatch([BatchProblem(f"item {entry.number}", "", said)])
    if len(items) < known:
        problem = f"{journal.name} has {known} items (got {len(items)})"
        said = f"{problem}; {_instead(journal)}"
        raise InvalidBatch([BatchProblem("the batch", "", said)])
    return known


def _instead(journal: Journal) -> str:
    """Return what to do with items that are not those of the journal."""
    if journal.lease is None:
        return "use another folder, or leave the file out to resume that one"
    return "use another name, or submit the same items as before, with new ones at the end"


def _leave(journal: Journal, service: Service, runner: Runner) -> None:
    """Release the items of the runner, if the journal can be written."""
    if runner.keeps_replies:
        return  # the next run reads them first
    try:
        release(journal, service, runner.name)
        journal.bury(runner.name, ended=True)
    except (JournalUnusable, ClaimLost):
        runner.leaves_something = True  # the error behind this is already on its way


KEPT = (
    "Responses to creates that the journal could not record are in files next to it. Keep them: "
    "the next run reads them."
)
TO_RESUME = "The batch is in its journal: run it again to resume."
HOW_TO_GO_ON = f"No create was interrupted. {TO_RESUME}"
