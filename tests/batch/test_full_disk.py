"""Workers whose disk is full: nothing is lost, and nothing more is paid for."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge import batch
from muybridge.batch import PlaceUnusable, SharedBatch, Stage, StoreUnusable
from muybridge.batch.results.places import folder
from muybridge_protocol.service import Service
from processes import environment

from .billing import BillingServer
from .conftest import Run, Work
from .runner_process import KEY, horses

FULL = "No space left on device. Make room on the disk, then run again."


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A disk that takes no results while `full` is set, and no probes while `no_probes` is."""
    state = {"full": True, "no_probes": False}
    write_all, write_bytes = moments.at("bytes saved").value, Path.write_bytes

    def writing(file: Any, data: bytes) -> None:
        if state["full"] and data.startswith(b"\x89PNG"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(file, data)

    def probing(path: Path, data: bytes) -> int:
        if state["no_probes"] and ".muybridge-" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        return write_bytes(path, data)

    monkeypatch.setattr(*moments.at("bytes saved").place, writing)
    monkeypatch.setattr(Path, "write_bytes", probing)
    monkeypatch.setattr(*moments.constant("shortest pause of a worker"), 0.01)
    return state


def test_a_disk_that_fills_up(
    work: Work, server: BillingServer, shared: SharedBatch, disk: dict[str, bool]
) -> None:
    """A worker that cannot save a result creates no more, says why, and resumes once it can."""
    batch.submit(shared, horses(3), Service(base_url=server.url))
    report = work(server, shared, creates=1, concurrency=1)
    assert report.counts == {Stage.QUEUED: 2, Stage.COMPLETED: 1}
    assert report.stopped.endswith(FULL)
    assert server.posts == 1
    disk["full"] = False
    assert work(server, shared).counts == {Stage.DOWNLOADED: 3}
    assert (server.posts, server.doubles) == (3, [])


def test_a_disk_without_any_room(
    work: Work, server: BillingServer, shared: SharedBatch, disk: dict[str, bool], tmp_path: Path
) -> None:
    """A disk that takes nothing more ends a worker; one that was full before sends nothing."""
    batch.submit(shared, horses(2), Service(base_url=server.url))
    disk["no_probes"] = True
    with pytest.raises(PlaceUnusable, match=FULL):
        work(server, shared)
    assert server.requests == 0
    disk["no_probes"] = False

    def fill(_: object) -> None:
        disk["no_probes"] = True

    with pytest.raises(PlaceUnusable, match=FULL):
        work(server, shared, creates=1, concurrency=1, on_event=fill)
    assert batch.shared_status(shared).counts == {Stage.QUEUED: 1, Stage.COMPLETED: 1}
    disk.update(full=False, no_probes=False)
    assert work(server, shared).counts == {Stage.DOWNLOADED: 2}
    assert (server.posts, server.doubles) == (2, [])
    assert [*(tmp_path / "out").glob(".muybridge*")] == []


def test_a_batch_in_a_folder(run: Run, server: BillingServer, disk: dict[str, bool]) -> None:
    """A run in a folder does the same."""
    report = run(server, horses(3), concurrency=1)
    assert report.counts == {Stage.QUEUED: 2, Stage.COMPLETED: 1}
    assert report.stopped.endswith(FULL)
    disk["full"] = False
    assert run(server, None).counts == {Stage.DOWNLOADED: 3}
    assert (server.posts, server.doubles) == (3, [])


def test_a_folder_that_cannot_be_synced(
    run: Run, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that cannot put away what the last one left says what to do, and sends nothing."""
    run(server, horses(2), limit=1)
    sync = os.fsync

    def refuse(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", refuse)
        with pytest.raises(StoreUnusable, match=r"No space left on device\. .*run again"):
            run(server, None)
    assert server.posts == 1
    assert run(server, None).counts == {Stage.DOWNLOADED: 2}
    assert (server.posts, server.doubles) == (2, [])


def test_only_some_errors_are_the_disks() -> None:
    """An error that another result would not meet concerns one item alone."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        error = OSError(number, os.strerror(number))
        assert str(folder.no_room(error, Path("out"))).startswith("out: ")
    for number in (errno.EIO, errno.EACCES, errno.ENAMETOOLONG):
        assert folder.no_room(OSError(number, ""), Path("out")) is None
    assert folder.no_room(ValueError("full"), Path("out")) is None


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no second disk")  # noqa: S108  to find one
def test_a_spool_on_another_disk(
    work: Work, server: BillingServer, shared: SharedBatch, tmp_path: Path
) -> None:
    """A spool from which results cannot be linked is refused before anything is sent."""
    batch.submit(shared, horses(1), Service(base_url=server.url))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as spool:
        if Path(spool).stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is no second disk")
        with pytest.raises(PlaceUnusable, match="Use a spool on the disk that the results go to"):
            work(server, shared, spool=spool)
    assert server.requests == 0


def test_a_small_disk(server: BillingServer, shared: SharedBatch, tmp_path: Path) -> None:
    """On a real disk that takes a response but no picture, `worker` ends with 6, and then with 0.

    The disk is seen by one process and its children alone.
    """
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("there is no unshare to mount a disk with")
    batch.submit(shared, horses(2), Service(base_url=server.url), out=tmp_path / "disk")
    (tmp_path / "disk").mkdir()
    work = (
        f"{sys.executable} -m muybridge worker --store '{shared.store!s}' --batch horses "
        "--creates 1 --concurrency 1 --poll-interval 0.01"
    )
    script = (
        f"mount -t tmpfs -o size=72k tmpfs {tmp_path}/disk || exit 77; {work}; echo $?; "
        f"mount -o remount,size=1m {tmp_path}/disk; {work}; echo $?; ls {tmp_path}/disk"
    )
    # Whoever is root need not become it, and is let into the folder of the database's user.
    become_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(  # noqa: S603  our own script
        ["unshare", *become_root, "--mount", "sh", "-c", script],  # noqa: S607  that of the system
        env={**environment(), "MUYBRIDGE_BASE_URL": server.url, "MUYBRIDGE_API_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode in (1, 77) and not done.stdout:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    first, code, then, again, *files = done.stdout.splitlines()
    assert (first, code) == ("1 queued, 1 completed", "6"), done.stderr
    assert f"stopped: {tmp_path}/disk: {FULL}" in done.stderr
    assert (then, again) == ("2 downloaded", "0"), done.stderr
    assert [name for name in files if name.endswith(".png")] == ["h1.png", "h2.png"]
    assert (server.posts, server.doubles) == (2, [])
