"""Slowing down together: a service that gets too many requests answers 429 to all of them.

A limit belongs to the account, not to one task. If each operation only obeyed its own
`Retry-After`, the others would continue, and all would come back at once. So what one response says
holds for all:

- After a 429, or any response with a `Retry-After`, nothing is sent until that time is over, and
  then one request at a time, with a gap that each further 429 doubles and successes narrow.
- Only responses to requests that were sent after the last slowdown count as news: those that were
  under way already say nothing about the new pace.
- After an outage, the polls that have piled up are spread over their interval, because a service
  that has just come back is the last that should get all of them.
"""

from __future__ import annotations

import attrs

from muybridge_protocol.delivery import (
    LONGEST_BACKOFF,
    LONGEST_WAIT,
    POLL,
    Verdict,
    asks_unclearly,
    backoff,
    fraction,
    retry_after,
)
from muybridge_protocol.http import HttpResponse

FIRST_GAP = 0.125
"""Seconds between requests after the first 429. Each further 429 doubles them."""
LONGEST_GAP = 8.0
"""Longest gap, in seconds."""
EASE = 0.95
"""Factor by which the gap shrinks after each success."""
SMALLEST_GAP = 0.001
"""Shortest gap, in seconds. Anything below counts as 0."""
OUTAGE = 5.0
"""Seconds of nothing but failures that count as an outage."""


@attrs.define(kw_only=True)
class Throttle:
    """A pause, and a gap between requests, that all operations of a fleet share.

    A response that asks to slow down has status 429, or any status except a success and a
    `Retry-After`. It pauses all requests for as long as it says, and doubles the gap between them.
    Each success after that shrinks the gap a little, until it is 0. If a request was sent before
    the last slowdown, its response only affects the pause: it says nothing about the new pace.

    During an outage, due polls may pile up while they wait for the end of a pause or for exchanges
    that hang. Once the service answers again, `after_outage` spreads them.

    Args:
        seed: A random number; pauses without a `Retry-After` derive from it.
        gap: Seconds between requests.
        until: When the next request may be sent, on the driver's clock.
        slowed: When the gap last grew, on the driver's clock.
        refusals: How often the gap has grown since it was last 0.
        failing: When the earliest request that has failed since the last success was sent, on the
            driver's clock, or None.
        recovered: When the last outage ended, on the driver's clock.
    """

    seed: int
    gap: float = 0.0
    until: float = float("-inf")
    slowed: float = float("-inf")
    refusals: int = 0
    failing: float | None = None
    recovered: float = float("-inf")

    def record_request(self, now: float) -> None:
        """Record that a request is sent. After a refusal, the next one keeps a distance."""
        if self.gap:
            self.until = max(self.until, now + self.gap)

    def record_response(
        self, response: HttpResponse, *, sent: float, now: float, wall: float | None = None
    ) -> None:
        """Record the response to a request.

        Args:
            response: The response.
            sent: When its request was sent, on the driver's clock.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment, if they are known.
        """
        verdict = POLL.judge_status(response.status)
        if verdict is Verdict.ANSWER:
            if sent >= self.slowed:
                self._recover(now)
                self._ease()
            return
        pause = retry_after(response, wall)
        if asks_unclearly(response, wall):
            pause = LONGEST_BACKOFF
        if verdict is Verdict.THROTTLED or pause is not None:
            self._slow(pause, sent, now)
        if verdict in (Verdict.THROTTLED, Verdict.RETRY):
            self.record_failure(sent=sent)

    def record_failure(self, *, sent: float) -> None:
        """Record that a request failed.

        Args:
            sent: When it was sent, on the driver's clock.
        """
        if self.failing is None:
            self.failing = sent

    def after_outage(self, due: float, interval: float, seed: int) -> float:
        """Return when to send a poll that is due.

        Args:
            due: When it became due, on the driver's clock.
            interval: Seconds between polls of its task. A poll that an outage delayed is sent at
                some moment within so many seconds after the outage, as if the tasks had started
                at different times.
            seed: Any number; it decides the moment.
        """
        return due if due >= self.recovered else self.recovered + interval * fraction(seed)

    def _slow(self, pause: float | None, sent: float, now: float) -> None:
        if sent >= self.slowed:
            self.refusals += 1
            self.gap = min(LONGEST_GAP, max(FIRST_GAP, self.gap * 2))
            self.slowed = now
            if pause is None:
                pause = backoff(self.seed, self.refusals)
        self.until = max(self.until, now + max(self.gap, min(pause or 0.0, LONGEST_WAIT)))

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
