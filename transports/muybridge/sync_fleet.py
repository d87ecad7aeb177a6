"""`Client.run_all`: one thread that schedules, and a few that exchange requests for replies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from muybridge.announcing import Unfollowed
from muybridge.clock import Clock, SystemClock
from muybridge.fleet_run import INTERRUPTED, Answer, FleetRun, Outcome, check_entered
from muybridge.interrupts import hold_interrupts, tell, waiting_for
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations import Operation, Wait
from muybridge_protocol.tasks import Task

Exchange = Callable[[Operation[Any], HttpRequest, float, Unfollowed], Operation[Any]]
"""Sends a request by a deadline, and tells the operation what came of it."""

_TURN = 1.0
"""Seconds of one wait: on Windows Ctrl-C does not interrupt a longer one."""
_GRACE = 1.0
"""Seconds that queries under way, which cost nothing, have to end when a run is left early."""


class Outcomes:
    """The outcomes of a run as they settle; it lasts as long as the context.

        with client.run_all(requests) as outcomes:
            for outcome in outcomes:
                print(outcome.key, outcome.result or outcome.error)

    A failed task is an outcome like any other. Left early, nothing more is sent; what may be
    charged is heard out, so that its id is known, and an exception that passes through has in
    its notes what is still out. The client's listeners are called by the run's own threads, one
    at a time; what one of them raises ends the run, and is raised by the loop.
    """

    def __init__(self, run: FleetRun, exchange: Exchange, clock: Clock, workers: int) -> None:
        self._run = run
        self._exchange = exchange
        self._clock = clock
        self._jobs: SimpleQueue[Dispatch[int] | None] = SimpleQueue()
        self._changed = threading.Condition()
        """Guards the run; notified whenever something in it has changed."""
        self._scheduler = _thread(self._schedule, "muybridge")
        self._workers = [
            _thread(self._work, f"muybridge-{number}")
            for number in range(min(workers, len(run.fleet)))
        ]
        self._handed_out = False
        self._entered = False
        self._over = False
        self._broken: BaseException | None = None

    @property
    def outstanding(self) -> list[Task]:
        """The tasks that have been accepted and have not ended."""
        with self._changed:
            return self._run.outstanding

    @property
    def unsent(self) -> list[MediaRequest]:
        """The requests that have not been sent."""
        with self._changed:
            return self._run.unsent

    @property
    def unread(self) -> list[Outcome]:
        """The outcomes that the loop has not been given."""
        with self._changed:
            return list(self._run.settled)[self._handed_out :]

    def __enter__(self) -> Self:
        self._entered = True
        try:
            for thread in (*self._workers, self._scheduler):
                thread.start()
        except BaseException:  # there is no thread left, or Ctrl-C was pressed
            self._stop(say=False)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._put_by()
        interrupt: BaseException | None = None
        try:
            with hold_interrupts(when=True) as held:
                self._stop(say=isinstance(error, KeyboardInterrupt))
                with self._changed:
                    self._run.leave()
        except BaseException as impatience:
            self._leave_note(impatience)
            raise
        if held.seen and not isinstance(error, KeyboardInterrupt):
            interrupt = held.interrupt()
        if interrupt is not None or error is not None:
            self._leave_note(interrupt or error)
        if interrupt is not None:
            raise interrupt from error

    def __iter__(self) -> Self:
        check_entered("with", entered=self._entered)
        return self

    def __next__(self) -> Outcome:
        check_entered("with", entered=self._entered)
        with self._changed:
            self._put_by()
            while not (self._run.settled or self._over or self._broken):
                self._changed.wait(_TURN)
            if self._broken is not None:
                raise self._broken
            if not self._run.settled:
                raise StopIteration
            # It stays where it is until the next one is asked for, so that no interruption
            # comes between it and the loop.
            self._handed_out = True
            return self._run.settled[0]

    def _put_by(self) -> None:
        """Let go of the outcome that was handed out last: the loop is done with it."""
        with self._changed:
            if self._handed_out:
                self._handed_out = False
                self._run.settled.popleft()

    def _stop(self, *, say: bool) -> None:
        with self._changed:
            self._run.fleet.stop()
            self._changed.notify_all()
            paid = self._run.fleet.paid
        if paid and say:
            tell(waiting_for(paid))
        while self._scheduler.is_alive():
            self._scheduler.join(_TURN)
        for _ in self._workers:
            self._jobs.put(None)
        end = time.monotonic() + _GRACE
        for worker in filter(threading.Thread.is_alive, self._workers):
            worker.join(max(0.0, end - time.monotonic()))

    def _leave_note(self, error: BaseException | None) -> None:
        with self._changed:
            note = self._run.note()
        if note is not None and error is not None:
            error.add_note(note)

    def _schedule(self) -> None:
        with self._changed:
            try:
                while not self._over:
                    self._step()
            except BaseException as error:  # noqa: BLE001  the loop raises it
                self._broken = error
            self._over = True
            self._changed.notify_all()

    def _step(self) -> None:
        now = self._clock.monotonic()
        match self._run.next_action(now):
            case Dispatch() as job:
                self._jobs.put(job)
            case Wait(until):
                self._wait(until - now)
            case Busy():
                self._changed.wait()
            case Done():
                self._over = True
            case None:
                self._changed.notify_all()

    def _wait(self, seconds: float) -> None:
        """Wait for *seconds*, or until something has changed."""
        if isinstance(self._clock, SystemClock):
            self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
        elif self._run.fleet.under_way:
            self._changed.wait()  # a clock that is made up must not run away from an exchange
        else:
            self._changed.release()
            try:
                self._clock.sleep(max(0.0, seconds))
            finally:
                self._changed.acquire()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not self._tell_sending(job):
                continue
            answer = Answer()
            try:
                self._exchange(
                    answer.as_operation(), job.request, job.deadline, self._run.unfollowed
                )
            except BaseException as error:  # noqa: BLE001  a defect's; the loop raises it
                with self._changed:
                    self._break_off(error)
                if answer.failure is None:
                    answer.fail(INTERRUPTED, self._clock.monotonic())
            with self._changed:
                if not self._over:
                    self._take(job, answer)
                self._changed.notify_all()

    def _tell_sending(self, job: Dispatch[int]) -> bool:
        """Tell that a request is about to be sent, and return whether it is to be."""
        with self._changed:
            try:
                self._run.sending(job, self._clock.monotonic())
            except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
                self._break_off(error)
                return False
        return True

    def _take(self, job: Dispatch[int], answer: Answer) -> None:
        try:
            self._run.take(job, answer, self._clock.monotonic())
        except BaseException as error:  # noqa: BLE001  a listener's; the loop raises it
            self._break_off(error)

    def _break_off(self, error: BaseException) -> None:
        self._broken = self._broken or error
        self._run.fleet.stop()
        self._changed.notify_all()


def _thread(target: Callable[[], None], name: str) -> threading.Thread:
    """Return a thread whose listeners find the caller's context, such as a trace's current span.

    It is a daemon, because a query that hangs must not keep the program from ending.
    """
    run = copy_context().run
    return threading.Thread(target=run, args=(target,), name=name, daemon=True)
