"""Slowing down together: one service that is asked too often answers 429 to everybody."""

from __future__ import annotations

import attrs

from muybridge_protocol.delivery import LONGEST_WAIT, POLL, Verdict, backoff, retry_after
from muybridge_protocol.http import HttpResponse

FIRST_GAP = 0.125
"""Seconds between requests after the first 429; each further one doubles them."""
LONGEST_GAP = 8.0
"""Seconds that the gap grows to."""
EASE = 0.95
"""What the gap is multiplied with after each success."""
SMALLEST_GAP = 0.001
"""Seconds below which a gap is none."""


@attrs.define(kw_only=True)
class Throttle:
    """A pause and a gap between requests that all of a fleet share.

    A reply that asks to slow down (status 429, or any other but a success that says
    `Retry-After`) stops everything for as long as it says, and doubles the gap between requests.
    Each success after that makes the gap a little smaller, until there is none. Replies to
    requests that were sent before the last slow-down change nothing but the pause: they tell
    nothing about the new pace.

    Args:
        seed: A number drawn at random; pauses that no reply asks for follow from it.
        gap: Seconds between requests; 0 where there is no need.
        until: When the next request may be sent, on the driver's clock.
        slowed: When the gap last grew, on the driver's clock.
        refusals: How often it grew since it was last none.
    """

    seed: int
    gap: float = 0.0
    until: float = float("-inf")
    slowed: float = float("-inf")
    refusals: int = 0

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
            self._ease(sent)
            return
        asked = retry_after(response)
        if verdict is Verdict.THROTTLED or asked is not None:
            self._slow(asked, sent, now)

    def _slow(self, asked: float | None, sent: float, now: float) -> None:
        if sent >= self.slowed:
            self.refusals += 1
            self.gap = min(LONGEST_GAP, max(FIRST_GAP, self.gap * 2))
            self.slowed = now
            if asked is None:
                asked = backoff(self.seed, self.refusals)
        self.until = max(self.until, now + max(self.gap, min(asked or 0.0, LONGEST_WAIT)))

    def _ease(self, sent: float) -> None:
        if self.gap and sent >= self.slowed:
            self.gap *= EASE
            if self.gap < SMALLEST_GAP:
                self.gap = 0.0
                self.refusals = 0
