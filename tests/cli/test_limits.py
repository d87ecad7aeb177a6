"""`--max-...` and `--store`: what a command may spend, and what people then see and decide."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from batch.billing import BillingServer, Fault
from muybridge import Client, CreateAmbiguous, ImgaRequest
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


def test_the_list(invoke: Invoke, settings: dict[str, str]) -> None:
    """It has the id of each task that was paid for, whatever became of the command."""
    made = json.loads(invoke(*CREATE, "--json", env=settings).stdout)
    invoke(*CREATE, env=settings)
    words = ("spent", "--by", "purchase", "--store", "l.sqlite3")
    listed = json.loads(invoke(*words, "--json").stdout)
    assert listed["store"] == str(Path("l.sqlite3").absolute())
    assert [one["state"] for one in listed["purchases"]] == ["accepted"] * 2
    made_id = made["task"]["id"]
    assert listed["purchases"][0]["task_id"] == made_id
    assert made_id in invoke(*words).stdout


def test_what_is_not_recorded(invoke: Invoke, settings: dict[str, str]) -> None:
    """What was paid for without a store is not shown, and the output and the help say so."""
    told = "requests are recorded only with a limit, a store, tags, a name (once) or dedupe"
    invoke(*CREATE[:-2], env=settings)
    for recorded in (False, True):
        if recorded:
            invoke(*CREATE, env=settings)
        for words in ((), ("--by", "purchase")):
            shown = invoke("spent", *words, "--store", "l.sqlite3")
            assert told in shown.stderr
            assert ("imga" in shown.stdout) is recorded
    helped = " ".join(invoke("spent", "--help").stdout.split())
    assert told.removeprefix("requests are recorded only ").join(("requests ", " are")) in helped


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


def test_an_unusable_store(invoke: Invoke, settings: dict[str, str]) -> None:
    """If the store cannot be used, nothing is sent (exit code 3)."""
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
    assert (group["requests"], group["state"], told["undecided"]) == (2, "accepted", [])


def test_an_ambiguous_request(invoke: Invoke) -> None:
    """It is listed, and counts, until somebody decides about it."""
    faults = iter([Fault.NONE, Fault.LOST_RESET])
    with BillingServer(lambda _: next(faults)) as server:
        env = {"MUYBRIDGE_API_KEY": "sk-1", "MUYBRIDGE_BASE_URL": server.url}
        assert invoke(*CREATE, env=env).exit_code == 0
        assert invoke(*CREATE, env=env).exit_code == 4
        [task] = server.accepted["a horse"]
        first, second = purchases_at("l.sqlite3")
        place = str(Path("l.sqlite3").absolute())
        shown = invoke("undecided", "--store", "l.sqlite3")
        assert f"{second.key}: {second.reason}" in shown.stderr
        assert f"muybridge decide --store {place} KEY --abandon" in shown.stderr
        refused = invoke("decide", second.key, "--adopt", task, "--store", "l.sqlite3")
        assert refused.exit_code == 2
        assert f"purchase {first.key} already has task {task}" in refused.stderr
        assert purchases_at("l.sqlite3") == [first, second]
        limit = ("--max-creates", "2")
        assert invoke(*CREATE, *limit, env=env).exit_code == 3
        words = ("decide", second.key, "--release", "--not-charged", "--store", "l.sqlite3")
        assert invoke(*words).exit_code == 0
        faults = iter([Fault.NONE])
        assert invoke(*CREATE, *limit, env=env).exit_code == 0


def test_an_error_shows_the_command_that_decides(invoke: Invoke) -> None:
    """It finds the purchase in the store of the program, and shows what can be decided."""
    with (
        BillingServer(lambda _: Fault.LOST_RESET) as server,
        Client("sk-1", server.url, store="l.sqlite3") as client,
    ):
        request = ImgaRequest(model="imga", prompt="a horse")
        with pytest.raises(CreateAmbiguous):
            client.create_once("order 1", request)
        with pytest.raises(CreateAmbiguous) as caught:
            client.create_once("order 1", request)
        [purchase] = purchases_at("l.sqlite3")
        command = re.search(
            r"to decide: (muybridge decide .*?)\.?$", str(caught.value), re.MULTILINE
        )
        assert command is not None
        shown = invoke(*shlex.split(command[1])[1:])
        assert (shown.exit_code, purchase.key in shown.stdout) == (0, True)
        [line] = [one for one in shown.stderr.splitlines() if "--abandon" in one]
        assert invoke(*shlex.split(line.partition("  (")[0])[1:]).exit_code == 0
        with pytest.raises(CreateAmbiguous, match="a person left it as it is"):
            client.create_once("order 1", request)
    assert server.posts == 1


def test_a_stored_budget_binds_every_program(invoke: Invoke, settings: dict[str, str]) -> None:
    """Whoever uses the store, with limits of its own or without."""
    where = ("--store", "l.sqlite3")
    assert invoke("budget", "set", "--max-creates", "1", "--per", "day", *where).exit_code == 0
    assert invoke(*CREATE, env=settings).exit_code == 0
    refused = invoke(*CREATE, "--max-creates", "9", "--json", env=settings)
    assert refused.exit_code == 3
    error = json.loads(refused.stdout)["error"]
    assert (error["type"], error["charged"]) == ("OverBudget", "no")
    assert "1 create a day is left" in error["message"]
    assert "the stored budget of everybody a day (`muybridge budget list`)" in error["message"]
    assert invoke("budget", "remove", "--per", "day", *where).exit_code == 0
    assert invoke(*CREATE, env=settings).exit_code == 0


def test_tags(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pays takes tags, from the options and the environment; a local service has no store."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    default = tmp_path / "state" / "muybridge" / "store.sqlite3"
    words = ("--tag", "customer=acme")
    local = ("run", "imga", "--model", "imga", "--prompt", "A horse", "--local", *words)
    assert invoke(*local).exit_code == 0
    assert not default.exists()
    text = ("text", "textg-2.5-pro", "Of horses", *words)
    item = json.dumps({"family": "imga", "model": "imga", "prompt": "A horse"})
    (tmp_path / "one.jsonl").write_text(item)
    batch = ("batch", "run", str(tmp_path / "one.jsonl"), "--out", str(tmp_path / "out"))
    more = {**settings, "MUYBRIDGE_TAGS": "team=film"}
    more["MUYBRIDGE_TEXT_BASE_URL"] = settings["MUYBRIDGE_BASE_URL"]
    for paid in ((*CREATE[:-2], *words), text, (*batch, "--poll-interval", "0.01", *words)):
        done = invoke(*paid, env=more)
        assert done.exit_code == 0, done.stderr
    known = [one.tags for one in purchases_at(default)]
    own = ("customer=acme", "team=film")
    assert known == [own, own, ("batch=out", *own)]


def test_wrong_tags(invoke: Invoke, settings: dict[str, str]) -> None:
    """Nothing is sent, every problem is listed, and the exit code is 2."""
    words = [word for number in range(17) for word in ("--tag", f"k{number}=v")]
    for given, said in (
        (("--tag", "acme", "--tag", "via=me"), ["2 problems in --tag (nothing was sent)"]),
        (("--tag", "a=b", "--tag", "a=c"), ["the key 'a' is given twice"]),
        (("--tag", f"a={'x' * 100_000}"), ["the value of 'a' must have 1 to 256 printable"]),
        (words, ["there are 17 tags; a request has at most 16"]),
    ):
        done = invoke(*CREATE, *given, "--json", env=settings)
        error = json.loads(done.stdout)["error"]
        assert (done.exit_code, error["type"], error["argument"]) == (2, "LocalError", "tags")
        assert error["charged"] == "no"
        assert all(one in error["message"] for one in said)


def test_a_request_without_the_key_of_a_budget(invoke: Invoke, settings: dict[str, str]) -> None:
    """It ends with exit code 3, and the error says which tag to give."""
    invoke("budget", "set", "--tag", "customer", "--max-creates", "9", "--store", "l.sqlite3")
    done = invoke(*CREATE, "--json", env=settings)
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["type"], error["charged"]) == (3, "OverBudget", "no")
    assert error["remedies"] == [{"kind": "tag", "option": "customer"}]
    assert error["message"].endswith("Nothing was charged. Give --tag customer=VALUE.")
    assert invoke(*CREATE, "--tag", "customer=acme", env=settings).exit_code == 0
