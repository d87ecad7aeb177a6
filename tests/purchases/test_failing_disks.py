"""A store on a disk that is full, read-only, another user's, or cannot lock: nothing is sent.

The disks and faults are real: mounted for one process, or committed by its system.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from processes import environment

from .buyer import can_refuse

if sys.platform != "linux":
    pytest.skip("mounts are Linux's", allow_module_level=True)

NOBODY = 65534
BUY = [sys.executable, "-W", "error", "-m", "purchases.buyer"]
WRITABLE = "Nothing is sent. Make the file and its folder writable."
DISK = "Nothing is sent. Use a folder on a disk that supports locks and hard links."


def run(command: Sequence[str], state: Path) -> list[str]:
    """Run a command, and return the lines that it prints. *state* is the user's state folder."""
    done = subprocess.run(  # noqa: S603  our own
        command, env=environment(XDG_STATE_HOME=str(state)), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == 77 or "ptrace" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(f"not allowed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def on_a_disk(folder: Path, script: str) -> list[str]:
    """Run a shell script with a disk of 256 KiB at *folder*, which it alone sees. `BUY` buys."""
    disk = folder / "disk"
    disk.mkdir()
    buy = " ".join([*BUY, f"{disk}/store.sqlite3"])
    mount = f"mount -t tmpfs -o size=256k tmpfs {disk} || exit 77; cd {disk}; BUY='{buy}'"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mount}; {script}"]
    return run(command, folder / "state")


def test_a_full_disk(tmp_path: Path) -> None:
    """Nothing is armed, and it works again once there is room."""
    told = on_a_disk(
        tmp_path,
        "$BUY; head -c 300000 /dev/zero > filler 2>/dev/null; $BUY; $BUY; rm filler; $BUY",
    )
    assert told[0] == "armed, 1 spent"
    for line in told[1:3]:
        assert "Nothing is sent. Make room on the disk, then run again." in line
    assert told[3:] == ["armed, 2 spent"]


def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path) -> None:
    """No store is begun, and none that is half there is left."""
    told = on_a_disk(
        tmp_path, "head -c 300000 /dev/zero > filler 2>/dev/null; $BUY; ls; rm filler; $BUY"
    )
    assert "Nothing is sent. Make room on the disk, then run again." in told[0]
    assert "store.sqlite3" not in told
    assert told[-1] == "armed, 1 spent"


def test_a_disk_that_becomes_read_only(tmp_path: Path) -> None:
    """The message says that it must be writable."""
    told = on_a_disk(tmp_path, "$BUY; mount -o remount,ro .; $BUY; mount -o remount,rw .; $BUY")
    assert told[0] == "armed, 1 spent"
    assert WRITABLE in told[1]
    assert told[2:] == ["armed, 2 spent"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("mode", [0o755, 0o777], ids=["closed folder", "open folder"])
def test_a_file_of_another_user(tmp_path_factory: pytest.TempPathFactory, mode: int) -> None:
    """It is neither used nor replaced."""
    folder = Path("/tmp") / tmp_path_factory.mktemp("shared").name  # noqa: S108  all can reach it
    folder.mkdir()
    try:
        folder.chmod(mode)
        place = folder / "store.sqlite3"
        assert run([*BUY, str(place)], folder / "root") == ["armed, 1 spent"]
        before = place.read_bytes()
        [told] = run([*BUY, str(place), json.dumps({"user": NOBODY})], folder / "nobody")
        assert WRITABLE in told
        assert place.read_bytes() == before
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(not can_refuse(), reason="no known numbers of system calls")
@pytest.mark.parametrize("call", ["flock", "fcntl"])
@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def test_a_disk_that_cannot_lock(tmp_path: Path, call: str, error: str) -> None:
    """Neither the lock of an owner, nor those of SQLite."""
    place = tmp_path / "store.sqlite3"
    assert run([*BUY, str(place)], tmp_path / "state") == ["armed, 1 spent"]
    world = json.dumps({"refuses": [call, error]})
    [told] = run([*BUY, str(place), world], tmp_path / "state")
    assert DISK in told
    assert run([*BUY, str(place)], tmp_path / "state") == ["armed, 2 spent"]
