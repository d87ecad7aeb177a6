"""`Lease`: keeps a worker's registration alive, and recovers the items of workers that are dead.

It is a thread, because nothing else may hold it up: neither an event loop that waits for the disk,
nor a hook that takes its time. If the whole process is paused, so is the thread, and the lease runs
out, as it should.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

from muybridge.batch.running.recovery import recover
from muybridge.batch.running.run_state import Run
from muybridge.purchases.errors import Lost, StoreUnusable

_BEATS: Final = 3
"""How often a lease is renewed before it would run out."""


class Lease:
    """The lease of a worker, renewed as long as the context lasts.

    Where owners hold locks, there is nothing to renew, and dead ones are recovered all the same.

    Args:
        run: Its run, which ends if the worker was declared dead, or the store is an older copy.
        seconds: How long the lease holds.
    """

    def __init__(self, run: Run, seconds: float) -> None:
        self._run = run
        self._pause = seconds / _BEATS
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="muybridge-lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=5)  # it may wait for a database that is away

    def _keep(self) -> None:
        batch = self._run.batch
        while not self._ended.wait(self._pause):
            try:
                batch.store.renew()
                recover(batch, self._run.place, but=self._run.runner.name)
            except (Lost, StoreUnusable) as error:
                if isinstance(error, StoreUnusable) and not error.lacks:
                    continue  # it may be back before the lease runs out
                self._run.fail(error)
                return
