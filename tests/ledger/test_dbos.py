"""A DBOS step that pays once, however often its process is killed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from batch.billing import BillingServer
from processes import environment

from .spender import STEPS

pytestmark = pytest.mark.skipif(find_spec("dbos") is None, reason="dbos is not installed")

FEW = ("after summing up", "after taking the response", "after concluding")
CERTAIN = ("enlisting", "summing up", "writing a row", "before arming", "creating the ledger")
KILLED = -9


def order(folder: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the workflow in a process of its own."""
    return subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-m", "ledger.dbos_app", *words],
        env=environment(LEDGER_TEST_FOLDER=str(folder), LEDGER_TEST_URL=url),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def check_kill(url: str, parent: Path, number: int, step: str) -> None:
    """Kill the process of an order at *step*, recover the order in another one, and repeat it."""
    folder = parent / str(number)
    folder.mkdir()
    name = f"order {number}"
    killed = order(folder, url, name, step)
    assert killed.returncode == KILLED, killed.stderr
    recovered = order(folder, url, name)
    assert recovered.returncode == 0, recovered.stderr
    expected = ("Task",) if step.endswith((*CERTAIN, "after concluding")) else TOLD
    assert recovered.stdout.strip() in expected, (step, recovered.stderr)


TOLD = ("Task", "CreateAmbiguous")


@pytest.mark.parametrize("step", FEW)
def test_a_killed_process(tmp_path: Path, step: str) -> None:
    """DBOS runs a killed step again: it gets its task, or says that it is ambiguous."""
    with BillingServer() as server:
        check_kill(server.url, tmp_path, 1, step)
        assert server.posts == 1


@pytest.mark.nightly
def test_a_thousand_kills(tmp_path: Path) -> None:
    """A thousand kills, at every step: no order is paid for twice."""
    steps = [*STEPS]
    with BillingServer() as server, ThreadPoolExecutor(4) as pool:
        kill = partial(check_kill, server.url, tmp_path)
        running = [pool.submit(kill, number, steps[number % len(steps)]) for number in range(1000)]
        for one in running:
            one.result()
        assert server.doubles == []
