"""The command as a test runs it: in a process of its own, because a world patches the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def simulate(*arguments: str, succeeds: bool = True) -> str:
    """Run `python -m tests.simulation` with *arguments*, and return what it prints."""
    done = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
    return done.stdout
