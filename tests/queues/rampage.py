"""Several Celery workers at once, whose processes are killed and paused until all work is done."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from processes import Nursery

from .strikes import PAUSE, SELF, Strikes
from .workers import kill_all, last_output

PAUSED_FOR: Final = 4.0
"""Seconds, beyond the lease of a worker."""
_TICK: Final = 0.2
_CRASHES: Final = 20


@attrs.frozen
class Row:
    """A row of the table.

    Args:
        run: What was killed.
        items: How many pictures were wanted.
        kills: How many processes were killed.
        pauses: How many were paused.
        charged: How many creates the service has accepted.
        doubles: How many items were paid for more than once.
        lost: How many paid tasks nobody knows.
        ambiguous: How many items are left to a person.
        interrupted: How many of these because a worker died or paused, and not because of a fault.
        in_flight: The most creates that these processes can have had under way.
    """

    run: str
    items: int
    kills: int
    pauses: int
    charged: int
    doubles: int
    lost: int
    ambiguous: int
    interrupted: int
    in_flight: int

    def __str__(self) -> str:
        run, *figures = attrs.astuple(self)
        return f"| {' | '.join([run, *(f'{figure:,}' for figure in figures)])} |"


@attrs.frozen
class Rampage:
    """Workers that are killed and paused.

    Args:
        machines: What forks each worker.
        folder: The folder of the run.
        order: What each worker is told.
        struck: The kills.
    """

    machines: Sequence[Nursery]
    folder: Path
    order: dict[str, Any]
    struck: Strikes

    @property
    def pauses(self) -> int:
        """How many processes were paused."""
        return sum(often for (_, victim), often in self.struck.hits.items() if victim == PAUSE)

    @property
    def kills(self) -> int:
        """How many times a process or a whole worker was killed."""
        return self.struck.hits.total() - self.pauses

    @property
    def processes(self) -> int:
        """How many processes with a turn were killed or paused at most."""
        hits = self.struck.hits.items()
        slots = self.order["slots"]
        return sum(often * (1 if victim in (SELF, PAUSE) else slots) for (_, victim), often in hits)

    def run(self, tend: Callable[[], bool]) -> None:
        """Keep the workers at work.

        Args:
            tend: Called again and again; returns whether all work is done.
        """
        over = threading.Event()
        leaders: list[int] = []
        crashes: list[object] = []

        def keep(machine: Nursery) -> None:
            while not over.is_set() and len(crashes) <= _CRASHES:
                leaders.append(machine.start(**self.order))
                ended = machine.wait()
                if ended != -signal.SIGKILL:
                    crashes.append(ended)

        threads = [threading.Thread(target=keep, args=(machine,)) for machine in self.machines]
        for thread in threads:
            thread.start()
        awake: list[tuple[float, int]] = []
        try:
            while not tend():
                assert len(crashes) <= _CRASHES, last_output(self.folder)
                awake += [
                    (time.monotonic() + PAUSED_FOR, process)
                    for process in self.struck.paused[len(awake) :]
                ]
                for moment, process in awake:
                    if moment < time.monotonic():
                        with suppress(ProcessLookupError):
                            os.kill(process, signal.SIGCONT)
                time.sleep(_TICK)
        finally:
            over.set()
            while any(thread.is_alive() for thread in threads):
                # A killed parent has left its children behind.
                for leader in leaders:
                    kill_all(leader)
                for thread in threads:
                    thread.join(_TICK)
            for leader in leaders:
                kill_all(leader)
