"""The two clocks that a driver needs, and a way to wait.

`Client(clock=...)` takes any `Clock`. `muybridge.testing` has two for tests.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits. Safe to use from many threads."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes backwards."""
        ...

    def wall(self) -> float:
        """Return the time in Unix seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes backwards."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the time in Unix seconds."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        time.sleep(seconds)
