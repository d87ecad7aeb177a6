"""Signals that end programs end the command as the first Ctrl-C does, with the shell's code."""

from __future__ import annotations

import json
import shlex
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from processes import interrupt
from sampling import diagonal

from .conftest import Start
from .crooked_service import Answer, CrookedService, always, record, reply
from .test_interrupts import CREATE, read_until

if not hasattr(signal, "SIGHUP"):  # pragma: no cover  Windows
    pytest.skip("there are no such signals", allow_module_level=True)

TEXT = ("text", "textg-2.5-pro", "A horse")
SIGNALS = [signal.SIGTERM, signal.SIGHUP]
INTERRUPTIONS = [signal.SIGINT, *SIGNALS]
OTHERS = [*SIGNALS, signal.SIGINT]
ENDING = [*INTERRUPTIONS, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU]


class Held:
    """A service that answers a request of one method when it is told to."""

    def __init__(self, method: str, body: object) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()
        self._method = method
        self._body = body

    def answer(self, method: str, _path: str) -> bytes:
        if method == self._method:
            self.asked.set()
            self.go_on.wait(20)
            return reply(200, self._body)
        return reply(200, record(status="processing"))


@contextmanager
def held(method: str = "POST", body: object = None) -> Generator[tuple[CrookedService, Held]]:
    holding = Held(method, record() if body is None else body)
    answer: Answer = holding.answer
    with CrookedService(answer) as service:
        try:
            yield service, holding
        finally:
            holding.go_on.set()


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", [CREATE, ("run", *CREATE[1:])])
def test_a_create_is_waited_for(start: Start, number: signal.Signals, words: tuple[str]) -> None:
    """During a create it waits for the response; the id and how to resume are on stderr."""
    with held() as (service, holding):
        process = start(*words, "--json", env=service.settings)
        assert holding.asked.wait(20)
        interrupt(process, number)
        waiting = read_until(process, "muybridge: waiting for the response to a paid request")
        holding.go_on.set()
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, service.posts) == (128 + number, 1)
    assert waiting.endswith(f"; send {number.name} again to stop at once\n")
    assert "task task-1\n" in stderr
    assert (
        f"error: Interrupted by {number.name}. Task task-1 continues; you can resume it." in stderr
    )
    assert "to resume: muybridge wait '{" in stderr
    told = json.loads(stdout)
    assert told["error"]["exit_code"] == process.returncode
    assert shlex.split(told["error"]["command"])[:2] == ["muybridge", "wait"]
    assert told["task"]["id"] == "task-1"


@pytest.mark.parametrize(("first", "second"), diagonal(INTERRUPTIONS, OTHERS))
def test_a_second_one_ends_at_once(
    start: Start, first: signal.Signals, second: signal.Signals
) -> None:
    """A second one of any kind ends at once, and says that it may have been accepted."""
    with held() as (service, holding):
        process = start(*CREATE, env=service.settings)
        assert holding.asked.wait(20)
        interrupt(process, first)
        read_until(process, "muybridge: waiting for the response")
        interrupt(process, second)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == (4 if second == signal.SIGINT else 128 + second)
    assert "may have been accepted" in stderr
    assert service.posts == 1


@pytest.mark.parametrize(
    ("number", "words"),
    diagonal(ENDING, [("get", "task-1"), ("download", "task-1", "-o", "a.png")]),
)
def test_a_query_ends_at_once(start: Start, number: signal.Signals, words: tuple[str, ...]) -> None:
    """While a task is queried once it ends at once, and names the same command."""
    with held("GET", record(status="processing")) as (service, holding):
        process = start(*words, env=service.settings)
        assert holding.asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == (5 if number == signal.SIGINT else 128 + number)
    resuming = shlex.split(stderr.rpartition("to resume: ")[2])
    assert resuming == ["muybridge", words[0], *words[2:], words[1]]


@pytest.mark.parametrize(("number", "is_link"), diagonal(ENDING, [True, False]))
def test_a_download_ends_at_once(start: Start, number: signal.Signals, is_link: bool) -> None:  # noqa: FBT001  a parameter
    """While a result is downloaded it ends at once, and names the command that resumes."""
    asked, go_on = threading.Event(), threading.Event()
    link = ""

    def answer(_method: str, path: str) -> bytes:
        if path.startswith("/v1/"):
            return reply(200, record(status="completed", image_url=link))
        asked.set()
        go_on.wait(20)
        return reply(500, {})

    with CrookedService(answer) as service:
        link = f"{service.settings['MUYBRIDGE_BASE_URL']}/a.png"
        what = link if is_link else "task-1"
        process = start("download", what, "-o", "a.png", env=service.settings)
        assert asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=20)
        go_on.set()
    assert process.returncode == (5 if number == signal.SIGINT else 128 + number)
    resuming = shlex.split(stderr.rpartition("to resume: ")[2])
    assert resuming == ["muybridge", "download", "-o", "a.png", what]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", [("wait", "task-1"), ("run", *CREATE[1:])])
def test_a_poll_ends_at_once(start: Start, number: signal.Signals, words: tuple[str]) -> None:
    """While a result is asked for it ends at once, and says how to resume."""
    with held("GET", record(status="processing")) as (service, holding):
        process = start(*words, "--poll-interval", "0.05", env=service.settings)
        assert holding.asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "to resume: muybridge wait" in stderr
    assert service.posts == (words[0] == "run")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_text_request_ends_at_once(start: Start, number: signal.Signals) -> None:
    """A text request is interrupted, and may have been charged."""
    with held() as (service, holding):
        process = start(*TEXT, env=service.text_settings)
        assert holding.asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "may have been charged" in stderr
    assert service.posts == 1


@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_a_deletion_ends_at_once(start: Start, number: signal.Signals) -> None:
    """A deletion that is interrupted may have been carried out, and is not retried."""
    with held("DELETE", {"code": "0"}) as (service, holding):
        process = start("asset", "delete", "asset-1", env=service.settings)
        assert holding.asked.wait(20)
        interrupt(process, number)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == (4 if number == signal.SIGINT else 128 + number)
    assert "may have been" in stderr
    assert len(service.requests) == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_between_two_tries_nothing_was_sent(start: Start, number: signal.Signals) -> None:
    """Between two attempts that never reached the service it says that nothing was sent."""
    with CrookedService(always(b"")) as gone:
        settings = gone.settings
    process = start(*CREATE, env=settings)
    read_until(process, "retrying create")
    interrupt(process, number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert f"error: Interrupted by {number.name}. Nothing was sent." in stderr


def test_under_nohup_a_hangup_is_ignored(start: Start) -> None:
    """SIGHUP stays ignored where the command inherits that, as under nohup."""
    with held() as (service, holding):
        process = start(*CREATE, env=service.settings, under=["nohup"])
        assert holding.asked.wait(20)
        interrupt(process, signal.SIGHUP)
        holding.go_on.set()
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (0, "task-1\n")
    assert "waiting for the response" not in stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_validate_ends_quietly(start: Start, number: signal.Signals) -> None:
    """Where nothing is at stake it ends without a traceback."""
    process = start("validate")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"family": "imga", "body": {}}\n' * 2000)
    process.stdin.flush()
    process.stdout.readline()
    interrupt(process, number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert stderr == f"error: Interrupted by {number.name}.\n"


@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_before_the_command_begins(start: Start, number: signal.Signals) -> None:
    """While the command line is still being read it ends with the shell's exit code."""
    program = f"""
import signal
import subprocess
from muybridge.cli import commands, main
commands.Muybridge.parse_args = lambda *_: signal.raise_signal({int(number)})
main()
"""
    process = start(program=program)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (128 + number, "")
    assert stderr == "\nerror: Interrupted.\n"


def test_among_the_last_lines(start: Start) -> None:
    """Signals after the one that ends the command do not keep it from saying how to resume."""
    program = """
import signal
import subprocess
from muybridge.cli import errors, main
say = errors.say

def struck(line):
    signal.raise_signal(signal.SIGTERM)
    say(line)

errors.say = struck
main()
"""
    with held("GET", record(status="processing")) as (service, holding):
        process = start(
            "wait", "task-1", "--poll-interval", "0.05", env=service.settings, program=program
        )
        assert holding.asked.wait(20)
        interrupt(process, signal.SIGTERM)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Task task-1 continues; you can resume it." in stderr
    assert "to resume: muybridge wait" in stderr
