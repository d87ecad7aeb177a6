"""What a store keeps, in a file and in a database."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import pytest

import moments
from muybridge.purchases import (
    Choosing,
    Exceeded,
    NameHeld,
    Store,
    StoreUnusable,
    open_store,
)
from muybridge.purchases import steps as steps_of_store
from muybridge.purchases import store as store_itself
from muybridge.purchases.schema import UPGRADES, VERSION
from muybridge.purchases.steps import INSERT, written
from muybridge.purchases.store import NewItem
from muybridge_protocol.purchases import (
    EVERYTHING,
    UNKNOWN_END,
    Budget,
    CannotDecide,
    Choice,
    Measure,
    Order,
    Outcome,
    Purchase,
    Stage,
    State,
    day_of,
)
from muybridge_protocol.records.tasks import Task
from stores import at as open_at

from .racer import ONE, let_time_pass
from .racer import order_of as order

THROTTLED = Outcome(state=State.RELEASED, reason="429")
UNCLEAR = Outcome(state=State.AMBIGUOUS, reason="cut off")
AMBIGUOUS = Outcome(state=State.AMBIGUOUS, reason="cut off", candidate="C", response=b"\x00{")


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
    assert (after.response, after.candidate, after.amounts) == (b"\x00{", "C", amounts)
    assert after.tags == ("a=1", "b=2")
    assert [*store.purchases()] == [*store.purchases(State.AMBIGUOUS)] == [after]
    assert [*store.purchases(State.ARMED, State.RELEASED)] == []


def test_an_empty_place_is_an_empty_store(store: Store, place: str) -> None:
    """Who only looks creates nothing."""
    assert creates(store) == 0
    assert [*store.purchases()] == []
    assert store.named("a", "x") is None
    assert store.sweep() == 0
    assert store.limits() == []
    assert store.prune(float("inf")).removed == {}
    assert store.pruned_spent() == {}
    with pytest.raises(LookupError):
        store.lift(EVERYTHING)
    assert not store.database.exists()
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
    task = "T" if choice is Choice.ADOPT else None
    bought = store.arm(order("x"))
    with pytest.raises(CannotDecide) as caught:
        store.decide(bought.key, choice, task)
    assert caught.value.later
    store.conclude(bought.key, UNCLEAR)
    after = store.decide(bought.key, choice, task)
    assert after.decided_at is not None
    assert (store.named("a", "x") is None) == (choice in (Choice.RELEASE, Choice.RESUBMIT))
    assert creates(store) == (0 if choice is Choice.RELEASE else 1)
    assert store.decide(bought.key, choice, task) == after
    assert creates(store) == (0 if choice is Choice.RELEASE else 1)


def test_many_decisions_are_recorded_all_or_none(store: Store) -> None:
    """Each that does not apply says why, and then none was recorded."""
    bought = [store.arm(order()) for _ in range(4)]
    for one in bought[:3]:
        store.conclude(one.key, UNCLEAR)
    store.conclude(bought[3].key, accepted("T"))
    before = [*store.purchases()]
    with pytest.raises(CannotDecide) as caught:
        store.decide_all([
            Choosing(bought[0].key, Choice.ADOPT, "A"),
            Choosing(bought[1].key, Choice.ADOPT, "A"),
            Choosing(bought[2].key, Choice.ADOPT, "T"),
            Choosing(bought[3].key, Choice.RELEASE),
            Choosing("nobody", Choice.RELEASE),
            Choosing(bought[2].key, Choice.RELEASE),
        ])  # fmt: skip
    assert {n: type(it) for n, it in caught.value.reasons.items()} == {
        1: CannotDecide, 2: CannotDecide, 3: CannotDecide, 4: LookupError,
    }  # fmt: skip
    assert ["already has task" in str(caught.value.reasons[n]) for n in (1, 2, 3)] == [
        True, True, False,
    ]  # fmt: skip
    assert [*store.purchases()] == before
    told = store.decide_all([
        Choosing(bought[0].key, Choice.ADOPT, "A", Decimal("0.5")),
        Choosing(bought[1].key, None, cost=Decimal("0.25")),
        Choosing(bought[2].key, Choice.RELEASE, cost=Decimal(9)),
    ])  # fmt: skip
    assert [one.state for one in told] == [State.ACCEPTED, State.AMBIGUOUS, State.RELEASED]
    assert [one.task for one in told] == ["A", None, None]
    assert store.spent()[Measure.COST] == Decimal("0.75")


def test_more_decisions_than_a_statement_has_values(store: Store) -> None:
    """They are recorded at once all the same, and each is counted."""
    keys = [f"{n:04}" for n in range(1100)]
    store.arm(order())
    with store.database.transaction() as rows:
        rows.run_each(INSERT, [
            written(Purchase(key=key, account="a", owner="", state=State.AMBIGUOUS, armed_at=1,
                             amounts=ONE, tags=(f"shot={key}",)))
            for key in keys
        ])  # fmt: skip
    told = store.decide_all([
        Choosing(key, Choice.ADOPT, f"T{key}", cost=Decimal(2)) for key in keys
    ])  # fmt: skip
    assert [one.task for one in told] == [f"T{key}" for key in keys]
    assert {store.spent(f"shot={key}")[Measure.COST] for key in keys[::100]} == {Decimal(2)}


def test_what_has_an_id_is_not_released(store: Store) -> None:
    """The response to it names a task, so it was probably charged; unless another has that task."""
    first, second = store.arm(order()), store.arm(order())
    store.conclude(first.key, AMBIGUOUS)
    with pytest.raises(CannotDecide, match="has the id C, so it was probably accepted"):
        store.decide(first.key, Choice.RELEASE)
    store.decide(first.key, Choice.ADOPT, "C")
    after = store.conclude(second.key, accepted("C"))
    assert (after.state, after.candidate) == (State.AMBIGUOUS, "C")
    assert store.decide(second.key, Choice.RELEASE).state is State.RELEASED


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
    store.conclude(first.key, UNCLEAR)
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


def test_every_purchase_is_listed_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, however many pages of the store they take."""
    monkeypatch.setattr(*moments.constant("purchases read at once"), 2)
    armed = [store.arm(order()).key for _ in range(5)]
    assert [one.key for one in store.purchases()] == armed


# Budgets


def test_the_programs_own_precision(store: Store) -> None:
    """A program that calculates with one digit spends its budget exactly, to the last tenth."""
    with localcontext() as context:
        context.prec = 1
        budget = Budget(creates=10, cost="12.5")
        for _ in range(10):
            amounts = {**ONE, Measure.COST: Decimal("1.25")}
            store.arm(order(amounts=amounts), budgets=[budget])
        with pytest.raises(Exceeded, match="none of the limit of 10 creates is left"):
            store.arm(order(), budgets=[budget])
        tiny = {**dict.fromkeys(Measure, Decimal(0)), Measure.COST: Decimal("0.000000001")}
        with pytest.raises(Exceeded, match=r"none of the limit of 12\.5 in cost is left"):
            store.arm(order(amounts=tiny), budgets=[Budget(cost="12.5")])
        spent = store.spent(budget=budget)
    assert (spent[Measure.CREATES], spent[Measure.COST]) == (10, Decimal("12.5"))


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
    assert [one.tag for one in store.limits()] == [EVERYTHING, "customer=acme"]
    with pytest.raises(LookupError):
        store.lift(EVERYTHING, "day")
    assert store.lift(EVERYTHING).budget == Budget(creates=5)
    store.arm(order())
    assert len([*store.purchases()]) == 7


def test_a_tag_has_a_budget_for_each_period(store: Store) -> None:
    """A limit that is set leaves the others of the tag as they are."""
    store.limit("a=1", Budget(creates=3))
    store.limit("a=1", Budget(creates=2, per="day"))
    store.limit("a=1", Budget(pictures=9, per="day"))
    assert [one.budget for one in store.limits()] == [
        Budget(creates=3), Budget(creates=2, pictures=9, per="day"),
    ]  # fmt: skip
    for _ in range(2):
        store.arm(order(None, "a=1"))
    with pytest.raises(Exceeded, match=r"a day is left.* the stored budget of a=1 "):
        store.arm(order(None, "a=1"))
    store.lift("a=1", "day")
    store.arm(order(None, "a=1"))
    with pytest.raises(Exceeded, match="limit of 3 creates is left"):
        store.arm(order(None, "a=1"))
    with pytest.raises(ValueError, match="printable"):
        store.limit("a\n", Budget(creates=1))


def test_a_budget_from_now_on(store: Store, place: str) -> None:
    """What was armed before does not count, whatever becomes of it, and no clock decides that."""
    before = [store.arm(order(None, "a=1", amounts={**ONE, Measure.COST: None})) for _ in range(4)]
    for one in before:
        store.conclude(one.key, UNCLEAR)
    stored = store.limit("a=1", Budget(creates=2, cost=9), from_now=True)
    assert stored.since is not None

    def used() -> Decimal | None:
        return store.spent(stored.counted_under)[Measure.CREATES]

    with open_at(place, time.time() - 3600) as slow:  # whose clock was set back
        first = slow.arm(order(None, "a=1"))
    assert (first.budgets, first.tags) == ((stored.counted_under,), ("a=1",))
    assert store.find(first.key) == first
    store.decide(before[0].key, Choice.RELEASE)
    store.decide_all([Choosing(before[1].key, None, cost=Decimal(5))])
    assert used() == 1
    store.arm(order(None, "a=1"))
    store.arm(order(None, "a=2"))
    with pytest.raises(Exceeded):
        store.arm(order(None, "a=1"))
    store.conclude(first.key, THROTTLED)
    assert used() == 1
    store.conclude(first.key, accepted("LATE"))
    assert used() == 2
    # A higher limit counts on, and one may count anew, or everything.
    assert store.limit("a=1", Budget(creates=3)).counted_under == stored.counted_under
    assert store.limit("a=1", Budget(), from_now=True).counted_under != stored.counted_under
    assert store.limit("a=1", Budget(), from_now=False).counted_under == "a=1"
    with pytest.raises(Exceeded):
        store.arm(order(None, "a=1"))
    assert store.spent("a=1")[Measure.CREATES] == 5


@pytest.mark.parametrize("from_now", [False, True])
def test_a_budget_for_a_key(store: Store, *, from_now: bool) -> None:
    """It holds for each value separately, beside the budgets of tags, and refuses what lacks it."""
    store.arm(order(None, "customer=a"))
    store.arm(order())
    store.limit("customer", Budget(creates=3), from_now=from_now)
    store.limit("customer=b", Budget(creates=1))
    store.limit("team=x", Budget(creates=4))
    left = {"customer=a": 3 if from_now else 2, "customer=b": 1, "customer=c": 3}
    for tag, count in left.items():
        for _ in range(count):
            store.arm(order(None, "customers=z", tag))
        with pytest.raises(Exceeded, match=f"stored budget of {tag}") as caught:
            store.arm(order(None, tag))
        assert caught.value.remedies == ()
    for lacking in ((), ("customers=a", "xcustomer=a", "team=x")):
        with pytest.raises(Exceeded, match="for each value of the tag 'customer'") as caught:
            store.arm(order(None, *lacking))
        assert [(one.kind, one.option) for one in caught.value.remedies] == [("tag", "customer")]
    store.limit("team", Budget(creates=9))
    for n in range(4):
        store.arm(order(None, "team=x", f"customer=of team {n}"))
    with pytest.raises(Exceeded, match="stored budget of team=x"):
        store.arm(order(None, "team=x", "customer=d"))
    with pytest.raises(Exceeded, match="value of the tag 'team'"):
        store.arm(order(None, "customer=d"))
    assert creates(store) == sum(left.values()) + 6
    store.lift("team")
    store.lift("customer")
    store.arm(order())


def test_a_list_with_and_without_a_key(store: Store) -> None:
    """Of many purchases of the same moment, only those without the key are refused."""
    store.limit("customer", Budget(creates=2))
    begun = threading.Barrier(12)

    def buy(number: int) -> bool:
        tags = [f"customer={number % 3}"] if number % 4 else []
        begun.wait()
        try:
            store.arm(order(None, *tags))
        except Exceeded:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        bought = [*pool.map(buy, range(12))]
    assert not any(bought[::4])
    assert sum(bought) == 6
    assert creates(store) == 6


@pytest.mark.parametrize("tag", ["a=1", "a"])
def test_a_budget_that_is_set_while_others_buy(store: Store, tag: str) -> None:
    """Whoever has not seen it yet ends first, and from then on nobody goes beyond."""
    begun = threading.Barrier(5)

    def buy() -> None:
        begun.wait()
        with suppress(Exceeded):
            while True:
                store.arm(order(None, "a=1"))

    with ThreadPoolExecutor(4) as pool:
        buying = [pool.submit(buy) for _ in range(4)]
        begun.wait()
        stored = store.limit(tag, Budget(creates=7), from_now=True)
        for one in buying:
            one.result()
    assert creates(store, stored.label_of("a=1")) == 7
    assert len([*store.purchases()]) == creates(store)


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
    with pytest.raises(Exceeded, match=rf"cost is unknown \(purchase {unknown.key}\)\. Give what"):
        store.arm(priced)
    store.arm(order(None, "a=2", amounts={**ONE, Measure.COST: Decimal(1)}))
    store.price(unknown.key, {Measure.COST: Decimal("0.5")})
    store.arm(priced)
    assert store.spent("a=1")[Measure.COST] == Decimal("1.5")


@pytest.mark.parametrize("per", [None, "day"])
def test_the_message_lists_what_has_an_unknown_amount(store: Store, per: Any) -> None:
    """Up to five of those that count in this budget and period, the oldest first."""
    lacking = {**ONE, Measure.COST: None}
    mine: list[str] = []
    for number in range(7):
        store.arm(order(None, "a=2", amounts=lacking))
        store.conclude(store.arm(order(None, "a=1", amounts=lacking)).key, THROTTLED)
        mine.append(store.arm(order(f"once {number}", "a=1", amounts=lacking)).key)
    store.limit("a", Budget(cost=9, per=per))
    with pytest.raises(Exceeded) as caught:
        store.arm(order(None, "a=1", amounts={**ONE, Measure.COST: Decimal(1)}))
    listed = ", ".join(f"purchase {key} ({number})" for number, key in enumerate(mine[:5]))
    assert f"requests whose cost is unknown ({listed}, ...). Give" in str(caught.value)
    [remedy] = caught.value.remedies
    assert (remedy.kind, remedy.purchase) == ("price", mine[0])


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
    assert store.prune(0).removed == {}
    told = store.prune(float("inf"))
    assert told.removed == {State.ACCEPTED: 1, State.RELEASED: 1}
    assert (told.named, told.followed, told.undecided) == (1, 0, 1)
    assert {one.key for one in store.purchases()} == {*(one.key for one in kept), newest.key}
    assert creates(store) == 4
    store.arm(order())
    assert store.prune(float("inf")).removed == {State.ACCEPTED: 1}


def test_what_was_pruned_is_still_counted_by_day_and_tag(store: Store) -> None:
    """Only of the days of which something was removed: of the others, the purchases tell."""
    for tags in (("a=1",), ("a=2", "ab=1"), ()):
        store.conclude(store.arm(order(None, *tags)).key, accepted(f"T{tags}"))
    assert store.pruned_spent() == {}
    store.prune(float("inf"))
    day = day_of(time.time())
    told = {key: sums[Measure.CREATES].known for key, sums in store.pruned_spent("a").items()}
    assert told == {("a=1", day): 1, ("a=2", day): 1}
    [(place, sums)] = store.pruned_spent().items()
    assert (place, sums[Measure.CREATES].known) == ((EVERYTHING, day), 3)


def test_pruning_keeps_what_items_refer_to(store: Store) -> None:
    """An item that is waited for needs the id of its task."""
    batch = store.begin_batch("b", [NewItem(stem="1", family="imga", body="{}")])
    [(item, _)] = store.take(batch, Stage.QUEUED)
    bought = store.arm(order(), item=(item.batch, item.number))
    store.conclude(bought.key, accepted("T"))
    store.arm(order())
    told = store.prune(float("inf"))
    assert (told.removed, told.followed) == ({}, 1)
    [followed] = store.items(batch)
    assert store.find(str(followed.purchase)).task == "T"


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
    assert store.upgrade() == VERSION
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_store SET version = 0")
    steps: Any = UPGRADES
    monkeypatch.setitem(steps, 0, ["CREATE TABLE muybridge_more (x text)", "CREATE nothing"])
    with pytest.raises(StoreUnusable):
        store.upgrade()
    monkeypatch.setitem(steps, 0, ["CREATE TABLE muybridge_more (x text)"])
    assert store.upgrade() == 0
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


def test_an_alarm_while_it_waits_for_its_turn(store: Store) -> None:
    """What a signal handler raises comes out as it is, whatever its class, and nothing is armed."""
    store.spent()
    store.conclude(store.arm(order()).key, Outcome(state=State.RELEASED))
    may_end = threading.Event()

    def hold(has_begun: threading.Event) -> None:
        with store.database.transaction():
            has_begun.set()
            may_end.wait(10)

    def ring(*_: object) -> None:
        raise TimeoutError("the user's own")

    has_begun = threading.Event()
    before = signal.signal(signal.SIGALRM, ring)
    holder = threading.Thread(target=hold, args=(has_begun,))
    holder.start()
    try:
        assert has_begun.wait(10)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="the user's own"):
            store.arm(order())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        may_end.set()
        holder.join()
    assert [one.state for one in store.purchases()] == [State.RELEASED]
