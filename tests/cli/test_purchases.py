"""`spent`, `undecided`, `decide`, `budget` and `store`: money on the command line."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from muybridge.purchases import Choice, Exceeded, Measure, State, Store, open_store
from muybridge.purchases.environment import default_place
from muybridge_protocol.purchases import Outcome
from muybridge_protocol.records.tasks import Task
from processes import environment
from purchases.bought import COST, CUT, buy, refuse
from purchases.racer import order_of

from .conftest import Invoke


@pytest.fixture
def ask(invoke: Invoke, place: str) -> Invoke:
    """Run the command with the store of the test."""

    def run(*words: str, **more: Any) -> Result:
        return invoke(*words, env={"MUYBRIDGE_STORE": place, "COLUMNS": "80"}, **more)

    return run


def told(done: Result) -> Any:
    """Return the JSON document of a command that has succeeded."""
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def wide(done: Result) -> list[str]:
    """Return the lines on stdout, with single spaces."""
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


# What was spent


def test_spent(ask: Invoke, store: Store) -> None:
    """By day, family and model; what is reserved, ambiguous or unknown is said, and is not 0."""
    buy(store, "customer=acme", task="T1")
    buy(store, "customer=acme", task="T2", cost=None)
    left = buy(store)
    refuse(store)
    store.arm(order_of())
    shown = ask("spent")
    assert shown.exit_code == 0
    assert [line.split(" ", 1)[1] for line in wide(shown)[1:]] == [
        "? 1 0 0 0 reserved",
        "imgb imgb-2 2 2 0 0.25 + 1 unknown",
        "imgb imgb-2 1 1 0 0.25 ambiguous",
    ]
    assert "1 request is ambiguous; to decide: muybridge undecided" in shown.stderr
    document = told(ask("spent", "--json"))
    assert document["store"] == store.place
    assert [one["state"] for one in document["spent"]] == ["armed", "accepted", "ambiguous"]
    group = document["spent"][1]
    assert (group["family"], group["requests"], group["pruned"]) == ("imgb", 2, False)
    assert group["cost"] == {"known": "0.25", "unknown": 1}
    assert group["creates"] == {"known": 2, "unknown": 0}
    [record] = document["undecided"]
    assert (record["key"], record["reason"], record["task_id"]) == (left.key, CUT, None)


def test_spent_by_tag(ask: Invoke, store: Store) -> None:
    """Under the values of a tag, whatever its key is called."""
    buy(store, "state=x", task="T1")
    buy(store, task="T2")
    assert wide(ask("spent", "--by", "state")) == [
        "State Requests Pictures Seconds Cost", "- 1 1 0 0.25", "x 1 1 0 0.25",
    ]  # fmt: skip
    groups = told(ask("spent", "--by", "model,state", "--json"))["spent"]
    assert [(it["model"], it["tag"], it["state"]) for it in groups] == [
        ("imgb-2", "", "accepted"), ("imgb-2", "x", "accepted"),
    ]  # fmt: skip


def test_a_list_with_task_ids(ask: Invoke, store: Store) -> None:
    """`--by purchase` has the id of each task that was paid for, whatever became of the command."""
    bought = buy(store, task="T1", name="order 1")
    buy(store)
    listed = told(ask("spent", "--by", "purchase", "--json"))["purchases"]
    assert [(it["state"], it["task_id"]) for it in listed] == [
        ("accepted", "T1"), ("ambiguous", None),
    ]  # fmt: skip
    assert listed[0]["key"] == bought.key
    assert listed[0]["once"] == "order 1"
    assert listed[0]["amounts"] == {
        "creates": "1", "pictures": "1", "seconds": "0", "calls": "0", "cost": "0.25",
    }  # fmt: skip
    assert (
        f"imgb imgb-2 (order 1) accepted T1 0.25 {bought.key}"
        in wide(ask("spent", "--by", "purchase"))[1]
    )


def test_a_task_that_arrived_after_the_decision(ask: Invoke, store: Store) -> None:
    """Both are shown: the one that a person has named, and the one that was paid for."""
    bought = buy(store)
    store.decide(bought.key, Choice.ADOPT, "T1")
    store.conclude(bought.key, Outcome(state=State.ACCEPTED, task=Task(id="T2")))
    assert "accepted T1, also T2 0.25" in wide(ask("spent", "--by", "purchase"))[1]
    [record] = told(ask("spent", "--by", "purchase", "--json"))["purchases"]
    assert (record["task_id"], record["late_task_id"]) == ("T1", "T2")


@pytest.mark.parametrize(
    ("by", "said"),
    [("day,day", "each word once"), ("day,", "each word once"), ("budget,day", "alone"),
     ("a,b", "one key of tags (got a, b)")],
)  # fmt: skip
def test_what_cannot_be_grouped(ask: Invoke, by: str, said: str) -> None:
    """It is a mistake in the command line."""
    done = ask("spent", "--by", by)
    assert done.exit_code == 2
    assert said in done.stderr


def test_who_only_looks_creates_nothing(ask: Invoke, store: Store, tmp_path: Path) -> None:
    """Nothing is recorded yet, and each command says so, or that there is no such purchase."""
    table = tmp_path / "decisions.csv"
    table.write_text("key,decision\nk,abandon\n", "utf-8")
    nothing = f"no request that costs money is recorded in {store.place}"
    for words, code, said in (
        (("spent",), 0, nothing),
        (("spent", "--by", "purchase"), 0, nothing),
        (("spent", "--by", "budget"), 0, "no budget is stored"),
        (("undecided",), 0, f"nothing to decide in {store.place}"),
        (("undecided", "--csv"), 0, ""),
        (("decide", "k"), 2, "there is no purchase k"),
        (("decide", "k", "--abandon"), 2, "there is no purchase k"),
        (("decide", "--from", str(table)), 2, "there is no purchase k"),
        (("budget", "list"), 0, "no budget is stored"),
        (("budget", "remove"), 2, "there is no budget"),
        (("store", "prune", "--before", "2026-01-01", "--yes"), 0, "removed: 0"),
        (("store", "upgrade"), 2, "there is no store"),
        (("store", "accept", "--i-may-pay-twice"), 2, "there is no store"),
    ):
        done = ask(*words)
        assert (done.exit_code, said in done.stderr) == (code, True), (words, done.stderr)
        if code == 0 and words[-1] != "--csv":
            assert told(ask(*words, "--json"))["ok"]
    assert not store.database.exists()
    assert not [path for path in tmp_path.iterdir() if path != table]


# Decisions


@pytest.mark.parametrize(
    ("decision", "state", "spent", "said"),
    [
        (("--adopt", "T9"), State.ACCEPTED, 1, "is accepted as task T9: it counts as spent"),
        (("--release", "--not-charged"), State.RELEASED, 0, "can be sent again"),
        (("--abandon",), State.ABANDONED, 1, "it counts as spent, and its name stays taken"),
        (("--resubmit", "--i-may-pay-twice"), State.RESUBMITTED, 1, "can be sent again"),
    ],
)
def test_decide(
    ask: Invoke, store: Store, decision: tuple[str, ...], state: State, spent: int, said: str
) -> None:
    """What needs a decision is listed until somebody decides."""
    bought = buy(store, name="order 1")
    shown = ask("undecided")
    assert bought.key in shown.stdout
    assert f"{bought.key}: {CUT}" in shown.stderr
    assert told(ask("undecided", "--json"))["undecided"][0]["key"] == bought.key
    done = ask("decide", bought.key, *decision)
    assert done.exit_code == 0
    assert f"purchase {bought.key} (order 1) is {state}" in done.stderr
    assert said in done.stderr
    again = told(ask("decide", bought.key, *decision, "--json"))["purchase"]
    assert (again["state"], again["once"]) == (state, "order 1")
    assert store.find(bought.key).state is state
    assert store.spent()[Measure.CREATES] == spent
    assert "nothing to decide" in ask("undecided").stderr


@pytest.mark.parametrize("candidate", [None, "T7", "-T7"])
def test_the_commands_that_are_shown_work(ask: Invoke, store: Store, candidate: str | None) -> None:
    """`decide KEY` shows what is known, and a command for each decision that is possible."""
    buy(store, candidate=candidate)
    [key] = (one.key for one in store.purchases())
    shown = ask("decide", key)
    assert shown.exit_code == 0
    assert {"State ambiguous", f"Reason {CUT}", "Cost 0.25"} <= {*wide(shown)}
    lines = [line for line in shown.stderr.splitlines() if line.startswith("  muybridge ")]
    assert len(lines) == (4 if candidate is None else 3)
    for line in lines:
        fresh = buy(store).key
        words = shlex.split(line.partition("  (")[0].replace(key, fresh))[1:]
        done = ask(*words, "--json")
        assert told(done)["purchase"]["key"] == fresh
        assert store.find(fresh).state is not State.AMBIGUOUS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give either a KEY with a decision, or --from FILE"),
        (("k", "--from", "x.csv"), "give either a KEY"),
        (("--from", "x.csv", "--cost", "1"), "give either a KEY"),
        (("k", "--adopt", "a", "--abandon"), "give one of --adopt TASK, --abandon, --release"),
        (("k", "--release"), "use --not-charged"),
        (("k", "--resubmit"), "use --i-may-pay-twice"),
        (("k", "--cost", "-1"), "--cost: a cost must be a number of at least 0"),
        (("k", "--adopt", '{"muybridge_task":99}'), "token"),
        (("k", "--adopt", ""), "give its task"),
    ],
)
def test_a_decision_that_is_not_one(
    ask: Invoke, store: Store, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Nothing is changed, and the message says what is missing."""
    (tmp_path / "x.csv").touch()
    bought = buy(store)
    done = ask("decide", *(bought.key if word == "k" else word for word in words))
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert store.find(bought.key) == bought


def test_the_task_of_another_purchase(ask: Invoke, store: Store) -> None:
    """It is not adopted twice; in another account, it is another task."""
    first, second = buy(store, task="T1"), buy(store)
    done = ask("decide", second.key, "--adopt", "T1")
    assert done.exit_code == 2
    assert f"purchase {first.key} already has task T1. Nothing was changed." in done.stderr
    assert store.find(second.key) == second
    other = buy(store, account="b")
    record = told(ask("decide", other.key, "--adopt", "T1", "--json"))["purchase"]
    assert (record["account"], record["task_id"]) == ("b", "T1")


def test_what_has_an_id_is_not_released(ask: Invoke, store: Store) -> None:
    """It was probably charged."""
    bought = buy(store, candidate="T7")
    done = ask("decide", bought.key, "--release", "--not-charged")
    assert done.exit_code == 2
    assert "has the id T7, so it was probably accepted and charged. Adopt" in done.stderr
    assert store.find(bought.key) == bought


def test_a_request_that_is_under_way(ask: Invoke, store: Store) -> None:
    """Its sender lives, so nobody decides yet, and a dead one's is decided."""
    mine = store.arm(order_of())
    assert "nothing to decide" in ask("undecided").stderr
    done = ask("decide", mine.key, "--abandon")
    assert done.exit_code == 2
    assert "under way" in done.stderr
    assert store.find(mine.key) == mine


def test_a_cost_that_was_unknown(ask: Invoke, store: Store) -> None:
    """It blocks a limit on cost until somebody gives it."""
    bought = buy(store, task="T1", cost=None)
    ask("budget", "set", "--max-cost", "2")
    assert wide(ask("budget", "list"))[1] == "(all) 2 in cost unknown unknown"
    [limits] = told(ask("budget", "list", "--json"))["budgets"]
    assert limits["limits"] == {"cost": {"limit": "2", "spent": None, "left": None}}
    with pytest.raises(Exceeded, match="unknown"):
        buy(store)
    done = ask("decide", bought.key, "--cost", "0.5")
    assert (done.exit_code, "its cost is 0.5" in done.stderr) == (0, True)
    assert wide(ask("budget", "list"))[1] == "(all) 2 in cost 0.5 1.5"
    buy(store)


def test_a_table_is_filled_in(ask: Invoke, store: Store, tmp_path: Path) -> None:
    """What `undecided --csv` prints is what `decide --from` reads."""
    bought = [buy(store, name=f"order {n}") for n in range(3)]
    rows = [*csv.DictReader(ask("undecided", "--csv").stdout.splitlines())]
    assert [row["name"] for row in rows] == ["order 0", "order 1", "order 2"]
    rows[0] |= {"decision": "adopt", "task": "T9", "cost": "1"}
    rows[1] |= {"decision": "release"}
    path = tmp_path / "decisions.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [*rows[0]])
        table.writeheader()
        table.writerows(rows)
    refused = ask("decide", "--from", str(path))
    assert (refused.exit_code, "use --not-charged" in refused.stderr) == (2, True)
    assert [*store.purchases()] == bought
    done = ask("decide", "--from", str(path), "--not-charged")
    assert done.exit_code == 0
    assert "decisions recorded: 2 (1 accepted, 1 released)" in done.stderr
    again = told(ask("decide", "--from", str(path), "--not-charged", "--json"))["purchases"]
    assert [one["state"] for one in again] == ["accepted", "released"]
    assert store.find(bought[2].key) == bought[2]
    assert store.spent()[Measure.COST] == Decimal("1.25")


def test_a_table_with_wrong_lines(ask: Invoke, store: Store, tmp_path: Path) -> None:
    """Every problem is told with its line, and nothing is decided."""
    bought = [buy(store) for _ in range(2)]
    key = bought[0].key
    path = tmp_path / "decisions.csv"
    for lines, said in (
        ([f"{key},abandon,", "x,sell,"], ["line 3: 'sell' is not one of"]),
        ([f"{key},abandon,", f"{key},resubmit,"], [f"line 3: purchase {key} is already in line 2"]),
        ([f"{key},abandon,", "x,abandon,"], ["line 3: there is no purchase x in "]),
        ([f"{key},adopt,T", f"{bought[1].key},adopt,T"], ["line 3: ", "already has task T"]),
    ):
        path.write_text("\n".join(["key,decision,task", *lines]), "utf-8")
        done = ask("decide", "--from", str(path), "--i-may-pay-twice", "--json")
        assert done.exit_code == 2
        for one in (*said, "1 problem in the decisions (nothing was decided)"):
            assert one in done.stderr, done.stderr
        assert json.loads(done.stdout)["error"]["type"] == "InvalidInput"
        assert [*store.purchases()] == bought


def test_what_has_no_cost(ask: Invoke, store: Store, tmp_path: Path) -> None:
    """Requests without a known cost are listed, and given their costs, one by one or in a table."""
    assert "no request without a cost" in ask("undecided", "--unpriced").stderr
    first = buy(store, "customer=acme", task="T1", cost=None)
    second = buy(store, cost=None)
    buy(store, task="T2")
    refuse(store)
    rows = wide(ask("undecided", "--unpriced"))[1:]
    assert [row.split()[0] for row in rows] == [first.key, second.key]
    assert ask("decide", first.key, "--cost", "0.25").stderr.splitlines()[1] == "its cost is 0.25"
    done = ask("undecided", "--unpriced", "--csv")
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    (tmp_path / "costs.csv").write_text(f"{lines[0]}\n{lines[1]}0.5\n")
    assert ask("decide", "--from", str(tmp_path / "costs.csv")).exit_code == 0
    assert told(ask("undecided", "--unpriced", "--json"))["undecided"] == []
    assert store.spent()[Measure.COST] == Decimal("0.75") + COST


# Budgets


def test_whom_a_budget_binds(invoke: Invoke, ask: Invoke, place: str) -> None:
    """`budget set` tells how programs come to use its store, unless they do already."""
    words = ("budget", "set", "--max-creates", "3", "--per", "day")
    said = "it binds only programs that use this store; for all of yours: export MUYBRIDGE_STORE="
    assert said not in ask(*words).stderr
    named = "URL" if "://" in place else place
    assert f"{said}{named}\n" in invoke(*words, "--store", place).stderr
    assert f"{said}{default_place()}\n" in invoke(*words).stderr
    assert f"{said}{default_place()}\n" in ask(*words, "--store", default_place()).stderr


def test_budgets(ask: Invoke, store: Store) -> None:
    """They bind everybody, per tag and period, and a limit that is set leaves the others."""
    buy(store, "customer=acme", task="T1")
    done = ask("budget", "set", "--tag", "customer=acme", "--max-creates", "2", "--per", "day")
    said = "customer=acme: at most 2 creates a day; 1 spent, 1 left"
    assert (done.exit_code, said in done.stderr) == (0, True)
    ask("budget", "set", "--tag", "customer=acme", "--max-cost", "9", "--per", "day")
    ask("budget", "set", "--max-creates", "3")
    buy(store, "customer=acme", task="T2")
    with pytest.raises(Exceeded, match="stored budget of customer=acme a day"):
        buy(store, "customer=acme")
    assert wide(ask("budget", "list"))[1:] == [
        "(all) 3 creates 2 1",
        "customer=acme 2 creates a day 2 0",
        "customer=acme 9 in cost a day 0.5 8.5",
    ]
    assert wide(ask("spent", "--by", "budget")) == wide(ask("budget", "list"))
    assert "there is no budget without --tag --per day" in (
        ask("budget", "remove", "--per", "day").stderr
    )
    removed = told(ask("budget", "remove", "--tag", "customer=acme", "--per", "day", "--json"))
    assert removed["removed"] == {"tag": "customer=acme", "per": "day"}
    buy(store, "customer=acme")
    with pytest.raises(Exceeded, match="stored budget of everybody"):
        buy(store)


def test_a_budget_from_now_on(ask: Invoke, store: Store) -> None:
    """What was spent before does not count, and it may count anew, or everything after all."""
    buy(store, task="T1")
    done = ask("budget", "set", "--max-creates", "1", "--from", "now")
    assert "at most 1 create, counted from now on; 0 spent, 1 left" in done.stderr
    buy(store, task="T2")
    with pytest.raises(Exceeded):
        buy(store)
    told(ask("budget", "set", "--max-creates", "2", "--json"))
    buy(store)
    with pytest.raises(Exceeded):
        buy(store)
    [anew] = [told(ask("budget", "set", "--from", "now", "--json"))["budget"]]
    assert anew["limits"] == {"creates": {"limit": "2", "spent": "0", "left": "2"}}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", anew["since"])
    whole = told(ask("budget", "set", "--from", "start", "--json"))["budget"]
    assert (whole["since"], whole["limits"]["creates"]["left"]) == (None, "0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give a limit, such as --max-creates 200 --per day"),
        (("--per", "day"), "give a limit"),
        (("--from", "now"), "a budget has at least one limit"),
        (("--max-creates", "many"), "--max-creates: a limit must be a number"),
        (("--tag", "a\tb", "--max-creates", "1"), "printable characters"),
        (("--tag", "=acme", "--max-creates", "1"), "a key must have 1 to 64 printable characters"),
        (
            ("--tag", "customer=", "--max-creates", "1"),
            "the value of 'customer' must have 1 to 256",
        ),
        (("--tag", "model", "--max-creates", "1"), "the key 'model' is taken"),
        (("--from", "yesterday", "--max-creates", "1"), "'yesterday' is not one of 'now', 'start'"),
    ],
)
def test_a_budget_that_is_not_one(ask: Invoke, store: Store, words: list[str], said: str) -> None:
    """It is a mistake in the command line, and nothing is stored."""
    done = ask("budget", "set", *words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert store.limits() == []


def test_a_budget_for_a_key(ask: Invoke, store: Store) -> None:
    """It is listed for each value, and is set, lifted and told by its key."""
    buy(store, "customer=acme", task="T1")
    done = ask("budget", "set", "--tag", "customer", "--max-creates", "2", "--per", "day")
    assert done.stderr.splitlines() == [
        "each value of customer: at most 2 creates a day",
        "requests without a tag customer=VALUE are refused from now on",
        "customer=acme: at most 2 creates a day; 1 spent, 1 left",
    ]
    buy(store, "customer=duck", task="T2")
    with pytest.raises(Exceeded, match="each value of the tag 'customer'"):
        buy(store)
    assert wide(ask("budget", "list"))[1:] == [
        "customer (each) 2 creates a day",
        "customer=acme 2 creates a day 1 1",
        "customer=duck 2 creates a day 1 1",
    ]
    [told_of] = told(ask("budget", "list", "--json"))["budgets"]
    amounts = {"creates": {"limit": "2", "spent": "1", "left": "1"}}
    assert told_of == {
        "tag": "customer", "per": "day", "since": None, "limits": {"creates": {"limit": "2"}},
        "values": {"acme": amounts, "duck": amounts},
    }  # fmt: skip
    assert told(ask("budget", "set", "--tag", "customer", "--max-creates", "2", "--per", "day",
                    "--json"))["budget"] == told_of  # fmt: skip
    ask("budget", "remove", "--tag", "customer", "--per", "day")
    buy(store)


def test_a_budget_for_a_tag_that_no_request_has(ask: Invoke, store: Store) -> None:
    """The command says so, because it may be a typo."""
    buy(store, "customer=acme", task="T1")
    for tag in ("customer=amce", "costumer"):
        done = ask("budget", "set", "--tag", tag, "--max-creates", "2")
        assert f"no request with the tag {tag} counts here yet" in done.stderr


# Stores


def test_prune(ask: Invoke, store: Store) -> None:
    """What was spent stays counted. A name that is promised stays, and what needs a decision."""
    named = buy(store, task="T1", name="order 1")
    buy(store, task="T2")
    refuse(store)
    left = buy(store)
    newest = buy(store, task="T3")
    age(store)
    before = told(ask("spent", "--by", "day", "--json"))["spent"]
    done = ask("store", "prune", "--before", "2026-01-02", "--yes")
    assert done.exit_code == 0
    assert "removed: 2 from before 2026-01-02 (1 accepted, 1 released)" in done.stderr
    assert "kept from before that day: 1 named, 1 undecided" in done.stderr
    assert [one.key for one in store.purchases()] == [named.key, left.key, newest.key]
    assert store.named("a", "once order 1") is not None
    after = told(ask("spent", "--by", "day", "--json"))["spent"]
    assert [it["cost"] for it in after] == [it["cost"] for it in before]
    shown = ask("spent")
    assert "(removed)" in shown.stdout
    assert "counted, not listed" in shown.stderr
    again = told(ask("store", "prune", "--before", "2026-01-02", "--yes", "--json"))
    assert again["removed"] == {}
    assert again["kept"] == {"named": 1, "in_batches": 0, "undecided": 1}


def test_the_future_is_not_pruned(ask: Invoke, store: Store) -> None:
    """A typo removes nothing."""
    buy(store, task="T1")
    buy(store, task="T2")
    for day, said in (("2062-01-01", "in the future"), ("1.1.2026", "does not match")):
        done = ask("store", "prune", "--before", day, "--yes")
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert len([*store.purchases()]) == 2


def test_another_version(ask: Invoke, store: Store) -> None:
    """A store that a newer program has made is not touched, and one of this version is current."""
    bought = buy(store)
    assert "has version 1 already" in ask("store", "upgrade").stderr
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_store SET version = 99")
    for words in (
        ("spent",), ("undecided",), ("decide", bought.key, "--abandon"), ("budget", "list"),
        ("budget", "set", "--max-creates", "1"), ("store", "prune", "--before", "2026-01-01"),
        ("store", "upgrade"),
    ):  # fmt: skip
        done = ask(*words)
        assert (done.exit_code, "Upgrade muybridge" in done.stderr) == (3, True), words
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_store SET version = 0")
    done = ask("spent")
    assert "make a copy, and upgrade it: `muybridge store upgrade`" in done.stderr


def test_an_older_copy(invoke: Invoke, tmp_path: Path) -> None:
    """It is refused until a person says that they may pay twice."""
    path = tmp_path / "s.sqlite3"
    with open_store(path) as store:
        buy(store, task="T1")
        shutil.copy(path, tmp_path / "backup")
        buy(store, task="T2")
    shutil.move(tmp_path / "backup", path)
    where = ("--store", str(path))
    refused = invoke("spent", *where)
    assert (refused.exit_code, "older copy" in refused.stderr) == (3, True)
    unsaid = invoke("store", "accept", *where)
    assert (unsaid.exit_code, "add --i-may-pay-twice" in unsaid.stderr) == (2, True)
    assert invoke("spent", *where).exit_code == 3
    assert told(invoke("store", "accept", "--i-may-pay-twice", "--json", *where))["ok"]
    [group] = told(invoke("spent", "--json", *where))["spent"]
    assert group["requests"] == 1


@pytest.mark.parametrize("what", ["a folder", "text", "an address"])
def test_what_is_no_store(invoke: Invoke, tmp_path: Path, what: str) -> None:
    """It is refused and left as it is, and nobody takes it for an empty store."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_bytes(b"notes" * 1000)
    store, said = {
        "a folder": ("folder", "is a folder"),
        "text": ("text", "file is not a database"),
        "an address": ("mysql://host/db", "A store cannot be at mysql://"),
    }[what]
    for words in (
        ("spent",), ("undecided",), ("decide", "k", "--abandon"), ("budget", "list"),
        ("budget", "set", "--max-creates", "1"), ("store", "prune", "--before", "2026-01-01"),
    ):  # fmt: skip
        done = invoke(*words, "--store", store)
        assert (done.exit_code, said in done.stderr) == (3, True), (words, done.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "text"]
    assert (tmp_path / "text").read_bytes() == b"notes" * 1000


def test_a_store_that_can_only_be_read(tmp_path: Path) -> None:
    """It is shown, and whoever wants to change it hears what to do."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("there is no unshare to mount a disk with")
    folder = tmp_path / "disk"
    folder.mkdir()
    with open_store(folder / "s.sqlite3") as store:
        bought = buy(store)
    command = f"{sys.executable} -m muybridge"
    words = [
        "spent", "undecided", f"decide {bought.key}", "budget list",
        f"decide {bought.key} --abandon", "budget set --max-creates 1",
        "store prune --before 2026-01-01",
    ]  # fmt: skip
    script = "; ".join(
        [
            f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} || exit 77",
            *(f"{command} {one} --store {folder}/s.sqlite3 2>&1; echo exit $?" for one in words),
        ]
    )
    become_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(  # noqa: S603  our own script
        ["unshare", *become_root, "--mount", "sh", "-c", script],  # noqa: S607  that of the system
        env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    codes = re.findall(r"^exit (\d+)$", done.stdout, re.MULTILINE)
    assert codes == ["0"] * 4 + ["3"] * 3, done.stdout
    assert done.stdout.count("Make the file and its folder writable") == 3
    with open_store(folder / "s.sqlite3") as store:
        assert store.find(bought.key) == bought


def test_a_password_is_not_shown(invoke: Invoke, postgres: Any) -> None:
    """Neither in what is said about a database, nor in the commands that are shown."""
    url = str(postgres.fresh()).replace("postgres:@", "postgres:secret@")
    with open_store(url) as store:
        key = buy(store).key
    for words in (("spent",), ("undecided",), ("decide", key), ("spent", "--json")):
        done = invoke(*words, "--store", url)
        assert done.exit_code == 0
        assert "secret" not in done.stdout + done.stderr
    assert (
        "muybridge decide --store URL KEY --abandon" in invoke("undecided", "--store", url).stderr
    )


def age(store: Store) -> None:
    """Let all that was bought, and counted, be of 2026-01-01."""
    day = 20_454
    back = (int([*store.purchases()][-1].armed_at) // 86_400 - day) * 86_400
    with store.database.transaction() as rows:
        rows.run("UPDATE muybridge_purchases SET armed_at = armed_at - :back", back=back)
        rows.run("UPDATE muybridge_spent SET day = :day WHERE day > 0", day=day)
