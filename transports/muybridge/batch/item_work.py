"""One item in progress: what is written to the journal and reported to listeners.

No request is sent here, and nothing waits. `Scheduler` does both, and passes the outcomes on. Each
step is in the journal before the next one begins.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.batch.events import What
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost
from muybridge.batch.journaled_create import Created, ItemRecord, request_of, verdict
from muybridge.batch.recovery import release_item
from muybridge.batch.results.places.folder import no_room
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.batch.run_state import Run, Stopped
from muybridge.batch.runner_files import ReplySlot
from muybridge.batch.storable_values import one_line
from muybridge.drivers.listeners import Listeners, SilentTracker
from muybridge.drivers.tracking import track_work
from muybridge.files.saving import own_stem
from muybridge.signals import ignoring_errors, raised_by_handler
from muybridge_protocol.delivery import concerns_every_request
from muybridge_protocol.errors import (
    DownloadFailed,
    InvalidAddress,
    MuybridgeError,
    ResultExpired,
    ServiceError,
    TaskEnded,
)
from muybridge_protocol.events import (
    DownloadProgress,
    Polled,
    ServiceSilent,
    Throttled,
    WillRetry,
)
from muybridge_protocol.families import MediaRequest
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.observations import RequestSent
from muybridge_protocol.records.convert import View, unstructure
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.remedies import in_facts, in_records, sentence
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge.purchases.booking import Booking
    from muybridge_protocol.observations import AnyEvent

_STOPS = Polled | WillRetry | ServiceSilent | Throttled | DownloadProgress
"""The events at which a stopping run may interrupt an operation."""


class ItemWork:
    """The work on one item.

    Args:
        run: What the items of a run share.
        entry: The item, which belongs to the run.
        slot: A side file for its response.
        listeners: The client's.
    """

    def __init__(self, run: Run, entry: Entry, slot: ReplySlot, listeners: Listeners) -> None:
        self._run = run
        self._journal = run.journal
        self._hook = listeners.on_event
        self._told_sending = False
        self._record: ItemRecord | None = None
        self.slot: ReplySlot = slot
        """Where its response goes if the journal cannot take it."""
        self.entry: Entry = entry
        """The item, as it was when its last stage began."""
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
        if self.entry.token is not None:
            work: MediaRequest | Task = Task.from_token(self.entry.token)
        else:
            work = request_of(self.entry)
            self._record = ItemRecord(self._journal, self.entry, self.slot)
        if self.entry.state is not State.COMPLETED:
            self.tracker = track_work(self.listeners, work, None, clock)
        return work

    def arm(self, lasts: float, booking: Booking | None) -> None:
        """Record that the paid request is about to be sent.

        Args:
            lasts: Seconds after which the exchange has certainly ended.
            booking: Books it in the store, or None.

        Raises:
            Stopped: The run sends nothing more.
        """
        if self._run.stopping:
            raise Stopped
        if not self._told_sending:
            self._told_sending = True
            self._run.event(self.entry, What.SENDING)
        self.record.arm(lasts, booking)

    def keep(self, response: HttpResponse) -> None:
        """Record the response to a paid request, before it is read."""
        try:
            self.record.keep(response)
        except BaseException as error:
            # An exception from outside, such as a signal handler's, may have kept the response
            # from the journal.
            if not isinstance(error, Exception) or raised_by_handler(error):
                self.record.keep(response)
            raise

    def created(self, outcome: Created, clock: Callable[[], float]) -> bool:
        """Report the outcome of the create, which is recorded, and return whether to continue."""
        match outcome:
            case None:
                return True
            case Task() as task:
                self.tracker.end(task)
                self.tracker = track_work(self.listeners, task, None, clock)
                self._run.event(self.entry, What.SUBMITTED, task=task.id)
                self.entry = self._journal.entry(self.entry.number)
                return True
            case error:
                self.tracker.end(error)
                if concerns_every_request(error):
                    self._run.postpone(self.entry, error)
                    return False
                state = self._journal.entry(self.entry.number).state
                what = What.AMBIGUOUS if state is State.AMBIGUOUS else What.REFUSED
                self._run.event(self.entry, what, str(error))
                return False

    def withheld(self, error: ServiceError, clock: Callable[[], float]) -> None:
        """Leave the item to a later run: it was not sent, because of *error*."""
        after, facts = verdict(error)
        self._move(after, before=State.CLAIMED, **facts)
        self.created(error, clock)

    def joined(self, task: Task, clock: Callable[[], float]) -> None:
        """Record the task of an identical request as the item's."""
        # The journal knows no other way to a task. Nothing is on its way meanwhile.
        self.record.arm(0.0)
        self.record.conclude(task, shares=True)
        self.created(task, clock)

    def left_queued(self, reason: str) -> None:
        """Leave the item, which was not sent, to a later run, because of *reason*."""
        facts = {"owner": None, "reason": reason}
        self._move(State.QUEUED, before=State.CLAIMED, **facts)
        self.tracker.end(GeneratorExit())
        self._run.postpone(self.entry, reason)

    def awaited(self, outcome: Result | ServiceError, wall: float) -> bool:
        """Record how the task ended, and return whether there is a result to save."""
        self.tracker.end(outcome)
        match outcome:
            case Result() as result:
                self._move(
                    State.COMPLETED,
                    result=_written(result),
                    expires=result.expires_at,
                    ended=wall,
                )
                self._run.event(self.entry, What.COMPLETED, task=self.entry.task_id)
                return True
            case TaskEnded() as error:
                self._fail(error, error.result, wall)
            case ResultExpired() as error:
                self._fail(error, None, wall)
            case error:
                self._put_off(error)
        return False

    def downloaded(self, incoming: Path) -> Path | None:
        """Return the result in *incoming*, if an earlier attempt could not store it, or None."""
        task = self.entry.task
        if task is None or self._run.settings.local:  # an embedded service gives an id repeatedly
            return None
        stem = own_stem(task.id)
        found = (path for path in incoming.glob(f"{stem}.*") if path.stem == stem)
        return next((path for path in found if path.suffix != ".part"), None)

    def leftovers(self, saved: Path) -> frozenset[str]:
        """Return the names that an earlier run may have given to the same file as *saved*."""
        taken = self._run.store.taken_names(saved, self.entry.stem)
        return frozenset(
            name for name in taken if not self._journal.is_recorded(name, besides=self.entry.number)
        )

    def place(self, saved: Path, leftovers: frozenset[str]) -> Stored:
        """Move a downloaded file to its final place. The journal is not used: this takes long."""
        task_id = self.entry.task_id or ""
        return self._run.store.place(saved, self.entry.stem, task_id, leftovers)

    def saved(self, file: Path, placed: Stored) -> Entry:
        """Record where the result is, remove the *file*, and return the item as it is then."""
        name = placed.name
        self._move(
            State.DOWNLOADED,
            before=State.COMPLETED,
            path=name,
            size=placed.size,
            sha256=placed.sha256,
            reason=None,
            owner=None,
        )
        with ignoring_errors(OSError):  # only now: until here, another attempt would need it
            file.unlink(missing_ok=True)
        detail = f"{name} ({placed.avoided} is another file)" if placed.avoided else name
        self._run.event(
            self.entry, What.DOWNLOADED, detail, task=self.entry.task_id, path=placed.path
        )
        return self._journal.entry(self.entry.number)

    def not_saved(self, error: InvalidAddress | ServiceError | PlaceUnusable | OSError) -> None:
        """Record why the result could not be saved. A later run retries."""
        match no_room(error, self._run.folder) or error:
            case PlaceUnusable() as unusable:
                facts = {"reason": str(unusable), "owner": None}
                self._move(State.COMPLETED, before=State.COMPLETED, **facts)
                self._run.postpone(self.entry, unusable)
                return
            case ServiceError() as failure:
                pass
            case OSError() as broken:
                at = broken.filename or "the file system"
                failure = DownloadFailed(reason=f"{at}: {broken.strerror or broken}")
            case InvalidAddress() as error:  # from the service
                failure = DownloadFailed(reason=error.describe(in_facts), advice=error.remedies)
        self._put_off(failure, state=State.COMPLETED)

    def set_aside(self, error: Exception, service: Service) -> None:
        """Release the item because of *error*, and leave it to a later run or to a person."""
        before = self._journal.entry(self.entry.number)
        if before.owner != self._run.runner.name:
            raise ClaimLost(f"{before.label} is not this worker's any more.")
        kind = "" if isinstance(error, MuybridgeError) else f"{type(error).__name__}: "
        reason = f"it cannot be saved, recorded or shown: {kind}{error}"
        after = release_item(self._journal, before, service, reason=reason)
        if after.state is State.AMBIGUOUS:
            self._run.event(after, What.AMBIGUOUS, after.reason or "")
        elif after.state is State.SUBMITTED and before.state is State.ARMED:
            self._run.event(after, What.SUBMITTED, task=after.task_id)
        else:
            self._run.postpone(after, reason)

    @property
    def record(self) -> ItemRecord:
        """Records the create.

        Raises:
            ValueError: The item was created by an earlier run.
        """
        if self._record is None:
            raise ValueError(f"{self.entry.label} is not to be created")
        return self._record

    def noticed(self, event: AnyEvent) -> None:
        """Report an event.

        Raises:
            Stopped: The run has to stop.
        """
        if self._hook is not None:
            self._guard(self._hook)(event)
        # A download reports each piece, and may be interrupted at any of them. A create must not be
        # interrupted: the journal may already say that it was sent.
        free = isinstance(event, RequestSent) and event.call.kind != "create"
        if self._run.stopping and (free or isinstance(event, _STOPS)):
            raise Stopped
        match event:
            case Polled(result, changed=True):
                self._run.event(self.entry, What.STATUS, str(result.status), task=result.id)
            case WillRetry() | ServiceSilent() | Throttled():
                self._run.event(self.entry, What.RETRY, event.sentence())
            case _:
                pass

    def _guard(self, hook: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return *hook*, whose errors concern no single item and end the run."""

        def guarded(event: Any) -> None:
            try:
                hook(event)
            except BaseException as error:
                self._run.fail(error)
                raise Stopped from error

        return guarded

    def _fail(self, error: ServiceError, result: Result | None, wall: float) -> None:
        """Record that the task ended without a result."""
        self._move(
            State.FAILED,
            result=None if result is None else _written(result),
            reason=error.what(),
            ended=wall,
            owner=None,
        )
        self._run.event(self.entry, What.FAILED, error.what(), task=self.entry.task_id)

    def _put_off(self, error: ServiceError, *, state: State = State.SUBMITTED) -> None:
        reason = " ".join(filter(None, (error.what(), sentence(error.advice, in_records))))
        facts: dict[str, Any] = {"reason": reason, "owner": None}
        if error.task is not None and error.task.next_poll_at is not None:
            facts["token"] = error.task.to_token()  # the next run must not poll it sooner
        self._move(state, before=state, **facts)
        self._run.postpone(self.entry, error)

    def _move(self, after: State, *, before: State = State.SUBMITTED, **facts: Any) -> None:
        self._journal.move(self.entry, before, after, by=self._run.runner.name, **facts)


# Without the link, because its query may hold a signature.
_KEPT = View(
    Result, only=("status", "model", "created", "actual_duration", "total_tokens", "error")
)


def _written(result: Result) -> str:
    """Return the part of a result that is kept, as JSON."""
    kept: dict[str, Any] = unstructure(result, _KEPT)
    return json.dumps(
        {name: one_line(value) if isinstance(value, str) else value for name, value in kept.items()}
    )
