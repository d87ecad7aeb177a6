"""`save` adds a missing suffix, keeps one that is given, and touches no file that is not named."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge.files.suffixes import right_path
from muybridge_protocol.records.tasks import Result

from .drivers import AnyClient, MakeClient
from .in_process import MP4, PNG, World

IMAGE = muybridge.ImgbRequest(model="imgb-2", prompt="A horse")
VIDEO = muybridge.VidcRequest(model="vidc_o3", prompt="A horse")


@pytest.fixture
def client(make_client: MakeClient, world: World) -> AnyClient:
    return make_client(world)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def image(client: AnyClient) -> Result:
    return client.run(IMAGE)


@pytest.mark.parametrize(
    ("given", "saved"),
    [
        ("horse", "horse.png"),
        ("horse.png", "horse.png"),
        ("horse.PNG", "horse.PNG"),
        ("horse.v2", "horse.v2"),
        ("horse.bin", "horse.bin"),
        ("horse.", "horse..png"),
        ("a/b/horse", "a/b/horse.png"),
    ],
)
def test_suffixes_that_are_added(
    client: AnyClient, image: Result, tmp_path: Path, given: str, saved: str
) -> None:
    """A missing suffix is added, one that does not mislead is kept; neither needs a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.save(image, tmp_path / given) == tmp_path / saved
    assert (tmp_path / saved).read_bytes() == PNG


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (io.BytesIO(), r"To write to a file that is open, write client\.download\(result, file\)"),
        (7, r"not to int\. Write client\.download\(result, path\)"),
        (b"horse", r"not to bytes\. Write client\.download\(result, path\)"),
    ],
    ids=["an open file", "a number", "bytes"],
)
def test_invalid_targets(
    client: AnyClient, world: World, image: Result, target: Any, said: str
) -> None:
    """They are rejected before any request, and the error names the right call."""
    before = len(world.seen)
    with pytest.raises(TypeError, match=said):
        client.save(image, target)
    assert len(world.seen) == before


def test_suffixes_that_mislead(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """A suffix of another format is kept, with a warning that names the content."""
    with pytest.warns(
        muybridge.MuybridgeWarning,
        match="^the content of horse.jpg is PNG, not JPG; the file",
    ) as told:
        assert client.save(image, tmp_path / "horse.jpg") == tmp_path / "horse.jpg"
    assert Path(told[0].filename).suffix == ".py"
    assert names(tmp_path) == ["horse.jpg"]
    assert (tmp_path / "horse.jpg").read_bytes() == PNG
    with pytest.warns(muybridge.MuybridgeWarning, match=r"^the content of a\.GIF is MP4, not GIF;"):
        client.save(client.run(VIDEO), tmp_path / "a.GIF")
    assert (tmp_path / "a.GIF").read_bytes() == MP4


def test_files_that_were_not_named(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """A file that the path does not name is never replaced; one that it names is."""
    own = tmp_path / "horse.png"
    own.write_bytes(b"my own photo")
    taken = "because there is a file horse.png already"
    for name in ("horse-2.png", "horse-3.png"):
        with pytest.warns(
            muybridge.MuybridgeWarning, match=f"^horse was saved as {name}, {taken}$"
        ):
            assert client.save(image, tmp_path / "horse").name == name
    assert own.read_bytes() == b"my own photo"
    assert client.save(image, own) == own
    assert own.read_bytes() == PNG


def test_folders(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """In a folder the name is made from the id, and sidecars go beside it, as in a download."""
    saved = client.save(image, f"{tmp_path}/out/", sidecar=True)
    assert names(tmp_path / "out") == [saved.name, f"{saved.name}.json"]
    assert saved.suffix == ".png"


def test_a_download_keeps_its_name(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """`download` saves under exactly the given name."""
    assert client.download(image, tmp_path / "horse.jpg").name == "horse.jpg"


@pytest.mark.parametrize("folder", [".", "./", "pictures", "pictures/.."])
def test_folders_need_no_warning(
    client: AnyClient,
    image: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    """In a folder the name is not the user's, so that no warning compares it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.save(image, folder).is_file()


@pytest.mark.parametrize(
    ("given", "start", "content_type", "right"),
    [
        ("a.gif", b"\xff\xd8\xff", "image/png", "a.gif"),
        ("a.bin", b"\xff\xd8\xff", "", "a.bin"),
        ("a", b"\xff\xd8\xff", "", "a.jpg"),
        ("a", b"?", "video/webm", "a.webm"),
        ("a", b"?", "audio/mp4", "a.m4a"),
        ("a", b"\0\0\0\x18ftypmif1", "", "a.heif"),
        ("a.m4v", b"\0\0\0\x18ftypmp42", "", "a.m4v"),
        ("a.png", b"?", "application/octet-stream", "a.png"),
        ("a", b"?", "", "a"),
        ("a.", b"GIF89a", "", "a..gif"),
        (".png", b"GIF89a", "", ".png.gif"),
    ],
)
def test_what_decides(given: str, start: bytes, content_type: str, right: str) -> None:
    """A given suffix stays. Else the content decides, then what the server says."""
    assert right_path(Path("nowhere") / given, start, content_type).name == right
