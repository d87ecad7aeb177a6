"""Threads that take turns, none of which waits longer than it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress


class Turns:
    """Gives one thread after the other its turn."""

    def __init__(self) -> None:
        # It knows whose it is: a thread that is interrupted while it waits must not end another's.
        self._lock = threading.RLock()

    @contextmanager
    def within(self, seconds: float) -> Generator[float]:
        """Wait for a turn, which lasts as long as the context. Yield the seconds that are left.

        Raises:
            TimeoutError: It was not this thread's turn within *seconds*.
        """
        ends = time.monotonic() + seconds
        try:
            if not self._lock.acquire(timeout=seconds):
                raise TimeoutError
            yield max(0.0, ends - time.monotonic())
        finally:
            with suppress(RuntimeError):  # it was not ours yet
                self._lock.release()
