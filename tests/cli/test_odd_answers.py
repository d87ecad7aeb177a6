"""What the service says is shown safely: on one line, quoted where it is a command's argument."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest

from muybridge_protocol.records.tasks import as_task

from .conftest import Invoke
from .crooked_service import CrookedService, always, record, reply

CREATE = ("create", "imgb", "--model", "imgb-2", "--prompt", "A horse")
RUN = ("run", *CREATE[1:], "--poll-interval", "0.01")
PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 9
FAKE = "no\nto resume: muybridge create evil\r\x1b[2J\u2028\x85end \ud83d"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        *((CREATE, status) for status in (200, 400, 402, 429, 500)),
        *((words, status) for words in (RUN, ("get", "task-1"), ("wait", "task-1"))
          for status in (200, 400, 402)),
    ],
)  # fmt: skip
def test_an_error_stays_on_its_line(invoke: Invoke, words: tuple[str, ...], status: int) -> None:
    """An error text with line breaks and escape sequences is one line, wherever it is shown."""
    body = record(status="failed", error=FAKE) if status == 200 else {"error": FAKE}
    answer = reply(status, body, "Retry-After: 999")
    with CrookedService(always(answer)) as service:
        ended = invoke(*words, env=service.settings)
    assert ended.exit_code or words[0] == "get"
    assert "no to resume: muybridge create evil" in ended.output
    for line in (ended.stdout + ended.stderr).split("\n"):
        assert line.isprintable()
        assert not line.startswith(("to resume", "carry on: muybridge create"))


IDS = [
    *("a/b|c", "task 1; rm -rf ~", "$(id)", "日本", "\u202ex", " "),
    *("-x", "https://a.b/c", '{"a":1}'),
]


@pytest.mark.parametrize("task_id", IDS, ids=ascii)
def test_an_odd_id_can_be_pasted(invoke: Invoke, task_id: str) -> None:
    """The command that resumes is quoted for a shell, and asks for the very task."""
    asked: list[str] = []

    def answer(method: str, path: str) -> bytes:
        asked.append(unquote(path))
        if method == "POST":
            return reply(200, record(id=task_id))
        return reply(200, record(id=task_id, status="completed", image_url="https://a.b/c.png"))

    with CrookedService(answer) as service:
        created = invoke(*CREATE, "--poll-interval", "0.01", env=service.settings)
        assert created.exit_code == 0
        assert as_task(created.stdout.rstrip("\n")).id == task_id
        command = shlex.split(created.stderr.rpartition(": muybridge ")[2])
        ended = invoke(*command, env=service.settings)
        got = invoke("get", "--", created.stdout.rstrip("\n"), env=service.settings)
        assert (ended.exit_code, got.exit_code) == (0, 0)
    assert asked[1:] == [f"/v1/result/{task_id}"] * 2
    assert (created.output + ended.output + got.output).replace("\n", "").isprintable()


def test_a_link_before_the_end(invoke: Invoke) -> None:
    """A task that is under way is waited for further, even if its record has a link already."""
    under_way = reply(200, record(status="processing", image_url="https://a.b/c.png"))
    with CrookedService(always(under_way)) as service:
        ended = invoke(*RUN, "--timeout", "0.1", "-o", "a.png", env=service.settings)
    assert ended.exit_code == 5
    assert "to resume: muybridge wait " in ended.stderr


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_link_that_is_not_downloaded(invoke: Invoke, tmp_path: Path, host: str) -> None:
    """A paid result on a private host is had with the option that the error names."""

    def answer(_: str, path: str) -> bytes:
        if path.startswith("/media/"):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n"
            return head + PNG
        link = f"http://{host}:{port}/media/絵.png?s=1"
        return reply(200, record(status="completed", image_url=link))

    with CrookedService(answer) as service:
        port = service.base_url.rpartition(":")[2]
        # The service by another name than its media.
        other = "127.0.0.1" if host == "localhost" else "localhost"
        settings = {**service.settings, "MUYBRIDGE_BASE_URL": f"http://{other}:{port}"}
        for words in (("download", "task-1", "-o", "a.png"), ("wait", "task-1", "-o", "a.png")):
            refused = invoke(*words, "--json", env=settings)
            told = json.loads(refused.stdout)["error"]
            assert (refused.exit_code, told["type"]) == (6, "DownloadFailed")
            assert "use --allow-insecure-downloads" in told["message"]
            assert "paid for" in told["message"]
            assert "task-1" in told["command"]
        assert not [line for line in service.requests if "/media/" in line]
        for words in (("download", "task-1"), ("wait", "task-1")):
            ended = invoke(*words, "-o", "a.png", "--allow-insecure-downloads", env=settings)
            assert (ended.exit_code, ended.stdout) == (0, "a.png\n")
            assert (tmp_path / "a.png").read_bytes() == PNG
            (tmp_path / "a.png").unlink()
