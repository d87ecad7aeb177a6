"""One thread of a run: it takes an item as far as it goes, and writes each step down."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from muybridge.batch.creating import ItemRecord, JournaledCreate, does_nothing, request_of
from muybridge.batch.events import BatchEvent, What
from muybridge.batch.runners import Runner
from muybridge.clock import Clock
from muybridge.journal import FOLDER, Journal, sync_folders
from muybridge.journal_entries import Entry, State
from muybridge.journal_errors import ClaimLost
from muybridge.sync_client import Client
from muybridge_protocol.codec import write_json
from muybridge_protocol.errors import (
    DownloadFailed,
    InvalidAddress,
    ResultExpired,
    ServiceError,
    TaskEnded,
)
from muybridge_protocol.events import Ambiguous, Event, Polled, Submitted, Throttled, WillRetry
from muybridge_protocol.tasks import Result, Task

INCOMING = "incoming"
"""Where downloads are until they are whole, within the journal's folder."""
_LONGEST_SLEEP = 0.25
"""Seconds after which a worker that waits looks whether it is to stop."""

_ENDS = frozenset({What.DOWNLOADED, What.FAILED, What.REFUSED})


class Stopped(Exception):
    """The run is to stop. What was under way goes on in the next one."""


@attrs.define(eq=False)
class Run:
    """What the workers of a run share.

    Args:
        journal: The batch's journal.
        runner: Whose work it is.
        tell: Is called with each event, by one worker at a time.
        wait_timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        stopping: Set when everything is to stop that costs nothing to stop.
        total: How many items there are.
        finished: How many of them are at their end.
        creates: Whether new tasks are created.
        stopped: Why none are any more, or "".
        tried: The items that this run can do no more for.
        error: What broke a worker.
        lock: Guards what changes.
    """

    journal: Journal
    runner: Runner
    tell: Callable[[BatchEvent], None]
    wait_timeout: float | None
    download_timeout: float
    stopping: threading.Event = attrs.field(factory=threading.Event)
    total: int = 0
    finished: int = 0
    creates: bool = True
    stopped: str = ""
    tried: set[int] = attrs.field(factory=set[int])
    error: BaseException | None = None
    lock: threading.Lock = attrs.field(factory=threading.Lock)

    def take(self) -> Entry | None:
        """Return the next item to work on, or None where there is none."""
        with self.lock:
            if self.stopping.is_set():
                return None
            return self.journal.take(self.runner.name, creates=self.creates, besides=self.tried)

    def event(self, entry: Entry, what: What, detail: str = "", **more: Any) -> None:
        """Make known what happened to *entry*."""
        with self.lock:
            self.finished += what in _ENDS
            told = BatchEvent(
                what=what,
                item=entry.number,
                name=entry.name,
                detail=detail,
                finished=self.finished,
                total=self.total,
                **more,
            )
            self.tell(told)

    def postpone(self, entry: Entry, error: ServiceError) -> None:
        """Leave *entry* to a later run, because of *error*."""
        with self.lock:
            self.tried.add(entry.number)
            if does_nothing(error):
                # Every other request would meet the same.
                self.creates = False
                self.stopped = str(error)
        self.event(entry, What.POSTPONED, str(error))

    def fail(self, error: BaseException) -> None:
        """Stop the run because of *error*, the first of which is told."""
        with self.lock:
            self.error = self.error or error
        self.stopping.set()


class PatientClock:
    """A clock that waits until the run is to stop, and no longer."""

    def __init__(self, clock: Clock, stopping: threading.Event) -> None:
        self._clock = clock
        self._stopping = stopping

    def monotonic(self) -> float:
        """Return seconds on a clock that only goes forward."""
        return self._clock.monotonic()

    def wall(self) -> float:
        """Return Unix seconds."""
        return self._clock.wall()

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*.

        Raises:
            Stopped: The run is to stop.
        """
        until = self.monotonic() + seconds
        while True:
            if self._stopping.is_set():
                raise Stopped
            left = until - self.monotonic()
            if left <= 0:
                return
            self._clock.sleep(min(left, _LONGEST_SLEEP))


class Worker(Client):
    """The caller's client, in one thread, with the journal kept around all that it does.

    Attributes:
        ended: Set when it has come to its end.

    Args:
        client: The caller's client, whose connections and key it shares.
        run: What the workers share.
    """

    def __init__(self, client: Client, run: Run) -> None:
        self.__dict__.update(vars(client))
        self._owns_transport = False
        self._clock: Clock = PatientClock(self._clock, run.stopping)
        self._callers_hook = self._on_event
        self._on_event = self._noticed
        self._run = run
        self._journal = run.journal
        self._entry: Entry
        self._slot = run.runner.new_slot()
        self.ended = threading.Event()

    def work(self) -> None:
        """Work on item after item until there is nothing left that this run can do."""
        try:
            while (entry := self._run.take()) is not None:
                self._entry = entry
                try:
                    self._carry_on(entry)
                except ClaimLost:
                    self._run.tried.add(entry.number)
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001  it is raised again in the caller's thread
            self._run.fail(error)
        finally:
            self.ended.set()

    def _carry_on(self, entry: Entry) -> None:
        task = Task.from_token(entry.token) if entry.token is not None else None
        if task is None:
            task = self._create_task(entry)
            if task is None:
                return
            entry = self._entry = self._journal.entry(entry.number)
        source: Result | Task | None = task
        if entry.state is State.SUBMITTED:
            source = self._await_result(entry, task)
        if source is not None:
            self._save(entry, source)

    def _create_task(self, entry: Entry) -> Task | None:
        with self._run.lock:  # it silences warnings, for which Python has one switch
            request = request_of(entry)
        create = self._calls.create(request, **self._moment())
        record = ItemRecord(self._journal, entry, self._slot)
        self._run.event(entry, What.SENDING)
        try:
            task = self._finish(JournaledCreate.of(create, record))
        except ServiceError as error:
            if does_nothing(error):
                self._run.postpone(entry, error)
            else:
                state = self._journal.entry(entry.number).state
                what = What.AMBIGUOUS if state is State.AMBIGUOUS else What.REFUSED
                self._run.event(entry, what, str(error))
            return None
        self._run.event(entry, What.SUBMITTED, task=task.id)
        return task

    def _await_result(self, entry: Entry, task: Task) -> Result | None:
        try:
            result = self.wait(task, timeout=self._run.wait_timeout)
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
                ended=self._clock.wall(),
            )
            self._run.event(entry, What.COMPLETED, task=task.id)
            return result
        return None

    def _end(self, entry: Entry, error: ServiceError, result: Result | None) -> None:
        """Write down that the task has ended without a result."""
        self._move(
            entry,
            State.FAILED,
            result=None if result is None else _written(result),
            reason=error.what(),
            ended=self._clock.wall(),
            owner=None,
        )
        self._run.event(entry, What.FAILED, error.what(), task=_id(entry))

    def _save(self, entry: Entry, source: Result | Task) -> None:
        folder = self._journal.folder
        incoming = folder / FOLDER / INCOMING
        try:
            incoming.mkdir(exist_ok=True)
            try:
                saved = self.download(source, incoming, timeout=self._run.download_timeout)
            except InvalidAddress as error:  # the service gave this address
                raise DownloadFailed(reason=str(error)) from error
            path = folder / f"{entry.stem}{saved.suffix}"
            size, sha256 = _measure(saved)
            saved.replace(path)
            sync_folders(folder)
        except (ServiceError, OSError) as error:
            failure = error if isinstance(error, ServiceError) else _unsaved(error)
            self._put_off(entry, failure, state=State.COMPLETED)
            return
        self._move(
            entry,
            State.DOWNLOADED,
            before=State.COMPLETED,
            path=path.name,
            size=size,
            sha256=sha256,
            reason=None,
            owner=None,
        )
        self._run.event(entry, What.DOWNLOADED, path.name, task=_id(entry), path=path)

    def _put_off(
        self, entry: Entry, error: ServiceError, *, state: State = State.SUBMITTED
    ) -> None:
        self._move(entry, state, before=state, reason=error.what(), owner=None)
        self._run.postpone(entry, error)

    def _move(
        self, entry: Entry, after: State, *, before: State = State.SUBMITTED, **facts: Any
    ) -> None:
        self._journal.move(entry, before, after, by=self._run.runner.name, **facts)

    def _noticed(self, event: Event) -> None:
        if self._callers_hook is not None:
            self._callers_hook(event)
        match event:
            case Polled(result, changed=True):
                self._run.event(self._entry, What.STATUS, str(result.status), task=result.id)
            case WillRetry(what, reason, delay):
                detail = f"{what} is tried again in {delay:.0f} s: {reason}"
                self._run.event(self._entry, What.RETRY, detail)
            case Throttled(what, delay):
                detail = f"the service asks to slow down: {what} goes on in {delay:.0f} s"
                self._run.event(self._entry, What.RETRY, detail)
            case _:
                pass
        # A download makes itself known piece by piece, and can be broken off at any of them.
        if self._run.stopping.is_set() and not isinstance(event, Submitted | Ambiguous):
            raise Stopped


def _written(result: Result) -> str:
    """Return what is kept of a result: no link, because its query may hold a signature."""
    kept = {
        "status": result.status,
        "model": result.model,
        "created": result.created,
        "actualDuration": result.actual_duration,
        "totalTokens": result.total_tokens,
        "error": result.error,
    }
    return write_json({name: value for name, value in kept.items() if value is not None}).decode()


def _id(entry: Entry) -> str | None:
    return None if entry.token is None else Task.from_token(entry.token).id


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return os.fstat(file.fileno()).st_size, digest.hexdigest()


def _unsaved(error: OSError) -> DownloadFailed:
    return DownloadFailed(
        reason=f"{error.filename or 'the file system'}: {error.strerror or error}"
    )
