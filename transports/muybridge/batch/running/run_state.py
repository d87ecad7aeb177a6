"""What the workers of a run share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import NoneType
from typing import Any

import attrs

from muybridge.batch.events import BatchEvent, What
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry, label_of_item
from muybridge.batch.results.places.port import PlaceUnusable, Store
from muybridge.batch.running.side_files import Runner
from muybridge.batch.storable_values import one_line
from muybridge.drivers.calls import is_time
from muybridge.drivers.fleet_team import Stopped
from muybridge.drivers.runtime import FOREVER
from muybridge_protocol.arguments import check_callable, check_type
from muybridge_protocol.delivery import concerns_every_request
from muybridge_protocol.errors import OverBudget, ServiceError
from muybridge_protocol.purchases import Item, Purchase, Stage
from muybridge_protocol.remedies import in_records

_FAILURES = frozenset({What.FAILED, What.REFUSED})
_ENDS = frozenset({What.DOWNLOADED, *_FAILURES})


def _nothing() -> None:
    """Do nothing: no item is taken yet."""


@attrs.frozen(kw_only=True)
class Settings:
    """How a batch is run, or one machine's share of a batch.

    Args:
        concurrency: Maximum number of tasks in progress at once, from create to end.
        timeout: Seconds to wait for each task, or None for no limit.
        download_timeout: Seconds that each download may take.
        on_event: Called with each event of an item, or None.
        local: Whether the service is an embedded one, which does not know earlier runs.
        patience: Seconds to wait for another process that is writing to the store, or for a
            database that was reached before.
        limit: Maximum number of new items that this run sends, or None for all.
        sidecar: Whether to write a sidecar beside each result.
        dedupe: Whether identical items share one task.
        rate: Maximum requests per second of all processes that run the batch, or None.
        creates: Maximum number of creates under way at once, or None for no limit.
        seconds: Seconds after which a worker releases its unfinished items and returns, or None.

    Raises:
        TypeError: A setting has a wrong type.
        ValueError: A time to download is not above 0.
    """

    concurrency: int
    timeout: float | None
    download_timeout: float
    on_event: Callable[[BatchEvent], None] | None
    local: bool
    patience: float
    limit: int | None = None
    sidecar: bool = False
    dedupe: bool = False
    rate: float | None = None
    creates: int | None = None
    seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        check_type("concurrency", self.concurrency, int, "a whole number")
        check_type("patience", self.patience, (int, float), "a number of seconds")
        check_type("creates", self.creates, (int, NoneType), "a whole number")
        for name in ("rate", "seconds"):
            check_type(name, getattr(self, name), (int, float, NoneType), "a number")
        for name in ("local", "sidecar", "dedupe"):
            check_type(name, getattr(self, name), bool, "True or False")
        check_callable("on_event", self.on_event)
        if not is_time(self.download_timeout):
            raise ValueError(
                "download_timeout must be a positive number of seconds (got "
                f"{self.download_timeout!r})"
            )


@attrs.define(eq=False)
class Run:
    """What the workers of a run share.

    Args:
        batch: The batch.
        store: Where results go.
        folder: The batch's folder on this machine.
        place: Where this machine's own files are, below it.
        runner: The runner that owns the items.
        settings: How it is run.
        stopping: Whether everything stops that costs nothing to stop.
        workers: Most items in progress at once.
        total: How many items there are.
        finished: How many of them are finished.
        failed: How many of them failed or were refused.
        ambiguous: How many of them need a person's decision.
        shares_rate: Whether requests need permits of the store, because others send, too.
        creates: Whether new tasks are created.
        ends_at: When it stops by itself, on the client's clock.
        stopped: Why no more tasks are created, or "".
        over_budget: Whether that is a budget, which has room again if a create does nothing.
        sent: How many items it has taken to send.
        queue_at: The number of the last of them.
        without_sidecar: How many results are saved, and their sidecars are not.
        store_failed: Why the store could not take a result, or "".
        tried: The items for which this run can do nothing more.
        error: The exception that ended a worker.
        has_sheet: Whether its folder has a contact sheet.
        left_behind: Whether a second signal has left an exchange behind, which goes on.
        leave: Gives the items back that it has not finished.
        lock: Guards the changing fields.
    """

    batch: Batch
    store: Store
    folder: Path
    place: Path
    runner: Runner
    settings: Settings
    stopping: bool = False
    workers: int = 0
    total: int = 0
    finished: int = 0
    failed: int = 0
    ambiguous: int = 0
    shares_rate: bool = False
    creates: bool = True
    ends_at: float = FOREVER
    stopped: str = ""
    over_budget: bool = False
    sent: int = 0
    queue_at: int = 0
    without_sidecar: int = 0
    store_failed: str = ""
    tried: set[int] = attrs.field(factory=set[int])
    error: BaseException | None = None
    has_sheet: bool = True
    left_behind: bool = False
    leave: Callable[[], None] = attrs.field(default=_nothing)
    lock: AbstractContextManager[Any] = attrs.field(factory=nullcontext[None])

    def take(
        self, most: int, creating: int, working: set[int]
    ) -> list[tuple[Item, Purchase | None]]:
        """Return the next items to work on, each with its purchase. It uses the store: do not lock.

        Args:
            most: Maximum number of items.
            creating: How many items are being created.
            working: The items that are being worked on.
        """
        if self.stopping:
            return []
        limits = (
            (self.settings.creates, creating),
            (self.settings.limit, self.sent),
        )
        creates = min([most, *(limit - used for limit, used in limits if limit is not None)])
        creates = max(0, creates) if self.creates else 0
        besides = self.tried | working
        pairs = self.batch.take(most, creates=creates, after=self.queue_at, besides=besides)
        if self.queue_at and creates and not any(map(_is_new, pairs)):
            # Items before may have been queued again.
            self.queue_at = 0
            pairs += self.batch.take(
                most - len(pairs),
                creates=creates,
                besides=besides | {item.number for item, _ in pairs},
            )
        new = [item.number for item, _ in filter(_is_new, pairs)]
        self.sent += len(new)
        self.queue_at = max([self.queue_at, *new])
        return pairs

    @property
    def at_limit(self) -> bool:
        """Whether as many items were taken to send as this run may."""
        limit = self.settings.limit
        return limit is not None and self.sent >= limit

    def event(self, entry: Entry | Item, what: What, detail: str = "", **more: Any) -> None:
        """Report what happened to *entry*.

        Raises:
            Stopped: The hook raised; its error is raised at the end.
        """
        with self.lock:
            self.finished += what in _ENDS
            self.failed += what in _FAILURES
            self.ambiguous += what is What.AMBIGUOUS
            event = BatchEvent(
                what=what,
                item=entry.number,
                name=entry.name,
                detail=one_line(detail),
                finished=self.finished,
                total=self.total,
                failed=self.failed,
                ambiguous=self.ambiguous,
                **more,
            )
            try:
                if self.settings.on_event is not None:
                    self.settings.on_event(event)
            except BaseException as error:
                self._fail(error)
                raise Stopped from error

    def postpone(self, entry: Entry | Item, error: ServiceError | PlaceUnusable | str) -> None:
        """Leave *entry* to a later run, because of *error*."""
        reason = error.describe(in_records) if isinstance(error, ServiceError) else str(error)
        with self.lock:
            self.tried.add(entry.number)
            if isinstance(error, PlaceUnusable):
                # Nothing more is paid for as long as results cannot be stored.
                self.creates, self.store_failed = False, str(error)
            if isinstance(error, ServiceError) and concerns_every_request(error):
                # Every other request would fail the same way.
                self.creates = False
                self.stopped = reason
                self.over_budget = isinstance(error, OverBudget)
        self.event(entry, What.POSTPONED, reason)

    def miss_amount(self, item: Item, reason: str) -> None:
        """Report at the end that *item* is not sent, unlike others, and why."""
        with self.lock:
            if not self.stopped:
                self.stopped, self.over_budget = f"{label_of_item(item)}: {reason}", True

    def fail(self, error: BaseException) -> None:
        """Stop the run because of *error*. The first one is raised, with the others' notes."""
        with self.lock:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        elif self.error is not error:
            for note in getattr(error, "__notes__", ()):
                self.error.add_note(note)
        self.stopping = True


def _is_new(pair: tuple[Item, Purchase | None]) -> bool:
    return pair[0].stage in (Stage.QUEUED, Stage.CLAIMED)
