"""`batch manifest`: what each item was, and where its result is."""

from __future__ import annotations

import click

from muybridge import batch as batches
from muybridge.cli.batch_places import in_database, in_folder, place_of
from muybridge.cli.batch_reports import journal_errors
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON
from muybridge.cli.terminal import answer_path, document


@click.command(params=[JSON])
@in_folder
@in_database
@click.option("--csv", is_flag=True, help="Write CSV instead of JSON lines.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The file to write, or - for stdout [default: results.jsonl or results.csv in DIR, or in "
    "the current folder with --journal]",
)
@pass_invocation
@click.pass_context
def manifest(
    context: click.Context,
    invocation: Invocation,
    folder: str,
    *,
    journal: str | None,
    csv: bool,
    output: str | None,
) -> None:
    """Write a list of all items of a batch, with their results.

    The list has one line per item, as JSON or CSV: {item, name, family, model, prompt,
    state, task, file, bytes, sha256, reason}.

    With --json: {ok, file}.
    """
    if output == "-" and invocation.presentation.json:
        raise click.UsageError("give one of --output - and --json")
    place = place_of(folder, journal)
    with journal_errors(context, invocation):
        if output == "-":
            for line in batches.manifest_lines(place, csv=csv):
                click.echo(line.encode(), nl=False)
            return
        file = batches.write_manifest(place, output, csv=csv)
    if invocation.presentation.json:
        document({"ok": True, "file": str(file)})
    else:
        answer_path(file)
