"""`Lease`: keeps a worker's registration alive, and recovers the items of workers that are dead.

It is a thread with a journal of its own, because nothing else may hold it up: neither an event loop
that waits for the disk, nor a hook that takes its time. If the whole process is paused, so is the
thread, and the lease runs out, as it should.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from types import TracebackType
from typing import Self

from muybridge.batch.journal_errors import ClaimLost, JournalOutdated, JournalUnusable
from muybridge.batch.port import Journal, SharedJournal

_BEATS = 3
"""How often a lease is renewed before it would run out."""


class Lease:
    """The lease of a worker, renewed as long as the context lasts.

    Args:
        journal: The batch's journal.
        worker: The worker, registered.
        recover: Recovers the items of dead workers, given a journal.
        lost: Called by the thread if the worker was declared dead, or the journal is an older copy.
    """

    def __init__(
        self,
        journal: SharedJournal,
        worker: str,
        recover: Callable[[Journal], object],
        lost: Callable[[ClaimLost | JournalOutdated], None],
    ) -> None:
        self._journal = journal
        self._worker = worker
        self._recover = recover
        self._lost = lost
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
        pause = (self._journal.lease or 0) / _BEATS
        while not self._ended.is_set():
            try:
                with closing(self._journal.reopen()) as mine:
                    while not self._ended.wait(pause):
                        mine.renew(self._worker)
                        self._recover(mine)
            except (ClaimLost, JournalOutdated) as error:
                self._lost(error)
                return
            except JournalUnusable:
                self._ended.wait(pause)  # it may be back before the lease runs out
