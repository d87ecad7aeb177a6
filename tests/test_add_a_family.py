"""The commit in CONTRIBUTING that adds a family is all that it takes."""

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
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
HOUSES = ("protocol", "transports")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of both packages, with the commit applied."""
    if shutil.which("git") is None:
        pytest.skip("git applies the commit")
    diff = re.search(
        r"^```diff\n(.*?)^```$", CONTRIBUTING.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert diff is not None
    for name in HOUSES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    apply = ["git", "apply", "-"]
    subprocess.run(apply, cwd=tmp_path, input=diff[1].encode(), check=True)  # noqa: S603  our own
    return tmp_path


def muybridge(house: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the copy."""
    path = os.pathsep.join(str(house / name) for name in HOUSES)
    return subprocess.run(  # noqa: S603  it is this project
        [sys.executable, "-m", "muybridge", *arguments],
        cwd=house,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_family_is_added_by_the_commit(house: Path) -> None:
    """A family of one file and one word has its checks, options, tables, schema and videos."""
    asked = ("--model", "vidx-1-fast", "--prompt", "a horse", "--local")
    video = house / "horse.mp4"
    refused = muybridge(house, "run", "vidx", *asked, "--duration", "9")
    made = muybridge(house, "run", "vidx", *asked, "--duration", "2", "-o", str(video))
    shown = muybridge(house, "models", "vidx")
    schema = muybridge(house, "schema")
    assert (refused.returncode, made.returncode) == (2, 0), refused.stderr + made.stderr
    assert "9 is out of range; use 2 to 6 s" in refused.stderr
    assert video.read_bytes()[4:8] == b"ftyp"
    assert "vidx-1-fast" in shown.stdout
    assert "/v1/vidx/videos" in json.loads(schema.stdout)["paths"]
