"""`--max-...`, `--ledger`, `spent` and `ledger resolve`: the budget on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batch.billing import BillingServer, Fault
from muybridge import Client
from muybridge.purchases import State
from stores import purchases_at

from .conftest import Invoke

CREATE = ("create", "imga", "--model", "imga", "--prompt", "a horse", "--store", "l.sqlite3")
PRICES = """
currency = "EUR"
prices = [{family = "imga", per_call = 0.25}]
"""
TEXT_PRICES = """
currency = "EUR"
prices = [{{model = "textg-2.5-pro", {}}}]
"""


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (("--max-creates", "2"), "none of the limit of 2 creates is left"),
        (("--max-pictures", "2", "--per", "day"), "none of the limit of 2 pictures a day is left"),
        (("--max-cost", "0.6", "--prices", "prices.toml"), "0.1 of the limit of 0.6 in cost"),
    ],
)
def test_a_limit(
    invoke: Invoke, settings: dict[str, str], limit: tuple[str, ...], said: str
) -> None:
    """A limit counts what earlier commands have spent; beyond it nothing is sent (exit code 3)."""
    Path("prices.toml").write_text(PRICES, encoding="utf-8")
    for _ in range(2):
        sent = invoke(*CREATE, *limit, env=settings)
        assert (sent.exit_code, "sending the " in sent.stderr) == (0, True)
    ended = invoke(*CREATE, *limit, "--json", env=settings)
    assert (ended.exit_code, "sending" in ended.stderr) == (3, False)
    error = json.loads(ended.stdout)["error"]
    assert error["type"] == "OverBudget"
    assert said in error["message"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MUYBRIDGE_MAX_CREATES", "many"),
        ("MUYBRIDGE_MAX_CREATE", "1"),
        ("MUYBRIDGE_MAX_COST", "-1"),
    ],
)
def test_a_limit_that_cannot_be_read(
    invoke: Invoke, settings: dict[str, str], variable: str, value: str
) -> None:
    """A limit in the environment that cannot be read is named; nothing is sent (exit code 2)."""
    ended = invoke(*CREATE, env={**settings, variable: value})
    assert ended.exit_code == 2
    assert f"{variable}: " in ended.stderr
    assert "Nothing was sent" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_cost(invoke: Invoke, settings: dict[str, str]) -> None:
    """A limit on cost refuses what has no price, and says what to do about it."""
    ended = invoke(*CREATE, "--max-cost", "1", env=settings)
    assert ended.exit_code == 3
    assert "its cost is unknown. Give its price" in ended.stderr


def test_a_price_for_tokens(invoke: Invoke, settings: dict[str, str]) -> None:
    """A limit on cost refuses a text request with a price for tokens, and asks for one per call."""
    env = {**settings, "MUYBRIDGE_TEXT_BASE_URL": settings["MUYBRIDGE_BASE_URL"]}
    words = ("text", "textg-2.5-pro", "hello", "--max-cost", "1", "--prices", "p.toml")
    prices = Path("p.toml")
    prices.write_text(TEXT_PRICES.format("per_1000_tokens = 0.004"))
    ended = invoke(*words, env=env)
    assert ended.exit_code == 3
    assert "its cost is unknown. Give a price per call (per_call)" in ended.stderr
    prices.write_text(TEXT_PRICES.format("per_call = 0.01"))
    assert invoke(*words, env=env).exit_code == 0


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_ledger_that_is_not_there(invoke: Invoke, tmp_path: Path, form: list[str]) -> None:
    """What only shows a ledger creates none, and says that nothing is recorded."""
    missing = tmp_path / "missing.sqlite3"
    for command in (("spent",), ("ledger", "list")):
        ended = invoke(*command, *form, "--store", str(missing))
        assert ended.exit_code == 0
        assert not missing.exists()
        assert form or f"no request that costs money is recorded in {missing}" in ended.stderr


def test_the_list(invoke: Invoke, settings: dict[str, str]) -> None:
    """`ledger list` has the id of each task that was paid for, whatever became of the command."""
    made = json.loads(invoke(*CREATE, "--json", env=settings).stdout)
    invoke(*CREATE, env=settings)
    where = ("--store", "l.sqlite3")
    listed = json.loads(invoke("ledger", "list", "--json", *where).stdout)
    assert listed["ledger"] == str(Path("l.sqlite3").absolute())
    assert [entry["state"] for entry in listed["entries"]] == ["accepted"] * 2
    made_id = made["task"]["id"]
    assert listed["entries"][0]["task_id"] == made_id
    assert made_id in invoke("ledger", "list", *where, env={"COLUMNS": "200"}).stdout
    spent = json.loads(invoke("spent", "--json", *where).stdout)
    assert spent["ledger"] == listed["ledger"]


def test_what_is_not_recorded(invoke: Invoke, settings: dict[str, str]) -> None:
    """What was paid for without a ledger is not shown, and the output and the help say so."""
    told = "requests are recorded only with a limit, a store, a name (once) or dedupe"
    invoke(*CREATE[:-2], env=settings)
    for recorded in (False, True):
        if recorded:
            invoke(*CREATE, env=settings)
        for command in (("spent",), ("ledger", "list")):
            shown = invoke(*command, "--store", "l.sqlite3", env={"COLUMNS": "200"})
            assert told in shown.stderr
            assert ("imga" in shown.stdout) is recorded
    helped = " ".join(invoke("spent", "--help").stdout.split())
    assert "Only requests with a limit, a store, a name (once) or dedupe are recorded" in helped


def test_one_address_however_it_is_spelled(invoke: Invoke, settings: dict[str, str]) -> None:
    """The command and the library have one account, however they spell the service's address."""
    item = {"family": "imga", "model": "imga", "prompt": "a horse"}
    Path("b.jsonl").write_text(json.dumps(item), "utf-8")
    address = settings["MUYBRIDGE_BASE_URL"]
    with Client(settings["MUYBRIDGE_API_KEY"], address, store="l.sqlite3", dedupe=True) as client:
        task = client.create("imga", {"model": "imga", "prompt": "a horse"})
    env = {**settings, "MUYBRIDGE_BASE_URL": f"{address.upper()}/./%2E/"}
    words = ("--dedupe", "--store", "l.sqlite3", "--poll-interval", "0.1", "--json")
    ended = invoke("batch", "run", "b.jsonl", "--out", "out", *words, env=env)
    assert ended.exit_code == 0
    [entry] = purchases_at("l.sqlite3")
    assert entry.task == task.id
    # A batch goes on at the same service.
    assert invoke("batch", "run", "--out", "out", *words, env=settings).exit_code == 0


def test_a_limit_on_text(invoke: Invoke, settings: dict[str, str]) -> None:
    """Text requests count as calls."""
    env = {**settings, "MUYBRIDGE_TEXT_BASE_URL": settings["MUYBRIDGE_BASE_URL"]}
    words = ("text", "textg-2.5-pro", "hello", "--max-calls", "1", "--store", "l.sqlite3")
    assert invoke(*words, env=env).exit_code == 0
    ended = invoke(*words, env=env)
    assert ended.exit_code == 3
    assert "none of the limit of 1 text call is left" in ended.stderr


def test_a_limit_on_a_batch(invoke: Invoke, settings: dict[str, str]) -> None:
    """A batch stops creating at the limit, and resumes when it is raised."""
    item = {"family": "imga", "model": "imga", "prompt": "a horse"}
    Path("b.jsonl").write_text("".join(json.dumps(item) + "\n" for _ in range(3)), "utf-8")
    words = ("batch", "run", "b.jsonl", "--out", "out", "--poll-interval", "0.1")
    first = invoke(*words, "--max-creates", "2", "--store", "l.sqlite3", env=settings)
    assert first.exit_code == 5
    assert "stopped: The request was not sent, because it is over budget" in first.stderr
    assert "--max-creates 2 --store l.sqlite3" in first.stderr
    assert "2 downloaded" in first.stdout
    second = invoke(*words, "--max-creates", "3", "--store", "l.sqlite3", env=settings)
    assert second.exit_code == 0
    states = [entry.state for entry in purchases_at("l.sqlite3")]
    assert [state for state in states if state is not State.RELEASED] == [State.ACCEPTED] * 3


@pytest.mark.parametrize("words", [("--max-creates", "x"), ("--max-cost", "-1")])
def test_a_wrong_limit(invoke: Invoke, settings: dict[str, str], words: tuple[str, ...]) -> None:
    """A limit that is not a number is a mistake in the command line."""
    ended = invoke(*CREATE, *words, env=settings)
    assert ended.exit_code == 2
    assert "a limit must be a number of at least 0" in ended.stderr


def test_an_unusable_ledger(invoke: Invoke, settings: dict[str, str]) -> None:
    """If the ledger cannot be used, nothing is sent (exit code 3)."""
    Path("l.sqlite3").write_bytes(b"notes" * 1000)
    ended = invoke(*CREATE, env=settings)
    assert ended.exit_code == 3
    assert "Nothing is sent" in ended.stderr


def test_a_local_service_costs_nothing(invoke: Invoke) -> None:
    """`--local` neither uses a budget nor is recorded, whatever the environment says."""
    env = {"MUYBRIDGE_MAX_CREATES": "0", "MUYBRIDGE_STORE": "team.sqlite3"}
    ended = invoke("run", "imga", "--model", "imga", "--prompt", "a horse", "--local", env=env)
    assert ended.exit_code == 0
    assert not Path("team.sqlite3").exists()


def test_spent(invoke: Invoke, settings: dict[str, str]) -> None:
    """What was spent is shown by day, family and model; what is unknown is not 0."""
    Path("prices.toml").write_text(PRICES, encoding="utf-8")
    invoke(*CREATE, "--prices", "prices.toml", env=settings)
    invoke(*CREATE, env=settings)
    shown = invoke("spent", "--store", "l.sqlite3")
    assert shown.exit_code == 0
    row = shown.stdout.splitlines()[1].split()
    assert row[1:] == ["imga", "imga", "2", "2", "0", "0.25", "+", "1", "unknown"]
    told = json.loads(invoke("spent", "--store", "l.sqlite3", "--json").stdout)
    [group] = told["spent"]
    assert group["cost"] == {"known": "0.25", "unknown": 1}
    assert (group["requests"], group["state"], told["ambiguous"]) == (2, "accepted", [])


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        (("--adopt", "task-9"), State.ACCEPTED),
        (("--not-charged",), State.RELEASED),
        (("--abandon",), State.ABANDONED),
        (("--resubmit", "--i-may-pay-twice"), State.RESUBMITTED),
    ],
)
def test_resolve(invoke: Invoke, decision: tuple[str, ...], state: State) -> None:
    """An ambiguous request is listed until somebody decides about it."""
    with BillingServer(lambda _: Fault.LOST_RESET) as server:
        env = {"MUYBRIDGE_API_KEY": "sk-1", "MUYBRIDGE_BASE_URL": server.url}
        assert invoke(*CREATE, env=env).exit_code == 4
    shown = invoke("spent", "--store", "l.sqlite3")
    [entry] = purchases_at("l.sqlite3")
    assert f"ambiguous: {entry.key}" in shown.stderr
    assert "muybridge ledger resolve --store l.sqlite3 KEY" in shown.stderr
    ended = invoke("ledger", "resolve", entry.key, *decision, "--store", "l.sqlite3", "--json")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["entry"]["state"] == state
    assert "ambiguous" not in invoke("spent", "--store", "l.sqlite3").stderr
    again = invoke("ledger", "resolve", entry.key, "--not-charged", "--store", "l.sqlite3")
    assert again.exit_code == (
        0 if state is State.RELEASED else 2
    )  # the same again changes nothing


def test_resolve_asks_for_one_decision(invoke: Invoke) -> None:
    """Without a decision, or without the word that one may pay twice, nothing is changed."""
    for words in ((), ("--resubmit",), ("--adopt", "a", "--not-charged")):
        assert invoke("ledger", "resolve", "k", *words, "--store", "l.sqlite3").exit_code == 2
    assert not Path("l.sqlite3").exists()


def test_adopting_the_task_of_another_request(invoke: Invoke) -> None:
    """A task that another request has is refused as a wrong decision, and nothing changes."""
    faults = iter([Fault.NONE, Fault.LOST_RESET])
    with BillingServer(lambda _: next(faults)) as server:
        env = {"MUYBRIDGE_API_KEY": "sk-1", "MUYBRIDGE_BASE_URL": server.url}
        assert invoke(*CREATE, env=env).exit_code == 0
        assert invoke(*CREATE, env=env).exit_code == 4
        [task] = server.accepted["a horse"]
    first, second = purchases_at("l.sqlite3")
    ended = invoke("ledger", "resolve", second.key, "--adopt", task, "--store", "l.sqlite3")
    assert ended.exit_code == 2
    assert f"purchase {first.key} already has task {task}" in ended.stderr
    assert [one.state for one in purchases_at("l.sqlite3")] == [first.state, second.state]
