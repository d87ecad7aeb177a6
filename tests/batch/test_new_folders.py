"""New folders are durable: the name of each is on the disk before a create is sent."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from muybridge import Client, ImgbRequest, batch
from muybridge.batch import SharedBatch

from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .runner_process import KEY, horses

if os.name != "posix":
    pytest.skip("names are flushed on POSIX systems alone", allow_module_level=True)


@attrs.define
class Disk:
    """What the system was asked for.

    Attributes:
        folder: Where folders are of interest.
        unsafe: The folders whose names a power cut may lose.
    """

    folder: Path
    unsafe: list[Path] = attrs.field(factory=list[Path])

    def made(self, path: Any) -> None:
        """Take note of a new folder."""
        folder = Path(path).absolute()
        # Locks end with their processes.
        if folder.is_relative_to(self.folder) and not folder.name.endswith(".owners"):
            self.unsafe.append(folder)

    def synced(self, handle: Any) -> None:
        """Take note that the names in a folder are on the disk."""
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            self.unsafe = [
                path
                for path in self.unsafe
                if not os.path.samestat(path.parent.stat(), os.fstat(handle))
            ]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Watch the folders of a test."""
    watched = Disk(tmp_path)

    def noting(call: Callable[..., None], note: Callable[[Any], None]) -> Callable[..., None]:
        def calling(given: Any, *rest: Any, **more: Any) -> None:
            call(given, *rest, **more)
            note(given)

        return calling

    monkeypatch.setattr(os, "mkdir", noting(os.mkdir, watched.made))
    monkeypatch.setattr(os, "fsync", noting(os.fsync, watched.synced))
    return watched


@pytest.fixture
def at_create(server: BillingServer, disk: Disk) -> list[Path]:
    """The folders that a power cut could have taken away when a create was sent."""
    unsafe: list[Path] = []
    server.on_create = lambda _: unsafe.extend(disk.unsafe)
    return unsafe


def test_the_folder_of_a_batch(
    run: Run, server: BillingServer, disk: Disk, at_create: list[Path], tmp_path: Path
) -> None:
    """Its store would be lost with it, and the next run would pay again."""
    assert run(server, horses(2), sidecar=True).done
    assert (tmp_path / "out" / "state").is_dir()
    assert (server.posts, at_create) == (2, [])
    thumbnails = tmp_path / "out" / "state" / "thumbnails"  # they can be made again
    assert [path for path in disk.unsafe if path != thumbnails] == []


def test_each_level_above_it(
    server: BillingServer, disk: Disk, at_create: list[Path], tmp_path: Path
) -> None:
    """Folders above the batch's that are made for it hold its name, too."""
    out = tmp_path / "this" / "year" / "horses"
    with Client(KEY, server.url, poll_interval=0.005) as client:
        assert batch.run(client, horses(1), out).done
    assert (server.posts, at_create) == (1, [])
    assert disk.unsafe == []


def test_folders_that_the_program_has_just_made(
    server: BillingServer, disk: Disk, at_create: list[Path], tmp_path: Path
) -> None:
    """Programs make folders without syncing their names, and the store is in them."""
    out = tmp_path / "this" / "year" / "horses"
    out.mkdir(parents=True)
    assert len(disk.unsafe) == 3
    with Client(KEY, server.url, poll_interval=0.005) as client:
        assert batch.run(client, horses(1), out).done
    assert (server.posts, at_create, disk.unsafe) == (1, [], [])


def test_folders_of_a_store(server: BillingServer, at_create: list[Path], tmp_path: Path) -> None:
    """The same holds for a store: without it, a name would be paid for again."""
    folder = tmp_path / "this" / "year"
    folder.mkdir(parents=True)
    with Client(KEY, server.url, store=folder / "books" / "store.sqlite3") as client:
        client.create_once("order 1", ImgbRequest(model="imgb-2", prompt="a horse"))
    assert (server.posts, at_create) == (1, [])


def test_the_spool_of_a_worker(
    work: Work,
    server: BillingServer,
    shared: SharedBatch,
    disk: Disk,
    at_create: list[Path],
    tmp_path: Path,
) -> None:
    """It holds responses that the database cannot take, and results that S3 does not take yet."""
    submit(server, shared, 2)
    assert work(server, shared, spool=tmp_path / "deep" / "spool").done
    assert (server.posts, at_create, disk.unsafe) == (2, [], [])


def test_the_folder_of_a_download(server: BillingServer, disk: Disk, tmp_path: Path) -> None:
    """The link of a result expires, so its file must not be lost with a folder."""
    with Client(KEY, server.url, poll_interval=0.005) as client:
        task = client.create(ImgbRequest(model="imgb-2", prompt="a horse"))
        path = client.download(client.wait(task), f"{tmp_path}/pictures/today/")
    assert path.is_relative_to(tmp_path / "pictures" / "today")
    assert disk.unsafe == []
