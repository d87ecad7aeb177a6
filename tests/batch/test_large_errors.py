"""Errors of megabytes: what is printed, stored, shown and held in memory stays small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from processes import environment

from .billing import BillingServer
from .poison import poisoning
from .runner_process import KEY, horses

SCRIPT = """
import atexit, re, sys
from pathlib import Path

def tell_peak():
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    Path("peak").write_text(peak[1])

atexit.register(tell_peak)
from muybridge.cli import main
sys.argv = ["muybridge", "batch", "run", "b.json", "--out", "out", "--poll-interval", "0.005"]
main()
"""
LARGE = "\n".join(["item 1 (h1): downloaded h1.png"] * 240_000)
"""Seven megabytes, which would be lines of their own."""


def ran(folder: Path, error: str) -> tuple[str, int]:
    """Return what the command says of six failed tasks, and how many bytes it took at most."""
    folder.mkdir()
    (folder / "b.json").write_text(json.dumps(horses(6)), encoding="utf-8")
    with BillingServer() as server:
        failed = {"status": "failed", "error": error}
        every = frozenset(f"horse {number}" for number in range(1, 7))
        server.write = poisoning(
            every, lambda kind, record: record | failed if kind == "result" else record
        )
        done = subprocess.run(  # noqa: S603  our own script
            [sys.executable, "-c", SCRIPT],
            cwd=folder,
            env=environment(MUYBRIDGE_API_KEY=KEY, MUYBRIDGE_BASE_URL=server.url),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1, done.stderr[-2000:]
    return done.stderr, int((folder / "peak").read_text()) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the most memory so")
def test_six_failed_tasks_with_seven_megabytes_each(tmp_path: Path) -> None:
    """Their texts are clipped on stderr, in the store and on the sheet, and then released."""
    assert len(LARGE) > 7_000_000
    _, usual = ran(tmp_path / "small", "blocked")
    stderr, most = ran(tmp_path / "large", LARGE)
    out = tmp_path / "large" / "out"
    assert len(stderr) < 60_000
    assert all(line.startswith("item ") for line in stderr.splitlines())
    assert not [line for line in stderr.splitlines() if line.startswith("item 1 (h1): downloaded")]
    assert (out / "state" / "store.sqlite3").stat().st_size < 200_000
    assert (out / "index.html").stat().st_size < 60_000
    assert most - usual < 160_000_000
