"""`estimate`: what the requests of a file will consume and cost."""

from __future__ import annotations

from typing import BinaryIO

import click

from muybridge.cli.exit_codes import DONE, FAILED
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, PRICES
from muybridge.cli.request_files import ask_for_items, verdict_record
from muybridge.cli.terminal import say, show
from muybridge.cli.totals import remarks, totals_record, totals_table
from muybridge.verbs import estimation
from muybridge.verbs.request_files import Verdict


@click.command(params=[JSON, PRICES])
@click.argument("file", type=click.File("rb"), default="-")
@pass_invocation
@click.pass_context
def estimate(context: click.Context, invocation: Invocation, file: BinaryIO) -> None:
    """Show what requests will consume and cost at your prices.

    Nothing is sent, and no key is needed. FILE has the format of `muybridge batch run`: JSON lines
    (.jsonl), a JSON array (.json) or CSV (.csv); stdin has JSON lines. Unknown amounts are shown as
    unknown, never as 0.

    A price file is TOML with your own prices:

    \b
      currency = "USD"
      prices = [
          {model = "imgb-2", tier = "low", per_picture = 0.011},
          {model = "vidg_video3", per_second = 0.05},
      ]

    Invalid items are named and not counted. Exit code 0 if all items are valid, 1 if some are not,
    2 if the price file is not valid.

    With --json: {ok, currency, total: {requests, creates, calls, pictures: {known, unknown},
    seconds, tokens, cost, ...}, groups: [{family, model, tier, ...}], invalid, errors: [{line,
    family, errors}]}; unknown counts the requests that known leaves out.
    """  # noqa: D301  click's own mark for lines that stay as they are
    prices = invocation.spending.read_prices()
    own = invocation.connection.unopened_service().gave_out
    ask_for_items(file)
    report = estimation.estimate(file, prices, own)
    for verdict in report.wrong:
        _say_errors(verdict)
    if invocation.presentation.json:
        invocation.print_document(
            ok=not report.wrong_count,
            **totals_record(report.totals),
            invalid=report.wrong_count,
            errors=[*map(verdict_record, report.wrong)],
        )
    else:
        show([totals_table(report.totals)])
        for remark in remarks(report.totals, prices):
            say(remark)
    if report.wrong_count:
        verb = "s are" if report.wrong_count > 1 else " is"
        more = "" if report.wrong_count == len(report.wrong) else "; `muybridge validate` names all"
        say(f"{report.wrong_count} item{verb} not valid and not counted{more}")
    context.exit(FAILED if report.wrong_count else DONE)


def _say_errors(verdict: Verdict) -> None:
    place = " ".join(f"{kind} {number}" for kind, number in verdict.place.items()) or "the file"
    for field, message in verdict.errors:
        say(f"{place}: {field}: {message}" if field else f"{place}: {message}")
