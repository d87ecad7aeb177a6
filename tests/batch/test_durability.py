"""What the system is asked to write down before a create is sent, as strace sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from processes import environment

from .billing import BillingServer

STRACE = shutil.which("strace")
CALLS = "trace=pwrite64,write,fsync,fdatasync,unlink,unlinkat,sendto"

SCRIPT = """
import sqlite3, sys
from muybridge import Client, batch
from batch.runner_process import KEY, horses

url, folder, careless = sys.argv[1:]
if careless == "careless":
    from muybridge.files import sqlite
    connect = sqlite.connect
    def relaxed(path, patience):
        db = connect(path, patience)
        db.execute("PRAGMA synchronous = OFF")
        return db
    sqlite.connect = relaxed
with Client(KEY, url, poll_interval=0.005) as client:
    assert batch.run(client, horses(6), folder, concurrency=2).done
"""


def traced(folder: Path, *, careless: bool = False) -> tuple[int, list[str]]:
    """Run a batch under strace; return the number of creates, and those that came too early."""
    assert STRACE is not None
    log = folder / "strace.log"
    with BillingServer() as server:
        care = "careless" if careless else "careful"
        script = [sys.executable, "-c", SCRIPT, server.url, str(folder / "out"), care]
        done = subprocess.run(  # noqa: S603  our own script
            [STRACE, "-f", "-y", "-s", "64", "-e", CALLS, "-o", str(log), *script],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if "ptrace" in done.stderr or "Operation not permitted" in done.stderr:
            pytest.skip("strace may not trace here")
        assert done.returncode == 0, done.stderr
    return _judge(log.read_text(errors="replace"))


DURABLE = re.compile(
    r"store\.sqlite3-journal.*?"  # the rollback journal is written,
    r"sync store\.sqlite3-journal.*?"  # and on the disk,
    r"write store\.sqlite3 .*?"  # before the store itself is written,
    r"sync store\.sqlite3 .*?"  # and on the disk,
    r"unlink .*?"  # before the commit, which is the rollback journal's end,
    r"sync folder"  # and that is on the disk
)


def _judge(log: str) -> tuple[int, list[str]]:
    """Look at what was done between one create of a thread and its next one.

    A thread may have another one commit for it. Commits follow each other, whoever makes them.
    """
    done: dict[str, list[str]] = defaultdict(list)
    everything: list[str] = []
    creates, early = 0, list[str]()

    def note(event: str) -> None:
        everything.append(event)
        for history in done.values():
            history.append(event)

    for line in log.splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.startswith("sendto") and '"POST ' in call:
            creates += 1
            history = " ".join(done.get(thread, everything))
            if DURABLE.search(history + " ") is None:
                early.append(history)
            done[thread] = []
        elif call.startswith("unlink") and "store.sqlite3-journal" in call:
            note("unlink")
        elif found := re.match(r"(pwrite64|write|fsync|fdatasync)\(\d+<([^>]*)>", call):
            kind = "sync" if "sync" in found[1] else "write"
            path = Path(found[2])
            place = "folder" if path.name == "state" else path.name
            if place == "folder" or place.startswith("store.sqlite3"):
                note(f"{kind} {place}")
    return creates, early


@pytest.mark.skipif(STRACE is None, reason="there is no strace")
def test_armed_is_on_the_disk_before_a_create_is_sent(tmp_path: Path) -> None:
    """Before each POST, the store and the folder were put on the disk."""
    assert traced(tmp_path) == (6, [])


@pytest.mark.skipif(STRACE is None, reason="there is no strace")
def test_the_oracle_has_teeth(tmp_path: Path) -> None:
    """A store that is not synchronised is found out at every create."""
    creates, early = traced(tmp_path, careless=True)
    assert creates == len(early) == 6
