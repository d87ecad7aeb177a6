"""`batch manifest`: what each item was, and where its result is."""

from __future__ import annotations

import click

from muybridge import batch as batches
from muybridge.cli.batch_places import BATCH, place_of
from muybridge.cli.batch_reports import store_errors
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import BATCH_STORE, JSON
from muybridge.cli.terminal import answer_path, document


@click.command(params=[BATCH, JSON, BATCH_STORE])
@click.option("--csv", is_flag=True, help="Write CSV instead of JSON lines.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file to write, or - for stdout [default: results.jsonl or results.csv in the "
    "batch's folder, or in the current one if BATCH is a name]",
)
@pass_invocation
@click.pass_context
def manifest(
    context: click.Context,
    invocation: Invocation,
    batch: str,
    *,
    csv: bool,
    output: str | None,
) -> None:
    """Write a list of all items of a batch, with their results.

    BATCH is the folder of a batch, or its name in a store.

    The list has one line per item, as JSON or CSV: {item, name, family, model, prompt,
    state, task, file, bytes, sha256, reason}.

    With --json: {ok, file}.
    """
    if output == "-" and invocation.presentation.json:
        raise click.UsageError("give one of --output - and --json")
    place = place_of(batch, invocation.spending.store)
    with store_errors(context, invocation):
        if output == "-":
            for line in batches.manifest_lines(place, csv=csv):
                click.echo(line.encode(), nl=False)
            return
        file = batches.write_manifest(place, output, csv=csv)
    if invocation.presentation.json:
        document({"ok": True, "file": str(file)})
    else:
        answer_path(file)
