"""Slowing down together, to the number."""

from __future__ import annotations

from math import inf

import attrs
import pytest

from muybridge_protocol.delivery import backoff, fraction
from muybridge_protocol.fleet.throttle import Throttle
from muybridge_protocol.http import HttpResponse

from .driving import reply


def told(throttle: Throttle, response: HttpResponse, *, sent: float, now: float) -> Throttle:
    """Return what *throttle* becomes; it is left as it was."""
    after = attrs.evolve(throttle)
    after.record_response(response, sent=sent, now=now)
    return after


def slowed(times: int = 1) -> Throttle:
    """Return a throttle that was asked to slow down at 1, 2, ... seconds, for no time."""
    throttle = Throttle(seed=0)
    for now in range(1, times + 1):
        throttle.record_response(reply(429, Retry_After="0"), sent=now, now=now)
    return throttle


def test_nothing_is_held_back_at_first() -> None:
    """A throttle that has heard nothing, or only good of the service, holds nothing back."""
    throttle = Throttle(seed=0)
    throttle.record_request(5.0)
    throttle.record_response(reply(200), sent=5.0, now=6.0)
    for status in (404, 500, 503):
        throttle.record_response(reply(status), sent=6.0, now=7.0)
    throttle.record_response(reply(200, Retry_After="60"), sent=7.0, now=8.0)
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
        throttle.record_response(reply(429), sent=now, now=now)
        pause = max(throttle.gap, backoff(seed, refusal))
        assert throttle.until == now + pause


@pytest.mark.parametrize(
    ("asked", "pause"),
    [("0", 0.125), ("7", 7), ("6.5", 7), ("120", 120), ("500", 120), ("soon", 20), ("-5", 20)],
)
@pytest.mark.parametrize("status", [429, 503, 404])
def test_a_pause_is_as_long_as_is_asked(status: int, asked: str, pause: float) -> None:
    """Whatever the status, Retry-After is obeyed up to two minutes, and is no less than the gap."""
    throttle = told(Throttle(seed=0), reply(status, Retry_After=asked), sent=0.0, now=10.0)
    assert throttle.until == 10 + pause
    assert throttle.gap == 0.125


def test_a_pause_is_never_cut_short() -> None:
    """What was asked for stands, whatever is heard or sent later."""
    throttle = told(Throttle(seed=0), reply(429, Retry_After="60"), sent=0.0, now=0.0)
    throttle.record_response(reply(429, Retry_After="1"), sent=5.0, now=5.0)
    assert throttle.until == 60
    throttle.record_request(50.0)
    assert throttle.until == 60
    throttle.record_request(60.0)
    assert throttle.until == 60.25


def test_what_was_sent_before_says_nothing_of_the_new_pace() -> None:
    """Responses to older requests move the pause alone, and neither grow the gap nor ease it."""
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
        throttle.record_response(reply(200), sent=3.0, now=4.0)
        wanted *= 0.95
    assert (throttle.gap, throttle.refusals) == (0, 0)
    until = throttle.until
    throttle.record_request(1e6)
    assert throttle.until == until
    throttle.record_response(reply(429), sent=1e6, now=1e6)
    assert throttle.until == 1e6 + max(0.125, backoff(0, 1))


def test_a_gap_of_a_millisecond_is_one() -> None:
    """Only a gap below a millisecond counts as none."""
    throttle = Throttle(seed=0, gap=0.001 / 0.95, slowed=0.0, refusals=1)
    assert throttle.gap * 0.95 == 0.001, "the numbers of this test"
    throttle.record_response(reply(200), sent=1.0, now=2.0)
    assert throttle.gap == 0.001


def failed(*sent: float) -> Throttle:
    """Return a throttle whose requests, sent at these times, have got no response."""
    throttle = Throttle(seed=0)
    for moment in sent:
        throttle.record_failure(sent=moment)
    return throttle


@pytest.mark.parametrize(("answered", "recovered"), [(14.9, -inf), (15.0, 15.0), (99.0, 99.0)])
def test_failures_alone_for_five_seconds_are_an_outage(answered: float, recovered: float) -> None:
    """An outage lasts from the first request that failed to the first one that is answered."""
    throttle = failed(10.0, 12.0, 9.0)
    assert throttle.failing == 10
    throttle.record_response(reply(200), sent=answered - 1, now=answered)
    assert (throttle.failing, throttle.recovered) == (None, recovered)
    throttle.record_response(reply(200), sent=100.0, now=200.0)
    assert throttle.recovered == recovered


@pytest.mark.parametrize(
    ("status", "fails"), [(503, True), (429, True), (404, False), (401, False)]
)
def test_what_counts_as_failing(status: int, *, fails: bool) -> None:
    """A service that refuses one task is there for the others."""
    throttle = told(Throttle(seed=0), reply(status), sent=3.0, now=4.0)
    assert throttle.failing == (3.0 if fails else None)


def test_an_answer_from_before_a_slow_down_ends_no_outage() -> None:
    """An answer to an older request says nothing of how the service is now."""
    throttle = slowed()
    throttle.record_response(reply(200), sent=0.5, now=60.0)
    assert (throttle.failing, throttle.recovered) == (1, -inf)
    throttle.record_response(reply(200), sent=1.0, now=61.0)
    assert (throttle.failing, throttle.recovered) == (None, 61)


def test_polls_that_an_outage_held_up_are_spread() -> None:
    """Each of them is sent within one interval after the outage, and by its seed always then."""
    assert Throttle(seed=0).after_outage(5.0, 30.0, 1) == 5
    throttle = failed(10.0)
    assert throttle.after_outage(20.0, 30.0, 1) == 20
    throttle.record_response(reply(200), sent=99.0, now=100.0)
    assert throttle.after_outage(100.0, 30.0, 1) == 100
    moments = [throttle.after_outage(99.5, 30.0, seed) for seed in range(300)]
    assert min(moments) < 101
    assert max(moments) > 129
    assert all(100 <= moment < 130 for moment in moments)
    assert sum(moment < 115 for moment in moments) in range(130, 170)
    assert throttle.after_outage(20.0, 60.0, 7) == 100 + 60 * fraction(7)
