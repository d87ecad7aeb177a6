"""`spent`, `ledger list` and `ledger resolve`: what was paid for, and what may have been."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import attrs
import click

from muybridge.cli.connection import words_of
from muybridge.cli.groups import CommandGroup
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, STORE
from muybridge.cli.terminal import document, say, show, table
from muybridge.cli.totals import plain, shown, sum_record
from muybridge.purchases import Choice, Measure, Purchase, State, Store
from muybridge_protocol.estimates import Sum
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.service import shown_id

if TYPE_CHECKING:
    from rich.table import Table


@attrs.frozen(kw_only=True, order=True)
class Group:
    """Which entries are added up together.

    Args:
        day: The day in UTC.
        family: The family of the requests, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        state: `accepted`, `armed` or `ambiguous`; a resubmitted entry counts as accepted.
    """

    day: date
    family: str
    model: str
    state: State


@attrs.frozen(kw_only=True)
class Spent:
    """What the entries of a group consume.

    Args:
        requests: How many entries there are.
        amounts: The sum of each amount.
    """

    requests: int
    amounts: dict[Measure, Sum]

    def plus(self, entry: Purchase) -> Spent:
        """Return the sums with one entry more."""
        amounts = {one: self.amounts[one].plus(entry.amounts[one]) for one in Measure}
        return Spent(requests=self.requests + 1, amounts=amounts)


NOTHING = Spent(requests=0, amounts=dict.fromkeys(Measure, Sum()))


def spent_by_group(entries: Iterable[Purchase]) -> dict[Group, Spent]:
    """Return what *entries* consume, by group in order. Released ones consume nothing."""
    found: dict[Group, Spent] = {}
    for entry in entries:
        if entry.state is State.RELEASED:
            continue
        state = State.ACCEPTED if entry.state is State.RESUBMITTED else entry.state
        day = datetime.fromtimestamp(entry.armed_at, UTC).date()
        group = Group(day=day, family=entry.family, model=entry.model, state=state)
        found[group] = found.get(group, NOTHING).plus(entry)
    return dict(sorted(found.items()))


_RECORDED = "requests are recorded only with a limit, a store, a name (once) or dedupe"
"""Which requests are in a store."""
_SHOWN = {"accepted": "", "armed": "reserved", "ambiguous": "ambiguous"}
"""What a state is called in the table."""


@click.command(params=[JSON, STORE])
@pass_invocation
def spent(invocation: Invocation) -> None:
    """Show what was spent, by day, family and model.

    Only requests with a limit, a store, a name (once) or dedupe are recorded and so counted here.
    Requests that are on their way are shown as reserved. Those that may have been accepted are
    ambiguous, and count as spent until you decide (`muybridge ledger resolve`). Days are UTC.

    With --json: {ok, ledger, spent: [{day, family, model, state, requests, creates: {known,
    unknown}, pictures, seconds, calls, cost}], ambiguous: [{key, time, family, model, state, once,
    reason, candidate_id, task_id}]}; unknown counts the requests that known leaves out.
    """
    books = invocation.spending.open_store()
    entries = _all_in(books)
    groups = spent_by_group(entries)
    ambiguous = [entry for entry in entries if entry.state is State.AMBIGUOUS]
    if invocation.presentation.json:
        found = [_record(group, one) for group, one in groups.items()]
        unclear = [*map(_entry_record, ambiguous)]
        document({"ok": True, "ledger": books.place, "spent": found, "ambiguous": unclear})
        return
    if not entries:
        _say_nothing_in(books)
        return
    show([_table(groups)])
    _say_what_is_in(books)
    for entry in ambiguous:
        say(f"ambiguous: {entry.key}{_named(entry)}: {entry.reason or ''}")
    if ambiguous:
        where = words_of(invocation.spending, "store")
        command = shlex.join(["muybridge", "ledger", "resolve", *where])
        say(
            f"check your account, then decide: {command} KEY --adopt ID | --not-charged | "
            "--abandon | --resubmit --i-may-pay-twice"
        )


@click.group(cls=CommandGroup, no_args_is_help=False)
def ledger() -> None:
    """List recorded requests, and decide about ambiguous ones."""


@ledger.command("list", params=[JSON, STORE])
@pass_invocation
def list_entries(invocation: Invocation) -> None:
    """List the recorded requests with their task ids, oldest first.

    Use it to find a task that you paid for but whose id you did not keep. `muybridge download ID`
    saves its result as long as the service keeps it.

    With --json: {ok, ledger, entries: [{key, time, family, model, state, once, reason,
    candidate_id, task_id}]}.
    """
    books = invocation.spending.open_store()
    entries = _all_in(books)
    if invocation.presentation.json:
        records = [_entry_record(entry) for entry in entries]
        document({"ok": True, "ledger": books.place, "entries": records})
    elif not entries:
        _say_nothing_in(books)
    else:
        show([_list(entries)])
        _say_what_is_in(books)


@ledger.command(params=[JSON, STORE])
@click.argument("key", metavar="KEY")
@click.option("--adopt", metavar="ID", help="The request was accepted as task ID.")
@click.option(
    "--not-charged", is_flag=True, help="The request was not accepted: release its amount."
)
@click.option("--abandon", is_flag=True, help="Keep its amount as spent; do not send it again.")
@click.option("--resubmit", is_flag=True, help="Keep its amount as spent; it may be sent again.")
@click.option("--i-may-pay-twice", is_flag=True, help="Required with --resubmit.")
@pass_invocation
def resolve(
    invocation: Invocation,
    key: str,
    *,
    adopt: str | None,
    not_charged: bool,
    abandon: bool,
    resubmit: bool,
    i_may_pay_twice: bool,
) -> None:
    """Decide what happened to an ambiguous request.

    `muybridge spent` lists the KEY of each. Nothing is sent. A repeated `create_once` acts on the
    decision, and so does the next run of the batch that the request belongs to.

    With --json: {ok, entry: {key, state, ...}}.
    """
    if (adopt is not None) + not_charged + abandon + resubmit != 1:
        raise click.UsageError("give one of --adopt ID, --not-charged, --abandon and --resubmit")
    if resubmit and not i_may_pay_twice:
        raise click.UsageError(
            f"{key} may have been accepted and charged: say that you may pay twice "
            "(--i-may-pay-twice)"
        )
    books = invocation.spending.open_store()
    if adopt is not None:
        entry = books.decide(key, Choice.ADOPT, adopt)
    elif not_charged:
        entry = books.decide(key, Choice.RELEASE)
    else:
        entry = books.decide(key, Choice.ABANDON if abandon else Choice.RESUBMIT)
    say(f"{entry.key}{_named(entry)} is {entry.state} now")
    if invocation.presentation.json:
        document({"ok": True, "entry": _entry_record(entry)})


def _all_in(books: Store) -> list[Purchase]:
    books.sweep()
    return [*books.purchases()]


def _table(groups: dict[Group, Spent]) -> Table:
    found = table("Day", "Family", "Model", "Requests", "Pictures", "Seconds", "Cost", "")
    for group, one in groups.items():
        names = (group.day.isoformat(), group.family or "?", group.model)
        found.add_row(*names, *_cells(one), _SHOWN[group.state])
    return found


def _list(entries: Iterable[Purchase]) -> Table:
    found = table("Time (UTC)", "Family", "Model", "State", "Task", "Name")
    for entry in entries:
        task = "" if entry.task is None else shown_id(entry.task)
        cells = (_time(entry), entry.family or "?", entry.model, str(entry.state), task)
        found.add_row(*cells, entry.once or "")
    return found


def _cells(one: Spent) -> Iterator[str]:
    yield str(one.requests)
    for measure in (Measure.PICTURES, Measure.SECONDS, Measure.COST):
        yield shown(one.amounts[measure])


def _record(group: Group, one: Spent) -> dict[str, Any]:
    sums: dict[str, Any] = {str(name): sum_record(one.amounts[name]) for name in Measure}
    cost = one.amounts[Measure.COST]
    sums["cost"] = {"known": plain(cost.known), "unknown": cost.unknown}
    return {
        "day": group.day.isoformat(),
        **attributes(group, "family", "model"),
        "state": str(group.state),
        "requests": one.requests,
        **sums,
    }


def _entry_record(entry: Purchase) -> dict[str, Any]:
    task = entry.task
    return {
        "key": entry.key,
        "time": _time(entry),
        **attributes(entry, "family", "model"),
        "state": str(entry.state),
        "once": entry.once,
        **attributes(entry, "reason"),
        "candidate_id": entry.candidate,
        "task_id": task,
    }


def _time(entry: Purchase) -> str:
    return datetime.fromtimestamp(entry.armed_at, UTC).isoformat(timespec="seconds")


def _say_nothing_in(books: Store) -> None:
    say(f"no request that costs money is recorded in {books.place}; {_RECORDED}")


def _say_what_is_in(books: Store) -> None:
    say(f"recorded in {books.place}; {_RECORDED}")


def _named(entry: Purchase) -> str:
    return "" if entry.once is None else f" ({entry.once})"
