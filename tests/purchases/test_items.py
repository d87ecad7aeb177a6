"""Items of batches: work that follows its purchases, in the same transaction."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from muybridge.purchases import Exceeded, Lost, NameHeld, Store, open_store
from muybridge.purchases.store import NewItem
from muybridge_protocol.purchases import (
    UNKNOWN_END,
    Budget,
    Choice,
    Item,
    Measure,
    Outcome,
    Purchase,
    Stage,
    State,
)
from muybridge_protocol.records.tasks import Task

from .racer import let_time_pass, order_of

AMBIGUOUS = Outcome(state=State.AMBIGUOUS, reason="cut off")


def accepted(task: str) -> Outcome:
    return Outcome(state=State.ACCEPTED, task=Task(id=task, submitted_at=5.0))


def batch_of(store: Store, count: int = 3) -> int:
    items = [NewItem(stem=f"s{n}", family="imga", body="{}") for n in range(count)]
    return store.begin_batch("spring", items)


def claimed(store: Store, batch: int, count: int) -> list[Item]:
    return [item for item, _ in store.take(batch, Stage.QUEUED, most=count)]


def place_of(item: Item) -> tuple[int, int]:
    return item.batch, item.number


def arm(store: Store, item: Item, name: str | None = None) -> Purchase:
    return store.arm(order_of(name, "batch=spring"), item=place_of(item))


@contextmanager
def dead(store: Store, place: str) -> Generator[Store]:
    """Let the owner be gone, as far as anybody can tell, and yield another one's store."""
    if store.database.leases:
        with store.database.transaction() as rows:
            rows.run("UPDATE muybridge_owners SET lease_until = 0")
        let_time_pass(store)
    else:
        for file in os.scandir(f"{place}.owners"):
            os.unlink(file.path)  # noqa: PTH108  as whoever finds it unlocked does
    with open_store(place) as other:
        yield other


def test_a_batch_is_begun_once(store: Store) -> None:
    """Whoever begins it again finds it."""
    batch = batch_of(store)
    assert batch_of(store, 7) == batch
    assert store.counts(batch) == {Stage.QUEUED: 3}
    assert [one.number for one in store.items(batch, after=1)] == [2, 3]
    with pytest.raises(ValueError, match="same stem"):
        store.begin_batch("x", [NewItem(stem="s", family="imga", body="{}")] * 2)


@pytest.mark.parametrize(
    ("outcome", "stage", "is_mine"),
    [
        (accepted("T"), Stage.SUBMITTED, True),
        (AMBIGUOUS, Stage.AMBIGUOUS, False),
        (Outcome(state=State.RELEASED), Stage.CLAIMED, True),
        (Outcome(state=State.RELEASED, leads_to=Stage.QUEUED), Stage.QUEUED, False),
        (Outcome(state=State.RELEASED, leads_to=Stage.REFUSED), Stage.REFUSED, False),
    ],
    ids=lambda it: str(getattr(it, "leads_to", it)),
)
def test_an_item_follows_its_purchase(
    store: Store, outcome: Outcome, stage: Stage, *, is_mine: bool
) -> None:
    """It is armed and concluded in the transactions of its purchase."""
    batch = batch_of(store)
    [item] = claimed(store, batch, 1)
    bought = arm(store, item)
    assert (bought.batch, bought.number) == (batch, 1)
    assert store.items(batch)[0].stage is Stage.ARMED
    store.conclude(bought.key, outcome)
    after = store.items(batch)[0]
    assert (after.stage, after.owner is not None) == (stage, is_mine)
    assert after.purchase == bought.key


def test_an_item_is_claimed_and_armed_at_once(store: Store) -> None:
    """A free one; not one that is on its way, or not armed because of a budget or a name."""
    batch = batch_of(store)
    [first, second, third] = store.items(batch)
    bought = arm(store, first, "once x")
    with pytest.raises(Lost):
        arm(store, first)
    with pytest.raises(Lost):
        store.arm(order_of(), item=(batch, 99))
    with pytest.raises(NameHeld):
        arm(store, second, "once x")
    with pytest.raises(Exceeded):
        store.arm(order_of(), budgets=[Budget(creates=1)], item=place_of(third))
    assert store.counts(batch) == {Stage.ARMED: 1, Stage.QUEUED: 2}
    assert store.items(batch)[1:] == [second, third]
    store.withdraw(bought.key)
    assert store.counts(batch) == {Stage.CLAIMED: 1, Stage.QUEUED: 2}
    assert store.spent("batch=spring")[Measure.CREATES] == 0


def test_steps_that_concern_no_purchase(store: Store) -> None:
    """Only an owner takes them, from where the item is, and to where the table says."""
    batch = batch_of(store, 1)
    [item] = claimed(store, batch, 1)
    store.conclude(arm(store, item).key, accepted("T"))
    [submitted] = store.items(batch)
    done = store.move(submitted, Stage.COMPLETED, expires=5.0)
    with pytest.raises(Lost):
        store.move(submitted, Stage.FAILED)
    with pytest.raises(ValueError, match="no item goes"):
        store.move(done, Stage.QUEUED)
    store.move(done, Stage.DOWNLOADED, path="a.png", owner=None)
    assert store.items(batch)[0].path == "a.png"


def test_more_items_than_a_statement_has_conditions(store: Store) -> None:
    """However many items a person has decided about, all of them move at once."""
    batch = batch_of(store, 1100)
    queued = store.items(batch, most=1100)
    store.decide_all([], moves=[(item, Stage.ABANDONED) for item in queued])
    assert store.counts(batch) == {Stage.ABANDONED: 1100}


@pytest.mark.parametrize("choice", [None, *Choice])
def test_items_that_have_joined(store: Store, choice: Choice | None) -> None:
    """They wait while nobody knows, and end as the purchase does; resubmitted, they go on."""
    batch = batch_of(store)
    first, second, third = claimed(store, batch, 3)
    bought = arm(store, first, "same x")
    assert store.join(second, bought.key).stage is Stage.JOINED
    assert store.items(batch)[1].owner is None
    store.conclude(bought.key, AMBIGUOUS)
    store.join(third, bought.key)
    assert store.counts(batch) == {Stage.AMBIGUOUS: 1, Stage.JOINED: 2}
    if choice is None:
        store.conclude(bought.key, accepted("T"))
    else:
        store.decide(bought.key, choice, "T" if choice is Choice.ADOPT else None)
    expected = Stage.SUBMITTED
    if choice in (Choice.RELEASE, Choice.RESUBMIT):
        expected = Stage.QUEUED
    elif choice is Choice.ABANDON:
        expected = Stage.ABANDONED
    assert store.counts(batch) == {expected: 3}
    if expected is Stage.SUBMITTED:
        taken = store.take(batch, Stage.SUBMITTED, most=3)
        assert [one and one.task for _, one in taken] == ["T"] * 3
        assert store.spent()[Measure.CREATES] == 1
    if choice is Choice.ADOPT:  # a correction reaches all of them
        store.decide(bought.key, choice, "U")
        assert store.find(bought.key).task == "U"


def test_a_late_response_of_an_item_that_was_sent_again_is_a_stray(store: Store) -> None:
    """The item has its second purchase, and the first one's task is not lost."""
    batch = batch_of(store, 1)
    [item] = claimed(store, batch, 1)
    first = arm(store, item)
    store.conclude(first.key, AMBIGUOUS)
    store.decide(first.key, Choice.RESUBMIT)
    [item] = claimed(store, batch, 1)
    second = arm(store, item)
    store.conclude(first.key, accepted("LATE"))
    assert store.counts(batch) == {Stage.ARMED: 1}
    assert [one.task for one in store.strays(batch)] == ["LATE"]
    store.conclude(second.key, accepted("T"))
    assert store.counts(batch) == {Stage.SUBMITTED: 1}
    assert [one.task for one in store.strays(batch)] == ["LATE"]


def test_a_dead_owner_leaves_an_ambiguous_purchase_and_free_items(store: Store, place: str) -> None:
    """If it was only paused, it arms nothing any more, and its response is not lost."""
    batch = batch_of(store)
    store.register(60)
    items = claimed(store, batch, 3)
    bought = arm(store, items[0])
    store.conclude(arm(store, items[1]).key, accepted("T"))
    store.free_items()
    store.renew()
    assert store.counts(batch) == {Stage.ARMED: 1, Stage.SUBMITTED: 1, Stage.CLAIMED: 1}
    with dead(store, place) as other:
        other.free_items()
        assert other.sweep() == 1
        assert other.counts(batch) == {Stage.AMBIGUOUS: 1, Stage.SUBMITTED: 1, Stage.QUEUED: 1}
        if store.database.leases:
            for use in (
                lambda: arm(store, items[2]),
                store.renew,
                lambda: claimed(store, batch, 1),
            ):
                with pytest.raises(Lost):
                    use()
        store.conclude(bought.key, accepted("U"))
        store.conclude(bought.key, UNKNOWN_END)
        assert other.counts(batch) == {Stage.SUBMITTED: 2, Stage.QUEUED: 1}
        taken = other.take(batch, Stage.SUBMITTED, Stage.QUEUED, most=3)
        assert [one and one.task for _, one in taken] == ["U", "T", None]
