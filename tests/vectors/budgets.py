"""Budgets: what is counted, whether a request still fits, and what a purchase becomes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from muybridge_protocol.purchases import (
    AFTER_CHOICE,
    AFTER_NEWS,
    NOTHING,
    Amounts,
    Budget,
    Choice,
    Measure,
    State,
    day_of,
    plus,
    totals,
)

from .telling import WALL, Told

_CREATE: Told = {"creates": "1", "pictures": "1", "seconds": "0", "calls": "0", "cost": "0.1"}
_VIDEO: Told = {"creates": "1", "pictures": "0", "seconds": "8", "calls": "0", "cost": None}
_TEXT: Told = {"creates": "0", "pictures": "0", "seconds": "0", "calls": "1", "cost": "0.002"}
_NEWS = (State.ACCEPTED, State.RELEASED, State.AMBIGUOUS)
_HOUR = 3600.0
_DAY = 24 * _HOUR

Recorded = tuple[float, State, Told]


def budget_cases() -> list[Told]:
    """Return recorded purchases, and whether one more fits."""
    return [
        *(_decided(*case) for case in _budgets()),
        *(_moved(state, "news", news) for state in State for news in _NEWS),
        *(_moved(state, "choice", choice) for state in State for choice in Choice),
    ]


def _budgets() -> Iterator[tuple[str, Told, list[Recorded], Told]]:
    create, video, text = _CREATE, _VIDEO, _TEXT
    two: Told = {"creates": "2"}
    yield "nothing is recorded", two, [], create
    yield "one of two is recorded", two, [(0, State.ACCEPTED, create)], create
    yield "two of two are recorded", two, [(0, State.ACCEPTED, create)] * 2, create
    yield "a limit of 0", {"creates": "0"}, [], create
    yield "another measure is not limited", two, [(0, State.ACCEPTED, create)] * 2, text
    for state in State:
        yield f"purchases that are {state.value}", two, [(0, state, create)] * 2, create
    today = {"creates": "1", "per": "day"}
    yield "yesterday does not count for a day", today, [(_DAY, State.ACCEPTED, create)], create
    since = WALL % _DAY
    yield "the first second of the day", today, [(since, State.ACCEPTED, create)], create
    yield "the last second of yesterday", today, [(since + 1, State.ACCEPTED, create)], create
    month = {"creates": "1", "per": "month"}
    yield "yesterday counts for a month", month, [(_DAY, State.ACCEPTED, create)], create
    yield "last month", month, [(31 * _DAY, State.ACCEPTED, create)], create
    yield (
        "without a period, all counts",
        {"creates": "1"},
        [(400 * _DAY, State.ACCEPTED, create)],
        create,
    )
    tenths = {"cost": "0.3"}
    yield "a sum that floats miss", tenths, [(0, State.ACCEPTED, create)] * 2, create
    yield "a limit on cost, and an unknown price", {"cost": "100"}, [], video
    yield "an unknown price is recorded", {"cost": "100"}, [(0, State.ACCEPTED, video)], create
    yield (
        "an unknown price that was released",
        {"cost": "100"},
        [(0, State.RELEASED, video)],
        create,
    )
    yield (
        "an unknown price of yesterday",
        {"cost": "1", "per": "day"},
        [(_DAY, State.ACCEPTED, video)],
        create,
    )
    yield (
        "a request that costs nothing beside an unknown price",
        {"cost": "1"},
        [(0, State.ACCEPTED, video)],
        {**create, "cost": "0"},
    )
    yield "seconds of video", {"seconds": "20"}, [(0, State.ACCEPTED, video)] * 2, video
    yield (
        "two limits, the second is exceeded",
        {"creates": "9", "cost": "0.1"},
        [(0, State.ACCEPTED, create)],
        create,
    )
    yield (
        "many digits",
        {"cost": "0.1000000000000000000000000001"},
        [(0, State.ACCEPTED, {**create, "cost": "0.1"})],
        {**create, "cost": "0.0000000000000000000000000001"},
    )
    yield (
        "one digit too many",
        {"cost": "0.1000000000000000000000000001"},
        [(0, State.ACCEPTED, {**create, "cost": "0.1"})],
        {**create, "cost": "0.0000000000000000000000000002"},
    )


def _decided(name: str, limits: Told, recorded: list[Recorded], wanted: Told) -> Told:
    budget = Budget(**limits)
    period = budget.days(WALL)
    sums = NOTHING
    purchases: list[Told] = []
    for ago, state, amounts in recorded:
        armed = WALL - ago
        purchases.append({"armed_at": armed, "state": state.value, "amounts": amounts})
        counts = period is None or period[0] <= day_of(armed) <= period[1]
        if counts and state is not State.RELEASED:
            sums = plus(sums, _amounts(amounts))
    spent = totals(sums)
    nothing = Budget()
    exceeded = [
        measure.value
        for measure, limit in budget.limits.items()
        if attrs.evolve(nothing, **{measure.value: limit}).exceeded_by(_amounts(wanted), spent)
        is not None
    ]
    assert bool(exceeded) == (budget.exceeded_by(_amounts(wanted), spent) is not None)
    told: Told = {
        "name": name,
        "kind": "budget",
        "budget": limits,
        "wall": WALL,
        "purchases": purchases,
        "wanted": wanted,
        "spent": {one.value: None if it is None else f"{it:f}" for one, it in spent.items()},
        "fits": not exceeded,
    }
    return {**told, **({"exceeded": exceeded} if exceeded else {})}


def _amounts(told: Told) -> Amounts:
    return {one: None if (it := told[one.value]) is None else Decimal(it) for one in Measure}


def _moved(state: State, kind: str, what: State | Choice) -> Told:
    table: Any = AFTER_NEWS if kind == "news" else AFTER_CHOICE
    after = table.get(state, {}).get(what)
    told: Told = {
        "name": f"{state.value}, {kind}: {what.value}",
        "kind": kind,
        "state": state.value,
    }
    return {**told, kind: what.value, "after": None if after is None else after.value}
