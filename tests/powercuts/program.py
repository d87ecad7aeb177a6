"""Runs a scene in a process of its own: `python -m tests.powercuts.program SCENE FOLDER [ORDER]`.

It marks what happens by writing to the null device, where strace sees it. With a third argument, it
writes the order of its operations to that file, without strace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from .audit import Audit
from .disk import NOTED_NUMBER, MakeFile, MakeFolder, Operation, Write
from .scenes import SCENES
from .strace import MARKS, operations, trace

_HERE = Path(__file__).parents[2]


def command(name: str, root: Path, *order: Path) -> list[str]:
    """Return the command that runs a scene with its files below *root*."""
    return [sys.executable, "-m", "tests.powercuts.program", name, str(root), *map(str, order)]


def environment() -> dict[str, str]:
    """Return the environment of a program, in which Python finds this tree."""
    places = [_HERE / name for name in ("protocol", "transports", "tests", ".")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUYBRIDGE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, places))}


def traced(name: str, folder: Path) -> list[Operation]:
    """Run a scene under strace, below the new folder *folder*, and return its operations.

    Raises:
        CannotTrace: strace cannot be run here.
    """
    root = folder / "root"
    root.mkdir(parents=True)
    log = trace(command(name, root), folder / "strace.log", environment())
    return [*_numbered(operations(log, root))]


def _numbered(found: Iterable[Operation]) -> Iterator[Operation]:
    """Replace the inode that the note of an unfinished download names by its number in `Disk`."""
    numbers: dict[str, int] = {}
    made = 0
    for one in found:
        match one:
            case MakeFile(path) | MakeFolder(path):
                made += 1
                numbers[path] = made
                yield one
            case Write(path, offset, data) if path.endswith(".part.json.new"):
                named = str(numbers[path.removesuffix(".json.new")]).encode()
                yield Write(path, offset, NOTED_NUMBER.sub(named, data))
            case _:
                yield one


def ordered(name: str, folder: Path) -> list[str]:
    """Run a scene, below the new folder *folder*, and return the order of its operations."""
    root, told = folder / "root", folder / "order"
    root.mkdir(parents=True)
    subprocess.run(  # noqa: S603  our own program
        command(name, root, told), env=environment(), check=True, timeout=120
    )
    return told.read_text("utf-8").splitlines()


def main(name: str, root: str, order: str | None = None) -> None:
    """Run a scene."""
    scene, files = SCENES[name], Path(root)
    if order is None:
        marks = os.open(MARKS, os.O_WRONLY)

        def mark(text: str) -> None:
            os.write(marks, text.encode())

        scene.run(scene.service(mark), files)
        return
    with Path(order).open("w", encoding="utf-8") as lines:
        audit = Audit(files, lambda line: print(line, file=lines))
        service = scene.service(lambda text: audit.note(f"mark {text}"))
        audit.begin()
        scene.run(service, files)


if __name__ == "__main__":
    main(*sys.argv[1:])
