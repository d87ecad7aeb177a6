"""`run_trio`: the same under trio, with one nursery in place of threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import attrs
import trio

from muybridge.batch.events import BatchEvent, Report
from muybridge.batch.item_work import Await, Block, Finish, ItemWork, Job, Save, Steps
from muybridge.batch.items import Source
from muybridge.batch.journal import PATIENCE
from muybridge.batch.journal_errors import ClaimLost
from muybridge.batch.opening import CONCURRENCY, HOW_TO_GO_ON, Settings, opened, status
from muybridge.batch.run_state import Run, Stopped
from muybridge.drivers.on_trio import TrioRuntime
from muybridge.interrupts import raised_by_handler
from muybridge.trio_client import TrioClient
from muybridge_protocol.operations.download import DOWNLOAD_TIMEOUT
from muybridge_protocol.operations.poll import WAIT_TIMEOUT


async def run_trio(
    client: TrioClient,
    source: Source | None,
    out: str | os.PathLike[str],
    *,
    concurrency: int = CONCURRENCY,
    timeout: float | None = WAIT_TIMEOUT,  # noqa: ASYNC109  of each task, not of this call
    download_timeout: float = DOWNLOAD_TIMEOUT,
    on_event: Callable[[BatchEvent], None] | None = None,
    local: bool = False,
    patience: float = PATIENCE,
) -> Report:
    """Do under trio what `run` does, with the same arguments and errors.

    Cancelled, it lets the paid requests under way come to their replies, which are in the journal
    then; the same call goes on. The journal is written in this thread, because between a reply and
    its place on the disk there must be no checkpoint: that takes some milliseconds each time.

    Args:
        client: The client to use.
        source: A file, requests, or objects as they stand in a file; or None to go on.
        out: The folder of the batch.
        concurrency: How many tasks there may be at once.
        timeout: Seconds to wait for a task, or None for no limit.
        download_timeout: Seconds that a download may take.
        on_event: Called with each event.
        local: Whether the service is an embedded one, which knows nothing of earlier runs.
        patience: Seconds to wait for another process that is writing to the journal.

    Raises:
        InvalidBatch: Some items are not valid. Nothing was sent.
        JournalUnusable: The journal cannot be used; `WrongService` if its tasks are elsewhere.
        ValueError: The concurrency is below 1, or *local* is said of a service elsewhere.
        OSError: The file cannot be read.
    """
    TrioRuntime(time.time).now()  # raises outside of trio, before there is a journal
    settings = Settings(
        concurrency=concurrency,
        timeout=timeout,
        download_timeout=download_timeout,
        on_event=on_event,
        local=local,
        patience=patience,
    )
    with opened(client.service, source, out, settings) as shared:
        workers = [_TrioWorker(client, shared) for _ in range(shared.workers)]
        try:
            async with trio.open_nursery() as nursery:
                for worker in workers:
                    nursery.start_soon(worker.work, nursery.cancel_scope)
        except BaseExceptionGroup as group:
            # The workers keep their own errors: what comes here is Ctrl-C, or from outside.
            if group.subgroup(KeyboardInterrupt) is None:
                raise
            interrupt = KeyboardInterrupt()
            interrupt.add_note(HOW_TO_GO_ON)
            raise interrupt from None
    await trio.lowlevel.checkpoint()
    return attrs.evolve(status(out), stopped=shared.stopped)


class _TrioWorker(TrioClient):
    """The caller's client, in one of its tasks, with the journal kept around all that it does."""

    def __init__(self, client: TrioClient, run: Run) -> None:
        self._join(client)
        self._run = run
        self._work = ItemWork(run, self._calls, self._moment, self._driver.listeners)
        self._driver = attrs.evolve(self._driver, listeners=self._work.listeners)

    async def work(self, scope: trio.CancelScope) -> None:
        """Work on item after item until there is nothing left that this run can do.

        Args:
            scope: Of all workers. It is cancelled where the run has to stop.
        """
        try:
            while (entry := await trio.to_thread.run_sync(self._run.take)) is not None:
                try:
                    await self._carry_out(self._work.steps(entry))
                except ClaimLost:
                    self._run.tried.add(entry.number)
        except trio.Cancelled:
            raise
        except Stopped:
            scope.cancel()
        except BaseException as error:  # noqa: BLE001  it is raised again by whoever opened the batch
            self._run.fail(error)
            scope.cancel()

    async def _carry_out(self, steps: Steps) -> None:
        try:
            job = next(steps)
            while True:
                try:
                    told = await self._do(job)
                except Exception as error:
                    if raised_by_handler(error):
                        raise
                    job = steps.throw(error)
                else:
                    job = steps.send(told)
        except StopIteration:
            pass

    async def _do(self, job: Job) -> Any:
        match job:
            case Finish(create):
                return await self._driver.finish(create)
            case Await(task):
                return await self.wait(task, timeout=self._run.wait_timeout)
            case Save(source, folder):
                return await self.download(source, folder, timeout=self._run.download_timeout)
            case Block(function):
                return await trio.to_thread.run_sync(function)
