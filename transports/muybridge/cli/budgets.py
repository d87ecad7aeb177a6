"""`budget set`, `budget list` and `budget remove`: limits for everybody who uses a store."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, Literal

import click

from muybridge.cli.connection import words_of
from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, PERIOD_LIMITS, STORE, STORED_PERIOD
from muybridge.cli.purchase_records import short_time
from muybridge.cli.terminal import document, say, show, table
from muybridge.cli.totals import plain
from muybridge.purchases import Budget, Store
from muybridge.purchases.environment import STORE_VARIABLE, place_in_commands
from muybridge.verbs import spending
from muybridge.verbs.spending import time_of
from muybridge_protocol.estimates.units import EXACT
from muybridge_protocol.purchases import Amounts, Measure, is_key

_TAG: Final = "KEY[=VALUE]"


@click.group(cls=CommandGroup, no_args_is_help=False)
def budget() -> None:
    """Limit what everybody who uses a store may spend."""


@budget.command("set", params=[JSON, *PERIOD_LIMITS, STORE])
@click.option(
    "--tag",
    default="",
    metavar=_TAG,
    help="Limit only requests with this tag, such as customer=acme [default: limit all]. A key "
    "alone limits each of its values separately, and refuses requests without it.",
)
@click.option(
    "--from",
    "start",
    type=click.Choice(["now", "start"]),
    help="Count only requests that are sent from now on, or also what was spent before [default: "
    "unchanged; a new budget counts from the start].",
)
@pass_invocation
def set_budget(invocation: Invocation, *, tag: str, start: Literal["now", "start"] | None) -> None:
    """Set a budget for everybody who uses the store.

    It is checked in the transaction that records each request, whichever program, machine or key
    sends it, in addition to the program's own limits. A request has to fit into the budget of each
    of its tags. A tag has one budget for each --per, and one without it. Limits that are not given
    stay as they are.

    With --json: {ok, store, budget: {tag, per, since, limits: {creates: {limit, spent, left}}}}. If
    tag is a key alone, there is no spent and left; but values: {VALUE: {creates: {limit, spent,
    left}}}.
    """
    limits = invocation.spending.read_budget() or Budget()
    if not (limits.limits or start):
        raise click.UsageError("give a limit, such as --max-creates 200 --per day")
    with invocation.spending.open_store() as store:
        try:
            stored = store.limit(tag, limits, from_now=None if start is None else start == "now")
        except ValueError as error:
            raise click.UsageError(f"{error}. Nothing was changed.") from None
        used = spending.use_of(store, stored)
        if invocation.presentation.json:
            document({"ok": True, "store": store.place, "budget": _record(used)})
            return
        for line in _lines(used):
            say(line)
        _say_whom_it_binds(store)


@budget.command("list", params=[JSON, STORE])
@pass_invocation
def list_budgets(invocation: Invocation) -> None:
    """List the stored budgets, and what is left of them.

    Reserved and ambiguous requests count as spent. Limits of a program (--max-...,
    MUYBRIDGE_MAX_... or Client(budget=...)) are not stored, and not listed.

    With --json: {ok, store, budgets: [{tag, per, since, limits: {creates: {limit, spent, left}}}]},
    each as `budget set` prints it; amounts are text, and null if unknown.
    """
    with invocation.spending.open_store() as store:
        show_budgets(invocation, store)


@budget.command("remove", params=[JSON, STORE, STORED_PERIOD])
@click.option(
    "--tag",
    default="",
    metavar=_TAG,
    help="The budget of this tag, such as customer=acme, or of a key alone [default: the one of "
    "all requests].",
)
@pass_invocation
def remove_budget(invocation: Invocation, *, tag: str) -> None:
    """Remove a budget, with all its limits.

    `budget list` shows its tag and its period. What was spent stays recorded.

    With --json: {ok, store, removed: {tag, per}}.
    """
    per: Any = invocation.spending.per
    with invocation.spending.open_store() as store:
        try:
            removed = store.lift(tag, per)
        except LookupError:
            words = words_of(invocation.spending, "per")
            which = " ".join([f"--tag {tag}" if tag else "without --tag", *words])
            raise click.UsageError(
                f"there is no budget {which} in {store.place}. `muybridge budget list` lists them"
            ) from None
        say(f"{removed.called()} is removed")
        if invocation.presentation.json:
            document({"ok": True, "store": store.place, "removed": {"tag": tag, "per": per}})


def show_budgets(invocation: Invocation, store: Store) -> None:
    """Show the stored budgets, and what is left of them."""
    budgets = spending.budgets(store)
    if invocation.presentation.json:
        document({"ok": True, "store": store.place, "budgets": [*map(_record, budgets)]})
        return
    if not budgets:
        say(f"no budget is stored in {store.place}; to set one: muybridge budget set --help")
        return
    rows = table("Tag", "Limit", "Spent", "Left", "Counts since (UTC)")
    for used in budgets:
        stored = used.stored
        since = "" if stored.since is None else short_time(stored.since)
        for measure in stored.budget.limits if is_key(stored.tag) else ():
            rows.add_row(f"{stored.tag} (each)", stored.budget.shown(measure), "", "", since)
        for tag, amounts in used.spent.items():
            for measure, spent, left in _amounts(stored.budget, amounts):
                limit = stored.budget.shown(measure)
                rows.add_row(tag or "(all)", limit, _plain(spent), _plain(left), since)
    show([rows])
    say(f"stored in {store.place}")


def _say_whom_it_binds(store: Store) -> None:
    """Tell how programs come to use *store*, if the environment does not lead them there.

    Without a limit, a store or tags of its own, a program uses none, and no budget binds it.
    """
    if os.environ.get(STORE_VARIABLE) and not place_in_commands(store.place):
        return
    place = "URL" if "://" in store.place else shlex.quote(store.place)
    say(
        "it binds only programs that use this store; for all of yours: "
        f"export {STORE_VARIABLE}={place}"
    )


def _lines(used: spending.Usage) -> Iterator[str]:
    stored, limits = used.stored, used.stored.budget.limits
    since = "" if stored.since is None else ", counted from now on"
    if is_key(stored.tag):
        limited = ", ".join(map(stored.budget.shown, limits))
        yield f"each value of {stored.tag}: at most {limited}{since}"
        yield f"requests without a tag {stored.tag}=VALUE are refused from now on"
    for tag, amounts in used.spent.items():
        for measure, spent, left in _amounts(stored.budget, amounts):
            limit = stored.budget.shown(measure)
            yield (
                f"{tag or 'all requests'}: at most {limit}{since}; {_plain(spent)} spent, "
                f"{_plain(left)} left"
            )
    counted = (one[it] for one in used.spent.values() for it in (Measure.CREATES, Measure.CALLS))
    if stored.tag and not any(counted):
        yield f"no request with the tag {stored.tag} counts here yet"


def _amounts(
    budget: Budget, spent: Amounts
) -> Iterator[tuple[Measure, Decimal | None, Decimal | None]]:
    """Yield each limited measure, what is spent of it, and what is left; or None if unknown."""
    for measure, limit in budget.limits.items():
        used = spent[measure]
        left = None if used is None else max(EXACT.subtract(limit, used), Decimal(0))
        yield measure, used, left


def _record(used: spending.Usage) -> dict[str, Any]:
    stored = used.stored
    limits = {tag: _limits(stored.budget, amounts) for tag, amounts in used.spent.items()}
    record: dict[str, Any] = {
        "tag": stored.tag or None,
        "per": stored.budget.per,
        "since": None if stored.since is None else time_of(stored.since),
    }
    if not is_key(stored.tag):
        return {**record, "limits": limits[stored.tag]}
    whole = {str(one): {"limit": plain(limit)} for one, limit in stored.budget.limits.items()}
    values = {tag.partition("=")[2]: each for tag, each in limits.items()}
    return {**record, "limits": whole, "values": values}


def _limits(budget: Budget, spent: Amounts) -> dict[str, Any]:
    return {
        str(measure): {
            "limit": plain(budget.limits[measure]),
            "spent": None if used is None else plain(used),
            "left": None if left is None else plain(left),
        }
        for measure, used, left in _amounts(budget, spent)
    }


def _plain(amount: Decimal | None) -> str:
    return "unknown" if amount is None else plain(amount)
