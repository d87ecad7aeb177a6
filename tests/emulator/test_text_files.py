"""What the emulator finds out about a file inside a request, on files of other software."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO
from typing import Any

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from muybridge_protocol.emulator.text.files import describe


def picture(kind: str, mode: str = "RGB", **options: object) -> bytes:
    file = BytesIO()
    Image.new(mode, (301, 207)).save(file, kind, **options)
    return file.getvalue()


PICTURES = {
    "PNG": picture("PNG"),
    "JPEG": picture("JPEG"),
    "JPEG, progressive": picture("JPEG", progressive=True, exif=bytes(3000)),
    "GIF": picture("GIF"),
    "WebP, lossy": picture("WEBP"),
    "WebP, lossless": picture("WEBP", lossless=True),
    "WebP, extended": picture("WEBP", "RGBA", exif=b"Exif\0\0" + bytes(20)),
}
# Padding before a marker is allowed.
PICTURES["JPEG, padded"] = PICTURES["JPEG"].replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1)
# Tables may stand before the frame; their marker is among those of frames.
_TABLE = b"\xff\xc4\x00\x09" + b"\x01" * 7
PICTURES["JPEG, tables first"] = PICTURES["JPEG"].replace(b"\xff\xdb", _TABLE + b"\xff\xdb", 1)


def video() -> bytes:
    file = BytesIO()
    opened: Any = av.open(file, "w", format="mp4")  # PyAV does not type its codecs in full
    with opened as film:
        stream = film.add_stream("mpeg4", rate=Fraction(4))
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for _ in range(10):
            film.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        film.mux(stream.encode())
    return file.getvalue()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_measured(name: str) -> None:
    """A picture of each format that other software writes has its format and size told."""
    data = PICTURES[name]
    kind = name.partition(",")[0]
    assert describe(data) == f"a {kind} picture of 301x207 pixels, {len(data)} bytes"


def test_the_three_forms_of_webp_are_tried() -> None:
    """The examples have one file of each of the three forms of WebP."""
    forms = {PICTURES[name][12:16] for name in PICTURES if name.startswith("WebP")}
    assert forms == {b"VP8 ", b"VP8L", b"VP8X"}


def test_a_video_is_measured() -> None:
    """An MP4 has its length told, wherever its tables stand and however wide its numbers are."""
    data = video()
    assert describe(data) == f"an MP4 video of 2.5 s, {len(data)} bytes"
    start = data.index(b"mdat") - 4
    end = start + int.from_bytes(data[start : start + 4])
    wide = (
        data[:start]
        + b"\0\0\0\1mdat"
        + (end - start + 8).to_bytes(8)
        + data[start + 8 : end]
        + data[end:]
    )
    assert describe(wide) == f"an MP4 video of 2.5 s, {len(wide)} bytes"
    newer = new_movie(scale=1000, duration=7250)
    assert describe(newer) == f"an MP4 video of 7.25 s, {len(newer)} bytes"


def new_movie(scale: int, duration: int) -> bytes:
    """Return an MP4 of tables alone, in their newer version."""
    movie = b"\1\0\0\0" + bytes(16) + scale.to_bytes(4) + duration.to_bytes(8)
    header = (8 + len(movie)).to_bytes(4) + b"mvhd" + movie
    return b"\0\0\0\x08ftyp" + (8 + len(header)).to_bytes(4) + b"moov" + header


def test_a_film_with_broken_tables_has_no_length() -> None:
    """An MP4 whose time has no unit, or whose tables are cut off, is told without a length."""
    for data in (new_movie(scale=0, duration=1), video()[:-1]):
        assert describe(data) == f"an MP4 video, {len(data)} bytes"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "0 bytes"),
        (b"x", "1 byte"),
        (b"hello", "5 bytes"),
        (b"\0\0\0\x08ftyp", "an MP4 video, 8 bytes"),
        (b"\0\0\0\x08ftyp\0\0\0\x08moov", "an MP4 video, 16 bytes"),
        (b"\0\0\0\x00ftyp", "an MP4 video, 8 bytes"),
    ],
)
def test_other_files_have_their_size_told(data: bytes, told: str) -> None:
    """Of a file of another kind the size is told, of a film without tables that it is one."""
    assert describe(data) == told


@pytest.mark.parametrize("data", [*PICTURES.values(), video()], ids=[*PICTURES, "MP4"])
def test_a_broken_file_is_described_too(data: bytes) -> None:
    """However short a file is cut off, it is described, by its size at least."""
    for end in range(min(len(data), 1000)):
        assert describe(data[:end]).endswith(f"{end} byte{'s' * (end != 1)}")


beginnings = st.sampled_from(
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\xff\xd8",
        b"\xff\xd8\xff\xff",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBP",
        b"RIFF\0\0\0\0WEBPVP8X",
        b"\0\0\0\x08ftyp",
        b"\0\0\0\x08ftyp\0\0\0\x80moov\0\0\0\x28mvhd",
    ]
)


@given(beginnings, st.binary(max_size=200))
def test_any_bytes_are_described(beginning: bytes, rest: bytes) -> None:
    """Whatever follows a format's first bytes, there is a description."""
    data = beginning + rest
    assert describe(data).endswith(f"{len(data)} bytes")


def test_a_file_of_many_parts_is_not_read_to_its_end() -> None:
    """A JPEG of segments is given up after some ten thousand of them."""
    segments = b"\xff\xd8" + b"\xff\xe0\x00\x02" * 20_000
    frame = b"\xff\xc0\x00\x11\x08\x00\x02\x00\x05"
    assert describe(segments + frame) == f"a JPEG picture, {len(segments + frame)} bytes"
    assert describe(segments[: 2 + 4 * 999] + frame).startswith("a JPEG picture of 5x2 pixels")
    boxes, movie = b"\0\0\0\x08ftyp" + b"\0\0\0\x08free" * 999, video()
    assert describe(boxes + movie).startswith("an MP4 video")


def brand(name: bytes) -> bytes:
    return b"\0\0\0\x14ftyp" + name + b"\0\0\0\0mif1"


@pytest.mark.parametrize("name", ["HEIC", "AVIF"])
def test_a_picture_in_the_container_of_a_film(name: str) -> None:
    """HEIC and AVIF begin like an MP4, and are pictures to the library and so to the service."""
    data = brand(name.lower().encode())
    article = "an" if name == "AVIF" else "a"
    assert describe(data).startswith(f"{article} {name} picture, ")


def test_a_picture_of_pillow_in_the_container_of_a_film() -> None:
    """An AVIF that other software writes is a picture."""
    data = picture("AVIF")
    assert describe(data) == f"an AVIF picture, {len(data)} bytes"
