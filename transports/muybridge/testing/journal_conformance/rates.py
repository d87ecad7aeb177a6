"""All workers of a batch share one request rate."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Final

from muybridge.testing.journal_conformance.any_journal import AnyJournal, at_once, refused
from muybridge.testing.journal_conformance.lessons import RATE

_SLOW: Final = 0.001
"""Requests a second, so few that the duration of a test does not matter."""


class Rates(AnyJournal):
    """The checks of permits and pauses."""

    def test_without_a_rate_everybody_may_send(self) -> None:
        """As long as no rate is set, as many permits are given as are wanted, and at once."""
        journal = self._journal(1)
        for wanted in (1, 1000):
            permits = journal.acquire_permits(wanted)
            facts = (permits.count, permits.after, permits.interval)
            RATE.equal(facts, (wanted, 0, 0), f"{wanted} permits at once")

    def test_each_permit_is_given_once(self) -> None:
        """However many processes acquire permits at the same time, no two get the same one."""
        journal = self._journal(1)
        journal.limit_rate(_SLOW)
        places: list[int] = []

        def acquire(_: str) -> None:
            with closing(self.reopen(journal)) as mine:
                for _time in range(3):
                    permits = mine.acquire_permits(5)
                    places.append(round(permits.after * _SLOW))

        at_once(acquire, ["a", "b", "c", "d"])
        RATE.require(sorted(places) == [*range(12)], "12 permits, one after the other", places)

    def test_a_pause_holds_for_everybody(self) -> None:
        """Nobody gets a permit before a pause has ended. A shorter one does not cut it short."""
        journal = self._journal(1)
        with closing(self.reopen(journal)) as other:
            journal.throttle(10_000)
            journal.throttle(5_000)
            for rate in (math.inf, _SLOW):
                journal.limit_rate(rate)
                after = other.acquire_permits(1).after
                RATE.require(9_000 < after <= 10_000, "10,000 seconds", after)  # noqa: PLR2004  less the test's

    def test_a_rate_may_be_changed_and_lifted(self) -> None:
        """The last rate that was set is the rate, and infinity is none."""
        journal = self._journal(1)
        for rate in (0, -1, math.nan):
            with refused(ValueError, RATE, f"a rate of {rate}"):
                journal.limit_rate(rate)
        journal.limit_rate(1)
        journal.limit_rate(1_000)
        permits = journal.acquire_permits(7)
        RATE.equal((permits.count, permits.interval), (7, 0.001), "7 permits, a millisecond apart")
        journal.limit_rate(math.inf)
        RATE.equal(journal.acquire_permits(5_000).count, 5_000, "5,000 permits")
