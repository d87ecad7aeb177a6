"""Every fault of the table, committed on every operation, under every driver, on both schemes.

A run has a fair sample of it: each fault on each operation, and what is large on one operation
of each kind. The nightly run has all.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .cells import Cell, Surroundings, cells, commit
from .clients import DRIVERS
from .rows import TEXTS

SEED = 20261121
FEW = 0.15
OF_EACH_KIND = ("create", "wait", "download", "text")


def _sampled() -> Iterator[Any]:
    """Yield every cell under every driver; those that a run does not try are marked."""
    source = random.Random(SEED)  # noqa: S311  a sample, not a secret
    ways: dict[tuple[str, bool, str], list[tuple[str, Cell]]] = defaultdict(list)
    for cell, driver in itertools.product(cells(), DRIVERS):
        ways[cell.row.name, cell.once, cell.operation].append((driver, cell))
    for (_, once, operation), alike in ways.items():
        row = alike[0][1].row
        # What hangs, and what is long, takes its time: it is tried on some calls.
        cut = row.always[operation] == "StreamInterrupted"
        late = row.hangs and (once or not (cut or operation in ("create", "wait")))
        late = late or (row.long and (once or operation in TEXTS))
        late = late or (row.large and (once or operation not in OF_EACH_KIND))
        if operation in TEXTS and (once or operation == "messages stream"):
            # Text goes the ways of a create: not every fault has to show it in every run.
            late = late or source.random() > FEW
        if operation == "check":  # mostly it goes the ways of a download
            late = late or once or ("download" in row.always and source.random() > FEW)
        chosen = [] if late else source.sample(alike, 1)
        for driver, cell in alike:
            marks = () if (driver, cell) in chosen else pytest.mark.nightly
            yield pytest.param(driver, cell, marks=marks, id=f"{driver}-{cell}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Collect no cell that would be deselected: there are thousands."""
    if metafunc.function is test_cell:
        sample = metafunc.config.getoption("markexpr") == "not nightly"
        tried = [each for each in _sampled() if not (sample and each.marks)]
        metafunc.parametrize(("driver", "cell"), tried)


@pytest.mark.muybridge_paid_requests  # to names that do not resolve, or to a proxy on this machine
def test_cell(
    driver: str,
    cell: Cell,
    around: Surroundings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fault has the outcome of its row; nothing is paid twice, lost or shown."""
    commit(cell, DRIVERS[driver], around, tmp_path, monkeypatch)
