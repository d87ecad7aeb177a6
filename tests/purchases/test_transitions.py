"""Transitions of purchases and items, without a store."""

from __future__ import annotations

import attrs
import pytest

from muybridge_protocol.purchases import Choice, Item, Outcome, Purchase, Stage, State
from muybridge_protocol.purchases.items import followed
from muybridge_protocol.purchases.purchase import decided
from muybridge_protocol.records.tasks import Task

DOUBTFUL = Purchase(
    key="k", account="", owner="someone", state=State.AMBIGUOUS, armed_at=5.0, amounts={},
    family="imgb", model="imgb-2", reason="cut off", candidate="task-9", batch=1, number=1,
)  # fmt: skip
ITEM = Item(batch=1, number=1, name="", stem="horse", family="imgb", body="{}", purchase="k",
            stage=Stage.ARMED, owner="worker")  # fmt: skip


def adopted(purchase: Purchase, task: Task) -> tuple[Purchase, Task]:
    """Return *purchase* after a person has adopted *task* for it, and the task in its token."""
    after = decided(purchase, Choice.ADOPT, 9.0, task)
    assert after.token is not None
    return after, Task.from_token(after.token)


@pytest.mark.parametrize(
    ("named", "family", "model"),
    [
        (Task(id="task-1"), "imgb", "imgb-2"),
        (Task(id="task-1", family="imga", requested_model="imga"), "imga", "imga"),
        (Task(id="task-1", family="imga"), "imga", "imgb-2"),
    ],
    ids=["a bare id", "a token", "a token without its model"],
)
def test_an_adopted_task_can_be_polled(named: Task, family: str, model: str) -> None:
    """Polling needs family and model: they come from the token, or else from the request."""
    after, task = adopted(DOUBTFUL, named)
    assert (task.id, task.family, task.requested_model) == ("task-1", family, model)
    assert (after.state, after.task, after.decided_at) == (State.ACCEPTED, "task-1", 9.0)


def test_an_adopted_task_of_an_unknown_request() -> None:
    """If neither the token nor the request has a family and model, the task has none."""
    _, task = adopted(attrs.evolve(DOUBTFUL, family="", model=""), Task(id="task-1"))
    assert (task.family, task.requested_model) == (None, None)


def test_the_reason_of_an_ambiguous_purchase() -> None:
    """Adopting a task clears the reason; other decisions keep it."""
    after, _ = adopted(DOUBTFUL, Task(id="task-1"))
    assert (after.reason, after.candidate) == (None, "task-1")
    after = decided(DOUBTFUL, Choice.RELEASE, 9.0)
    assert (after.reason, after.candidate, after.task) == ("cut off", "task-9", None)


def test_a_late_task() -> None:
    """It is kept beside the purchase's own task, unless a person adopts that very task."""
    late = attrs.evolve(DOUBTFUL, late=Task(id="task-2").to_token())
    same, _ = adopted(late, Task(id="task-2"))
    other, _ = adopted(late, Task(id="task-1"))
    released = decided(late, Choice.RELEASE, 9.0)
    assert (same.late, other.late, released.late) == (None, late.late, late.late)


@pytest.mark.parametrize(
    ("stage", "leads_to", "after", "owner"),
    [
        (Stage.ARMED, Stage.CLAIMED, Stage.CLAIMED, "worker"),
        (Stage.ARMED, Stage.QUEUED, Stage.QUEUED, None),
        (Stage.ARMED, Stage.REFUSED, Stage.REFUSED, None),
        (Stage.AMBIGUOUS, Stage.CLAIMED, Stage.QUEUED, None),
        (Stage.AMBIGUOUS, Stage.REFUSED, Stage.REFUSED, None),
    ],
)
def test_only_the_worker_that_sent_a_request_keeps_its_item(
    stage: Stage, leads_to: Stage, after: Stage, owner: str | None
) -> None:
    """That worker may retry it at once. Otherwise, any worker may take the item."""
    released = attrs.evolve(DOUBTFUL, state=State.RELEASED)
    item = attrs.evolve(ITEM, stage=stage, owner="worker" if stage is Stage.ARMED else None)
    moved = followed(item, released, Outcome(state=State.RELEASED, leads_to=leads_to))
    assert (moved.stage, moved.owner) == (after, owner)
