"""`spent`, `undecided` and `decide`: what was paid for, and what may have been."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from muybridge.cli.batch_decisions import decide_items, list_undecided
from muybridge.cli.budgets import show_budgets
from muybridge.cli.course import operand
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, STORE
from muybridge.cli.purchase_records import (
    RECORDED,
    purchase_record,
    request_of,
    short_time,
    store_words,
    sums_record,
    task_of,
)
from muybridge.cli.suggestions import files
from muybridge.cli.terminal import document, long_document, say, show, table
from muybridge.cli.totals import plain, shown
from muybridge.purchases import Choice, Measure, Purchase, State, Store
from muybridge.verbs import decisions, spending

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN: Final = {State.ACCEPTED: "", State.ARMED: "reserved", State.AMBIGUOUS: "ambiguous"}
"""What a state is called in the table of sums."""
_REMOVED: Final = "(removed)"
_MEANINGS: Final = {
    State.ACCEPTED: "it counts as spent",
    State.RELEASED: "it does not count as spent, and can be sent again",
    State.ABANDONED: "it counts as spent, and its name stays taken",
    State.RESUBMITTED: "it counts as spent, and can be sent again",
}
"""What a decision means for money."""
_CHOICES: Final = "--adopt TASK, --abandon, --release, --resubmit"


@click.command(params=[JSON, STORE])
@click.option(
    "--by",
    metavar="WORDS",
    default=",".join(spending.BY),
    show_default=True,
    help="What to group by: day, family, model, and the key of a tag, such as customer; or budget, "
    "for the stored budgets; or purchase, for a list with task ids.",
)
@pass_invocation
def spent(invocation: Invocation, *, by: str) -> None:
    """Show what was spent, by day, family and model.

    Only requests with a limit, a store, tags, a name (once) or dedupe are recorded, and so counted.
    Requests that are on their way are shown as reserved. Those that may have been accepted are
    ambiguous, and count as spent until you decide (`muybridge undecided`). Days are UTC.

    With `--by customer`, a request counts under the value of its tag customer=VALUE. With `--by
    purchase`, each request is listed with the id of its task, oldest first: `muybridge download ID`
    saves its result as long as the service keeps it. What `muybridge store prune` has removed stays
    counted, by day and tag, and is not listed.

    With --json: {ok, store, spent: [{day, family, model, tag, state, requests, pruned, creates:
    {known, unknown}, pictures, seconds, calls, cost}], undecided: [{key, time, account, family,
    model, tier, state, once, tags, reason, candidate_id, task_id, late_task_id, amounts}]}; unknown
    counts the requests that known leaves out. With `--by purchase`, {ok, store, purchases}; with
    `--by budget`, as `budget list`.
    """
    with invocation.spending.open_store() as store:
        match by:
            case "purchase":
                _show_purchases(invocation, store)
            case "budget":
                show_budgets(invocation, store)
            case _:
                _show_spent(invocation, store, [one.strip() for one in by.split(",")])


def _show_spent(invocation: Invocation, store: Store, by: Sequence[str]) -> None:
    if not all(by) or len({*by}) < len(by) or {"purchase", "budget"} & {*by}:
        raise click.UsageError(
            f"--by {','.join(by)}: give each word once; budget and purchase alone"
        )
    try:
        report = spending.spent(store, by)
    except ValueError as error:
        raise click.UsageError(f"--by {','.join(by)}: {error}") from None
    if invocation.presentation.json:
        document({
            "ok": True,
            "store": store.place,
            "spent": [_group_record(report.by, one) for one in report.groups],
            "undecided": [purchase_record(one) for one in report.undecided],
        })  # fmt: skip
        return
    if not report.groups:
        _say_nothing_in(store)
        return
    show([_groups(report)])
    say(f"recorded in {store.place}; {RECORDED}")
    if any(one.is_pruned for one in report.groups):
        say("+ and (removed): purchases that were removed (store prune) are counted, not listed")
    if report.undecided:
        words = shlex.join(["muybridge", "undecided", *store_words(store)])
        say(f"{_counted(len(report.undecided))} ambiguous; to decide: {words}")


def _groups(report: spending.Spending) -> Table:
    rows = table(
        *(one.capitalize() for one in report.by), "Requests", "Pictures", "Seconds", "Cost", ""
    )
    for one in report.groups:
        count = f"{one.purchases}{'+' if one.is_pruned else ''}"
        amounts = [shown(one.sums[it]) for it in (Measure.PICTURES, Measure.SECONDS, Measure.COST)]
        rows.add_row(*map(_label, one.labels, report.by), count, *amounts, _SHOWN[one.state])
    return rows


def _label(label: str | None, by: str) -> str:
    unknown = {"family": "?", "model": ""}.get(by, "-")
    return _REMOVED if label is None else label or unknown


def _group_record(by: Sequence[str], one: spending.Spent) -> dict[str, Any]:
    return {
        # A tag's key may be called like another member.
        **{
            word if word in spending.BY else "tag": label
            for word, label in zip(by, one.labels, strict=True)
        },
        "state": str(one.state),
        "requests": one.purchases,
        "pruned": one.is_pruned,
        **sums_record(one.sums),
    }


def _show_purchases(invocation: Invocation, store: Store) -> None:
    spending.sweep(store)
    if invocation.presentation.json:
        records = map(purchase_record, store.purchases())
        long_document({"ok": True, "store": store.place, "purchases": records})
        return
    rows = table("Time (UTC)", "Request", "State", "Task", "Cost", "Key")
    empty = True
    for one in store.purchases():
        empty = False
        amount = one.amounts[Measure.COST]
        cost = "unknown" if amount is None else plain(amount)
        rows.add_row(
            short_time(one.armed_at), request_of(one), str(one.state), task_of(one), cost, one.key
        )
    if empty:
        _say_nothing_in(store)
        return
    show([rows])
    say(f"recorded in {store.place}; {RECORDED}")


in_batch: Final = click.option(
    "--batch",
    metavar="BATCH",
    help="Only items of a batch: its folder, or its name in the store.",
)


@click.command(params=[JSON, STORE])
@click.option("--csv", is_flag=True, help="Print a table to fill in, for decide --from.")
@in_batch
@click.option(
    "--unpriced",
    is_flag=True,
    help="List requests whose cost is unknown instead: they block limits on cost.",
)
@pass_invocation
@click.pass_context
def undecided(
    context: click.Context,
    invocation: Invocation,
    *,
    csv: bool,
    batch: str | None,
    unpriced: bool,
) -> None:
    """List requests that may have been accepted and need a decision.

    They count as spent, and are not sent again, until you decide. Look at your account for a task
    that belongs to each, then use `muybridge decide KEY`. With --csv, print a table with empty
    columns decision (adopt, abandon, release or resubmit), task and cost. Fill them in, then run
    `muybridge decide --from FILE`.

    With --unpriced, list the requests whose cost is unknown: `muybridge decide KEY --cost AMOUNT`,
    or the same table, gives it.

    With --json: {ok, store, undecided: [{key, time, account, family, model, tier, state, once,
    tags, reason, candidate_id, task_id, late_task_id, amounts}]}. With --batch: {ok, batch,
    undecided: [{number, name, family, state, candidate_id, reason, request}]}.
    """
    if csv and invocation.presentation.json:
        raise click.UsageError("give one of --csv and --json")
    if batch is not None:
        list_undecided(context, invocation, batch, csv=csv)
        return
    with invocation.spending.open_store() as store:
        purchases = decisions.unpriced(store) if unpriced else decisions.undecided(store)
        if csv:
            click.echo(decisions.decision_table(purchases).encode(), nl=False)
        elif invocation.presentation.json:
            records = [purchase_record(one) for one in purchases]
            document({"ok": True, "store": store.place, "undecided": records})
        elif not purchases:
            nothing = "no request without a cost" if unpriced else "nothing to decide"
            say(f"{nothing} in {store.place}; {RECORDED}")
        elif unpriced:
            _show_unpriced(store, purchases)
        else:
            _show_undecided(store, purchases)


def _show_unpriced(store: Store, purchases: Sequence[Purchase]) -> None:
    rows = table("Key", "Time (UTC)", "Request", "State")
    rows.columns[0].no_wrap = rows.columns[1].no_wrap = True
    for one in purchases:
        rows.add_row(one.key, short_time(one.armed_at), request_of(one), str(one.state))
    show([rows])
    words = shlex.join(["muybridge", "decide", *store_words(store)])
    say(f"to give what one has cost: {words} KEY --cost AMOUNT")


def _show_undecided(store: Store, purchases: Sequence[Purchase]) -> None:
    rows = table("Key", "Time (UTC)", "Request", "Possible task")
    rows.columns[0].no_wrap = rows.columns[1].no_wrap = True
    for one in purchases:
        rows.add_row(one.key, short_time(one.armed_at), request_of(one), one.candidate or "")
    show([rows])
    for one in purchases:
        say(f"{one.key}: {one.reason or 'nobody knows how it has ended'}")
    words = shlex.join(["muybridge", "decide", *store_words(store)])
    many = shlex.join(["muybridge", "undecided", "--csv", *store_words(store)])
    say("look at your account for a task of each, then decide:")
    for choice in _ways("TASK"):
        say(f"  {words} KEY {choice}")
    say(f"or decide about many: {many} > FILE, fill it in, then {words} --from FILE")


@click.command(params=[JSON, STORE])
@click.argument("key", metavar="[KEY]", required=False)
@click.option("--adopt", metavar="TASK", help="It was accepted as this task.")
@click.option(
    "--abandon", is_flag=True, help="Leave it: it stays counted as spent, and its name taken."
)
@click.option(
    "--release",
    is_flag=True,
    help="It was not accepted: do not count it as spent. It can then be sent again. Needs "
    "--not-charged.",
)
@click.option(
    "--resubmit",
    is_flag=True,
    help="It may be sent again, and stays counted as spent. Needs --i-may-pay-twice.",
)
@click.option("--cost", metavar="AMOUNT", help="What it has cost, if that is not known.")
@click.option(
    "--from",
    "file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    shell_complete=files,
    help="Read decisions about many requests from a table that undecided --csv has printed.",
)
@click.option(
    "--not-charged", is_flag=True, help="Your account shows that what you release was not charged."
)
@click.option("--i-may-pay-twice", is_flag=True, help="You may pay twice for what you resubmit.")
@in_batch
@pass_invocation
@click.pass_context
def decide(
    context: click.Context,
    invocation: Invocation,
    key: str | None,
    *,
    adopt: str | None,
    abandon: bool,
    release: bool,
    resubmit: bool,
    cost: str | None,
    file: str | None,
    not_charged: bool,
    i_may_pay_twice: bool,
    batch: str | None,
) -> None:
    """Decide what happened to a request that may have been accepted.

    `muybridge undecided` lists the KEY of each (it is not an API key). Without a decision, the
    command shows what is known about it. Nothing is sent: a repeated `create_once` acts on the
    decision. A request whose response contains an id cannot be released, because it was probably
    accepted. Nobody can decide while the request may still be under way.

    With --cost, also without a decision, it gives the cost of a request. Until then, an unknown
    cost blocks limits on cost.

    With --from, decide about many at once. All of the file is checked first, and either every
    decision is recorded or none. Lines without a decision are ignored.

    With --batch, KEY is the number or the name of an item, and the next `batch run`, or a worker,
    acts on the decision. --abandon also applies to an item that is not sent yet.

    With --json: {ok, purchase: {key, state, task_id, ...}} with the fields of `undecided`, or with
    --from {ok, purchases: [...]}. With --batch: {ok, item: {number, name, state, ...}}, or with
    --from {ok, items: [...]}.
    """
    given = {
        Choice.ADOPT: adopt is not None,
        Choice.ABANDON: abandon,
        Choice.RELEASE: release,
        Choice.RESUBMIT: resubmit,
    }
    choices = [choice for choice, is_given in given.items() if is_given]
    if (key is None) == (file is None) or (file is not None and (choices or cost is not None)):
        raise click.UsageError("give either a KEY with a decision, or --from FILE")
    if len(choices) > 1:
        raise click.UsageError(f"give one of {_CHOICES}")
    consents = {"not_charged": not_charged, "i_may_pay_twice": i_may_pay_twice}
    if batch is not None:
        if cost is not None or (file is None and not choices):
            raise click.UsageError(f"with --batch, give an ITEM and one of {_CHOICES}")
        choice = choices[0] if choices else None
        decide_items(context, invocation, batch, key, choice, task=adopt, table=file, **consents)
        return
    with invocation.spending.open_store() as store:
        if file is not None:
            after = decisions.decide(store, decisions.read_decisions(file), **consents)
            _show_decided(invocation, after)
            return
        assert key is not None  # noqa: S101  checked above
        if not choices and cost is None:
            _show_purchase(invocation, store, decisions.find(store, key))
            return
        decision = decisions.Decision(
            key=key, choice=choices[0] if choices else None, task=adopt, cost=_cost(cost)
        )
        [purchase] = decisions.decide(store, [decision], **consents)
        for line in _lines(purchase, priced=cost is not None):
            say(line)
        if invocation.presentation.json:
            document({"ok": True, "purchase": purchase_record(purchase)})


def _cost(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return decisions.read_cost(text)
    except ValueError as error:
        raise click.UsageError(f"--cost: {error}") from None


def _show_decided(invocation: Invocation, after: Sequence[Purchase]) -> None:
    if invocation.presentation.json:
        document({"ok": True, "purchases": [purchase_record(one) for one in after]})
        return
    counts = Counter(str(one.state) for one in after)
    each = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    say(f"decisions recorded: {len(after)}{f' ({each})' if each else ''}")


def _lines(purchase: Purchase, *, priced: bool) -> Iterator[str]:
    """Yield what a decision has made of a purchase, and what it means for money."""
    named = f"purchase {purchase.key}{'' if purchase.once is None else f' ({purchase.once})'}"
    task = f" as task {task_of(purchase)}" if purchase.task else ""
    meaning = f": {_MEANINGS[purchase.state]}" if purchase.state in _MEANINGS else ""
    yield f"{named} is {purchase.state}{task}{meaning}"
    amount = purchase.amounts[Measure.COST]
    if priced and amount is not None:
        yield f"its cost is {plain(amount)}"
    if purchase.task is not None:
        yield f"to get its result: {shlex.join(['muybridge', 'wait', *operand(purchase.task)])}"


def _show_purchase(invocation: Invocation, store: Store, purchase: Purchase) -> None:
    if invocation.presentation.json:
        document({"ok": True, "purchase": purchase_record(purchase)})
        return
    cost = purchase.amounts[Measure.COST]
    facts = {
        "Key": purchase.key,
        "Time (UTC)": spending.time_of(purchase.armed_at),
        "Request": request_of(purchase),
        "State": str(purchase.state),
        "Cost": "unknown" if cost is None else plain(cost),
        "Task": task_of(purchase),
        "Possible task": purchase.candidate or "",
        "Reason": purchase.reason or "",
    }
    rows = table("", "")
    rows.show_header = False
    for name, value in facts.items():
        if value:
            rows.add_row(name, value)
    show([rows])
    if purchase.state is State.AMBIGUOUS:
        words = shlex.join(["muybridge", "decide", *store_words(store), purchase.key])
        say("look at your account for its task, then decide:")
        for choice in _ways(purchase.candidate or "TASK", released=purchase.candidate is None):
            say(f"  {words} {choice}")


def _ways(task: str, *, released: bool = True) -> Iterator[str]:
    """Yield the options of each decision, and what they mean."""
    yield f"{_adopting(task)}  (it was accepted as this task)"
    yield "--abandon  (leave it: it stays spent, and its name taken)"
    if released:
        yield "--release --not-charged  (it was not accepted: it can be sent again)"
    yield "--resubmit --i-may-pay-twice  (it stays spent, and can be sent again)"


def _adopting(task: str) -> str:
    return shlex.join([f"--adopt={task}"] if task.startswith("-") else ["--adopt", task])


def _say_nothing_in(store: Store) -> None:
    say(f"no request that costs money is recorded in {store.place}; {RECORDED}")


def _counted(count: int) -> str:
    return f"{count} request{' is' if count == 1 else 's are'}"
