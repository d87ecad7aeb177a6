"""Runs a scene in processes of its own: `python -m tests.powercuts.program SCENE FOLDER NUMBER`.

Its files are below the folder `root` in FOLDER. What happens is written to the file `marks`, where
strace sees it, and where the next process of the scene finds the service's books. NUMBER says which
process of the scene it is. With another argument, the order of its operations is added to the file
`order`, without strace.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from .audit import Audit
from .disk import NOTED_NUMBER, MakeFile, MakeFolder, Operation, Write
from .scenes import SCENES
from .strace import operations, trace

_HERE = Path(__file__).parents[2]


def commands(name: str, folder: Path, *order: str) -> Iterator[list[str]]:
    """Yield the commands that run the processes of a scene, one after the other."""
    (folder / "root").mkdir(parents=True)
    (folder / "marks").touch()
    for number in range(len(SCENES[name].deaths) + 1):
        program = [sys.executable, "-m", "tests.powercuts.program"]
        yield [*program, name, str(folder), str(number), *order]


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
    logs = [
        trace(command, folder / "strace.log", environment()) for command in commands(name, folder)
    ]
    return [*_numbered(operations("".join(logs), folder / "root", folder / "marks"))]


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
    for command in commands(name, folder, "order"):
        done = subprocess.run(command, env=environment(), check=False, timeout=120)  # noqa: S603  our own program
        assert done.returncode in (0, -signal.SIGKILL)
    return (folder / "order").read_text("utf-8").splitlines()


def main(name: str, place: str, number: str, order: str = "") -> None:
    """Run a process of a scene."""
    gc.disable()  # what removes its file when it is collected does so at the end, in each run
    scene, folder = SCENES[name], Path(place)
    os.environ["XDG_STATE_HOME"] = str(folder / "home")  # on a disk of its own
    root, marks = folder / "root", os.open(folder / "marks", os.O_RDWR)
    audit: Audit | None = None

    def mark(text: str) -> None:
        os.write(marks, text.encode() + b"\n")
        if audit is not None:
            audit.note(f"mark {text}")

    service = scene.service(mark)
    service.remember(os.read(marks, 1 << 20).decode().splitlines())
    deaths = (*scene.deaths, None)
    service.dies_after = deaths[int(number)]
    if not order:
        scene.run(service, root)
        return
    lines = (folder / order).open("a", encoding="utf-8", buffering=1)  # to the very end
    audit = Audit(root, lambda line: print(line, file=lines))
    audit.begin()
    scene.run(service, root)


if __name__ == "__main__":
    main(*sys.argv[1:])
