"""How long tasks have taken: the history of each account, by model and length.

The store has a few places for each model and length. Once they are all taken, each new duration
replaces one of them by chance. So the table never grows beyond them, and old durations fade. A
duration costs nothing if it is lost, so it travels with the next transaction that is durable
anyway.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from statistics import median
from typing import Final

import attrs

from muybridge.purchases.port import Rows
from muybridge_protocol.purchases import Measure, read_amounts

PLACES: Final = 25
"""How many durations of a model and a length are kept."""
FEWEST: Final = 3
"""From fewer durations, nobody can tell what is usual."""


@attrs.frozen(kw_only=True)
class History:
    """How long tasks like one have taken.

    Args:
        account: Whose they are.
        family: Their family.
        model: Their model.
        length: The seconds of video that they make, or "" if that is not known.
        seconds: How long they took.
    """

    account: str
    family: str
    model: str
    length: str
    seconds: tuple[float, ...] = ()

    @property
    def usual(self) -> float | None:
        """The median of how long they took, or None if there are too few."""
        return median(self.seconds) if len(self.seconds) >= FEWEST else None


@attrs.frozen(eq=False)
class Duration:
    """How long a task has taken.

    Args:
        history: That of tasks like it.
        seconds: The duration.
    """

    history: History
    seconds: float


def find_history(rows: Rows, account: str, task: str) -> History | None:
    """Return the history of tasks like *task*, or None if it is of no purchase in the store."""
    found = rows.run(
        "SELECT family, model, amounts FROM muybridge_purchases "
        "WHERE account = :account AND task = :task", account=account, task=task,
    )  # fmt: skip
    if not found:
        return None
    [(family, model, amounts)] = found
    length = read_amounts(str(amounts))[Measure.SECONDS]
    tasks = History(
        account=account,
        family=str(family),
        model=str(model),
        length="" if length is None else f"{length.normalize():f}",
    )
    told = rows.run(f"SELECT seconds {_OF_TASKS}", **_key(tasks))
    return attrs.evolve(tasks, seconds=tuple(float(seconds) for (seconds,) in told))


def keep(rows: Rows, durations: Iterable[Duration]) -> None:
    """Write *durations*, each in a place of its history: the next free one, or any."""
    taken: Counter[tuple[str, ...]] = Counter()
    chosen: list[tuple[tuple[str, ...], int, Duration]] = []
    for one in durations:
        key = tuple(_key(one.history).values())
        if key not in taken:
            [(count,)] = rows.run(f"SELECT count(*) {_OF_TASKS}", **_key(one.history))
            taken[key] = int(count)
        place = taken[key] if taken[key] < PLACES else secrets.randbelow(PLACES)
        taken[key] += 1
        chosen.append((key, place, one))
    # In one order, so that no transaction waits for another that waits for it.
    for _, place, one in sorted(chosen, key=itemgetter(0, 1)):
        values = {**_key(one.history), "place": place, "seconds": one.seconds}
        if not rows.change(
            f"UPDATE muybridge_durations SET seconds = :seconds WHERE {_SAME} AND place = :place",
            **values,
        ):
            rows.run(
                "INSERT INTO muybridge_durations (account, family, model, length, place, seconds) "
                "VALUES (:account, :family, :model, :length, :place, :seconds) "
                "ON CONFLICT DO NOTHING", **values,
            )  # fmt: skip


_SAME: Final = "account = :account AND family = :family AND model = :model AND length = :length"
_OF_TASKS: Final = f"FROM muybridge_durations WHERE {_SAME}"


def _key(history: History) -> dict[str, str]:
    return {
        "account": history.account, "family": history.family, "model": history.model,
        "length": history.length,
    }  # fmt: skip
