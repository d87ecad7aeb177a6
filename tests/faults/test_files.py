"""Files: names that lead elsewhere, disks that fail, others at the same place, and SIGKILL.

`tests/client/test_downloads.py` has the everyday faults; here the system itself commits them.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import pytest

import moments
import muybridge
from client.drivers import DRIVERS, AnyClient, MakeClient
from client.film import MEDIA, OTHER, Film
from client.in_process import PNG, World
from client.requests_made import image
from muybridge.files.locks import lock
from muybridge_protocol.events import DownloadProgress, Event
from muybridge_protocol.records.tasks import Result, Status
from processes import Nursery
from transport.scripted_server import Peer, ScriptedServer

from .disk_child import killed, on_failing_disk, on_small_disk

posix = pytest.mark.skipif(os.name != "posix", reason="a matter of posix")
nightly = pytest.mark.nightly


def refused(client: AnyClient, source: Result | str, path: str | Path) -> muybridge.DownloadFailed:
    """Return how a download fails that has to fail."""
    with pytest.raises(muybridge.DownloadFailed) as caught:
        client.download(source, path)
    return caught.value


@pytest.mark.parametrize("name", ["a\0b.png", "\0", "folder\0/", "a\ud800.png", "\ud800/a.png"])
def test_paths_that_are_none(make_client: MakeClient, tmp_path: Path, name: str) -> None:
    """An invalid path is reported like any other that cannot be saved to."""
    world = World()
    client = make_client(world)
    result = client.run(image())
    error = refused(client, result, f"{tmp_path}/{name}")
    assert error.task is not None
    assert error.task.id == result.id
    assert not list(tmp_path.iterdir())


@posix
@pytest.mark.parametrize("length", [200, 241, 242, 251, 255, 256])
def test_names_of_every_length(make_client: MakeClient, tmp_path: Path, length: int) -> None:
    """A file's name may be 241 bytes long; a longer one is refused with nothing left behind."""
    world = World()
    client = make_client(world)
    result = client.run(image())
    target = tmp_path / ("x" * (length - 4) + ".png")
    if length <= 241:
        assert client.download(result, target) == target
        assert target.read_bytes() == PNG
        assert list(tmp_path.iterdir()) == [target]
    else:  # the part's name would be too long
        assert "name too long" in str(refused(client, result, target))
        assert not list(tmp_path.iterdir())


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # its name may not be long


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # null
    except PermissionError:
        pytest.skip("only root makes devices")


@posix
@pytest.mark.parametrize("suffix", ["", ".part"])
@pytest.mark.parametrize("make", [_fifo, _socket, _device, Path.mkdir])
def test_what_is_no_file(
    make_client: MakeClient, tmp_path: Path, make: Callable[[Path], object], suffix: str
) -> None:
    """A device, a pipe, a socket or a folder under a name that is written to is left as it is."""
    world = World()
    client = make_client(world)
    result = client.run(image())
    (tmp_path / "in").mkdir()
    taken = tmp_path / "in" / f"{result.id}.png{suffix}"
    make(taken)
    before, asked = taken.lstat(), len(world.seen)
    if make is Path.mkdir and not suffix:
        assert client.download(result, tmp_path / "in" / f"{result.id}.png").parent == taken
        (taken / f"{result.id}.png").unlink()
    else:
        refused(client, result, taken.with_suffix("") if suffix else taken)
        assert len(world.seen) == asked
    if not suffix:  # the same name, made from the task's id
        refused(client, result, tmp_path / "in")
    assert (taken.lstat().st_ino, taken.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert [path for path in (tmp_path / "in").iterdir() if path.suffix == ".png"] in ([taken], [])


@posix
@pytest.mark.parametrize("make", [_fifo, _socket, _device])
def test_a_note_that_is_no_file(
    make_client: MakeClient, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """A device, a pipe or a socket under the name of a part's note is neither read nor replaced."""
    note = tmp_path / "film.mp4.part.json"
    make(note)
    before = note.lstat()
    with ScriptedServer(Film()) as server:
        refused(make_client(server.url), f"{server.url}/film.mp4", tmp_path / "film.mp4")
        assert not server.peers
    assert (note.lstat().st_ino, note.lstat().st_mode) == (before.st_ino, before.st_mode)


IDS = (
    "a-b", "a:b", "a.b", "a=b", "a~b", "a+b", "a@b", "a_b", "con", "_con", "nul.png", "-a", "a-",
    "a", "x" * 100, "x" * 101, "x" * 256, "x" * 255 + "y", ":", "=", "@@",
)  # fmt: skip


def test_every_id_has_a_file_of_its_own(make_client: MakeClient, tmp_path: Path) -> None:
    """No two ids come to the same name in a folder, on whatever system, and none leads out."""
    with ScriptedServer(Film()) as server:
        client = make_client(server.url)
        paths = [
            client.download(
                Result(id=name, status=Status.COMPLETED, video_url=f"{server.url}/a.mp4"), tmp_path
            )
            for name in IDS
        ]
    assert len({path.name.lower() for path in paths}) == len(IDS)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    for path in paths:
        assert path.stem.replace("_", "-").replace("-", "a").isalnum()
        assert path.stem.lower() not in ("con", "nul")
        assert len(path.name) <= 110


class Meddling:
    """Does something to the files as soon as a download has begun to be saved."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act: Callable[[], object] | None = act

    def __call__(self, event: Event) -> None:
        if isinstance(event, DownloadProgress) and event.received and self._act is not None:
            act, self._act = self._act, None
            act()


@posix
def test_the_folder_is_removed_meanwhile(make_client: MakeClient, tmp_path: Path) -> None:
    """A folder that disappears under a download is reported, and nothing is made anew."""
    folder = tmp_path / "folder"
    with ScriptedServer(Film()) as server:
        client = make_client(server.url, on_event=Meddling(lambda: shutil.rmtree(folder)))
        result = Result(id="task-1", status=Status.COMPLETED, video_url=f"{server.url}/a.mp4")
        error = refused(client, result, folder / "film.mp4")
    assert error.task is not None
    assert error.task.id == "task-1"
    assert not folder.exists()


@posix
def test_the_part_is_replaced_meanwhile(make_client: MakeClient, tmp_path: Path) -> None:
    """What somebody else has put into the part's place never becomes the file."""
    target, part = tmp_path / "film.mp4", tmp_path / "film.mp4.part"

    def replace() -> None:
        part.unlink()
        part.write_bytes(OTHER)

    with ScriptedServer(Film()) as server:
        client = make_client(server.url, on_event=Meddling(replace))
        refused(client, f"{server.url}/film.mp4", target)
        assert not target.exists()
        assert client.download(f"{server.url}/film.mp4", target).read_bytes() == MEDIA
    assert list(tmp_path.iterdir()) == [target]


@posix
def test_the_part_becomes_a_file_meanwhile(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opens a part that has become another one's file by the time it is locked lets it be."""
    target, part = tmp_path / "film.mp4", tmp_path / "film.mp4.part"
    finished: list[BinaryIO] = []

    def late(file: BinaryIO) -> bool:
        if not finished:
            part.write_bytes(OTHER)
            finished.append(part.replace(target).open("rb"))
        return lock(file)

    monkeypatch.setattr(*moments.at("target locked").place, late)
    with ScriptedServer(Film()) as server:
        make_client(server.url).download(f"{server.url}/film.mp4", target)
    with finished[0] as file:
        assert file.read() == OTHER
    assert target.read_bytes() == MEDIA


@posix
def test_the_folder_is_moved_meanwhile(make_client: MakeClient, tmp_path: Path) -> None:
    """A folder that becomes a link to another one leads no file there."""
    folder, moved, elsewhere = tmp_path / "folder", tmp_path / "moved", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "film.mp4").write_bytes(b"precious")
    (elsewhere / "film.mp4.part").write_bytes(b"precious too")

    def move() -> None:
        folder.rename(moved)
        folder.symlink_to(elsewhere)

    with ScriptedServer(Film()) as server:
        client = make_client(server.url, on_event=Meddling(move))
        refused(client, f"{server.url}/film.mp4", folder / "film.mp4")
    assert (elsewhere / "film.mp4").read_bytes() == b"precious"
    assert (elsewhere / "film.mp4.part").read_bytes() == b"precious too"


@posix
def test_what_cannot_be_tidied_up(make_client: MakeClient, tmp_path: Path) -> None:
    """A file that is whole is returned, though the note next to it cannot be removed."""
    target, note = tmp_path / "film.mp4", tmp_path / "film.mp4.part.json"

    def spoil() -> None:
        note.unlink()
        note.mkdir()

    with ScriptedServer(Film()) as server:
        client = make_client(server.url, on_event=Meddling(spoil))
        assert client.download(f"{server.url}/film.mp4", target) == target
    assert target.read_bytes() == MEDIA
    assert note.is_dir()


def test_many_at_one_target(make_client: MakeClient, tmp_path: Path) -> None:
    """If many save two films to one place, each saves a whole file or fails; none are mixed."""
    target = tmp_path / "film.mp4"
    go = threading.Barrier(8)

    def script(peer: Peer) -> None:
        while True:
            head = peer.read_request()
            film = Film(MEDIA) if b" /media " in head else Film(OTHER, etag='"v2"')
            reply = film.reply(head)
            for start in range(0, len(reply), 500):
                peer.send(reply[start : start + 500])
                peer.stopping.wait(0.001)

    with ScriptedServer(script) as server:

        def save(number: int) -> str:
            client = make_client(server.url)
            go.wait(10)
            told = ""
            for _ in range(5):
                try:
                    client.download(f"{server.url}/{'media' if number % 2 else 'other'}", target)
                except muybridge.DownloadFailed as error:
                    told += str(error)
                else:
                    told += "saved"
                    assert target.read_bytes() in (MEDIA, OTHER)
            return told

        with ThreadPoolExecutor(8) as threads:
            told = list(threads.map(save, range(8)))
    assert "saved" in "".join(told)
    assert all("saved" in one or "another download" in one for one in told)
    assert list(tmp_path.iterdir()) == [target]


@posix
def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    """A disk of 16 KiB takes part of a film; with more room the rest is fetched, byte for byte."""
    film = Film(MEDIA * 20)
    with ScriptedServer(film) as server:
        told = on_small_disk(f"{server.url}/film.mp4", tmp_path)
    for before, left, after, whole in told.values():
        assert before.startswith("DownloadFailed")
        assert "No space left on device" in before
        assert left == "film.mp4.part film.mp4.part.json"
        assert (after, whole) == ("saved", "film.mp4")
    ranges = [asked for asked in film.ranges if asked is not None]
    assert len(ranges) == len(told) == len(DRIVERS)


@posix
def test_a_full_disk(tmp_path: Path) -> None:
    """On a disk without room for anything, nothing is left behind."""
    with ScriptedServer(Film()) as server:
        told = on_small_disk(f"{server.url}/film.mp4", tmp_path, filled=True)
    for before, left, after, whole in told.values():
        assert "No space left on device" in before
        assert left == "filler"
        assert (after, whole) == ("saved", "filler film.mp4")


CALLS = {
    "write": "film.mp4.part",
    "ftruncate": "film.mp4.part",
    "fsync": "film.mp4.part",
    "rename": "film.mp4.part",
    "flock": "film.mp4.part",
    "openat": "film.mp4.part.json.new",
}
"""The system's calls that fail, and the path by which they do."""
FAILURES = [
    pytest.param(call, error, marks=() if (call, error) in SAMPLE else nightly)
    for SAMPLE in [{("write", "EDQUOT"), ("fsync", "EIO"), ("rename", "ENOSPC")}]
    for call in CALLS
    for error in ("EIO", "ENOSPC", "EDQUOT", "EROFS")
]


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace")
@pytest.mark.parametrize(("call", "error"), FAILURES)
def test_a_call_of_the_system_that_fails(call: str, error: str, tmp_path: Path) -> None:
    """Whichever system call fails, no file appears; a later download resumes."""
    with ScriptedServer(Film()) as server:
        told = on_failing_disk(call, error, CALLS[call], f"{server.url}/film.mp4", tmp_path)
        for driver, said in told.items():
            folder = tmp_path / driver
            assert said.startswith("DownloadFailed"), said
            assert not (folder / "film.mp4").exists()
            with ExitStack() as closing:
                client = DRIVERS[driver](closing)(server.url)
                client.download(f"{server.url}/film.mp4", folder / "film.mp4")
            assert (folder / "film.mp4").read_bytes() == MEDIA
            assert [path.name for path in folder.iterdir()] == ["film.mp4"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("every", [pytest.param(1, marks=nightly), 17])
def test_killed_at_every_line(driver: str, tmp_path: Path, every: int) -> None:
    """Killed at any line of saving, the file is whole or missing, and the next call resumes."""
    film = Film()
    with (
        ScriptedServer(film) as server,
        Nursery("faults.disk_child") as nursery,
        ExitStack() as closing,
    ):
        client = DRIVERS[driver](closing)(server.url)
        url = f"{server.url}/film.mp4"
        step, struck = 0, True
        while struck:
            step += every
            folder = tmp_path / str(step)
            target = folder / "film.mp4"
            struck = killed(nursery, driver, server.url, url, target, step)
            left = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
            assert left <= {
                "film.mp4",
                "film.mp4.part",
                "film.mp4.part.json",
                "film.mp4.part.json.new",
            }
            if "film.mp4" in left:
                assert target.read_bytes() == MEDIA
            assert client.download(url, target).read_bytes() == MEDIA
            assert [path.name for path in folder.iterdir()] == ["film.mp4"]
        assert step > 50
        assert any(film.ranges)
