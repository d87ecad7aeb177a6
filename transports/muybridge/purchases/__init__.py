"""The store of purchases: every paid request of everyone who uses one database.

The rules are in `muybridge_protocol.purchases`, and its head has the theory. What a store adds is
that they hold at once for all threads, processes and machines, and after any crash:

- **Durable before sent.** `Store.arm` returns once the purchase is on the disk of the database, and
  whatever it raises, nothing may be sent.
- **By key.** Every statement names a purchase by its random key, never by a row number: a copy of
  the database that is put in its place hands the same numbers out again.
- **Everything that a transaction decides, it reads itself**, under a lock: who has the name, which
  purchase has the task, what is spent, and whether the sender was declared dead.
- **Nobody decides while anybody can be sending.** In a file, the owner of a purchase holds an
  operating system lock as long as its process lives. In a database for many machines, the exchange
  must be over by the database's clock, and a sender that was paused for too long between arming and
  sending does not send (`Store.send_within`).
- **Fresh, not only the same.** Each process remembers the last purchase that it has committed, and
  each later transaction first looks whether that is still there. An older copy lacks it.
- **Lists.** What many threads want to record at the same moment is one transaction (`lists`).

`port` is all that a database has to do; `schema`, `steps` and `store` are the same for all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from muybridge.purchases.environment import default_place
from muybridge.purchases.errors import (
    Exceeded,
    Lost,
    NameHeld,
    OnceTaken,
    OnceUnderWay,
    StoreUnusable,
)
from muybridge.purchases.port import Conflict, Database, Mark, Rows
from muybridge.purchases.store import Choosing, Pruning, Store
from muybridge_protocol.purchases import (
    EVERYTHING,
    Amounts,
    Budget,
    BudgetUse,
    CannotDecide,
    Choice,
    Measure,
    Purchase,
    State,
)

__all__ = [
    "EVERYTHING",
    "Amounts",
    "Budget",
    "BudgetUse",
    "CannotDecide",
    "Choice",
    "Choosing",
    "Conflict",
    "Database",
    "Exceeded",
    "Lost",
    "Mark",
    "Measure",
    "NameHeld",
    "OnceTaken",
    "OnceUnderWay",
    "Pruning",
    "Purchase",
    "Rows",
    "State",
    "Store",
    "StoreUnusable",
    "default_place",
    "open_store",
]

_SCHEMES: Final = ("postgresql", "postgres")


def open_store(place: str | os.PathLike[str] | None = None) -> Store:
    """Return the store in a file, or in the database at `postgresql://USER@HOST/DATABASE`.

    It is created when it is first written.

    Args:
        place: The file or the database, or None for `MUYBRIDGE_STORE`, or else a file in the
            user's state folder.
    """
    if place is None:
        place = default_place()
    scheme, is_url, _ = str(place).partition("://")
    if is_url and scheme not in _SCHEMES:  # a typo, and no file of that name
        raise StoreUnusable(
            f"A store cannot be at {scheme}://. Nothing is sent. Give a file, or "
            "postgresql://USER@HOST/DATABASE."
        )
    if is_url:
        from muybridge.purchases.postgres import PostgresDatabase

        return Store(PostgresDatabase(str(place)))
    from muybridge.purchases.sqlite import SqliteDatabase

    return Store(SqliteDatabase(Path(place)))
