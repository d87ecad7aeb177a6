"""`batch ambiguous` and `batch resolve`: decide about items that may have been accepted."""

from __future__ import annotations

import shlex

import click

from muybridge import batch as batches
from muybridge.batch import Entry
from muybridge.cli.batch_places import in_database, in_folder, place_of, words_of
from muybridge.cli.batch_progress import entry_record
from muybridge.cli.batch_reports import journal_errors, say_how_to_decide, say_reasons
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON
from muybridge.cli.suggestions import files
from muybridge.cli.terminal import answer, document, say
from muybridge_protocol.records.json import read_object


@click.command(params=[JSON])
@in_folder
@in_database
@click.option("--csv", is_flag=True, help="Print a table to fill in, for resolve --from.")
@pass_invocation
@click.pass_context
def ambiguous(
    context: click.Context, invocation: Invocation, folder: str, *, journal: str | None, csv: bool
) -> None:
    """List the items that may have been accepted and need a decision.

    With --csv, print a table with empty columns decision (adopt, abandon or resubmit) and task.
    Fill them in, then run `batch resolve DIR --from FILE`.

    With --json: for each item, one JSON object per line {number, name, family, state, candidate_id,
    reason, request}.
    """
    if csv and invocation.presentation.json:
        raise click.UsageError("give one of --csv and --json")
    place = place_of(folder, journal)
    with journal_errors(context, invocation):
        if csv:
            click.echo(batches.decision_table(place).encode(), nl=False)
            return
        found = batches.ambiguous(place)
    for entry in found:
        if invocation.presentation.json:
            document({**entry_record(entry), "request": read_object(entry.body)})
        else:
            answer(entry.label)
    if found and not invocation.presentation.json:
        say_reasons(found)
        say_how_to_decide(words_of(folder, journal))


@click.command(params=[JSON])
@in_folder
@click.argument("item", metavar="[ITEM]", required=False)
@in_database
@click.option(
    "--adopt", metavar="ID", help="The request was accepted as task ID: wait for its result."
)
@click.option(
    "--abandon", is_flag=True, help="Do not wait for its result, and do not send it again."
)
@click.option("--resubmit", is_flag=True, help="Send it again in the next run.")
@click.option(
    "--from",
    "table",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    shell_complete=files,
    help="Read decisions about many items from a table that ambiguous --csv has printed.",
)
@click.option(
    "--i-may-pay-twice",
    is_flag=True,
    help="Required with --resubmit, unless the item was refused.",
)
@pass_invocation
@click.pass_context
def resolve(
    context: click.Context,
    invocation: Invocation,
    folder: str,
    item: str | None,
    *,
    journal: str | None,
    adopt: str | None,
    abandon: bool,
    resubmit: bool,
    table: str | None,
    i_may_pay_twice: bool,
) -> None:
    """Decide about an item that may have been accepted.

    ITEM is its number or name. Nothing is sent now: the next `batch run`, or a worker, acts on the
    decision. If the request is also in a store, the decision is recorded there, too.

    With --from, decide about many items at once. Every line is checked before the first decision is
    recorded. Lines without a decision are ignored.

    With --json: {ok, item: {number, name, state, ...}}, or with --from {ok, items: [...]}.
    """
    single = (adopt is not None) + abandon + resubmit
    if table is not None and (item is not None or single):
        raise click.UsageError("give either --from FILE or an ITEM with a decision")
    if table is None and item is None:
        raise click.UsageError("give an ITEM with a decision, or --from FILE")
    if table is None and single != 1:
        raise click.UsageError("give one of --adopt ID, --abandon and --resubmit")
    place = place_of(folder, journal)
    with journal_errors(context, invocation):
        if table is not None:
            decided = batches.resolve_all(place, table, i_may_pay_twice=i_may_pay_twice)
        else:
            assert item is not None  # noqa: S101  checked above
            if adopt is not None:
                entry = batches.adopt(place, item, adopt)
            elif abandon:
                entry = batches.abandon(place, item)
            else:
                entry = batches.resubmit(place, item, i_may_pay_twice=i_may_pay_twice)
            decided = (entry,)
    name = shlex.quote(folder)
    run = f"worker --journal URL --batch {name}" if journal else f"batch run --out {name}"
    _show(invocation, decided, again=f"muybridge {run}", single=table is None)


def _show(invocation: Invocation, decided: tuple[Entry, ...], *, again: str, single: bool) -> None:
    """Report what was decided, and the command that acts on it."""
    records = [entry_record(entry) for entry in decided]
    if invocation.presentation.json:
        document({"ok": True, "item": records[0]} if single else {"ok": True, "items": records})
        return
    for entry in decided if single else ():
        say(f"{entry.label} is {entry.state} now; to resume: {again}")
    if not single:
        for entry in decided:
            say(f"{entry.label} is {entry.state} now")
        say(f"decisions recorded: {len(decided)}; to resume: {again}")
