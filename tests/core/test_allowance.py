"""Permits: a fleet that shares its rate sends only with them, and asks for as many as it uses."""

from __future__ import annotations

from math import inf

import pytest

from muybridge_protocol.families.imgb import ImgbRequest
from muybridge_protocol.fleet import Dispatch, Fleet
from muybridge_protocol.fleet.allowance import Allowance
from muybridge_protocol.operations import Wait
from muybridge_protocol.service import Service

from .driving import reply


def fleet_of(creates: int, *, shares_rate: bool = True, connections: int = 8) -> Fleet[int]:
    fleet: Fleet[int] = Fleet(
        Service(base_url="https://api.test"),
        wall_offset=0.0,
        seed=1,
        connections=connections,
        shares_rate=shares_rate,
    )
    for key in range(creates):
        fleet.add(key, ImgbRequest(model="imgb-2", prompt="a horse"), 0.0)
    return fleet


def test_there_are_none_at_first() -> None:
    """An allowance begins without permits, with nothing used and nothing to lapse."""
    assert Allowance() == Allowance(
        left=0, at=-inf, interval=0.0, granted=-inf, size=0, lapses=-inf
    )


def test_nothing_is_sent_without_permits() -> None:
    """A fleet that shares its rate sends one request for each permit, at its time."""
    fleet = fleet_of(3)
    assert (fleet.next_action(0.0), fleet.wanted_permits(0.0)) == (Wait(0.0), 3)
    fleet.allow(2, 0.0, at=1.0, interval=0.5)
    assert fleet.wanted_permits(0.0) == 0
    assert fleet.next_action(0.0) == Wait(1.0)
    assert isinstance(fleet.next_action(1.0), Dispatch)
    assert fleet.next_action(1.0) == Wait(1.5)
    assert isinstance(fleet.next_action(1.5), Dispatch)
    assert (fleet.next_action(1.5), fleet.wanted_permits(1.5)) == (Wait(1.5), 2)
    assert fleet.under_way == 2


def test_permits_lapse() -> None:
    """A permit that is not used within a second of the last one's time is not used at all."""
    fleet = fleet_of(2)
    fleet.allow(2, 0.0, at=1.0, interval=0.5)
    assert fleet.wanted_permits(2.99) == 0
    assert fleet.wanted_permits(3.0) == 2
    assert fleet.next_action(3.0) == Wait(3.0)


def test_no_permits_are_asked_for_in_vain() -> None:
    """A fleet asks for none while nothing is due, while it may not send, and if it sends alone."""
    alone = fleet_of(1, shares_rate=False)
    assert alone.wanted_permits(0.0) == 0
    alone.allow(1, 0.0, at=9.0, interval=0.0)
    assert isinstance(alone.next_action(0.0), Dispatch)
    assert fleet_of(0).wanted_permits(0.0) == 0
    stopped = fleet_of(1)
    stopped.stop()
    assert stopped.wanted_permits(0.0) == 0
    fleet = fleet_of(2, connections=1)
    fleet.allow(1, 0.0, at=0.0, interval=0.0)
    sent = fleet.next_action(0.0)
    assert isinstance(sent, Dispatch)
    assert fleet.wanted_permits(0.0) == 0, "as many are under way as may be"
    assert fleet.paused_until == -inf
    fleet.receive(sent.ticket, reply(429, Retry_After="60"), 1.0)
    assert fleet.paused_until == 61.0
    assert fleet.wanted_permits(2.0) == 0, "the service has asked for a pause"
    assert fleet.wanted_permits(61.0) > 0


@pytest.mark.parametrize(
    ("used", "now", "wanted"),
    [(4, 0.9, 8), (4, 1.0, 4), (3, 6.0, 3), (1, 6.0, 1), (0, 6.0, 1), (3, 4.9, 0)],
)
def test_as_many_are_wanted_as_are_used(used: int, now: float, wanted: int) -> None:
    """A portion that is used up within a second is doubled; else the next one is what was used."""
    allowance = Allowance()
    assert allowance.wanted(0, 0.0) == 1
    allowance.grant(4, 0.0, 1.0, 0.0)
    for _ in range(used):
        allowance.use()
    assert allowance.wanted(0, now) == wanted
    assert allowance.wanted(100, now) == (100 if wanted else 0)
