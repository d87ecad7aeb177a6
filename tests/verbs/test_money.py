"""What people see and decide about money: functions of a store, in a file and in a database."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import attrs
import pytest

from muybridge.purchases import (
    Budget,
    CannotDecide,
    Choice,
    Measure,
    State,
    Store,
    StoreUnusable,
    open_store,
)
from muybridge.verbs import decisions, spending
from muybridge.verbs.decisions import Decision
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.estimates import Sum
from muybridge_protocol.purchases import DAY, EVERYTHING, day_of
from muybridge_protocol.remedies import in_facts
from purchases.bought import COST, CUT, buy, refuse
from purchases.racer import order_of
from purchases.test_times import at

Rows = dict[tuple[tuple[str | None, ...], str], tuple[int, Sum]]


def rows(found: spending.Spending) -> Rows:
    """Return the number and the cost of each group."""
    return {
        (one.labels, str(one.state)): (one.purchases, one.sums[Measure.COST])
        for one in found.groups
    }


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def release(key: str) -> Decision:
    return Decision(key=key, choice=Choice.RELEASE)


# What was spent


def test_what_was_spent(store: Store) -> None:
    """By day, family and model, apart from what is reserved or ambiguous. Unknown is not 0."""
    buy(store, task="T1")
    buy(store, task="T2", cost=None)
    left = buy(store)
    for choice in (Choice.ABANDON, Choice.RESUBMIT):
        store.decide(buy(store).key, choice)
    refuse(store)
    store.arm(order_of())
    found = spending.spent(store)
    assert rows(found) == {
        ((today(), "", ""), "armed"): (1, Sum()),
        ((today(), "imgb", "imgb-2"), "accepted"): (4, Sum(3 * COST, 1)),
        ((today(), "imgb", "imgb-2"), "ambiguous"): (1, Sum(COST)),
    }
    assert found.undecided == (left,)


def test_by_tag(store: Store) -> None:
    """A purchase counts under the value of its tag, and under nothing without one."""
    buy(store, "customer=acme", "urgent=a=b", task="T1")
    buy(store, "customer=duck", task="T2")
    buy(store, "customers=x", task="T3")
    assert rows(spending.spent(store, ["customer"])) == {
        (("acme",), "accepted"): (1, Sum(COST)),
        (("duck",), "accepted"): (1, Sum(COST)),
        (("",), "accepted"): (1, Sum(COST)),
    }
    assert rows(spending.spent(store, ["model", "urgent"])) == {
        (("imgb-2", "a=b"), "accepted"): (1, Sum(COST)),
        (("imgb-2", ""), "accepted"): (2, Sum(2 * COST)),
    }
    with pytest.raises(ValueError, match=r"one key of tags \(got customer, urgent\)"):
        spending.spent(store, ["customer", "day", "urgent"])


def test_what_was_removed_is_still_spent(store: Store) -> None:
    """By day and tag, although nothing else is known of it any more."""
    buy(store, "customer=acme", task="T1")
    buy(store, "customer=acme", task="T2", cost=None)
    buy(store, task="T3")
    kept = buy(store, "customer=acme", task="T4", name="order 1")
    buy(store, task="T5")
    before = {by: rows(spending.spent(store, by)) for by in (("day",), ("customer",))}
    assert store.prune(float("inf")).removed == {State.ACCEPTED: 3}
    after = {by: rows(spending.spent(store, by)) for by in (("day",), ("customer",))}
    for by, groups in before.items():
        assert {key: sums for key, (_, sums) in after[by].items()} == {
            key: sums for key, (_, sums) in groups.items()
        }
    assert rows(spending.spent(store)) == {
        ((today(), "imgb", "imgb-2"), "accepted"): (2, Sum(2 * COST)),
        ((today(), None, None), "accepted"): (0, Sum(2 * COST, 1)),
    }
    assert [one.is_pruned for one in spending.spent(store).groups] == [False, True]
    assert rows(spending.spent(store, ["family", "customer"])) == {
        (("imgb", "acme"), "accepted"): (1, Sum(COST)),
        (("imgb", ""), "accepted"): (1, Sum(COST)),
        ((None, "acme"), "accepted"): (0, Sum(COST, 1)),
        ((None, ""), "accepted"): (0, Sum(COST)),
    }
    assert store.named("a", "once order 1") == kept


def test_pruning_of_earlier_days_alone(place: str) -> None:
    """The sums of days from which nothing was removed are those of their purchases."""
    now = time.time()
    with at(place, now - 3 * DAY) as early:
        buy(early, task="T1")
    with open_store(place) as store:
        buy(store, task="T2")
        store.prune((day_of(now) - 1) * DAY)
        told = rows(spending.spent(store, ["day"]))
        first, last = (
            datetime.fromtimestamp(wall, UTC).date().isoformat() for wall in (now - 3 * DAY, now)
        )
        assert told == {
            ((first,), "accepted"): (0, Sum(COST)),
            ((last,), "accepted"): (1, Sum(COST)),
        }


def test_budgets(store: Store) -> None:
    """How far each stored budget is used up, in its period; of a key's, under each value."""
    buy(store, "a=1", task="T1")
    store.limit("a=1", Budget(creates=5, per="day"))
    store.limit(EVERYTHING, Budget(cost=1), from_now=True)
    store.limit("a", Budget(creates=7))
    store.limit("a", Budget(creates=6, per="month"), from_now=True)
    buy(store, "a=1", task="T2")
    buy(store, "a=2", "ab=3", task="T3")
    told = {
        (one.stored.tag, one.stored.budget.per): {
            tag: (spent[Measure.CREATES], spent[Measure.COST]) for tag, spent in one.spent.items()
        }
        for one in spending.budgets(store)
    }
    assert told == {
        (EVERYTHING, None): {EVERYTHING: (2, 2 * COST)},
        ("a", None): {"a=1": (2, 2 * COST), "a=2": (1, COST)},
        ("a", "month"): {"a=1": (1, COST), "a=2": (1, COST)},
        ("a=1", "day"): {"a=1": (2, 2 * COST)},
    }


# Decisions


def test_what_needs_a_decision(store: Store) -> None:
    """Each with what is known of it, from the oldest on."""
    assert decisions.undecided(store) == ()
    first = buy(store, "a=1", name="order 1", candidate="C")
    second = buy(store)
    buy(store, task="T")
    assert decisions.undecided(store) == (first, second)
    assert (first.once, first.candidate, first.reason) == ("order 1", "C", CUT)
    assert decisions.find(store, first.key) == first


def test_a_dead_sender_is_noticed(place: str) -> None:
    """Whoever asks what needs a decision also hears of those that nobody is sending any more."""
    with at(place, time.time() - 9000) as gone:
        left = gone.arm(order_of())
    del gone  # in a file, its lock is free once nothing refers to it
    gc.collect()
    with open_store(place) as store:
        assert [one.key for one in decisions.undecided(store)] == [left.key]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Decision(key="k"), "there is no decision about purchase"),
        (Decision(key="k", choice=Choice.ADOPT), "give its task"),
        (Decision(key="k", choice=Choice.ABANDON, task="T"), "decision is abandon"),
        (Decision(key="k", cost=Decimal(1), task="T"), "decision is missing"),
        (Decision(key="k", choice=Choice.ADOPT, task="a b\n"), "a b"),
        (Decision(key="k", choice=Choice.RELEASE), "pass not_charged=True"),
        (Decision(key="k", choice=Choice.RESUBMIT), "pass i_may_pay_twice=True"),
        (Decision(key="nobody", choice=Choice.ABANDON), "no purchase nobody in "),
    ],
)
def test_a_decision_that_does_not_apply(store: Store, decision: Decision, said: str) -> None:
    """It says why, and nothing is changed."""
    bought = buy(store)
    key = bought.key if decision.key == "k" else decision.key
    with pytest.raises(CannotDecide, match=said):
        decisions.decide(store, [attrs.evolve(decision, key=key)])
    assert store.find(bought.key) == bought


def test_decisions_are_all_checked_before_the_first_is_recorded(store: Store) -> None:
    """Every problem is told with its place, and then none was recorded."""
    first, second, third = buy(store), buy(store), buy(store, task="T")
    wrong = [
        Decision(key=first.key, choice=Choice.ADOPT, task="U"),
        Decision(key=second.key, choice=Choice.ADOPT, task="T", where="line 7"),
        Decision(key=third.key, choice=Choice.ABANDON),
    ]
    with pytest.raises(InvalidInput) as caught:
        decisions.decide(store, wrong)
    assert [(one.where, one.message) for one in caught.value.problems] == [
        ("line 7", f"purchase {third.key} already has task T"),
        ("decision 3", f"purchase {third.key} is accepted: there is nothing to decide about it"),
    ]
    twice = [Decision(key=first.key, choice=it) for it in (Choice.ABANDON, Choice.RESUBMIT)]
    with pytest.raises(InvalidInput, match=r"decision 2: .* is already in decision 1"):
        decisions.decide(store, twice, i_may_pay_twice=True)
    assert decisions.undecided(store) == (first, second)
    told = decisions.decide(store, [wrong[0], release(second.key)], not_charged=True)
    assert [one.state for one in told] == [State.ACCEPTED, State.RELEASED]
    # It may be unknown whether they were recorded: then they are repeated.
    assert decisions.decide(store, [wrong[0], release(second.key)], not_charged=True) == told
    assert decisions.decide(store, []) == ()


def test_a_table_is_filled_in_and_read(store: Store, tmp_path: Path) -> None:
    """What a person writes in the last columns is decided; lines without it are ignored."""
    bought = [buy(store, name=f"=order {n}", candidate="C" if n else None) for n in range(4)]
    lines = decisions.decision_table(decisions.undecided(store)).splitlines()
    assert lines[0].endswith("candidate,reason,decision,task,cost")
    assert f",'=order 0,,,{CUT},,," in lines[1]
    lines[1] = lines[1].removesuffix(",,") + "RELEASE,,"
    lines[2] = lines[2].removesuffix(",,") + "adopt,T9,0.5"
    lines[3] = lines[3].removesuffix(",,") + ",,0.75"
    path = tmp_path / "decisions.csv"
    path.write_text("\n".join(lines), "utf-8")
    read = decisions.read_decisions(path)
    assert read == (
        Decision(key=bought[0].key, choice=Choice.RELEASE, where="line 2"),
        Decision(
            key=bought[1].key, choice=Choice.ADOPT, task="T9", cost=Decimal("0.5"), where="line 3"
        ),
        Decision(key=bought[2].key, cost=Decimal("0.75"), where="line 4"),
    )
    after = decisions.decide(store, read, not_charged=True)
    assert [one.state for one in after] == [State.RELEASED, State.ACCEPTED, State.AMBIGUOUS]
    assert store.spent()[Measure.COST] == Decimal("0.5") + Decimal("0.75") + COST


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("k,x", "'x' is not one of adopt, release, abandon, resubmit"),
        (",abandon", "the key is missing"),
        ("k,,T", "task is given without a decision"),
        ("k,,,-1", r"a cost must be a number of at least 0 \(got '-1'\)"),
        ("k,,,many", "a cost must be a number"),
        ("k,,,NaN", "a cost must be a number"),
        ("k,,,,,", "it has 6 cells"),
        ('k,"', "it is not CSV"),
    ],
)
def test_a_wrong_line(tmp_path: Path, line: str, said: str) -> None:
    """It is told with its number, besides the others."""
    path = tmp_path / "decisions.csv"
    path.write_text(f"key,decision,task,cost\nk,?\n\n{line}\n", "utf-8")
    with pytest.raises(InvalidInput) as caught:
        decisions.read_decisions(path)
    assert [one.where for one in caught.value.problems] == ["line 2", "line 4"]
    assert caught.match(said)


def test_a_table_without_keys(tmp_path: Path) -> None:
    """A table of something else is refused whole."""
    path = tmp_path / "decisions.csv"
    path.write_text("item,decision\n1,adopt\n", "utf-8")
    with pytest.raises(InvalidInput, match="line 1: the column key is missing"):
        decisions.read_decisions(path)


def test_nothing_is_decided_while_it_may_be_under_way(store: Store) -> None:
    """Its sender lives, so its response may still arrive."""
    mine = store.arm(order_of())
    with pytest.raises(CannotDecide, match="under way") as caught:
        decisions.decide(store, [Decision(key=mine.key, choice=Choice.ABANDON)])
    assert caught.value.describe(in_facts).endswith("Nothing was changed.")
    assert store.find(mine.key) == mine
    assert decisions.decide(store, [Decision(key=mine.key, cost=Decimal(2))])[0].state == "armed"


def test_who_only_looks_creates_nothing(store: Store) -> None:
    """A store that does not exist is empty, and stays so."""
    assert spending.spent(store, ["day", "customer"]).groups == ()
    assert spending.budgets(store) == ()
    with pytest.raises(CannotDecide, match="no purchase k"):
        decisions.find(store, "k")
    with pytest.raises(CannotDecide, match="no purchase k"):
        decisions.decide(store, [Decision(key="k", choice=Choice.ABANDON)])
    assert not store.database.exists()


def test_a_folder_and_other_addresses_are_no_store(tmp_path: Path) -> None:
    """A typo does not begin a new store, which would know nothing."""
    with pytest.raises(StoreUnusable, match="is a folder"):
        spending.spent(open_store(tmp_path))
    with pytest.raises(StoreUnusable, match=r"at postgresl://\. Nothing is sent") as caught:
        open_store("postgresl://me:secret@host/db")
    assert "secret" not in str(caught.value)
