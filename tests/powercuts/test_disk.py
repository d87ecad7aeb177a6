"""The models of a disk themselves: what they lose, what they keep, and what each program sees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from .disk import (
    SECTOR,
    Disk,
    Link,
    MakeFile,
    MakeFolder,
    Mark,
    Model,
    Operation,
    Remove,
    Rename,
    Resize,
    State,
    Sync,
    Write,
)
from .recording import load
from .scenes import SCENES

OLD, NEW = b"o" * SECTOR, b"n" * SECTOR


def left(operations: Sequence[Operation], model: Model) -> list[dict[str, bytes]]:
    """Return the files that each state has, by path."""
    disk = Disk(model)
    for one in operations:
        disk.do(one)
    return [files(state) for state in disk.states(Random(1))]  # noqa: S311  combinations


def files(state: State) -> dict[str, bytes]:
    return {
        path: state.contents[number]
        for path, number in state.names.items()
        if number in state.contents
    }


def contents(states: list[dict[str, bytes]], path: str) -> set[bytes | None]:
    """Return what a file may hold, or None for one that is gone."""
    return {state.get(path) for state in states}


@pytest.mark.parametrize("model", Model)
def test_what_was_synced_is_kept(model: Model) -> None:
    """A file whose data and name were synced is in every state."""
    states = left([MakeFile("a"), Write("a", 0, NEW), Sync("a"), Sync("")], model)
    assert contents(states, "a") == {NEW}


def test_a_name_is_synced_with_its_folder() -> None:
    """The strict model loses the name of a synced file; the ordered one keeps it with the file."""
    file: list[Operation] = [MakeFile("a"), Write("a", 0, NEW), Sync("a")]
    assert contents(left(file, Model.STRICT), "a") == {NEW, None}
    assert contents(left(file, Model.ORDERED), "a") == {NEW}


def test_a_folder_takes_its_files_along() -> None:
    """A file is gone if the name of a folder above it is, although its own name was synced."""
    made: list[Operation] = [
        MakeFolder("a"),
        MakeFolder("a/b"),
        MakeFile("a/b/c"),
        Sync("a/b/c"),
        Sync("a/b"),
    ]
    assert contents(left(made, Model.STRICT), "a/b/c") == {b"", None}
    assert contents(left([*made, Sync("a"), Sync("")], Model.STRICT), "a/b/c") == {b""}


def test_a_length_without_data() -> None:
    """The strict model may give a file its length and zeros; the ordered one never does."""
    grown: list[Operation] = [MakeFile("a"), Sync("a"), Sync(""), Write("a", 0, NEW * 2)]
    blank = bytes(SECTOR)
    strict = contents(left(grown, Model.STRICT), "a")
    assert strict == {b"", NEW + NEW, blank + blank, NEW + blank, blank + NEW}
    assert contents(left(grown, Model.ORDERED), "a") == {b"", NEW, NEW + NEW}


@pytest.mark.parametrize("model", Model)
def test_an_overwritten_file(model: Model) -> None:
    """Data that is overwritten in place is torn between its sectors, and nowhere else."""
    written: list[Operation] = [
        MakeFile("a"),
        Write("a", 0, OLD * 2),
        Sync("a"),
        Sync(""),
        Write("a", 0, NEW * 2),
    ]
    seen = contents(left(written, model), "a")
    assert {OLD + OLD, NEW + NEW, NEW + OLD} <= seen
    for content in seen - {None}:
        assert content is not None
        assert len(content) == 2 * SECTOR
        assert {content[:SECTOR], content[SECTOR:]} <= {OLD, NEW}


def test_a_rename_before_the_data() -> None:
    """A file that was renamed over another one before it was synced may be empty."""
    renamed: list[Operation] = [
        MakeFile("a"), Write("a", 0, OLD), Sync("a"), Sync(""),
        MakeFile("b"), Write("b", 0, NEW), Rename("b", "a"),
    ]  # fmt: skip
    for model in Model:
        assert contents(left(renamed, model), "a") >= {OLD, NEW, b""}
        assert None not in contents(left(renamed, model), "a")


def test_names_in_order() -> None:
    """The ordered model keeps no change of names without all earlier ones."""
    made: list[Operation] = [MakeFile("a"), MakeFile("b"), Remove("a")]
    ordered = {tuple(sorted(state)) for state in left(made, Model.ORDERED)}
    assert ordered == {(), ("a",), ("a", "b"), ("b",)}
    assert ("b",) in {tuple(sorted(state)) for state in left(made[:2], Model.STRICT)}
    assert ("b",) not in {tuple(sorted(state)) for state in left(made[:2], Model.ORDERED)}


def test_a_shared_mapping() -> None:
    """No state has a `-shm` file: nobody syncs what is mapped."""
    made: list[Operation] = [MakeFile("a-shm"), Write("a-shm", 0, NEW), Sync("a-shm"), Sync("")]
    assert contents(left(made, Model.STRICT), "a-shm") == {None}


def test_two_names_of_a_file(tmp_path: Path) -> None:
    """What has two names is one file, after a cut as well."""
    disk = Disk(Model.STRICT)
    for one in (MakeFile("a"), Write("a", 0, NEW), Link("a", "b"), Mark("told"), Sync("a")):
        disk.do(one)
    next(disk.states(Random(1))).build(tmp_path)  # noqa: S311  combinations, not secrets
    assert (tmp_path / "a").samefile(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == NEW


@pytest.mark.parametrize("name", SCENES)
def test_a_disk_without_a_cut(name: str, tmp_path: Path) -> None:
    """A state in which everything is kept is what a real file system has after the same calls."""
    disk, real, model = Disk(Model.STRICT), tmp_path / "real", tmp_path / "model"
    real.mkdir()
    model.mkdir()
    for one in load(name):
        disk.do(one)
        do(real, one)
    next(disk.states(Random(1))).build(model)  # noqa: S311  combinations, not secrets
    assert listed(real) == listed(model)
    assert len(listed(real)) >= 4


def do(root: Path, one: Operation) -> None:
    """Do an operation in a real folder."""
    match one:
        case MakeFolder(path):
            (root / path).mkdir()
        case MakeFile(path):
            (root / path).touch(exist_ok=False)
        case Write(path, offset, data):
            with (root / path).open("r+b") as file:
                file.seek(offset)
                file.write(data)
        case Resize(path, size):
            with (root / path).open("r+b") as file:
                file.truncate(size)
        case Link(path, to):
            (root / to).hardlink_to(root / path)
        case Rename(path, to):
            (root / path).replace(root / to)
        case Remove(path):
            (root / path).unlink()
        case Sync() | Mark():
            pass


def listed(root: Path) -> dict[str, bytes | None]:
    """Return all files and folders below *root*, with what they hold."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }
