"""What a store keeps, in a file and in a database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from muybridge.purchases import (
    Choosing,
    Exceeded,
    NameHeld,
    StillSending,
    Store,
    StoreUnusable,
    TaskTaken,
    open_store,
)
from muybridge.purchases import steps as steps_of_store
from muybridge.purchases import store as store_itself
from muybridge.purchases.schema import UPGRADES, VERSION
from muybridge_protocol.purchases import (
    EVERYTHING,
    UNKNOWN_END,
    Budget,
    CannotDecide,
    Choice,
    Measure,
    Order,
    Outcome,
    State,
)
from muybridge_protocol.records.tasks import Task

from .racer import ONE, let_time_pass
from .racer import order_of as order

THROTTLED = Outcome(state=State.RELEASED, reason="429")
AMBIGUOUS = Outcome(state=State.AMBIGUOUS, reason="cut off", candidate="C", reply=b"\x00{")


def accepted(task: str) -> Outcome:
    return Outcome(state=State.ACCEPTED, task=Task(id=task))


def creates(store: Store, tag: str = EVERYTHING, budget: Budget | None = None) -> Decimal | None:
    return store.spent(tag, budget)[Measure.CREATES]


def test_a_purchase_is_read_as_it_was_written(store: Store) -> None:
    """Every value comes back: amounts with all their digits, bytes, tags in order."""
    amounts = {**ONE, Measure.COST: Decimal("0.123456789012345678901234567890")}
    bought = store.arm(
        Order(account="a", family="imga", model="m", tier="hd", amounts=amounts, name="once x",
              digest="d", tags=("b=2", "a=1")),
    )  # fmt: skip
    assert store.find(bought.key) == bought
    after = store.conclude(bought.key, AMBIGUOUS)
    assert store.find(bought.key) == after
    assert (after.reply, after.candidate, after.amounts) == (b"\x00{", "C", amounts)
    assert after.tags == ("a=1", "b=2")
    assert [*store.purchases()] == [*store.purchases(State.AMBIGUOUS)] == [after]
    assert [*store.purchases(State.ARMED, State.RELEASED)] == []


def test_an_empty_place_is_an_empty_store(store: Store, place: str) -> None:
    """Who only looks creates nothing."""
    assert creates(store) == 0
    assert [*store.purchases()] == []
    assert store.named("a", "x") is None
    assert store.sweep() == 0
    assert store.limits() == {}
    with pytest.raises(LookupError):
        store.find("k")
    with open_store(place) as other, pytest.raises(LookupError):
        other.conclude("k", THROTTLED)


def test_a_retry_is_another_purchase(store: Store) -> None:
    """An outcome of the first attempt, applied again, cannot reach the second."""
    first = store.arm(order("x"))
    store.conclude(first.key, THROTTLED)
    second = store.arm(order("x"))
    store.conclude(first.key, THROTTLED)
    assert store.find(second.key).state is State.ARMED
    with pytest.raises(NameHeld) as held:
        store.arm(order("x"))
    assert held.value.purchase == second


@pytest.mark.parametrize("outcome", [THROTTLED, accepted("T"), AMBIGUOUS], ids=lambda it: it.state)
def test_a_name_is_free_only_if_nothing_was_bought_under_it(store: Store, outcome: Outcome) -> None:
    """Another account has names of its own."""
    store.conclude(store.arm(order("x")).key, outcome)
    is_free = outcome is THROTTLED
    assert (store.named("a", "x") is None) == is_free
    assert store.named("b", "x") is None


@pytest.mark.parametrize("choice", Choice)
def test_decisions(store: Store, choice: Choice) -> None:
    """What a person decides frees the name or keeps it, and the amount likewise."""
    bought = store.arm(order("x"))
    with pytest.raises(StillSending):
        store.decide(bought.key, choice, "T" if choice is Choice.ADOPT else None)
    store.conclude(bought.key, AMBIGUOUS)
    after = store.decide(bought.key, choice, "T" if choice is Choice.ADOPT else None)
    assert after.decided_at is not None
    assert (store.named("a", "x") is None) == (choice in (Choice.RELEASE, Choice.RESUBMIT))
    assert creates(store) == (0 if choice is Choice.RELEASE else 1)


def test_many_decisions_have_their_own_verdicts(store: Store) -> None:
    """One that does not apply is no reason to refuse the others."""
    bought = [store.arm(order()) for _ in range(4)]
    for one in bought[:3]:
        store.conclude(one.key, AMBIGUOUS)
    store.conclude(bought[3].key, accepted("T"))
    told = store.decide_all([
        Choosing(bought[0].key, Choice.ADOPT, "A"),
        Choosing(bought[1].key, Choice.ADOPT, "A"),
        Choosing(bought[2].key, Choice.ADOPT, "T"),
        Choosing(bought[3].key, Choice.RELEASE),
        Choosing("nobody", Choice.RELEASE),
        Choosing(bought[2].key, Choice.RELEASE),
    ])  # fmt: skip
    kinds = [one.state if not isinstance(one, Exception) else type(one) for one in told]
    assert kinds == [
        State.ACCEPTED, TaskTaken, TaskTaken, CannotDecide, LookupError, State.RELEASED,
    ]  # fmt: skip


def test_a_task_belongs_to_one_purchase(store: Store) -> None:
    """A response that names the task of another purchase is recorded as a question."""
    first, second, third = (store.arm(order(it)) for it in ("x", "y", "z"))
    store.conclude(first.key, accepted("T"))
    after = store.conclude(second.key, accepted("T"))
    assert (after.state, after.task, after.candidate) == (State.AMBIGUOUS, None, "T")
    assert store.conclude(second.key, accepted("T")) == after
    store.conclude(third.key, accepted("U"))
    other = store.arm(Order(account="b", amounts=ONE))
    assert store.conclude(other.key, accepted("T")).task == "T"  # of another account


@pytest.mark.parametrize("choice", [None, *Choice])
def test_a_late_response_is_never_lost(store: Store, choice: Choice | None) -> None:
    """Somebody believed the sender dead, and perhaps decided. Then its response arrives."""
    bought = store.arm(order("x"))
    store.conclude(bought.key, UNKNOWN_END)
    let_time_pass(store)
    if choice is not None:
        store.decide(bought.key, choice, "GUESS" if choice is Choice.ADOPT else None)
    after = store.conclude(bought.key, accepted("T"))
    assert after.state is State.ACCEPTED
    assert Task(id="T").to_token() in (after.token, after.late)
    assert creates(store) == 1
    assert store.named("a", "x") == after


def test_a_name_that_another_has_taken_stays_its_own(store: Store) -> None:
    """The paid id is known, but the name leads to the purchase that has it now."""
    first = store.arm(order("x"))
    store.conclude(first.key, AMBIGUOUS)
    store.decide(first.key, Choice.RELEASE)
    second = store.arm(order("x"))
    after = store.conclude(first.key, accepted("LATE"))
    assert (after.state, after.name, after.task) == (State.ACCEPTED, None, "LATE")
    assert store.named("a", "x") == second
    assert creates(store) == 2


def test_an_arm_that_was_not_sent_is_withdrawn(store: Store) -> None:
    """By its key, whether it was recorded or not."""
    bought = store.arm(order("x"), key="drawn before")
    store.withdraw("drawn before")
    store.withdraw("never armed")
    assert store.find(bought.key).state is State.RELEASED
    with pytest.raises(LookupError):
        store.find("never armed")
    assert store.named("a", "x") is None
    assert creates(store) == 0


# Budgets


def test_budgets_of_a_store_a_tag_and_a_client(store: Store) -> None:
    """A stored budget binds everybody. One of a client binds that client, and counts everybody."""
    store.limit(EVERYTHING, Budget(creates=5))
    store.limit("customer=acme", Budget(creates=2, per="day"))
    for _ in range(2):
        store.arm(order(None, "customer=acme"))
    with pytest.raises(Exceeded, match="the limit of 2 creates a day"):
        store.arm(order(None, "customer=acme"))
    store.conclude(store.arm(order(None, "customer=other")).key, THROTTLED)
    for _ in range(2):
        store.arm(order(None, "customer=other"))
    with pytest.raises(Exceeded, match="the limit of 4 creates is left"):
        store.arm(order(), budgets=[Budget(creates=4)])
    store.arm(order(), budgets=[Budget(creates=5)])
    with pytest.raises(Exceeded):
        store.arm(order())
    assert creates(store, "customer=acme") == 2
    assert creates(store) == 5
    assert [*store.limits()] == [EVERYTHING, "customer=acme"]
    store.limit(EVERYTHING, None)
    store.arm(order())
    assert len([*store.purchases()]) == 7


def test_yesterday_counts_for_the_store_and_not_for_today(store: Store) -> None:
    """A day's budget begins anew."""
    store.arm(order())
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_spent SET day = day - 1 WHERE day > 0")
    assert creates(store) == 1
    assert creates(store, EVERYTHING, Budget(creates=9, per="day")) == 0
    store.arm(order(), budgets=[Budget(creates=1, per="day")])
    with pytest.raises(Exceeded):
        store.arm(order(), budgets=[Budget(creates=2)])


def test_an_unknown_amount_blocks_only_its_measure_and_tags_until_it_is_given(store: Store) -> None:
    """A person gives it when they know it."""
    unknown = store.arm(order(None, "a=1", amounts={**ONE, Measure.COST: None}))
    assert store.spent()[Measure.COST] is None
    assert store.spent("a=2")[Measure.COST] == 0
    priced = order(None, "a=1", amounts={**ONE, Measure.COST: Decimal(1)})
    store.limit("a=1", Budget(cost=9))
    store.limit("a=2", Budget(cost=9))
    with pytest.raises(Exceeded, match="unknown"):
        store.arm(priced)
    store.arm(order(None, "a=2", amounts={**ONE, Measure.COST: Decimal(1)}))
    store.price(unknown.key, {Measure.COST: Decimal("0.5")})
    store.arm(priced)
    assert store.spent("a=1")[Measure.COST] == Decimal("1.5")


def test_a_cost_that_the_response_names_is_counted_once(store: Store) -> None:
    """However often it is recorded."""
    bought = store.arm(order(amounts={**ONE, Measure.COST: None}))
    outcome = Outcome(state=State.ACCEPTED, cost=Decimal("0.1"))
    for _ in range(2):
        store.conclude(bought.key, outcome)
    assert store.spent()[Measure.COST] == Decimal("0.1")


# Transactions that fail


@contextmanager
def ending(store: Store, error: BaseException, *, commits: bool) -> Generator[None]:
    """Let the end of each transaction fail, before or after it was committed."""
    database: Any = store.database
    whole = database.transaction

    @contextmanager
    def failing(**options: Any) -> Generator[Any]:
        with whole(**options) as rows:
            yield rows
            rows.is_ending = True
            if not commits:
                raise error
        raise error

    database.transaction = failing
    try:
        yield
    finally:
        del database.transaction


@pytest.mark.parametrize("commits", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StoreUnusable("lost")], ids=repr)
def test_an_arm_whose_commit_is_lost_is_withdrawn(
    store: Store, *, commits: bool, error: BaseException
) -> None:
    """Nobody sends, whether it was committed or not, and nothing stays reserved."""
    store.arm(order("w"))
    with ending(store, error, commits=commits), pytest.raises(type(error)):
        store.arm(order("x"), key="drawn before")
    store.arm(order("y"))  # which records what is late
    assert store.named("a", "x") is None
    assert creates(store) == 2


@pytest.mark.parametrize("commits", [False, True])
def test_an_outcome_that_could_not_be_recorded_is_recorded_later(
    store: Store, *, commits: bool
) -> None:
    """And never reaches the retry, which is another purchase."""
    first = store.arm(order("x"))
    with ending(store, StoreUnusable("full"), commits=commits), pytest.raises(StoreUnusable):
        store.conclude(first.key, THROTTLED)
    second = store.arm(order("x"))
    assert store.find(first.key).state is State.RELEASED
    assert store.find(second.key).state is State.ARMED


# Housekeeping


def test_pruning_keeps_names_and_sums_and_what_is_open(store: Store) -> None:
    """What was spent stays counted."""
    kept = [store.arm(order("x")), store.arm(order())]
    store.conclude(kept[0].key, accepted("T"))
    store.conclude(kept[1].key, AMBIGUOUS)
    gone = [store.arm(order()), store.arm(order("z"))]
    store.conclude(gone[0].key, accepted("U"))
    store.conclude(gone[1].key, THROTTLED)
    newest = store.arm(order())
    store.conclude(newest.key, accepted("V"))
    assert store.prune(0) == 0
    assert store.prune(float("inf")) == 2
    assert {one.key for one in store.purchases()} == {*(one.key for one in kept), newest.key}
    assert creates(store) == 4
    store.arm(order())


@pytest.mark.parametrize(("version", "advice"), [(99, "Upgrade muybridge"), (0, "upgrade it")])
def test_another_version_is_refused(store: Store, place: str, version: int, advice: str) -> None:
    """A program does not write to tables that it does not know."""
    bought = store.arm(order())
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_store SET version = :version", version=version)
    with open_store(place) as other:
        for one in (store, other):
            with pytest.raises(StoreUnusable, match=advice):
                one.arm(order())
            with pytest.raises(StoreUnusable, match=advice):
                one.find(bought.key)


def test_an_older_copy_is_noticed(store: Store) -> None:
    """It lacks what this process has committed."""
    last = store.arm(order())
    with store.database.transaction() as rows:
        rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=last.key)
    for use in (lambda: store.arm(order()), lambda: store.find("k"), store.spent):
        with pytest.raises(StoreUnusable, match="older copy"):
            use()


def test_an_upgrade_is_whole_and_on_request(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It happens in one transaction, and a store of this version is left alone."""
    store.arm(order())
    store.upgrade()
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_store SET version = 0")
    steps: Any = UPGRADES
    monkeypatch.setitem(steps, 0, ["CREATE TABLE muybridge_more (x text)", "CREATE nothing"])
    with pytest.raises(StoreUnusable):
        store.upgrade()
    monkeypatch.setitem(steps, 0, ["CREATE TABLE muybridge_more (x text)"])
    store.upgrade()
    store.arm(order())
    with store.database.reading() as rows:
        assert rows.run("SELECT x FROM muybridge_more") == []


def test_two_responses_with_the_same_long_id(store: Store, place: str) -> None:
    """An id of 1,024 characters of four bytes is recorded, found, and belongs to one purchase."""
    chance = Random("an id")  # noqa: S311  not a secret; and nothing that compresses
    task = "".join(chr(chance.randrange(0x20000, 0x2A000)) for _ in range(1024))
    first, second = store.arm(order("once x")), store.arm(order())
    store.conclude(first.key, accepted(task))
    after = store.conclude(second.key, accepted(task))
    assert (after.state, after.candidate) == (State.AMBIGUOUS, task)
    with open_store(place) as other:
        found = other.named("a", "once x")
        assert found is not None
        assert found.task == task


def test_a_newer_version_upgrades_a_store_in_use(
    store: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older program sends nothing more, and what it was sending is not lost."""
    bought = store.arm(order("once x"))
    steps: Any = UPGRADES
    monkeypatch.setitem(steps, VERSION, ["CREATE TABLE muybridge_newer (x text)"])
    with open_store(place) as newer:
        with monkeypatch.context() as patched:
            for module in (steps_of_store, store_itself):
                patched.setattr(module, "VERSION", VERSION + 1)
            newer.upgrade()
            assert newer.spent()[Measure.CREATES] == 1
        for use in (lambda: store.arm(order()), lambda: store.conclude(bought.key, accepted("T"))):
            with pytest.raises(StoreUnusable, match=r"Nothing is sent\. Upgrade muybridge"):
                use()
        with monkeypatch.context() as patched:  # the older program is upgraded as well
            for module in (steps_of_store, store_itself):
                patched.setattr(module, "VERSION", VERSION + 1)
            store.record_late()
            found = newer.named("a", "once x")
            assert found is not None
            assert found.task == "T"
