"""`save` gives a result the suffix that its content has, and never touches a file not named."""

from __future__ import annotations

import warnings
from pathlib import Path

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
        ("horse.v2", "horse.v2.png"),
        ("a/b/horse", "a/b/horse.png"),
    ],
)
def test_suffixes_that_are_added(
    client: AnyClient, image: Result, tmp_path: Path, given: str, saved: str
) -> None:
    """A missing suffix is added, a right one is kept, and neither needs a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.save(image, tmp_path / given) == tmp_path / saved
    assert (tmp_path / saved).read_bytes() == PNG


def test_suffixes_that_are_corrected(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """A wrong suffix is corrected, with a warning that names both files."""
    with pytest.warns(
        muybridge.NameChanged, match="^horse.jpg was saved as horse.png, because its content is PNG"
    ) as told:
        assert client.save(image, tmp_path / "horse.jpg") == tmp_path / "horse.png"
    assert Path(told[0].filename).suffix == ".py"
    assert names(tmp_path) == ["horse.png"]
    with pytest.warns(muybridge.NameChanged, match=r"^a\.gif was saved as a\.mp4, "):
        client.save(client.run(VIDEO), tmp_path / "a.gif")
    assert (tmp_path / "a.mp4").read_bytes() == MP4


def test_files_that_were_not_named(client: AnyClient, image: Result, tmp_path: Path) -> None:
    """A file that the path does not name is never replaced; one that it names is."""
    own = tmp_path / "horse.png"
    own.write_bytes(b"my own photo")
    taken = "because there is a file horse.png already"
    with pytest.warns(muybridge.NameChanged, match=f"^horse.jpg was saved as horse-2.png, {taken}"):
        assert client.save(image, tmp_path / "horse.jpg").name == "horse-2.png"
    with pytest.warns(muybridge.NameChanged, match=f"^horse was saved as horse-3.png, {taken}"):
        assert client.save(image, tmp_path / "horse").name == "horse-3.png"
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
        ("a.jpg", b"\xff\xd8\xff", "image/png", "a.jpg"),
        ("a.jpeg", b"\xff\xd8\xff", "", "a.jpeg"),
        ("a", b"\xff\xd8\xff", "", "a.jpg"),
        ("a", b"?", "video/webm", "a.webm"),
        ("a.m4v", b"\0\0\0\x18ftypmp42", "", "a.m4v"),
        ("a.png", b"?", "application/octet-stream", "a.png"),
        ("a", b"?", "", "a"),
        ("a.", b"GIF89a", "", "a..gif"),
        (".png", b"GIF89a", "", ".png.gif"),
    ],
)
def test_what_decides(given: str, start: bytes, content_type: str, right: str) -> None:
    """The content decides, then what the server says; without either, the name stays."""
    assert right_path(Path("nowhere") / given, start, content_type).name == right
