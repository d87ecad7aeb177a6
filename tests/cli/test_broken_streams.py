"""Streams that are closed, full or read no more: what was paid for is never lost with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from processes import environment
from sampling import diagonal

from .conftest import Start
from .crooked_service import CrookedService, always, record, reply

CREATE = ("create", "imgb", "--model", "imgb-2", "--prompt", "A horse")
RUN = ("run", *CREATE[1:], "--poll-interval", "0.01")
PAID = [CREATE, (*CREATE, "--json"), RUN, (*RUN, "--json")]
MISTAKES = [(*CREATE, "--model", "none"), ("create", "--none"), ("--none",)]
PRINTING = [("--help",), ("--version",), ("models",), ("create", "-h")]
REASONS = {">/dev/full": "No space left on device", ">&-": "Bad file descriptor"}

LINK = "https://results.example/horse.png"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def answer(method: str, _: str) -> bytes:
    done = record(status="completed", image_url=LINK)
    return reply(200, record() if method == "POST" else done)


def redirected(
    redirection: str, *words: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command with its streams redirected as a shell does it."""
    shell = ("/bin/sh", "-c", f'exec "$@" {redirection}', "sh")
    return subprocess.run(  # noqa: S603  our own command
        [*shell, sys.executable, "-m", "muybridge", *words],
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def check_answer(stdout: str, words: tuple[str, ...]) -> None:
    """Check that *stdout* holds the one answer of a command that went well."""
    if "--json" in words:
        told = json.loads(stdout)
        assert (told["ok"], told["task"]["id"]) == (True, "task-1")
    else:
        assert stdout == ("task-1\n" if words[0] == "create" else f"{LINK}\n")


@pytest.mark.parametrize(("words", "redirection"), diagonal(PAID, ["2>/dev/full", "2>&-"]))
def test_without_stderr_the_answer_is_still_told(words: tuple[str, ...], redirection: str) -> None:
    """Where nothing can be written to stderr, the work is done and stdout holds the answer."""
    with CrookedService(answer) as service:
        ended = redirected(redirection, *words, env=service.settings)
    assert (ended.returncode, ended.stderr, service.posts) == (0, "", 1)
    check_answer(ended.stdout, words)


@pytest.mark.parametrize("words", PAID, ids=" ".join)
def test_the_reader_of_stderr_may_go_away(start: Start, words: tuple[str, ...]) -> None:
    """When the reader of stderr goes away during the create, the task is followed to its end."""

    def leave(method: str, path: str) -> bytes:
        if method == "POST":
            assert process.stderr is not None
            process.stderr.close()
        return answer(method, path)

    with CrookedService(leave) as service:
        process = start(*words, env=service.settings)
        assert process.stdout is not None
        stdout = process.stdout.read()
        process.stderr = None
        code = process.wait(20)
    assert (code, service.posts) == (0, 1)
    check_answer(stdout, words)


@pytest.mark.parametrize("words", PAID, ids=" ".join)
def test_the_terminal_may_be_closed(start: Start, words: tuple[str, ...]) -> None:
    """When the terminal with the spinner is closed during the create, the task is followed too."""
    ours, theirs = os.openpty()

    def close(method: str, path: str) -> bytes:
        if method == "POST":
            os.close(ours)
        return answer(method, path)

    with CrookedService(close) as service:
        process = start(*words, env={"TERM": "xterm", **service.settings}, stderr=theirs)
        os.close(theirs)
        stdout, _ = process.communicate(timeout=20)
    assert (process.returncode, service.posts) == (0, 1)
    check_answer(stdout, words)


def test_an_error_is_told_on_stdout_without_stderr() -> None:
    """Where stderr is full, an error after the creation is still one document, and exits with 5."""

    def refuse(method: str, _: str) -> bytes:
        return reply(200, record()) if method == "POST" else reply(401, {"error": "no"})

    with CrookedService(refuse) as service:
        ended = redirected("2>/dev/full", *RUN, "--json", env=service.settings)
    told = json.loads(ended.stdout)
    assert ended.returncode == told["error"]["exit_code"] == 5
    assert told["task"]["id"] == "task-1"


@pytest.mark.parametrize(("words", "redirection"), diagonal(MISTAKES, ["2>/dev/full", "2>&-"]))
def test_a_mistake_exits_2_without_stderr(words: tuple[str, ...], redirection: str) -> None:
    """A mistake in the command line exits with 2, whether or not it can be told."""
    ended = redirected(redirection, *words)
    assert (ended.returncode, ended.stdout) == (2, "")


@pytest.mark.parametrize(("words", "redirection"), diagonal(PAID, REASONS))
def test_an_answer_that_cannot_be_printed_exits_6(words: tuple[str, ...], redirection: str) -> None:
    """Where stdout cannot be written to, the task's id and what carries on are on stderr."""
    with CrookedService(answer) as service:
        ended = redirected(redirection, *words, env=service.settings)
    assert (ended.returncode, service.posts) == (6, 1)
    error, command = ended.stderr.splitlines()[-2:]
    assert error == f"error: stdout: {REASONS[redirection]}. Task task-1 is not affected."
    assert command.startswith("to resume: muybridge wait")
    assert "Traceback" not in ended.stderr


ONLY_ON_STDOUT = [
    (*RUN, "-o", "-"),
    ("download", "task-1", "-o", "-"),
    ("text", "textg-2.5-pro", "How many legs?"),
    ("text", "textg-2.5-pro", "How many legs?", "--json"),
]


@pytest.mark.parametrize(
    ("words", "redirection"), diagonal(ONLY_ON_STDOUT, [">&-", "</dev/null >&0"])
)
def test_nothing_is_paid_for_a_stdout_that_is_closed(
    words: tuple[str, ...], redirection: str
) -> None:
    """What would be only on stdout is not asked for where stdout cannot be written to."""
    with CrookedService(answer) as service:
        settings = {**service.settings, **service.text_settings}
        ended = redirected(redirection, *words, env=settings)
    assert (ended.returncode, service.requests) == (2, [])
    assert "stdout, which cannot be written to. Nothing was sent." in ended.stderr


def test_an_error_keeps_its_code_without_stdout() -> None:
    """An error whose document cannot be printed keeps its exit code, and is reported on stderr."""
    with CrookedService(always(reply(200, record(status="failed", error="no")))) as service:
        ended = redirected(">/dev/full", *CREATE, "--json", env=service.settings)
    assert (ended.returncode, service.posts) == (1, 1)
    assert "error: Task task-1 failed: no." in ended.stderr
    assert "Traceback" not in ended.stderr


def test_nothing_can_be_told_at_all() -> None:
    """With both streams closed a paid task still does not end as if it had not been sent."""
    with CrookedService(answer) as service:
        ended = redirected(">&- 2>&-", *CREATE, env=service.settings)
    assert (ended.returncode, service.posts) == (6, 1)


@pytest.mark.parametrize(("words", "redirection"), diagonal(PRINTING, REASONS))
def test_what_only_prints_exits_6_without_stdout(words: tuple[str, ...], redirection: str) -> None:
    """Help and tables that cannot be printed exit with 6 and one line on stderr."""
    ended = redirected(redirection, *words)
    assert ended.returncode == 6
    assert ended.stderr.startswith("error: stdout: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_verdicts_that_cannot_be_printed_exit_6(tmp_path: Path, redirection: str) -> None:
    """`validate` does not end as if it had told its verdicts."""
    requests = tmp_path / "requests.jsonl"
    requests.write_text('{"family": "imga", "body": {}}\n')
    ended = redirected(redirection, "validate", str(requests))
    assert ended.returncode == 6
    assert ended.stderr.startswith("error: stdout: ")
    assert ended.stderr.count("\n") == 1


def test_help_ends_quietly_when_its_reader_has_gone(start: Start) -> None:
    """When the reader of the help has gone, the command ends without a word and with 141."""
    process = start("--help")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (141, "")
