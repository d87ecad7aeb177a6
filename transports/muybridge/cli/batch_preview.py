"""What a batch would send: shown by `--dry-run`, and before a person is asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from muybridge.cli.invocation import Invocation
from muybridge.cli.terminal import document, message_console, say, show

if TYPE_CHECKING:
    from muybridge.batch import Preview
    from muybridge_protocol.estimates import PriceList


def show_preview(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Report what would be sent."""
    from muybridge.cli.totals import totals_record, totals_table  # noqa: PLC0415  it loads the estimates

    if invocation.json:
        counts = {"sends": preview.sends, "left": preview.left, "counts": dict(preview.counts)}
        noted = {"warnings": invocation.warnings} if invocation.warnings else {}
        totals = totals_record(preview.totals)
        document({"event": "preview", "ok": True, **counts, **totals, **noted})
        return
    show([totals_table(preview.totals)])
    _say_rest(preview, prices)
    say("nothing was sent")


def confirm(invocation: Invocation, preview: Preview, prices: PriceList | None) -> None:
    """Show what would be sent, and ask whether to send it.

    Raises:
        click.Abort: The answer is no. Nothing was sent.
    """
    from muybridge.cli.totals import totals_table  # noqa: PLC0415  it loads the estimates

    message_console().print(totals_table(preview.totals))
    _say_rest(preview, prices)
    number = "1 new request" if preview.sends == 1 else f"{preview.sends} new requests"
    invocation.pays = True  # so that an interruption says that nothing was sent
    click.confirm(f"Send {number}?", abort=True, err=True)
    invocation.pays = False


def _say_rest(preview: Preview, prices: PriceList | None) -> None:
    from muybridge.cli.totals import remarks  # noqa: PLC0415  it loads the estimates

    for remark in remarks(preview.totals, prices):
        say(remark)
    if preview.counts:
        counts = ", ".join(f"{count} {state}" for state, count in preview.counts.items())
        say(f"in the journal: {counts}")
    if preview.left:
        say(f"beyond the limit: {preview.left}, left for later runs")
