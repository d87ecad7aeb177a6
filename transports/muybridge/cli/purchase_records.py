"""How purchases and what they consume are shown, to people and to programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from muybridge.cli.totals import plain, sum_record
from muybridge.purchases import Store
from muybridge.purchases.environment import place_in_commands
from muybridge.verbs.spending import time_of
from muybridge_protocol.identifiers import shown_id
from muybridge_protocol.purchases import Measure, Purchase, Sums
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.tasks import Task

RECORDED = "requests are recorded only with a limit, a store, tags, a name (once) or dedupe"
"""Which requests are in a store."""


def purchase_record(purchase: Purchase) -> dict[str, Any]:
    """Return a purchase for programs. Amounts are text, because they are exact."""
    return {
        **attributes(purchase, "key", "account"),
        "time": time_of(purchase.armed_at),
        **attributes(purchase, "family", "model", "tier"),
        "state": str(purchase.state),
        **attributes(purchase, "once"),
        "tags": [*purchase.tags],
        **attributes(purchase, "reason"),
        "candidate_id": purchase.candidate,
        "task_id": purchase.task,
        "late_task_id": _late(purchase),
        "amounts": {
            str(one): None if amount is None else plain(amount)
            for one, amount in purchase.amounts.items()
        },
    }


def sums_record(sums: Sums) -> dict[str, Any]:
    """Return what purchases consume, for programs. Money is text, because it is exact."""
    cost = sums[Measure.COST]
    return {
        **{str(one): sum_record(sums[one]) for one in Measure},
        str(Measure.COST): {"known": plain(cost.known), "unknown": cost.unknown},
    }


def short_time(wall: float) -> str:
    """Return a time in UTC, to the minute, for tables."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M")


def store_words(store: Store) -> tuple[str, ...]:
    """Return the option that names *store* in a command that is shown, if it needs one."""
    place = place_in_commands(store.place)
    return ("--store", place) if place else ()


def request_of(purchase: Purchase) -> str:
    """Return what a purchase was for, as far as the store knows it."""
    name = "" if purchase.once is None else f"({purchase.once})"
    named = (purchase.family or "?", purchase.model, *purchase.tags, name)
    return " ".join(filter(None, named))


def task_of(purchase: Purchase) -> str:
    """Return the id of a purchase's task, and of the one that its response has named besides."""
    ids = filter(None, (purchase.task, _late(purchase)))
    return ", also ".join(map(shown_id, ids))


def _late(purchase: Purchase) -> str | None:
    return None if purchase.late is None else Task.from_token(purchase.late).id
