"""What many requests consume and cost, as a table for people and as a record for programs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from muybridge.cli.terminal import table
from muybridge_protocol.estimates import Group, PriceList, Quantities, Sum, Total, Totals, Unit
from muybridge_protocol.records.convert import attributes

if TYPE_CHECKING:
    from rich.table import Table

_NUMBERS = ("requests", "creates", "calls")
_SUMS = ("pictures", "seconds", "tokens")
_REFERENCES = ("reference_images", "reference_videos", "reference_sounds")
_COUNTED = {
    Unit.CALL: "calls",
    Unit.PICTURE: "pictures",
    Unit.SECOND: "seconds",
    Unit.THOUSAND_TOKENS: "tokens",
}


def totals_table(totals: Totals) -> Table:
    """Return a table with a row for each family, model and tier, and one for their sum."""
    headings = ["Family", "Model", "Tier", "Requests", "Pictures", "Seconds"]
    if totals.currency is not None:
        headings.append(f"Cost ({totals.currency})")
    rows = table(*headings)
    costs = totals.currency is not None
    for group, total in totals.groups.items():
        rows.add_row(group.family, group.model or "", group.tier or "", *_cells(total, costs))
    rows.add_row("total", "", "", *_cells(totals.total, costs), style="bold")
    return rows


def _cells(total: Total, costs: bool) -> Iterator[str]:  # noqa: FBT001  one of two shapes
    yield str(total.requests)
    yield shown(total.pictures)
    yield shown(total.seconds)
    if costs:
        yield shown(total.cost)


def shown(amount: Sum) -> str:
    """Return a sum for people, with the number of requests that it does not contain."""
    if not amount.unknown:
        return plain(amount.known)
    return f"{plain(amount.known)} + {amount.unknown} unknown" if amount.known else "unknown"


def plain(number: Decimal) -> str:
    """Return *number* without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def remarks(totals: Totals, prices: PriceList | None) -> Iterator[str]:
    """Yield what the table does not show: references, and why costs are unknown."""
    total = totals.total
    counts = [(getattr(total, name), name.removeprefix("reference_")) for name in _REFERENCES]
    given = [f"{count} {kind if count > 1 else kind[:-1]}" for count, kind in counts if count]
    if given:
        unknown = " of unknown length" if total.reference_seconds.unknown else ""
        yield f"references: {', '.join(given)}{unknown}"
    for group, one in totals.groups.items():
        if prices is not None and one.cost.unknown:
            yield f"cost unknown: {_named(group)}: {_why(group, prices)}"


def _why(group: Group, prices: PriceList) -> str:
    quantities = Quantities(family=group.family, model=group.model, tier=group.tier)
    price = prices.price_of(quantities)
    if price is None:
        return "it has no price"
    return f"its price is {price.unit}, and its {_COUNTED[price.unit]} are unknown"


def _named(group: Group) -> str:
    return " ".join(name for name in (group.family, group.model, group.tier) if name)


def totals_record(totals: Totals) -> dict[str, Any]:
    """Return the totals for programs. Money is text, because a JSON number may be rounded."""
    groups = [
        {**attributes(group, "family", "model", "tier"), **_record(total, totals.currency)}
        for group, total in totals.groups.items()
    ]
    total = _record(totals.total, totals.currency)
    return {"currency": totals.currency, "total": total, "groups": groups}


def _record(total: Total, currency: str | None) -> dict[str, Any]:
    numbers = {name: getattr(total, name) for name in _NUMBERS}
    sums = {name: sum_record(getattr(total, name)) for name in _SUMS}
    references = {name: getattr(total, name) for name in _REFERENCES}
    record = {**numbers, **sums, **references}
    record["reference_seconds"] = sum_record(total.reference_seconds)
    if currency is not None:
        cost = total.cost
        record["cost"] = {"known": plain(cost.known), "unknown": cost.unknown}
    return record


def sum_record(amount: Sum) -> dict[str, int | float]:
    """Return a sum as JSON numbers: an integer, or a float, which may be rounded."""
    known = amount.known
    whole = known == known.to_integral_value()
    return {"known": int(known) if whole else float(known), "unknown": amount.unknown}
