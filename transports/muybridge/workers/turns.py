"""What follows a turn at a batch, and what the log says about it."""

from __future__ import annotations

import logging
from typing import Final

import attrs

from muybridge.batch.events import BatchEvent, What
from muybridge.batch.shared import SharedReport
from muybridge.batch.storable_values import one_line
from muybridge_protocol.purchases import Stage

PAUSE: Final = 60
"""Seconds until the next turn, if this one could not do anything more."""
_IN_PROGRESS: Final = (Stage.CLAIMED, Stage.ARMED, Stage.SUBMITTED, Stage.COMPLETED)
_PROBLEMS: Final = frozenset({What.FAILED, What.REFUSED, What.AMBIGUOUS})
_LOG: Final = logging.getLogger("muybridge.batch")


def delay_after(report: SharedReport, *, timed_out: bool) -> int | None:
    """Return the seconds until the next turn, or None if only a person can continue the batch.

    A turn costs nothing as long as nothing can be sent. So whatever stopped one is tried again
    later, except for a budget: creating more tasks is up to the person who set it.

    Args:
        report: What the turn reported.
        timed_out: Whether it ended because its time was up.
    """
    creating = Stage.QUEUED in report.counts and not report.over_budget
    if not creating and not any(map(report.counts.get, _IN_PROGRESS)):
        return None
    stopped = report.stopped and not report.over_budget
    return 0 if timed_out and not stopped else PAUSE


@attrs.define
class TurnLog:
    """Logs what happens to a batch in a turn.

    Args:
        batch: The name of the batch.
        postponed: Why an item was last postponed, or "".
    """

    batch: str
    postponed: str = ""

    def event(self, event: BatchEvent) -> None:
        """Log why an item failed, was refused or became ambiguous."""
        if event.what is What.POSTPONED:
            self.postponed = event.detail
        elif event.what in _PROBLEMS:
            item = one_line(f"{event.item} ({event.name})" if event.name else f"{event.item}")
            _LOG.warning("Batch %r, item %s: %s: %s", self.batch, item, event.what, event.detail)

    def end(self, report: SharedReport, delay: int | None) -> None:
        """Log how the turn ended.

        Args:
            report: What it reported.
            delay: Seconds until the next turn, or None if there is none.
        """
        counts = ", ".join(f"{count} {state}" for state, count in report.counts.items())
        _LOG.info("Batch %r, at the end of a turn: %s", self.batch, counts)
        if delay:
            reason = report.stopped or self.postponed or "No unfinished item made progress."
            self.away(reason, delay)
        elif delay is None and Stage.QUEUED in report.counts:
            self.stopped(report.stopped)
        elif delay is None and Stage.AMBIGUOUS in report.counts:
            _LOG.warning(
                "Batch %r: %d items need your decision. Check your account, then run: "
                "muybridge decide --batch BATCH ITEM",
                self.batch,
                report.counts[Stage.AMBIGUOUS],
            )

    def away(self, reason: object, delay: int) -> None:
        """Log why the batch pauses until the next turn, which is in *delay* seconds."""
        _LOG.warning("Batch %r continues in %d s: %s", self.batch, delay, reason)

    def stopped(self, reason: object) -> None:
        """Log why there is no next turn, and how to continue."""
        _LOG.error(
            "Batch %r stops until you fix this and call take_turn.delay(%r): %s",
            self.batch,
            self.batch,
            reason,
        )
