"""A sidecar says where a download comes from, and puts nothing else at risk."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

import muybridge
from muybridge import DownloadFailed, Sidecar, SidecarFailed
from muybridge.files import sidecar as sidecars
from transport.scripted_server import ScriptedServer

from .drivers import MakeClient
from .film import MEDIA, Film
from .in_process import KEY, PNG, World

PROMPT = "a secret horse"
REQUEST = muybridge.ImgbRequest(
    model="imgb-2",
    prompt=PROMPT,
    image_urls=["https://media.example.com/a.png?signature=secret-of-the-link"],
)


def read(path: Path) -> dict[str, Any]:
    """Return the sidecar of *path*."""
    told: dict[str, Any] = json.loads(path.with_name(f"{path.name}.json").read_bytes())
    return told


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_no_sidecar_unless_asked_for(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """Without `sidecar` there is only the picture."""
    client = make_client(world)
    client.download(client.run(REQUEST), tmp_path / "horse.png")
    assert names(tmp_path) == ["horse.png"]


def test_a_sidecar(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """A sidecar has the task, model, digest, times, checksum and version, and no secret."""
    client = make_client(world)
    task = client.create(REQUEST)
    about = Sidecar(request=REQUEST, task=task)
    path = client.download(client.wait(task), tmp_path / "horse.png", sidecar=about)
    assert path.read_bytes() == PNG
    told = read(path)
    assert told == {
        "muybridge_sidecar": 1,
        "file": "horse.png",
        "size": len(PNG),
        "sha256": hashlib.sha256(PNG).hexdigest(),
        "content_credentials": False,
        "task": task.id,
        "family": "imgb",
        "model": "imgb-2",
        "tags": None,
        "request_sha256": REQUEST.digest(),
        "created": task.created,
        "submitted_at": task.submitted_at,
        "saved_at": path.stat().st_mtime,
        "muybridge": muybridge.__version__,
    }
    text = (tmp_path / "horse.png.json").read_text(encoding="utf-8")
    for secret in (PROMPT, "secret", "https:", KEY):
        assert secret not in text
    assert names(tmp_path) == ["horse.png", "horse.png.json"]


def test_the_prompt_is_written_on_request(
    make_client: MakeClient, world: World, tmp_path: Path
) -> None:
    """The prompt is written only where that is asked for."""
    client = make_client(world)
    about = Sidecar(request=REQUEST, prompt=True)
    path = client.download(client.run(REQUEST), tmp_path / "horse.png", sidecar=about)
    assert read(path)["prompt"] == PROMPT
    about = Sidecar(prompt=True)
    path = client.download(client.run(REQUEST), tmp_path / "other.png", sidecar=about)
    assert read(path)["prompt"] is None


def test_what_is_not_known_is_null(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """Of a result alone, the digest and the time of submission are not known."""
    client = make_client(world)
    result = client.run(REQUEST)
    told = read(client.download(result, tmp_path / "horse.png", sidecar=True))
    assert (told["task"], told["family"], told["model"]) == (result.id, "imgb", "imgb-2")
    assert (told["request_sha256"], told["submitted_at"]) == (None, None)
    assert told["created"] == result.created


def test_another_task_is_not_mixed_in(
    make_client: MakeClient, world: World, tmp_path: Path
) -> None:
    """A task in the `Sidecar` that is not the download's is left out."""
    client = make_client(world)
    result, other = client.run(REQUEST), client.create(REQUEST)
    about = Sidecar(task=other)
    told = read(client.download(result, tmp_path / "horse.png", sidecar=about))
    assert (told["task"], told["submitted_at"]) == (result.id, None)


def test_of_a_url(make_client: MakeClient, tmp_path: Path) -> None:
    """Of a URL, the checksum alone is known; neither the URL nor its query is written."""
    with ScriptedServer(Film()) as server:
        url = f"{server.url}/film.mp4?signature=secret"
        path = make_client(server.url).download(url, tmp_path / "film.mp4", sidecar=True)
    told = read(path)
    assert told["sha256"] == hashlib.sha256(MEDIA).hexdigest()
    assert (told["task"], told["family"], told["model"]) == (None, None, None)
    assert b"secret" not in (tmp_path / "film.mp4.json").read_bytes()


def test_an_earlier_sidecar_is_replaced(
    make_client: MakeClient, world: World, tmp_path: Path
) -> None:
    """A file that is saved again gets a sidecar of its own."""
    client = make_client(world)
    for _ in range(2):
        result = client.run(REQUEST)
        path = client.download(result, tmp_path / "horse.png", sidecar=True)
        assert read(path)["task"] == result.id
    assert names(tmp_path) == ["horse.png", "horse.png.json"]


@pytest.mark.parametrize(
    "foreign", [b"", b"{}", b"not JSON", b'["muybridge_sidecar"]', b"[" * 5000, b"\xff"]
)
def test_another_file_is_never_replaced(
    make_client: MakeClient, world: World, tmp_path: Path, foreign: bytes
) -> None:
    """A file that is no sidecar stays as it is; the error says that the picture is saved."""
    client = make_client(world)
    other = tmp_path / "horse.png.json"
    other.write_bytes(foreign)
    result = client.run(REQUEST)
    with pytest.raises(SidecarFailed, match="is saved, but its sidecar is not") as caught:
        client.download(result, tmp_path / "horse.png", sidecar=True)
    assert "horse.png.json: it is another file" in str(caught.value)
    assert isinstance(caught.value, DownloadFailed)
    assert caught.value.path == tmp_path / "horse.png"
    assert caught.value.task is not None
    assert caught.value.task.id == result.id
    assert caught.value.path.read_bytes() == PNG
    assert other.read_bytes() == foreign
    assert names(tmp_path) == ["horse.png", "horse.png.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_links_folders_and_pipes_are_not_followed(
    make_client: MakeClient, world: World, tmp_path: Path
) -> None:
    """A link, a folder or a pipe in the sidecar's place stays, and so does what a link leads to."""
    client = make_client(world)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"muybridge_sidecar": 1}', encoding="utf-8")
    place = tmp_path / "horse.png.json"
    for make in (
        lambda: place.symlink_to(elsewhere),
        lambda: place.symlink_to(tmp_path / "nowhere"),
        place.mkdir,
        lambda: os.mkfifo(place),
    ):
        make()
        with pytest.raises(SidecarFailed, match="it is another file"):
            client.download(client.run(REQUEST), tmp_path / "horse.png", sidecar=True)
        assert (tmp_path / "horse.png").read_bytes() == PNG
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    assert elsewhere.read_text(encoding="utf-8") == '{"muybridge_sidecar": 1}'
    assert names(tmp_path) == ["elsewhere.json", "horse.png"]


def failing(error: int) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(error, os.strerror(error))

    return fail


@pytest.mark.parametrize("call", ["write_all", "sync_folders"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_bad_disk(
    make_client: MakeClient,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    error: int,
) -> None:
    """If a sidecar cannot be written, the picture stays, and no part of the sidecar does."""
    client = make_client(world)
    monkeypatch.setattr(sidecars, call, failing(error))
    with pytest.raises(SidecarFailed, match=os.strerror(error)):
        client.download(client.run(REQUEST), tmp_path / "horse.png", sidecar=True)
    assert (tmp_path / "horse.png").read_bytes() == PNG
    if call == "write_all":
        assert names(tmp_path) == ["horse.png"]
    else:
        assert read(tmp_path / "horse.png")["size"] == len(PNG)


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP, errno.EIO])
def test_a_disk_without_links(
    make_client: MakeClient,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: int,
) -> None:
    """Where there are no hard links, the sidecar is renamed; other failures are reported."""
    client = make_client(world)
    result = client.run(REQUEST)
    monkeypatch.setattr(os, "link", failing(error))
    if error == errno.EIO:
        with pytest.raises(SidecarFailed, match=os.strerror(error)):
            client.download(result, tmp_path / "horse.png", sidecar=True)
        assert names(tmp_path) == ["horse.png"]
    else:
        path = client.download(result, tmp_path / "horse.png", sidecar=True)
        assert read(path)["task"] == result.id
        assert names(tmp_path) == ["horse.png", "horse.png.json"]


def test_a_file_that_appears_meanwhile(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another program writes just before the sidecar gets its name is not replaced."""
    client = make_client(world)
    real = os.link
    other = tmp_path / "horse.png.json"

    def link(source: Path, target: Path) -> None:
        if target == other:
            other.write_bytes(b"mine")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(SidecarFailed, match="it is another file"):
        client.download(client.run(REQUEST), tmp_path / "horse.png", sidecar=True)
    assert other.read_bytes() == b"mine"
    assert names(tmp_path) == ["horse.png", "horse.png.json"]


def test_a_failed_download_has_no_sidecar(make_client: MakeClient, tmp_path: Path) -> None:
    """There is no sidecar where there is no file."""
    with ScriptedServer(Film()) as server:
        server_url = server.url
    with pytest.raises(DownloadFailed) as caught:
        make_client(server_url).download(f"{server_url}/film.mp4", tmp_path / "f.mp4", sidecar=True)
    assert not isinstance(caught.value, SidecarFailed)
    assert names(tmp_path) == []
