"""Fleets that need a permit for each request, because others send at the same rate."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest

from muybridge_protocol.families import ImgaRequest
from muybridge_protocol.fleet import Busy, Dispatch, Done, Fleet
from muybridge_protocol.fleet.fleet import seed_of
from muybridge_protocol.operations import Create, Poll, Wait

from .driving import SEEDED, SERVICE, WALL, reply
from .fleets import known_task

HORSE = ImgaRequest(model="imga", prompt="a horse")


def fleet(requests: int, *, connections: int = 8, shares_rate: bool = True) -> Fleet[int]:
    """Return a fleet with so many requests to create."""
    made: Fleet[int] = Fleet(
        SERVICE,
        wall_offset=WALL,
        concurrency=100,
        connections=connections,
        shares_rate=shares_rate,
        **SEEDED,
    )
    for number in range(requests):
        made.add(number, HORSE, 0.0)
    return made


def dispatch(made: Fleet[int], now: float) -> Dispatch[int]:
    """Return the request that is sent at *now*."""
    action = made.next_action(now)
    assert isinstance(action, Dispatch)
    return action


def test_nothing_is_sent_without_a_permit() -> None:
    """A fleet without permits waits until now, so that its driver asks for some."""
    made = fleet(3)
    assert made.wanted_permits(0.0) == 3
    assert made.next_action(0.0) == Wait(0.0)
    assert made.under_way == 0


def test_permits_are_used_at_their_times() -> None:
    """Each permit sends one request, the first one at its time, each later one after the gap."""
    made = fleet(3)
    made.allow(2, 0.0, at=5.0, interval=2.0)
    assert made.wanted_permits(0.0) == 0
    assert made.next_action(4.9) == Wait(5.0)
    dispatch(made, 5.0)
    assert made.next_action(5.0) == Wait(7.0)
    dispatch(made, 7.0)
    assert made.next_action(7.0) == Wait(7.0), "both permits are used"
    assert made.under_way == 2


def test_none_are_asked_for_in_vain() -> None:
    """No permit is asked for that could not be used now: they lapse, and others want them."""
    assert fleet(3, shares_rate=False).wanted_permits(0.0) == 0
    assert fleet(0).wanted_permits(0.0) == 0
    assert fleet(0).next_action(0.0) == Done()
    full = fleet(3, connections=1)
    full.allow(1, 0.0, at=0.0, interval=0.0)
    dispatch(full, 0.0)
    assert full.wanted_permits(9.0) == 0
    assert full.next_action(9.0) == Busy()
    stopped = fleet(3)
    stopped.stop()
    assert stopped.wanted_permits(0.0) == 0


def test_none_are_asked_for_before_something_falls_due() -> None:
    """A task that is polled later wants no permit now, and one when its time has come."""
    made = fleet(0)
    made.add(0, known_task("t1", "imga"), 0.0)
    wait = made.next_action(0.0)
    assert isinstance(wait, Wait)
    assert wait.until > 0
    assert made.wanted_permits(wait.until - 0.001) == 0
    assert made.wanted_permits(wait.until) == 1


def test_none_are_asked_for_during_a_pause() -> None:
    """While the service has asked for a pause, nobody takes a permit; at its end, they do."""
    made = fleet(3)
    made.allow(1, 0.0, at=0.0, interval=0.0)
    made.receive(dispatch(made, 0.0).ticket, reply(429, Retry_After="30"), 0.0)
    paused = made.paused_until
    assert paused >= 30
    assert made.wanted_permits(paused - 0.001) == 0
    assert made.next_action(paused - 0.001) == Wait(paused)
    assert made.wanted_permits(paused) > 0


def test_a_pause_until_a_date() -> None:
    """The end of a pause may be a date, by this machine's clock at the time of the response."""
    made = fleet(1, shares_rate=False)
    asked = reply(429, Retry_After=formatdate(WALL + 5060, usegmt=True))
    made.receive(dispatch(made, 5000.0).ticket, asked, 5000.0)
    assert made.paused_until == 5060.0


def test_none_are_asked_for_before_an_outcome_is_taken() -> None:
    """What has ended is handed over first, which may end the whole run."""
    made = fleet(2)
    made.allow(1, 0.0, at=0.0, interval=0.0)
    made.receive(dispatch(made, 0.0).ticket, reply(401), 0.0)
    assert made.wanted_permits(9.0) == 0
    made.next_action(9.0)
    assert made.wanted_permits(9.0) == 1


def test_permits_mean_nothing_without_a_shared_rate() -> None:
    """A fleet that sends at a rate of its own ignores them."""
    made = fleet(1, shares_rate=False)
    made.allow(1, 0.0, at=99.0, interval=0.0)
    dispatch(made, 0.0)


@pytest.mark.parametrize(("work", "kind"), [(HORSE, Create), (known_task("t1", age=99.0), Poll)])
def test_the_operation_of_a_ticket(work: Any, kind: type[Create | Poll]) -> None:
    """A driver can see which operation it sends a request for."""
    made = fleet(0, shares_rate=False)
    made.add(0, work, 0.0)
    sent = dispatch(made, 0.0)
    assert type(made.operation_of(sent.ticket)) is kind


def test_seeds_are_numbers_of_64_bits() -> None:
    """However large the fleet's own seed is; and odd ones stay odd."""
    assert seed_of(2**64 - 1, 1) == 0x9E3779B97F4A7C15 - 1
    assert seed_of(0, 1) == 0x9E3779B97F4A7C15
