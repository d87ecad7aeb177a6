"""Permits to send, for a fleet that shares its rate with fleets on other machines."""

from __future__ import annotations

import attrs

PORTION = 1.0
"""Seconds for which a portion of permits is meant to last."""


@attrs.define(kw_only=True)
class Allowance:
    """The permits that a fleet has, and how many it asks for.

    Each request uses one permit. Permits come in portions, so that asking for them costs little
    beside sending. How many a fleet needs shows in how fast it uses them: if a portion is used up
    sooner than planned, the next one is twice as large; if some of it lapses, the next one is as
    large as what was used. Permits that nobody uses are lost to everybody, so they lapse soon and
    no more are asked for than that.

    Args:
        left: How many permits are left.
        at: When the next one may be used, on the driver's clock.
        interval: Seconds between two of them.
        granted: When the portion was granted.
        size: How many permits it had.
        lapses: When those that are left lapse.
    """

    left: int = 0
    at: float = float("-inf")
    interval: float = 0.0
    granted: float = float("-inf")
    size: int = 0
    lapses: float = float("-inf")

    def wanted(self, due: int, now: float) -> int:
        """Return how many permits to ask for, or 0 while some are left.

        Args:
            due: How many operations are due.
            now: Seconds on the driver's clock.
        """
        if self.left and now < self.lapses:
            return 0
        used = self.size - self.left
        if not self.left and now < self.granted + PORTION:
            used *= 2
        return max(1, due, used)

    def grant(self, count: int, at: float, interval: float, now: float) -> None:
        """Take a new portion.

        Args:
            count: How many permits it has.
            at: When the first one may be used, on the driver's clock.
            interval: Seconds between two of them.
            now: Seconds on the driver's clock.
        """
        self.left = self.size = count
        self.at, self.interval, self.granted = at, interval, now
        self.lapses = max(at, now) + count * interval + PORTION

    def use(self) -> None:
        """Use the next permit."""
        self.left -= 1
        self.at += self.interval
