"""Decide about items of batches: `undecided --batch`, `decide --batch` and `batch retry`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from muybridge import batch as batches
from muybridge.batch import Entry
from muybridge.batch.shared import Place
from muybridge.cli.batch_places import BATCH, place_of, words_of
from muybridge.cli.batch_progress import entry_record
from muybridge.cli.batch_reports import say_how_to_decide, say_reasons, store_errors
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import BATCH_STORE, JSON
from muybridge.cli.terminal import answer, document, say
from muybridge_protocol.purchases import CannotDecide, Choice
from muybridge_protocol.records.json import read_object


@click.command(params=[BATCH, JSON, BATCH_STORE])
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@pass_invocation
@click.pass_context
def retry(
    context: click.Context, invocation: Invocation, batch: str, items: tuple[str, ...]
) -> None:
    """Queue refused items again. They were not charged.

    BATCH is the folder of a batch, or its name in a store. ITEM is the number or name of a refused
    item; without one, all refused items are queued. Nothing is sent now: the next `batch run`, or a
    worker, sends them.

    With --json: {ok, items: [...]}.
    """
    place = place_of(batch, invocation.spending.store)
    with store_errors(context, invocation):
        queued = batches.retry(place, *items)
    _show(invocation, queued, place, single=False)


def list_undecided(
    context: click.Context, invocation: Invocation, batch: str, *, csv: bool
) -> None:
    """List the items of a batch that need a decision."""
    place = place_of(batch, invocation.spending.store)
    with store_errors(context, invocation):
        if csv:
            click.echo(batches.decision_table(place).encode(), nl=False)
            return
        found = batches.ambiguous(place)
    if invocation.presentation.json:
        records = [{**entry_record(entry), "request": read_object(entry.body)} for entry in found]
        document({"ok": True, "batch": batch, "undecided": records})
        return
    for entry in found:
        answer(entry.label)
    if found:
        say_reasons(found)
        say_how_to_decide(place)
    else:
        say(f"nothing to decide in {batch}")


def decide_items(
    context: click.Context,
    invocation: Invocation,
    batch: str,
    item: str | None,
    choice: Choice | None,
    *,
    task: str | None,
    table: str | None,
    not_charged: bool,
    i_may_pay_twice: bool,
) -> None:
    """Record decisions about items of a batch."""
    place = place_of(batch, invocation.spending.store)
    with store_errors(context, invocation):
        if table is not None:
            decided = batches.decide_all(
                place, table, not_charged=not_charged, i_may_pay_twice=i_may_pay_twice
            )
        else:
            assert item is not None  # noqa: S101  checked by the command
            decided = (_decided(place, item, choice, task, not_charged, i_may_pay_twice),)
    _show(invocation, decided, place, single=table is None)


def _decided(
    place: Place,
    item: str,
    choice: Choice | None,
    task: str | None,
    not_charged: bool,  # noqa: FBT001  as the options are
    i_may_pay_twice: bool,  # noqa: FBT001  the same
) -> Entry:
    match choice:
        case Choice.ADOPT:
            return batches.adopt(place, item, task or "")
        case Choice.ABANDON:
            return batches.abandon(place, item)
        case Choice.RELEASE:
            return batches.release(place, item, not_charged=not_charged)
        case Choice.RESUBMIT:
            return batches.resubmit(place, item, i_may_pay_twice=i_may_pay_twice)
        case None:
            raise CannotDecide(f"there is no decision about {item}")


def _show(invocation: Invocation, decided: Sequence[Entry], place: Place, *, single: bool) -> None:
    """Report what was decided, and the command that acts on it."""
    if invocation.presentation.json:
        records = [entry_record(entry) for entry in decided]
        document({"ok": True, "item": records[0]} if single else {"ok": True, "items": records})
        return
    if isinstance(place, batches.SharedBatch):
        again = shlex.join(["muybridge", "worker", *words_of(place)])
    else:
        again = shlex.join(["muybridge", "batch", "run", "--out", os.fspath(place)])
    for entry in decided if single else ():
        say(f"{entry.label} is {entry.state} now; to resume: {again}")
    if not single:
        for entry in decided:
            say(f"{entry.label} is {entry.state} now")
        say(f"decisions recorded: {len(decided)}; to resume: {again}")
