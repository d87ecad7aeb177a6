"""A batch of a million items in a database: what submitting it and looking at it takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from processes import environment

from .postgres_server import Postgres

pytest.importorskip("psycopg")

COMMAND = """
import re, sys, time
from pathlib import Path
from muybridge.cli.commands import muybridge
began = time.perf_counter()
try:
    muybridge(sys.argv[1:])
finally:
    # Not `ru_maxrss`, which begins with what the parent had.
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    print(f"took {time.perf_counter() - began:.1f} s, {peak:.0f} MB", file=sys.stderr)
"""


def measured(*words: str, code: int) -> tuple[str, float]:
    """Run a command in a process of its own, and return its output and its megabytes."""
    settings = environment(MUYBRIDGE_BASE_URL="https://service.test")
    done = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-c", COMMAND, *words],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    took = re.search(r"took .* s, (\d+) MB", done.stderr)
    assert took is not None
    sys.stdout.write(f"{' '.join(words[:2])}: {took[0]}\n")
    return done.stdout, float(took[1])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of a process")
@pytest.mark.parametrize("count", [3_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_many_items(count: int, postgres: Postgres, tmp_path: Path) -> None:
    """However many items there are, memory is constant and `status` does not read them."""
    url = postgres.fresh()
    file = tmp_path / "many.jsonl"
    with file.open("w") as lines:
        for number in range(count):
            request = {"family": "imgb", "model": "imgb-2", "prompt": f"horse {number}"}
            lines.write(f"{json.dumps(request)}\n")
    words = ("batch", "submit", str(file), "--store", url, "--name", "h")
    said, megabytes = measured(*words, code=0)
    assert said == f"{count} queued\n"
    assert megabytes < 100
    _ambiguous(postgres, url)
    said, megabytes = measured("batch", "status", "--store", url, "h", code=4)
    assert said == f"{count - 50} queued, 50 ambiguous\n"
    assert megabytes < 100
    _plans(postgres, url)


def _ambiguous(postgres: Postgres, url: str) -> None:
    """Make every so many items ambiguous."""
    postgres.execute(
        "UPDATE muybridge_item SET stage = 'ambiguous' WHERE number %% 20 = 1 AND number <= %s",
        1000,
        url=url,
    )
    postgres.execute("ANALYZE muybridge_item", url=url)


def _plans(postgres: Postgres, url: str) -> None:
    """Check how the database finds what `status` shows and what workers look for."""
    ((batch,),) = postgres.execute("SELECT number FROM muybridge_batch", url=url)
    of_batch = f"FROM muybridge_item WHERE batch = {batch} AND"
    page = f"SELECT * {of_batch} stage = 'ambiguous' AND number > 0 ORDER BY number LIMIT 500"
    owning = "SELECT DISTINCT owner FROM muybridge_item WHERE owner IS NOT NULL"
    its = f"SELECT 1 {of_batch} owner = owning.owner"
    owners = f"SELECT owner FROM ({owning}) AS owning WHERE EXISTS ({its})"  # noqa: S608  ours
    last = f"SELECT max(number) {of_batch} number > 0"
    free = f"SELECT * {of_batch} stage = 'queued' AND owner IS NULL ORDER BY number LIMIT 16"
    for statement in (page, owners, last, free):
        plan = "\n".join(row[0] for row in postgres.execute(f"EXPLAIN {statement}", url=url))
        sys.stdout.write(f"{plan}\n")
        assert "Seq Scan on muybridge_item" not in plan, plan
