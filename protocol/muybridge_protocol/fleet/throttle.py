"""Slowing down together: one service that is asked too often answers 429 to everybody."""

from __future__ import annotations

import attrs

from muybridge_protocol.delivery import (
    LONGEST_WAIT,
    POLL,
    Verdict,
    backoff,
    fraction,
    retry_after,
)
from muybridge_protocol.http import HttpResponse

FIRST_GAP = 0.125
"""Seconds between requests after the first 429; each further one doubles them."""
LONGEST_GAP = 8.0
"""Seconds that the gap grows to."""
EASE = 0.95
"""What the gap is multiplied with after each success."""
SMALLEST_GAP = 0.001
"""Seconds below which a gap is none."""
OUTAGE = 5.0
"""Seconds with failures alone that make an outage."""


@attrs.define(kw_only=True)
class Throttle:
    """A pause and a gap between requests that all of a fleet share.

    A reply that asks to slow down (status 429, or any other but a success that says
    `Retry-After`) stops everything for as long as it says, and doubles the gap between requests.
    Each success after that makes the gap a little smaller, until there is none. Replies to
    requests that were sent before the last slow-down change nothing but the pause: they tell
    nothing about the new pace.

    During an outage polls that are due may pile up: they wait for the end of a pause, or for
    exchanges that hang. Once the service answers again, `after_outage` spreads them.

    Args:
        seed: A number drawn at random; pauses that no reply asks for follow from it.
        gap: Seconds between requests; 0 where there is no need.
        until: When the next request may be sent, on the driver's clock.
        slowed: When the gap last grew, on the driver's clock.
        refusals: How often it grew since it was last none.
        failing: When the first request was sent of those that have failed since the last success,
            on the driver's clock, or None where none has.
        recovered: When the last outage ended, on the driver's clock.
    """

    seed: int
    gap: float = 0.0
    until: float = float("-inf")
    slowed: float = float("-inf")
    refusals: int = 0
    failing: float | None = None
    recovered: float = float("-inf")

    def sent(self, now: float) -> None:
        """Note that a request is sent."""
        if self.gap:
            self.until = max(self.until, now + self.gap)

    def heard(self, response: HttpResponse, *, sent: float, now: float) -> None:
        """Note the reply to a request.

        Args:
            response: The reply.
            sent: When its request was sent, on the driver's clock.
            now: Seconds on the driver's clock.
        """
        verdict = POLL.judge_status(response.status)
        if verdict is Verdict.ANSWER:
            if sent >= self.slowed:
                self._recover(now)
                self._ease()
            return
        asked = retry_after(response)
        if verdict is Verdict.THROTTLED or asked is not None:
            self._slow(asked, sent, now)
        if verdict in (Verdict.THROTTLED, Verdict.RETRY):
            self.failed(sent=sent)

    def failed(self, *, sent: float) -> None:
        """Note that a request got no response.

        Args:
            sent: When it was sent, on the driver's clock.
        """
        if self.failing is None:
            self.failing = sent

    def after_outage(self, due: float, interval: float, seed: int) -> float:
        """Return when to send a poll that is due.

        Args:
            due: Since when it is due, on the driver's clock.
            interval: Seconds between polls of its task. One that an outage held up is sent
                somewhere in as many seconds after it, as if all had begun at different times.
            seed: Any number; it decides where.
        """
        return due if due >= self.recovered else self.recovered + interval * fraction(seed)

    def _slow(self, asked: float | None, sent: float, now: float) -> None:
        if sent >= self.slowed:
            self.refusals += 1
            self.gap = min(LONGEST_GAP, max(FIRST_GAP, self.gap * 2))
            self.slowed = now
            if asked is None:
                asked = backoff(self.seed, self.refusals)
        self.until = max(self.until, now + max(self.gap, min(asked or 0.0, LONGEST_WAIT)))

    def _recover(self, now: float) -> None:
        if self.failing is not None and now - self.failing >= OUTAGE:
            self.recovered = now
        self.failing = None

    def _ease(self) -> None:
        if self.gap:
            self.gap *= EASE
            if self.gap < SMALLEST_GAP:
                self.gap = 0.0
                self.refusals = 0
