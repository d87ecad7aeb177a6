"""Files as parts: their types are detected by content first, then by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from muybridge import Part, load_part

from .in_process import MP4, PNG

BEGINNINGS: dict[str, bytes] = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "image/gif": b"GIF89a\x05\x00\x02\x00",
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
    "image/avif": b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00",
    "image/heic": b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00",
    "video/mp4": MP4,
    "video/quicktime": b"\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00",
    "video/webm": b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\x82\x84webmB\x87",
}


@pytest.mark.parametrize("name", ["horse", "horse.bin", "horse.txt", "horse.png"])
@pytest.mark.parametrize("mime_type", BEGINNINGS)
def test_told_by_content(tmp_path: Path, mime_type: str, name: str) -> None:
    """A file's content decides its type, whatever its name says."""
    path = tmp_path / name
    path.write_bytes(BEGINNINGS[mime_type])
    assert load_part(path) == load_part(str(path)) == Part.from_bytes(path.read_bytes(), mime_type)


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [("horse.bmp", "image/bmp"), ("horse.TIFF", "image/tiff"), ("horse.pdf", "application/pdf")],
)
def test_told_by_name(tmp_path: Path, name: str, mime_type: str) -> None:
    """If the content does not reveal the type, the name does."""
    path = tmp_path / name
    path.write_bytes(b"BM junk")
    assert load_part(path) == Part.from_bytes(b"BM junk", mime_type)


@pytest.mark.parametrize("name", ["horse.PNG", "horse.jpg", "horse.gif", "horse.webp"])
def test_a_name_that_is_wrong(tmp_path: Path, name: str) -> None:
    """A text that is called a picture is refused, unless the caller says that it is one."""
    path = tmp_path / name
    path.write_bytes(b"a shopping list")
    with pytest.raises(ValueError, match=r"is not image/[a-z]+, although its name says so"):
        load_part(path)
    assert load_part(path, "image/x-horse") == Part.from_bytes(b"a shopping list", "image/x-horse")


def test_a_limit(tmp_path: Path) -> None:
    """A file that is larger than the limit is refused; one of that size is not."""
    path = tmp_path / "horse.png"
    path.write_bytes(PNG)
    assert load_part(path, size_limit=len(PNG)) == Part.from_bytes(PNG, "image/png")
    with pytest.raises(ValueError, match=rf"has more than {len(PNG) - 1:,} bytes"):
        load_part(path, size_limit=len(PNG) - 1)


def test_told_by_the_caller(tmp_path: Path) -> None:
    """A type given by the caller takes precedence over content and name."""
    path = tmp_path / "horse.gif"
    path.write_bytes(PNG)
    assert load_part(path, "image/x-horse") == Part.from_bytes(PNG, "image/x-horse")


@pytest.mark.parametrize("name", ["horse", "horse.unknown", "horse.png.gz", "RIFF"])
def test_untold(tmp_path: Path, name: str) -> None:
    """If the type cannot be detected, the error says what to give; nothing is guessed."""
    path = tmp_path / name
    path.write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt ")
    with pytest.raises(ValueError, match="mime_type"):
        load_part(path)


@pytest.mark.parametrize("mime_type", [None, "image/png"])
def test_no_file(tmp_path: Path, mime_type: str | None) -> None:
    """An empty file, a directory and a missing file are reported as such, with their names."""
    empty = tmp_path / "empty.png"
    empty.touch()
    with pytest.raises(ValueError, match=r"empty\.png is empty"):
        load_part(empty, mime_type)
    for path in (tmp_path, tmp_path / "missing.png"):
        with pytest.raises(OSError, match=path.name):
            load_part(path, mime_type)
