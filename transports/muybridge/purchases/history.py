"""How long tasks have taken: the history of each account, by model and length.

The store has a few places for each model and length. Once they are all taken, each new duration
replaces one of them by chance. So the table never grows beyond them, and old durations fade. A
duration costs nothing if it is lost, so it travels with the next transaction that is durable
anyway.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from hashlib import sha256
from statistics import median
from typing import Final

import attrs

from muybridge.purchases.port import Rows
from muybridge_protocol.purchases import Measure, read_amounts

PLACES: Final = 25
"""How many durations of a model and a length are kept."""
FEWEST: Final = 3
"""From fewer durations, nobody can tell what is usual."""


@attrs.frozen
class History:
    """How long tasks like one have taken.

    Args:
        tasks: Stands for the tasks of an account with the same family, model and length: a digest,
            which every database can index.
        seconds: How long they took.
    """

    tasks: str
    seconds: tuple[float, ...] = ()

    @property
    def usual(self) -> float | None:
        """The median of how long they took, or None if there are too few."""
        return median(self.seconds) if len(self.seconds) >= FEWEST else None


@attrs.frozen(eq=False)
class Duration:
    """How long a task has taken.

    Args:
        tasks: For which tasks it is one, as in `History`.
        seconds: The duration.
    """

    tasks: str
    seconds: float


def find_history(rows: Rows, account: str, task: str) -> History | None:
    """Return the history of tasks like *task*, or None if it is of no purchase in the store."""
    matches = rows.run(
        "SELECT family, model, amounts FROM muybridge_purchases "
        "WHERE account = :account AND task = :task", account=account, task=task,
    )  # fmt: skip
    if not matches:
        return None
    [(family, model, amounts)] = matches
    length = read_amounts(str(amounts))[Measure.SECONDS]
    shown = "" if length is None else f"{length.normalize():f}"
    tasks = sha256(json.dumps([account, family, model, shown]).encode()).hexdigest()
    seconds = rows.run("SELECT seconds FROM muybridge_durations WHERE tasks = :tasks", tasks=tasks)
    return History(tasks, tuple(float(one) for (one,) in seconds))


def keep(rows: Rows, durations: Iterable[Duration]) -> None:
    """Write *durations*, each in a place of its history: the next free one, or any."""
    numbers: dict[str, int] = {}
    chosen: list[tuple[str, int, float]] = []
    for one in durations:
        if one.tasks not in numbers:
            [(count,)] = rows.run(
                "SELECT count(*) FROM muybridge_durations WHERE tasks = :tasks", tasks=one.tasks
            )
            numbers[one.tasks] = int(count)
        place = numbers[one.tasks] if numbers[one.tasks] < PLACES else secrets.randbelow(PLACES)
        numbers[one.tasks] += 1
        chosen.append((one.tasks, place, one.seconds))
    # In one order, so that no transaction waits for another that waits for it.
    for tasks, place, seconds in sorted(chosen):
        values = {"tasks": tasks, "place": place, "seconds": seconds}
        if not rows.change(
            "UPDATE muybridge_durations SET seconds = :seconds "
            "WHERE tasks = :tasks AND place = :place", **values,
        ):  # fmt: skip
            rows.run(
                "INSERT INTO muybridge_durations (tasks, place, seconds) "
                "VALUES (:tasks, :place, :seconds) ON CONFLICT DO NOTHING", **values,
            )  # fmt: skip
