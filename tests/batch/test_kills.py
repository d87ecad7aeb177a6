"""Runners killed with SIGKILL, against a service that keeps the books."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from muybridge.batch import Stage
from processes import Nursery

from .audit import Audit
from .billing import BillingServer, Fault, at_random
from .runner_process import STEPS

if sys.platform == "win32":
    pytest.skip("there is no SIGKILL", allow_module_level=True)

DRIVERS = ["requests", "trio", "asyncio"]
ITEMS = 40
CONCURRENCY = 4
WEIGHTS = {
    Fault.NONE: 70,
    Fault.ACCEPTED_RESET: 3,
    Fault.ACCEPTED_CUT: 4,
    Fault.ACCEPTED_GATEWAY: 3,
    Fault.LOST_RESET: 3,
    Fault.LOST_GATEWAY: 3,
    Fault.THROTTLED: 10,
    Fault.REFUSED: 4,
}


def rampage(
    nursery: Nursery,
    folder: Path,
    *,
    kills: int,
    seed: int,
    items: int = ITEMS,
    naive: bool = False,
    driver: str = "requests",
) -> tuple[Audit, int]:
    """Kill runners of batch after batch, and return what was found and how often one was killed."""
    source = random.Random(seed)  # noqa: S311  moments to die, not secrets
    audit, killed, number = Audit(), 0, 0
    while killed < kills:
        number += 1
        place = folder / str(number)
        with BillingServer(at_random(seed + number, WEIGHTS), shaky=True) as server:
            order = {
                "url": server.url,
                "folder": str(place),
                "items": items,
                "concurrency": CONCURRENCY,
                "naive": naive,
                "driver": driver,
            }
            ended = False
            while killed < kills and not ended:
                moment = source.uniform(0.005, 0.12)
                code = nursery.run(**order, kill_after=moment)
                assert code in (0, 5, -9)
                killed += code == -9
                ended = code == 0
            # 5: too many 429 in a row, after which no more is created.
            while (code := nursery.run(**order)) == 5:
                pass
            assert code == 0
            audit.look_at(server, place)
    return audit, killed


def check(audit: Audit, killed: int) -> None:
    assert audit.is_clean, audit
    # One for each create that can have been on its way when a runner was killed.
    assert audit.interrupted <= killed * CONCURRENCY
    open_states = {"queued", "claimed", "armed", "submitted", "completed", "failed"}
    assert not open_states.intersection(audit.states), audit


@pytest.mark.parametrize(("driver", "kills"), [("requests", 20), ("trio", 15), ("asyncio", 15)])
def test_kills(driver: str, kills: int, nursery: Nursery, tmp_path: Path) -> None:
    """However often runners are killed, nothing is paid twice, lost or mixed up."""
    audit, killed = rampage(nursery, tmp_path, kills=kills, seed=1, driver=driver)
    check(audit, killed)
    assert killed == kills


@pytest.mark.nightly
@pytest.mark.parametrize("driver", DRIVERS)
def test_ten_thousand_kills(driver: str, nursery: Nursery, tmp_path: Path) -> None:
    """The same holds for ten thousand kills, as many under each driver."""
    seed = int(os.environ.get("MUYBRIDGE_TEST_SEED", "2"))
    audit, killed = rampage(
        nursery, tmp_path, kills=10_000 // len(DRIVERS), seed=seed, driver=driver
    )
    print(audit.states, "interrupted:", audit.interrupted)  # noqa: T201  the night's figures
    check(audit, killed)


def test_the_harness_has_teeth(nursery: Nursery, tmp_path: Path) -> None:
    """A runner that sends again what may have been accepted is found to pay twice."""
    audit, _ = rampage(nursery, tmp_path, kills=3, seed=3, items=10, naive=True)
    assert audit.doubles


IN_FLIGHT = {
    "after: purchase armed",
    "before: sending",
    "after: sending",
    "before: response kept",
}
"""The steps at which nobody can know whether the create was accepted."""


@pytest.mark.parametrize("step", sorted(STEPS))
def test_killed_at(step: str, nursery: Nursery, tmp_path: Path) -> None:
    """Killed at any step, a batch comes to its end; only a create in flight is left ambiguous."""
    with BillingServer() as server:
        order = {"url": server.url, "folder": str(tmp_path / "out"), "items": 3}
        assert nursery.run(**order, concurrency=1, kill_at=step) == -9
        assert nursery.run(**order) == 0
        audit = Audit()
        audit.look_at(server, tmp_path / "out")
    check(audit, 1)
    assert audit.interrupted == (step in IN_FLIGHT)
    assert audit.states[Stage.DOWNLOADED] == 3 - audit.interrupted
    left = sorted(path.name for path in (tmp_path / "out" / "state").iterdir())
    kinds = {name.partition("-")[0] for name in left}
    assert kinds <= {"batch.json", "incoming", "runner", "store.sqlite3", "store.sqlite3.owners"}


RECOVERING = ("before: items freed", "after: items freed")


@pytest.mark.parametrize(
    "first", sorted(IN_FLIGHT | {"after: items taken", "after: response kept"})
)
@pytest.mark.parametrize("second", RECOVERING)
def test_killed_while_recovering(first: str, second: str, nursery: Nursery, tmp_path: Path) -> None:
    """A runner that is killed while it recovers another's items leaves them for the next one."""
    with BillingServer() as server:
        order = {"url": server.url, "folder": str(tmp_path / "out"), "items": 2}
        assert nursery.run(**order, concurrency=1, kill_at=first) == -9
        assert nursery.run(**order, concurrency=1, kill_at=second) == -9
        assert nursery.run(**order) == 0
        audit = Audit()
        audit.look_at(server, tmp_path / "out")
    check(audit, 1)
    assert audit.interrupted == (first in IN_FLIGHT)
    assert audit.states[Stage.DOWNLOADED] == 2 - audit.interrupted
