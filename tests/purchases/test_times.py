"""Clocks, midnight and the end of a month, in stores that several machines use."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal

import pytest

from muybridge.purchases import CannotDecide, Exceeded, Store
from muybridge_protocol.purchases import Budget, Choice, Measure, Outcome, State
from stores import at

from .racer import order_of

MIDNIGHT = 1_772_323_200.0  # 2026-03-01, 00:00 UTC


@pytest.mark.parametrize("per", [None, "day", "month"])
def test_midnight_and_the_end_of_a_month(place: str, per: str | None) -> None:
    """Arms on both sides see each other: in all, one is armed, and one in each day and month."""
    budget = Budget(creates=1, per=per)  # type: ignore[arg-type]

    def arm(store: Store) -> str:
        try:
            store.arm(order_of(), budgets=[budget])
        except Exceeded:
            return "refused"
        return "armed"

    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        stores = [
            stack.enter_context(at(place, wall))
            for wall in (MIDNIGHT - 0.01, MIDNIGHT, MIDNIGHT - 0.01, MIDNIGHT) * 2
        ]
        told = Counter(pool.map(arm, stores))
    most = 1 if per is None else 2
    assert told == {"armed": most, "refused": 8 - most}


def test_the_day_of_a_purchase_is_that_on_which_it_was_armed(place: str) -> None:
    """What is released after midnight is given back to the day before."""
    day = Budget(creates=9, per="day")
    with at(place, MIDNIGHT - 1) as before, at(place, MIDNIGHT) as after:
        bought = before.arm(order_of())
        assert after.spent("", day)[Measure.CREATES] == 0
        assert before.spent("", day)[Measure.CREATES] == 1
        after.conclude(bought.key, Outcome(state=State.AMBIGUOUS))
        after.decide(bought.key, Choice.RELEASE)
        assert before.spent("", day)[Measure.CREATES] == 0
        assert after.spent()[Measure.CREATES] == Decimal(0)


def test_only_the_clock_of_the_database_declares_a_sender_dead(place: str) -> None:
    """And a person's machine has to agree before the request may be sent again."""
    if not place.startswith("postgresql"):
        pytest.skip("in a file, the sender's lock tells")
    with at(place, MIDNIGHT) as sender, at(place, MIDNIGHT + 60) as soon:
        bought = sender.arm(order_of(), lasts=100.0)
        assert bought.sending_until == MIDNIGHT + 105
        assert soon.sweep() == 0
    with at(place, MIDNIGHT + 3600) as later:
        assert later.sweep() == 1
        with pytest.raises(CannotDecide) as caught:  # the database's clock has jumped
            later.decide(bought.key, Choice.RESUBMIT, wall=MIDNIGHT + 60)
        assert caught.value.later
        after = later.decide(bought.key, Choice.RESUBMIT, wall=MIDNIGHT + 3600)
        assert after.state is State.RESUBMITTED
