"""What a batch would send: shown by `--dry-run`, and before a person is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muybridge.batch import Preview
from muybridge.cli.consent import ask_person
from muybridge.cli.invocation import Invocation
from muybridge.cli.terminal import message_console, say, show
from muybridge.cli.totals import plain, remarks, totals_record, totals_table
from muybridge_protocol.estimates import PriceList
from muybridge_protocol.purchases import BudgetUse
from muybridge_protocol.records.convert import attributes


def show_preview(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Report what would be sent."""
    if invocation.presentation.json:
        counts = attributes(preview, "sends", "joins", "left")
        counts |= {"counts": dict(preview.counts)}
        counts |= {
            "exceeds": [use.exceeded for use in preview.budgets if use.exceeded is not None],
            "budgets": [record for use in preview.budgets for record in budget_records(use)],
        }
        totals = totals_record(preview.totals)
        invocation.print_document(event="preview", ok=True, **counts, **totals)
        return
    show([totals_table(preview.totals)])
    _say_rest(preview, prices)
    say("nothing was sent")


def confirm(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Show what would be sent, and ask whether to send it.

    Raises:
        click.exceptions.Exit: The answer is no. Nothing was sent.
        KeyboardInterrupt: A signal took the place of the answer.
    """
    message_console().print(totals_table(preview.totals))
    _say_rest(preview, prices)
    number = "1 new request" if preview.sends == 1 else f"{preview.sends} new requests"
    ask_person(invocation, f"Send {number}?")


def budget_records(use: BudgetUse) -> Iterator[dict[str, Any]]:
    """Yield a record for each limit of a budget. Money is text, as elsewhere."""
    for measure, limit in use.budget.limits.items():
        spent = use.spent[measure]
        yield {
            "limit": str(measure),
            "per": use.budget.per,
            "most": plain(limit),
            "spent": None if spent is None else plain(spent),
        }


def say_spent(use: BudgetUse) -> None:
    """Say what is spent of each limit of a budget."""
    for measure in use.budget.limits:
        spent = use.spent[measure]
        amount = "an unknown amount" if spent is None else plain(spent)
        say(f"{use.budget.named(measure)}: {amount} spent")


def _say_rest(preview: Preview, prices: PriceList | None) -> None:
    for remark in remarks(preview.totals, prices):
        say(remark)
    if preview.counts:
        counts = ", ".join(f"{count} {state}" for state, count in preview.counts.items())
        say(f"in the batch: {counts}")
    if preview.joins:
        say(f"items that share the task of an identical request: {preview.joins}")
    if preview.left:
        say(f"left for later runs (--limit): {preview.left}")
    for use in preview.budgets:
        say_spent(use)
        if use.exceeded is not None:
            say(f"this exceeds a budget: {use.exceeded}")
