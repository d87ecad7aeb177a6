"""`consent`: who must agree before the command sends a request that costs money."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from muybridge.purchases import Budget, Store, open_store
from muybridge.verbs.consent import Consent, store_consent
from terminals import Terminal

from .conftest import Invoke, Start
from .crooked_service import CrookedService, event_stream, record, reply

CREATE = ("create", "imgb", "--model", "imgb-2", "--prompt", "A horse")
RUN = ("run", *CREATE[1:], "--poll-interval", "0.01")
TEXT = ("text", "textg-2.5-pro", "A horse?")
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no such terminal")

Command = Callable[..., Result]
OnTerminal = Callable[..., tuple[int, str, str]]


@pytest.fixture
def paid() -> Iterator[CrookedService]:
    """A service that accepts every request."""

    def answer(method: str, path: str) -> bytes:
        if "/v1/models/" in path:
            return event_stream("Yes.")
        if method == "POST":
            return reply(200, record())
        link = "https://media.example.com/horse.png"
        return reply(200, record(status="completed", image_url=link))

    with CrookedService(answer) as service:
        yield service


@pytest.fixture
def run(invoke: Invoke, paid: CrookedService) -> Command:
    """Run the command, without a terminal."""

    def begin(*words: str, **env: str) -> Result:
        return invoke(*words, env={**paid.settings, **paid.text_settings, **env})

    return begin


@pytest.fixture
def on_terminal(start: Start, paid: CrookedService) -> Iterator[OnTerminal]:
    """Run the command on a terminal, with an answer, and return its code, stdout and stderr."""
    with ExitStack() as ending:

        def begin(*words: str, answer: bytes = b"", **env: str) -> tuple[int, str, str]:
            ours, theirs = os.openpty()
            ending.callback(os.close, ours)
            settings = {**paid.settings, **paid.text_settings, "TERM": "dumb", **env}
            process = start(*words, env=settings, stdin=theirs, stderr=theirs)
            os.close(theirs)
            terminal = Terminal(process, ours)
            if answer:
                terminal.read_until(b"[y/N]")
                terminal.answer(answer)
            code, stdout = terminal.end()
            return code, stdout, terminal.shown.decode()

        yield begin


def choose(choice: str, key: str = "a-key") -> None:
    """Choose as a person does on a terminal, but faster."""
    store_consent(key, Consent(choice))


def failed(done: Result) -> Any:
    """Return the error in the JSON document of a command that has failed."""
    told = json.loads(done.stdout)
    assert told["ok"] is False
    assert told["error"]["exit_code"] == done.exit_code
    return told["error"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store of the test, which the environment does not name."""
    del monkeypatch
    with open_store(tmp_path / "store.sqlite3") as store:
        yield store


# The choice


@pytest.mark.parametrize("words", [CREATE, RUN, TEXT], ids=["create", "run", "text"])
def test_whoever_has_not_chosen_is_not_asked(
    run: Command, paid: CrookedService, words: tuple[str, ...]
) -> None:
    """Without a choice, requests are sent as ever."""
    assert run("consent").stdout == "always\n"
    done = run(*words)
    assert (done.exit_code, paid.posts) == (0, 1), done.stderr


def test_it_is_changed_on_a_terminal_alone(run: Command) -> None:
    """A program without a terminal cannot choose, and changes nothing."""
    for choice in ("always", "ask", "budget"):
        done = run("consent", choice)
        assert done.exit_code == 2
        assert "on a terminal only. Nothing was changed." in done.stderr
    assert run("consent").stdout == "always\n"


@on_posix
def test_it_is_kept(run: Command, on_terminal: OnTerminal) -> None:
    """A choice holds for later commands, and can be read by programs; the key is not in it."""
    for choice in ("ask", "budget", "always"):
        code, stdout, shown = on_terminal("consent", choice)
        assert (code, stdout) == (0, f"{choice}\n"), shown
        told = json.loads(run("consent", "--json").stdout)
        assert (told["ok"], told["consent"]) == (True, choice)
        file = Path(told["file"])
        assert "a-key" not in file.read_text("utf-8")
        assert file.stat().st_mode & 0o077 == 0


@on_posix
@pytest.mark.parametrize("consent", ["ask", "budget"])
def test_another_account(run: Command, paid: CrookedService, consent: str) -> None:
    """What is chosen for one key does not let another key pay: a person has to choose for it."""
    choose(consent)
    for words in (CREATE, RUN, TEXT):
        done = run(*words, "--json", MUYBRIDGE_API_KEY="another-key")
        error = failed(done)
        assert (error["type"], done.exit_code) == ("ConsentRequired", 3)
        assert error["consent_required"] is True
        assert "but for another account" in error["message"]
    assert paid.posts == 0
    assert run("consent", MUYBRIDGE_API_KEY="another-key").stdout.startswith("chosen for other")
    choose("always", "another-key")
    assert run(*CREATE, MUYBRIDGE_API_KEY="another-key").exit_code == 0
    assert run("consent").stdout == f"{consent}\n"


@on_posix
def test_another_address_of_the_same_key(run: Command, paid: CrookedService) -> None:
    """The choice goes with the key, however the service's address is written."""
    choose("ask")
    other = paid.base_url.replace("127.0.0.1", "localhost")
    assert run(*CREATE, "--base-url", f"{other}/").exit_code == 3
    assert paid.posts == 0


# Ask


@on_posix
@pytest.mark.parametrize("words", [CREATE, RUN, TEXT], ids=["create", "run", "text"])
def test_it_asks_on_a_terminal(
    on_terminal: OnTerminal,
    paid: CrookedService,
    words: tuple[str, ...],
) -> None:
    """What the request consumes is shown, and it is sent after a yes alone."""
    choose("ask")
    for answer in (b"n\n", b"\n", b"\x04"):
        code, stdout, shown = on_terminal(*words, answer=answer)
        assert (code, stdout, paid.posts) == (3, "", 0)
        assert shown.splitlines()[-1] == "Nothing was sent."
    code, _, shown = on_terminal(*words, answer=b"y\n")
    assert (code, paid.posts) == (0, 1), shown
    assert "Pictures" in shown
    assert "Send this request? [y/N]" in shown


@on_posix
def test_it_shows_the_cost(on_terminal: OnTerminal, tmp_path: Path) -> None:
    """With prices, the question shows what the request costs."""
    prices = tmp_path / "prices.toml"
    prices.write_text(
        'currency = "EUR"\nprices = [{model = "imgb-2", tier = "low", per_picture = 0.25}]\n',
        "utf-8",
    )
    choose("ask")
    _, _, shown = on_terminal(*CREATE, "--prices", str(prices), answer=b"n\n")
    assert "0.25" in shown
    assert "Cost (EUR)" in shown


@on_posix
def test_yes_on_a_terminal(on_terminal: OnTerminal, paid: CrookedService) -> None:
    """On a terminal, --yes is the answer."""
    choose("ask")
    code, _, shown = on_terminal(*CREATE, "--yes")
    assert (code, paid.posts) == (0, 1), shown
    assert "Send this" not in shown


@on_posix
@pytest.mark.parametrize("consent", ["ask", "budget"])
@pytest.mark.parametrize("words", [CREATE, RUN, TEXT], ids=["create", "run", "text"])
def test_nobody_to_ask(
    run: Command,
    paid: CrookedService,
    words: tuple[str, ...],
    consent: str,
) -> None:
    """Without a terminal and without a budget nothing is sent, whatever the command line says."""
    choose(consent)
    limits = ("--max-creates", "5", "--max-calls", "5")  # the program's own are no consent
    for more in ((), ("--yes",), limits):
        done = run(*words, *more, "--json")
        error = failed(done)
        assert (done.exit_code, error["type"], error["charged"]) == (3, "ConsentRequired", "no")
        assert (error["consent_required"], error["consent"]) == (True, consent)
        consumed = error["consumes"]
        assert consumed["calls" if words is TEXT else "creates"] == "1"
        assert consumed["cost"] is None
        assert "Nothing was sent." in error["message"]
    assert paid.posts == 0


@on_posix
def test_a_local_try_needs_no_consent(run: Command) -> None:
    """A local service charges nothing, so nobody is asked."""
    choose("budget")
    done = run(*RUN, "--local", MUYBRIDGE_BASE_URL="", MUYBRIDGE_TEXT_BASE_URL="")
    assert done.exit_code == 0, done.stderr


# Budgets


@on_posix
@pytest.mark.parametrize("consent", ["ask", "budget"])
def test_a_budget_covers_requests(
    run: Command, paid: CrookedService, store: Store, consent: str
) -> None:
    """A budget in the store is consent, as far as it reaches, and each request counts in it."""
    choose(consent)
    store.limit("", Budget(creates=2, per="day"))
    words = (*CREATE, "--store", store.place)
    assert run(*words).exit_code == run(*words).exit_code == 0
    done = run(*words, "--json")
    error = failed(done)
    assert (done.exit_code, error["consent_required"], paid.posts) == (3, True, 2)
    assert "none of the limit of 2 creates a day is left" in error["message"]
    assert failed(run(*TEXT, "--store", store.place, "--json"))["consent_required"] is True
    store.limit("", Budget(calls=1))
    assert run(*TEXT, "--store", store.place).exit_code == 0
    assert run(*TEXT, "--store", store.place).exit_code == 3
    assert paid.posts == 3


@on_posix
def test_a_budget_in_the_default_store(run: Command, paid: CrookedService) -> None:
    """A budget in the default store covers requests, and holds although no store was named."""
    choose("budget")
    assert run("budget", "set", "--max-creates", "1").exit_code == 0
    assert run(*CREATE).exit_code == 0
    assert run(*CREATE).exit_code == 3
    assert paid.posts == 1


@on_posix
@pytest.mark.parametrize(
    ("limited", "tags", "code"),
    [
        ("customer=acme", ("--tag", "customer=acme"), 0),
        ("customer=acme", ("--tag", "customer=duck"), 3),
        ("customer=acme", (), 3),
        ("customer", ("--tag", "customer=acme"), 0),
        ("customer", ("--tag", "project=derby"), 3),
    ],
)
def test_a_budget_of_a_tag(
    run: Command,
    paid: CrookedService,
    store: Store,
    limited: str,
    tags: tuple[str, ...],
    code: int,
) -> None:
    """A budget for a tag, or for a key, covers the requests with it, and no others."""
    choose("budget")
    store.limit(limited, Budget(creates=1))
    words = (*CREATE, *tags, "--store", store.place, "--json")
    assert run(*words).exit_code == code
    assert failed(run(*words))["consent_required"] is True  # if it was used up, too
    assert paid.posts == (1 if code == 0 else 0)


@on_posix
def test_a_person_is_asked_for_the_budget_too(
    on_terminal: OnTerminal, paid: CrookedService
) -> None:
    """With `budget`, nobody is asked: a person at a terminal needs a budget as well."""
    choose("budget")
    code, _, shown = on_terminal(*CREATE, "--yes")
    assert (code, paid.posts) == (3, 0)
    assert "covers it: none limits such a request" in shown.replace("\r\n", "")


@on_posix
def test_batches(run: Command, paid: CrookedService, store: Store,
    tmp_path: Path,
) -> None:  # fmt: skip
    """With `ask`, batches ask as before; with `budget`, they need one too."""
    item = {"family": "imgb", "model": "imgb-2", "prompt": "A horse"}
    (tmp_path / "b.jsonl").write_text(json.dumps(item), "utf-8")
    words = ("batch", "run", "b.jsonl", "--poll-interval", "0.01", "--timeout", "2")
    choose("budget")
    done = run(*words, "--out", "one")
    assert (done.exit_code, paid.posts) == (3, 0)
    assert "no budget limits creates" in done.stderr
    work = ("worker", "--store", store.place, "--batch")
    worker = run(*work, "b")
    assert (worker.exit_code, "no budget limits creates" in worker.stderr) == (3, True)
    store.limit("batch=b", Budget(creates=1))
    assert "There is no batch b" in run(*work, "b").stderr
    assert "no budget limits creates" in run(*work, "c").stderr
    store.limit("", Budget(creates=1))
    run(*words, "--out", "two", "--store", store.place)
    assert paid.posts == 1
    assert store.spent()["creates"] == 1  # type: ignore[index]
    choose("ask")
    run(*words, "--out", "three")
    assert paid.posts == 2


# What cannot be used


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"muybridge_consent": 2, "salt": "s", "accounts": {}}',
        b'{"muybridge_consent": 1, "salt": 7, "accounts": {}}',
        b'{"muybridge_consent": 1, "salt": "s", "accounts": []}',
        b'{"muybridge_consent": 1, "salt": "s", "accounts": {"a": "never"}}',
        b'{"muybridge_consent": 1, "salt": "s", "accounts": {"a": 1}}',
        b"\xff\xfe",
        b" " * (1024 * 1024 + 1),
    ],
    ids=repr,
)
def test_a_broken_file(run: Command, paid: CrookedService, content: bytes) -> None:
    """A file that cannot be read is an error, and nothing is sent: it may have said no."""
    file = Path(json.loads(run("consent", "--json").stdout)["file"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    for words in (CREATE, RUN, TEXT, ("consent",)):
        done = run(*words)
        assert done.exit_code == 3
        assert f"error: The consent in {file} cannot be read" in done.stderr
        assert "Nothing was sent." in done.stderr
    assert paid.posts == 0


@pytest.mark.parametrize("kind", ["folder", "dangling"])
def test_what_is_no_file(run: Command, paid: CrookedService, tmp_path: Path, kind: str) -> None:
    """A folder or a broken link in place of the file is an error too."""
    file = Path(json.loads(run("consent", "--json").stdout)["file"])
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(tmp_path / "gone")
    done = run(*CREATE)
    assert (done.exit_code, paid.posts) == (3, 0)
    assert "cannot be read" in done.stderr


@on_posix
def test_a_folder_that_cannot_be_written(
    on_terminal: OnTerminal, paid: CrookedService, tmp_path: Path
) -> None:
    """If the choice cannot be stored, that is an error, and the old one holds."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file in place of the folder", "utf-8")
    code, stdout, shown = on_terminal("consent", "ask", XDG_STATE_HOME=str(blocked))
    assert (code, stdout) == (3, "")
    assert "error: Consent cannot be stored in " in shown
    assert "It is as it was before." in shown
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        (locked / "muybridge").mkdir(parents=True)
        (locked / "muybridge").chmod(0o500)
        code, stdout, shown = on_terminal("consent", "ask", XDG_STATE_HOME=str(locked))
        assert (code, "Permission denied" in shown) == (3, True)
    assert paid.posts == 0


@on_posix
def test_a_store_that_cannot_be_read(run: Command, paid: CrookedService, tmp_path: Path) -> None:
    """If the store with the budgets cannot be read, nothing is sent."""
    choose("budget")
    (tmp_path / "broken.sqlite3").write_bytes(b"not a database" * 100)
    done = run(*CREATE, "--store", str(tmp_path / "broken.sqlite3"))
    assert (done.exit_code, paid.posts) == (3, 0)
    assert "broken.sqlite3" in done.stderr


def test_no_key(invoke: Invoke) -> None:
    """Consent is kept for a key's account, so without a key the command says what to give."""
    done = invoke("consent")
    assert done.exit_code == 2
    assert "Set MUYBRIDGE_API_KEY, or give --api-key-file" in done.stderr
