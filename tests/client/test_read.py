"""A result in memory or in an open file: whole and checked, or not at all."""

from __future__ import annotations

import asyncio
import gzip
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import muybridge
from muybridge_protocol.records.tasks import Result, Task
from transport.scripted_server import ScriptedServer, serve

from .drivers import AnyClient, MakeClient
from .film import MEDIA, Film
from .in_process import PNG, World
from .requests_made import image


def to_memory(client: AnyClient, source: Result | Task | str, **options: Any) -> bytes:
    return client.read(source, **options)


def to_file(client: AnyClient, source: Result | Task | str, **options: Any) -> bytes:
    file: Any = io.BytesIO()
    try:
        assert client.download(source, file, **options) is None
    except muybridge.DownloadFailed:
        assert file.getvalue() == b""
        raise
    return bytes(file.getvalue())


Fetch = Callable[..., bytes]
either = pytest.mark.parametrize("fetch", [to_memory, to_file])


@either
def test_whole(make_client: MakeClient, fetch: Fetch) -> None:
    """The bytes of a result are returned or written, whether by a result, a task or an id."""
    world = World()
    client = make_client(world)
    result = client.run(image())
    for source in (result, result.to_task(), result.id, str(result.url)):
        assert fetch(client, source) == PNG


@either
@pytest.mark.parametrize("cut", [1, 300, len(MEDIA) - 1])
def test_it_resumes(make_client: MakeClient, fetch: Fetch, cut: int) -> None:
    """A download that is cut off resumes within the call."""
    film = Film(cuts=(cut,))
    with ScriptedServer(film) as server:
        assert fetch(make_client(server.url), f"{server.url}/film.mp4") == MEDIA
    assert film.ranges == [None, f"bytes={cut}-"]


@either
def test_it_starts_over(make_client: MakeClient, fetch: Fetch) -> None:
    """What had arrived of a file without a validator is dropped."""
    film = Film(etag=None, cuts=(300,))
    with ScriptedServer(film) as server:
        assert fetch(make_client(server.url), f"{server.url}/film.mp4") == MEDIA


@either
def test_it_is_checked(make_client: MakeClient, fetch: Fetch) -> None:
    """A page, a short file and a coding that does not fit are no result."""
    page = serve(200, b"<html>", content_type="text/html")
    for script, says in ((page, "not media"), (Film(cuts=(0,) * 9), "early")):
        with ScriptedServer(script) as server:
            client = make_client(server.url)
            with pytest.raises(muybridge.DownloadFailed, match=says):
                fetch(client, f"{server.url}/a.mp4")
    with ScriptedServer(serve(200, gzip.compress(MEDIA), content_encoding="gzip")) as server:
        assert fetch(make_client(server.url), f"{server.url}/a.mp4") == MEDIA


@either
def test_it_is_bounded(make_client: MakeClient, fetch: Fetch) -> None:
    """A result over the limit is refused; 256 MiB is the limit in memory."""
    with ScriptedServer(Film()) as server:
        client = make_client(server.url)
        with pytest.raises(muybridge.DownloadFailed, match="more than 300 bytes"):
            fetch(client, f"{server.url}/a.mp4", size_limit=300)
    limit = 256 * 1024**2 if fetch is to_memory else 4 * 1024**3
    with ScriptedServer(serve(200, MEDIA, content_length=str(limit + 1))) as server:
        client = make_client(server.url)
        with pytest.raises(muybridge.DownloadFailed, match=f"more than {limit} bytes"):
            fetch(client, f"{server.url}/a.mp4")


@either
def test_the_task_is_kept(make_client: MakeClient, fetch: Fetch) -> None:
    """The error of a task whose result is not there yet carries the task."""
    world = World()
    client = make_client(world)
    task = client.create(image())
    with pytest.raises(muybridge.NotCompleted) as caught:
        fetch(client, task)
    assert caught.value.task is not None
    assert caught.value.task.id == task.id


def test_files_of_every_kind(make_client: MakeClient, tmp_path: Path) -> None:
    """A file of any kind gets it at its position, and stays open."""
    world = World()
    client: Any = make_client(world)
    result = client.run(image())
    for buffering in (-1, 0):
        with (tmp_path / "a.bin").open("wb", buffering=buffering) as file:
            file.write(b"before")
            client.download(result, file)
            file.write(b"after")
        assert (tmp_path / "a.bin").read_bytes() == b"before" + PNG + b"after"
    with gzip.open(tmp_path / "a.gz", "wb") as packed:
        client.download(result, packed)
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == PNG


class Stingy(io.RawIOBase):
    """A file that takes a few bytes at a time, and then none."""

    def __init__(self, room: int) -> None:
        self.taken = bytearray()
        self._room = room

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int | None:
        count = min(3, len(data), self._room - len(self.taken))
        self.taken += data[:count]
        return count or None


def test_files_that_take_little(make_client: MakeClient) -> None:
    """A file that takes a part of each piece gets it all, and one that is full is an error."""
    world = World()
    client: Any = make_client(world)
    result = client.run(image())
    patient = Stingy(len(PNG))
    client.download(result, patient)
    assert patient.taken == PNG
    with pytest.raises(muybridge.DownloadFailed, match="the file object: it takes no more") as told:
        client.download(result, Stingy(5))
    assert told.value.task is not None


async def _coroutine() -> None:
    """Stand for a call that nobody has awaited."""


class _Outcome:
    result = Result(id="task-1", status="completed")


SOURCES: dict[str, tuple[Callable[[], object], str]] = {
    "bytes": (lambda: PNG, "write pathlib.Path(path).write_bytes(data)"),
    "record": (lambda: {"id": "task-1"}, 'write client.download(record["id"], path)'),
    "request": (image, "write client.download(client.run(request), path)"),
    "outcome": (_Outcome, "write client.download(outcome.result, path)"),
    "picture": (lambda: Image.new("RGB", (1, 1)), "write image.save(path)"),
    "path": (lambda: Path("horse.png"), "write client.download(result, path)"),
    "nothing": (lambda: None, "write client.download(result, path)"),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("method", ["download", "save", "read"])
def test_what_is_no_source(
    make_client: MakeClient,
    tmp_path: Path,
    method: str,
    name: str,
) -> None:
    """What is no source of a download is refused with the line to write, and nothing is sent."""
    make, line = SOURCES[name]
    with ScriptedServer(Film()) as server:
        client: Any = make_client(server.url)
        target = () if method == "read" else (tmp_path / "a.png",)
        with pytest.raises(TypeError) as caught:
            getattr(client, method)(make(), *target)
        assert not server.peers
    assert line in str(caught.value)
    assert "Nothing was sent." in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_is_not_awaited(make_client: MakeClient, tmp_path: Path) -> None:
    """A coroutine in place of a result is refused with the line to write."""
    client: Any = make_client("https://service.test")
    coroutine = _coroutine()
    with pytest.raises(TypeError, match=r"write await client\.download"):
        client.download(coroutine, tmp_path)
    coroutine.close()


class _AsyncFile:
    async def write(self, data: bytes) -> None: ...


@pytest.mark.parametrize("method", ["download", "save"])
@pytest.mark.parametrize(
    "target",
    [
        None, 3, b"a.png", Result(id="task-1", status="completed"),
        io.StringIO(), _AsyncFile(), io.BufferedReader(io.BytesIO()),  # type: ignore[type-var]
    ],
    ids=lambda target: type(target).__name__,
)  # fmt: skip
def test_what_is_no_target(
    make_client: MakeClient,
    method: str,
    target: object,
) -> None:
    """What is neither a path nor a file for bytes is refused before anything is sent."""
    with ScriptedServer(Film()) as server:
        client: Any = make_client(server.url)
        with pytest.raises(TypeError, match="Nothing was sent"):
            getattr(client, method)(f"{server.url}/a.mp4", target)
        assert not server.peers


def test_a_sidecar_needs_a_path(make_client: MakeClient) -> None:
    """A sidecar of a file object is refused before anything is sent."""
    client: Any = make_client("https://service.test")
    with pytest.raises(TypeError, match="sidecar"):
        client.download("task-1", io.BytesIO(), sidecar=True)


def test_a_slow_file_blocks_nobody() -> None:
    """On an event loop, a file is written in a thread: other tasks go on meanwhile."""

    class Slow(io.BytesIO):
        def write(self, data: Any, /) -> int:
            assert turn.wait(10), "the event loop stood still"
            return super().write(data)

    turn = threading.Event()

    async def main(url: str) -> bytes:
        async with muybridge.AsyncClient("key", url) as client:
            file = Slow()
            downloading = asyncio.create_task(client.download(f"{url}/a.mp4", file))
            while not downloading.done():
                await asyncio.sleep(0)
                if server.peers:
                    turn.set()
            await downloading
            return file.getvalue()

    with ScriptedServer(Film()) as server:
        assert asyncio.run(main(server.url)) == MEDIA
