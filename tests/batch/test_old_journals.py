"""Journals that a poisoned response has locked, as earlier versions left them: they work again."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muybridge.batch import Stage
from muybridge.batch.journal_entries import NewItem
from muybridge.batch.sqlite.journal import SqliteJournal
from muybridge.cli.commands import muybridge

from .billing import BillingServer
from .conftest import Run
from .poison import FORGED, HALF
from .runner_process import KEY, horses

LONG = "\n".join(["blocked"] * 1_000_000)


def _armed(task: str, **values: Any) -> dict[str, Any]:
    record = {"id": task, "object": "image", "status": "queued", **values}
    reply = json.dumps(record).encode()
    return {"state": "armed", "owner": "dead", "attempt": 1, "reply_status": 200, "reply": reply}


def _submitted(task: str, **values: Any) -> dict[str, Any]:
    token = {"muybridge_task": 1, "id": task, "family": "imgb", **values}
    return {"state": "submitted", "owner": "dead", "attempt": 1, "token": json.dumps(token)}


ROWS: dict[int, dict[str, Any]] = {
    1: _armed("task-1", created=2**63 - 1),
    2: _armed("task-2", created=2**64 - 1, model=f"imgb-2{HALF}", status=f"queued{HALF}"),
    3: _submitted("task-3", created=2**64 - 1, model=HALF, requested_model="imgb-2"),
    4: {
        "state": "failed",
        "token": json.dumps({"muybridge_task": 1, "id": "task-4"}),
        "reason": LONG,
        "result": json.dumps({"status": "failed", "error": LONG}),
    },
    5: {**_submitted("task-5"), "token": '{"muybridge_task":1,"id":"task-5","created":1e999}'},
    6: {"state": "queued"},
    7: {"state": "ambiguous", "attempt": 1, "reason": FORGED, "candidate": FORGED},
}
"""What each item's row says, by its number."""


@pytest.fixture
def folder(server: BillingServer, tmp_path: Path) -> Path:
    """The folder of a batch that stood still at several poisoned responses."""
    out = tmp_path / "out"
    items = [
        NewItem(name=str(horse["name"]), stem=f"h{number}", family="imgb", body={
            "model": horse["model"], "prompt": horse["prompt"]
        })
        for number, horse in enumerate(horses(len(ROWS)), start=1)
    ]  # fmt: skip
    SqliteJournal.create(out, server.url, items).close()
    with closing(sqlite3.connect(out / "journal" / "store.sqlite3")) as db:
        for number, row in ROWS.items():
            names = ", ".join(f"{name} = ?" for name in row)
            db.execute(f"UPDATE items SET {names} WHERE number = ?", (*row.values(), number))  # noqa: S608  ours
            if "task-" in str(row):
                server.accept(f"horse {number}", f"task-{number}")
        db.commit()
    return out


def command(server: BillingServer, *words: str) -> Result:
    settings = {"MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url}
    result = CliRunner().invoke(muybridge, ["batch", *words], env=settings)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


DONE = {1, 2, 3, 6}
"""The items that come to their end."""


def test_a_locked_batch_is_run(server: BillingServer, run: Run, folder: Path) -> None:
    """Every item but the unreadable one comes to its end, and only the queued one is sent."""
    report = run(server, None)
    entries = tuple(report.entries)
    assert report.counts == {
        Stage.SUBMITTED: 1, Stage.AMBIGUOUS: 1, Stage.FAILED: 1, Stage.DOWNLOADED: len(DONE)
    }  # fmt: skip
    assert {entry.number for entry in entries if entry.path is not None} == DONE
    assert server.posts == 1
    assert run(server, horses(len(ROWS))).entries[:] == entries
    assert server.posts == 1
    assert (folder / "index.html").stat().st_size < 30_000


def test_a_locked_batch_is_shown(server: BillingServer, folder: Path) -> None:
    """`status` shows each id, in lines of its own making, whatever the rows hold."""
    shown = command(server, "status", str(folder))
    assert shown.exit_code == 4
    lines = shown.stderr.splitlines()
    assert [line for line in lines if not line.startswith(("item ", "check your account"))] == []
    assert len(shown.stderr) < 10_000
    told = json.loads(command(server, "status", str(folder), "--json").stdout.splitlines()[-1])
    ids = [item.get("task") for item in told["items"]]
    assert ids == [None, None, "task-3", "task-4", "task-5", None, None]
    assert server.requests == 0


def test_a_locked_batch_is_run_by_the_command(server: BillingServer, folder: Path) -> None:
    """`batch run` and `batch resolve` do what they are documented to do."""
    ran = command(server, "run", "--out", str(folder), "--poll-interval", "0.005")
    assert (ran.exit_code, server.posts) == (4, 1)
    assert "item 5 (h5): postponed" in ran.stderr
    assert all(line.startswith(("item ", "check your account")) for line in ran.stderr.splitlines())
    taken = command(server, "resolve", str(folder), "7", "--adopt", "task-3")
    assert (taken.exit_code, "task task-3 is item 3 (h3) already" in taken.stderr) == (2, True)
    assert command(server, "resolve", str(folder), "7", "--abandon").exit_code == 0
    again = command(server, "run", "--out", str(folder), "--poll-interval", "0.005")
    assert (again.exit_code, server.posts) == (5, 1)
    assert os.fsencode(folder / "index.html") in again.stdout_bytes
