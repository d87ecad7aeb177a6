"""Every command line in README and docs runs against the local service."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from PIL import Image

from muybridge import Client
from muybridge.cli.commands import muybridge
from muybridge.local import LocalService

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "$ muybridge " in page.read_text(encoding="utf-8")
]

DATABASE = "postgresql://db.internal/studio"
"""What pages call a database."""

ELSEWHERE = {
    "muybridge serve --speed 20": "tests/cli/test_demo.py",
    'muybridge run imgb --model imgb-2 --prompt "A horse" --timeout 1 -o horse.png': (
        "tests/cli/test_exit_codes.py"
    ),
    "muybridge batch run two.jsonl --out paddock": "tests/batch/test_command.py",
    "muybridge decide --batch paddock trot --adopt task-2-trot": "tests/batch/test_command.py",
    "muybridge batch run --out paddock": "tests/batch/test_command.py",
    f"muybridge batch submit horses.jsonl --store {DATABASE} --name horses": (
        "tests/batch/test_worker_command.py"
    ),
    f"muybridge worker --store {DATABASE} --batch horses --out horses": (
        "tests/batch/test_worker_command.py"
    ),
    f"muybridge batch status --store {DATABASE} horses": "tests/batch/test_worker_command.py",
}
"""Commands that run until Ctrl-C, take long or need a lost response, and where they are tested."""

GIVEN = {
    "requests.jsonl": '{"family": "imga", "body": {"model": "imga", "prompt": "A horse"}}\n',
    "question.txt": "Why does a horse gallop?\n",
    "bad.jsonl": '{"family": "imgb", "model": "imgb-22"}\n',
}
"""Files that pages mention without showing them, in addition to `horse.png`."""


@attrs.frozen
class Call:
    """A command line, and the output on the page."""

    line: str
    printed: str


def calls_on(page: Path) -> Iterator[Call]:
    """Yield the command lines of *page*, in order."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, printed = example.partition("\n")
            yield Call(line, printed.strip())


def comparable(text: str) -> list[str]:
    """Return the lines of *text*, with the parts masked that differ each time."""
    for pattern, mask in (
        (r"task-[0-9a-f]{32}", "TASK"),
        (r"\([0-9,]+ bytes\)", "(N bytes)"),
        (r"after \d+ s", "after N s"),
        (r"127\.0\.0\.1:\d+", "HOST"),
        (r"\b17\d{8}(\.\d+)?\b", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "MOMENT"),
        (r'\\?"status\\?":\\?"\w+\\?"', "STATUS"),
    ):
        text = re.sub(pattern, mask, text)
    lines = [line.rstrip() for line in text.splitlines()]
    passing = re.compile(r"(queued|processing) after|downloading \d|item \d+( \(\w+\))?: status")
    # A batch does several things at once, so its lines come in any order.
    return sorted(line for line in lines if line and not passing.match(line))


def hurried(*arguments: Any, poll_interval: float | None = None, **options: Any) -> Client:
    """Return a client for a command, which polls more often than the real service allows."""
    return Client(*arguments, poll_interval=poll_interval or 0.1, **options)


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=50) as running:
        yield running


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_calls_run(
    page: Path, service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command line on a page succeeds and prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUYBRIDGE_API_KEY", service.api_key)
    monkeypatch.setenv("MUYBRIDGE_BASE_URL", service.base_url)
    monkeypatch.setenv("MUYBRIDGE_TEXT_BASE_URL", service.text_base_url)
    monkeypatch.setattr("muybridge.Client", hurried)
    Image.new("RGB", (16, 16)).save("horse.png")
    for name, content in GIVEN.items():
        Path(name).write_text(content, encoding="utf-8")
    ids: dict[str, str] = {}
    for call in calls_on(page):
        if call.line.startswith("cat "):
            Path(call.line.removeprefix("cat ")).write_text(call.printed + "\n", encoding="utf-8")
        if call.line.startswith("export MUYBRIDGE_STORE="):
            monkeypatch.setenv(*call.line.removeprefix("export ").split("="))
        if not call.line.startswith("muybridge ") or call.line in ELSEWHERE:
            continue
        line = re.sub(r"task-\w+", lambda found: ids.get(found[0], found[0]), call.line)
        words, _, redirected = line.partition(" < ")
        words, only_stdout, _ = words.partition(" 2>/dev/null")
        done = CliRunner().invoke(
            muybridge,
            shlex.split(words)[1:],
            prog_name="muybridge",
            input=Path(redirected).read_text(encoding="utf-8") if redirected else None,
        )
        said = done.stdout if only_stdout else done.output
        known, made = (re.findall(r"task-\w+", text) for text in (call.printed, said))
        ids.update(zip(known, made, strict=False))
        if call.printed:
            assert comparable(said) == comparable(call.printed), call.line
        else:
            assert done.exit_code == 0, (call.line, said)


def test_calls_that_are_run_elsewhere_are_on_a_page() -> None:
    """Each command line that is skipped here is on a page and has a test."""
    lines = {call.line for page in PAGES for call in calls_on(page)}
    assert set(ELSEWHERE) <= lines
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())
