"""`consent`, and what it means for the commands that send requests which cost money."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from muybridge.cli.exit_codes import NOT_SENT
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON, KEY_FILE
from muybridge.cli.terminal import answer, document, message_console, say
from muybridge.cli.totals import plain, remarks, totals_table
from muybridge.configuration import KEY_VARIABLE, all_tags, hidden
from muybridge.purchases.environment import default_place
from muybridge.verbs.consent import (
    Consent,
    ConsentRequired,
    budgets_for,
    consent_file,
    consent_to_use,
    has_chosen,
    store_consent,
    stored_consent,
    uncovered,
)
from muybridge_protocol.errors import LocalError
from muybridge_protocol.estimates import Quantities, Totals, estimate_of
from muybridge_protocol.local_errors import NOTHING_SENT
from muybridge_protocol.purchases import Amounts, Measure, OwnTags, amounts_of
from muybridge_protocol.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from muybridge_protocol.estimates import PriceList

_ELSEWHERE: Final = "To cover it, a person can set a budget: muybridge budget set --help"


@click.command(params=[JSON, KEY_FILE])
@click.argument("choice", type=click.Choice([one.value for one in Consent]), required=False)
@pass_invocation
def consent(invocation: Invocation, *, choice: str | None) -> None:
    """Choose whether a person is asked before a paid request.

    \b
      always   send without asking (the default)
      ask      ask on a terminal; elsewhere, send only what a stored budget covers
      budget   send only what a stored budget covers, batches and workers included

    The choice is for run, create and text; `muybridge batch run --help` says when a batch asks. It
    is kept for your user and API key, and is changed on a terminal only. Without an argument, the
    command shows it.

    A program with your shell can do what you can. The limit that holds is a budget in a database
    whose settings it cannot write.

    With --json: {ok, consent, file}; consent is null if it is chosen for other accounts alone.
    """  # noqa: D301  click's own mark for lines that stay as they are
    key = _key(invocation)
    if key is None:
        raise LocalError(
            "There is no API key, and consent is kept for the account of one.",
            Remedy(kind=RemedyKind.GIVE, option="api_key", variable=KEY_VARIABLE),
            argument="api_key",
        )
    if choice is not None:
        if not _is_terminal():
            raise click.UsageError(
                "consent is changed by a person, on a terminal only. Nothing was changed."
            )
        store_consent(key, Consent(choice))
        say(f"stored in {consent_file()}")
    found = stored_consent(key) if has_chosen() else Consent.ALWAYS
    if invocation.presentation.json:
        document({"ok": True, "consent": found, "file": str(consent_file())})
    else:
        answer(found or "chosen for other accounts, and not for this one")


def obtain_consent(invocation: Invocation, wanted: Quantities, *, yes: bool) -> None:
    """Find out whether a request may be sent, by what is stored, and ask a person if need be.

    If a budget covers the request, it is sent with the store that has this budget.

    Args:
        invocation: The command.
        wanted: What the request consumes.
        yes: Whether a person at the terminal has agreed in the command line.

    Raises:
        ConsentRequired: It may not, or what is stored cannot be read.
        StoreUnusable: The store with the budgets cannot be read.
        click.exceptions.Exit: The answer is no. Nothing was sent.
    """
    chosen = _chosen(invocation)
    if chosen is Consent.ALWAYS:
        return
    prices = invocation.spending.read_prices()
    if chosen is Consent.ASK and _is_terminal():
        if not yes:
            _ask(invocation, wanted, prices)
        return
    amounts = amounts_of(wanted, prices)
    why = _uncovered(invocation, amounts)
    if why is None:
        return
    shown_amounts = ", ".join(
        f"{measure}: {'unknown' if amount is None else plain(amount)}"
        for measure, amount in amounts.items()
        if amount != 0 and (measure is not Measure.COST or prices is not None)
    )
    raise ConsentRequired(
        f'Consent is required: yours is "{chosen}"'
        f"{', and there is no terminal to ask on' if chosen is Consent.ASK else ''}. "
        f"The request would consume {shown_amounts}. {why}.",
        NOTHING_SENT,
        _ELSEWHERE,
        consent=chosen,
        amounts=amounts,
    )


def require_budget(invocation: Invocation, batch: str | None = None) -> None:
    """Refuse to begin many requests without a budget, if that is what a person has chosen.

    Args:
        invocation: The command.
        batch: The name of the batch in the store, if it is known: it may have a budget of its own.

    Raises:
        ConsentRequired: No budget in the store limits creates, or what is stored cannot be read.
        StoreUnusable: The store cannot be read.
    """
    if _chosen(invocation) is not Consent.BUDGET:
        return
    tags = dict(all_tags(invocation.spending.read_tags()))
    if batch is not None:
        tags |= OwnTags(batch=batch)
    with invocation.spending.open_store() as store:
        budgets = budgets_for(store, tags)
    if any(stored.budget.limits.keys() - {Measure.CALLS} for stored, _ in budgets):
        _use_the_store(invocation)
        return
    raise ConsentRequired(
        f'Consent is required: yours is "{Consent.BUDGET}", and no budget limits creates.',
        NOTHING_SENT,
        _ELSEWHERE,
        consent=Consent.BUDGET,
    )


def _chosen(invocation: Invocation) -> Consent:
    key = _key(invocation)
    if invocation.connection.local or key is None:  # without a key, nothing is sent anyway
        return Consent.ALWAYS
    return consent_to_use(key)


def _key(invocation: Invocation) -> str | None:
    return hidden(invocation.connection.read_key() or os.environ.get(KEY_VARIABLE))


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(invocation: Invocation, wanted: Quantities, prices: PriceList | None) -> None:
    """Show what a request consumes, and ask whether to send it."""
    currency = None if prices is None else prices.currency
    totals = Totals.of([estimate_of(wanted, prices)], currency)
    message_console().print(totals_table(totals))
    for remark in remarks(totals, prices):
        say(remark)
    ask_person(invocation, "Send this request?")


def _uncovered(invocation: Invocation, amounts: Amounts) -> str | None:
    """Return why no budget covers a request. If one does, its store is used."""
    with invocation.spending.open_store() as store:
        why = uncovered(store, amounts, all_tags(invocation.spending.read_tags()))
        place = store.place
    if why is None:
        _use_the_store(invocation)
        return None
    return f"No budget in {place} covers it: {why}"


def _use_the_store(invocation: Invocation) -> None:
    """Let the client use the store that has the budget, even if nothing else asks for a store."""
    invocation.choose(store=invocation.spending.store or default_place())


def ask_person(invocation: Invocation, question: str) -> None:
    """Ask a person, and return if the answer is yes.

    Raises:
        click.exceptions.Exit: The answer is no. Nothing was sent.
        KeyboardInterrupt: A signal took the place of the answer.
    """
    invocation.note(pays=True)  # so that an interruption says that nothing was sent
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        interrupt = error.__context__
        if interrupt is not None:  # a signal or the end of the input, which leaves the line open
            click.echo(err=True)
        if isinstance(interrupt, KeyboardInterrupt):  # its signal decides the exit code
            raise interrupt from None
        if invocation.presentation.json:
            raise
        say("Nothing was sent.")
        raise click.exceptions.Exit(NOT_SENT) from None
    invocation.note(pays=False)
