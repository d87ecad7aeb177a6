"""Clocks for tests, in which hours of polling take milliseconds."""

from __future__ import annotations

import threading
import time


class VirtualClock:
    """A `Clock` that advances only when somebody waits. Safe to use from many threads.

    `Client(clock=VirtualClock())` never really waits; `monotonic` then says how long it would
    have taken. Use it with a `FakeTransport`: over real sockets, where responses take real time,
    use `SkippingClock`. Under trio, `trio.testing.MockClock` does the same.

    Args:
        wall: The start of its wall clock, in Unix seconds.
        tick: Seconds that pass each time it is read.
    """

    def __init__(self, *, wall: float = 1_800_000_000.0, tick: float = 0.0) -> None:
        self._epoch = wall
        self._tick = tick
        self._elapsed = 0.0
        self._lock = threading.Lock()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass.

        Raises:
            ValueError: They are negative.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        with self._lock:
            self._elapsed += seconds

    def monotonic(self) -> float:
        """Return the seconds since the beginning. Each look takes one tick."""
        self.advance(self._tick)
        return self._elapsed

    def wall(self) -> float:
        """Return Unix seconds."""
        return self._epoch + self._elapsed

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass at once.

        Raises:
            ValueError: They are negative.
        """
        self.advance(seconds)


class SkippingClock:
    """A `Clock` that is the machine's, except that waiting takes no time.

    Over real sockets the machine's time must pass, or a response would be late before it was
    sent. Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._skipped = VirtualClock(wall=0.0)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds, and those that were skipped."""
        return time.monotonic() + self._skipped.elapsed

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time() + self._skipped.elapsed

    def sleep(self, seconds: float) -> None:
        """Skip *seconds*.

        Raises:
            ValueError: They are negative.
        """
        self._skipped.advance(seconds)
