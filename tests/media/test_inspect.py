"""What the headers of pictures, videos and sounds say, beside what Pillow and PyAV find."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from functools import partial
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Fragments, Wanted

from .corpus import PICTURES, av, picture, sound, video

NO_MEDIA = {
    "nothing": (b"", "is empty"),
    "a page": (b"<!DOCTYPE html>\n<html><head>", "is a web page or another text"),
    "a page with a mark": (b"\xef\xbb\xbf  <html>", "is a web page or another text"),
    "JSON": (b'{"error": "no such picture"}', "is JSON"),
    "a text": (b"A horse at a gallop, in twelve plates", "is a text"),
    "an error": (
        b"<?xml version='1.0'?>\n<Error><Code>AccessDenied",
        "is a web page or another text",
    ),
    "half a character": ("é".encode() * 256 + b"\xc3", "is a text"),
    "a document": (b"%PDF-1.7\n%\xe2\xe3", "is a PDF document"),
    "an archive": (b"PK\x03\x04\x14\0\0\0", "is a ZIP archive"),
    "packed": (b"\x1f\x8b\x08\0", "is compressed with gzip"),
    "a program": (b"\x7fELF\x02\x01", "is a program"),
}


def facts_of(data: bytes) -> MediaFacts:
    return inspect_media(Fragments.of(data))


def piecemeal(data: bytes) -> tuple[MediaFacts, int]:
    """Return what is found if only those bytes are at hand that were asked for, and how many."""
    fragments = Fragments(size=len(data))
    while True:
        try:
            return inspect_media(fragments), fragments.held
        except Wanted as wanted:
            found = data[wanted.offset : wanted.offset + wanted.length]
            fragments = fragments.having(wanted.offset, found)


@pytest.mark.parametrize("size", [(1, 1), (300, 751), (1280, 720)], ids=str)
@pytest.mark.parametrize("form", PICTURES)
def test_pictures(form: str, size: tuple[int, int]) -> None:
    """The size and format of a picture are those that Pillow finds, whatever bytes come first."""
    data = picture(form, *size)
    with Image.open(BytesIO(data)) as opened:
        expected = (opened.format, *opened.size)
    found, _ = piecemeal(data)
    assert (str(found.format).upper(), found.width, found.height) == (
        str(expected[0]).upper(), *expected[1:],
    )  # fmt: skip
    assert facts_of(data) == found
    assert found.kind is MediaKind.IMAGE
    assert (found.bytes, found.defect, found.doubt, found.missing) == (len(data), "", "", "")


VARIANTS = {
    "lossless WebP": picture("WebP", 500, 400, lossless=True),
    "WebP with transparency": picture("WebP", 500, 400, exif=b"Exif\0\0II*\0\x08\0\0\0\0\0"),
    "progressive JPEG": picture("JPEG", 500, 400, progressive=True),
    "JPEG with a long note": picture("JPEG", 500, 400, comment=b"\xff\xd9\xff\xc0" * 10_000),
    "big TIFF": picture("TIFF", 500, 400, big_tiff=True),
    "compressed TIFF": picture("TIFF", 500, 400, compression="tiff_deflate"),
    "PNG with a text": picture("PNG", 500, 400, dpi=(72, 72)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name: str) -> None:
    """The size is found in every variant of a format."""
    found, read = piecemeal(VARIANTS[name])
    assert (found.width, found.height, found.missing) == (500, 400, "")
    assert read < 1_500


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(form: str, orientation: int) -> None:
    """A picture is turned if its note says that width and height change places."""
    exif = Image.Exif()
    exif[274] = orientation
    data = picture(form, 500, 400, exif=exif.tobytes()) if form == "JPEG" else _tiff(orientation)
    found = facts_of(data)
    assert (found.width, found.height, found.turned) == (500, 400, orientation > 4)


def _tiff(orientation: int) -> bytes:
    file = BytesIO()
    Image.new("L", (500, 400)).save(file, "TIFF", tiffinfo={274: orientation})
    return file.getvalue()


def test_a_bitmap_from_top_to_bottom() -> None:
    """A BMP whose rows begin at the top has a negative height."""
    data = bytearray(picture("BMP", 500, 400))
    data[22:26] = struct.pack("<i", -400)
    assert (facts_of(bytes(data)).width, facts_of(bytes(data)).height) == (500, 400)


VIDEOS = {
    "mp4": video,
    "mp4, fast start": partial(video, fast_start=True),
    "mp4 with sound": partial(video, sound=5),
    "quicktime": partial(video, form="mov"),
    "webm": partial(video, 320, 240, form="webm"),
    "matroska with sound": partial(video, 320, 240, 2, form="matroska", sound=2),
    "mp4, 480p": partial(video, 854, 480, 2),
    "mp4, upright": partial(video, 720, 1280, 2),
}


@pytest.mark.parametrize("name", VIDEOS)
def test_videos(name: str) -> None:
    """The size and length of a video are those that PyAV finds, whatever bytes come first."""
    data = VIDEOS[name]()
    with av.open(BytesIO(data)) as container:
        stream, length = container.streams.video[0], container.duration
        expected = (stream.width, stream.height)
    found, read = piecemeal(data)
    assert found == facts_of(data)
    assert (found.width, found.height) == expected
    assert found.seconds == pytest.approx((length or 0) / av.time_base, abs=0.02)
    assert (found.kind, found.defect, found.missing) == (MediaKind.VIDEO, "", "")
    assert read < 1_500


@pytest.mark.parametrize("seconds", [2, 15.1])
@pytest.mark.parametrize("form", ["wav", "mp3"])
def test_sounds(form: str, seconds: float) -> None:
    """The length of a sound is the one that PyAV finds."""
    data = sound(seconds, form)
    with av.open(BytesIO(data)) as container:
        expected = (container.duration or 0) / av.time_base
    found, read = piecemeal(data)
    assert found == facts_of(data)
    assert (found.kind, found.format) == (MediaKind.SOUND, form.upper())
    assert found.seconds == pytest.approx(expected, abs=0.2)
    assert read < 5_000


def test_an_mp3_without_a_count() -> None:
    """The frames of an MP3 without a count are counted, if all of it is at hand."""
    data = sound(15.1, "mp3", write_xing="0")
    assert facts_of(data).seconds == pytest.approx(15.1, abs=0.2)
    found, _ = piecemeal(data)
    assert found.seconds is None
    assert found.missing == "its header does not say how long it lasts"


def test_an_mp3_with_a_picture() -> None:
    """Tags before the first frame are skipped, however long they are."""
    tag = b"ID3\x04\0\0\0\x04\0\0" + bytes(4 << 14)
    found, read = piecemeal(tag + tag + sound(3, "mp3"))
    assert found.seconds == pytest.approx(3.06, abs=0.1)
    assert read < 6_000


def test_an_mp3_after_other_bytes() -> None:
    """Zeros before the first frame are skipped. Frames within other data do not make an MP3."""
    data = sound(3, "mp3")
    assert facts_of(bytes(1_000) + data).format == "MP3"
    for start in (b"\0\0\1\0\1\0\x10\x10", b"P6\n64 64\n255\n"):
        assert facts_of(start + data).kind is None


def test_a_wav_that_was_streamed() -> None:
    """A WAV whose header has no length lasts up to its end."""
    data = bytearray(sound(3))
    at = data.index(b"data") + 4
    data[at : at + 4] = b"\xff" * 4
    assert facts_of(bytes(data)).seconds == pytest.approx(3)


def test_a_fragmented_video() -> None:
    """The length of a fragmented video is unknown, and nothing else."""
    found = facts_of(video(fragmented=True))
    assert (found.width, found.height, found.seconds) == (1280, 720, None)
    assert found.missing == "its header does not say how long it lasts"


def test_tracks_of_different_length() -> None:
    """If the sound lasts longer than the picture, it is open what the service measures."""
    found = facts_of(video(seconds=2, sound=4))
    assert (found.seconds, found.missing) == (None, "its tracks have different lengths")


def test_a_video_that_is_turned() -> None:
    """A video that a telephone took upright says that it is turned."""
    found = facts_of(video(turned=True))
    assert (found.width, found.height, found.turned) == (1280, 720, True)


@pytest.mark.parametrize("name", NO_MEDIA)
def test_no_media(name: str) -> None:
    """What is certainly no picture, video or sound has a defect."""
    data, defect = NO_MEDIA[name]
    assert facts_of(data).defect == defect


@pytest.mark.parametrize(
    "data",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"#EXTM3U\n#EXT-X",
        b"P3\n2 2\n255\n",
        # What they are comes later than the bytes by which formats are recognized.
        b"P6\n99 99\n255\n" + b"A" * 9_000,
        b"<?xml version='1.0'?><!-- " + b"made by a program " * 60 + b"--><svg/>",
        b"<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' [" + b"<!ENTITY n 'x'>" * 60 + b"]><svg/>",
    ],
)
def test_media_that_are_text(data: bytes) -> None:
    """Some pictures and playlists are text, and have no defect."""
    assert facts_of(data).defect == ""


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a PNG that claims a size and has *chunks*, each with its name."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + body


def packed_text() -> bytes:
    return png(500, 400, (b"zTXt", b"a\0\0" + zlib.compress(bytes(50_000_000), 9)))


def many_chunks() -> bytes:
    return png(500, 400, *[(b"tEXt", b"")] * 50_000)


BOMBS = {
    "a picture of 60,000 px": (partial(png, 60_000, 60_000), {"width": 60_000, "height": 60_000}),
    "a picture with a packed text": (packed_text, {"width": 500}),
    "a picture of many chunks": (many_chunks, {"width": 500}),
    "a GIF of 65,535 px": (
        partial(bytes, b"GIF89a\xff\xff\xff\xff" + bytes(99)),
        {"width": 65_535},
    ),
}


def long_video(hours: int) -> bytes:
    """Return a video whose header claims to last so many hours."""
    data = bytearray(video())
    for name in (b"mvhd", b"mdhd"):
        at = data.index(name) + 4 + 12
        (units,) = struct.unpack(">I", data[at : at + 4])
        data[at + 4 : at + 8] = struct.pack(">I", min(units * 3600 * hours, 2**32 - 2))
    return bytes(data)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str) -> None:
    """What a picture claims is found out without the memory that it claims."""
    make, expected = BOMBS[name]
    data = make()
    tracemalloc.start()
    try:
        found = facts_of(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {key: getattr(found, key) for key in expected} == expected
    assert peak < 2 * len(data) + 1_000_000


def test_a_video_of_ten_hours() -> None:
    """The length that a video claims counts: the service would measure the same."""
    assert facts_of(long_video(10)).seconds == pytest.approx(36_000)


def test_endless_boxes() -> None:
    """A file of nothing but small boxes is given up."""
    found = facts_of(b"\0\0\0\x0cftypisom" + b"\0\0\0\x08free" * 100_000)
    assert found.missing == "its headers cannot be read: its headers have too many parts"
    assert found.defect == ""


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rCgBI" + bytes(99), "its first chunk is not IHDR"),
        (png(0, 5), "its header says 0x5 px"),
        (b"\xff\xd8\xff\xe0\0\x02\xff\xd9", "its size does not stand where it must"),
        (b"\xff\xd8\xff\xe0\0\x02\0\0", "there is no marker where one must be"),
        (b"II*\0\x08\0\0\0\0\0" + bytes(9), "its directory has no size"),
        (b"II*\0\x08\0\0\0\xff\xff" + bytes(9), "its directory has 65535 entries"),
        (b"RIFF\x40\0\0\0WEBPALPH" + bytes(60), "its first chunk is not VP8, VP8L or VP8X"),
        (b"\0\0\0\x08ftyp\0\0\0\x04moov", "a box is shorter than its head"),
        (b"\x1aE\xdf\xa3\x80\0\0", "a number is longer than it may be"),
    ],
)
def test_damaged_headers(data: bytes, missing: str) -> None:
    """What contradicts its format is no defect, and the reason is told."""
    found = facts_of(data)
    assert (found.missing, found.defect) == (f"its headers cannot be read: {missing}", "")


CUT = {
    "a PNG": (partial(picture, "PNG", 500, 400), -13),
    "a header": (partial(picture, "PNG", 500, 400), 20),
    "a WebP": (partial(picture, "WebP", 500, 400), -1),
    "a TIFF": (partial(picture, "TIFF", 500, 400), 9),
    "a video": (video, -1),
    "a video without its end": (video, 20_000),
    "a video without its data": (partial(video, fast_start=True), 20_000),
    "a WebM": (partial(video, 320, 240, form="webm"), -1),
    "a JPEG before its size": (partial(picture, "JPEG", 500, 400), 30),
}


@pytest.mark.parametrize("name", CUT)
def test_truncated(name: str) -> None:
    """Data that certainly end too early have a defect."""
    make, end = CUT[name]
    assert facts_of(make()[:end]).defect == "is truncated"


def test_a_jpeg_without_its_end() -> None:
    """A JPEG without its end marker may be accepted: that is a doubt, and no defect."""
    whole = picture("JPEG", 500, 400)
    found = facts_of(whole[:-2])
    assert (found.width, found.defect) == (500, "")
    assert found.doubt == "it has no end marker, so it may be truncated"
    assert facts_of(whole + bytes(3_000_000)).doubt == ""


WHOLE = [
    *(partial(picture, form, 300, 200) for form in PICTURES),
    *(partial(bytes, variant) for variant in VARIANTS.values()),
    *VIDEOS.values(),
    partial(sound, 2),
    partial(sound, 2, "mp3"),
]


@given(st.data())
def test_any_damage(data: st.DataObject) -> None:
    """Whatever has happened to a file, its facts are found or missing, with a reason."""
    whole = bytearray(data.draw(st.sampled_from(WHOLE))())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, min(len(whole), 2_000) - 1))
        whole[at : at + 4] = data.draw(st.binary(min_size=1, max_size=8))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    found, _ = piecemeal(cut)
    assert found.bytes == len(cut)
    if found.width is None and found.kind is MediaKind.IMAGE:
        assert found.missing or found.defect


@given(st.binary(max_size=2_000))
def test_any_bytes(data: bytes) -> None:
    """Any bytes have facts."""
    assert facts_of(data).bytes == len(data)
