"""`batch sheet`: pages that show what became of each item."""

from __future__ import annotations

import click

from muybridge import batch as batches
from muybridge.cli.batch_places import in_folder
from muybridge.cli.batch_reports import journal_errors
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON
from muybridge.cli.terminal import answer_path, document


@click.command(params=[JSON])
@in_folder
@pass_invocation
@click.pass_context
def sheet(context: click.Context, invocation: Invocation, folder: str) -> None:
    """Write the contact sheet of a batch, and print where it is.

    A run writes it at its end. Only pages on which something has changed are written.

    With --json: {ok, file}.
    """
    with journal_errors(context, invocation):
        file = batches.write_sheet(folder)
    if invocation.presentation.json:
        document({"ok": True, "file": str(file)})
    else:
        answer_path(file)
