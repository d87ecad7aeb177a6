"""The two clocks a driver needs, and a way to wait.

`Client(clock=...)` takes any `Clock`. For tests there are two in `muybridge.testing`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits. Safe to use from many threads."""

    def monotonic(self) -> float:
        """Return seconds on a clock that only goes forward."""
        ...

    def wall(self) -> float:
        """Return Unix seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        """Return seconds on a clock that only goes forward."""
        return time.monotonic()

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""
        time.sleep(seconds)
