"""The commits in CONTRIBUTING that add a family and a model are all that it takes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSES = ("protocol", "transports")
COMMITS = re.findall(
    r"^```diff\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
FAMILY = "protocol/muybridge_protocol/families/vidx.py"
ITS_TESTS = "tests/families/test_vidx.py"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of both packages and of the tests, with the commits applied."""
    if shutil.which("git") is None:
        pytest.skip("git applies the commits")
    for name in (*HOUSES, "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for commit in COMMITS:
        apply = ["git", "apply", "-"]
        subprocess.run(apply, cwd=tmp_path, input=commit.encode(), check=True)  # noqa: S603  our own
    return tmp_path


def run(house: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the copy."""
    path = os.pathsep.join(str(house / name) for name in HOUSES)
    return subprocess.run(  # noqa: S603  it is this project
        [sys.executable, "-m", *arguments],
        cwd=house,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_commits_are_small() -> None:
    """A family is a new file and its tests, and a model is an edit of the same two."""
    family, model = COMMITS
    assert re.findall(r"^--- (.*)\n\+\+\+ b/(.*)$", family, re.MULTILINE) == [
        ("/dev/null", FAMILY),
        ("/dev/null", ITS_TESTS),
    ]
    assert re.findall(r"^--- a/(.*)$", model, re.MULTILINE) == [FAMILY, ITS_TESTS]


def test_a_family_is_added_by_the_commits(house: Path) -> None:
    """A family of one file has its checks, options, tables, schema and videos."""
    asked = ("--prompt", "a horse", "--local")
    fast = ("--model", "vidx-1-fast", *asked)
    video = house / "horse.mp4"
    refused = run(house, "muybridge", "run", "vidx", *fast, "--duration", "9")
    made = run(house, "muybridge", "run", "vidx", "--model", "vidx-2", *asked, "-o", str(video))
    shown = run(house, "muybridge", "models", "vidx")
    schema = run(house, "muybridge", "schema")
    assert (refused.returncode, made.returncode) == (2, 0), refused.stderr + made.stderr
    assert "9 is out of range; use 2 to 6 s" in refused.stderr
    assert video.read_bytes()[4:8] == b"ftyp"
    assert {"vidx-1-fast", "vidx-2"} <= set(shown.stdout.split())
    assert "/v1/vidx/videos" in json.loads(schema.stdout)["paths"]


def test_its_tests_pass(house: Path) -> None:
    """So do its own tests, and those that go through all families, with no other edit."""
    files = (
        ITS_TESTS,
        "tests/families/test_shared.py",
        "tests/families/test_loading.py",
        "tests/core/test_records.py",
        "tests/openapi",
        "tests/cli/test_tables.py",
        "tests/cli/test_validate.py",
        "tests/emulator/test_access.py",
        "tests/test_request_declaration.py",
    )
    options = ("-q", "-n0", "-p", "no:cacheprovider", "-k", "vidx or Vidx or famil or table")
    tested = run(house, "pytest", *options, *files)
    assert tested.returncode == 0, tested.stdout
