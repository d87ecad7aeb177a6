"""One thread of a run: it does for one item after another what `ItemWork` asks for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import attrs

from muybridge.batch.item_work import Await, Block, Finish, ItemWork, Job, Save, Steps
from muybridge.batch.journal_errors import ClaimLost
from muybridge.batch.run_state import Run, Stopped
from muybridge.client import Client
from muybridge.clock import Clock
from muybridge.drivers import blocking
from muybridge.drivers.blocking import BlockingRuntime, BlockingTransport
from muybridge.interrupts import raised_by_handler
from muybridge.wire.transport import StreamedReply, Transport
from muybridge_protocol.http import HttpRequest

_LONGEST_SLEEP = 0.25
"""Seconds after which a worker that waits looks whether it is to stop."""


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


class StoppableTransport:
    """A transport for one thread, whose exchange another thread can break off unless it is paid.

    Args:
        transport: What sends requests.
        stopping: Set when nothing more is to be sent.
    """

    def __init__(self, transport: Transport, stopping: threading.Event) -> None:
        self._transport = transport
        self._stopping = stopping
        self._stream: object = None

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> AbstractContextManager[StreamedReply]:
        """Send *request* and hand over its reply.

        Raises:
            Stopped: The run is to stop.
        """
        stream = self._transport.stream(request, timeout=timeout, authorization=authorization)
        self._stream = None if request.paid else stream
        if self._stopping.is_set() and not request.paid:
            raise Stopped
        return stream

    def break_off(self) -> None:
        """End the exchange under way, if it is not paid and the transport can do that."""
        abort: Callable[[], None] | None = getattr(self._stream, "abort", None)
        if abort is not None:
            abort()

    def close(self) -> None:
        """Leave the connections to the client."""


class Worker(Client):
    """The caller's client, in one thread, with the journal kept around all that it does.

    Args:
        client: The caller's client, whose connections and key it shares.
        run: What the workers share.
    """

    def __init__(self, client: Client, run: Run) -> None:
        self._join(client)
        self._run = run
        driver = self._driver
        transport, runtime = driver.transport, driver.runtime
        assert isinstance(transport, BlockingTransport)  # noqa: S101  a client's are blocking
        assert isinstance(runtime, BlockingRuntime)  # noqa: S101  the same
        self._work = ItemWork(
            run,
            self._calls,
            lambda: {"now": runtime.now(), "wall": runtime.wall()},
            driver.listeners,
        )
        self._transport = StoppableTransport(transport.transport, run.stopping)
        driver = attrs.evolve(
            driver,
            transport=BlockingTransport(self._transport),
            runtime=BlockingRuntime(PatientClock(runtime.clock, run.stopping)),
            listeners=self._work.listeners,
        )
        self._bind(self._calls, driver, owns_transport=False)
        self._ended = False
        self._at_work = threading.Lock()
        self._at_work.acquire()

    @property
    def pays(self) -> bool:
        """Whether a paid request is under way."""
        return self._work.pays

    def break_off(self) -> None:
        """End what is under way and costs nothing. The run is to stop."""
        self._transport.break_off()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until it has come to its end, but no longer than *seconds*; return whether it has.

        It uses no `Event`: a signal handler that raises within its `wait` may leave a RuntimeError
        in place of what it has raised. Nor does it use `Thread.join`: after Ctrl-C older Pythons
        take every thread for ended.
        """
        return self._ended or self._at_work.acquire(timeout=seconds)

    def work(self) -> None:
        """Work on item after item until there is nothing left that this run can do."""
        try:
            while (entry := self._run.take()) is not None:
                try:
                    self._carry_out(self._work.steps(entry))
                except ClaimLost:
                    self._run.tried.add(entry.number)
        except Stopped:
            pass
        except BaseException as error:  # noqa: BLE001  it is raised again in the caller's thread
            self._run.fail(error)
        finally:
            self._ended = True
            self._at_work.release()

    def _carry_out(self, steps: Steps) -> None:
        try:
            job = next(steps)
            while True:
                try:
                    told = self._do(job)
                except Exception as error:
                    if raised_by_handler(error):
                        raise
                    job = steps.throw(error)
                else:
                    job = steps.send(told)
        except StopIteration:
            pass

    def _do(self, job: Job) -> Any:
        match job:
            case Finish(create):
                return blocking.run(self._driver.finish, create)
            case Await(task):
                return self.wait(task, timeout=self._run.wait_timeout)
            case Save(source, folder):
                return self.download(source, folder, timeout=self._run.download_timeout)
            case Block(function):
                return function()
