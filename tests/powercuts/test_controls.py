"""Faults that are planted in the recordings, and in the caller: the judges find each of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator

import attrs
import pytest

from .batches import Batch
from .disk import Link, Mark, Model, Operation, Remove, Rename, Sync, Write
from .names import Names, naively
from .pictures import Pictures
from .recording import load
from .replay import cuts, judge
from .scene import Scene

Plant = Callable[[list[Operation]], Iterable[Operation]]
"""Changes a recording as if the program had a fault."""

SCENES: dict[str, Scene] = {scene.name: scene for scene in (Batch(), Names(), Pictures())}


TWICE = "was paid for twice"


def found(scene: Scene, operations: Iterable[Operation], model: Model) -> str:
    """Return the first faults that are found, or "".

    What is wrong with a purchase shows when the power is cut just after it.
    """
    is_purchase = scene.name != Pictures.name
    for cut in cuts(operations, model, 1):
        if not is_purchase or isinstance(cut.last, Mark):
            fault = judge(scene, cut)
            if fault is not None:
                return "; ".join(fault.wrong)
    return ""


def without_folder(folder: str) -> Plant:
    """Do not sync the names in *folder*, unless SQLite does."""

    def plant(operations: list[Operation]) -> Iterator[Operation]:
        before: Operation = Mark("")
        for one in operations:
            by_sqlite = isinstance(before, Sync | Remove) and before.path.endswith("-journal")
            if one != Sync(folder) or by_sqlite:
                yield one
            before = one

    return plant


FOLDERS = [
    ("batch", "", TWICE),
    ("batch", "paddock", TWICE),
    ("batch", "paddock/today", TWICE),
    ("names", "", TWICE),
    ("names", "state", TWICE),
    ("pictures", "", "is gone"),
    ("pictures", "pictures", "is gone"),
    ("pictures", "pictures/today", "the sidecar of task-1-bay.png is not that of the file"),
]


@pytest.mark.parametrize(("name", "folder", "fault"), FOLDERS)
def test_a_folder_that_is_not_synced(name: str, folder: str, fault: str) -> None:
    """The name of each new folder has to be synced before anything relies on it."""
    plant = without_folder(folder)
    assert fault in found(SCENES[name], plant(load(name)), Model.STRICT)


def off(operations: list[Operation]) -> Iterator[Operation]:
    """Do what SQLite does with `PRAGMA synchronous = OFF`: sync nothing."""
    after_journal = False
    for one in operations:
        match one:
            case Sync(path) if path.endswith((".sqlite3", ".new", "-journal")):
                after_journal = path.endswith("-journal")
                continue
            case Sync() if after_journal:
                pass
            case _:
                yield one
        after_journal = isinstance(one, Remove) and one.path.endswith("-journal")


def full(operations: list[Operation]) -> Iterator[Operation]:
    """Do what SQLite does with `PRAGMA synchronous = FULL`: sync no folder after a commit."""
    before: Operation = Mark("")
    for one in operations:
        committed = isinstance(before, Remove) and before.path.endswith("-journal")
        if not (isinstance(one, Sync) and committed):
            yield one
        before = one


def nothing(operations: list[Operation]) -> Iterator[Operation]:
    """Sync nothing at all, like a disk that says that it has."""
    return (one for one in operations if not isinstance(one, Sync))


@pytest.mark.parametrize("name", ["batch", "names"])
@pytest.mark.parametrize(
    ("plant", "model", "fault"),
    [
        (off, Model.STRICT, "damaged"),
        (full, Model.STRICT, TWICE),
        (nothing, Model.STRICT, TWICE),
        (nothing, Model.ORDERED, "damaged"),
    ],
)
def test_a_database_that_is_not_synced(name: str, plant: Plant, model: Model, fault: str) -> None:
    """With less than `synchronous = EXTRA`, something is paid for twice or is damaged."""
    assert fault in found(SCENES[name], plant(load(name)), model)


def renamed_first(operations: list[Operation]) -> Iterator[Operation]:
    """Give a picture its name before it is synced."""
    held: Sync | None = None
    for one in operations:
        match one:
            case Sync(path) if path.endswith(".part"):
                held = one
            case Rename(path, to) if held is not None and path == held.path:
                yield one
                yield Sync(to)
                held = None
            case _:
                yield one


def linked_first(operations: list[Operation]) -> Iterator[Operation]:
    """Give a sidecar its name before it is synced."""
    held: Sync | None = None
    for one in operations:
        match one:
            case Sync(path) if ".png.json." in path:
                held = one
            case Link() if held is not None:
                yield one
                yield held
                held = None
            case _:
                yield one


def described_first(operations: list[Operation]) -> Iterator[Operation]:
    """Write a sidecar before its picture has its name."""
    held: list[Operation] = []
    for one in operations:
        match one:
            case Rename(_, to) if to.endswith(".png"):
                held = [one]
            case Link(_, to) if to.endswith(".png.json"):
                yield from (one, *held)
                held = []
            case Sync() if held:
                held.append(one)
            case _:
                yield one


@pytest.mark.parametrize(
    ("plant", "model", "fault"),
    [
        (renamed_first, Model.STRICT, "is not whole"),
        (renamed_first, Model.ORDERED, "is not whole"),
        (linked_first, Model.STRICT, "it is another file"),
        (described_first, Model.STRICT, "is not that of the file"),
        (described_first, Model.ORDERED, "is not that of the file"),
        (nothing, Model.ORDERED, "is not whole"),
    ],
)
def test_a_result_that_has_its_name_too_early(plant: Plant, model: Model, fault: str) -> None:
    """A result is whole before it has its name, and has its name before it has a sidecar."""
    assert fault in found(Pictures(), plant(load("pictures")), model)


def test_a_length_without_a_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download that is resumed at the length of its part alone is not whole."""

    def unsure(_data: object, _before: int = 0) -> int:
        return 0

    def plant(operations: list[Operation]) -> Iterator[Operation]:
        for one in operations:
            if isinstance(one, Write) and ".part.json" in one.path:
                yield attrs.evolve(one, data=re.sub(rb"(?m)^(\d+) \d+$", rb"\1 0", one.data))
            else:
                yield one

    monkeypatch.setattr(zlib, "crc32", unsure)
    assert "is not whole" in found(Pictures(), plant(load("pictures")), Model.STRICT)


@pytest.mark.parametrize("model", Model)
def test_a_naive_caller(model: Model) -> None:
    """A program that sends again what may have been accepted pays twice."""
    assert TWICE in found(Names(naively), load("names"), model)
