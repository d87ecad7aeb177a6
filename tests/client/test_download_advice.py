"""A download that fails says what to do next, and what it advises works."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from muybridge import DownloadFailed, LinkExpired
from muybridge_protocol.records.tasks import Result, Status
from transport.scripted_server import ScriptedServer, response_bytes, serve

from .drivers import AnyClient, MakeClient
from .film import MEDIA, Film

posix = pytest.mark.skipif(os.name != "posix", reason="a matter of posix")
RESUMES = "it resumes where it stopped"


def failure(call: Callable[[], object]) -> DownloadFailed:
    """Return how *call* fails."""
    with pytest.raises(DownloadFailed) as caught:
        call()
    return caught.value


def to_file(client: AnyClient, url: str, _: Path) -> None:
    file: Any = BytesIO()
    client.download(url, file)


def to_memory(client: AnyClient, url: str, _: Path) -> None:
    client.read(url)


def to_path(client: AnyClient, url: str, path: Path) -> None:
    client.download(url, path)


WAYS = {"path": (to_path, True), "file": (to_file, False), "memory": (to_memory, False)}


@pytest.mark.parametrize(("save", "resumes"), WAYS.values(), ids=WAYS)
def test_resuming_is_promised_only_for_a_part_that_is_kept(
    make_client: MakeClient, tmp_path: Path, save: Callable[..., None], *, resumes: bool
) -> None:
    """A download to a path resumes; of one to memory or an open file nothing is kept."""
    film = Film(cuts=(10, *[0] * 20))
    target = tmp_path / "film.mp4"
    with ScriptedServer(film) as server:
        client = make_client(server.url)
        url = f"{server.url}/film.mp4"
        error = failure(lambda: save(client, url, target))
        assert (RESUMES in str(error)) is resumes
        assert error.resumes is resumes
        assert "Download it again" in str(error)
        film.cuts.clear()
        before = len(film.ranges)
        save(client, url, target)
    assert (film.ranges[before] is not None) is resumes


def test_a_part_without_a_validator(make_client: MakeClient, tmp_path: Path) -> None:
    """If the server does not identify the file, a later download starts over, and none is told."""
    cut = response_bytes(200, MEDIA, content_type="video/mp4")[:-20]
    with ScriptedServer(lambda peer: (peer.read_request(), peer.send(cut))) as server:
        client = make_client(server.url)
        error = failure(lambda: client.download(f"{server.url}/a.mp4", tmp_path / "a.mp4"))
    assert str(error).endswith(" Download it again.")


@posix
@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        ("in/a-file/film.mp4", "Choose another place that can be written to"),
        ("in/a-pipe", "Choose another place that can be written to"),
        ("/proc/film.mp4", "Choose another place that can be written to"),
        ("/dev/full", "Choose another place that can be written to"),
        (f"in/{'x' * 300}.mp4", "Choose another place that can be written to"),
    ],
    ids=["the parent is a file", "a pipe", "proc", "a device", "a long name"],
)
def test_a_place_that_takes_no_file(
    make_client: MakeClient, tmp_path: Path, where: str, remedy: str
) -> None:
    """Where no retry helps, the error says what to change instead."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a-file").touch()
    os.mkfifo(tmp_path / "in" / "a-pipe")
    with ScriptedServer(Film()) as server:
        client = make_client(server.url)
        error = failure(lambda: client.download(f"{server.url}/a.mp4", tmp_path / where))
        assert remedy in str(error)
        assert RESUMES not in str(error)
        assert error.lasting
        assert client.download(f"{server.url}/a.mp4", tmp_path / "a.mp4").read_bytes() == MEDIA


@posix
def test_an_open_file_without_room(make_client: MakeClient) -> None:
    """A file object on a full device needs room; nothing of the download is kept."""
    with ScriptedServer(Film()) as server, open("/dev/full", "wb", buffering=0) as device:  # noqa: PTH123  no file
        full: Any = device
        client = make_client(server.url)
        error = failure(lambda: client.download(f"{server.url}/a.mp4", full))
    assert "Make room for it, then download it again." in str(error)
    assert RESUMES not in str(error)


@posix
def test_an_open_file_that_is_closed_at_the_other_end(make_client: MakeClient) -> None:
    """A file object that takes nothing more has to be replaced by another one."""
    reading, writing = os.pipe()
    os.close(reading)
    with ScriptedServer(Film()) as server, open(writing, "wb", buffering=0) as end:  # noqa: PTH123  no path
        pipe: Any = end
        client = make_client(server.url)
        error = failure(lambda: client.download(f"{server.url}/a.mp4", pipe))
    assert "Give a file that takes it, then download it again." in str(error)
    assert error.lasting


def test_a_bare_link_that_expired(make_client: MakeClient, tmp_path: Path) -> None:
    """Only the task's id gives a fresh link, and the client does not know it."""
    with ScriptedServer(serve(404, b"gone")) as server:
        client = make_client(server.url)
        error = failure(lambda: client.download(f"{server.url}/a.mp4", tmp_path))
    assert isinstance(error, LinkExpired)
    assert "ask for the task by its id" in str(error)


def test_a_fresh_link_that_does_not_work(make_client: MakeClient, tmp_path: Path) -> None:
    """Where the client has asked for a fresh link already, it does not advise to ask again."""
    film = Film()
    with ScriptedServer(film) as server:
        url = f"{server.url}/a.mp4"
        fresh = {"id": "task-1", "status": "completed", "video_url": url}
        film.instead.extend(
            [
                response_bytes(404),
                response_bytes(200, json.dumps(fresh).encode()),
                response_bytes(404),
            ]
        )
        old = Result(id="task-1", status=Status.COMPLETED, video_url=url)
        client = make_client(server.url)
        error = failure(lambda: client.download(old, tmp_path))
    assert isinstance(error, LinkExpired)
    assert "The client asked for a fresh link and got none that works" in str(error)
    assert "by its id" not in str(error)
