"""Workers that are killed and paused, against a service that keeps the books."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from processes import Nursery

from .billing import BillingServer, Fault, at_random
from .fixtures import submit
from .postgres_server import Postgres
from .shared_audit import Audit
from .test_workers import expire
from .worker_process import STEPS

if sys.platform == "win32":
    pytest.skip("there is no SIGKILL", allow_module_level=True)

CREATES = 2
WEIGHTS = {
    Fault.NONE: 80,
    Fault.ACCEPTED_RESET: 3,
    Fault.ACCEPTED_CUT: 3,
    Fault.ACCEPTED_GATEWAY: 2,
    Fault.LOST_RESET: 3,
    Fault.THROTTLED: 5,
    Fault.REFUSED: 2,
}


@pytest.fixture(scope="module")
def machines() -> Iterator[list[Nursery]]:
    """What starts workers: three at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(Nursery("batch.worker_process")) for _ in range(3)]


def rampage(
    machines: list[Nursery],
    shared: SharedBatch,
    folder: Path,
    *,
    items: int,
    kills: int,
    seed: int,
    naive: bool = False,
) -> tuple[Audit, int]:
    """Let three workers work and be killed, and return what was found and how many were killed."""
    killed: list[int] = []
    failed: list[object] = []
    with BillingServer(at_random(seed, WEIGHTS), shaky=True) as server:
        submit(server, shared, items)

        def machine(number: int) -> None:
            source = random.Random(seed * 10 + number)  # noqa: S311  moments to die, not secrets
            place = str(folder / str(number))
            order: dict[str, Any] = {"database": str(shared.store), "folder": place, "naive": naive}
            left, code = kills, 5
            while code != 0:
                moment = source.uniform(0.1, 0.6) if left else None
                code = machines[number].run(url=server.url, **order, kill_after=moment)
                left -= code == -9
                killed.append(code == -9)
                if code not in (0, 5, -9):
                    failed.append(code)
                    return

        threads = [threading.Thread(target=machine, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        return Audit.of(server, shared), sum(killed)


def test_workers_that_are_killed(
    machines: list[Nursery], shared: SharedBatch, tmp_path: Path
) -> None:
    """However often three workers are killed, nothing is paid twice, lost or mixed up."""
    audit, killed = rampage(machines, shared, tmp_path, items=60, kills=5, seed=4)
    assert (audit.doubles, audit.wrong) == ([], [])
    assert killed
    assert audit.interrupted <= killed * CREATES
    assert not {*audit.states} & {"queued", "claimed", "armed", "submitted", "completed"}


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5, 15))
def test_workers_that_are_killed_all_night(
    seed: int, machines: list[Nursery], shared: SharedBatch, tmp_path: Path
) -> None:
    """The same holds for a hundred kills of each of ten batches."""
    audit, killed = rampage(machines, shared, tmp_path, items=600, kills=33, seed=seed)
    print(audit.states, "killed:", killed, "interrupted:", audit.interrupted)  # noqa: T201  figures
    assert (audit.doubles, audit.wrong) == ([], [])
    assert audit.interrupted <= killed * CREATES


def test_the_harness_has_teeth(
    machines: list[Nursery], shared: SharedBatch, tmp_path: Path
) -> None:
    """A worker that sends again what may have been accepted is found to pay twice."""
    audit, _ = rampage(machines, shared, tmp_path, items=30, kills=2, seed=3, naive=True)
    assert audit.doubles


IN_FLIGHT = {"after: purchase armed", "before: sending", "after: sending", "before: response kept"}
"""The steps at which nobody can know whether the create was accepted."""


SAMPLE = IN_FLIGHT | {"after: items taken", "after: response kept", "before: items released"}


@pytest.mark.parametrize(
    "step",
    [
        step if step in SAMPLE else pytest.param(step, marks=pytest.mark.nightly)
        for step in sorted(STEPS)
    ],
)
def test_killed_at(
    step: str,
    machines: list[Nursery],
    server: BillingServer,
    shared: SharedBatch,
    tmp_path: Path,
) -> None:
    """Killed at any step, a worker leaves its items to the next; only creates are ambiguous."""
    submit(server, shared, 1)
    order = {
        "url": server.url,
        "database": str(shared.store),
        "folder": str(tmp_path),
        "creates": 1,
    }
    assert machines[0].run(**order, kill_at=step) == -9
    assert machines[0].run(**order) == 0
    audit = Audit.of(server, shared)
    assert (audit.doubles, audit.wrong) == ([], [])
    assert audit.interrupted == (step in IN_FLIGHT)
    assert audit.states[Stage.DOWNLOADED] == 1 - audit.interrupted


def _wait_until_paused(process: int) -> None:
    stat = Path(f"/proc/{process}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        os.sched_yield()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what is paused")


@on_linux
def test_paused_between_arming_and_sending(
    machines: list[Nursery],
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    """A worker that wakes up after its lease has run out sends nothing, and its item is free."""
    submit(server, shared, 1)
    order = {"url": server.url, "database": str(shared.store), "creates": 1}
    paused = machines[0].start(
        **order, folder=str(tmp_path / "a"), pause_at="after: purchase armed"
    )
    _wait_until_paused(paused)
    expire(postgres, shared)
    assert machines[1].run(**order, folder=str(tmp_path / "b")) == 0
    assert batch.shared_status(shared).counts == {Stage.AMBIGUOUS: 1}
    assert server.posts == 0
    os.kill(paused, signal.SIGCONT)
    assert machines[0].wait() == 0
    assert batch.shared_status(shared).counts == {Stage.DOWNLOADED: 1}
    assert (server.posts, server.doubles) == (1, [])


@on_linux
def test_paused_while_a_create_is_under_way(
    machines: list[Nursery],
    server: BillingServer,
    shared: SharedBatch,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    """A worker that was declared dead reports the id of its create when it wakes up."""
    submit(server, shared, 1)
    order = {"url": server.url, "database": str(shared.store), "creates": 1}
    started = threading.Event()
    process: list[int] = []

    def pause(_: str) -> None:
        started.wait()
        os.kill(process[0], signal.SIGSTOP)
        _wait_until_paused(process[0])

    server.on_create = pause
    process.append(machines[0].start(**order, folder=str(tmp_path / "a")))
    started.set()
    _wait_until_paused(process[0])
    expire(postgres, shared)
    assert machines[1].run(**order, folder=str(tmp_path / "b")) == 0
    assert batch.shared_status(shared).counts == {Stage.AMBIGUOUS: 1}
    os.kill(process[0], signal.SIGCONT)
    assert machines[0].wait() == 0
    report = batch.shared_status(shared)
    assert (report.counts, report.strays) == ({Stage.DOWNLOADED: 1}, ())
    assert (server.posts, server.doubles) == (1, [])
