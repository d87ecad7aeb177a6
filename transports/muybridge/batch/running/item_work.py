"""One item in progress: the stage it is in, and what is reported to listeners.

No request is sent here, and nothing waits. `Scheduler` does both, and passes the outcomes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.batch.events import What
from muybridge.batch.items.requests import request_of
from muybridge.batch.results.places.folder import no_room
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.batch.running.run_state import Run
from muybridge.batch.running.side_files import ResponseSlot
from muybridge.batch.storable_values import one_line
from muybridge.drivers.fleet_team import Stopped
from muybridge.drivers.listeners import Listeners, SilentTracker
from muybridge.drivers.tracking import track_work
from muybridge.files.saving import own_stem
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.errors import (
    DownloadFailed,
    InvalidAddress,
    ResultExpired,
    ServiceError,
    TaskFailed,
)
from muybridge_protocol.events import (
    DownloadProgress,
    Polled,
    ServiceSilent,
    Throttled,
    WillRetry,
)
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.observations import RequestSent
from muybridge_protocol.purchases import Item, Outcome, Purchase, Stage, Tags, followed
from muybridge_protocol.records.convert import View, attributes, unstructure
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.remedies import in_facts, in_records, sentence

if TYPE_CHECKING:
    from muybridge_protocol.observations import AnyEvent

_STOPS = Polled | WillRetry | ServiceSilent | Throttled | DownloadProgress
"""The events at which a stopping run may interrupt an operation."""

Step = tuple[Stage, Mapping[str, Any]]
"""The next stage of an item, and its other values."""


class ItemWork:
    """The work on one item.

    Args:
        run: What the items of a run share.
        item: The item, which is free to be created, or belongs to the run.
        purchase: Its purchase, or None.
        slot: A side file for its response.
        listeners: The client's.
        tags: The tags of its purchases.
    """

    def __init__(
        self,
        run: Run,
        item: Item,
        purchase: Purchase | None,
        slot: ResponseSlot,
        listeners: Listeners,
        tags: Tags = NO_TAGS,
    ) -> None:
        self._run = run
        self._tags = tags
        self._hook = listeners.on_event
        self.has_told_sending: bool = False
        """Whether a create of this run was announced."""
        self.task: Task | None = None
        """Its task, once that is known."""
        self.slot: ResponseSlot = slot
        """Where its response is kept until the store has its outcome."""
        self.item: Item = item
        """The item as it is in the store."""
        self.armed: str | None = None
        """The key of its purchase whose outcome the store does not have, or None."""
        self.is_sending: bool = False
        """Whether its create is under way."""
        self.find_outcome: Callable[[], Outcome] | None = None
        """Returns what its create has led to, until the store has that; None if nobody knows."""
        self._purchase = purchase
        self.ended: Mapping[str, Any] | None = None
        """What is known of its result, until the store has it."""
        self.listeners: Listeners = attrs.evolve(
            listeners,
            on_event=self.noticed,
            on_submitted=listeners.on_submitted and self._guard(listeners.on_submitted),
        )
        """The hooks for its operations."""
        self.tracker: SilentTracker = SilentTracker(self.listeners)
        """The tracker of the call in progress."""

    def begin(self, clock: Callable[[], float]) -> MediaRequest | Task:
        """Return the request to create, or the task that was created.

        Args:
            clock: Tells seconds on the driver's clock.
        """
        work: MediaRequest | Task
        if self.item.stage in (Stage.QUEUED, Stage.CLAIMED):
            work = request_of(self.item)
        else:
            token = None if self._purchase is None else self._purchase.token
            work = Task.from_token(token or "")
            if self.item.next_poll_at is not None:
                work = attrs.evolve(work, next_poll_at=self.item.next_poll_at)
            self.task = work
        # The task of a completed item has ended. Its download is tracked by the client.
        if self.item.stage is not Stage.COMPLETED:
            self.tracker = track_work(self.listeners, work, None, clock, self._tags)
        return work

    def sending(self, request: HttpRequest) -> None:
        """Report that the paid *request* is about to be sent.

        Raises:
            Stopped: The run sends nothing more.
        """
        if self._run.stopping:
            raise Stopped
        if not self.has_told_sending:
            self.has_told_sending = True
            self._run.event(self.item, What.SENDING)
        self.tracker.sending(request)

    def concluded(self, armed: Item, purchase: Purchase, outcome: Outcome) -> None:
        """Take the item after its purchase was concluded.

        Args:
            armed: The item as it was armed.
            purchase: The purchase after its *outcome*.
            outcome: How it has ended.
        """
        self.item, self._purchase = followed(armed, purchase, outcome), purchase
        self.armed, self.find_outcome = None, None

    def submitted(self, task: Task, clock: Callable[[], float]) -> None:
        """Report the task, which is recorded."""
        self.task = task
        self.tracker.end(task)
        self.tracker = track_work(self.listeners, task, None, clock, self._tags)
        self._run.event(self.item, What.SUBMITTED, task=task.id)

    def not_created(self, error: ServiceError) -> None:
        """Report that the create, whose outcome is recorded, has led to no task."""
        self.tracker.end(error)
        what = What.AMBIGUOUS if self.item.stage is Stage.AMBIGUOUS else What.REFUSED
        self._run.event(self.item, what, str(error))

    def completed(self, result: Result, wall: float) -> None:
        """Report the result, which is going to be saved."""
        self.ended = {
            "result": _written(result),
            "expires": result.expires_at,
            "ended": wall,
            "next_poll_at": None,
        }
        self._run.event(self.item, What.COMPLETED, task=self._task_id)

    def failed(self, error: TaskFailed | ResultExpired, wall: float) -> Step:
        """Return the step of a task that has ended without a result."""
        result = error.result if isinstance(error, TaskFailed) else None
        return Stage.FAILED, {
            "result": None if result is None else _written(result),
            "reason": error.what(),
            "ended": wall,
            "owner": None,
        }

    def postpone(self, error: ServiceError) -> Step:
        """Return the step of an item that is left to a later run because of *error*."""
        reason = " ".join(filter(None, (error.what(), sentence(error.advice, in_records))))
        facts: dict[str, Any] = {**(self.ended or {}), "reason": reason, "owner": None}
        if error.task is not None and error.task.next_poll_at is not None:
            facts["next_poll_at"] = error.task.next_poll_at  # the next run must not poll it sooner
        return (self.item.stage if self.ended is None else Stage.COMPLETED), facts

    def left(self) -> Step | None:
        """Return the step that gives the item back, or None if it was not taken."""
        if self.item.owner is None:
            return None
        if self.item.stage is Stage.CLAIMED:
            return Stage.QUEUED, {}
        if self.ended is not None:
            return Stage.COMPLETED, self.ended
        return self.item.stage, {}

    def set_aside(self) -> Step | None:
        """Return the step of an item that cannot continue, or None if it is not this run's.

        One that was not sent yet is nobody's.
        """
        return (Stage.QUEUED, {}) if self.item.stage is Stage.QUEUED else self.left()

    def downloaded(self, incoming: Path) -> Path | None:
        """Return the result in *incoming*, if an earlier attempt could not store it, or None."""
        # An embedded service gives an id repeatedly.
        if self.task is None or self._run.settings.local:
            return None
        stem = own_stem(self.task.id)
        paths = (path for path in incoming.glob(f"{stem}.*") if path.stem == stem)
        return next((path for path in paths if path.suffix != ".part"), None)

    def place(self, saved: Path) -> Stored:
        """Move a downloaded file to its final place. This takes long.

        A file that an earlier run may have given the same name is taken for this item's, unless it
        is recorded for another one.
        """
        # A run that was killed between the file and the store has left the file under such a name.
        names = self._run.store.taken_names(saved, self.item.stem)
        number = self.item.number
        leftovers = frozenset(
            name for name in names if not self._run.batch.is_recorded(name, besides=number)
        )
        return self._run.store.place(saved, self.item.stem, self._task_id or "", leftovers)

    def saved(self, placed: Stored) -> Step:
        """Return the step of an item whose result is saved."""
        return Stage.DOWNLOADED, {
            **(self.ended or {}),
            "path": placed.name,
            **attributes(placed, "size", "sha256"),
            "reason": None,
            "owner": None,
        }

    def report_saved(self, placed: Stored) -> None:
        """Report where the result is, which is recorded."""
        detail = placed.name
        if placed.avoided:
            detail = f"{placed.name} ({placed.avoided} is another file)"
        self._run.event(self.item, What.DOWNLOADED, detail, task=self._task_id, path=placed.path)

    def not_saved(
        self, error: InvalidAddress | ServiceError | PlaceUnusable | OSError
    ) -> tuple[Step, ServiceError | PlaceUnusable]:
        """Return the step of an item whose result could not be saved, and why not."""
        match no_room(error, self._run.folder) or error:
            case PlaceUnusable() as unusable:
                facts = {**(self.ended or {}), "reason": str(unusable), "owner": None}
                return (Stage.COMPLETED, facts), unusable
            case ServiceError() as failure:
                pass
            case OSError() as broken:
                at = broken.filename or "the file system"
                failure = DownloadFailed(reason=f"{at}: {broken.strerror or broken}")
            case InvalidAddress() as error:  # from the service
                failure = DownloadFailed(reason=error.describe(in_facts), advice=error.remedies)
        return self.postpone(failure), failure

    def noticed(self, event: AnyEvent) -> None:
        """Report an event.

        Raises:
            Stopped: The run has to stop.
        """
        if self._hook is not None:
            self._guard(self._hook)(event)
        # A download reports each piece, and may be interrupted at any of them. A create must not be
        # interrupted: the store may already say that it was sent.
        free = isinstance(event, RequestSent) and event.call.kind != "create"
        if self._run.stopping and (free or isinstance(event, _STOPS)):
            raise Stopped
        match event:
            case Polled(result, changed=True):
                self._run.event(self.item, What.STATUS, str(result.status), task=result.id)
            case WillRetry() | ServiceSilent() | Throttled():
                self._run.event(self.item, What.RETRY, event.sentence())
            case _:
                pass

    @property
    def _task_id(self) -> str | None:
        return None if self.task is None else self.task.id

    def _guard(self, hook: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return *hook*, whose errors concern no single item and end the run."""

        def guarded(event: Any) -> None:
            try:
                hook(event)
            except BaseException as error:
                self._run.fail(error)
                raise Stopped from error

        return guarded


# Without the link, because its query may hold a signature.
_KEPT = View(
    Result, only=("status", "model", "created", "actual_duration", "total_tokens", "error")
)


def _written(result: Result) -> str:
    """Return the part of a result that is kept, as JSON."""
    record: dict[str, Any] = unstructure(result, _KEPT)
    return json.dumps(
        {
            name: one_line(value) if isinstance(value, str) else value
            for name, value in record.items()
        }
    )
