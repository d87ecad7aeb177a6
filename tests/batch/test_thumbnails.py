"""Thumbnails: small copies of a batch's pictures, which need Pillow and never stop anything."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from muybridge import batch
from muybridge.batch.results.sheet.thumbnails import MOST_PIXELS, SIDE, make_thumbnail

from .billing import BillingServer
from .conftest import Run
from .test_sheet import Page


def picture(width: int = 1200, height: int = 600, kind: str = "PNG", mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height), "orange").save(file, kind)
    return file.getvalue()


def turned() -> bytes:
    """A photograph that is to be turned by 90 degrees, as cameras write it."""
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (1200, 600)).save(file, "JPEG", exif=exif)
    return file.getvalue()


def bomb(side: int) -> bytes:
    """A small PNG that claims to be huge, and would take gigabytes to decode."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return picture()[:8] + chunk + picture()[33:]


@pytest.mark.parametrize(
    ("content", "size"),
    [
        pytest.param(picture(), (SIDE, SIDE // 2), id="wide"),
        pytest.param(picture(600, 1200, "WEBP"), (SIDE // 2, SIDE), id="high"),
        pytest.param(picture(kind="JPEG"), (SIDE, SIDE // 2), id="jpeg"),
        pytest.param(picture(mode="P"), (SIDE, SIDE // 2), id="palette"),
        pytest.param(picture(mode="I;16"), (SIDE, SIDE // 2), id="deep"),
        pytest.param(turned(), (SIDE // 2, SIDE), id="turned"),
    ],
)
def test_a_thumbnail_has_the_shape_of_its_picture(
    tmp_path: Path, content: bytes, size: tuple[int, int]
) -> None:
    """A thumbnail is a small picture of the same shape, and is alone in its folder."""
    (tmp_path / "picture").write_bytes(content)
    thumbnail = tmp_path / "thumbnails" / "1.webp"
    make_thumbnail(tmp_path / "picture", thumbnail)
    with Image.open(thumbnail) as made:
        assert (made.format, made.size) == ("WEBP", size)
    assert list(thumbnail.parent.iterdir()) == [thumbnail]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(bomb(int(MOST_PIXELS**0.5) + 1), id="bomb"),
        pytest.param(picture(SIDE, SIDE), id="small anyway"),
        pytest.param(picture()[:-100], id="truncated"),
        pytest.param(picture()[:40], id="cut off early"),
        pytest.param(picture(kind="BMP"), id="another format"),
        pytest.param(b"<svg/>", id="text"),
        pytest.param(b"", id="empty"),
    ],
)
def test_other_files_have_no_thumbnail(tmp_path: Path, content: bytes) -> None:
    """What is too large, small, damaged or no picture has no thumbnail, and no part of one."""
    (tmp_path / "picture").write_bytes(content)
    make_thumbnail(tmp_path / "picture", tmp_path / "thumbnails" / "1.webp")
    assert not list(tmp_path.glob("thumbnails/*"))


@pytest.mark.parametrize("error", [OSError("the disk is full"), MemoryError()], ids=repr)
def test_a_thumbnail_is_whole_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """If it cannot be written to its end, nothing of it is left."""

    def breaks_off(_: object, path: Path, *_args: object, **_options: object) -> None:
        path.write_bytes(b"RIFF")
        raise error

    (tmp_path / "picture").write_bytes(picture())
    monkeypatch.setattr(Image.Image, "save", breaks_off)
    make_thumbnail(tmp_path / "picture", tmp_path / "thumbnails" / "1.webp")
    assert not list(tmp_path.glob("thumbnails/*"))


def images_of(folder: Path) -> list[str | None]:
    return Page(batch.write_sheet(folder).read_text(encoding="utf-8")).sources("img")


def test_the_sheet_shows_thumbnails(server: BillingServer, run: Run) -> None:
    """A batch makes the thumbnails as it saves the results; the sheet shows those there are."""
    server.picture = picture()
    horses = [{"family": "imgb", "model": "imgb-2", "prompt": f"horse {n}"} for n in range(2)]
    report = run(server, horses)
    thumbnails = [f"state/thumbnails/{number}.webp" for number in (1, 2)]
    assert images_of(report.folder) == thumbnails
    (report.folder / thumbnails[0]).unlink()
    assert images_of(report.folder) == ["0001.png", thumbnails[1]]


def test_without_pillow_the_sheet_shows_the_pictures(
    server: BillingServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Pillow is missing, the pictures themselves are shown, and nothing else differs."""
    server.picture = picture()
    monkeypatch.setitem(sys.modules, "PIL", None)
    report = run(server, [{"family": "imgb", "model": "imgb-2", "prompt": "a horse"}])
    assert report.done
    (shown,) = images_of(report.folder)
    assert shown is not None
    assert (report.folder / shown).read_bytes() == server.picture
