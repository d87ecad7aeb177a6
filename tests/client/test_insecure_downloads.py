"""A paid result behind plain http, a private host or a non-ASCII address can be downloaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muybridge import DownloadFailed, InvalidAddress, MuybridgeError
from muybridge_protocol.records.tasks import Result, Status
from transport.scripted_server import ScriptedServer, serve

from .drivers import MakeClient
from .film import MEDIA, Film
from .in_process import KEY

OTHER_HOST = "127.0.0.2"
"""This machine too, but not the service's own host."""


def link_to(server: ScriptedServer) -> str:
    return f"{server.url}/絵 é.mp4?s=é%2F"


def completed(link: str) -> Result:
    return Result(id="task-1", status=Status.COMPLETED, video_url=link)


def test_it_is_allowed_by_name(make_client: MakeClient, tmp_path: Path) -> None:
    """With the option, a link by plain http to a private host is fetched, without the key."""
    film, target = Film(), tmp_path / "film.mp4"
    with ScriptedServer(film, host=OTHER_HOST) as server:
        client = make_client("https://service.test", allow_insecure_downloads=True)
        client.download(completed(link_to(server)), target)
        assert KEY.encode() not in server.received
    assert target.read_bytes() == MEDIA
    assert film.asked[0].startswith(b"GET /%E7%B5%B5%20%C3%A9.mp4?s=%C3%A9%2F HTTP/1.1\r\n")


def test_it_is_refused_by_default(make_client: MakeClient, tmp_path: Path) -> None:
    """Without the option nothing is fetched, and the error names it and what is not lost."""
    with ScriptedServer(Film(), host=OTHER_HOST) as server:
        link = link_to(server)
        with pytest.raises(InvalidAddress) as caught:
            make_client("https://service.test").download(completed(link), tmp_path / "film.mp4")
        assert not server.peers
    assert "pass allow_insecure_downloads=True" in str(caught.value)
    assert "is paid for, and stays available under its id" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_link_that_the_service_names_later(make_client: MakeClient, tmp_path: Path) -> None:
    """A fresh link is held to the same rule: refused with the task and the option, or fetched."""
    film, target = Film(), tmp_path / "film.mp4"
    with ScriptedServer(film, host=OTHER_HOST) as media:
        link = link_to(media)
        record = {"id": "task-1", "status": "completed", "video_url": link}
        with ScriptedServer(serve(200, json.dumps(record).encode())) as service:
            with pytest.raises(DownloadFailed) as caught:
                make_client(service.url).download("task-1", target)
            assert caught.value.task is not None
            assert caught.value.task.id == "task-1"
            assert "pass allow_insecure_downloads=True" in str(caught.value)
            assert not media.peers
            make_client(service.url, allow_insecure_downloads=True).download("task-1", target)
    assert target.read_bytes() == MEDIA


def test_a_redirect(make_client: MakeClient, tmp_path: Path) -> None:
    """A redirect, in UTF-8 as servers send it, is held to the same rule."""
    film, target = Film(), tmp_path / "film.mp4"
    with ScriptedServer(film, host=OTHER_HOST) as media:
        location = link_to(media).encode().decode("latin-1")  # as headers are written
        with ScriptedServer(serve(302, b"", location=location)) as service:
            with pytest.raises(MuybridgeError, match="allow_insecure_downloads"):
                make_client(service.url).download(f"{service.url}/a", target)
            assert not media.peers
            client = make_client(service.url, allow_insecure_downloads=True)
            client.download(f"{service.url}/a", target)
    assert target.read_bytes() == MEDIA
    assert film.asked[0].startswith(b"GET /%E7%B5%B5%20%C3%A9.mp4?s=%C3%A9%2F HTTP/1.1\r\n")


@pytest.mark.parametrize("host", ["169.254.169.254", "168.63.129.16", "metadata.google.internal"])
def test_metadata_services(make_client: MakeClient, tmp_path: Path, host: str) -> None:
    """A cloud's metadata service is not asked, whatever is allowed."""
    client = make_client("https://service.test", allow_insecure_downloads=True)
    with pytest.raises(InvalidAddress, match="metadata"):
        client.download(completed(f"http://{host}/latest/meta-data"), tmp_path / "film.mp4")
