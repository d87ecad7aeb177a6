"""A service that answers poison to every third item, and the command as a process of its own."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from muybridge.batch import Stage
from processes import environment

from .billing import PNG, BillingServer
from .poison import LOST, SURVIVED, poisoning
from .runner_process import KEY, horses

POISONS = {**SURVIVED, **LOST}
COUNT = 3 * len(POISONS)
"""Each poison has an item of its own, the third, the sixth and so on."""
RUN_ASYNC = """
import sys
from muybridge import AsyncClient, batch

async def run(source):
    async with AsyncClient(poll_interval=0.005) as client:
        await batch.run_async(client, source, "out", concurrency=4)

source = sys.argv[1] if len(sys.argv) > 1 else None
"""
IN_EVENT_LOOP = {
    "trio": RUN_ASYNC + "import trio\ntrio.run(run, source)",
    "asyncio": RUN_ASYNC + "import asyncio\nasyncio.run(run(source))",
}


def poison_of(number: int) -> str | None:
    """Return the name of the poison that the item *number* meets, or None."""
    return None if number % 3 else list(POISONS)[number // 3 - 1]


def write(prompt: str, kind: str, record: dict[str, Any]) -> bytes:
    poison = poison_of(int(prompt.removeprefix("horse ")))
    if poison is None:
        return json.dumps(record).encode()
    return poisoning(frozenset({prompt}), POISONS[poison])(prompt, kind, record)


Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(server: BillingServer, tmp_path: Path) -> Start:
    """Run Python in a process of its own, in a folder with a batch."""
    (tmp_path / "b.json").write_text(json.dumps(horses(COUNT)), encoding="utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  our own code
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment(MUYBRIDGE_API_KEY=KEY, MUYBRIDGE_BASE_URL=server.url),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def rows(folder: Path) -> list[tuple[Any, ...]]:
    """Return all that the store says."""
    with closing(sqlite3.connect(folder / "state" / "store.sqlite3")) as db:
        return db.execute("SELECT * FROM muybridge_item ORDER BY number").fetchall()


@pytest.mark.parametrize("driver", ["requests", *IN_EVENT_LOOP])
def test_every_third_item_is_poisoned(
    driver: str, server: BillingServer, start: Start, tmp_path: Path
) -> None:
    """The others are downloaded; each poisoned item has its id or is ambiguous; so it stays.

    The exit code is the one that docs/cli.md and docs/batches.md give for ambiguous items, and each
    line is the command's own.
    """
    server.write = write
    command = ("-m", "muybridge", "batch", "run", "--out", "out", "--poll-interval", "0.005")
    if driver in IN_EVENT_LOOP:
        first = start("-c", IN_EVENT_LOOP[driver], "b.json")
        assert (first.returncode, first.stderr) == (0, "")
        first = start("-m", "muybridge", "batch", "status", "out")
    else:
        first = start(*command, "b.json")
    assert first.returncode == 4, first.stderr[-2000:]
    assert_own_lines(first.stderr)
    assert "check your account, then decide: muybridge decide --batch out ITEM" in first.stderr
    failed = sum(name is not None and ends_failed(name) for name in map(poison_of, range(1, COUNT)))
    failed += ends_failed(list(POISONS)[-1])
    counts = f"{len(LOST)} ambiguous, {failed} failed, {COUNT - failed - len(LOST)} downloaded"
    assert first.stdout == f"{counts}\n{Path('out/index.html')}\n"
    assert_each_has_its_end(server, tmp_path / "out", start)
    assert server.posts == COUNT

    before = rows(tmp_path / "out")
    if driver in IN_EVENT_LOOP:
        assert start("-c", IN_EVENT_LOOP[driver]).returncode == 0
    again = start(*command)
    assert (again.returncode, again.stdout) == (4, first.stdout)
    assert rows(tmp_path / "out") == before
    assert (server.posts, server.doubles) == (COUNT, [])


def ends_failed(poison: str) -> bool:
    """Whether a poison is the error of a task that has failed."""
    record = POISONS[poison]("result", {})
    return isinstance(record, dict) and record.get("status") == "failed"


def assert_own_lines(stderr: str) -> None:
    """Check that no text of the service stands in a line of its own, or moves the cursor."""
    for line in stderr.splitlines():
        assert line.startswith(("item ", "check your account"))
        assert line.isprintable()


def assert_each_has_its_end(server: BillingServer, folder: Path, start: Start) -> None:
    """Check that each item is downloaded, or failed or ambiguous with all that is known of it."""
    told = json.loads(
        start("-m", "muybridge", "batch", "status", "out", "--json").stdout.splitlines()[-1]
    )
    for item in told["items"]:
        poison = poison_of(item["number"])
        (task,) = server.accepted[f"horse {item['number']}"]
        if poison in LOST:
            assert item["state"] == Stage.AMBIGUOUS, poison
            continue
        assert item["task"] == task
        if poison is None or item["state"] == Stage.DOWNLOADED:
            assert (folder / item["path"]).read_bytes() == PNG + task.encode()
        else:
            assert item["state"] == Stage.FAILED, poison
            assert task in item["reason"]
