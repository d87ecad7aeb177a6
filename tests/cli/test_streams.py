"""What is on stdout and on stderr, on a terminal and elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muybridge import __version__
from muybridge.extras import install_command
from processes import environment

from .conftest import Invoke, Start
from .crooked_service import CrookedService, always, record, reply

RUN = ("run", "imgb", "--model", "imgb-2", "--prompt", "A horse", "--poll-interval", "0.01")

SIGNATURE = b"\x89PNG\r\n\x1a\n"
EVIL = "\x1b[31mred\x07 [bold]no markup[/bold]\r\nerror: forged"


def on_a_terminal(
    start: Start,
    stream: str,
    *words: str,
    env: dict[str, str],
    see: Callable[[bytes], None] = lambda _: None,
) -> tuple[str, str, int]:
    """Return what the command writes to a terminal that is *stream*, to the other one, its code.

    *see* is called with what has been written so far.
    """
    ours, theirs = os.openpty()
    process = start(*words, env={"TERM": "xterm", "COLUMNS": "80", **env}, **{stream: theirs})
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
            see(seen)
    except OSError:  # the terminal's other end was closed
        pass
    os.close(ours)
    stdout, stderr = process.communicate(timeout=20)
    return seen.decode(), stdout or stderr or "", process.returncode


def test_data_goes_to_stdout_and_the_rest_to_stderr(
    start: Start, settings: dict[str, str], tmp_path: Path
) -> None:
    """A real process prints the path alone on stdout, and plain lines without colour on stderr."""
    process = start(*RUN, "-o", "pictures/", env=settings)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 0
    (saved,) = (tmp_path / "pictures").iterdir()
    assert stdout == f"pictures/{saved.name}\n"
    lines = stderr.splitlines()
    assert lines[0] == "sending the imgb request"
    assert lines[1] == f"task {saved.stem}"
    assert lines[-1] == f"saved pictures/{saved.name} ({saved.stat().st_size:,} bytes)"
    assert "\x1b" not in stderr


def test_without_a_path_the_url_is_printed(invoke: Invoke, settings: dict[str, str]) -> None:
    """`run` without -o prints the URL on stdout, and on stderr until when it works."""
    ended = invoke(*RUN, env=settings)
    assert ended.stdout.startswith(settings["MUYBRIDGE_BASE_URL"])
    assert "the URL works until 2" in ended.stderr


@pytest.mark.parametrize("status", ["queued", "processing", "failed", "cancelled", "completed"])
def test_get_says_when_a_url_expires(invoke: Invoke, status: str) -> None:
    """`get` names the time at which a URL expires only if the task has one."""
    is_completed = status == "completed"
    link = "https://cdn.example.com/a.png" if is_completed else None
    found = record(status=status, model="imgb-2", created=1_795_000_000, image_url=link)
    with CrookedService(always(reply(200, found))) as service:
        plain = invoke("get", "task-1", env=service.settings)
        told = json.loads(invoke("get", "task-1", "--json", env=service.settings).stdout)
    assert ("URL works until" in plain.stdout) is is_completed
    assert told["expires_at"] == (1_795_000_000 + 86_400 if is_completed else None)


def test_create_prints_the_id_alone(invoke: Invoke, settings: dict[str, str]) -> None:
    """`create` prints the bare id for scripts, and the command that waits for it on stderr."""
    ended = invoke("create", *RUN[1:6], env=settings)
    assert ended.stdout.startswith("task-")
    assert f"task {ended.stdout}" in ended.stderr
    assert "to resume: muybridge wait '{" in ended.stderr


def test_json_is_one_document_and_the_id_is_still_on_stderr(
    invoke: Invoke, settings: dict[str, str]
) -> None:
    """With --json stdout holds exactly one document, with the records in the wire's words."""
    ended = invoke(*RUN, "--json", "-o", "a.png", env=settings)
    told = json.loads(ended.stdout)
    assert list(told) == ["ok", "task", "result", "expires_at", "path"]
    assert told["task"]["object"] == "image"
    assert told["result"]["object"] == "image.generation"
    assert told["expires_at"] == told["result"]["created"] + 86_400
    assert f"task {told['task']['id']}\n" in ended.stderr


def test_a_token_is_waited_for_anywhere(invoke: Invoke, settings: dict[str, str]) -> None:
    """The token of `create --json` is what `wait`, `get` and `download` take."""
    token = json.loads(invoke("create", *RUN[1:6], "--json", env=settings).stdout)["task"]["token"]
    assert invoke("wait", token, "--poll-interval", "0.01", env=settings).exit_code == 0
    assert "status          completed" in invoke("get", token, env=settings).stdout
    ended = invoke("download", token, "-o", "a.png", env=settings)
    assert (ended.exit_code, ended.stdout) == (0, "a.png\n")


def test_a_url_is_downloaded(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """`download URL` saves what a link leads to; in a folder the link's own name is taken."""
    url = invoke(*RUN, env=settings).stdout.strip()
    ended = invoke("download", url, "-o", ".", "--json", env=settings)
    assert json.loads(ended.stdout) == {"ok": True, "path": url.rpartition("/")[2]}
    assert (tmp_path / url.rpartition("/")[2]).exists()


@pytest.mark.parametrize("words", [("get", "task-1"), ("wait", "task-1")])
def test_what_the_service_says_is_printed_harmlessly(
    invoke: Invoke, words: tuple[str, ...]
) -> None:
    """No control character of the service reaches a terminal, and its markup is shown as it is."""
    evil = record(status="failed", error=EVIL, model=EVIL)
    with CrookedService(always(reply(200, evil))) as service:
        ended = invoke(*words, env=service.settings)
    assert "[bold]no markup[/bold]" in ended.output
    assert not {"\x1b", "\x07", "\r"} & set(ended.output)
    assert "\nerror: forged" not in ended.output


def test_a_terminal_sees_a_spinner(start: Start) -> None:
    """On a terminal stderr shows the status, the time and the next query; stdout stays clean."""
    replies = iter([*([record(status="[bold]odd[/bold]")] * 3), record(status="failed", error="x")])

    def answer(_method: str, _path: str) -> bytes:
        return reply(200, next(replies))

    with CrookedService(answer) as service:
        seen, stdout, code = on_a_terminal(
            start, "stderr", "wait", "task-1", "--poll-interval", "0.3", env=service.settings
        )
    assert (code, stdout) == (1, "")
    assert re.search(r"\[bold\]odd\[/bold\], \d+ s, next query in \d+ s", seen)


def test_a_terminal_sees_a_download(start: Start) -> None:
    """While a result is fetched, the spinner says so, even before its first byte has arrived."""
    shown, go_on = threading.Event(), threading.Event()
    link = ""

    def answer(_method: str, path: str) -> bytes:
        if path.startswith("/v1/"):
            return reply(200, record(status="completed", image_url=link))
        go_on.wait(10)
        return reply(200, "\x89PNG", kind="image/png")

    def see(seen: bytes) -> None:
        if b"downloading, " in seen and not shown.is_set():
            shown.set()
            go_on.set()

    with CrookedService(answer) as service:
        link = f"{service.settings['MUYBRIDGE_BASE_URL']}/a.png"
        words = ("wait", "task-1", "-o", "a.png", "--poll-interval", "0.1")
        on_a_terminal(start, "stderr", *words, env=service.settings, see=see)
    assert shown.is_set()


def test_no_color_is_honoured(start: Start) -> None:
    """With NO_COLOR a table on a terminal has no colour."""
    seen, _, _ = on_a_terminal(start, "stdout", "models", "imga", env={"NO_COLOR": "1"})
    assert "\x1b[3" not in seen
    assert "imga-pro-stable" in seen


def test_tables_fit_a_terminal(start: Start) -> None:
    """On a terminal of 80 columns no line is longer, and nothing is cut off."""
    seen, _, code = on_a_terminal(start, "stdout", "models", env={"NO_COLOR": "1", "TERM": "dumb"})
    assert code == 0
    assert max(map(len, seen.replace("\r", "").split("\n"))) <= 80
    assert "…" not in seen


def words_of(shown: str) -> set[str]:
    return set(re.sub(r"\x1b\[[0-9;]*m", "", shown).split())


@pytest.mark.parametrize("words", [("families",), ("models",), ("estimate", "requests.jsonl")])
def test_tables_break_no_word(start: Start, tmp_path: Path, words: tuple[str, ...]) -> None:
    """On a terminal of 40 columns each word of a table is whole, and no line is longer."""
    item = {"family": "imgb", "model": "imgb-2", "prompt": "a horse"}
    (tmp_path / "requests.jsonl").write_text(json.dumps(item))
    wide, _, _ = on_a_terminal(start, "stdout", *words, env={"COLUMNS": "400"})
    narrow, _, code = on_a_terminal(start, "stdout", *words, env={"COLUMNS": "40"})
    assert code == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", narrow).replace("\r", "").split("\n")
    assert [line for line in lines if len(line) > 40] == []
    headings = {"Family", "Model", "Field", "Version"}  # of first columns, which lists lack
    missing = {word for word in words_of(wide) - headings if word not in narrow}
    assert {word for word in missing if len(word) <= 38} == set()


def test_a_broken_pipe_ends_quietly(start: Start, tmp_path: Path) -> None:
    """When the reader of stdout has gone, the command ends without a word."""
    (tmp_path / "requests.jsonl").write_text('{"family": "imga", "body": {}}\n' * 5000)
    process = start("validate", "requests.jsonl")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=20)
    assert (process.returncode, stderr) == (141, "")


def test_warnings_are_plain_lines(invoke: Invoke, settings: dict[str, str]) -> None:
    """A setting without effect is reported in one plain line, and in the document."""
    words = (*RUN, "--size", "1024x1024", "--ratio", "1:1", "--json")
    ended = invoke(*words, env=settings)
    assert (
        ended.stderr.splitlines()[0]
        == "warning: ratio: is ignored with size: the exact size overrides it"
    )
    assert json.loads(ended.stdout)["warnings"] == [
        "ratio: is ignored with size: the exact size overrides it"
    ]


MISLEADS = "the content of horse.jpg is PNG, not JPG; the file keeps that name"


@pytest.mark.parametrize(
    ("given", "saved", "warning"),
    [
        ("out.bin", "out.bin", None),
        ("horse", "horse.png", None),
        ("horse.jpg", "horse.jpg", f"warning: {MISLEADS}"),
    ],
)
def test_a_name_that_is_given_is_the_name(
    invoke: Invoke, settings: dict[str, str], given: str, saved: str, warning: str | None
) -> None:
    """`-o` with a suffix is the file's name, and a warning says if the suffix misleads."""
    ended = invoke(*RUN, "-o", given, env=settings)
    assert (ended.exit_code, ended.stdout) == (0, f"{saved}\n")
    lines = [line for line in ended.stderr.splitlines() if line.startswith("warning")]
    assert lines == ([] if warning is None else [warning])


def test_a_result_on_stdout(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """`-o -` writes the file to stdout and nothing else, for `run`, `wait` and `download`."""
    made = invoke(*RUN, "-o", "-", env=settings)
    assert (made.exit_code, made.stdout_bytes[:8]) == (0, SIGNATURE)
    assert f"wrote {len(made.stdout_bytes):,} bytes to stdout" in made.stderr
    task = invoke("create", *RUN[1:-2], env=settings).stdout.strip()
    for verb in ("wait", "download"):
        again = invoke(verb, task, "-o", "-", env=settings)
        assert (again.exit_code, again.stdout_bytes[:8]) == (0, SIGNATURE)
    assert not [*tmp_path.iterdir()]


def test_a_folder_with_a_suffix(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """A folder may be called anything."""
    assert invoke(*RUN, "-o", "horse.mp4/", env=settings).exit_code == 0
    (saved,) = (tmp_path / "horse.mp4").iterdir()
    assert saved.suffix == ".png"


def test_a_file_that_is_called_a_dash(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """A file of that name is written with its folder."""
    assert invoke(*RUN, "-o", "./-", env=settings).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["-.png"]


VIDEO = ("run", "vidsa", "--model", "vidsa_1_5_pro_480p", "--prompt", "a horse")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*RUN, "-o", "-", "--json"), "cannot be combined with --json"),
        ((*RUN, "-o", "-", "--sidecar"), "cannot be combined with --sidecar"),
        ((*RUN, "-o", "horse.mp4"), ".mp4 is a suffix of videos, and this model makes pictures"),
        ((*RUN, "-o", "new/a.WAV"), ".WAV is a suffix of sounds, and this model makes pictures"),
        ((*VIDEO, "-o", "a.jpeg"), ".jpeg is a suffix of pictures, and this model makes videos"),
        ((*VIDEO, "-o", "a.jfif"), ".jfif is a suffix of pictures, and this model makes videos"),
        (("text", "textg-2.5-pro", "hello", "-o", "-"), "stdout has the text"),
    ],
)
def test_an_output_that_cannot_be_right(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Nothing is paid for that could not be written where, or under the name, that is wanted."""
    with CrookedService(always(reply(500, {}))) as service:
        env = {**service.settings, "MUYBRIDGE_TEXT_BASE_URL": service.base_url}
        ended = invoke(*words, env=env)
        assert service.requests == []
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert "Nothing was sent." in ended.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such terminal")
def test_a_result_on_a_terminal(start: Start) -> None:
    """A result is not written to a terminal, and not paid for then."""
    with CrookedService(always(reply(500, {}))) as service:
        _, stderr, code = on_a_terminal(start, "stdout", *RUN, "-o", "-", env=service.settings)
        assert service.requests == []
    assert (code, "which is a terminal" in stderr) == (2, True)


def test_a_result_for_a_reader_that_has_left(start: Start, settings: dict[str, str]) -> None:
    """A reader of stdout that leaves ends the command as elsewhere."""
    process = start(*RUN, "-o", "-", env=settings)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=30) == 141


def test_the_version(start: Start) -> None:
    """`python -m muybridge --version` prints the name and the version."""
    stdout, _ = start("--version").communicate(timeout=20)
    assert stdout == f"muybridge {__version__}\n"


@pytest.mark.parametrize("missing", ["hypercorn", "PIL", "av"])
@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--port", "0"],
        ["demo"],
        ["run", "imga", "--model", "imga", "--prompt", "a horse", "--local"],
    ],
    ids=lambda words: words[0],
)
def test_a_service_of_ones_own_is_told_with_what_it_needs(
    words: list[str], missing: str, tmp_path: Path
) -> None:
    """Without the extra `local`, what would start the service names the pip command instead."""
    program = f"import sys; sys.modules[{missing!r}] = None; from muybridge.cli import main; main()"
    ended = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"muybridge.local needs {missing}" in ended.stderr
    assert install_command("local") in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", [["validate", os.devnull], ["--help"], ["create", "imgb", "-h"]])
def test_start_up_is_light(words: list[str]) -> None:
    """What needs no network or picture loads no library for it."""
    program = (
        "import sys; from muybridge.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'requests', 'urllib3', 'hypercorn', 'trio', 'PIL', 'av', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", program, *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == "[]\n"
