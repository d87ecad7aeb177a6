"""The commands for a batch in a database: `batch submit`, `worker`, `batch status`, `decide`."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import moments
from muybridge.batch import SharedBatch
from muybridge.cli.commands import muybridge
from muybridge.cli.exit_codes import AMBIGUOUS, FAILED, INVALID, NOT_SENT
from muybridge.cli.workers import worker
from muybridge.purchases.errors import StoreUnusable
from muybridge_protocol.purchases import Choice, Outcome, State
from muybridge_protocol.records.tasks import Task

from .begun import LOST, bought, lost
from .billing import BillingServer, Fault
from .postgres_server import Postgres
from .runner_process import KEY, horses

Command = Callable[..., Result]


@pytest.fixture
def command(server: BillingServer, shared: SharedBatch, tmp_path: Path) -> Command:
    """Run a command against the server; `URL` stands for the database, `FILE` for two horses."""
    file = tmp_path / "horses.jsonl"
    file.write_text("".join(f"{json.dumps(horse)}\n" for horse in horses(2)))
    names = {"URL": str(shared.store), "FILE": str(file), "DIR": str(tmp_path / "out")}

    def go(line: str, at: BillingServer = server) -> Result:
        words = [names.get(word, word) for word in line.split()]
        env = {"MUYBRIDGE_BASE_URL": at.url, "MUYBRIDGE_API_KEY": KEY}
        return CliRunner().invoke(muybridge, words, env=env)

    return go


WORKER = "worker --store URL --batch horses --out DIR --poll-interval 0.01"


def test_invalid_items_are_skipped(command: Command, tmp_path: Path) -> None:
    """`batch submit --skip-invalid` submits the valid items, and tells why others are skipped."""
    with (tmp_path / "horses.jsonl").open("a") as file:
        file.write("{}\n")
    words = "batch submit FILE --store URL --name horses"
    assert command(words).exit_code == 2
    done = command(f"{words} --skip-invalid")
    assert (done.exit_code, done.stdout) == (1, "2 queued\n")
    assert done.stderr.splitlines()[0] == "skipped: line 3: family: is required"
    done = command(f"{words} --skip-invalid --json")
    told = {"where": "line 3", "field": "family", "message": "is required"}
    assert (done.exit_code, json.loads(done.stdout)["skipped"]) == (1, [told])


def test_from_file_to_results(command: Command, server: BillingServer, tmp_path: Path) -> None:
    """A batch is submitted without a request, and a worker makes it, and says so by its code."""
    done = command("batch submit FILE --store URL --name horses")
    assert (done.exit_code, done.stdout) == (0, "2 queued\n")
    assert "to start a worker, on any machine: muybridge worker --store" in done.stderr
    assert server.requests == 0
    done = command("batch status --store URL horses")
    assert (done.exit_code, done.stdout) == (5, "2 queued\n")
    done = command(WORKER)
    assert (done.exit_code, done.stdout) == (0, "2 downloaded\n"), done.stderr
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {"h1.png", "h2.png"}
    assert server.posts == 2
    done = command(WORKER)
    assert (done.exit_code, server.posts) == (0, 2)
    assert not (tmp_path / "out" / "index.html").exists()


def test_it_says_what_it_waits_for(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is away, a worker says so once, and when it gives up."""

    command("batch submit FILE --store URL --name horses")
    take = moments.at("items taken").value
    failures = iter([
        StoreUnusable("The database is on holiday.", away=True),
        StoreUnusable("It is still away.", away=True),
    ])  # fmt: skip

    def taking(*arguments: Any, **more: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return take(*arguments, **more)

    monkeypatch.setattr(*moments.at("items taken").place, taking)
    done = command(WORKER)
    assert (done.exit_code, done.stdout) == (0, "2 downloaded\n")
    (said,) = (line for line in done.stderr.splitlines() if "waits" in line)
    assert "The database is on holiday. This worker waits up to 600 seconds." in said


def test_a_person_decides(command: Command) -> None:
    """What is ambiguous is listed, and decided about, by the name of the batch."""
    with BillingServer(lambda _: Fault.ACCEPTED_RESET) as server:
        assert command("batch submit FILE --store URL --name horses", server).exit_code == 0
        done = command(WORKER, server)
        assert (done.exit_code, done.stdout) == (4, "2 ambiguous\n")
        assert "item 1 (h1) is ambiguous" in done.stderr
        assert "muybridge decide --store URL --batch horses ITEM" in done.stderr
        (task,) = server.accepted["horse 1"]
        resuming = "muybridge worker --store URL --batch horses"
        done = command(f"decide --store URL --batch horses h1 --adopt {task}", server)
        assert (done.exit_code, done.stderr) == (
            0,
            f"item 1 (h1) is submitted now; to resume: {resuming}\n",
        )
        done = command("decide --store URL --batch horses h2 --resubmit", server)
        assert done.exit_code == 2
        assert "--i-may-pay-twice" in done.stderr
        assert command("decide --store URL --batch horses h2 --abandon", server).exit_code == 0
        done = command(f"{WORKER} --json", server)
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert done.exit_code == 0
        assert summary["counts"] == {"abandoned": 1, "downloaded": 1}
        assert (summary["items"], summary["strays"]) == ([], [])


@pytest.mark.parametrize("state", [State.ACCEPTED, State.AMBIGUOUS, State.RELEASED])
def test_a_stray_is_shown_with_what_to_do(
    state: State, command: Command, shared: SharedBatch
) -> None:
    """A task that a late response names is reported, and belongs to no other request."""
    command("batch submit FILE --store URL --name horses")
    task = Task(id="task-1", family="imgb", submitted_at=5.0)
    news = Outcome(state=state, task=task if state is State.ACCEPTED else None)
    with shared.open() as found:
        first = bought(found, 2, LOST)
        found.store.decide(first.key, Choice.RESUBMIT)
        lost(found, 2)
        found.store.conclude(first.key, news)
    if state is not State.ACCEPTED:
        assert _late(command) == []
        return
    (line,) = _late(command)
    said = "It names task task-1, which you have probably paid for"
    assert line.startswith(
        f"item 2: a response arrived after you had decided about the item. {said}"
    )
    assert line.endswith("; to see it: muybridge get task-1")
    (stray,) = json.loads(command("batch status --store URL horses --json").stdout)["strays"]
    assert (stray["number"], stray["task_id"]) == (2, "task-1")
    done = command("decide --store URL --batch horses 2 --adopt task-1")
    assert done.exit_code == 2
    assert "already has task task-1" in done.stderr


def _late(command: Command) -> list[str]:
    done = command("batch status --store URL horses")
    return [line for line in done.stderr.splitlines() if "a response arrived" in line]


def test_the_page(
    server: BillingServer, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of the page about many machines print what it shows."""
    monkeypatch.chdir(tmp_path)
    url = postgres.fresh()
    settings = {"MUYBRIDGE_BASE_URL": server.url, "MUYBRIDGE_API_KEY": KEY}
    page = (Path(__file__).parents[2] / "docs" / "many-machines.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, printed = example.partition("\n")
        command, *words = shlex.split(line.replace("postgresql://db.internal/studio", url))
        if command == "cat":
            Path(words[0]).write_text(printed, encoding="utf-8")
            continue
        if words[0] == "worker":
            words += ["--poll-interval", "0.01"]
        done = CliRunner().invoke(muybridge, words, env=settings)
        said = re.sub(r"task-\d+-A-horse-at-a-(\w+)", r"task-N-\1", done.output)
        shown = re.sub(r"task-\d+-", "task-N-", printed)
        assert sorted(said.split("\n")) == sorted([*shown.strip("\n").split("\n"), ""]), line


def test_a_rate(command: Command, server: BillingServer) -> None:
    """A rate may be set and lifted with the batch, and must be above 0."""
    done = command("batch submit FILE --store URL --name horses --rate 200.5")
    assert (done.exit_code, done.stdout) == (0, "2 queued\n")
    assert command(WORKER).exit_code == 0
    assert command("batch submit FILE --store URL --name horses --rate inf").exit_code == 0
    done = command("batch submit FILE --store URL --name horses --rate 0")
    assert done.exit_code == 2
    assert (server.posts, server.doubles) == (2, [])


def test_a_budget(command: Command, server: BillingServer) -> None:
    """A worker ends with 3 when the budget is used up, and status shows how much is spent."""
    done = command("batch submit FILE --store URL --name horses --max-creates 1")
    assert done.exit_code == 0, done.output
    done = command(WORKER)
    assert (done.exit_code, done.stdout) == (3, "1 queued, 1 downloaded\n")
    assert "stopped: " in done.stderr
    assert "none of the limit of 1 create is left" in done.stderr
    done = command("batch status --store URL horses")
    assert "the limit of 1 create: 1 spent" in done.stderr
    done = command("batch status --store URL horses --json")
    (limit,) = json.loads(done.stdout)["budgets"]
    assert limit == {"limit": "creates", "per": None, "most": "1", "spent": "1"}
    done = command("batch submit FILE --store URL --name horses --max-creates some")
    assert done.exit_code == 2
    done = command("batch submit FILE --store URL --name horses --max-cost 7")
    assert done.exit_code == 2
    assert "item 2: cost: " in done.stderr
    assert command("batch submit FILE --store URL --name horses --max-creates 2").exit_code == 0
    assert command(WORKER).exit_code == 0
    assert server.posts == 2


@pytest.mark.parametrize("of_the_batch", ["", " --max-creates 2"])
def test_a_budget_of_the_client(
    command: Command,
    server: BillingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_the_batch: str,
) -> None:
    """A worker ends with 3 when a budget of its client is used up, too, and says what to do."""
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "1")
    submit = f"batch submit FILE --store URL --name horses{of_the_batch}"
    assert command(submit).exit_code == 0
    done = command(WORKER)
    assert (done.exit_code, done.stdout) == (3, "1 queued, 1 downloaded\n")
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("stopped: "))
    assert "none of the limit of 1 create is left. Raise the limit" in said
    done = command(f"{WORKER} --json")
    assert done.exit_code == json.loads(done.stdout.splitlines()[-1])["exit_code"] == 3
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "2")
    assert command(WORKER).exit_code == 0
    assert server.posts == 2


def test_a_place_for_results(command: Command, server: BillingServer, tmp_path: Path) -> None:
    """Workers without `--out` use the batch's place, and another one is refused with 2."""
    out = tmp_path / "out"
    submit = "batch submit FILE --store URL --name horses --out"
    done = command(f"{submit} pictures")
    assert (done.exit_code, "give --out as s3://BUCKET/PREFIX" in done.stderr) == (2, True)
    done = command(f"{submit} DIR")
    assert done.exit_code == 0
    assert done.stderr.endswith("muybridge worker --store URL --batch horses\n")
    done = command("worker --store URL --batch horses --out elsewhere")
    assert (done.exit_code, server.requests) == (2, 0)
    assert f"The results of this batch go to {out}, and this worker was given" in done.stderr
    assert "Omit --out" in done.stderr
    done = command("batch status --store URL horses")
    assert (done.stdout, done.stderr) == ("2 queued\n", f"results go to {out}\n")
    done = command("worker --store URL --batch horses --poll-interval 0.01")
    assert (done.exit_code, done.stdout) == (0, "2 downloaded\n"), done.stderr
    assert {path.name for path in out.glob("*.png")} == {"h1.png", "h2.png"}
    done = command("batch status --store URL horses --json")
    assert json.loads(done.stdout)["out"] == str(out)


def test_another_file(command: Command, tmp_path: Path) -> None:
    """Items that differ from the batch's, or are missing, are refused with what to do instead."""
    assert command("batch submit FILE --store URL --name horses").exit_code == 0
    (tmp_path / "fewer.jsonl").write_text(json.dumps(horses(1)[0]))
    (tmp_path / "other.jsonl").write_text(json.dumps({**horses(1)[0], "prompt": "A mule"}))
    for file, said in (("fewer", "has 2 items (got 1)"), ("other", "differs from")):
        done = command(f"batch submit {tmp_path / file}.jsonl --store URL --name horses")
        assert done.exit_code == 2
        assert said in done.stderr
        assert "submit the same items as before, with new ones at the end" in done.stderr
        assert "folder" not in done.stderr


def test_a_place_is_needed(command: Command, server: BillingServer) -> None:
    """A worker that nobody has told where results go ends with 2, and sends nothing."""
    assert command("batch submit FILE --store URL --name horses").exit_code == 0
    done = command("worker --store URL --batch horses")
    assert (done.exit_code, server.requests) == (2, 0)
    assert "give --out, or submit the batch again" in done.stderr


def test_json(command: Command) -> None:
    """Programs read the same as JSON."""
    done = command("batch submit FILE --store URL --name horses --json")
    assert json.loads(done.stdout) == {"ok": True, "counts": {"queued": 2}}
    done = command("batch status --store URL horses --json")
    assert json.loads(done.stdout) == {
        "event": "summary",
        "ok": False,
        "exit_code": 5,
        "counts": {"queued": 2},
        "items": [],
        "strays": [],
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("batch status --store URL mules", "There is no batch mules"),
        ("batch status --store nonsense horses", "There is no batch horses in"),
        (WORKER, "There is no batch horses"),
        ("batch status --store postgresql://127.0.0.1:1/studio horses", "postgresql://127.0.0.1/"),
    ],
)
def test_an_unusable_store(
    line: str,
    said: str,
    command: Command,
    server: BillingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch that is not there, and a database that cannot be used, end with 6.

    Nothing is made in their place.
    """
    monkeypatch.chdir(tmp_path)
    before = {*tmp_path.iterdir()}
    done = command(line)
    assert done.exit_code == 6, done.output
    assert said in done.stderr
    assert server.requests == 0
    assert {*tmp_path.iterdir()} == before


def test_the_unit() -> None:
    """The unit for systemd on the page starts a worker, and again where that helps.

    A worker whose budget is used up ends with `NOT_SENT`.
    """
    page = (Path(__file__).parents[2] / "docs" / "many-machines.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```ini\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(text)
    command, name, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(command).name, name) == ("muybridge", "worker")
    parsed = worker.make_context(name, words).params
    assert (parsed["out"], parsed["spool"]) == ("s3://studio/horses", "/var/lib/muybridge")
    in_vain = {str(code) for code in (FAILED, INVALID, NOT_SENT, AMBIGUOUS)}
    assert {*unit["Service"]["RestartPreventExitStatus"].split()} == in_vain
