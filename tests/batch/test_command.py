"""The command `batch`, from end to end."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

import moments
from muybridge import batch
from muybridge.batch import Report, Stage
from muybridge.batch.shared import open_batch
from muybridge.cli.batch import exit_code_of
from muybridge.cli.batch_progress import line
from muybridge.cli.commands import muybridge
from muybridge.purchases import StoreUnusable
from muybridge.purchases.store import NewItem
from processes import environment, interrupt
from sampling import diagonal

from .begun import begun
from .billing import BillingServer, Fault
from .runner_process import KEY, horses

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the command within this process, in a folder with a batch of three horses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(3))))

    def run(*words: str, server: BillingServer | None = None) -> Result:
        settings = {} if server is None else _settings(server)
        result = CliRunner().invoke(muybridge, ["batch", *words], env=settings)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def decide(*words: str) -> Result:
    """Run `muybridge decide --batch out`."""
    return CliRunner().invoke(muybridge, ["decide", "--batch", "out", *words])


def _settings(server: BillingServer) -> dict[str, str]:
    return {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}


RUN = ("run", "b.jsonl", "--out", "out", "--poll-interval", "0.005")
AGAIN = ("run", "--out", "out", "--poll-interval", "0.005")


def summary(result: Result) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    assert told["event"] == "summary"
    assert told["exit_code"] == result.exit_code
    return told


def test_from_end_to_end_without_a_key(invoke: Invoke, tmp_path: Path) -> None:
    """`--local` makes real files and a contact sheet; running it again creates nothing."""
    done = invoke(*RUN, "--local")
    assert (done.exit_code, done.stdout) == (0, f"3 downloaded\n{Path('out/index.html')}\n")
    assert "item 1 (h1): downloaded h1.png" in done.stderr
    for name in ("h1.png", "h2.png", "h3.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    again = invoke(*AGAIN, "--local")
    assert (again.exit_code, again.stderr) == (0, "")


def test_a_batch_for_money_is_not_gone_on_with_locally(invoke: Invoke, tmp_path: Path) -> None:
    """A batch that was begun at a service is rejected by the embedded one."""
    with BillingServer(lambda _: Fault.ACCEPTED_RESET) as server:
        assert invoke(*RUN, server=server).exit_code == 4
        refused = invoke(*AGAIN, "--local")
        assert refused.exit_code == 6
        assert "was begun at" in refused.stderr
    assert (tmp_path / "out" / "h1.png").exists() is False


def test_json_events(invoke: Invoke) -> None:
    """With --json each event is a JSON object on a line of stdout; the last is the summary."""
    with BillingServer() as server:
        done = invoke(*RUN, "--json", server=server)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    told = [event["event"] for event in events if event.get("item") == 2]
    assert told == ["sending", "submitted", "status", "completed", "downloaded"]
    assert [event["finished"] for event in events if event["event"] == "downloaded"] == [1, 2, 3]
    assert summary(done)["counts"] == {"downloaded": 3}
    assert [item["path"] for item in summary(done)["items"]] == ["h1.png", "h2.png", "h3.png"]


def test_an_invalid_batch_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """An invalid line exits with 2 and is reported with its number, and nothing is sent."""
    (tmp_path / "b.jsonl").write_text('{"family": "imgb"}\n{}')
    with BillingServer() as server:
        done = invoke(*RUN, server=server)
        assert (done.exit_code, server.requests) == (2, 0)
    assert "line 1: prompt:" in done.stderr
    assert "line 2: family: is required" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {},
            (
                "There is no base URL and no API key. Set MUYBRIDGE_BASE_URL and "
                "MUYBRIDGE_API_KEY, or give --base-url and --api-key-file."
            ),
        ),
        (
            {"MUYBRIDGE_API_KEY": "a-key"},
            "There is no base URL. Set MUYBRIDGE_BASE_URL, or give --base-url.",
        ),
        (
            {"MUYBRIDGE_BASE_URL": "https://api.example.com"},
            "There is no API key. Set MUYBRIDGE_API_KEY, or give --api-key-file.",
        ),
    ],
)
def test_the_service_and_the_file_are_both_wrong(
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    said: str,
) -> None:
    """If the service's settings are wrong, problems of the file are reported as well."""
    for name in ("MUYBRIDGE_BASE_URL", "MUYBRIDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    valid = invoke(*RUN)
    assert valid.exit_code == 2
    assert valid.stderr.startswith(f"error: {said}")

    (tmp_path / "b.jsonl").write_text('{"family": "imgb"}\n{}')
    done = invoke(*RUN, "--json")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[:2] == [
        "error: 4 problems in the batch (nothing was sent):",
        f"  the service: {said}",
    ]
    assert "line 1: prompt:" in done.stderr
    assert "line 2: family: is required" in done.stderr
    told = json.loads(done.stdout)["error"]
    assert f"error: {told['message']}\n" == done.stderr
    assert invoke(*AGAIN).stderr.startswith(f"error: {said}")
    assert not (tmp_path / "out").exists()


def test_an_ambiguous_item_whose_id_is_known(invoke: Invoke) -> None:
    """The id in the response to an ambiguous item is reported each time, for `--adopt`."""
    with BillingServer(lambda _: Fault.ACCEPTED_CUT) as server:
        server.cut = -5
        told = [invoke(*RUN, server=server), invoke("status", "out")]
        for number in (1, 2, 3):
            (task_id,) = server.accepted[f"horse {number}"]
            for result in told:
                begin = f"item {number} (h{number}) is ambiguous: "
                (line,) = (x for x in result.stderr.splitlines() if x.startswith(begin))
                assert line.endswith(f"; the response names {task_id}")


def test_resolving(invoke: Invoke) -> None:
    """Ambiguous items exit with 4 and the way out; each way does what it says."""
    with BillingServer(lambda _: Fault.ACCEPTED_RESET) as server:
        first = invoke(*RUN, server=server)
        assert first.exit_code == 4
        assert "item 1 (h1) is ambiguous: connection reset" in first.stderr
        assert "muybridge decide --batch out ITEM --adopt ID" in first.stderr
        assert invoke("status", "out").exit_code == 4

        assert decide("h1", "--adopt", server.accepted["horse 1"][0]).exit_code == 0
        assert decide("2", "--abandon").exit_code == 0
        refused = decide("3", "--resubmit")
        assert refused.exit_code == 2
        assert "--i-may-pay-twice" in refused.stderr
        told = decide("3", "--resubmit", "--i-may-pay-twice", "--json")
        assert json.loads(told.stdout)["item"]["state"] == "queued"
        assert decide("3").exit_code == 2
        assert invoke("status", "out").exit_code == 5

    with BillingServer() as after:
        assert invoke(*AGAIN, server=after).exit_code == 6  # its tasks are elsewhere
        assert after.requests == 0


def test_nothing_to_go_on_with(invoke: Invoke) -> None:
    """A folder without a batch exits with 6, and the message says so."""
    with BillingServer() as server:
        done = invoke("run", "--out", "nowhere", "--json", server=server)
    assert done.exit_code == json.loads(done.stdout)["error"]["exit_code"] == 6
    assert "There is no batch in nowhere" in done.stderr


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({Stage.DOWNLOADED, Stage.ABANDONED}, 0),
        ({Stage.DOWNLOADED, Stage.FAILED}, 1),
        ({Stage.FAILED, Stage.REFUSED}, 3),
        ({Stage.REFUSED, Stage.QUEUED}, 5),
        ({Stage.SUBMITTED, Stage.FAILED}, 5),
        ({Stage.QUEUED, Stage.COMPLETED}, 6),
        ({Stage.COMPLETED, Stage.AMBIGUOUS, Stage.QUEUED, Stage.FAILED}, 4),
    ],
)
def test_exit_codes(states: set[Stage], code: int) -> None:
    """What a person has to decide comes before what another run mends, and that before ends."""

    report = Report(folder=Path(), entries=(), counts=dict.fromkeys(states, 1))
    assert exit_code_of(report) == code


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command in a process of its own."""
    with ExitStack() as ending:

        def begin(
            *words: str,
            server: BillingServer,
            stderr: int = subprocess.PIPE,
            env: Mapping[str, str] | None = None,
        ) -> subprocess.Popen[str]:
            (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, horses(3))))
            process = ending.enter_context(
                subprocess.Popen(  # noqa: S603  our own command
                    [sys.executable, "-m", "muybridge", "batch", *words],
                    cwd=tmp_path,
                    env=environment(**{**_settings(server), **(env or {})}),
                    stdin=subprocess.DEVNULL,  # a terminal would be asked
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                )
            )
            ending.callback(process.kill)
            return process

        yield begin


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such terminal")
def test_bars_on_a_terminal(start: Callable[..., subprocess.Popen[str]]) -> None:
    """On a terminal there is a bar for the batch, and data alone on stdout."""
    ours, theirs = os.openpty()
    with BillingServer() as server, open(ours, "rb", buffering=0) as terminal:  # noqa: PTH123  no path
        process = start(*RUN, server=server, stderr=theirs, env={"TERM": "xterm"})
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # which is how a terminal ends on Linux
            while data := terminal.read(65536):
                shown += data
        stdout, _ = process.communicate(timeout=30)
    assert stdout.startswith("3 downloaded\n")
    assert b"batch" in shown
    assert b"3/3" in shown


INTERRUPTIONS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
posix = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")


def read_until(process: subprocess.Popen[str], said: str) -> None:
    """Read lines of stderr up to the one that holds *said*."""
    assert process.stderr is not None
    while said not in (line := process.stderr.readline()):
        assert line


def ended_by(number: int, state: int) -> int:
    """Return the exit code of a batch in *state* that *number* has ended."""
    return state if number == signal.SIGINT else 128 + number


def test_a_command_that_resumes_without_a_store(invoke: Invoke, tmp_path: Path) -> None:
    """Before there is a store, the command that resumes has the file and the rate in it."""
    (tmp_path / "out").write_text("a file in the way")
    with BillingServer() as server:
        stuck = invoke(*RUN, "--rate", "90", server=server)
        assert (stuck.exit_code, server.requests) == (6, 0)
        (tmp_path / "out").unlink()
        command = shlex.split(stuck.stderr.rpartition("to resume: muybridge batch ")[2])
        assert command[:4] == ["run", "b.jsonl", "--rate", "90"]
        again = invoke(*command, server=server)
        assert (again.exit_code, server.posts) == (0, 3)


@pytest.mark.parametrize("local", [(), ("--local",)], ids=["elsewhere", "embedded"])
def test_a_command_that_resumes_at_the_batchs_service(
    invoke: Invoke, server: BillingServer, local: tuple[str, ...]
) -> None:
    """At another service, the command that is named leads to that of the batch, and works."""
    assert invoke(*RUN, "--limit", "1", server=server).exit_code == 5
    with BillingServer() as other:
        for words in ((*RUN, *local), ("status", "out")):
            told = invoke(*words, server=None if local else other)
            line = told.stderr.splitlines()[-1]
            assert line.startswith("to resume: muybridge batch run --out out ")
            assert f"--base-url {server.url}" in line
            assert "--local" not in line
        again = shlex.split(line.removeprefix("to resume: muybridge batch "))
        assert invoke(*again, "--poll-interval", "0.005", server=other).exit_code == 0
        assert other.requests == 0
    assert (server.posts, server.doubles) == (3, [])


def test_a_local_batch_is_resumed_locally(invoke: Invoke, server: BillingServer) -> None:
    """A batch of an embedded service is resumed at one, whatever the command line says."""
    assert invoke(*RUN, "--limit", "1", "--local").exit_code == 5
    refused = invoke(*AGAIN, "--dedupe", "--base-url", server.url, server=server)
    assert refused.exit_code == 6
    again = shlex.split(refused.stderr.rpartition("to resume: muybridge batch ")[2])
    assert "--local" in again
    assert invoke(*(word for word in again if word not in ("--limit", "1"))).exit_code == 0
    assert server.requests == 0


def test_a_command_that_resumes_with_its_permission(invoke: Invoke, tmp_path: Path) -> None:
    """A batch that was begun over plain http is resumed with the option that this takes."""
    item = NewItem(name="", stem="0001", family="imgb", body='{"model": "imgb-2", "prompt": "-"}')
    begun(tmp_path / "out", [item], "http://nas.test")
    told = invoke("status", "out")
    wanted = "muybridge batch run --out out --base-url http://nas.test --allow-plain-http"
    assert told.stderr.splitlines()[-1] == f"to resume: {wanted}"


@posix
@pytest.mark.parametrize(("number", "paid"), diagonal(INTERRUPTIONS, [1, 2]))
def test_a_signal_waits_for_paid_requests(
    start: Callable[..., subprocess.Popen[str]], invoke: Invoke, number: int, paid: int
) -> None:
    """A signal waits for the responses to creates, sends no other, and says how to resume."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def wait(_: str) -> None:
        asked.release()
        go_on.wait(20)

    with BillingServer() as server:
        server.on_create = wait
        process = start(*RUN, "--concurrency", str(paid), server=server)
        for _ in range(paid):
            assert asked.acquire(timeout=20)
        interrupt(process, number)
        said = "the response to a paid request" if paid == 1 else "the responses to 2 paid requests"
        read_until(process, f"waiting for {said}")
        go_on.set()
        stdout, stderr = process.communicate(timeout=30)
        assert (process.returncode, server.posts) == (ended_by(number, 5), paid), stderr
        assert f"{3 - paid} queued, {paid} submitted" in stdout
        assert f"to resume: muybridge batch run --out out --concurrency {paid}" in stderr
        server.on_create = lambda _: None
        assert invoke(*AGAIN, server=server).exit_code == 0
        assert (server.posts, server.doubles) == (3, [])


@posix
@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_a_second_signal_names_what_is_ambiguous(
    start: Callable[..., subprocess.Popen[str]], number: int
) -> None:
    """A second signal ends at once: the create is ambiguous in the store, and named on stderr."""
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        asked.set()
        go_on.wait(20)

    with BillingServer() as server:
        server.on_create = wait
        process = start(*RUN, "--concurrency", "1", server=server)
        assert asked.wait(20)
        interrupt(process, signal.SIGTERM)
        read_until(process, "waiting for the response to a paid request")
        interrupt(process, number)
        stdout, stderr = process.communicate(timeout=30)
        go_on.set()
    assert (process.returncode, server.posts) == (ended_by(number, 4), 1), stderr
    assert "2 queued, 1 ambiguous" in stdout
    assert "item 1 (h1) is ambiguous" in stderr
    assert "to resume: muybridge batch run --out out --concurrency 1" in stderr


@posix
@pytest.mark.parametrize(("number", "what"), diagonal(INTERRUPTIONS, ["/v1/result/", "/media/"]))
def test_a_signal_waits_for_nothing_that_costs_nothing(
    start: Callable[..., subprocess.Popen[str]], invoke: Invoke, number: int, what: str
) -> None:
    """Queries and downloads that hang end at once, without a word about paid requests."""
    asked, go_on = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        if path.startswith(what):
            asked.set()
            go_on.wait(20)

    with BillingServer() as server:
        server.on_query = wait
        process = start(*RUN, "--concurrency", "1", server=server)
        assert asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=10)
        go_on.set()
        state = 6 if what == "/media/" else 5
        assert (process.returncode, server.posts) == (ended_by(number, state), 1), stderr
        assert "waiting for" not in stderr
        assert "retrying" not in stderr
        assert "to resume: muybridge batch run --out out --concurrency 1" in stderr
        assert invoke(*AGAIN, server=server).exit_code == 0
        assert (server.posts, server.doubles) == (3, [])


@contextmanager
def open_read_by(process: subprocess.Popen[str], pipe: Path) -> Generator[None]:
    """Open a pipe as soon as *process* reads it, which may have ended instead."""
    while True:
        try:
            writing = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads it yet
                raise
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {process.wait(0.01)}")
        else:
            break
    try:
        yield
    finally:
        os.close(writing)


@posix
@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_a_signal_before_the_batch_is_begun(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, number: int
) -> None:
    """A signal while the file is read ends the command, which says that nothing was sent."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    with BillingServer() as server:
        process = start("run", "pipe.jsonl", "--out", "out", server=server)
        with open_read_by(process, tmp_path / "pipe.jsonl"):
            interrupt(process, number)
            _, stderr = process.communicate(timeout=30)
        assert server.requests == 0
    assert process.returncode == 128 + number
    by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    assert stderr == f"error: Interrupted{by}. Nothing was sent.\n"


def test_two_runs_at_once(
    start: Callable[..., subprocess.Popen[str]], invoke: Invoke, server: BillingServer
) -> None:
    """A run that shares its batch says so at its start and its end, and so does the status."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def wait(_: str) -> None:
        asked.release()
        go_on.wait(20)

    server.on_query = wait
    first = start(*RUN, server=server)
    for _ in range(3):
        assert asked.acquire(timeout=20)
    process = (
        f"another process (pid {first.pid} on {socket.gethostname()}) is at work on this batch"
    )
    second = invoke(*RUN, server=server)
    told = f"{process}; to see its progress: muybridge batch status out"
    assert (second.exit_code, second.stdout.splitlines()[0]) == (5, "3 submitted")
    assert second.stderr.splitlines() == [
        f"{process}. The runs share its items, and their --concurrency adds up.",
        told,
    ]
    shown = invoke("status", "out")
    assert (shown.exit_code, shown.stderr.splitlines()) == (5, [told])
    assert batch.status("out").at_work == (f"pid {first.pid} on {socket.gethostname()}",)
    go_on.set()
    _, stderr = first.communicate(timeout=30)
    assert (first.returncode, "another process" in stderr) == (0, False)
    assert (invoke("status", "out").stderr, server.posts) == ("", 3)
    assert batch.status("out").at_work == ()


def test_a_run_that_was_killed(
    start: Callable[..., subprocess.Popen[str]], invoke: Invoke, server: BillingServer
) -> None:
    """A process that has ended is not at work, whatever it has left behind."""
    asked = threading.Event()

    def wait(_: str) -> None:
        asked.set()
        first.wait(20)

    server.on_query = wait
    first = start(*RUN, "--concurrency", "1", server=server)
    assert asked.wait(20)
    first.kill()
    first.wait(20)
    shown = invoke("status", "out")
    assert shown.exit_code == 5
    assert "another process" not in shown.stderr
    assert invoke(*AGAIN, server=server).exit_code == 0
    assert server.posts == 3


def test_a_retry_is_told_once() -> None:
    """The line of a retry is the item and the sentence, without another word for it."""
    event = batch.BatchEvent(
        what=batch.What.RETRY,
        item=1,
        name="h1",
        detail="retrying create in 1 s: status 503",
        finished=0,
        total=1,
    )
    assert line(event) == "item 1 (h1): retrying create in 1 s: status 503"


@pytest.mark.parametrize("what", ["failed", "refused", "ambiguous", "postponed"])
def test_a_reason_follows_a_colon(what: str) -> None:
    """A sentence that says why is set apart from the word for what happened."""
    event = batch.BatchEvent(
        what=batch.What(what),
        item=1,
        name="",
        detail="The service was not reached.",
        finished=0,
        total=1,
    )
    assert line(event) == f"item 1: {what}: The service was not reached."
    assert line(attrs.evolve(event, detail="")) == f"item 1: {what}"


def test_a_store_that_cannot_be_reached(invoke: Invoke, server: BillingServer) -> None:
    """Nothing is sent, and the password of its address is not shown."""
    store = "postgresql://me:hush-4711@127.0.0.1:1/studio"
    done = invoke(*RUN, "--max-creates", "9", "--store", store, server=server)
    assert (done.exit_code, server.posts) == (6, 0)
    assert "postgresql://127.0.0.1/studio" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("--max-creates 9 --store URL")
    assert "hush" not in done.output


def test_why_a_run_stopped_is_told_once(invoke: Invoke, server: BillingServer) -> None:
    """Where one reason postpones several items, it is given once while they run, and at the end."""
    done = invoke(*RUN, "--max-creates", "0", "--store", "l.sqlite3", server=server)
    assert done.exit_code == 5
    assert done.stderr.count("over budget") == 2
    assert done.stderr.count("postponed for the same reason") == 2
    assert "is queued" not in done.stderr
    shown = invoke("status", "out")
    assert shown.stderr.count("over budget") == 1
    assert " and 2 more are queued: The request was not sent" in shown.stderr


def test_a_store_that_cannot_be_written(
    invoke: Invoke, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the error, the last line is the command that resumes the batch."""
    assert invoke(*RUN, "--limit", "1", server=server).exit_code == 5

    def full(*_: object, **__: object) -> None:
        raise StoreUnusable("out/state/store.sqlite3: database or disk is full.")

    monkeypatch.setattr(*moments.at("items taken").place, full)
    done = invoke(*AGAIN, server=server)
    assert done.exit_code == 6
    error, again = done.stderr.splitlines()
    assert error == "error: out/state/store.sqlite3: database or disk is full."
    assert again == "to resume: muybridge batch run --out out --concurrency 4 --poll-interval 0.005"


@posix
def test_a_signal_among_the_last_lines(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a run has ended, further signals do not keep it from saying how to resume."""
    run, status = batch.run, batch.status

    def interrupted(*arguments: Any, **named: Any) -> Report:
        run(*arguments, **named)
        raise KeyboardInterrupt

    def struck(folder: str) -> Report:
        signal.raise_signal(signal.SIGINT)
        return status(folder)

    monkeypatch.setattr(batch, "run", interrupted)
    monkeypatch.setattr(batch, "status", struck)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with BillingServer(lambda _: Fault.UNAUTHORIZED) as server:
            result = invoke(*RUN, server=server)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 5
    assert "3 queued" in result.stdout
    assert "to resume: muybridge batch run --out out" in result.stderr


def test_a_rate(invoke: Invoke, server: BillingServer) -> None:
    """`--rate` has the meaning and the help that it has for workers, and must be above 0."""
    assert invoke(*RUN, "--rate", "500", server=server).exit_code == 0
    with open_batch("out") as found:
        assert found.has_rate
    assert invoke(*AGAIN, "--rate", "0", server=server).exit_code == 2
    assert invoke(*AGAIN, "--rate", "inf", server=server).exit_code == 0
    with open_batch("out") as found:
        assert not found.has_rate
    helps = [invoke(command, "--help").stdout for command in ("run", "submit")]
    assert all("Maximum requests per second of all workers" in shown for shown in helps)
