"""`store prune`, `store upgrade` and `store accept`: housekeeping of a store of purchases."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, STORE
from muybridge.cli.terminal import document, say
from muybridge.purchases import Pruning, Store
from muybridge_protocol.records.convert import attributes


@click.group(cls=CommandGroup, no_args_is_help=False)
def store() -> None:
    """Remove old purchases, upgrade a store, or accept an old copy."""


@store.command(params=[JSON, STORE])
@click.option(
    "--before",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Remove what was sent before this day begins, in UTC: YYYY-MM-DD.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_invocation
def prune(invocation: Invocation, *, before: datetime, yes: bool) -> None:
    """Remove settled requests that were sent before a day.

    What was spent stays counted, by day and tag. These stay: the newest request, requests that need
    a decision, those with a name or under dedupe (the name is still promised), and those that an
    item of a batch refers to. For the others, the store then has no task ids any more. On a
    terminal, the command asks first.

    With --json: {ok, store, removed: {accepted: 3, ...}, kept: {named, in_batches, undecided}}.
    """
    day = before.replace(tzinfo=UTC)
    if day > datetime.now(UTC):
        raise click.UsageError(f"--before {day:%Y-%m-%d} is in the future. Nothing was removed")
    with invocation.spending.open_store() as opened:
        if not yes and sys.stdin.isatty():
            question = f"Remove settled requests from before {day:%Y-%m-%d} from {opened.place}?"
            click.confirm(question, abort=True, err=True)
        done = opened.prune(day.timestamp())
        if invocation.presentation.json:
            removed = {str(state): count for state, count in done.removed.items()}
            document({"ok": True, "store": opened.place, "removed": removed, "kept": _kept(done)})
            return
        count = sum(done.removed.values())
        each = ", ".join(f"{n} {state}" for state, n in done.removed.items())
        line = f"{count} from before {day:%Y-%m-%d}{f' ({each})' if each else ''}"
        say(f"removed: {line}; what was spent stays counted")
        kept = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in _kept(done).items() if n)
        if kept:
            say(f"kept from before that day: {kept}")


@store.command(params=[JSON, STORE])
@click.option(
    "--i-may-pay-twice",
    is_flag=True,
    help="Required: what was paid since the copy was made may be paid again.",
)
@pass_invocation
def accept(invocation: Invocation, *, i_may_pay_twice: bool) -> None:
    """Use an older copy of a store file whose latest version is lost.

    Programs of this machine refuse a copy that lacks the last request that they have recorded. Look
    at your account first. What was paid since the copy is not counted, and its names are free: a
    `create_once` that is repeated pays again. Stop every program that uses the store before.

    With --json: {ok, store}.
    """
    if not i_may_pay_twice:
        raise click.UsageError(
            "the copy does not know what was paid since. Put the latest one back if you can. If "
            "you accept that you may pay twice, add --i-may-pay-twice"
        )
    with invocation.spending.open_store() as opened:
        _check_exists(opened)
        opened.accept()
        say(f"{opened.place} is used as it is from now on")
        if invocation.presentation.json:
            document({"ok": True, "store": opened.place})


@store.command(params=[JSON, STORE])
@pass_invocation
def upgrade(invocation: Invocation) -> None:
    """Upgrade a store that an older version of Muybridge has made.

    Stop every program that uses it, and make a copy, first: older versions cannot use it any more.
    It is upgraded in one transaction. A store of this version is left as it is.

    With --json: {ok, store, before, after}.
    """
    from muybridge.purchases.schema import VERSION

    with invocation.spending.open_store() as opened:
        _check_exists(opened)
        before = opened.upgrade()
        if invocation.presentation.json:
            document({"ok": True, "store": opened.place, "before": before, "after": VERSION})
        elif before == VERSION:
            say(f"{opened.place} has version {VERSION} already")
        else:
            say(f"{opened.place}: upgraded from version {before} to {VERSION}")


def _check_exists(opened: Store) -> None:
    if not opened.database.exists():
        raise click.UsageError(f"there is no store at {opened.place}. Nothing was changed")


def _kept(done: Pruning) -> dict[str, int]:
    return {**attributes(done, "named", "undecided"), "in_batches": done.followed}
