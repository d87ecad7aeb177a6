"""Cuts the power at each operation of a recording, and lets the scene continue in each state."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

import attrs

from .disk import Disk, Mark, Model, Operation, State, Sync
from .scenes import Scene

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  a file system in memory, where there is one


@attrs.frozen
class Cut:
    """The power is cut.

    Args:
        number: How many operations are done.
        last: The last one.
        marks: What has happened outside the disk.
        state: What the disk has kept.
        certain: The ids that were in a database, and synced, at this cut or before.
    """

    number: int
    last: Operation
    marks: tuple[str, ...]
    state: State
    certain: frozenset[str]


@attrs.frozen
class Fault:
    """What is wrong after a cut."""

    cut: Cut
    wrong: list[str]

    def __str__(self) -> str:
        cut, wrong = self.cut, "; ".join(self.wrong)
        return f"cut after operation {cut.number} ({cut.last!r}), {cut.state.title}: {wrong}"


def cuts(
    operations: Iterable[Operation], model: Model, seed: int, stride: int = 1
) -> Iterator[Cut]:
    """Yield every state after every operation, each once as long as nothing else has happened.

    Args:
        operations: A recording.
        model: What the disk promises.
        seed: Draws the random combinations.
        stride: The power is cut after one operation in how many.
    """
    source = Random(seed)  # noqa: S311  combinations, not secrets
    disk, marks, seen = Disk(model), list[str](), set[bytes]()
    certain = frozenset[str]()
    for number, operation in enumerate(operations, 1):
        disk.do(operation)
        if isinstance(operation, Mark):
            marks.append(operation.text)
            seen.clear()
        if isinstance(operation, Sync):
            accepted = [mark.split(" ")[1] for mark in marks if mark.startswith("accepted")]
            certain |= disk.least().certain(accepted)
        if number % stride:
            continue
        for state in disk.states(source):
            if state.digest not in seen:
                seen.add(state.digest)
                yield Cut(number, operation, tuple(marks), state, certain)


def judge(scene: Scene, cut: Cut) -> Fault | None:
    """Let *scene* continue after *cut*, and return what is wrong, or None."""
    service = scene.service()
    service.remember(cut.marks)
    with _folder() as folder, patch.dict(os.environ, {"XDG_STATE_HOME": f"{folder}/home"}):
        root = folder / "root"
        root.mkdir()
        cut.state.build(root)
        try:
            wrong = scene.found(service, root) + scene.resume(service, root)
            wrong += [f"{task} was on the disk" for task in cut.certain - scene.recorded(root)]
        except Exception as error:  # noqa: BLE001  that is a fault, too
            wrong = [f"{type(error).__name__}: {error}"]
    return Fault(cut, wrong) if wrong else None


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    path = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path)
