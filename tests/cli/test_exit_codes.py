"""The meaning of each exit code, each caused by a service that does just that."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from muybridge.cli import exit_codes
from muybridge.cli.batch_reports import ENDINGS
from muybridge.cli.exit_codes import MEANINGS
from muybridge.cli.progress import Progress
from muybridge_protocol.events import ServiceSilent, Submitted, Throttled, WillRetry
from muybridge_protocol.records.tasks import Task

from .conftest import Invoke
from .crooked_service import RESET, CrookedService, always, record, reply

CREATE = ("create", "imgb", "--model", "imgb-2", "--prompt", "A horse")
RUN = ("run", *CREATE[1:])
QUICK = ("--poll-interval", "0.01")


def completed(base_url: str) -> dict[str, object]:
    return record(status="completed", image_url=f"{base_url}/media/horse.png")


def test_a_task_that_is_done_exits_0(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """`run -o` saves the picture, prints nothing but its path, and exits with 0."""
    ended = invoke(*RUN, *QUICK, "-o", "horse.png", env=settings)
    assert (ended.exit_code, ended.stdout) == (0, "horse.png\n")
    assert (tmp_path / "horse.png").read_bytes().startswith(b"\x89PNG")


def test_a_failed_task_exits_1(invoke: Invoke, settings: dict[str, str]) -> None:
    """A task that fails is reported with the service's reason, and exits with 1."""
    ended = invoke(*RUN[:-1], "A horse [fail:content-policy]", *QUICK, env=settings)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "failed: content policy violation." in ended.stderr


def test_a_cancelled_task_exits_1(invoke: Invoke, settings: dict[str, str]) -> None:
    """A task that was cancelled has no result, and exits with 1."""
    words = ("--model", "vidsa_1_5_pro_480p", "--prompt", "[cancel]")
    ended = invoke("run", "vidsa", *words, *QUICK, env=settings)
    assert ended.exit_code == 1
    assert "was cancelled." in ended.stderr


def test_a_task_that_fails_at_its_creation_exits_1(invoke: Invoke) -> None:
    """A create call whose record says `failed` is a failed task, with an id and a reason."""
    failed = record(status="failed", error="unsupported resolution and ratio pair")
    with CrookedService(always(reply(200, failed))) as service:
        ended = invoke(*CREATE, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 1
    assert told["error"]["type"] == "TaskFailed"
    assert told["task"]["id"] == told["result"]["id"] == "task-1"


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("--nonsense",),
        ("create",),
        ("create", "imgz"),
        ("asset",),
        ("create", "imgb", "--nonsense", "1"),
        ("create", "imgb", "--prompt", "A horse"),
        (*RUN, "--local", "--base-url", "http://127.0.0.1:1"),
        (*RUN, "--timeout", "0"),
        (*RUN, "--timeout", "nan"),
        (*CREATE, "--extra", "[]"),
        ("get", ".."),
        ("get", "https://cdn.example/a.png"),
        ("wait", '{"muybridge_task": 99}'),
        ("download", "task-1"),
        ("download", "ftp://example.com/a.png", "-o", "a.png"),
        ("models", "imgz"),
        ("validate", "no-such-file.jsonl"),
        ("demo", "--real"),
        ("serve", "--port", "70000"),
        ("serve", "--host", "192.0.2.1", "--port", "0"),
    ],
    ids=" ".join,
)
def test_a_mistake_in_the_command_line_exits_2(invoke: Invoke, words: tuple[str, ...]) -> None:
    """A command line or request that is wrong exits with 2, before anything is sent."""
    with CrookedService(always(RESET)) as service:
        settings = {} if words[0] == "demo" else service.settings
        ended = invoke(*words, env=settings)
        assert (ended.exit_code, ended.stdout, service.requests) == (2, "", [])
    assert ended.stderr


def test_a_missing_key_or_address_exits_2(invoke: Invoke) -> None:
    """Without a key or an address the command says which option or variable gives it."""
    ended = invoke(*CREATE)
    assert ended.exit_code == 2
    assert (
        "There is no base URL and no API key. Set MUYBRIDGE_BASE_URL and MUYBRIDGE_API_KEY, or "
        "give --base-url and --api-key-file. Nothing was sent."
    ) in ended.stderr
    ended = invoke(*CREATE, "--base-url", "https://service.example")
    assert ended.exit_code == 2
    assert "Set MUYBRIDGE_API_KEY, or give --api-key-file." in ended.stderr
    ended = invoke(*CREATE, "--base-url", "https://service.example", "--api-key-file", "none")
    assert ended.exit_code == 2
    assert "--api-key-file: No such file or directory. Give the name of a file" in ended.stderr


def test_a_short_wait_at_a_dead_server_announces_no_retry(invoke: Invoke) -> None:
    """A wait that ends before the next poll says why the last one failed, and not when it comes."""
    with CrookedService(always(RESET)) as service:
        settings = service.settings
    ended = invoke("wait", "task-1", "--timeout", "0.3", "--poll-interval", "30", env=settings)
    assert (ended.exit_code, ended.stdout) == (5, "")
    assert "retrying" not in ended.stderr
    assert "no valid response for the last 0.3 s: connection refused" in ended.stderr
    assert "to resume: muybridge wait " in ended.stderr


def test_a_refused_connection_exits_3(invoke: Invoke) -> None:
    """A request that no byte of was sent exits with 3, and says that nothing was charged."""
    with CrookedService(always(RESET)) as service:
        settings = service.settings
    ended = invoke(*CREATE, env=settings)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert "could not be sent (3 attempts): connection refused" in ended.stderr


@pytest.mark.parametrize(
    ("status", "headers", "name"),
    [
        (400, (), "Refused"),
        (401, (), "Unauthorized"),
        (403, (), "Forbidden"),
        (429, ("Retry-After: 300",), "RateLimited"),
    ],
)
def test_a_refusal_exits_3(
    invoke: Invoke, status: int, headers: tuple[str, ...], name: str
) -> None:
    """A request that the service refuses exits with 3, and is sent once."""
    with CrookedService(always(reply(status, {"error": "no"}, *headers))) as service:
        ended = invoke(*RUN, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 3
    assert (told["error"]["type"], told["error"]["status"]) == (name, status)
    assert (told["ok"], service.posts) == (False, 1)


def test_a_wrong_key_exits_3(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """A key that the service does not know exits with 3, and is not shown."""
    (tmp_path / "key").write_text("a-wrong-key\n")
    ended = invoke("get", "task-1", "--api-key-file", "key", env=settings)
    assert ended.exit_code == 3
    assert "status 401" in ended.stderr
    assert "a-wrong-key" not in ended.output


def test_a_reset_after_the_request_exits_4(invoke: Invoke) -> None:
    """A create whose response is lost exits with 4, is sent once, and says what to do."""
    with CrookedService(always(RESET)) as service:
        ended = invoke(*RUN, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 4
    assert told["error"]["type"] == "CreateAmbiguous"
    assert "check your account" in told["error"]["message"]
    assert service.posts == 1


def test_an_id_in_an_unusable_reply_is_told(invoke: Invoke) -> None:
    """A broken response that still shows an id exits with 4 and names the id."""
    with CrookedService(always(reply(200, '{"id": "task-7", "status": "que'))) as service:
        ended = invoke(*CREATE, "--json", env=service.settings)
    assert ended.exit_code == 4
    assert json.loads(ended.stdout)["error"]["candidate_id"] == "task-7"


def test_an_error_after_the_creation_exits_5_and_never_3(invoke: Invoke) -> None:
    """Once the task is accepted, even a 401 exits with 5: a caller who reads 3 would pay again."""

    def answer(method: str, _: str) -> bytes:
        return reply(200, record()) if method == "POST" else reply(401, {"error": "no"})

    with CrookedService(answer) as service:
        ended = invoke(*RUN, *QUICK, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["error"]["type"]) == (5, "Unauthorized")
    assert told["error"]["command"].startswith("muybridge wait --poll-interval 0.01 '{")
    assert "task task-1\n" in ended.stderr


def test_a_time_out_exits_5_with_the_command_that_carries_on(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """A wait that takes too long exits with 5, and the command that it names brings the result."""
    slow = f"{RUN[-1]} [slow:100]"
    ended = invoke(*RUN[:-1], slow, *QUICK, "--timeout", "0.3", "-o", "a horse.png", env=settings)
    assert (ended.exit_code, ended.stdout) == (5, "")
    assert re.search(r"did not end within 0\.\d+ s", ended.stderr)
    command = ended.stderr.rpartition("to resume: ")[2].strip()
    words = shlex.split(command)
    assert words[:2] == ["muybridge", "wait"]
    assert Task.from_token(words[-1]).next_poll_at is not None
    again = invoke(*words[1:], env=settings)
    assert (again.exit_code, again.stdout) == (0, "a horse.png\n")
    assert (tmp_path / "a horse.png").exists()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (record(id="another", status="processing"), "ProtocolViolation"),
        (record(status="completed", image_url=None), "ResultIncomplete"),
    ],
)
def test_an_unusable_reply_exits_5(invoke: Invoke, body: dict[str, object], name: str) -> None:
    """A response that breaks the protocol, or has no URL, exits with 5: the task is safe."""
    with CrookedService(always(reply(200, body))) as service:
        ended = invoke("wait", "task-1", *QUICK, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 5
    assert told["error"]["type"] == name
    assert told["error"]["command"] == "muybridge wait --poll-interval 0.01 task-1"


def test_a_task_that_is_not_ready_is_not_downloaded(invoke: Invoke) -> None:
    """`download` of an unfinished task exits with 5 and names the command that waits for it."""
    with CrookedService(always(reply(200, record(status="processing")))) as service:
        ended = invoke("download", "task-1", "-o", "a.png", env=service.settings)
    assert ended.exit_code == 5
    assert "to resume: muybridge wait -o a.png task-1" in ended.stderr


@pytest.mark.parametrize("verb", ["run", "wait", "download"])
def test_a_failing_download_exits_6(invoke: Invoke, verb: str) -> None:
    """A result that cannot be fetched exits with 6 and names the command that gets it again."""

    def answer(method: str, path: str) -> bytes:
        if method == "POST":
            return reply(200, record())
        if path.startswith("/media/"):
            return reply(200, "<html>", kind="text/html")
        return reply(200, completed(service.base_url))

    words = (*RUN, *QUICK) if verb == "run" else (verb, "task-1")
    with CrookedService(answer) as service:
        ended = invoke(*words, "-o", "a.png", "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.exit_code == told["error"]["exit_code"] == 6
    assert told["error"]["type"] == "DownloadFailed"
    assert told["result"]["image_url"].endswith("/media/horse.png")
    again = shlex.split(told["error"]["command"])
    assert again[:4] == ["muybridge", "download", "-o", "a.png"]


def test_an_address_that_the_service_gives_and_we_refuse_exits_6(invoke: Invoke) -> None:
    """A result whose URL may not be fetched exits with 6, not with 2: it was paid for."""
    odd = record(status="completed", image_url="http://elsewhere.example/horse.png")
    with CrookedService(always(reply(200, odd))) as service:
        ended = invoke("wait", "task-1", "-o", "a.png", env=service.settings)
    assert ended.exit_code == 6
    assert "muybridge download -o a.png task-1" in ended.stderr


def test_get_exits_0_whatever_the_status(invoke: Invoke) -> None:
    """`get` has done its work when it knows the status, be it `failed`."""
    failed = record(status="failed", error="content policy violation")
    with CrookedService(always(reply(200, failed))) as service:
        ended = invoke("get", "task-1", env=service.settings)
        told = invoke("get", "task-1", "--json", env=service.settings)
    assert ended.exit_code == told.exit_code == 0
    assert "status          failed\n" in ended.stdout
    assert json.loads(told.stdout)["result"] == failed


@pytest.mark.parametrize(
    ("asset", "code"), [("asset-2", 0), ("no-such-asset", 3), ("../asset", 3), ("..", 2)]
)
def test_deleting_an_asset(invoke: Invoke, settings: dict[str, str], asset: str, code: int) -> None:
    """An asset is deleted for good; one that the service does not delete exits with 3."""
    ended = invoke("asset", "delete", asset, "--json", env=settings)
    assert ended.exit_code == code
    assert json.loads(ended.stdout)["ok"] is (code == 0)


def test_the_help_names_every_exit_code(invoke: Invoke) -> None:
    """The help contains the table of exit codes, with the meaning that each states."""
    shown = invoke("--help").stdout.partition("Exit codes:")[2]
    codes = [int(line.split()[0]) for line in shown.splitlines() if line[2:3].isdigit()]
    assert [*map(int, MEANINGS)] == codes, "sort the codes of cli/exit_codes.py by number"
    plain = " ".join(shown.split())
    assert all(f"{code} {code.meaning}" in plain for code in MEANINGS)
    assert "Ctrl-C exits with 3 before anything was sent, 5 once the task's id" in plain
    assert "4 if it interrupts a request that may have been accepted, and 130 in" in plain
    assert "exit with 128 plus their number (SIGTERM: 143)." in plain


@pytest.mark.parametrize("code", exit_codes.ExitCode, ids=lambda code: code.name)
def test_what_was_accepted_can_be_resumed(code: exit_codes.ExitCode) -> None:
    """A code that says that a request was, or may have been, accepted prints how to resume."""
    paid = code.accepted in ("perhaps", "yes")
    advice = (
        f"correct `accepted` or `resumes` of {code.name} in transports/muybridge/cli/exit_codes.py"
    )
    assert (code.resumes == "yes") is paid, advice


def test_the_help_of_batches_names_their_exit_codes(invoke: Invoke) -> None:
    """The help of `batch` has the codes in their order, with the meaning that each states."""
    plain = " ".join(invoke("batch", "--help").stdout.split())
    told = "; ".join(f"{code} {meaning}" for code, _, meaning in ENDINGS)
    assert f"Exit codes, the first that fits: {told}." in plain


def test_every_code_is_used() -> None:
    """Some command can end with each code, so that none is only promised."""
    table = Path(str(exit_codes.__file__))
    used = {
        node.id
        for path in table.parent.glob("*.py")
        if path != table
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name)
    }
    unused = {code.name for code in exit_codes.ExitCode} - used
    assert not unused, f"give {unused} to an error in EXIT_CODES of cli/errors.py, or remove it"


def test_only_the_table_has_numbers() -> None:
    """No command ends with a number of its own: every exit code is stated once."""
    numbers = [
        f"{path.name}:{node.lineno}"
        for path in sorted(Path(str(exit_codes.__file__)).parent.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in ("exit", "Exit")
        and any(isinstance(one, ast.Constant) for one in node.args)
    ]
    assert numbers == []


def test_a_long_silence_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A service that has been silent for long is reported in a line, with when it is asked next."""
    Progress().event(ServiceSilent(1830.0, "connection reset while waiting for the response", 61.5))
    assert capsys.readouterr().err == (
        "no valid response for 30 minutes; the task is not affected. Next poll in 62 s: "
        "connection reset while waiting for the response\n"
    )


def test_the_first_long_wait_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, the first long wait for a task is reported, with what shortens it."""
    progress = Progress()
    progress.waiting(30.0)  # before a retry, which is reported as such
    progress.event(Submitted(Task(id="task-1")))
    for seconds in (0.2, 30.0, 60.0):
        progress.waiting(seconds)
    assert capsys.readouterr().err == "next query in 30 s (--poll-interval sets the pace)\n"


def test_short_waits_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A wait of less than a second is not shown as none."""
    progress = Progress()
    progress.event(WillRetry("poll", "connection reset", 0.25, 1))
    progress.event(Throttled("create", 0.4))
    progress.event(ServiceSilent(1800.0, "connection reset", 0.5))
    assert re.findall(r"[\d.]+ s\b", capsys.readouterr().err) == ["0.25 s", "0.4 s", "0.5 s"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_bare_link_that_has_expired(invoke: Invoke, status: int) -> None:
    """No command is named that would only fail again."""
    with CrookedService(always(reply(status, {}))) as service:
        url = f"{service.base_url}/media/horse.png"
        ended = invoke("download", url, "-o", "a.png", "--json", env=service.settings)
    assert ended.exit_code == 6
    assert "to resume" not in ended.stderr
    assert "ask for the task by its id" in ended.stderr
    assert "command" not in json.loads(ended.stdout)["error"]


def test_a_result_that_has_expired(invoke: Invoke) -> None:
    """Where the service has been asked for a fresh link, asking once more is not advised."""

    def answer(_: str, path: str) -> bytes:
        if path.startswith("/media/"):
            return reply(404, {})
        return reply(200, completed(service.base_url))

    with CrookedService(answer) as service:
        ended = invoke("download", "task-1", "-o", "a.png", env=service.settings)
    assert ended.exit_code == 6
    assert "to resume" not in ended.stderr
    assert "The client asked for a fresh link and got none that works" in ended.stderr
