"""What the creates of a batch may consume in all, and what they have consumed.

The budget is like that of a client, but it is kept in the journal of the batch and counts this
batch alone, wherever its creates are sent from. Three rules keep it:

- The transaction that arms an item reserves what the item needs, or arms nothing.
- What is reserved is released only in the step that records that the create certainly did nothing.
- An ambiguous create stays spent, whatever a person decides about it.

What an item needs is written down with the item. So every worker counts the same amounts, and no
worker needs to know the prices.
"""

from __future__ import annotations

import warnings

import attrs

from muybridge.batch.items import BatchProblem, InvalidBatch
from muybridge.batch.journal_entries import NewItem
from muybridge.batch.journal_errors import OverBudget, UnknownAmount
from muybridge_protocol.estimates import PriceList
from muybridge_protocol.families import find_family
from muybridge_protocol.families.request import parse
from muybridge_protocol.purchases import (
    KNOWN_BY,
    NOTHING,
    Amounts,
    Budget,
    BudgetUse,
    Measure,
    Sums,
    amounts_of,
    minus,
    plus,
    read_sums,
    totals,
    written_sums,
)


@attrs.frozen
class Spending:
    """What is reserved and spent.

    Args:
        sums: The sum of each amount.
    """

    sums: Sums = NOTHING

    @property
    def amounts(self) -> Amounts:
        """The sums, None where an amount is unknown."""
        return totals(self.sums)

    def reserve(self, needs: Amounts, budget: Budget) -> Spending:
        """Return the sums with one create more.

        Raises:
            OverBudget: It does not fit into the budget. `UnknownAmount` if nobody knows whether it
                would.
        """
        for one in budget.limits:
            if needs[one] is None:
                how = "with its price" if one is Measure.COST else "without that limit"
                raise UnknownAmount(
                    f"{_unknown(budget, one)}. Submit the batch again {how}, or abandon the item"
                )
        exceeded = budget.exceeded_by(needs, self.amounts)
        if exceeded is not None:
            raise OverBudget(exceeded)
        return Spending(plus(self.sums, needs))

    def release(self, needs: Amounts) -> Spending:
        """Return the sums without a create that did nothing."""
        return Spending(minus(self.sums, needs))

    def written(self) -> str:
        """Return the sums as JSON."""
        return written_sums(self.sums)

    @classmethod
    def read(cls, text: str) -> Spending:
        """Return the sums that *text* has as JSON."""
        return cls(read_sums([text]))


def needs_of(item: NewItem, prices: PriceList | None) -> Amounts:
    """Return what the create of *item* consumes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the item was checked
        wanted = parse(find_family(item.family), item.body, keep_unknown=True).quantities()
    return amounts_of(wanted, prices)


def check_change(budget: Budget, use: BudgetUse | None) -> None:
    """Check that the budget of a batch may be changed to *budget*.

    Args:
        budget: The new one.
        use: How far the present one is used up, or None if the batch has none.

    Raises:
        InvalidBatch: The batch was begun without one, or what is limited was not counted.
    """
    said = None
    if use is None:
        said = "it was begun without a budget, so what it has consumed was not counted"
    else:
        unknown = [one for one in budget.limits if use.spent[one] is None]
        if unknown:
            said = f"it has sent requests, and the sum of their {unknown[0]} is unknown"
    if said is not None:
        raise InvalidBatch([BatchProblem("the budget", "", f"{said}; use another batch")])


def _unknown(budget: Budget, measure: Measure) -> str:
    """Return that a limit cannot be checked for an item."""
    theirs = "cost is" if measure is Measure.COST else f"{measure} are"
    return f"{budget.named(measure)} cannot be checked, because its {theirs} unknown"


def check_budget(budget: Budget | None) -> None:
    """Check that *budget* can be one of a batch.

    Raises:
        ValueError: It is a budget for a period.
    """
    if budget is not None and budget.per is not None:
        raise ValueError("the budget of a batch is one for the whole batch: leave `per` out")


def unknown_amounts(budget: Budget, number: int, needs: Amounts) -> list[BatchProblem]:
    """Return what *budget* limits of which nobody knows how much the item *number* needs."""
    return [
        BatchProblem(
            f"item {number}",
            one.value,
            f"{_unknown(budget, one)}. {KNOWN_BY.get(one, 'Leave that limit out')}",
        )
        for one in budget.limits
        if needs[one] is None
    ]
