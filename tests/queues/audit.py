"""What became of each order: the service's books, against the pictures and the store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import attrs

from batch.billing import PNG, BillingServer
from muybridge.purchases import State, Store, open_store


@attrs.frozen
class Audit:
    """What became of the orders of one run.

    Args:
        orders: How many there were.
        posts: How many creates the service received.
        doubles: The orders for which it received more than one.
        ambiguous: The orders that the store lists for a person to decide.
        lost: The tasks that were paid for, and whose orders have neither their picture nor a
            place on that list.
        unfinished: The orders that have neither a picture nor a place on that list.
    """

    orders: int
    posts: int
    doubles: Sequence[str]
    ambiguous: Sequence[str]
    lost: Sequence[str]
    unfinished: Sequence[str]

    @property
    def is_clean(self) -> bool:
        """Whether no order was paid twice, and none has disappeared."""
        return not (self.doubles or self.lost or self.unfinished)


def audit(folder: Path, server: BillingServer, orders: Sequence[str]) -> Audit:
    """Look at the *orders* of the run in *folder*, whose prompts are their names."""
    ambiguous = ambiguous_orders(folder)
    found = {
        path.read_bytes().removeprefix(PNG).decode() for path in pictures(folder).glob("*.png")
    }
    decided = saved_orders(folder) | ambiguous
    return Audit(
        orders=len(orders),
        posts=server.posts,
        doubles=[order for order in orders if len(server.asked[order]) > 1],
        ambiguous=sorted(ambiguous),
        lost=[
            task
            for order in orders
            if order not in ambiguous
            for task in server.accepted[order]
            if task not in found
        ],
        unfinished=[order for order in orders if order not in decided],
    )


def pictures(folder: Path) -> Path:
    """Return where the pictures of the run in *folder* are."""
    return folder / "pictures"


def saved_orders(folder: Path) -> set[str]:
    """Return the orders whose picture is saved."""
    return {path.stem for path in pictures(folder).glob("*.png")}


def ambiguous_orders(folder: Path) -> set[str]:
    """Return the orders about which a person has to decide."""
    path = folder / "store.sqlite3"
    if not path.exists():
        return set()
    store = _store(path)
    store.sweep()
    return {one.once for one in store.purchases(State.AMBIGUOUS) if one.once is not None}


@cache
def _store(path: Path) -> Store:
    """Return the store at *path*, which checks the whole file only once."""
    return open_store(path)
