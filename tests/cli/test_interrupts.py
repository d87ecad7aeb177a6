"""Ctrl-C, at each point where it means something else."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading

import pytest

from processes import environment, interrupt

from .conftest import Start
from .crooked_service import CrookedService, always, record, reply

CREATE = ("create", "imgb", "--model", "imgb-2", "--prompt", "A horse")
SLOW = ("run", "imgb", "--model", "imgb-2", "--prompt", "A horse [slow:100]")


def read_until(process: subprocess.Popen[str], beginning: str) -> str:
    """Return the next line on stderr that begins so."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"stderr ended without {beginning!r}")


def test_while_waiting_it_keeps_the_task(start: Start, settings: dict[str, str]) -> None:
    """Ctrl-C while waiting exits with 5, and the command that it names brings the result."""
    process = start(*SLOW, "--poll-interval", "0.05", "-o", "it's.png", env=settings)
    task = read_until(process, "task ").split()[1]
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (5, "")
    assert f"Task {task} continues; you can resume it." in stderr
    words = shlex.split(stderr.rpartition("to resume: ")[2])
    assert words[0] == "muybridge"
    again = start(*words[1:], env=settings)
    stdout, _ = again.communicate(timeout=20)
    assert (again.returncode, stdout) == (0, "it's.png\n")


def test_it_is_told_in_json(start: Start, settings: dict[str, str]) -> None:
    """With --json Ctrl-C still leaves exactly one document, with the task's token."""
    process = start(*SLOW, "--poll-interval", "0.05", "--json", env=settings)
    read_until(process, "task ")
    interrupt(process)
    stdout, _ = process.communicate(timeout=20)
    told = json.loads(stdout)
    assert process.returncode == told["error"]["exit_code"] == 5
    assert told["error"]["type"] == "Interrupted"
    assert json.loads(told["task"]["token"])["id"] == told["task"]["id"]


def test_on_an_embedded_service_nothing_is_left(start: Start) -> None:
    """Ctrl-C in `run --local` exits with 130: the tasks ended with the service."""
    process = start(*SLOW, "--local")
    read_until(process, "task ")
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (130, "")
    assert "to resume" not in stderr


def test_before_anything_was_sent_nothing_is_lost(start: Start) -> None:
    """Ctrl-C between two attempts that never reached the service exits with 3."""
    with CrookedService(always(b"")) as service:
        settings = service.settings
    process = start(*CREATE, env=settings)
    read_until(process, "retrying create")
    interrupt(process)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "error: Interrupted." in stderr


def test_it_is_held_until_the_id_is_known(start: Start) -> None:
    """The first Ctrl-C during a create waits for the response, and exits with 5 and the id."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(*_: str) -> bytes:
        asked.set()
        go_on.wait(20)
        return reply(200, record())

    with CrookedService(answer) as service:
        process = start(*CREATE, env=service.settings)
        assert asked.wait(20)
        interrupt(process)
        read_until(process, "muybridge: waiting for the response")
        go_on.set()
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, service.posts) == (5, "", 1)
    assert "task task-1\n" in stderr
    assert "to resume: muybridge wait '{" in stderr


def test_a_second_one_gives_the_reply_up(start: Start) -> None:
    """A second Ctrl-C during a create exits with 4: it may have been accepted."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(*_: str) -> bytes:
        asked.set()
        go_on.wait(20)
        return reply(200, record())

    with CrookedService(answer) as service:
        process = start(*CREATE, "--json", env=service.settings)
        assert asked.wait(20)
        interrupt(process)
        read_until(process, "muybridge: waiting for the response")
        interrupt(process)
        stdout, stderr = process.communicate(timeout=20)
        go_on.set()
    assert process.returncode == json.loads(stdout)["error"]["exit_code"] == 4
    assert "may have been accepted" in stderr
    assert service.posts == 1


def test_validate_ends_quietly(start: Start) -> None:
    """Ctrl-C where nothing is at stake exits with 130, without a traceback."""
    process = start("validate")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"family": "imga", "body": {}}\n' * 2000)
    process.stdin.flush()
    process.stdout.readline()
    interrupt(process)
    _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (130, "error: Interrupted.\n")


def test_serve_ends_well(start: Start) -> None:
    """`serve` runs until Ctrl-C and exits with 0; its export line is all that is on stdout."""
    process = start("serve", "--port", "0", "--speed", "50")
    assert process.stdout is not None
    words = shlex.split(process.stdout.readline())
    settings = dict(word.split("=", 1) for word in words[1:])
    asked = start("get", "no-such-task", env=settings)
    _, stderr = asked.communicate(timeout=20)
    assert (asked.returncode, "does not know the task" in stderr) == (3, True)
    interrupt(process)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, words[0]) == (0, "", "export")
    assert stderr.startswith("serving on http://127.0.0.1:")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_while_it_starts_it_ends_quietly(words: tuple[str, ...]) -> None:
    """Ctrl-C while the command is loaded exits with 130, and says that nothing was sent."""
    program = (
        "import sys\n"
        "from muybridge.cli import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'muybridge.cli.commands': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "main()"
    )
    ended = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", program, *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "error: Interrupted. Nothing was sent.\n")
    if words:
        assert json.loads(ended.stdout)["error"]["exit_code"] == 130
    else:
        assert ended.stdout == ""
