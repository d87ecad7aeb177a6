"""What is done with one item, step by step, whoever does the I/O.

`ItemWork.steps` is a generator: it yields what is to be done (`Finish`, `Await`, `Save`, `Block`),
and is sent what came of it. The journal is written in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from muybridge.batch.creating import ItemRecord, JournaledCreate, request_of
from muybridge.batch.events import What
from muybridge.batch.journal import FOLDER
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.journal_errors import ClaimLost, JournalUnusable
from muybridge.batch.placing import Placed, place
from muybridge.batch.recovery import release_item
from muybridge.batch.run_state import Run, Stopped
from muybridge.batch.storable import one_line
from muybridge.drivers.calls import Calls, Moment
from muybridge.drivers.listeners import Listeners
from muybridge.interrupts import raised_by_handler
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
from muybridge_protocol.records.convert import View, unstructure
from muybridge_protocol.tasks import Result, Task

if TYPE_CHECKING:
    from muybridge_protocol.observations import AnyEvent

INCOMING = "incoming"
"""Where downloads are until they are whole, within the journal's folder."""


@attrs.frozen
class Finish:
    """Drive *create* to its end, and tell the task."""

    create: JournaledCreate


@attrs.frozen
class Await:
    """Wait for *task*, and tell its result."""

    task: Task


@attrs.frozen
class Save:
    """Download *source* into *folder*, and tell the file's path."""

    source: Result | Task
    folder: Path


@attrs.frozen
class Block:
    """Call *function*, which blocks, and tell what it returns."""

    function: Callable[[], Any]


Job = Finish | Await | Save | Block
Steps = Generator[Job, Any, None]
_STOPS = Polled | WillRetry | ServiceSilent | Throttled | DownloadProgress
"""The events at which a run that is to stop may break off."""


class ItemWork:
    """One worker's work.

    Args:
        run: What the workers share.
        calls: Begins operations on the client's service.
        moment: Tells the time.
        listeners: The client's.
    """

    def __init__(
        self,
        run: Run,
        calls: Calls,
        moment: Callable[[], Moment],
        listeners: Listeners,
    ) -> None:
        self._run = run
        self._calls = calls
        self._moment = moment
        self._hook = listeners.on_event
        self.listeners: Listeners = attrs.evolve(
            listeners,
            on_event=self.noticed,
            on_submitted=listeners.on_submitted and self._guard(listeners.on_submitted),
        )
        """Who is told of the operations of this worker."""
        self._journal = run.journal
        self._slot = run.runner.new_slot()
        self._entry: Entry
        self._record: ItemRecord | None = None

    @property
    def pays(self) -> bool:
        """Whether a paid request is under way."""
        return self._record is not None and self._record.under_way

    def steps(self, entry: Entry) -> Steps:
        """Take *entry* as far as it goes.

        A failure to save, record or show it is its own, and ends nothing else.
        """
        self._entry, self._record = entry, None
        try:
            yield from self._steps(entry)
        except (Stopped, JournalUnusable, ClaimLost):
            raise
        except Exception as error:
            if raised_by_handler(error):
                raise
            self._set_aside(entry, error)  # which raises it where others would meet it too

    def _steps(self, entry: Entry) -> Steps:
        task = Task.from_token(entry.token) if entry.token is not None else None
        if task is None:
            task = yield from self._create_task(entry)
            if task is None:
                return
            entry = self._entry = self._journal.entry(entry.number)
        source: Result | Task | None = task
        if entry.state is State.SUBMITTED:
            source = yield from self._await_result(entry, task)
        if source is not None:
            yield from self._save(entry, source)

    def noticed(self, event: AnyEvent) -> None:
        """Tell what became known.

        Raises:
            Stopped: The run is to stop.
        """
        if self._hook is not None:
            self._guard(self._hook)(event)
        # A download makes itself known piece by piece, and can be broken off at any of them. Not
        # before a request: the journal has it for sent then.
        if self._run.stopping.is_set() and isinstance(event, _STOPS):
            raise Stopped
        match event:
            case Polled(result, changed=True):
                self._run.event(self._entry, What.STATUS, str(result.status), task=result.id)
            case WillRetry(what, reason, delay):
                detail = f"{what} is tried again in {delay:.0f} s: {reason}"
                self._run.event(self._entry, What.RETRY, detail)
            case ServiceSilent(silent, reason, delay):
                silence = f"no valid response for {silent / 60:.0f} minutes"
                detail = f"{silence}; next poll in {delay:.0f} s: {reason}"
                self._run.event(self._entry, What.RETRY, detail)
            case Throttled(what, delay):
                detail = f"the service asks to slow down: {what} goes on in {delay:.0f} s"
                self._run.event(self._entry, What.RETRY, detail)
            case _:
                pass

    def _guard(self, hook: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return *hook*, whose errors are no item's and end the run."""

        def guarded(event: Any) -> None:
            try:
                hook(event)
            except BaseException as error:
                self._run.fail(error)
                raise Stopped from error

        return guarded

    def _create_task(self, entry: Entry) -> Generator[Job, Any, Task | None]:
        with self._run.lock:  # it silences warnings, for which Python has one switch
            request = request_of(entry)
        create = self._calls.create(request, **self._moment())
        record = self._record = ItemRecord(self._journal, entry, self._slot, self._run.stopping)
        self._run.event(entry, What.SENDING)
        try:
            task: Task = yield Finish(JournaledCreate.of(create, record))
        except ServiceError as error:
            if concerns_every_request(error):
                self._run.postpone(entry, error)
            else:
                state = self._journal.entry(entry.number).state
                what = What.AMBIGUOUS if state is State.AMBIGUOUS else What.REFUSED
                self._run.event(entry, what, str(error))
            return None
        self._run.event(entry, What.SUBMITTED, task=task.id)
        return task

    def _await_result(self, entry: Entry, task: Task) -> Generator[Job, Any, Result | None]:
        try:
            result: Result = yield Await(task)
        except TaskEnded as error:
            self._end(entry, error, error.result)
        except ResultExpired as error:
            self._end(entry, error, None)
        except ServiceError as error:
            self._put_off(entry, error)
        else:
            self._move(
                entry,
                State.COMPLETED,
                result=_written(result),
                expires=result.expires_at,
                ended=self._moment()["wall"],
            )
            self._run.event(entry, What.COMPLETED, task=task.id)
            return result
        return None

    def _set_aside(self, entry: Entry, error: Exception) -> None:
        """Give *entry* back because of *error*, and leave it to a later run or to a person.

        Raises:
            Exception: It is *error*, which broke a paid request off: others would meet it too.
        """
        before = self._journal.entry(entry.number)
        interrupted = self._record is not None and self._record.interrupted
        if interrupted or (before.state is State.ARMED and before.reply_status is None):
            raise error
        kind = "" if isinstance(error, MuybridgeError) else f"{type(error).__name__}: "
        reason = f"it cannot be saved, recorded or shown: {kind}{error}"
        after = release_item(self._journal, before, self._calls.service, reason=reason)
        task = after.task_id
        if after.state is State.AMBIGUOUS:
            self._run.event(after, What.AMBIGUOUS, after.reason or "")
        elif after.state is State.SUBMITTED and before.state is State.ARMED:
            self._run.event(after, What.SUBMITTED, task=task)
        else:
            self._run.postpone(after, reason)

    def _end(self, entry: Entry, error: ServiceError, result: Result | None) -> None:
        """Write down that the task has ended without a result."""
        self._move(
            entry,
            State.FAILED,
            result=None if result is None else _written(result),
            reason=error.what(),
            ended=self._moment()["wall"],
            owner=None,
        )
        self._run.event(entry, What.FAILED, error.what(), task=entry.task_id)

    def _save(self, entry: Entry, source: Result | Task) -> Steps:
        folder = self._journal.folder
        incoming = folder / FOLDER / INCOMING
        try:
            incoming.mkdir(exist_ok=True)
            saved: Path = yield Save(source, incoming)
            placed: Placed = yield Block(
                lambda: place(saved, folder, entry.stem, self._is_recorded(entry))
            )
        except InvalidAddress as error:  # the service gave this address
            self._put_off(entry, DownloadFailed(reason=str(error)), state=State.COMPLETED)
            return
        except (ServiceError, OSError) as error:
            if raised_by_handler(error):
                raise
            failure = error if isinstance(error, ServiceError) else _unsaved(error)
            self._put_off(entry, failure, state=State.COMPLETED)
            return
        self._move(
            entry,
            State.DOWNLOADED,
            before=State.COMPLETED,
            path=placed.path.name,
            size=placed.size,
            sha256=placed.sha256,
            reason=None,
            owner=None,
        )
        name = placed.path.name
        detail = f"{name} ({placed.avoided} is another file)" if placed.avoided else name
        self._run.event(entry, What.DOWNLOADED, detail, task=entry.task_id, path=placed.path)

    def _is_recorded(self, entry: Entry) -> Callable[[str], bool]:
        return lambda name: self._journal.is_recorded(name, besides=entry.number)

    def _put_off(
        self, entry: Entry, error: ServiceError, *, state: State = State.SUBMITTED
    ) -> None:
        facts: dict[str, Any] = {"reason": error.what(), "owner": None}
        if error.task is not None and error.task.next_poll_at is not None:
            facts["token"] = error.task.to_token()  # the next run must not poll it sooner
        self._move(entry, state, before=state, **facts)
        self._run.postpone(entry, error)

    def _move(
        self, entry: Entry, after: State, *, before: State = State.SUBMITTED, **facts: Any
    ) -> None:
        self._journal.move(entry, before, after, by=self._run.runner.name, **facts)


# No link, because its query may hold a signature.
_KEPT = View(
    Result, only=("status", "model", "created", "actual_duration", "total_tokens", "error")
)


def _written(result: Result) -> str:
    """Return what is kept of a result."""
    kept: dict[str, Any] = unstructure(result, _KEPT)
    return json.dumps(
        {name: one_line(value) if isinstance(value, str) else value for name, value in kept.items()}
    )


def _unsaved(error: OSError) -> DownloadFailed:
    return DownloadFailed(
        reason=f"{error.filename or 'the file system'}: {error.strerror or error}"
    )
