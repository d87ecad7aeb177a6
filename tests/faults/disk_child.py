"""Downloads in processes of their own: on a disk that is small, or fails, or with SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from client.drivers import DRIVERS
from muybridge import DownloadFailed
from muybridge.files import saving
from processes import Nursery, environment, serve

_THIS = [sys.executable, "-W", "error", "-m", "faults.disk_child"]


def on_small_disk(url: str, folder: Path, *, filled: bool = False) -> dict[str, list[str]]:
    """Download *url* onto disks of 16 KiB, then with room; return what happened, by driver.

    That is what was told at first, the files left, what was told then, and the files at the end.
    The disks are seen by that process alone.

    Args:
        url: What to download.
        folder: Where the disks are mounted.
        filled: Whether each is full at first, with a file `filler`.
    """
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("there is no unshare to mount a disk with")
    disks = {driver: folder / driver for driver in DRIVERS}
    for disk in disks.values():
        disk.mkdir()
    child = " ".join([*_THIS, *_orders(url, folder)])
    listed = "; ".join(f"ls {disk} | xargs" for disk in disks.values())
    mounted = " && ".join(f"mount -t tmpfs -o size=16k tmpfs {disk}" for disk in disks.values())
    if filled:
        mounted += "".join(
            f" && head -c 16384 /dev/zero > {disk}/filler" for disk in disks.values()
        )
    enlarged = "; ".join(f"mount -o remount,size=1m {disk}" for disk in disks.values())
    script = f"{mounted} || exit 77; {child}; {listed}; {enlarged}; {child}; {listed}"
    done = subprocess.run(  # noqa: S603  our own script
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],  # noqa: S607  that of the system
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4 * len(DRIVERS), lines
    return {driver: lines[number :: len(DRIVERS)] for number, driver in enumerate(DRIVERS)}


def on_failing_disk(call: str, error: str, name: str, url: str, folder: Path) -> dict[str, str]:
    """Download *url* while the system fails each *call*; return what each driver told.

    Args:
        call: The system's call.
        error: How it fails, such as `EIO`.
        name: The file by whose path it is called.
        url: What to download, to `film.mp4` in a folder of the driver's name.
        folder: Where these folders are.
    """
    strace = shutil.which("strace")
    assert strace is not None
    for driver in DRIVERS:
        (folder / driver).mkdir()
    paths = [f"--trace-path={folder}/{driver}/{name}" for driver in DRIVERS]
    done = subprocess.run(  # noqa: S603  our own script
        [strace, "-f", "-qq", "-o", os.devnull, *paths, "-e", f"trace={call}",
         "-e", f"inject={call}:error={error}", *_THIS, *_orders(url, folder)],
        env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return dict(zip(DRIVERS, done.stdout.splitlines(), strict=True))


def _orders(url: str, folder: Path) -> list[str]:
    """Return the arguments that have each driver download *url* to a folder of its name."""
    return [word for driver in DRIVERS for word in (driver, url, str(folder / driver / "film.mp4"))]


def killed(nursery: Nursery, driver: str, service: str, url: str, target: Path, step: int) -> bool:
    """Download in a process of *nursery* that dies at a line of saving; return whether it did.

    Args:
        nursery: What forks processes of this module.
        driver: Which client to use.
        service: The service's base URL.
        url: What to download.
        target: Where to.
        step: At which of the lines.
    """
    outcome = nursery.run(driver=driver, service=service, url=url, target=str(target), step=step)
    assert outcome in (None, -signal.SIGKILL), outcome
    return outcome is not None


def _dying(driver: str, service: str, url: str, target: str, step: int) -> None:
    """Download, and die at a line of saving."""
    _die_at(step, str(saving.__file__))
    with ExitStack() as closing:
        DRIVERS[driver](closing)(service).download(url, target)


def _die_at(step: int, file: str) -> None:
    """Kill this process at the *step*-th line of *file* that it comes to, in any thread."""
    left = step

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != file:
            return None
        left -= event == "line"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def _download(*arguments: str) -> None:
    for driver, url, target in zip(*[iter(arguments)] * 3, strict=True):
        with ExitStack() as closing:
            client = DRIVERS[driver](closing)(url.rpartition("/")[0])
            try:
                client.download(url, target)
            except DownloadFailed as error:
                print(type(error).__name__, error, flush=True)  # noqa: T201  read by the test
            else:
                print("saved", flush=True)  # noqa: T201  the same


if __name__ == "__main__":
    if sys.argv[1:]:
        _download(*sys.argv[1:])
    else:
        serve(_dying, "muybridge.wire.requests_transport", "muybridge.wire.trio_transport")
