"""`estimate`: what the requests of a file will consume and cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from muybridge.cli.errors import DONE, FAILED
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, PRICES
from muybridge.cli.request_files import folder_of, items
from muybridge.cli.terminal import document, say, show
from muybridge.cli.validate import findings
from muybridge_protocol.families.family import OwnLinks, no_link
from muybridge_protocol.records.json import JsonObject, as_object

if TYPE_CHECKING:
    from muybridge_protocol.estimates import Estimate, PriceList

_SHOWN_ERRORS = 50
"""Most wrong items that are named: any number of them takes no more memory."""


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
    from muybridge.cli.totals import remarks, totals_record, totals_table  # noqa: PLC0415  it loads the estimates
    from muybridge_protocol.estimates import Totals  # noqa: PLC0415  the same

    prices = invocation.read_prices()
    wrong = Wrong()
    currency = None if prices is None else prices.currency
    own = invocation.unopened_service().gave_out
    totals = Totals.of(estimates_of(file, prices, wrong, own), currency)
    if invocation.json:
        told = {**totals_record(totals), "invalid": wrong.count, "errors": wrong.records}
        noted = {"warnings": invocation.warnings} if invocation.warnings else {}
        document({"ok": not wrong.count, **told, **noted})
    else:
        show([totals_table(totals)])
        for remark in remarks(totals, prices):
            say(remark)
    if wrong.count:
        verb = "s are" if wrong.count > 1 else " is"
        more = "; `muybridge validate` names all" if wrong.count > _SHOWN_ERRORS else ""
        say(f"{wrong.count} item{verb} not valid and not counted{more}")
    context.exit(FAILED if wrong.count else DONE)


class Wrong:
    """The items that are not valid."""

    def __init__(self) -> None:
        self.count: int = 0
        self.records: list[JsonObject] = []

    def add(self, where: JsonObject, item: Any, problems: tuple[tuple[str, str], ...]) -> None:
        """Name an item, unless many have been named."""
        self.count += 1
        if self.count > _SHOWN_ERRORS:
            return
        family: object = (as_object(item) or {}).get("family")
        label = family if isinstance(family, str) else None
        self.records.append({**where, "family": label, "errors": findings(problems)})
        place = " ".join(f"{kind} {number}" for kind, number in where.items()) or "the file"
        for field, message in problems:
            say(f"{place}: {field}: {message}" if field else f"{place}: {message}")


def estimates_of(
    file: BinaryIO, prices: PriceList | None, wrong: Wrong, own: OwnLinks = no_link
) -> Iterator[Estimate]:
    """Yield the estimate of each valid item."""
    from muybridge.batch.items import WrongItem, read_item  # noqa: PLC0415  it loads all families

    for where, item in items(file):
        try:
            if isinstance(item, WrongItem):
                raise item
            _, request = read_item(item, folder_of(file), own)
        except WrongItem as error:
            wrong.add(where, item, error.problems)
        else:
            yield request.estimate(prices)
