"""Programs that are recorded now: they do what the recordings show, and survive as well."""

from __future__ import annotations

import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from .disk import Model, Sync
from .program import ordered, traced
from .recording import COMMAND, load, order
from .replay import cuts, judge
from .scenes import SCENES


@pytest.fixture(scope="session", autouse=True)
def strace() -> None:
    """Install strace, if it is missing and this process may. Without it, the tests fail."""
    if shutil.which("strace") is None:
        for command in (["update", "-q"], ["install", "-y", "-q", "strace"]):
            subprocess.run(["apt-get", *command], check=True, timeout=600)  # noqa: S603, S607  Debian's


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENES)
def test_recorded_now(name: str, tmp_path: Path) -> None:
    """A new recording shows the same order, and the library survives each cut of it, too."""
    now = traced(name, tmp_path / "traced")
    if SCENES[name].is_steady:
        assert order(now) == order(load(name)), f"Record anew: {COMMAND}"
        assert order(now) == ordered(name, tmp_path / "ordered")
    assert sum(isinstance(one, Sync) for one in now) > 5
    for model in Model:
        tried = [judge(SCENES[name], cut) for cut in islice(cuts(now, model, 2), 0, None, 2)]
        assert [str(fault) for fault in tried if fault is not None] == []
        print(f"{name}, {model}, recorded now: {len(tried)} states")  # noqa: T201  the night's figures
