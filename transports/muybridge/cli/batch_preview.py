"""What a batch would send: shown by `--dry-run`, and before a person is asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from muybridge.cli.invocation import Invocation
from muybridge.cli.terminal import document, message_console, say, show
from muybridge_protocol.records.convert import attributes

if TYPE_CHECKING:
    from muybridge.batch import Preview
    from muybridge_protocol.estimates import PriceList


def show_preview(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Report what would be sent."""
    from muybridge.cli.totals import totals_record, totals_table  # noqa: PLC0415  it loads the estimates

    exceeded = [*_exceeded(invocation, preview)]
    if invocation.json:
        counts = attributes(preview, "sends", "left")
        counts |= {"counts": dict(preview.counts), "exceeds": exceeded}
        noted = {"warnings": invocation.warnings} if invocation.warnings else {}
        totals = totals_record(preview.totals)
        document({"event": "preview", "ok": True, **counts, **totals, **noted})
        return
    show([totals_table(preview.totals)])
    _say_rest(preview, prices, exceeded)
    say("nothing was sent")


def confirm(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Show what would be sent, and ask whether to send it.

    Raises:
        click.Abort: The answer is no. Nothing was sent.
    """
    from muybridge.cli.totals import totals_table  # noqa: PLC0415  it loads the estimates

    message_console().print(totals_table(preview.totals))
    _say_rest(preview, prices, _exceeded(invocation, preview))
    number = "1 new request" if preview.sends == 1 else f"{preview.sends} new requests"
    invocation.pays = True  # so that an interruption says that nothing was sent
    click.confirm(f"Send {number}?", abort=True, err=True)
    invocation.pays = False


def _exceeded(invocation: Invocation, preview: Preview) -> Iterator[str]:
    """Yield how the requests alone exceed each budget, whatever was spent before them."""
    if invocation.local:
        return
    from muybridge.ledger.budget import Measure, budget_of_environment  # noqa: PLC0415  few have one

    try:
        budgets = (invocation.read_budget(), budget_of_environment())
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    total = preview.totals.total
    wanted = {
        Measure.CREATES: Decimal(total.creates),
        Measure.PICTURES: total.pictures.total,
        Measure.SECONDS: total.seconds.total,
        Measure.CALLS: Decimal(total.calls),
        Measure.COST: None if preview.totals.currency is None else total.cost.total,
    }
    nothing = dict.fromkeys(Measure, Decimal(0))
    for budget in budgets:
        exceeded = None if budget is None else budget.exceeded_by(wanted, nothing)
        if exceeded is not None and preview.sends:
            yield exceeded


def _say_rest(preview: Preview, prices: PriceList | None, exceeded: Iterable[str]) -> None:
    from muybridge.cli.totals import remarks  # noqa: PLC0415  it loads the estimates

    for remark in remarks(preview.totals, prices):
        say(remark)
    if preview.counts:
        counts = ", ".join(f"{count} {state}" for state, count in preview.counts.items())
        say(f"in the journal: {counts}")
    if preview.left:
        say(f"beyond the limit: {preview.left}, left for later runs")
    for budget in exceeded:
        say(f"this exceeds a budget: {budget}")
