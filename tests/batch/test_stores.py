"""What each store takes, refuses and lets through, apart from a worker."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import moments
from muybridge.batch.results.places.folder import FolderStore
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.batch.results.places.s3 import S3Store

from .s3_server import S3, Fault, running

OUT = "s3://studio/horses"
LARGEST = 5 * 1024**3
"""Bytes that S3 takes in one PUT, as its manual says."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with running() as serving:
        yield serving


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An empty bucket, and an environment that names it."""
    server.reset()
    for name, value in server.settings.items():
        monkeypatch.setenv(name, value)
    return server


def stored(file: Path, content: bytes, task: str) -> str:
    """Store a file with this content as the horse of a task, and return the object's name."""
    file.write_bytes(content)
    return S3Store(OUT).place(file, "horse", task, ()).name.removeprefix(f"{OUT}/")


def test_an_object_of_the_same_task_and_content_is_recognized(s3: S3, tmp_path: Path) -> None:
    """Only if task, size and content agree is an object taken for what an earlier try stored."""
    picture = tmp_path / "new.png"
    assert stored(picture, b"grey", "task-1") == "horse.png"
    assert stored(picture, b"grey", "task-1") == "horse.png"
    assert stored(picture, b"bays", "task-1") == "horse-2.png"
    assert stored(picture, b"grey", "task-2") == "horse-3.png"
    assert stored(picture, b"greys", "task-1") == "horse-4.png"
    assert len(s3.objects()) == 4


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [(".png", "image/png"), (".mp4", "video/mp4"), (".horse", "binary/octet-stream")],
)
def test_an_object_has_the_type_of_its_suffix(
    suffix: str, media_type: str, s3: S3, tmp_path: Path
) -> None:
    """Browsers show a picture or a video, because its object says what it is."""
    name = stored(tmp_path / f"new{suffix}", b"horse", "task-1")
    assert s3.type_of(f"horses/{name}") == media_type


class _TakenIn(Exception):
    """The file was not refused for its size."""


@pytest.mark.usefixtures("s3")
def test_what_s3_takes_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly 5 GiB are taken, and one byte more is refused before anything is read."""

    def read(*_: object) -> None:
        raise _TakenIn

    monkeypatch.setattr("hashlib.file_digest", read)
    video = tmp_path / "long.mp4"
    video.touch()
    os.truncate(video, LARGEST)
    with pytest.raises(_TakenIn):
        S3Store(OUT).place(video, "horse", "task-1", ())
    os.truncate(video, LARGEST + 1)
    with pytest.raises(OSError, match="too large for one PUT to S3"):
        S3Store(OUT).place(video, "horse", "task-1", ())


def test_a_put_is_retried_three_times(s3: S3, tmp_path: Path) -> None:
    """A server that is overloaded is asked four times, and then it is away."""
    s3.fault = lambda _: Fault.OVERLOADED
    with pytest.raises(PlaceUnusable, match="503 SlowDown") as caught:
        stored(tmp_path / "new.png", b"horse", "task-1")
    assert caught.value.away
    assert s3.puts == ["horses/horse.png"] * 4


def test_a_result_is_on_the_disk_before_its_download_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is synced while both names of the file exist."""
    download, out = tmp_path / "new.png", tmp_path / "out"
    out.mkdir()
    download.write_bytes(b"horse")
    both: list[bool] = []

    def sync(*folders: Path) -> None:
        both.append(folders == (out,) and download.exists() and (out / "horse.png").exists())

    monkeypatch.setattr(*moments.at("file named").place, sync)
    FolderStore(out).place(download, "horse", "task-1", ())
    assert both == [True]
    assert not download.exists()


@pytest.fixture
def alarm() -> Iterator[Any]:
    """Interrupts the code that calls it by a signal whose handler raises."""

    def ring(*_: object) -> None:
        raise TimeoutError("the user's own")

    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, ring)
    yield interrupt
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGUSR1")
class TestSignalHandlers:
    """What the user's own signal handler raises comes out as itself, and blames no store."""

    @pytest.mark.usefixtures("s3")
    def test_in_s3(self, alarm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """While an object is put."""
        store = S3Store(OUT)
        monkeypatch.setattr(*moments.at("object put").place, alarm)
        with pytest.raises(TimeoutError, match="the user's own"):
            store.check()

    def test_in_a_folder(self, alarm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """While the folder is checked."""
        monkeypatch.setattr(Path, "hardlink_to", alarm)
        with pytest.raises(TimeoutError, match="the user's own"):
            FolderStore(tmp_path / "out", tmp_path / "spool").check()
        assert [*tmp_path.rglob(".muybridge*")] == []
