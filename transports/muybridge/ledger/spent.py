"""What was spent, added up by day, family, model and state."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

import attrs

from muybridge_protocol.estimates import Sum
from muybridge_protocol.purchases import Measure, Purchase, State


@attrs.frozen(kw_only=True, order=True)
class Group:
    """Which entries are added up together.

    Args:
        day: The day in UTC.
        family: The family of the requests, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        state: `accepted`, `armed` or `ambiguous`; a resubmitted entry counts as accepted.
    """

    day: date
    family: str
    model: str
    state: State


@attrs.frozen(kw_only=True)
class Spent:
    """What the entries of a group consume.

    Args:
        requests: How many entries there are.
        amounts: The sum of each amount.
    """

    requests: int
    amounts: dict[Measure, Sum]

    def plus(self, entry: Purchase) -> Spent:
        """Return the sums with one entry more."""
        amounts = {one: self.amounts[one].plus(entry.amounts[one]) for one in Measure}
        return Spent(requests=self.requests + 1, amounts=amounts)


NOTHING = Spent(requests=0, amounts=dict.fromkeys(Measure, Sum()))


def spent_by_group(entries: Iterable[Purchase]) -> dict[Group, Spent]:
    """Return what *entries* consume, by group in order. Released ones consume nothing."""
    found: dict[Group, Spent] = {}
    for entry in entries:
        if entry.state is State.RELEASED:
            continue
        state = State.ACCEPTED if entry.state is State.RESUBMITTED else entry.state
        day = datetime.fromtimestamp(entry.armed_at, UTC).date()
        group = Group(day=day, family=entry.family, model=entry.model, state=state)
        found[group] = found.get(group, NOTHING).plus(entry)
    return dict(sorted(found.items()))
