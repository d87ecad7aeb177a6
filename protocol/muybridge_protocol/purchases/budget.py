"""Budgets: how much may be spent, in a period or in all.

A budget limits what one store records, whichever key or client spends it: a new key or a second
process does not get a fresh budget. A limit on something is never compared with an unknown amount.
If a request's price is unknown, a limit on cost refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Final, Literal, get_args

import attrs

from muybridge_protocol.estimates.units import EXACT
from muybridge_protocol.purchases.amounts import DAY, DIGITS, Amounts, Measure
from muybridge_protocol.purchases.tags import EVERYTHING, check_limited, is_key
from muybridge_protocol.records.json import truncated
from muybridge_protocol.suggested_names import suggesting_names

Period = Literal["day", "month"]
"""A day or a month of UTC."""


_SINGULAR: Final = {
    Measure.CREATES: "create",
    Measure.PICTURES: "picture",
    Measure.SECONDS: "second",
    Measure.CALLS: "text call",
}

KNOWN_BY: Final = {
    Measure.COST: "Give its price (prices, --prices or MUYBRIDGE_PRICES)",
    Measure.SECONDS: "Set its length",
}
"""What makes an amount known."""

_KNOWN_BEFORE: Final = (
    "Give a price per call (per_call): with one per 1,000 tokens, the cost is known only once the "
    "response has arrived"
)
"""What makes the cost of a text request known before it is sent."""

_LISTED: Final = 5
"""Most recorded requests that a message lists."""
_LEFT_OUT: Final = "Leave that limit out: another store would not know what was paid"
_RECORDED_BY: Final = {
    Measure.COST: "Give what they have cost (`muybridge decide KEY --cost AMOUNT`), or leave that "
    "limit out: another store would not know what was paid",
}
"""What to do about recorded requests whose amount is unknown."""

Number = int | float | str | Decimal
"""A limit. A string is read as it is written, so "0.1" is exactly one tenth."""


def _amount(value: Number | None) -> Decimal | None:
    """Return a limit as an exact number.

    Raises:
        ValueError: It is not a number of at least 0, or has too many digits.
    """
    if value is None:
        return None
    try:
        # The text of a float is what its author wrote: 0.1 is one tenth.
        amount = None if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or amount < 0:
        raise ValueError(f"a limit must be a number of at least 0 (got {value!r})")
    exponent = amount.as_tuple().exponent
    if amount.adjusted() >= DIGITS or not isinstance(exponent, int) or -exponent > DIGITS:
        quoted = truncated(repr(value), 40)
        raise ValueError(
            f"a limit must have at most {DIGITS} digits before and after the point (got {quoted})"
        )
    return amount


def _check_whole(
    _: object, attribute: attrs.Attribute[Decimal | None], amount: Decimal | None
) -> None:
    if amount is not None and amount != amount.to_integral_value():
        name = attribute.name
        raise ValueError(f"a limit on {name} must be a whole number (got {_plain(amount)})")


def _check_period(_: object, __: object, value: object) -> None:
    if value is not None and value not in get_args(Period):
        raise ValueError(f"per must be 'day', 'month' or None (got {value!r})")


@suggesting_names
@attrs.frozen(kw_only=True)
class Budget:
    """How much may be spent. Each limit is one number, or None for no limit.

    Args:
        creates: Images and videos to create.
        pictures: Pictures in all of them.
        seconds: Seconds of video in all of them.
        calls: Text requests.
        cost: Money, in the currency of the price list.
        per: "day" or "month" to count from the beginning of the current one, in UTC, or None to
            count everything that the store has recorded.

    Raises:
        ValueError: A limit is not a number of at least 0 with at most 30 digits before and after
            the point, one of things that are counted is not a whole number, or there is no such
            period.
    """

    creates: Decimal | None = attrs.field(default=None, converter=_amount, validator=_check_whole)
    pictures: Decimal | None = attrs.field(default=None, converter=_amount, validator=_check_whole)
    seconds: Decimal | None = attrs.field(default=None, converter=_amount)
    calls: Decimal | None = attrs.field(default=None, converter=_amount, validator=_check_whole)
    cost: Decimal | None = attrs.field(default=None, converter=_amount)
    per: Period | None = attrs.field(default=None, validator=_check_period)

    @property
    def limits(self) -> dict[Measure, Decimal]:
        """The limits that are set, in the order of the measures."""
        limits = {measure: getattr(self, measure.value) for measure in Measure}
        return {measure: limit for measure, limit in limits.items() if limit is not None}

    def since(self, wall: float) -> float:
        """Return when the period that contains *wall* began, in Unix seconds."""
        if self.per is None:
            return -float("inf")
        begin = datetime.fromtimestamp(wall, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return (begin if self.per == "day" else begin.replace(day=1)).timestamp()

    def days(self, wall: float) -> tuple[int, int] | None:
        """Return the first and the last day of the period that contains *wall*, or None if none.

        Days are counted from 1970, in UTC, as `day_of` counts them.
        """
        if self.per is None:
            return None
        first = int(self.since(wall)) // DAY
        if self.per == "day":
            return first, first
        begin = datetime.fromtimestamp(first * DAY, UTC)
        # No month is longer, so 31 days after its first day the next one has begun.
        following = (begin + timedelta(days=31)).replace(day=1)
        return first, int(following.timestamp()) // DAY - 1

    def named(self, measure: Measure) -> str:
        """Return what the limit on *measure* is called in a message."""
        return f"the limit of {self.shown(measure)}"

    def shown(self, measure: Measure) -> str:
        """Return the limit on *measure* in words, such as "200 creates a day"."""
        per = f" a {self.per}" if self.per else ""
        return f"{_words(self.limits[measure], measure)}{per}"

    def exceeded_by(
        self,
        wanted: Amounts,
        spent: Amounts,
        unknown: Callable[[Measure], Iterator[str]] | None = None,
    ) -> str | None:
        """Return which limit *wanted* would exceed and what to do, or None if it fits.

        Args:
            wanted: What the request consumes.
            spent: What the period's requests have consumed, with every open reservation.
            unknown: Yields what the requests are called whose amount is unknown, or None if that
                is not known.
        """
        for measure, limit in self.limits.items():
            needs, used = wanted[measure], spent[measure]
            named = self.named(measure)
            theirs = "cost is" if measure is Measure.COST else f"{measure} are"
            if needs is None:
                advice = KNOWN_BY.get(measure, "Leave that limit out")
                if measure is Measure.COST and wanted[Measure.CALLS]:
                    advice = _KNOWN_BEFORE
                return f"{named} cannot be checked, because its {theirs} unknown. {advice}"
            # What needs nothing of a measure fits, even if the rest is used up or unknown.
            if needs == 0:
                continue
            if used is None:
                listed = [*islice(() if unknown is None else unknown(measure), _LISTED + 1)]
                those = ", ".join([*listed[:_LISTED], *(["..."] if len(listed) > _LISTED else [])])
                return (
                    f"{named} cannot be checked, because the store has requests whose {theirs} "
                    f"unknown{f' ({those})' if those else ''}. "
                    f"{_RECORDED_BY.get(measure, _LEFT_OUT)}"
                )
            if EXACT.add(used, needs) > limit:
                rest = EXACT.subtract(limit, used)
                left = _plain(rest) if rest > 0 else "none"
                wait = f", or wait for the next {self.per}" if self.per else ""
                return (
                    f"it needs {_words(needs, measure)}, and {left} of {named} is left. Raise the "
                    f"limit{wait}"
                )
        return None


def _check_tag(_: object, __: object, tag: str) -> None:
    check_limited(tag)


@attrs.frozen(kw_only=True)
class StoredBudget:
    """A budget that binds everybody who uses a store.

    A tag has one for each period, and one in all.

    Args:
        tag: What it limits: the purchases with this tag, or all of them (`EVERYTHING`). A key alone
            stands for each of its values: each may spend as much, and a purchase without the key
            does not fit.
        budget: Its limits and its period.
        counted_under: Where its sum is: under the tag, or under a name of its own if it counts only
            what is armed once it exists. Then each purchase has this name in its `budgets`.
        since: Since when it counts, Unix seconds, or None if it counts what was before, too.
    """

    tag: str = attrs.field(default=EVERYTHING, validator=_check_tag)
    budget: Budget
    counted_under: str
    since: float | None = None

    def tag_of(self, tags: Iterable[str]) -> str | None:
        """Return which of the tags of a purchase it limits, or None if it does not concern it.

        One for a key that the purchase lacks does not fit the purchase: see `lacks_tag`.
        """
        if self.tag == EVERYTHING:
            return EVERYTHING
        if not is_key(self.tag):
            return self.tag if self.tag in tags else None
        return next((one for one in tags if one.partition("=")[0] == self.tag), None)

    def lacks_tag(self, tags: Iterable[str]) -> bool:
        """Whether it is one for each value of a key, and a purchase with these *tags* has none."""
        return is_key(self.tag) and self.tag_of(tags) is None

    def label_of(self, tag: str) -> str:
        """Return under which label of a sum it counts the purchases with *tag*.

        Those of a budget that counts from some moment on have a name of its own, for each value.
        """
        if self.since is None:
            return tag
        return f"{self.counted_under}\t{tag}" if is_key(self.tag) else self.counted_under

    def called(self, tag: str | None = None) -> str:
        """Return what messages call it, or its part for *tag*."""
        whose = (self.tag if tag is None else tag) or "everybody"
        return f"the stored budget of {whose}{f' a {self.budget.per}' if self.budget.per else ''}"


@attrs.frozen(kw_only=True)
class BudgetUse:
    """How far a budget is used up, and whether some requests fit into the rest.

    Args:
        budget: The budget.
        spent: What the requests of its period have consumed, with every open reservation.
        exceeded: Which limit the requests would exceed and what to do, or None if they fit.
    """

    budget: Budget
    spent: Amounts
    exceeded: str | None


def written_budget(budget: Budget) -> str:
    """Return *budget* as JSON, without the limits that are not set."""
    limits = {measure.value: str(limit) for measure, limit in budget.limits.items()}
    return json.dumps({**limits, "per": budget.per})


def read_budget(text: str) -> Budget:
    """Return the budget that *text* has as JSON."""
    return Budget(**json.loads(text))


def _words(amount: Decimal, measure: Measure) -> str:
    if measure is Measure.COST:
        return f"{_plain(amount)} in cost"
    return f"{_plain(amount)} {_SINGULAR[measure]}{'' if amount == 1 else 's'}"


def _plain(amount: Decimal) -> str:
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
