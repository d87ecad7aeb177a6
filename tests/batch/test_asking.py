"""`batch run` shows what it would send, asks on a terminal, and sends no more than a limit."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muybridge.cli.commands import muybridge
from processes import environment
from terminals import Terminal

from .billing import BillingServer, Fault
from .runner_process import KEY, horses

Invoke = Callable[..., Result]

RUN = ("run", "b.jsonl", "--out", "out", "--poll-interval", "0.005")
PRICES = 'currency = "USD"\nprices = [{model = "imgb-2", tier = "low", per_picture = 0.25}]\n'


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the command within this process, in a folder with a batch of three horses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(3))), encoding="utf-8")
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")

    def run(*words: str, server: BillingServer | None = None) -> Result:
        settings = {} if server is None else _settings(server)
        result = CliRunner().invoke(muybridge, ["batch", *words], env=settings)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def _settings(server: BillingServer) -> dict[str, str]:
    return {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}


def test_a_dry_run(invoke: Invoke, tmp_path: Path) -> None:
    """A dry run shows quantities and costs, needs no key, sends nothing and makes no file."""
    done = invoke(*RUN, "--dry-run", "--prices", "prices.toml")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()][1:] == [
        ["imgb", "imgb-2", "low", "3", "3", "0", "0.75"],
        ["total", "3", "3", "0", "0.75"],
    ]
    assert done.stderr == "nothing was sent\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "prices.toml"]


def test_a_dry_run_with_a_limit(invoke: Invoke) -> None:
    """A dry run says how many a limit lets through, and how many it leaves."""
    done = invoke(*RUN, "--dry-run", "--limit", "2")
    assert done.stdout.splitlines()[-1].split() == ["total", "2", "2", "0"]
    assert done.stderr == "left for later runs (--limit): 1\nnothing was sent\n"
    told = json.loads(invoke(*RUN, "--dry-run", "--limit", "2", "--json").stdout)
    assert (told["event"], told["ok"], told["sends"], told["left"]) == ("preview", True, 2, 1)
    assert (told["counts"], told["total"]["requests"]) == ({}, 2)
    assert told["groups"][0]["model"] == "imgb-2"


def test_a_dry_run_with_identical_requests(invoke: Invoke, tmp_path: Path) -> None:
    """With --dedupe, a dry run counts what would be sent, and says how many items join."""
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(1) * 3)), encoding="utf-8")
    words = (*RUN, "--dry-run", "--dedupe", "--prices", "prices.toml")
    done = invoke(*words)
    assert done.stdout.splitlines()[-1].split() == ["total", "1", "1", "0", "0.25"]
    assert done.stderr == "items that share the task of an identical request: 2\nnothing was sent\n"
    told = json.loads(invoke(*words, "--json").stdout)
    assert (told["sends"], told["joins"], told["left"]) == (1, 2, 0)
    fits = json.loads(invoke(*words, "--json", "--max-creates", "1").stdout)
    assert fits["exceeds"] == []


def test_a_dry_run_of_a_batch_that_was_begun(invoke: Invoke) -> None:
    """A dry run counts what was not sent yet, and says what the batch has."""
    with BillingServer() as server:
        first = invoke(*RUN, "--limit", "2", server=server)
        assert first.exit_code == 5
        assert "stopped: the limit of 2 is reached; new items left: 1" in first.stderr
        assert "to resume: muybridge batch run --out out --concurrency 4 --limit 2" in first.stderr
        told = invoke(*RUN, "--dry-run", "--json", server=server)
        assert json.loads(told.stdout)["sends"] == 1
        assert json.loads(told.stdout)["counts"] == {"queued": 1, "downloaded": 2}
        assert "in the batch: 1 queued, 2 downloaded" in invoke(*RUN, "--dry-run").stderr
        assert server.posts == 2
        assert invoke(*RUN, "--limit", "2", server=server).exit_code == 0
        assert server.posts == 3


def test_what_a_dry_run_refuses(invoke: Invoke, tmp_path: Path) -> None:
    """A dry run exits like a run for wrong items, prices, options and stores."""
    assert invoke("run", "--out", "nowhere", "--dry-run").exit_code == 6
    assert invoke(*RUN, "--dry-run", "--limit", "-1").exit_code == 2
    assert invoke(*RUN, "--dry-run", "--prices", "b.jsonl").exit_code == 2
    (tmp_path / "b.jsonl").write_text("{}", encoding="utf-8")
    wrong = invoke(*RUN, "--dry-run")
    assert (wrong.exit_code, "line 1: family: is required" in wrong.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_wrong_price_file_is_reported_before_anything_is_sent(invoke: Invoke) -> None:
    """A run whose price file is not valid sends nothing."""
    with BillingServer() as server:
        assert invoke(*RUN, "--prices", "b.jsonl", server=server).exit_code == 2
        assert server.requests == 0


def test_without_a_terminal_nothing_is_asked(invoke: Invoke) -> None:
    """In scripts and pipes, a run sends without asking."""
    with BillingServer() as server:
        done = invoke(*RUN, server=server)
        assert (done.exit_code, server.posts) == (0, 3)
    assert "?" not in done.stderr


@pytest.fixture
def on_terminal(invoke: Invoke, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start `batch` as a process whose stdin and stderr are a terminal."""
    del invoke  # it prepares the folder
    with ExitStack() as ending:

        def begin(*words: str, server: BillingServer, **streams: Any) -> Terminal:
            ours, theirs = os.openpty()
            ending.callback(os.close, ours)
            chosen: dict[str, Any] = {"stdin": theirs, "stderr": theirs, **streams}
            process = ending.enter_context(
                subprocess.Popen(  # noqa: S603  our own command
                    [sys.executable, "-m", "muybridge", "batch", *words],
                    cwd=tmp_path,
                    env=environment(**_settings(server), TERM="dumb"),
                    stdout=subprocess.PIPE,
                    text=True,
                    **chosen,
                )
            )
            os.close(theirs)
            ending.callback(process.kill)
            return Terminal(process, ours)

        yield begin


WORDS = {
    signal.SIGINT: "Interrupted.",
    signal.SIGTERM: "Interrupted by SIGTERM.",
    signal.SIGHUP: "Interrupted by SIGHUP.",
    signal.SIGQUIT: "Interrupted by SIGQUIT.",
}
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no such terminal")


@on_posix
def test_it_asks_on_a_terminal(on_terminal: Callable[..., Terminal]) -> None:
    """On a terminal the requests are shown with their costs, and sent only after a yes."""
    with BillingServer() as server:
        terminal = on_terminal(*RUN, "--prices", "prices.toml", server=server)
        terminal.read_until(b"Send 3 new requests? [y/N]")
        assert b"0.75" in terminal.shown
        assert server.requests == 0
        terminal.answer(b"y\n")
        code, stdout = terminal.end()
        assert (code, server.posts) == (0, 3)
    assert stdout.startswith("3 downloaded\n")


@on_posix
@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"])
def test_a_no_sends_nothing(
    on_terminal: Callable[..., Terminal], tmp_path: Path, answer: bytes
) -> None:
    """A no, Enter and Ctrl-D send nothing, and say so; no batch is begun."""
    with BillingServer() as server:
        terminal = on_terminal(*RUN, server=server)
        terminal.read_until(b"[y/N]")
        terminal.answer(answer)
        code, stdout = terminal.end()
        assert (code, stdout, server.requests) == (3, "", 0)
    assert terminal.shown.splitlines()[-1] == b"Nothing was sent."
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells whether a process sleeps")
@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, 3), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
def test_a_signal_at_the_question(
    on_terminal: Callable[..., Terminal], tmp_path: Path, number: signal.Signals, expected: int
) -> None:
    """A signal at the question sends nothing, says so, and names the command with the file."""
    with BillingServer() as server:
        terminal = on_terminal(*RUN, server=server)
        terminal.read_until(b"[y/N]")
        terminal.interrupt(number)
        code, stdout = terminal.end()
        assert (code, stdout, server.requests) == (expected, "", 0)
        *_, said, resuming = terminal.shown.decode().splitlines()
        assert said == f"error: {WORDS[number]} Nothing was sent."
        assert not (tmp_path / "out").exists()
        command = shlex.split(resuming.removeprefix("to resume: muybridge batch "))
        again = on_terminal(*command, "--yes", server=server)
        code, stdout = again.end()
        assert (code, stdout.splitlines()[0], server.posts) == (0, "3 downloaded", 3), again.shown


@on_posix
def test_identical_requests_at_the_question(
    on_terminal: Callable[..., Terminal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --dedupe, it asks for the requests to send, and the answer holds for all their items."""
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "store.sqlite3"))
    items = [{**item, "name": f"horse-{n}"} for n, item in enumerate(horses(1) * 3)]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    with BillingServer() as server:
        terminal = on_terminal(*RUN, "--dedupe", server=server)
        terminal.read_until(b"Send 1 new request? [y/N]")
        terminal.answer(b"y\n")
        code, stdout = terminal.end()
        assert (code, stdout.startswith("3 downloaded\n")) == (0, True)
        assert server.posts == 1


@on_posix
@pytest.mark.parametrize("words", [["--yes"], ["--local"]])
def test_it_does_not_ask(on_terminal: Callable[..., Terminal], words: list[str]) -> None:
    """With --yes, and for a local service, nothing is asked."""
    with BillingServer() as server:
        terminal = on_terminal("run", "b.jsonl", "--out", "out", *words, server=server)
        code, stdout = terminal.end()
        assert (code, stdout.startswith("3 downloaded\n")) == (0, True)
        assert server.posts == (3 if words == ["--yes"] else 0)
    assert b"Send" not in terminal.shown


@on_posix
@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_half_a_terminal_is_not_asked(on_terminal: Callable[..., Terminal], stream: str) -> None:
    """Unless both stdin and stderr are a terminal, nobody is asked."""
    with BillingServer() as server:
        terminal = on_terminal(*RUN, server=server, **{stream: subprocess.DEVNULL})
        assert terminal.end()[0] == 0
        assert server.posts == 3


@on_posix
def test_it_asks_for_what_is_new(on_terminal: Callable[..., Terminal], invoke: Invoke) -> None:
    """A run that resumes asks only if it would send something new, and for that alone."""
    with BillingServer() as server:
        server.media_works = False
        assert invoke(*RUN, "--limit", "2", server=server).exit_code == 6
        server.media_works = True
        terminal = on_terminal(*RUN, server=server)
        terminal.read_until(b"Send 1 new request? [y/N]")
        terminal.answer(b"n\n")
        assert terminal.end()[0] == 3
        assert server.posts == 2
        terminal = on_terminal(*RUN, "--limit", "0", server=server)
        assert terminal.end()[0] == 5
        assert b"Send" not in terminal.shown
        assert server.posts == 2
        terminal = on_terminal(*RUN, "--yes", server=server)
        assert terminal.end()[0] == 0
        terminal = on_terminal(*RUN, server=server)
        assert terminal.end()[0] == 0
        assert b"Send" not in terminal.shown


@on_posix
def test_no_more_is_sent_than_was_shown(
    on_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    """What is added to the file while the question waits is not sent by this run."""
    with BillingServer() as server:
        terminal = on_terminal(*RUN, server=server)
        terminal.read_until(b"Send 3 new requests? [y/N]")
        (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(5))), encoding="utf-8")
        terminal.answer(b"y\n")
        assert terminal.end()[0] == 0
        assert server.posts == 3
        assert on_terminal(*RUN, "--yes", server=server).end()[0] == 0
        assert server.posts == 5


@on_posix
@pytest.mark.parametrize("resumed", [False, True])
def test_the_file_is_checked_once(
    on_terminal: Callable[..., Terminal], invoke: Invoke, tmp_path: Path, *, resumed: bool
) -> None:
    """The run sends what was checked for the question, and does not check the file once more."""
    with BillingServer() as server:
        if resumed:
            assert invoke(*RUN, "--limit", "0", server=server).exit_code == 5
        terminal = on_terminal(*RUN, server=server)
        terminal.read_until(b"Send 3 new requests? [y/N]")
        (tmp_path / "b.jsonl").write_text("{}", encoding="utf-8")
        terminal.answer(b"y\n")
        assert terminal.end()[0] == 0
        assert server.posts == 3


@on_posix
def test_mistakes_come_before_the_question(
    on_terminal: Callable[..., Terminal], invoke: Invoke, tmp_path: Path
) -> None:
    """Nobody is asked for a batch that cannot be run."""
    with BillingServer(lambda _: Fault.ACCEPTED_RESET) as server:
        invoke(*RUN, "--limit", "1", server=server)
    (tmp_path / "bad.jsonl").write_text('{"family": "imgb"}', encoding="utf-8")
    with BillingServer() as other:
        for words, code in ((("bad.jsonl", "--out", "new"), 2), (("--out", "none"), 6)):
            terminal = on_terminal("run", *words, server=other)
            assert terminal.end()[0] == code
            assert b"Send" not in terminal.shown


def test_a_dry_run_knows_what_was_spent(invoke: Invoke, tmp_path: Path) -> None:
    """A dry run says what is already spent of each limit, and what that leaves for the batch."""
    limits = ("--max-creates", "4", "--per", "day", "--store", "l.sqlite3")
    untouched = invoke(*RUN, "--dry-run", *limits)
    assert "the limit of 4 creates a day: 0 spent" in untouched.stderr.splitlines()
    assert "exceeds" not in untouched.stderr
    assert not (tmp_path / "l.sqlite3").exists()
    with BillingServer() as server:
        done = invoke(*RUN, "--limit", "2", *limits, server=server)
        assert (done.exit_code, server.posts) == (5, 2)
    told = invoke("run", "b.jsonl", "--out", "another", "--dry-run", *limits)
    assert told.exit_code == 0
    assert "the limit of 4 creates a day: 2 spent" in told.stderr.splitlines()
    assert "it needs 3 creates, and 2 of the limit of 4 creates a day is left" in told.stderr
    record = json.loads(invoke(*RUN, "--dry-run", *limits, "--json").stdout)
    assert record["exceeds"] == []
    assert record["budgets"] == [{"limit": "creates", "per": "day", "most": "4", "spent": "2"}]


def test_a_dry_run_of_more_than_a_budget_allows(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A dry run says if its requests alone exceed a budget of the options or the environment."""
    fits = invoke(*RUN, "--dry-run", "--max-creates", "3", "--json")
    assert json.loads(fits.stdout)["exceeds"] == []
    told = invoke(*RUN, "--dry-run", "--max-creates", "2")
    assert told.exit_code == 0
    said = "it needs 3 creates, and 2 of the limit of 2 creates is left. Raise the limit"
    assert f"this exceeds a budget: {said}" in told.stderr.splitlines()
    limited = invoke(*RUN, "--dry-run", "--max-creates", "2", "--limit", "2", "--json")
    assert json.loads(limited.stdout)["exceeds"] == []
    unknown = json.loads(invoke(*RUN, "--dry-run", "--max-cost", "5", "--json").stdout)
    (why,) = unknown["exceeds"]
    assert "because its cost is unknown" in why
    monkeypatch.setenv("MUYBRIDGE_MAX_COST", "0.5")
    costs = json.loads(invoke(*RUN, "--dry-run", "--prices", "prices.toml", "--json").stdout)
    assert costs["exceeds"] == [
        "it needs 0.75 in cost, and 0.5 of the limit of 0.5 in cost is left. Raise the limit"
    ]
    monkeypatch.setenv("MUYBRIDGE_MAX_COST", "much")
    assert invoke(*RUN, "--dry-run").exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.jsonl", "prices.toml"]
