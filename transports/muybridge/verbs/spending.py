"""Say what was spent, and how far stored budgets are used up.

What was spent is the sum of the purchases in a store. Of those that `Store.prune` has removed, only
the sums by day and tag are left. They are added, so that the totals stay right: what is not known
of them any more, such as their family, is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import attrs

from muybridge.purchases.errors import StoreUnusable
from muybridge.purchases.store import Store
from muybridge_protocol.estimates import Sum
from muybridge_protocol.estimates.units import EXACT
from muybridge_protocol.purchases import (
    DAY,
    EVERYTHING,
    GROUPS,
    NOTHING,
    Amounts,
    Measure,
    Purchase,
    State,
    StoredBudget,
    Sums,
    is_key,
)
from muybridge_protocol.records.convert import attributes

BY: Final = GROUPS
"""What spending is grouped by, unless something else is asked for. A tag's key is possible, too."""


_OPEN: Final = (State.ARMED, State.AMBIGUOUS)


@attrs.frozen(kw_only=True)
class Spent:
    """What some purchases consume.

    Args:
        labels: What they have in common, in the order in which it was asked for. None is what is
            not known of removed purchases, and "" what a purchase does not have.
        state: Accepted, armed (reserved) or ambiguous. What a person has abandoned or resubmitted
            counts as accepted.
        purchases: How many there are, without removed ones.
        sums: What they consume.
        is_pruned: Whether there are removed ones among them.
    """

    labels: tuple[str | None, ...]
    state: State
    purchases: int = 0
    sums: Sums = NOTHING
    is_pruned: bool = False


@attrs.frozen(kw_only=True)
class Spending:
    """What was spent.

    Args:
        by: What it is grouped by.
        groups: The groups, in order.
        undecided: The purchases about which a person has to decide. They count as spent.
    """

    by: tuple[str, ...]
    groups: tuple[Spent, ...]
    undecided: tuple[Purchase, ...]


@attrs.frozen(kw_only=True)
class Usage:
    """How far a stored budget is used up.

    Args:
        stored: The budget.
        spent: What counts as spent in its current period, by what it limits: its tag, or if it is
            for a key, each tag with this key under which something was spent.
    """

    stored: StoredBudget
    spent: Mapping[str, Amounts]


def spent(store: Store, by: Sequence[str] = BY) -> Spending:
    """Return what was spent, with what is reserved and what needs a decision.

    Args:
        store: The store. Nothing is created if it does not exist.
        by: What to group by: "day" (in UTC), "family", "model", and at most one key of tags, such
            as "customer" for tags like "customer=acme".

    Raises:
        ValueError: There are several keys of tags.
        StoreUnusable: The store cannot be read.
    """
    keys = [one for one in by if one not in BY]
    if len(keys) > 1:
        raise ValueError(f"give one key of tags (got {', '.join(keys)})")
    key = keys[0] if keys else None
    sweep(store)
    known: Mapping[str, str | None]
    groups: dict[tuple[tuple[str | None, ...], State], Spent] = {}
    counted: dict[tuple[str, int], Sums] = {}

    def add(labels: tuple[str | None, ...], state: State, count: int, sums: Sums) -> None:
        before = groups.get((labels, state), Spent(labels=labels, state=state))
        groups[labels, state] = attrs.evolve(
            before,
            purchases=before.purchases + count,
            sums=_sum(before.sums, sums),
            is_pruned=before.is_pruned or not count,
        )

    for kind, count in store.kinds():
        sums = _times(kind.amounts, count)
        tags = [EVERYTHING] if key is None else [*_tags_of(kind.tags, key)]
        for tag in {EVERYTHING, *tags}:
            counted[tag, kind.day] = _sum(counted.get((tag, kind.day), NOTHING), sums)
        known = {"day": _shown(kind.day), **attributes(kind, "family", "model")}
        state = kind.state if kind.state in _OPEN else State.ACCEPTED
        for tag in tags or [EVERYTHING]:
            add(_labels(by, known, tag), state, count, sums)
    for tag, day, sums in _removed(store, key, counted):
        known = {"day": _shown(day), "family": None, "model": None}
        add(_labels(by, known, tag), State.ACCEPTED, 0, sums)
    ordered = sorted(groups.values(), key=_order)
    undecided = tuple(store.purchases(State.AMBIGUOUS))
    return Spending(by=tuple(by), groups=tuple(ordered), undecided=undecided)


def budgets(store: Store) -> tuple[Usage, ...]:
    """Return how far each stored budget is used up, by tag and period.

    Raises:
        StoreUnusable: The store cannot be read.
    """
    return tuple(use_of(store, one) for one in store.limits())


def use_of(store: Store, stored: StoredBudget) -> Usage:
    """Return how far a stored budget is used up.

    Raises:
        StoreUnusable: The store cannot be read.
    """
    if is_key(stored.tag):
        return Usage(stored=stored, spent=store.spent_of_key(stored))
    spent = store.spent(stored.counted_under, stored.budget)
    return Usage(stored=stored, spent={stored.tag: spent})


def time_of(wall: float) -> str:
    """Return a time in UTC, to the second, for records and tables."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds")


def sweep(store: Store) -> None:
    """Find out which purchases nobody is sending any more, if the store can be written."""
    with suppress(StoreUnusable):  # whoever reads it then hears why, unless it can be read
        store.sweep()


def _removed(
    store: Store, key: str | None, counted: dict[tuple[str, int], Sums]
) -> Iterator[tuple[str, int, Sums]]:
    """Yield what removed purchases have consumed, by tag and day."""
    # The store keeps what was spent on such a day in all. What the purchases that are still there
    # do not account for is of removed ones.
    left: dict[int, Sums] = {}
    for (_, day), sums in store.pruned_spent().items():
        left[day] = _less(sums, counted.get((EVERYTHING, day), NOTHING))
    for (tag, day), sums in store.pruned_spent(key).items() if key is not None else ():
        rest = _less(sums, counted.get((tag, day), NOTHING))
        # What no tag of the key accounts for is left for those without one.
        left[day] = _less(left.get(day, NOTHING), rest)
        if _is_more_than_nothing(rest):
            yield tag, day, rest
    for day, rest in left.items():
        if _is_more_than_nothing(rest):
            yield EVERYTHING, day, rest


def _sum(sums: Sums, others: Sums) -> Sums:
    return {one: sums[one] + others[one] for one in Measure}


def _times(amounts: Amounts, count: int) -> Sums:
    """Return the sums of *count* purchases that consume *amounts* each."""
    return {
        one: Sum(unknown=count) if amount is None else Sum(EXACT.multiply(amount, count))
        for one, amount in amounts.items()
    }


def _less(sums: Sums, others: Sums) -> Sums:
    return {
        one: sums[one] + Sum(others[one].known.copy_negate(), -others[one].unknown)
        for one in Measure
    }


def _is_more_than_nothing(sums: Sums) -> bool:
    # What changes between two looks at the store may make it less.
    return any(it.known > 0 or it.unknown > 0 for it in sums.values())


def _tags_of(tags: Iterable[str], key: str) -> Iterable[str]:
    return (tag for tag in tags if tag.partition("=")[0] == key)


def _labels(by: Sequence[str], known: Mapping[str, str | None], tag: str) -> tuple[str | None, ...]:
    value = tag.partition("=")[2]
    return tuple(known[one] if one in BY else value for one in by)


def _shown(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()


def _order(one: Spent) -> tuple[list[tuple[bool, str]], str]:
    return [(label is None, label or "") for label in one.labels], one.state.value
