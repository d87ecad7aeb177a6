"""Slowing down together, to the number."""

from __future__ import annotations

from math import inf

import attrs
import pytest

from muybridge_protocol.delivery import backoff
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.throttle import Throttle

from .driving import reply


def told(throttle: Throttle, response: HttpResponse, *, sent: float, now: float) -> Throttle:
    """Return what *throttle* becomes; it is left as it was."""
    after = attrs.evolve(throttle)
    after.heard(response, sent=sent, now=now)
    return after


def slowed(times: int = 1) -> Throttle:
    """Return a throttle that was asked to slow down at 1, 2, ... seconds, for no time."""
    throttle = Throttle(seed=0)
    for now in range(1, times + 1):
        throttle.heard(reply(429, Retry_After="0"), sent=now, now=now)
    return throttle


def test_nothing_is_held_back_at_first() -> None:
    """A throttle that has heard nothing, or only good of the service, holds nothing back."""
    throttle = Throttle(seed=0)
    throttle.sent(5.0)
    throttle.heard(reply(200), sent=5.0, now=6.0)
    for status in (404, 500, 503):
        throttle.heard(reply(status), sent=6.0, now=7.0)
    throttle.heard(reply(200, Retry_After="60"), sent=7.0, now=8.0)
    assert throttle == Throttle(seed=0, gap=0.0, until=-inf, slowed=-inf, refusals=0)


def test_each_refusal_doubles_the_gap() -> None:
    """The gap is an eighth of a second after the first refusal, and doubles up to 8 seconds."""
    assert [slowed(times).gap for times in range(1, 9)] == [0.125, 0.25, 0.5, 1, 2, 4, 8, 8]
    assert [slowed(times).refusals for times in range(1, 9)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert slowed(3).slowed == 3
    assert slowed(3).until == 3.5


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_a_pause_that_no_reply_asks_for_is_drawn(seed: int) -> None:
    """Without Retry-After the pause is drawn anew for each refusal, and is no less than the gap."""
    throttle = Throttle(seed=seed)
    for refusal in range(1, 6):
        now = 1000.0 * refusal
        throttle.heard(reply(429), sent=now, now=now)
        pause = max(throttle.gap, backoff(seed, refusal))
        assert throttle.until == now + pause


@pytest.mark.parametrize(("asked", "pause"), [("0", 0.125), ("7", 7), ("120", 120), ("500", 120)])
@pytest.mark.parametrize("status", [429, 503, 404])
def test_a_pause_is_as_long_as_is_asked(status: int, asked: str, pause: float) -> None:
    """Whatever the status, Retry-After is obeyed up to two minutes, and is no less than the gap."""
    throttle = told(Throttle(seed=0), reply(status, Retry_After=asked), sent=0.0, now=10.0)
    assert throttle.until == 10 + pause
    assert throttle.gap == 0.125


def test_a_pause_is_never_cut_short() -> None:
    """What was asked for stands, whatever is heard or sent later."""
    throttle = told(Throttle(seed=0), reply(429, Retry_After="60"), sent=0.0, now=0.0)
    throttle.heard(reply(429, Retry_After="1"), sent=5.0, now=5.0)
    assert throttle.until == 60
    throttle.sent(50.0)
    assert throttle.until == 60
    throttle.sent(60.0)
    assert throttle.until == 60.25


def test_what_was_sent_before_says_nothing_of_the_new_pace() -> None:
    """Replies to older requests move the pause alone, and neither grow the gap nor ease it."""
    throttle = slowed(2)
    late = told(throttle, reply(429), sent=1.5, now=2.5)
    assert late == attrs.evolve(throttle, until=2.75)
    late = told(throttle, reply(429, Retry_After="9"), sent=1.5, now=2.5)
    assert late == attrs.evolve(throttle, until=11.5)
    assert told(throttle, reply(200), sent=1.5, now=2.5) == throttle
    assert told(throttle, reply(429), sent=2.0, now=2.5).gap == 0.5


def test_a_success_eases() -> None:
    """Each success makes the gap a twentieth smaller, until it is none and all begins anew."""
    throttle, wanted = slowed(2), 0.25
    assert told(throttle, reply(200), sent=2.0, now=2.5).gap == 0.25 * 0.95
    while wanted >= 0.001:
        assert (throttle.gap, throttle.refusals) == (wanted, 2)
        throttle.heard(reply(200), sent=3.0, now=4.0)
        wanted *= 0.95
    assert (throttle.gap, throttle.refusals) == (0, 0)
    until = throttle.until
    throttle.sent(1e6)
    assert throttle.until == until
    throttle.heard(reply(429), sent=1e6, now=1e6)
    assert throttle.until == 1e6 + max(0.125, backoff(0, 1))


def test_a_gap_of_a_millisecond_is_one() -> None:
    """Only below a millisecond a gap is none."""
    throttle = Throttle(seed=0, gap=0.001 / 0.95, slowed=0.0, refusals=1)
    assert throttle.gap * 0.95 == 0.001, "the numbers of this test"
    throttle.heard(reply(200), sent=1.0, now=2.0)
    assert throttle.gap == 0.001
