"""`batch sheet`: pages that show what became of each item."""

from __future__ import annotations

import click

from muybridge import batch as batches
from muybridge.cli.batch_reports import store_errors
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON
from muybridge.cli.terminal import answer_path, document


@click.command(params=[JSON])
@click.argument("folder", metavar="DIR", type=click.Path())
@pass_invocation
@click.pass_context
def sheet(context: click.Context, invocation: Invocation, folder: str) -> None:
    """Write the contact sheet of a batch, and print where it is.

    DIR is the folder of the batch. A run writes the sheet at its end. Only pages on which something
    has changed are written.

    With --json: {ok, file}.
    """
    with store_errors(context, invocation):
        file = batches.write_sheet(folder)
    if invocation.presentation.json:
        document({"ok": True, "file": str(file)})
    else:
        answer_path(file)
