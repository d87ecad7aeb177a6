"""Programs that are recorded now: they do what the recordings show, and survive as well."""

from __future__ import annotations

import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from .disk import MakeFile, Mark, Model, Operation, Resize, Sync, Write
from .program import ordered, traced
from .recording import COMMAND, load, order
from .replay import cuts, judge
from .scenes import SCENES
from .strace import operations


@pytest.fixture(scope="session")
def _strace() -> None:
    """Install strace, if it is missing and this process may. Without it, the tests fail."""
    if shutil.which("strace") is None:
        for command in (["update", "-q"], ["install", "-y", "-q", "strace"]):
            subprocess.run(["apt-get", *command], check=True, timeout=600)  # noqa: S603, S607  Debian's


@pytest.mark.nightly
@pytest.mark.usefixtures("_strace")
@pytest.mark.parametrize("name", SCENES)
def test_recorded_now(name: str, tmp_path: Path) -> None:
    """A new recording shows the same order, and the library survives each cut of it, too."""
    now = traced(name, tmp_path / "traced")
    if SCENES[name].is_steady:
        assert order(now) == order(load(name)), f"Record anew: {COMMAND}"
        assert order(now) == ordered(name, tmp_path / "ordered")
    assert sum(isinstance(one, Sync) for one in now) > 5
    for model in Model:
        tried = [judge(SCENES[name], cut) for cut in islice(cuts(now, model, 2), 0, None, 2)]
        assert [str(fault) for fault in tried if fault is not None] == []
        print(f"{name}, {model}, recorded now: {len(tried)} states")  # noqa: T201  the night's figures


def hexed(text: str) -> str:
    """Write a text as `strace -xx` does."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


ROOT, MARKS = Path("/place/root"), Path("/place/marks")
FILE = hexed("/place/root/a")
OPEN = f'7 openat(AT_FDCWD, "{FILE}", O_RDWR|O_CREAT|O_EXCL, 0600) = 4<{FILE}>'
AB = f'write(4<{FILE}>, "{hexed("ab")}", 2)'


def read(*lines: str) -> list[Operation]:
    return [*operations("\n".join(lines), ROOT, MARKS)]


def test_writes_follow_the_position() -> None:
    """A write is where the file is open: after an earlier one, or where it was sought."""
    sought = f"7 lseek(4<{FILE}>, 7, SEEK_SET) = 7"
    placed = f'7 pwrite64(4<{FILE}>, "{hexed("ab")}", 2, 9) = 2'
    assert read(OPEN, f"7 {AB} = 2", f"7 {AB} = 1", sought, f"7 {AB} = 2", placed) == [
        MakeFile("a"),
        Write("a", 0, b"ab"),
        Write("a", 2, b"a"),  # a full disk takes a part only
        Write("a", 7, b"ab"),
        Write("a", 9, b"ab"),
    ]


def test_calls_of_two_threads() -> None:
    """A call counts when it has ended, although another thread came in between."""
    begun, ended = f"7 fsync(4<{FILE}> <unfinished ...>", "7 <... fsync resumed>) = 0"
    assert read(OPEN, begun, f"8 {AB} = 2", ended) == [
        MakeFile("a"),
        Write("a", 0, b"ab"),
        Sync("a"),
    ]


def test_what_is_elsewhere_or_failed() -> None:
    """Files elsewhere, removed files and calls that failed change nothing; marks are told."""
    other = hexed("/place/rooted")
    marks = hexed(str(MARKS))
    assert read(
        f'7 openat(AT_FDCWD, "{other}", O_RDWR|O_CREAT, 0600) = 4<{other}>',
        f'7 write(4<{other}>, "{hexed("ab")}", 2) = 2',
        f'7 write(4<{FILE}>(deleted), "{hexed("ab")}", 2) = 2',
        f'7 mkdir("{FILE}", 0777) = -1 EEXIST (File exists)',
        f'7 write(3<{marks}>, "{hexed("told task-1 bay")}\\x0a", 16) = 16',
        f"7 ftruncate(4<{FILE}>, 3) = 0",
    ) == [Mark("told task-1 bay"), Resize("a", 3)]


@pytest.mark.parametrize(
    "call",
    [
        f"7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4<{FILE}>, 0) = 0x7f0000000000",
        f"7 fallocate(4<{FILE}>, 0, 0, 4096) = 0",
        f'7 rename("{FILE}", "{hexed("/elsewhere")}") = 0',
        f'7 openat(AT_FDCWD, "{FILE}", O_WRONLY|O_APPEND) = 5<{FILE}>',
    ],
)
def test_what_cannot_be_recorded(call: str) -> None:
    """A call that the model does not have is an error: replaying without it would prove nothing."""
    with pytest.raises(NotImplementedError):
        read(OPEN, call)


def test_the_shared_memory_of_a_database() -> None:
    """Only a `-shm` file may be mapped: no state has it."""
    shared = hexed("/place/root/a-shm")
    call = f"7 mmap(NULL, 32768, PROT_READ|PROT_WRITE, MAP_SHARED, 4<{shared}>, 0) = 0x7f0000000000"
    assert read(call) == []
