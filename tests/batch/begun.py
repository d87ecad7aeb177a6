"""Batches that are begun and not run: their items, and stages that a run would bring them to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.folder import begin_in_folder
from muybridge.purchases import Purchase, State
from muybridge.purchases.store import NewItem
from muybridge_protocol.purchases import UNKNOWN_CALL, Order, Outcome
from muybridge_protocol.records.tasks import Task

SERVICE = "https://service.test"
LOST = Outcome(state=State.AMBIGUOUS, reason="its response was lost")


def new_items(count: int, **body: Any) -> list[NewItem]:
    """Return items of a batch, each with a name of its own."""
    return [
        NewItem(
            name=f"h{number}",
            stem=f"h{number}",
            family="imgb",
            body=json.dumps({"model": "imgb-2", "prompt": f"horse {number}", **body}),
        )
        for number in range(1, count + 1)
    ]


def begun(folder: Path, items: int | Iterable[NewItem] = 1, service: str = SERVICE) -> Batch:
    """Begin a batch in *folder*, with a store of its own."""
    made = new_items(items) if isinstance(items, int) else [*items]
    return begin_in_folder(folder, None, made, service=service)


def bought(batch: Batch, number: int, outcome: Outcome) -> Purchase:
    """Buy an item, and let its create have an outcome."""
    item = batch.item(number)
    order = Order(
        account="a",
        family=item.family,
        model="imgb-2",
        tags=(batch.tag,),
        amounts=UNKNOWN_CALL,  # some items are not valid
    )
    armed = batch.store.arm(order, item=(batch.number, number))
    return batch.store.conclude(armed.key, outcome)


def lost(batch: Batch, *numbers: int) -> None:
    """Make items ambiguous."""
    for number in numbers:
        bought(batch, number, LOST)


def accepted(batch: Batch, number: int, task: str) -> None:
    """Let an item have a task, and give it back."""
    made = Task(id=task, family="imgb", submitted_at=5.0)
    bought(batch, number, Outcome(state=State.ACCEPTED, task=made))
    item = batch.item(number)
    batch.release([(item, item.stage, {})])
